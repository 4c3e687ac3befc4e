//! Hosts: `example.com:443`, `*.example.com`, `[::1]:8080`.

use std::net::IpAddr;

/// A host that would be reached, or a pattern for some.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    name: String,
    port: Option<u16>,
}

/// Why a host pattern cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a host is written like `example.com`, `example.com:443` or `*.example.com`")]
pub struct BadHost;

impl Host {
    /// Reads a host with or without a port. Upper case and final dots make no difference, nor does
    /// how an address is written.
    pub fn parse(text: &str) -> Result<Self, BadHost> {
        let (name, port) = match text.rsplit_once(':') {
            // An IPv6 address without brackets has no port.
            Some((name, _)) if name.contains(':') && !name.ends_with(']') => (text, None),
            Some((name, port)) => (name, Some(port.parse().map_err(|_| BadHost)?)),
            None => (text, None),
        };
        let name = name.strip_prefix('[').unwrap_or(name);
        let name = name.strip_suffix(']').unwrap_or(name);
        let undotted = name.trim_end_matches('.');
        // Final dots mean nothing, but `*.` without a domain would mean everything.
        if undotted == "*" && name != "*" {
            return Err(BadHost);
        }
        let name = match undotted.parse::<IpAddr>() {
            Ok(address) => address.to_canonical().to_string(),
            Err(_) => undotted.to_ascii_lowercase(),
        };
        let plain = name.strip_prefix("*.").unwrap_or(&name);
        let is_fine = |char: char| char.is_ascii_alphanumeric() || "-_.:%".contains(char);
        if plain.is_empty() || (plain != "*" && !plain.chars().all(is_fine)) {
            return Err(BadHost);
        }
        Ok(Self { name, port })
    }

    /// A host that would be reached: one, never a pattern for some.
    pub(crate) fn named(text: &str) -> Option<Self> {
        let host = Self::parse(text).ok()?;
        (!host.name.contains('*')).then_some(host)
    }

    pub(crate) fn has_port(&self) -> bool {
        self.port.is_some()
    }

    /// Whether this, as a pattern, names that host; [`None`] where the host's port is not known.
    pub(crate) fn fits(&self, host: &Self) -> Option<bool> {
        let named = match self.name.strip_prefix("*.") {
            Some(domain) => host
                .name
                .strip_suffix(domain)
                .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
            None => self.name == "*" || self.name == host.name,
        };
        match (named, self.port, host.port) {
            (false, _, _) => Some(false),
            (true, None, _) => Some(true),
            (true, Some(_), None) => None,
            (true, Some(asked), Some(port)) => Some(asked == port),
        }
    }
}

impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.port, self.name.contains(':')) {
            (None, _) => f.write_str(&self.name),
            (Some(port), false) => write!(f, "{}:{port}", self.name),
            (Some(port), true) => write!(f, "[{}]:{port}", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, host: &str) -> Option<bool> {
        Host::parse(pattern)
            .unwrap()
            .fits(&Host::parse(host).unwrap())
    }

    #[test]
    fn a_host_is_its_name_and_port_and_nothing_that_looks_alike() {
        assert_eq!(fits("example.com:443", "EXAMPLE.com.:443"), Some(true));
        assert_eq!(fits("example.com", "example.com:8080"), Some(true));
        assert_eq!(fits("example.com:443", "example.com:80"), Some(false));
        assert_eq!(fits("example.com:443", "example.com"), None);
        assert_eq!(fits("*.example.com", "a.b.example.com:1"), Some(true));
        assert_eq!(fits("*.example.com", "example.com:1"), Some(false));
        assert_eq!(fits("*.example.com", "badexample.com:1"), Some(false));
        assert_eq!(fits("example.com", "example.com.evil.org:1"), Some(false));
        assert_eq!(fits("::1", "[::1]:80"), Some(true));
    }

    #[test]
    fn an_address_is_the_same_however_it_is_written() {
        let long = "[2001:db8:0:0:0:0:0:1]";
        for host in [
            "[2001:db8::1]:443",
            "[2001:DB8::0001]:443",
            "2001:db8::1",
            "[2001:db8::1.]:443",
        ] {
            assert_eq!(fits(long, host), Some(true), "{host}");
        }
        assert_eq!(fits("2001:db8::1", "[2001:db8:0:0:0:0:0:1]:80"), Some(true));
        assert_eq!(fits("10.0.0.1", "[::ffff:10.0.0.1]:80"), Some(true));
        assert_eq!(fits("[::ffff:a00:1]:80", "10.0.0.1:80"), Some(true));
        assert_eq!(fits(long, "[2001:db8::2]:443"), Some(false));
        assert_eq!(fits("10.0.0.1", "[::10.0.0.1]:80"), Some(false));
        assert_eq!(fits("example.com..", "example.com.:80"), Some(true));
        let host = Host::parse("[2001:DB8::0:1]:443").unwrap();
        assert_eq!(host.to_string(), "[2001:db8::1]:443");
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for text in [
            "*..",
            "*.:80",
            ".",
            "...:1",
            "",
            "a b",
            "http://a.org",
            "a.org:http",
            "a.org/x",
            "*.",
            "a:99999",
            "*a",
        ] {
            assert_eq!(Host::parse(text), Err(BadHost), "{text}");
        }
    }
}
