//! Whose process answers at an address of this machine. While no Ward runs, another user could listen
//! where it was, and would be sent the token.

use reqwest::Url;
use rustix::process::getuid;

/// The state of a socket that waits for connections, in the kernel's tables.
const LISTENS: &str = "0A";
/// Those tables, with and without the newer addresses.
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

/// Whether an address is one of this machine's own.
pub(crate) fn is_here(url: &str) -> bool {
    let url = Url::parse(url).ok();
    match url.as_ref().and_then(Url::host_str) {
        Some("localhost" | "[::1]") => true,
        Some(host) => {
            let address = host.parse::<std::net::Ipv4Addr>();
            address.is_ok_and(|address| address.is_loopback())
        }
        None => false,
    }
}

/// The other user who listens at an address of this machine; nobody where that is this user or root,
/// or cannot be known.
pub(crate) fn stranger(url: &str) -> Option<u32> {
    let port = Url::parse(url).ok()?.port_or_known_default()?;
    let own = [0, getuid().as_raw()];
    let tables = TABLES
        .iter()
        .filter_map(|table| std::fs::read_to_string(table).ok());
    let mut listening = tables.flat_map(|table| listeners(&table, port));
    listening.find(|user| !own.contains(user))
}

/// The users whose processes listen on a port.
fn listeners(table: &str, port: u16) -> Vec<u32> {
    let lines = table.lines().skip(1);
    let listening = lines.filter_map(|line| {
        let mut fields = line.split_whitespace();
        let (_, at) = fields.nth(1)?.rsplit_once(':')?;
        let is_it = u16::from_str_radix(at, 16) == Ok(port) && fields.nth(1) == Some(LISTENS);
        let user = fields.nth(3)?.parse().ok();
        user.filter(|_| is_it)
    });
    listening.collect()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn who_listens_is_read_from_the_kernels_tables() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:0BB8 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1 1\n\
            1: 0100007F:0BB9 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1001        0 2 1\n\
            2: 0100007F:0BB8 0100007F:9999 01 00000000:00000000 00:00000000 00000000  1002        0 3 1\n\
            3: 00000000000000000000000001000000:0BB8 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4 1\n\
            a line that is none\n";
        assert_eq!(listeners(table, 3000), [1000, 0]);
        assert_eq!(listeners("", 3000), [] as [u32; 0]);
    }

    #[test]
    fn what_this_user_listens_on_is_no_strangers() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let table = std::fs::read_to_string(TABLES[0]).unwrap();
        assert_eq!(listeners(&table, port), [getuid().as_raw()]);
        assert_eq!(stranger(&format!("http://127.0.0.1:{port}")), None);
    }
}
