//! `/sessions`: conversations with agents; and `/models`, who can answer in them.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use protocol::session::{
    DEFAULT_SESSION_WAIT, MAX_SESSION_WAIT, Models, PatchSession, PostFork, PostMessage,
    PostSession, SessionAnswer, SessionInfo, Sessions,
};
use protocol::{ErrorKind, Failure};
use runner::{End, Session};
use schemars::JsonSchema;
use serde::Deserialize;
use store::{Seq, Store};

use super::whole;
use crate::answer::{json, ok};
use crate::app::App;
use crate::auth::Caller;
use crate::connection::Connection;
use crate::extract::{Id, Json, NoBody, Params};
use crate::failure::HttpFailure;
use crate::sse::{self, From};

/// Query of `GET /sessions`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Query {
    /// Only those whose title has these words, in any case.
    pub(crate) q: Option<String>,
    /// How many at most.
    pub(crate) limit: Option<usize>,
}

/// `POST /sessions`: begins one, and tells it while it runs, or answers when it has stopped.
pub(crate) async fn post<S: Store>(
    State(app): State<Arc<App<S>>>,
    caller: Caller,
    connection: Connection,
    headers: HeaderMap,
    Json(asked): Json<PostSession>,
) -> Result<Response, HttpFailure> {
    let how = How::of(&headers, asked.stream, asked.wait)?;
    let (runner, actor) = (app.runner.clone(), caller.actor.clone());
    let (session, after) = whole(async move { runner.begin(&actor, asked).await }).await?;
    answer(&app, caller, connection, session, after, how).await
}

/// `POST /sessions/{id}/messages`: says something, and tells or answers what comes of it.
pub(crate) async fn say<S: Store>(
    State(app): State<Arc<App<S>>>,
    caller: Caller,
    connection: Connection,
    Id(id): Id,
    headers: HeaderMap,
    Json(asked): Json<PostMessage>,
) -> Result<Response, HttpFailure> {
    let how = How::of(&headers, asked.stream, asked.wait)?;
    let (runner, actor) = (app.runner.clone(), caller.actor.clone());
    let (session, after) = whole(async move { runner.say(&actor, &id, asked).await }).await?;
    answer(&app, caller, connection, session, after, how).await
}

/// `GET /sessions`: yours, the latest first.
pub(crate) async fn list<S: Store>(
    State(app): State<Arc<App<S>>>,
    caller: Caller,
    Params(Query { q, limit }): Params<Query>,
) -> Response {
    let words = q.unwrap_or_default().to_lowercase();
    let mut sessions = app.runner.list(&caller.actor);
    sessions.retain(|session| session.title.to_lowercase().contains(&words));
    sessions.truncate(limit.unwrap_or(usize::MAX));
    ok(&Sessions { sessions })
}

/// `GET /sessions/{id}`: one of them.
pub(crate) async fn get<S: Store>(
    State(app): State<Arc<App<S>>>,
    caller: Caller,
    Id(id): Id,
) -> Result<Response, HttpFailure> {
    let session = app.runner.session(&caller.actor, &id)?;
    let last = app.runner.last(&session).await?;
    Ok(ok(&told(&session, last.as_ref())))
}

/// `PATCH /sessions/{id}`: another title, role, model or mode.
pub(crate) async fn change<S: Store>(
    State(app): State<Arc<App<S>>>,
    caller: Caller,
    Id(id): Id,
    Json(change): Json<PatchSession>,
) -> Result<Response, HttpFailure> {
    let (runner, actor) = (app.runner.clone(), caller.actor.clone());
    let info = whole(async move { runner.change(&actor, &id, change).await }).await?;
    Ok(ok(&info))
}

/// `DELETE /sessions/{id}`: the conversation goes; the ledger stays.
pub(crate) async fn delete<S: Store>(
    State(app): State<Arc<App<S>>>,
    caller: Caller,
    Id(id): Id,
) -> Result<Response, HttpFailure> {
    let (runner, actor) = (app.runner.clone(), caller.actor.clone());
    let info: SessionInfo = whole(async move { runner.delete(&actor, &id).await }).await?;
    Ok(ok(&info))
}

/// `POST /sessions/{id}/cancel`: ends what runs of it.
pub(crate) async fn cancel<S: Store>(
    State(app): State<Arc<App<S>>>,
    caller: Caller,
    Id(id): Id,
    _: NoBody,
) -> Result<Response, HttpFailure> {
    Ok(ok(&app.runner.cancel(&caller.actor, &id)?))
}

/// `POST /sessions/{id}/fork`: a new one that knows this one's conversation.
pub(crate) async fn fork<S: Store>(
    State(app): State<Arc<App<S>>>,
    caller: Caller,
    Id(id): Id,
    Json(PostFork { at }): Json<PostFork>,
) -> Result<Response, HttpFailure> {
    let (runner, actor) = (app.runner.clone(), caller.actor.clone());
    let info = whole(async move { runner.fork(&actor, &id, at).await }).await?;
    Ok(json(StatusCode::CREATED, &info))
}

/// `GET /sessions/{id}/events`: all that happens, until the session is deleted.
pub(crate) async fn events<S: Store>(
    State(app): State<Arc<App<S>>>,
    caller: Caller,
    connection: Connection,
    Id(id): Id,
    Params(From { from }): Params<From>,
    headers: HeaderMap,
) -> Result<Response, HttpFailure> {
    let after = sse::after(&headers, from)?.unwrap_or(Seq::START);
    let session = app.runner.session(&caller.actor, &id)?;
    let hold = app.hold(&caller)?;
    let store = Arc::clone(app.gate.store());
    Ok(sse::answer(
        &app,
        caller,
        connection,
        hold,
        |out| async move { sse::follow_session(&out, &*store, &session, after, session.gone()).await },
    ))
}

/// `GET /models`: who can answer here, and why the others cannot.
pub(crate) async fn models<S: Store>(State(app): State<Arc<App<S>>>) -> Response {
    let models: Models = app.runner.models().await;
    ok(&models)
}

/// How the answer is wanted.
enum How {
    Events,
    Whole(Duration),
}

impl How {
    fn of(headers: &HeaderMap, stream: bool, wait: Option<u64>) -> Result<Self, HttpFailure> {
        let accepts = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
        let events = |value: &str| value.trim().starts_with("text/event-stream");
        if stream || accepts.is_some_and(|value| value.split(',').any(events)) {
            return Ok(Self::Events);
        }
        let wait = wait.unwrap_or(DEFAULT_SESSION_WAIT);
        if wait > MAX_SESSION_WAIT {
            let failure = Failure::new(
                ErrorKind::InvalidParams,
                format!(
                    "`wait` is at most {MAX_SESSION_WAIT} seconds. Follow `GET /sessions/{{id}}/events` for longer."
                ),
            );
            return Err(failure.with("field", "wait").into());
        }
        Ok(Self::Whole(Duration::from_secs(wait)))
    }
}

async fn answer<S: Store>(
    app: &Arc<App<S>>,
    caller: Caller,
    connection: Connection,
    session: Arc<Session>,
    after: Seq,
    how: How,
) -> Result<Response, HttpFailure> {
    let hold = app.hold(&caller)?;
    let wait = match how {
        How::Events => {
            let store = Arc::clone(app.gate.store());
            return Ok(sse::answer(
                app,
                caller,
                connection,
                hold,
                |out| async move {
                    sse::follow_session(&out, &*store, &session, after, session.settled()).await
                },
            ));
        }
        How::Whole(wait) => wait,
    };
    tokio::select! {
        () = session.settled() => {}
        () = tokio::time::sleep(wait) => {}
        () = connection.stop.cancelled() => {}
        () = caller.gone(&app.tokens) => {
            return Err(HttpFailure::new(
                ErrorKind::Unauthorized,
                "Your token was revoked while you waited. What runs goes on to its end; for an agent nothing more is begun.",
            ));
        }
    }
    drop(hold);
    let last = app.runner.last(&session).await?;
    let answer = told(&session, last.as_ref());
    match last {
        Some(End::Completed(_)) => Ok(ok(&answer)),
        Some(End::Failed(failed)) => {
            let failure = Failure {
                kind: failed.kind,
                message: failed.error,
                details: failed.details,
            };
            Err(failure.with("session_id", session.id()).into())
        }
        None => Ok(json(StatusCode::ACCEPTED, &answer)),
    }
}

fn told(session: &Session, last: Option<&End>) -> SessionAnswer {
    let completed = match last {
        Some(End::Completed(completed)) => Some(completed),
        Some(End::Failed(_)) | None => None,
    };
    SessionAnswer {
        session: session.info(),
        output: completed.map(|completed| completed.output.clone()),
        stop: completed.map(|completed| completed.stop),
        approvals: session.approvals(),
        waiting: completed.map_or(0, |completed| completed.waiting),
    }
}
