//! What holds for any input: nothing panics, and what is let through is on the list.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::super::addresses::AddressKind;
use super::super::hosts::HostList;
use super::super::http::{self, Request};
use super::super::socks;
use super::super::target::{Host, Target};

const LIST: &str = "example.com, *.pkg.dev:443, 127.0.0.1:8080";

/// Bits of which near-valid targets are made.
fn authority() -> impl Strategy<Value = String> {
    let bit = prop::sample::select(vec![
        "example.com",
        "EXAMPLE.COM",
        "evil.com",
        "pkg.dev",
        "a.",
        ".",
        "..",
        ":",
        ":443",
        ":80",
        ":8080",
        "@",
        "/",
        "?",
        "#",
        "\\",
        "%00",
        "%2e",
        "\0",
        " ",
        "\t",
        "\r\n",
        "\n",
        "127.0.0.1",
        "0x7f.1",
        "2130706433",
        "[::1]",
        "[",
        "]",
        "::ffff:127.0.0.1",
        "*",
        "-",
        "_",
        "xn--",
        "\u{e4}",
        "Host: evil.com",
    ]);
    prop::collection::vec(bit, 1..5).prop_map(|bits| bits.concat())
}

/// The list, written a second time by hand.
fn is_listed(target: &Target) -> bool {
    let host = target.host.to_string();
    match target.port {
        80 => host == "example.com",
        443 => host == "example.com" || host.ends_with(".pkg.dev"),
        8080 => host == "127.0.0.1",
        _ => false,
    }
}

fn check(target: &Target) {
    let list = HostList::parse(LIST).unwrap();
    assert_eq!(list.allows(target), is_listed(target), "{target}");
    assert_eq!(
        Target::parse(&target.to_string(), None).as_ref(),
        Ok(target)
    );
    assert_ne!(target.port, 0);
}

/// Reads a head and, if it is understood, checks what it leads to and what would be sent.
fn check_head(bytes: &[u8]) {
    let Ok(Some(end)) = http::head_end(bytes) else {
        return;
    };
    match http::parse(&bytes[..end]) {
        Ok(Request::Connect(target)) => check(&target),
        Ok(Request::Forward(forward)) => {
            check(&forward.target);
            let head = String::from_utf8_lossy(&forward.head).to_lowercase();
            let lines: Vec<&str> = head.split("\r\n").collect();
            let count = |name: &str| lines.iter().filter(|line| line.starts_with(name)).count();
            let host = match forward.target.port {
                80 => format!("host: {}", forward.target.host),
                _ => format!("host: {}", forward.target),
            };
            assert_eq!(lines[1], host);
            assert_eq!(count("host:"), 1);
            assert_eq!(count("proxy-"), 0);
            assert!(count("content-length:") + count("transfer-encoding:") <= 1);
            assert_eq!(
                lines.iter().position(|line| line.is_empty()),
                Some(lines.len() - 2)
            );
            assert!(!head.replace("\r\n", "").contains(['\r', '\n', '\0']));
        }
        Err(_) => {}
    }
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        check_head(&bytes);
        let _ = http::parse(&bytes);
        let _ = http::chunk_size(&bytes);
        let _ = socks::greeting(&bytes);
        if let Ok(Some((target, length))) = socks::request(&bytes) {
            check(&target);
            prop_assert!(length <= bytes.len());
        }
    }

    #[test]
    fn no_text_panics_as_a_host_or_a_list(text in "\\PC{0,80}") {
        let _ = Host::parse(&text);
        let _ = Target::parse(&text, Some(80));
        if let Ok(list) = HostList::parse(&text) {
            let shown: Vec<String> = list.rules().iter().map(ToString::to_string).collect();
            prop_assert_eq!(HostList::from_entries(shown), Ok(list));
        }
    }

    #[test]
    fn what_a_connect_reaches_is_listed(authority in authority(), fields in authority()) {
        check_head(format!("CONNECT {authority} HTTP/1.1\r\n\r\n").as_bytes());
        check_head(format!("CONNECT {authority} HTTP/1.1\r\nHost: {fields}\r\n\r\n").as_bytes());
    }

    #[test]
    fn what_a_plain_request_reaches_is_listed_and_says_so(
        authority in authority(),
        path in authority(),
        fields in authority(),
    ) {
        check_head(
            format!("GET http://{authority}/{path} HTTP/1.1\r\nX: {fields}\r\n\r\n").as_bytes(),
        );
        check_head(
            format!("GET http://{authority} HTTP/1.1\r\nConnection: {fields}\r\n\r\n").as_bytes(),
        );
    }

    #[test]
    fn what_socks_reaches_is_listed(name in authority(), port in prop::sample::select(vec![80_u16, 443, 8080, 1])) {
        let length = u8::try_from(name.len()).unwrap();
        let bytes = [&[5, 1, 0, 3, length], name.as_bytes(), &port.to_be_bytes()[..]].concat();
        if let Ok(Some((target, _))) = socks::request(&bytes) {
            check(&target);
        }
    }

    #[test]
    fn an_ipv4_address_inside_an_ipv6_one_is_never_public(address in any::<u32>()) {
        let v4 = Ipv4Addr::from(address);
        let [high, low] = [(address >> 16) as u16, address as u16];
        for v6 in [
            v4.to_ipv6_mapped(),
            v4.to_ipv6_compatible(),
            Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
            Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1),
            Ipv6Addr::new(0x2001, 0, high, low, 0, 0, !high, !low),
        ] {
            prop_assert_ne!(AddressKind::of(IpAddr::V6(v6)), AddressKind::Public);
        }
    }
}
