//! What a client might write to get past the list, and what becomes of it.

use super::super::hosts::HostList;
use super::super::http::{self, HttpError, Request};
use super::super::socks::{self, SocksError};
use super::super::target::Target;

const LIST: &str =
    "example.com, api.example.com:8443, *.pkg.dev:443, 127.0.0.1:8080, localhost:8081";

/// What becomes of a target: where it leads, or that it is stopped.
fn verdict(target: &Target) -> String {
    if HostList::parse(LIST).unwrap().allows(target) {
        format!("reaches {target}")
    } else {
        format!("stops {target}")
    }
}

fn http(head: &[u8]) -> String {
    match http::head_end(head) {
        Ok(Some(end)) => match http::parse(&head[..end]) {
            Ok(Request::Connect(target)) => verdict(&target),
            Ok(Request::Forward(forward)) => verdict(&forward.target),
            Err(HttpError::Target { .. }) => "no host".to_owned(),
            Err(HttpError::NotForAProxy) => "no proxy request".to_owned(),
            Err(HttpError::Malformed(_) | HttpError::Syntax(_)) => "malformed".to_owned(),
        },
        Ok(None) => "unfinished".to_owned(),
        Err(_) => "malformed".to_owned(),
    }
}

/// A CONNECT for `authority` with nothing else in it.
fn connect(authority: &str) -> String {
    http(format!("CONNECT {authority} HTTP/1.1\r\n\r\n").as_bytes())
}

/// A GET for `uri` with the given header fields.
fn get(uri: &str, fields: &str) -> String {
    http(format!("GET {uri} HTTP/1.1\r\n{fields}\r\n").as_bytes())
}

#[test]
fn no_way_of_writing_a_connect_target_gets_past_the_list() {
    let table = [
        // What is meant to pass.
        ("example.com:443", "reaches example.com:443"),
        ("EXAMPLE.com:443", "reaches example.com:443"),
        ("example.com.:443", "reaches example.com:443"),
        ("a.b.pkg.dev:443", "reaches a.b.pkg.dev:443"),
        ("127.0.0.1:8080", "reaches 127.0.0.1:8080"),
        ("localhost:8081", "reaches localhost:8081"),
        // Other names and ports.
        ("evil.com:443", "stops evil.com:443"),
        ("EVIL.com.:443", "stops evil.com:443"),
        ("example.com:22", "stops example.com:22"),
        ("api.example.com:443", "stops api.example.com:443"),
        ("www.example.com:443", "stops www.example.com:443"),
        ("notexample.com:443", "stops notexample.com:443"),
        ("example.com.evil.com:443", "stops example.com.evil.com:443"),
        ("pkg.dev:443", "stops pkg.dev:443"),
        ("evilpkg.dev:443", "stops evilpkg.dev:443"),
        ("localhost:8080", "stops localhost:8080"),
        ("127.0.0.1:8081", "stops 127.0.0.1:8081"),
        ("127.0.0.2:8080", "stops 127.0.0.2:8080"),
        ("xn--exmple-cua.com:443", "stops xn--exmple-cua.com:443"),
        ("[::1]:8080", "stops [::1]:8080"),
        ("[64:ff9b::7f00:1]:8080", "stops [64:ff9b::7f00:1]:8080"),
        ("169.254.169.254:80", "stops 169.254.169.254:80"),
        // A listed name with something after, before or inside it.
        ("example.com..:443", "no host"),
        (".example.com:443", "no host"),
        ("example..com:443", "no host"),
        (".:443", "no host"),
        ("example.com%00.evil.com:443", "no host"),
        ("example%2ecom:443", "no host"),
        ("evil.com%23example.com:443", "no host"),
        ("evil.com/example.com:443", "no host"),
        ("evil.com?example.com:443", "no host"),
        ("evil.com#example.com:443", "no host"),
        ("evil.com\\example.com:443", "no host"),
        ("example.com@evil.com:443", "no host"),
        ("user:pw@example.com:443", "no host"),
        ("evil.com:443@example.com:443", "no host"),
        ("evil.com,example.com:443", "no host"),
        ("evil.com;example.com:443", "no host"),
        ("*.pkg.dev:443", "no host"),
        ("http://example.com:443", "no host"),
        ("/example.com:443", "no host"),
        ("-.pkg.dev:443", "no host"),
        // Ports.
        ("example.com", "no host"),
        ("example.com:", "no host"),
        ("example.com:0", "no host"),
        ("example.com:00443", "no host"),
        ("example.com:+443", "no host"),
        ("example.com:-443", "no host"),
        ("example.com:65979", "no host"),
        ("example.com:https", "no host"),
        ("example.com:443:443", "no host"),
        ("example.com:443/", "no host"),
        (":443", "no host"),
        // Addresses in disguise.
        ("2130706433:8080", "no host"),
        ("0x7f000001:8080", "no host"),
        ("0x7f.1:8080", "no host"),
        ("017700000001:8080", "no host"),
        ("0177.0.0.1:8080", "no host"),
        ("127.1:8080", "no host"),
        ("127.0.0.01:8080", "no host"),
        ("127.0.0.1.:8080", "no host"),
        ("127.0.0.0x1:8080", "no host"),
        ("127.0.0.256:8080", "no host"),
        ("0:8080", "no host"),
        ("0.0.0.0:8080", "no host"),
        ("[::]:8080", "no host"),
        ("[::ffff:127.0.0.1]:8080", "no host"),
        ("[::ffff:7f00:1]:8080", "no host"),
        ("[::127.0.0.1]:8080", "no host"),
        ("[::ffff:0:127.0.0.1]:8080", "no host"),
        ("[127.0.0.1]:8080", "no host"),
        ("[fe80::1%25eth0]:8080", "no host"),
        ("[example.com]:443", "no host"),
        ("[::1]example.com:443", "no host"),
        ("[::1:8080", "no host"),
        ("::1:8080", "no host"),
        ("224.0.0.1:80", "no host"),
        // Not one word of plain ASCII.
        ("example.com :443", "malformed"),
        (" example.com:443", "malformed"),
        ("example.com:443 evil.com:443", "malformed"),
        ("example.com\t:443", "malformed"),
        ("example.com\0.evil.com:443", "malformed"),
        ("example.com\r.evil.com:443", "malformed"),
        ("ex\u{e4}mple.com:443", "malformed"),
        ("\u{ff45}xample.com:443", "malformed"),
        ("example\u{3002}com:443", "malformed"),
    ];
    for (authority, expected) in table {
        assert_eq!(connect(authority), expected, "CONNECT {authority:?}");
    }
}

#[test]
fn a_name_too_long_for_the_domain_system_is_no_host() {
    let label = "a".repeat(64);
    assert_eq!(connect(&format!("{label}.pkg.dev:443")), "no host");
    let deep = "a.".repeat(127);
    assert_eq!(connect(&format!("{deep}pkg.dev:443")), "no host");
}

#[test]
fn no_way_of_writing_a_plain_request_gets_past_the_list() {
    let table = [
        ("http://example.com/", "", "reaches example.com:80"),
        ("HTTP://Example.COM", "", "reaches example.com:80"),
        ("http://example.com?q", "", "reaches example.com:80"),
        ("http://example.com:443/", "", "reaches example.com:443"),
        // The Host field decides nothing here: it is replaced.
        (
            "http://example.com/",
            "Host: evil.com\r\n",
            "reaches example.com:80",
        ),
        (
            "http://evil.com/",
            "Host: example.com\r\n",
            "stops evil.com:80",
        ),
        ("http://example.com:8080/", "", "stops example.com:8080"),
        (
            "http://evil.com?http://example.com/",
            "",
            "stops evil.com:80",
        ),
        (
            "http://evil.com/http://example.com/",
            "",
            "stops evil.com:80",
        ),
        ("http://example.com@evil.com/", "", "no host"),
        ("http://user:pw@example.com/", "", "no host"),
        ("http://evil.com\\@example.com/", "", "no host"),
        ("http://evil.com\\.example.com/", "", "no host"),
        ("http://example.com:/", "", "no host"),
        ("http:///example.com/", "", "no host"),
        ("http://", "", "no host"),
        ("http://0x7f.1:8080/", "", "no host"),
        ("http://[::ffff:127.0.0.1]:8080/", "", "no host"),
        ("http://evil.com#@example.com/", "", "malformed"),
        ("http://example.com/#x", "", "malformed"),
        ("http:/example.com/", "", "no proxy request"),
        ("http:example.com", "", "no proxy request"),
        ("https://example.com/", "", "no proxy request"),
        ("ftp://example.com/", "", "no proxy request"),
        ("//example.com/", "", "no proxy request"),
        ("/", "Host: example.com\r\n", "no proxy request"),
        ("*", "Host: example.com\r\n", "no proxy request"),
        ("example.com:80", "", "no proxy request"),
        (
            "http://example.com/",
            "Host: example.com\r\nHost: evil.com\r\n",
            "malformed",
        ),
        (
            "http://example.com/",
            "X: a\r\n Host: evil.com\r\n",
            "malformed",
        ),
        ("http://example.com/", "Host : evil.com\r\n", "malformed"),
        (
            "http://example.com/",
            "X: a\nHost: evil.com\r\n",
            "malformed",
        ),
        (
            "http://example.com/",
            "X: a\rHost: evil.com\r\n",
            "malformed",
        ),
        ("http://example.com/", "X: a\0b\r\n", "malformed"),
        ("http://example.com/", ": x\r\n", "malformed"),
        ("http://example.com/", "no colon\r\n", "malformed"),
        (
            "http://example.com/",
            "Content-Length: 1\r\nContent-Length: 1\r\n",
            "malformed",
        ),
        (
            "http://example.com/",
            "Content-Length: 1, 1\r\n",
            "malformed",
        ),
        ("http://example.com/", "Content-Length: +1\r\n", "malformed"),
        (
            "http://example.com/",
            "Content-Length: 0x1\r\n",
            "malformed",
        ),
        ("http://example.com/", "Content-Length: \r\n", "malformed"),
        (
            "http://example.com/",
            "Content-Length: 18446744073709551617\r\n",
            "malformed",
        ),
        (
            "http://example.com/",
            "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
            "malformed",
        ),
        (
            "http://example.com/",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            "malformed",
        ),
        (
            "http://example.com/",
            "Transfer-Encoding: chunked, identity\r\n",
            "malformed",
        ),
        (
            "http://example.com/",
            "Transfer-Encoding: \u{b}chunked\r\n",
            "malformed",
        ),
    ];
    for (uri, fields, expected) in table {
        assert_eq!(get(uri, fields), expected, "GET {uri:?} with {fields:?}");
    }
}

#[test]
fn a_connect_with_more_in_it_than_a_target_is_malformed() {
    let table = [
        ("Host: example.com:443\r\n", "reaches example.com:443"),
        ("Host: Example.com\r\n", "reaches example.com:443"),
        ("Content-Length: 0\r\n", "reaches example.com:443"),
        (
            "Proxy-Connection: keep-alive\r\n",
            "reaches example.com:443",
        ),
        ("Host: evil.com:443\r\n", "malformed"),
        ("Host: example.com:80\r\n", "malformed"),
        ("Host: example.com:443\r\nHost: evil.com\r\n", "malformed"),
        ("Host:\r\n", "malformed"),
        ("Content-Length: 5\r\n", "malformed"),
        ("Content-Length: 0\r\nContent-Length: 0\r\n", "malformed"),
        ("Transfer-Encoding: chunked\r\n", "malformed"),
        (
            "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n",
            "malformed",
        ),
    ];
    for (fields, expected) in table {
        let head = format!("CONNECT example.com:443 HTTP/1.1\r\n{fields}\r\n");
        assert_eq!(http(head.as_bytes()), expected, "{fields:?}");
    }
}

#[test]
fn a_head_that_is_not_quite_one_is_malformed() {
    let many = "X: y\r\n".repeat(101);
    let many = format!("GET http://example.com/ HTTP/1.1\r\n{many}\r\n");
    let table: [(&[u8], &str); 12] = [
        (b"CONNECT example.com:443 HTTP/1.1\n\n", "malformed"),
        (b"CONNECT example.com:443 HTTP/1.1\n\r\n", "malformed"),
        (
            b"CONNECT example.com:443 HTTP/1.1\r\nA: b\n\r\n",
            "malformed",
        ),
        (b"\r\nCONNECT example.com:443 HTTP/1.1\r\n\r\n", "malformed"),
        (b"CONNECT example.com:443\r\n\r\n", "malformed"),
        (b"CONNECT example.com:443 HTTP/2.0\r\n\r\n", "malformed"),
        (b"CONNECT  example.com:443 HTTP/1.1\r\n\r\n", "malformed"),
        (b"connect example.com:443 HTTP/1.1\r\n\r\n", "malformed"),
        (b"G\0T http://example.com/ HTTP/1.1\r\n\r\n", "malformed"),
        (b"\x04\x01\x01\xbb\0\0\0\x01\0example.com\0", "malformed"),
        (b"CONNECT example.com:443 HTTP/1.1\r\n", "unfinished"),
        (many.as_bytes(), "malformed"),
    ];
    for (head, expected) in table {
        assert_eq!(http(head), expected, "{}", head.escape_ascii());
    }
}

#[test]
fn a_plain_request_is_written_anew_from_what_was_understood() {
    let head = b"POST HTTP://Example.com:8080?a=b HTTP/1.1\r\nhost: evil.com\r\nProxy-Authorization: secret\r\nConnection: keep-alive, X-Hop\r\nx-hop: 1\r\nKeep-Alive: 5\r\nTE: trailers\r\nTrailer: X\r\nUpgrade: websocket\r\nAccept: */*\r\ncontent-length: 007\r\n\r\n";
    let Ok(Request::Forward(forward)) = http::parse(head) else {
        panic!("not understood");
    };
    assert_eq!(
        String::from_utf8(forward.head).unwrap(),
        "POST /?a=b HTTP/1.1\r\nHost: example.com:8080\r\nAccept: */*\r\nContent-Length: 7\r\nConnection: close\r\n\r\n"
    );
    assert_eq!(forward.body, http::Body::Length(7));
}

#[test]
fn no_socks_request_gets_past_the_list() {
    let named = |name: &[u8], port: u16| {
        let length = u8::try_from(name.len()).unwrap();
        [&[5, 1, 0, 3, length], name, &port.to_be_bytes()[..]].concat()
    };
    let v4 =
        |address: [u8; 4], port: u16| [&[5, 1, 0, 1], &address[..], &port.to_be_bytes()].concat();
    let v6 = |text: &str, port: u16| {
        let address = text.parse::<std::net::Ipv6Addr>().unwrap().octets();
        [&[5, 1, 0, 4], &address[..], &port.to_be_bytes()].concat()
    };
    let table = [
        (named(b"example.com", 443), "reaches example.com:443"),
        (named(b"EXAMPLE.COM.", 443), "reaches example.com:443"),
        (v4([127, 0, 0, 1], 8080), "reaches 127.0.0.1:8080"),
        (named(b"127.0.0.1", 8080), "reaches 127.0.0.1:8080"),
        (named(b"evil.com", 443), "stops evil.com:443"),
        (named(b"example.com", 25), "stops example.com:25"),
        (v4([127, 0, 0, 1], 8081), "stops 127.0.0.1:8081"),
        (v4([93, 184, 216, 34], 443), "stops 93.184.216.34:443"),
        (v6("::1", 8080), "stops [::1]:8080"),
        (named(b"[::1]", 8080), "stops [::1]:8080"),
        (v6("::ffff:127.0.0.1", 8080), "no host"),
        (v6("::", 8080), "no host"),
        (v4([0, 0, 0, 0], 8080), "no host"),
        (named(b"::1", 8080), "no host"),
        (named(b"example.com\0.evil.com", 443), "no host"),
        (named(b"evil.com\0example.com", 443), "no host"),
        (named(b"example.com ", 443), "no host"),
        (named(b"example.com:443", 443), "no host"),
        (named(b"user@example.com", 443), "no host"),
        (named(b"ex\xc3\xa4mple.com", 443), "no host"),
        (named(b"2130706433", 8080), "no host"),
        (named(b"0x7f.1", 8080), "no host"),
        (named(b"", 443), "no host"),
        (named(b"example.com", 0), "no host"),
        (vec![5, 2, 0, 1, 127, 0, 0, 1, 31, 144], "malformed"),
        (vec![5, 3, 0, 1, 127, 0, 0, 1, 31, 144], "malformed"),
        (vec![5, 1, 1, 1, 127, 0, 0, 1, 31, 144], "malformed"),
        (vec![5, 1, 0, 9, 127, 0, 0, 1, 31, 144], "malformed"),
        (vec![4, 1, 0, 1, 127, 0, 0, 1, 31, 144], "malformed"),
        (vec![5, 1, 0, 1, 127, 0, 0, 1, 31], "unfinished"),
        (vec![5, 1, 0, 3, 200, b'a', 1, 187], "unfinished"),
    ];
    for (bytes, expected) in table {
        let found = match socks::request(&bytes) {
            Ok(Some((target, length))) => {
                assert_eq!(length, bytes.len());
                verdict(&target)
            }
            Ok(None) => "unfinished".to_owned(),
            Err(SocksError::Target { .. }) => "no host".to_owned(),
            Err(_) => "malformed".to_owned(),
        };
        assert_eq!(found, expected, "{}", bytes.escape_ascii());
    }
}

#[test]
fn a_socks_greeting_must_offer_to_go_without_authentication() {
    assert_eq!(socks::greeting(&[5]), Ok(None));
    assert_eq!(socks::greeting(&[5, 2, 0]), Ok(None));
    assert_eq!(socks::greeting(&[5, 2, 2, 0, 5]), Ok(Some(4)));
    assert_eq!(socks::greeting(&[5, 1, 2]), Err(SocksError::NoMethod));
    assert_eq!(socks::greeting(&[5, 0]), Err(SocksError::NoMethod));
}

#[test]
fn a_chunk_size_is_plain_hexadecimal() {
    assert_eq!(http::chunk_size(b"0"), Some(0));
    assert_eq!(http::chunk_size(b"fF;name=value"), Some(255));
    assert_eq!(http::chunk_size(b"10 "), Some(16));
    for line in [
        &b""[..],
        b"0x10",
        b"-1",
        b"+1",
        b" 1",
        b"1 2",
        b"g",
        b";",
        b"ffffffffffffffff",
        b"\xff",
    ] {
        assert_eq!(http::chunk_size(line), None, "{}", line.escape_ascii());
    }
}
