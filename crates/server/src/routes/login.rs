//! `/login` and `/logout`: a browser signs in by a link that works once, and out.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use axum::extract::State;
use axum::http::header::{LOCATION, SET_COOKIE};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use protocol::ErrorKind;
use protocol::http::{COOKIE, LoginLink};
use schemars::JsonSchema;
use serde::Deserialize;
use store::Store;

use super::blocking;
use crate::answer::ok;
use crate::app::App;
use crate::auth::{LOGIN_LIFETIME, Pass, Person, SESSION, now, wrong_from};
use crate::connection::Connection;
use crate::extract::{NoBody, Params};
use crate::failure::HttpFailure;

/// Query of `GET /login`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Query {
    /// The link's code.
    code: String,
}

/// `GET /login?code=…`: uses the code up, and leads to the page without it.
pub(crate) async fn enter<S: Store>(
    State(app): State<Arc<App<S>>>,
    connection: Connection,
    method: Method,
    Params(Query { code }): Params<Query>,
) -> Result<Response, HttpFailure> {
    if method != Method::GET {
        // To look whether a link works must not use it up.
        return Err(HttpFailure::new(
            ErrorKind::MethodNotAllowed,
            "`/login` takes GET alone.",
        ));
    }
    let Some(token) = app.logins.take(&code, Instant::now()) else {
        return Err(wrong_from(
            &app,
            connection.peer,
            "This link was used already, or is too old. `ward tokens link` prints a new one.",
        ));
    };
    let tokens = Arc::clone(&app.tokens);
    let user = connection.user;
    let cookie = blocking(move || tokens.sign_in(&token, user.id())).await?;
    let cookie = format!(
        "{COOKIE}={cookie}; HttpOnly; SameSite=Strict; Path=/; Max-Age={}",
        SESSION.as_secs()
    );
    let mut response = StatusCode::SEE_OTHER.into_response();
    let headers = response.headers_mut();
    headers.insert(LOCATION, HeaderValue::from_static("/"));
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        headers.insert(SET_COOKIE, cookie);
    }
    Ok(response)
}

/// `POST /login`: a new link for this person.
pub(crate) async fn link<S: Store>(
    State(app): State<Arc<App<S>>>,
    Person(caller): Person,
    _: NoBody,
) -> Result<Response, HttpFailure> {
    let Some(address) = app.address else {
        return Err(HttpFailure::new(
            ErrorKind::NotFound,
            "This Ward has no page to sign in to. `ward serve` has.",
        ));
    };
    let token = match caller.token {
        Some(token) => token,
        None => {
            let tokens = Arc::clone(&app.tokens);
            blocking(move || tokens.first_person()).await?.id
        }
    };
    let code = app.logins.open(&token, Instant::now())?;
    let lasts = u64::try_from(LOGIN_LIFETIME.as_millis()).unwrap_or(u64::MAX);
    Ok(ok(&LoginLink {
        url: url(address, &code),
        expires_at: now().saturating_add(lasts),
    }))
}

/// `POST /logout`: signs this browser out.
pub(crate) async fn leave<S: Store>(
    State(app): State<Arc<App<S>>>,
    Person(caller): Person,
    _: NoBody,
) -> Result<Response, HttpFailure> {
    if let Pass::Session(session) = caller.pass {
        let tokens = Arc::clone(&app.tokens);
        blocking(move || tokens.sign_out(&session)).await?;
    }
    let mut response = StatusCode::NO_CONTENT.into_response();
    let gone = format!("{COOKIE}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0");
    if let Ok(gone) = HeaderValue::from_str(&gone) {
        response.headers_mut().insert(SET_COOKIE, gone);
    }
    Ok(response)
}

/// The link of a code, for a browser on this machine.
pub(crate) fn url(mut address: SocketAddr, code: &str) -> String {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    format!("http://{address}/login?code={code}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leads_to_this_machine() {
        for (address, expected) in [
            ("127.0.0.1:3000", "http://127.0.0.1:3000/login?code=c"),
            ("0.0.0.0:3000", "http://127.0.0.1:3000/login?code=c"),
            ("[::]:3000", "http://[::1]:3000/login?code=c"),
        ] {
            assert_eq!(url(address.parse().unwrap(), "c"), expected);
        }
    }
}
