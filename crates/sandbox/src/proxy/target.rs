//! Where a connection is to go: a host in its one normal form, and a port.
//!
//! There is one way to write each host here, so that a rule and a request can be compared as
//! values. What could be read in two ways is refused rather than interpreted:
//!
//! - names are ASCII letters, digits, `-` and `_` in labels, kept in lower case; a single trailing
//!   dot is the same name without it; punycode stays as it is;
//! - what ends in a number is an address, and then only `a.b.c.d` in plain decimal will do
//!   (`0x7f.1`, `2130706433` and `127.1` are refused);
//! - IPv6 stands in brackets, without a zone, and never hides an IPv4 address;
//! - the addresses of no host or of many (`0.0.0.0`, multicast) are refused.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::addresses::AddressKind;

/// A name that was checked and brought into its normal form.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostName(String);

impl HostName {
    /// The name: lower case, no trailing dot.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it always means this machine (RFC 6761).
    #[must_use]
    pub fn is_localhost(&self) -> bool {
        self.0 == "localhost" || self.0.ends_with(".localhost")
    }

    /// Whether it lies below `parent`, at any depth.
    #[must_use]
    pub fn is_below(&self, parent: &Self) -> bool {
        self.0
            .strip_suffix(&parent.0)
            .is_some_and(|rest| rest.ends_with('.'))
    }

    fn parse(text: &str) -> Result<Self, HostError> {
        let name = text.strip_suffix('.').unwrap_or(text);
        if name.is_empty() {
            return Err(HostError::Empty);
        }
        if name.len() > 253 {
            return Err(HostError::TooLong);
        }
        for label in name.split('.') {
            if label.is_empty()
                || label.len() > 63
                || label.starts_with('-')
                || label.ends_with('-')
            {
                return Err(HostError::Label(label.to_owned()));
            }
        }
        if name.rsplit('.').next().is_some_and(is_number) {
            return Err(HostError::UnusualAddress);
        }
        Ok(Self(name.to_ascii_lowercase()))
    }
}

/// Whether the C library would take a label for a part of an IPv4 address.
fn is_number(label: &str) -> bool {
    let hex = label
        .strip_prefix("0x")
        .or_else(|| label.strip_prefix("0X"));
    label.bytes().all(|byte| byte.is_ascii_digit())
        || hex.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// A host: a name to be looked up, or an address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name.
    Name(HostName),
    /// An address that was written as one.
    Ip(IpAddr),
}

impl Host {
    /// Reads a host as it stands in an authority: `example.com`, `10.0.0.1`, `[::1]`.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        if let Some(rest) = text.strip_prefix('[') {
            return rest
                .strip_suffix(']')
                .and_then(|inner| inner.parse::<Ipv6Addr>().ok())
                .ok_or(HostError::BadIpv6)
                .and_then(|address| Self::from_address(address.into()));
        }
        let foreign = |c: &char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '.');
        if let Some(found) = text.chars().find(foreign) {
            return Err(HostError::Character(found));
        }
        match text.parse::<Ipv4Addr>() {
            Ok(address) => Self::from_address(address.into()),
            Err(_) => HostName::parse(text).map(Self::Name),
        }
    }

    /// The host at an address. Refuses what is not the address of one host.
    pub fn from_address(address: IpAddr) -> Result<Self, HostError> {
        let kind = AddressKind::of(address);
        if kind.is_one_host() {
            Ok(Self::Ip(address))
        } else {
            Err(HostError::NotOneHost { address, kind })
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(&name.0),
            Self::Ip(IpAddr::V4(address)) => write!(f, "{address}"),
            Self::Ip(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// Where a connection is to go.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target {
    /// The host.
    pub host: Host,
    /// The TCP port, never 0.
    pub port: u16,
}

impl Target {
    /// Reads `host:port`, where the port may be absent if there is a `default`.
    pub fn parse(authority: &str, default: Option<u16>) -> Result<Self, HostError> {
        if authority.contains('@') {
            return Err(HostError::UserInfo);
        }
        let (host, port) = split_port(authority);
        let port = match port {
            Some(digits) => parse_port(digits)?,
            None => default.ok_or(HostError::NoPort)?,
        };
        Ok(Self {
            host: Host::parse(host)?,
            port,
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Cuts `host:port` at the colon that is not inside brackets.
pub(super) fn split_port(authority: &str) -> (&str, Option<&str>) {
    let after_brackets = authority.rfind(']').map_or(0, |at| at + 1);
    match authority[after_brackets..].find(':') {
        Some(at) => {
            let (host, port) = authority.split_at(after_brackets + at);
            (host, Some(&port[1..]))
        }
        None => (authority, None),
    }
}

/// Reads a port: decimal digits without a leading zero, 1 to 65535.
pub(super) fn parse_port(digits: &str) -> Result<u16, HostError> {
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    digits
        .parse()
        .ok()
        .filter(|_| plain)
        .ok_or_else(|| HostError::Port(digits.to_owned()))
}

/// Why something is not a host, or not a host and port.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// Nothing there.
    #[error("there is no host name")]
    Empty,
    /// Longer than a name can be.
    #[error("a host name has at most 253 characters")]
    TooLong,
    /// A character that no host name has.
    #[error(
        "{0:?} cannot be part of a host name; write letters, digits, `-`, `_` and dots (names in other scripts as `xn--…`), and an IPv6 address in brackets"
    )]
    Character(char),
    /// A part between dots that cannot be.
    #[error(
        "{0:?} cannot be a part of a host name: it must have 1 to 63 characters and no `-` at either end"
    )]
    Label(String),
    /// `0x7f.1` and the like.
    #[error("an IPv4 address is written as four plain decimal numbers, such as 192.0.2.1")]
    UnusualAddress,
    /// Brackets without a plain IPv6 address in them.
    #[error("an IPv6 address is written in brackets and without a zone, such as [2001:db8::1]")]
    BadIpv6,
    /// An address that is not the address of one host.
    #[error("{address} is {kind}, not the address of one host", kind = kind.as_words())]
    NotOneHost {
        /// The address.
        address: IpAddr,
        /// What it is.
        kind: AddressKind,
    },
    /// `user@host`.
    #[error("a user name or password does not belong in front of a host here")]
    UserInfo,
    /// No port where one is needed.
    #[error("the port is missing; write host:port")]
    NoPort,
    /// Not a port.
    #[error("{0:?} is not a port; write a number from 1 to 65535")]
    Port(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_has_one_normal_form() {
        let table = [
            ("Example.COM:443", "example.com:443"),
            ("example.com.:443", "example.com:443"),
            ("xn--bcher-kva.example:443", "xn--bcher-kva.example:443"),
            ("_dmarc.example.com:80", "_dmarc.example.com:80"),
            ("127.0.0.1:8080", "127.0.0.1:8080"),
            ("[::1]:8080", "[::1]:8080"),
            ("[0:0:0:0:0:0:0:1]:8080", "[::1]:8080"),
            ("[2606:4700::0001]:1", "[2606:4700::1]:1"),
            ("example.com", "example.com:80"),
            ("1password.com", "1password.com:80"),
            ("0xabc.example", "0xabc.example:80"),
        ];
        for (text, normal) in table {
            let target = Target::parse(text, Some(80)).unwrap();
            assert_eq!(target.to_string(), normal);
            assert_eq!(Target::parse(normal, None), Ok(target));
        }
    }

    #[test]
    fn below_means_a_dot_in_between() {
        let name = |text| HostName::parse(text).unwrap();
        assert!(name("a.pkg.dev").is_below(&name("pkg.dev")));
        assert!(name("a.b.pkg.dev").is_below(&name("pkg.dev")));
        assert!(!name("pkg.dev").is_below(&name("pkg.dev")));
        assert!(!name("evilpkg.dev").is_below(&name("pkg.dev")));
        assert!(!name("pkg.dev.evil.com").is_below(&name("pkg.dev")));
    }
}
