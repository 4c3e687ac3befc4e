//! At the door of every operation: who asks, and whether such a one may at all.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{FromRequestParts, Request, State};
use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, COOKIE};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use broker::{Authenticate, Known};
use gate::Actor;
use protocol::ErrorKind;
use protocol::http::COOKIE as NAME;
use store::Store;
use tokio_util::sync::CancellationToken;

use super::attempts::Peer;
use super::tokens::{Identity, Pass, Passed, Tokens};
use crate::app::App;
use crate::connection::Connection;
use crate::failure::HttpFailure;

/// How often it is looked whether what let somebody in still would.
const LOOK: Duration = Duration::from_millis(500);
/// How many cookies of one name are looked at: other servers of this host can set some too.
const MAX_COOKIES: usize = 4;

/// Who may use an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    /// Anybody; whoever says who they are may be told more.
    Everybody,
    /// Persons and agents.
    Actors,
    /// Persons alone.
    Persons,
}

/// Whether an operation is also for runtimes that Ward started, each for its own notebook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runtimes {
    /// It is not.
    Refused,
    /// It is.
    Admitted,
}

/// Whoever asks, as they were authenticated.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) actor: Actor,
    pub(crate) pass: Pass,
    /// The token; none where it was chosen by hand.
    pub(crate) token: Option<String>,
}

/// A person who asks.
#[derive(Debug, Clone)]
pub(crate) struct Person(pub(crate) Caller);

/// Lets a request through, with its [`Caller`], or refuses it.
pub(crate) async fn admit<S: Store>(
    State((app, who, runtimes)): State<(Arc<App<S>>, Who, Runtimes)>,
    mut request: Request,
    next: Next,
) -> Response {
    if app.tokens.is_a_users(cookies(request.headers())) {
        let user = Connection::of(request.extensions()).user;
        user.look_up().await;
    }
    match caller(&app, who, runtimes, &request) {
        Ok(Some(caller)) => {
            request.extensions_mut().insert(caller);
        }
        Ok(None) => {}
        Err(failure) => return failure.into_response(),
    }
    next.run(request).await
}

fn caller<S: Store>(
    app: &Arc<App<S>>,
    who: Who,
    runtimes: Runtimes,
    request: &Request,
) -> Result<Option<Caller>, HttpFailure> {
    let passed = match passed(app, who, request) {
        Ok(passed) => passed,
        Err(Refused::Missing) if who == Who::Everybody => return Ok(None),
        Err(Refused::Missing) => {
            return Err(HttpFailure::new(
                ErrorKind::Unauthorized,
                "Say who you are: send `Authorization: Bearer <token>`, or sign in with the link that `ward serve` printed.",
            ));
        }
        Err(Refused::Wrong(failure)) => return Err(failure),
    };
    note(app, &passed);
    if let Some(connection) = request.extensions().get::<Connection>() {
        connection.introduced.note();
    }
    let Passed {
        identity,
        pass,
        token,
        ..
    } = passed;
    let actor = match (identity, who) {
        (Identity::Actor(actor @ Actor::Person(_)), _)
        | (Identity::Actor(actor), Who::Everybody | Who::Actors) => actor,
        (Identity::Lent { person, notebook }, _)
            if runtimes == Runtimes::Admitted && is_its_own(request.uri().path(), &notebook) =>
        {
            Actor::Person(person)
        }
        (Identity::Runtime { .. } | Identity::Lent { .. }, Who::Everybody) => return Ok(None),
        (Identity::Actor(Actor::Agent(_)), Who::Persons) => {
            return Err(HttpFailure::new(
                ErrorKind::Forbidden,
                "An agent may ask for actions and look at its own, and nothing else. Use a person's token.",
            ));
        }
        (Identity::Runtime { .. } | Identity::Lent { .. }, Who::Actors | Who::Persons) => {
            return Err(HttpFailure::new(
                ErrorKind::Forbidden,
                "A runtime may not do this. Use a person's token.",
            ));
        }
    };
    Ok(Some(Caller { actor, pass, token }))
}

/// Whether what a runtime asks for is of its own notebook, or of none. The path is compared as it is
/// written: an id has nothing in it that could be written in another way.
fn is_its_own(path: &str, notebook: &str) -> bool {
    match path.strip_prefix("/notebooks/") {
        Some(rest) => rest.split('/').next() == Some(notebook),
        None => path != "/notebooks",
    }
}

enum Refused {
    Missing,
    Wrong(HttpFailure),
}

fn passed<S: Store>(app: &App<S>, who: Who, request: &Request) -> Result<Passed, Refused> {
    let headers = request.headers();
    if headers.contains_key(AUTHORIZATION) {
        let passed = bearer(headers).and_then(|secret| app.tokens.authenticate(secret));
        return passed.ok_or_else(|| {
            Refused::Wrong(wrong(
                app,
                request,
                "The token is wrong, or was revoked. `ward tokens list` shows those that there are.",
            ))
        });
    }
    let mut cookies = cookies(headers).peekable();
    if cookies.peek().is_none() {
        return Err(Refused::Missing);
    }
    let user = Connection::of(request.extensions()).user;
    match cookies.find_map(|cookie| app.tokens.recognize(cookie, || user.id())) {
        Some(passed) => Ok(passed),
        // The page has to be there for whoever is no longer signed in.
        None if who == Who::Everybody => Err(Refused::Missing),
        None => Err(Refused::Wrong(wrong(
            app,
            request,
            "You are no longer signed in. Sign in with a new link: `ward tokens link` prints one.",
        ))),
    }
}

/// What a wrong guess is answered.
pub(crate) fn wrong<S: Store>(app: &App<S>, request: &Request, sentence: &str) -> HttpFailure {
    wrong_from(app, Connection::of(request.extensions()).peer, sentence)
}

pub(crate) fn wrong_from<S: Store>(app: &App<S>, peer: Peer, sentence: &str) -> HttpFailure {
    match app.attempts.wrong(peer, Instant::now()) {
        Ok(()) => HttpFailure::new(ErrorKind::Unauthorized, sentence),
        Err(pause) => HttpFailure::new(
            ErrorKind::TooManyAttempts,
            "There were too many wrong tokens from your address. Wait a minute; a right one is let in at once.",
        )
        .after(pause),
    }
}

/// That a token was used is written beside, not before the answer.
fn note<S: Store>(app: &Arc<App<S>>, passed: &Passed) {
    if let (true, Some(id)) = (passed.note, passed.token.clone()) {
        let tokens = Arc::clone(&app.tokens);
        tokio::task::spawn_blocking(move || {
            if let Err(error) = tokens.used(&id) {
                tracing::warn!(%error, "that a token was used could not be written");
            }
        });
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let (Some(only), None) = (all.next(), all.next()) else {
        return None;
    };
    let (scheme, secret) = only.to_str().ok()?.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then(|| secret.trim_matches(' '))
}

/// The values of Ward's cookie.
pub(crate) fn cookies(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|header| header.to_str().ok())
        .flat_map(|header| header.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(name, _)| *name == NAME)
        .map(|(_, value)| value)
        .take(MAX_COOKIES)
}

impl Caller {
    /// Whether it is a runtime that Ward started: it says nothing but what a runtime does.
    pub(crate) fn is_runtime(&self) -> bool {
        matches!(self.pass, Pass::Lent(_))
    }

    /// Ready when what let them in no longer would.
    pub(crate) async fn gone(&self, tokens: &Tokens) {
        gone(&self.pass, tokens).await;
    }
}

async fn gone(pass: &Pass, tokens: &Tokens) {
    loop {
        tokio::time::sleep(LOOK).await;
        if !tokens.holds(pass) {
            return;
        }
    }
}

/// How editors' connections are let in: by the same tokens as requests, and wrong ones are counted
/// with theirs.
pub(crate) fn for_editors<S: Store>(app: &Arc<App<S>>) -> Authenticate {
    let app = Arc::clone(app);
    let watched = Watched::default();
    Arc::new(move |token, extensions| {
        let refuse = || {
            let sentence = "The token is wrong, or was revoked. `ward tokens list` shows those that there are.";
            let peer = Connection::of(extensions).peer;
            wrong_from(&app, peer, sentence).sentence().to_owned()
        };
        let passed = app.tokens.authenticate(token).ok_or_else(refuse)?;
        note(&app, &passed);
        let Identity::Actor(actor) = passed.identity else {
            return Err("A runtime's token is not for this. Use a person's.".to_owned());
        };
        if let Some(connection) = extensions.get::<Connection>() {
            connection.introduced.note();
        }
        let gone = watched.gone(passed.pass, &app.tokens);
        Ok(Known {
            actor,
            gone: Box::pin(gone.cancelled_owned()),
        })
    })
}

/// What let editors in, each looked at by one for all of its connections.
#[derive(Debug, Clone, Default)]
struct Watched(Arc<Mutex<Vec<(Pass, CancellationToken)>>>);

impl Watched {
    /// Cancelled when it is no longer good.
    fn gone(&self, pass: Pass, tokens: &Arc<Tokens>) -> CancellationToken {
        let mut all = self.all();
        if let Some((_, known)) = all.iter().find(|(known, _)| *known == pass) {
            return known.clone();
        }
        let told = CancellationToken::new();
        all.push((pass.clone(), told.clone()));
        drop(all);
        let (watched, tokens, cancel) = (self.clone(), Arc::clone(tokens), told.clone());
        tokio::spawn(async move {
            gone(&pass, &tokens).await;
            watched.all().retain(|(known, _)| *known != pass);
            cancel.cancel();
        });
        told
    }

    fn all(&self) -> MutexGuard<'_, Vec<(Pass, CancellationToken)>> {
        // Nothing panics while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = HttpFailure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, HttpFailure> {
        // Only where an operation that takes a caller lets everybody in, which would be a mistake.
        parts
            .extensions
            .remove()
            .ok_or_else(|| HttpFailure::new(ErrorKind::Unauthorized, "Say who you are."))
    }
}

impl<S: Sync> FromRequestParts<S> for Person {
    type Rejection = HttpFailure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, HttpFailure> {
        let caller = Caller::from_request_parts(parts, state).await?;
        caller.actor.must_be_person("do this")?;
        Ok(Self(caller))
    }
}
