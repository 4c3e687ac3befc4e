//! Addresses to listen on: `127.0.0.1:3000`, `localhost:3000`, `[::1]:0`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Reads an address. Names are not looked up, but for `localhost`, whose meaning is fixed.
pub(crate) fn parse(text: &str) -> Result<SocketAddr, String> {
    if let Some(port) = text.strip_prefix("localhost:")
        && let Ok(port) = port.parse()
    {
        return Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    }
    text.parse().map_err(|_| {
        "write an address and a port, such as 127.0.0.1:3000; port 0 takes a free one".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_names_are_not_looked_up() {
        assert_eq!(parse("127.0.0.1:0"), Ok(([127, 0, 0, 1], 0).into()));
        assert_eq!(parse("localhost:80"), Ok(([127, 0, 0, 1], 80).into()));
        assert!(parse("[::1]:3000").is_ok());
        for text in [
            "",
            "3000",
            "127.0.0.1",
            "example.org:80",
            "localhost:",
            "localhost:99999",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
