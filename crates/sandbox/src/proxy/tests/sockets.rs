//! The proxy as a client meets it: real sockets, byte for byte.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use super::super::{Bounds, HostList, Proxy};
use super::harness::{PATIENCE, TestProxy, Web};

/// Reads `expected` from `stream`.
fn expect(stream: &mut TcpStream, expected: &[u8]) {
    let mut read = vec![0; expected.len()];
    stream.read_exact(&mut read).unwrap();
    assert_eq!(
        read.escape_ascii().to_string(),
        expected.escape_ascii().to_string()
    );
}

/// The status line of an answer.
fn status(answer: &str) -> &str {
    answer.lines().next().unwrap_or_default()
}

const OPEN: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

#[test]
fn a_named_host_is_reached_by_connect_plain_http_and_socks() {
    let web = Web::start();
    let port = web.port;
    let proxy = TestProxy::start(
        &format!("localhost:{port}"),
        &[("localhost", &["127.0.0.1"])],
    );

    let mut tunnel = proxy.client();
    write!(tunnel, "CONNECT LocalHost.:{port} HTTP/1.1\r\n\r\n").unwrap();
    expect(&mut tunnel, OPEN);
    for path in ["/one", "/two"] {
        write!(tunnel, "GET {path} HTTP/1.1\r\n\r\n").unwrap();
        expect(
            &mut tunnel,
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        );
        assert_eq!(web.heard(), format!("GET {path} HTTP/1.1\r\n\r\n"));
    }

    let answer = proxy.say(format!(
        "GET http://localhost:{port}/plain HTTP/1.1\r\nHost: evil.test\r\nProxy-Authorization: x\r\n\r\n"
    ));
    assert_eq!(status(&answer), "HTTP/1.1 200 OK");
    assert_eq!(
        web.heard(),
        format!("GET /plain HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n")
    );

    let mut tunnel = proxy.client();
    tunnel.write_all(&[5, 1, 0]).unwrap();
    expect(&mut tunnel, &[5, 0]);
    let request = [&[5, 1, 0, 3, 9], &b"localhost"[..], &port.to_be_bytes()].concat();
    tunnel.write_all(&request).unwrap();
    expect(&mut tunnel, &[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    tunnel.write_all(b"GET /socks HTTP/1.1\r\n\r\n").unwrap();
    expect(&mut tunnel, b"HTTP/1.1 200 OK");

    assert_eq!(proxy.stopped(), [""; 0]);
}

#[test]
fn names_are_looked_up_as_this_machine_does() {
    let web = Web::start();
    let port = web.port;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let list = HostList::parse(&format!("localhost:{port}")).unwrap();
    let _handle = Proxy::start(listener, Arc::new(list)).unwrap();
    let mut client = TcpStream::connect(address).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(client, "CONNECT localhost:{port} HTTP/1.1\r\n\r\n").unwrap();
    expect(&mut client, OPEN);
}

#[test]
fn what_a_client_says_before_the_tunnel_is_open_is_not_lost() {
    let web = Web::start();
    let port = web.port;
    let proxy = TestProxy::start(&format!("127.0.0.1:{port}"), &[]);
    let answer = proxy.say(format!(
        "CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\nGET /early HTTP/1.1\r\nConnection: close\r\n\r\n"
    ));
    assert!(answer.ends_with("hello"), "{answer}");
    assert_eq!(
        web.heard(),
        "GET /early HTTP/1.1\r\nConnection: close\r\n\r\n"
    );
}

#[test]
fn a_refused_host_is_told_how_to_be_allowed_and_is_never_looked_up() {
    let web = Web::start();
    let port = web.port;
    let proxy = TestProxy::start("example.com", &[("evil.test", &["127.0.0.1"])]);

    let answer = proxy.say(format!("CONNECT Evil.test:{port} HTTP/1.1\r\n\r\n"));
    let says = format!(
        "Ward stopped the connection to evil.test:{port}: it is not among the hosts that may be reached from here. To allow it: --net evil.test:{port}\n"
    );
    let length = says.len();
    assert_eq!(
        answer,
        format!(
            "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\nServer: ward\r\nConnection: close\r\n\r\n{says}"
        )
    );
    let answer = proxy.say(format!("GET http://evil.test:{port}/ HTTP/1.0\r\n\r\n"));
    assert_eq!(status(&answer), "HTTP/1.1 403 Forbidden");
    let answer = proxy.say(format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n"));
    assert_eq!(status(&answer), "HTTP/1.1 403 Forbidden");
    let answer = proxy.say(b"CONNECT 0x7f.1:80 HTTP/1.1\r\n\r\n");
    assert_eq!(status(&answer), "HTTP/1.1 400 Bad Request");

    assert_eq!(
        proxy.stopped(),
        [
            format!("evil.test:{port}"),
            format!("127.0.0.1:{port}"),
            "0x7f.1:80".to_owned()
        ]
    );
    assert_eq!(proxy.stopped(), [""; 0]);
    assert_eq!(proxy.names.asked(), [""; 0]);
    assert!(web.heard_nothing());
}

#[test]
fn socks_is_refused_in_its_own_words() {
    let proxy = TestProxy::start("example.com", &[]);
    let hello = [5, 1, 0];
    let table: [(Vec<u8>, &[u8]); 5] = [
        (
            [&hello, &[5, 1, 0, 3, 9][..], b"evil.test", &[1, 187]].concat(),
            &[5, 0, 5, 2, 0, 1, 0, 0, 0, 0, 0, 0],
        ),
        (
            [&hello, &[5, 1, 0, 1, 127, 0, 0, 1, 0, 80][..]].concat(),
            &[5, 0, 5, 2, 0, 1, 0, 0, 0, 0, 0, 0],
        ),
        (
            [&hello, &[5, 1, 0, 3, 4][..], b"a\0.b", &[1, 187]].concat(),
            &[5, 0, 5, 2, 0, 1, 0, 0, 0, 0, 0, 0],
        ),
        (
            [&hello, &[5, 3, 0, 1, 127, 0, 0, 1, 0, 80][..]].concat(),
            &[5, 0, 5, 7, 0, 1, 0, 0, 0, 0, 0, 0],
        ),
        (vec![5, 1, 2], &[5, 0xff]),
    ];
    for (says, expected) in table {
        let mut client = proxy.client();
        client.write_all(&says).unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).unwrap();
        assert_eq!(answer, expected);
    }
    assert_eq!(
        proxy.stopped(),
        ["evil.test:443", "127.0.0.1:80", "a\\u{0}.b:443"]
    );
}

#[test]
fn a_named_host_that_leads_to_this_machine_or_its_neighbours_is_refused() {
    let web = Web::start();
    let port = web.port;
    let addresses = [
        "127.0.0.1",
        "::1",
        "10.0.0.1",
        "192.168.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "fd00::1",
        "fe80::1",
        "0.0.0.0",
        "::",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::1",
        "224.0.0.1",
    ];
    for address in addresses {
        let proxy = TestProxy::start(
            &format!("public.test:{port}"),
            &[("public.test", &[address])],
        );
        let answer = proxy.say(format!("CONNECT public.test:{port} HTTP/1.1\r\n\r\n"));
        assert_eq!(status(&answer), "HTTP/1.1 403 Forbidden", "{address}");
        assert!(answer.contains("the name leads to "), "{answer}");
        assert_eq!(proxy.stopped(), [format!("public.test:{port}")]);
        assert_eq!(proxy.names.asked(), ["public.test"]);
    }
    assert!(web.heard_nothing());
}

#[test]
fn a_name_may_lead_to_a_private_address_that_was_named_as_well() {
    let web = Web::start();
    let port = web.port;
    let names: &[(&str, &[&str])] = &[("dev.test", &["10.255.255.1", "127.0.0.1"])];
    let request = format!("GET http://dev.test:{port}/ HTTP/1.1\r\n\r\n");

    let proxy = TestProxy::start(&format!("dev.test:{port}, 127.0.0.1:{port}"), names);
    assert_eq!(status(&proxy.say(&request)), "HTTP/1.1 200 OK");
    assert!(web.heard().contains(&format!("Host: dev.test:{port}\r\n")));
    assert_eq!(proxy.names.asked(), ["dev.test"], "looked up once");

    let other = port.wrapping_add(1).max(1);
    let proxy = TestProxy::start(&format!("dev.test:{port}, 127.0.0.1:{other}"), names);
    let answer = proxy.say(&request);
    assert!(
        answer.ends_with(&format!(
            "the name leads to 127.0.0.1:{port}, a loopback address. To allow it, name the address as well: --net dev.test:{port},127.0.0.1:{port}\n"
        )),
        "{answer}"
    );
}

#[test]
fn a_second_request_on_the_same_connection_reaches_nobody() {
    let web = Web::start();
    let port = web.port;
    let proxy = TestProxy::start(&format!("127.0.0.1:{port}"), &[]);
    for second in ["evil.test", "127.0.0.1"] {
        let answer = proxy.say(format!(
            "POST http://127.0.0.1:{port}/first HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET http://{second}:{port}/second HTTP/1.1\r\n\r\n"
        ));
        assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{answer}");
        assert_eq!(
            web.heard(),
            format!(
                "POST /first HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc"
            )
        );
        assert!(web.heard_nothing());
    }
}

#[test]
fn chunks_are_sent_on_one_by_one_and_nothing_after_them() {
    let web = Web::start();
    let port = web.port;
    let proxy = TestProxy::start(&format!("127.0.0.1:{port}"), &[]);
    let head =
        format!("POST http://127.0.0.1:{port}/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
    let sent = format!(
        "POST / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    );

    let answer = proxy.say(format!(
        "{head}3;x=y\r\nabc\r\n0A\r\n0123456789\r\n0\r\nX-Trailer: 1\r\n\r\nGET /second HTTP/1.1\r\n\r\n"
    ));
    assert!(answer.ends_with("hello"), "{answer}");
    assert_eq!(
        web.heard(),
        format!("{sent}3\r\nabc\r\na\r\n0123456789\r\n0\r\n\r\n")
    );

    for broken in [
        "3\nabc\r\n0\r\n\r\n",
        "3\r\nabcd\r\n0\r\n\r\n",
        "zz\r\n",
        "3 \r\rabc\r\n",
    ] {
        assert_eq!(proxy.say(format!("{head}{broken}")), "", "{broken:?}");
    }
    assert!(web.heard_nothing());
}

#[test]
fn a_target_that_fails_is_told_apart_from_a_refusal() {
    let web = Web::start();
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let port = web.port;
    let proxy = TestProxy::start(
        &format!("127.0.0.1:{closed}, 127.0.0.1:{port}, unknown.test"),
        &[],
    );
    for request in [
        format!("CONNECT 127.0.0.1:{closed} HTTP/1.1\r\n\r\n"),
        format!("GET http://127.0.0.1:{port}/silent HTTP/1.1\r\n\r\n"),
        "CONNECT unknown.test:443 HTTP/1.1\r\n\r\n".to_owned(),
    ] {
        assert_eq!(status(&proxy.say(request)), "HTTP/1.1 502 Bad Gateway");
    }
    assert_eq!(proxy.stopped(), [""; 0]);
}

#[test]
fn a_head_that_does_not_end_is_cut_off_in_time_and_in_size() {
    let list = HostList::parse("example.com").unwrap();
    let bounds = Bounds {
        head_deadline: Duration::from_millis(100),
        ..Bounds::default()
    };
    let proxy = TestProxy::with(Arc::new(list), &[], bounds);
    let answer = proxy.say(b"CONNECT example.com:443 HTTP/1.1\r\nX: ");
    assert_eq!(status(&answer), "HTTP/1.1 408 Request Timeout");
    assert_eq!(proxy.say(b""), "");
    assert_eq!(proxy.say([5, 1]), "");

    let proxy = TestProxy::start("example.com", &[]);
    let long = "x".repeat(64 * 1024);
    let answer = proxy.say(format!("CONNECT example.com:443 HTTP/1.1\r\nX: {long}"));
    assert_eq!(
        status(&answer),
        "HTTP/1.1 431 Request Header Fields Too Large"
    );
}

#[test]
fn a_silent_tunnel_ends() {
    let web = Web::start();
    let port = web.port;
    let list = HostList::parse(&format!("127.0.0.1:{port}")).unwrap();
    let bounds = Bounds {
        idle: Duration::from_millis(100),
        ..Bounds::default()
    };
    let proxy = TestProxy::with(Arc::new(list), &[], bounds);
    let answer = proxy.say(format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n"));
    assert_eq!(answer.as_bytes(), OPEN);
}

#[test]
fn connections_beyond_the_bound_wait_for_their_turn() {
    let web = Web::start();
    let port = web.port;
    let list = HostList::parse(&format!("127.0.0.1:{port}")).unwrap();
    let bounds = Bounds {
        connections: 1,
        ..Bounds::default()
    };
    let proxy = TestProxy::with(Arc::new(list), &[], bounds);
    let mut first = proxy.client();
    write!(first, "CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n").unwrap();
    expect(&mut first, OPEN);

    let mut second = proxy.client();
    second
        .write_all(b"CONNECT evil.test:443 HTTP/1.1\r\n\r\n")
        .unwrap();
    second
        .set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    assert!(second.read(&mut [0]).is_err(), "served beyond the bound");
    assert_eq!(proxy.stopped(), [""; 0]);

    drop(first);
    second.set_read_timeout(Some(PATIENCE)).unwrap();
    expect(&mut second, b"HTTP/1.1 403 Forbidden");
}

#[test]
fn dropping_the_handle_ends_every_connection() {
    let web = Web::start();
    let port = web.port;
    let proxy = TestProxy::start(&format!("127.0.0.1:{port}"), &[]);
    let mut tunnel = proxy.client();
    write!(tunnel, "CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n").unwrap();
    expect(&mut tunnel, OPEN);
    let address = proxy.address;

    drop(proxy);
    assert!(matches!(tunnel.read(&mut [0]), Ok(0) | Err(_)));
    assert!(TcpStream::connect(address).is_err());
}
