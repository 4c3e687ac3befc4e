//! Listeners on the host that remember whether anybody came.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::check::Seen;
use crate::scene::held::{LONG, until};

/// Something on the host that can be reached, or not.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener),
    Udp(UdpSocket),
    Unix(UnixListener),
}

impl Listener {
    pub(crate) fn tcp(ip: IpAddr) -> Self {
        Self::Tcp(TcpListener::bind((ip, 0)).unwrap())
    }

    pub(crate) fn udp(ip: IpAddr) -> Self {
        Self::Udp(UdpSocket::bind((ip, 0)).unwrap())
    }

    pub(crate) fn at(path: &Path) -> Self {
        let listener = UnixListener::bind(path).unwrap();
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(path, open).unwrap();
        Self::Unix(listener)
    }

    pub(crate) fn abstract_name(name: &str) -> Self {
        let address = SocketAddr::from_abstract_name(name).unwrap();
        Self::Unix(UnixListener::bind_addr(&address).unwrap())
    }

    /// Its address and port, as words.
    pub(crate) fn words(&self) -> [String; 2] {
        let address = match self {
            Self::Tcp(listener) => listener.local_addr().unwrap(),
            Self::Udp(socket) => socket.local_addr().unwrap(),
            Self::Unix(_) => panic!("a unix socket has no port"),
        };
        [address.ip().to_string(), address.port().to_string()]
    }

    /// Whether anything arrived. What was sent to this machine itself is there as soon as the
    /// sender has ended.
    pub(crate) fn heard(&self) -> Seen {
        let heard = match self {
            Self::Tcp(listener) => {
                listener.set_nonblocking(true).unwrap();
                listener.accept().is_ok()
            }
            Self::Udp(socket) => {
                socket.set_nonblocking(true).unwrap();
                socket.recv(&mut [0; 512]).is_ok()
            }
            Self::Unix(listener) => {
                listener.set_nonblocking(true).unwrap();
                listener.accept().is_ok()
            }
        };
        Seen::escape_if(heard)
    }

    /// Waits for the first who comes, answers, and tells what they had to say. Nobody comes only
    /// where `over` says that nobody will.
    pub(crate) fn first_words(&self, over: &AtomicBool) -> String {
        let Self::Tcp(listener) = self else {
            panic!("only a TCP listener is asked for words")
        };
        listener.set_nonblocking(true).unwrap();
        let mut came = None;
        until(LONG, || {
            came = listener.accept().ok();
            came.is_some() || over.load(Ordering::Relaxed)
        });
        let Some((mut stream, _)) = came else {
            return String::new();
        };
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        let mut bytes = [0; 64];
        let length = stream.read(&mut bytes).unwrap_or(0);
        let _ = stream.write_all(b"heard");
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }
}

pub(crate) const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// An address of this machine beyond loopback, where it has one. Nothing is sent to find out.
pub(crate) fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    let ip = socket.local_addr().ok()?.ip();
    (!ip.is_loopback() && !ip.is_unspecified()).then_some(ip)
}
