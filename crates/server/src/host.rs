//! Which host a request was meant for.
//!
//! A web page can point a name of its own at 127.0.0.1 and then talk to Ward as if it were its own
//! server. The browser still says whose name it used: anything but ours is refused.

use std::net::{IpAddr, SocketAddr};

use axum::extract::Request;
use axum::http::header::HOST;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri};
use protocol::ErrorKind;
use protocol::http::SOCKET_HOST;

use crate::auth::Peer;
use crate::connection::Connection;
use crate::failure::HttpFailure;

/// The names that mean this Ward.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Names {
    bound: Option<IpAddr>,
}

impl Names {
    /// Of a Ward that listens on this address: the loopback names, and the address itself, or any
    /// address where it listens on all of the machine's.
    pub(crate) fn of(address: Option<SocketAddr>) -> Self {
        Self {
            bound: address.map(|address| address.ip()),
        }
    }

    fn mean_us(&self, name: &str, peer: Peer) -> bool {
        let name = name
            .strip_prefix('[')
            .and_then(|name| name.strip_suffix(']'))
            .unwrap_or(name);
        if name.eq_ignore_ascii_case("localhost") {
            return true;
        }
        // No browser comes over the socket.
        if peer == Peer::Local && name == SOCKET_HOST {
            return true;
        }
        // Another site cannot point an address at us, only a name.
        let anywhere = self.bound.is_some_and(|bound| bound.is_unspecified());
        name.parse::<IpAddr>().is_ok_and(|address| {
            address.is_loopback()
                || Some(address) == self.bound
                || (anywhere && !address.is_unspecified())
        })
    }

    /// Whether all that the request says about its host means us; at least one thing must.
    fn allow(&self, uri: &Uri, headers: &HeaderMap, peer: Peer) -> bool {
        let mut hosts = headers.get_all(HOST).iter();
        let host = match (hosts.next(), hosts.next()) {
            (Some(host), None) => host.to_str().ok().and_then(|text| text.parse().ok()),
            (None, None) => uri.authority().cloned(),
            (_, Some(_)) => None,
        };
        let means_us = |authority: &Authority| {
            !authority.as_str().contains('@') && self.mean_us(authority.host(), peer)
        };
        host.as_ref().is_some_and(means_us) && uri.authority().is_none_or(means_us)
    }
}

/// Refuses a request that names another host.
pub(crate) fn check(names: &Names, request: &Request) -> Result<(), HttpFailure> {
    let peer = Connection::of(request.extensions()).peer;
    if names.allow(request.uri(), request.headers(), peer) {
        return Ok(());
    }
    Err(HttpFailure::new(
        ErrorKind::WrongHost,
        "The request names another host. Use http://127.0.0.1 or http://localhost with Ward's port.",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(uri: &str, hosts: &[&str]) -> bool {
        allowed_from(Peer::of([127, 0, 0, 1].into()), uri, hosts)
    }

    fn allowed_from(peer: Peer, uri: &str, hosts: &[&str]) -> bool {
        let names = Names::of(Some(([192, 168, 1, 7], 3000).into()));
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(HOST, host.parse().unwrap());
        }
        names.allow(&uri.parse().unwrap(), &headers, peer)
    }

    #[test]
    fn the_socket_has_a_name_that_is_ours_only_there() {
        assert!(allowed_from(Peer::Local, "/", &["ward.sock"]));
        assert!(allowed_from(Peer::Local, "/", &["localhost"]));
        assert!(!allowed("/", &["ward.sock"]));
        assert!(!allowed_from(Peer::Local, "/", &["evil.example"]));
    }

    #[test]
    fn loopback_names_and_the_bound_address_are_ours() {
        for host in [
            "localhost",
            "LOCALHOST:3000",
            "127.0.0.1:3000",
            "127.0.0.9",
            "[::1]:3000",
            "192.168.1.7:3000",
        ] {
            assert!(allowed("/", &[host]), "{host}");
        }
        assert!(allowed("http://localhost:3000/", &["localhost:3000"]));
        assert!(allowed("http://localhost:3000/", &[]));
    }

    #[test]
    fn any_other_name_is_refused_however_it_is_written() {
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "localhost.",
            "localhost@evil.example",
            "evil.example@localhost",
            "192.168.1.8",
            "0.0.0.0:3000",
            "",
        ] {
            assert!(!allowed("/", &[host]), "{host}");
        }
        assert!(!allowed("/", &[]));
        assert!(!allowed("/", &["localhost", "evil.example"]));
        assert!(!allowed("http://evil.example/", &["localhost"]));
        assert!(!allowed("http://localhost/", &["evil.example"]));
    }
}
