//! Which site's page sent a request.
//!
//! A page of any site can make a browser send requests here, and one from another port of this
//! machine even with Ward's cookie. The browser says from where they come: what changes something,
//! is for the broker, opens a websocket or comes with the cookie, has to come from Ward's own page or
//! from no page at all.

use axum::extract::Request;
use axum::http::header::{AUTHORIZATION, HOST, HeaderName, ORIGIN, UPGRADE};
use axum::http::{HeaderMap, Method};
use protocol::ErrorKind;

use crate::auth::cookies;
use crate::failure::HttpFailure;

const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Refuses a request that another site's page sent. Comes after the check of the host: `Host` is
/// known to be ours.
pub(crate) fn check(request: &Request) -> Result<(), HttpFailure> {
    let broker = broker::is_for(request.uri().path());
    if fine(request.method(), request.headers(), broker) {
        return Ok(());
    }
    Err(HttpFailure::new(
        ErrorKind::WrongOrigin,
        "The request came from another site's page. Use Ward's own page, or a token from a program.",
    ))
}

fn fine(method: &Method, headers: &HeaderMap, broker: bool) -> bool {
    let reads = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
    // What goes through a websocket changes things too.
    let changes = !reads || broker || headers.contains_key(UPGRADE);
    // Beside a token, which no page of another site can send, the cookie counts for nothing.
    let cookie = !headers.contains_key(AUTHORIZATION) && cookies(headers).next().is_some();
    if !(changes || cookie) {
        return true;
    }
    let mut origins = headers.get_all(ORIGIN).iter();
    let origin = match (origins.next(), origins.next()) {
        (None, _) => None,
        (Some(origin), None) => Some(
            origin
                .as_bytes()
                .strip_prefix(b"http://")
                .zip(headers.get(HOST))
                .is_some_and(|(origin, host)| origin.eq_ignore_ascii_case(host.as_bytes())),
        ),
        (Some(_), Some(_)) => Some(false),
    };
    let mut sites = headers.get_all(SITE).iter().peekable();
    let site = sites
        .peek()
        .is_some()
        .then(|| sites.all(|site| site == "same-origin" || site == "none"));
    match (origin, site) {
        (None, None) => !(changes && cookie),
        (origin, site) => origin.unwrap_or(true) && site.unwrap_or(true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fine(method: &str, headers: &[(&'static str, &str)]) -> bool {
        at(method, headers, false)
    }

    fn at(method: &str, headers: &[(&'static str, &str)], broker: bool) -> bool {
        let mut map = HeaderMap::new();
        map.insert(HOST, "localhost:3000".parse().unwrap());
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        super::fine(&method.parse().unwrap(), &map, broker)
    }

    const SIGNED_IN: (&str, &str) = ("cookie", "a=b; ward=x");

    #[test]
    fn wards_own_page_and_programs_are_let_through() {
        for headers in [
            &[][..],
            &[("origin", "http://localhost:3000")],
            &[("origin", "http://LOCALHOST:3000"), SIGNED_IN],
            &[("sec-fetch-site", "same-origin"), SIGNED_IN],
            &[("sec-fetch-site", "none"), SIGNED_IN],
        ] {
            assert!(fine("POST", headers), "{headers:?}");
            assert!(fine("GET", headers), "{headers:?}");
            let websocket = [headers, &[("upgrade", "websocket")]].concat();
            assert!(fine("GET", &websocket), "{headers:?}");
            assert!(at("GET", headers, true), "{headers:?}");
        }
        // An old browser says nothing when it only reads, and its cookie stays at home otherwise.
        assert!(fine("GET", &[SIGNED_IN]));
    }

    #[test]
    fn other_sites_can_change_nothing_and_use_no_cookie() {
        for headers in [
            &[("origin", "http://evil.example")][..],
            &[("origin", "http://localhost:8080")],
            &[("origin", "https://localhost:3000")],
            &[("origin", "http://localhost")],
            &[("origin", "null")],
            &[("origin", "")],
            &[("sec-fetch-site", "cross-site")],
            &[("sec-fetch-site", "same-site")],
            &[
                ("origin", "http://localhost:3000"),
                ("sec-fetch-site", "cross-site"),
            ],
            &[
                ("origin", "http://localhost:3000"),
                ("origin", "http://evil.example"),
            ],
        ] {
            assert!(!fine("POST", headers), "{headers:?}");
            assert!(!fine("DELETE", headers), "{headers:?}");
            let signed_in = [headers, &[SIGNED_IN]].concat();
            assert!(!fine("GET", &signed_in), "{headers:?}");
            assert!(fine("GET", headers), "{headers:?}");
            let websocket = [headers, &[("upgrade", "websocket")]].concat();
            assert!(!fine("GET", &websocket), "{headers:?}");
            assert!(!at("GET", headers, true), "{headers:?}");
        }
        assert!(!fine("POST", &[SIGNED_IN]));
        assert!(fine("POST", &[SIGNED_IN, ("authorization", "Bearer x")]));
    }
}
