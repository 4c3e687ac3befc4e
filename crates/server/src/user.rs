//! Which user of this machine is at the other end of a connection.
//!
//! A browser sends Ward's cookie to every server at the same host, whatever its port; another user of
//! the machine could listen where Ward was, and get it. So a cookie counts for who signed in with it.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

/// The state of a connection that is open at both ends, in the kernel's tables.
const OPEN: &str = "01";

/// The user at the other end. The kernel is asked once, when somebody wants to know.
#[derive(Debug, Clone, Default)]
pub(crate) struct User(Option<Arc<Ends>>);

#[derive(Debug)]
struct Ends {
    theirs: SocketAddr,
    ours: SocketAddr,
    user: OnceLock<Option<u32>>,
}

impl User {
    /// Of a connection between these addresses. Only of this machine's own is anything known.
    pub(crate) fn between(theirs: SocketAddr, ours: Option<SocketAddr>) -> Self {
        let ends = ours.filter(|_| theirs.ip().to_canonical().is_loopback());
        Self(ends.map(|ours| {
            Arc::new(Ends {
                theirs,
                ours,
                user: OnceLock::new(),
            })
        }))
    }

    /// Asks the kernel on a thread that may wait, since its table can be long; [`id`](Self::id) knows
    /// it then.
    pub(crate) async fn look_up(&self) {
        let known = |ends: &Arc<Ends>| ends.user.get().is_some();
        if self.0.as_ref().is_none_or(known) {
            return;
        }
        let user = self.clone();
        // Where that thread is lost, it is asked again when it is wanted.
        let _ = tokio::task::spawn_blocking(move || user.id()).await;
    }

    /// By their number; nothing where it cannot be known.
    pub(crate) fn id(&self) -> Option<u32> {
        let ends = self.0.as_ref()?;
        *ends.user.get_or_init(|| {
            let of = |table: &str, written: fn(IpAddr) -> Option<String>| {
                let end = |end: SocketAddr| {
                    let ip = written(end.ip().to_canonical())?;
                    Some(format!("{ip}:{:04X}", end.port()))
                };
                let table = std::fs::read_to_string(table).ok()?;
                owner(&table, &end(ends.theirs)?, &end(ends.ours)?)
            };
            of("/proc/net/tcp", in_tcp).or_else(|| of("/proc/net/tcp6", in_tcp6))
        })
    }
}

/// Whose end is theirs.
fn owner(table: &str, theirs: &str, ours: &str) -> Option<u32> {
    table.lines().skip(1).find_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let is_it = fields.next()? == theirs && fields.next()? == ours && fields.next()? == OPEN;
        let user = fields.nth(3)?.parse().ok();
        user.filter(|_| is_it)
    })
}

fn in_tcp(ip: IpAddr) -> Option<String> {
    match ip {
        IpAddr::V4(ip) => Some(words(&ip.octets())),
        IpAddr::V6(_) => None,
    }
}

fn in_tcp6(ip: IpAddr) -> Option<String> {
    Some(match ip {
        IpAddr::V4(ip) => words(&ip.to_ipv6_mapped().octets()),
        IpAddr::V6(ip) => words(&ip.octets()),
    })
}

/// An address as the kernel writes it: words in this machine's own order.
fn words(bytes: &[u8]) -> String {
    let (words, _) = bytes.as_chunks::<4>();
    let words = words.iter().map(|word| u32::from_ne_bytes(*word));
    words.map(|word| format!("{word:08X}")).collect()
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn who_is_at_the_other_end_is_told_by_the_kernel() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else {
                continue;
            };
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (accepted, theirs) = listener.accept().unwrap();
            let user = User::between(theirs, accepted.local_addr().ok());
            assert_eq!(user.id(), Some(rustix::process::getuid().as_raw()));
            drop(client);
        }
    }

    #[test]
    fn an_end_that_is_closed_or_elsewhere_is_nobodys() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (accepted, theirs) = listener.accept().unwrap();
        let ours = accepted.local_addr().ok();
        drop(client);
        assert_eq!(User::between(theirs, ours).id(), None);
        let elsewhere = "10.0.0.1:9".parse().unwrap();
        assert_eq!(User::between(elsewhere, ours).id(), None);
        assert_eq!(User::default().id(), None);
    }

    #[test]
    fn an_older_address_in_the_form_of_a_newer_one_is_found_too() {
        let Ok(listener) = TcpListener::bind("[::]:0") else {
            return;
        };
        let port = listener.local_addr().unwrap().port();
        let client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (accepted, theirs) = listener.accept().unwrap();
        let user = User::between(theirs, accepted.local_addr().ok());
        assert_eq!(user.id(), Some(rustix::process::getuid().as_raw()));
        drop(client);
    }
}
