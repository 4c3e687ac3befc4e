//! Reads what a SOCKS5 client says (RFC 1928), without doing any I/O. CONNECT without
//! authentication, and nothing else.

use std::net::IpAddr;

use super::target::{Host, HostError, Target};

/// The first byte of each message of version 5.
pub(super) const VERSION: u8 = 5;
/// "No authentication required."
pub(super) const METHOD_NONE: [u8; 2] = [VERSION, 0];
/// "No acceptable methods."
const METHOD_REFUSED: [u8; 2] = [VERSION, 0xff];

/// What a request is answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reply {
    Succeeded = 0,
    Failure = 1,
    NotAllowed = 2,
    HostUnreachable = 4,
    Refused = 5,
    CommandNotSupported = 7,
    AddressTypeNotSupported = 8,
}

impl Reply {
    /// The reply as it is sent. The bound address is nobody's business, so it is all zeros.
    pub(super) fn bytes(self) -> [u8; 10] {
        [VERSION, self as u8, 0, 1, 0, 0, 0, 0, 0, 0]
    }
}

/// Why a message was not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum SocksError {
    #[error("not SOCKS version 5")]
    Version,
    #[error("the client offers no way without authentication")]
    NoMethod,
    #[error("only the command CONNECT is served")]
    Command,
    #[error("an unknown type of address")]
    AddressType,
    #[error("the reserved byte is not zero")]
    Reserved,
    #[error("{asked:?} is not a host and port that a connection can be made to: {why}")]
    Target { asked: String, why: HostError },
}

impl SocksError {
    /// What tells the client so.
    pub(super) fn answer(&self) -> Vec<u8> {
        let reply = match self {
            Self::NoMethod => return METHOD_REFUSED.to_vec(),
            Self::Version | Self::Reserved => Reply::Failure,
            Self::Command => Reply::CommandNotSupported,
            Self::AddressType => Reply::AddressTypeNotSupported,
            Self::Target { .. } => Reply::NotAllowed,
        };
        reply.bytes().to_vec()
    }
}

/// Reads the greeting. Answers how long it is once all of it is there.
pub(super) fn greeting(bytes: &[u8]) -> Result<Option<usize>, SocksError> {
    match bytes {
        [] | [VERSION] => Ok(None),
        [VERSION, count, methods @ ..] => match methods.get(..usize::from(*count)) {
            Some(methods) if methods.contains(&0) => Ok(Some(2 + methods.len())),
            Some(_) => Err(SocksError::NoMethod),
            None => Ok(None),
        },
        _ => Err(SocksError::Version),
    }
}

/// Reads the request. Answers the target and how long the request is once all of it is there.
pub(super) fn request(bytes: &[u8]) -> Result<Option<(Target, usize)>, SocksError> {
    let Some((&[version, command, reserved, kind], rest)) = bytes.split_first_chunk() else {
        return Ok(None);
    };
    if version != VERSION {
        return Err(SocksError::Version);
    }
    if command != 1 {
        return Err(SocksError::Command);
    }
    if reserved != 0 {
        return Err(SocksError::Reserved);
    }
    match kind {
        1 => match address_and_port::<4>(rest) {
            Some((address, port)) => of_address(address.into(), port).map(|to| Some((to, 10))),
            None => Ok(None),
        },
        4 => match address_and_port::<16>(rest) {
            Some((address, port)) => of_address(address.into(), port).map(|to| Some((to, 22))),
            None => Ok(None),
        },
        3 => {
            let Some((&length, rest)) = rest.split_first() else {
                return Ok(None);
            };
            let Some((name, rest)) = rest.split_at_checked(usize::from(length)) else {
                return Ok(None);
            };
            let Some(port) = port(rest) else {
                return Ok(None);
            };
            of_name(name, port).map(|target| Some((target, 7 + name.len())))
        }
        _ => Err(SocksError::AddressType),
    }
}

fn address_and_port<const N: usize>(bytes: &[u8]) -> Option<([u8; N], u16)> {
    let (address, rest) = bytes.split_first_chunk()?;
    Some((*address, port(rest)?))
}

fn port(bytes: &[u8]) -> Option<u16> {
    bytes.first_chunk().map(|port| u16::from_be_bytes(*port))
}

fn of_address(address: IpAddr, port: u16) -> Result<Target, SocksError> {
    target(Host::from_address(address), &address.to_string(), port)
}

/// A name, or an address that a client put where names go.
fn of_name(name: &[u8], port: u16) -> Result<Target, SocksError> {
    // What is not ASCII is refused as a character no name has, whatever it was meant to be.
    let text: String = name.iter().map(|&byte| char::from(byte)).collect();
    target(Host::parse(&text), &text, port)
}

fn target(host: Result<Host, HostError>, asked: &str, port: u16) -> Result<Target, SocksError> {
    match host {
        Ok(host) if port != 0 => Ok(Target { host, port }),
        Ok(_) => Err(HostError::Port("0".to_owned())),
        Err(why) => Err(why),
    }
    .map_err(|why| SocksError::Target {
        asked: format!("{asked}:{port}"),
        why,
    })
}
