//! The proxy with the client that most others are built on.

use std::process::Command;

use super::super::env;
use super::harness::{TestProxy, Web};

/// Runs curl with the proxy's variables, also for loopback. `None` where there is no curl.
fn curl(proxy: &TestProxy, args: &[&str]) -> Option<(Option<i32>, String)> {
    let run = Command::new("curl")
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .envs(env(proxy.address.port()))
        .args(["--disable", "--silent", "--show-error", "--max-time", "20"])
        .args(["--noproxy", ""])
        .args(args)
        .output();
    match run {
        Ok(output) => {
            let said = [output.stdout, output.stderr].concat();
            Some((output.status.code(), String::from_utf8(said).unwrap()))
        }
        Err(error) => {
            eprintln!("skipped: curl could not be run ({error}); install it to run this test");
            None
        }
    }
}

#[test]
fn curl_reaches_what_is_named_each_way() {
    let web = Web::start();
    let port = web.port;
    let proxy = TestProxy::start(
        &format!("localhost:{port}"),
        &[("localhost", &["127.0.0.1"])],
    );
    let url = format!("http://localhost:{port}/");
    let http = format!("http://127.0.0.1:{}", proxy.address.port());
    let socks = format!("socks5h://127.0.0.1:{}", proxy.address.port());
    for args in [
        vec![url.as_str()],
        vec!["--proxytunnel", "-x", &http, &url],
        vec!["-x", &socks, &url],
        vec!["--data", "some body", &url],
        vec![
            "-H",
            "Transfer-Encoding: chunked",
            "--data",
            "some body",
            &url,
        ],
        vec!["-H", "Expect: 100-continue", "--data", "some body", &url],
    ] {
        let Some(ran) = curl(&proxy, &args) else {
            return;
        };
        assert_eq!(ran, (Some(0), "hello".to_owned()), "{args:?}");
        let heard = web.heard();
        assert!(
            heard.contains(&format!("Host: localhost:{port}\r\n")),
            "{heard}"
        );
    }
    assert_eq!(proxy.stopped(), [""; 0]);
}

#[test]
fn curl_is_told_why_it_was_refused() {
    let proxy = TestProxy::start("example.com", &[]);
    let Some((code, said)) = curl(&proxy, &["http://evil.test/"]) else {
        return;
    };
    assert_eq!(code, Some(0));
    assert!(
        said.ends_with("To allow it: --net evil.test:80\n"),
        "{said}"
    );

    let (code, said) = curl(&proxy, &["https://evil.test/"]).unwrap();
    assert_eq!(code, Some(56), "{said}");
    assert!(said.contains("403"), "{said}");

    // A body that nobody reads must not cost the client its answer.
    let body = "x".repeat(200_000);
    let (code, said) = curl(&proxy, &["--data", &body[..100_000], "http://evil.test/"]).unwrap();
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.ends_with("To allow it: --net evil.test:80\n"),
        "{said}"
    );

    let socks = format!("socks5h://127.0.0.1:{}", proxy.address.port());
    let (code, said) = curl(&proxy, &["-x", &socks, "https://socks.test/"]).unwrap();
    assert_eq!(code, Some(97), "{said}");
    assert_eq!(
        proxy.stopped(),
        ["evil.test:80", "evil.test:443", "socks.test:443"]
    );
}

#[test]
fn a_redirect_leads_no_further_than_the_list() {
    let web = Web::start();
    let port = web.port;
    let proxy = TestProxy::start(
        &format!("localhost:{port}"),
        &[("localhost", &["127.0.0.1"]), ("evil.test", &["127.0.0.1"])],
    );
    for elsewhere in ["evil.test", "127.0.0.1", "2130706433", "[::ffff:127.0.0.1]"] {
        let to = format!("http://{elsewhere}:{port}/");
        let url = format!("http://localhost:{port}/redirect?{to}");
        let Some((_, said)) = curl(&proxy, &["--globoff", "--location", &url]) else {
            return;
        };
        assert!(!said.contains("hello"), "{said}");
        assert!(web.heard().starts_with("GET /redirect?"));
        assert!(web.heard_nothing());
    }
    // curl itself writes 2130706433 as 127.0.0.1 before it asks.
    let stopped = proxy.stopped();
    assert_eq!(
        stopped[..2],
        [format!("evil.test:{port}"), format!("127.0.0.1:{port}")]
    );
    assert_eq!(proxy.names.asked(), ["localhost"; 4]);
}
