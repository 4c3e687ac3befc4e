//! `/notebooks`: notebooks, what happens in them, who runs them, and what is kept beside them.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{FromRequestParts as _, Path, Request, State};
use axum::http::header::{
    CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderName,
};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use notebook::{ArtifactRef, Author, Presence, ipynb};
use notebooks::{
    Book, CommsDropped, FetchInput, MAX_ARTIFACT, NotebookList, NotebookState, PostComms,
    PostEvents, PostInput, PostNotebook, PostNotebookAgent, PostNotebookRuntime, TakenComms,
};
use protocol::{ErrorKind, Failure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{Seq, Store};
use tokio::sync::broadcast::error::RecvError;

use super::whole;
use crate::answer::{json, ok, written};
use crate::app::App;
use crate::auth::{Caller, Person};
use crate::connection::Connection;
use crate::extract::{Id, Json, MAX_WITH_FILE, NoBody, Params};
use crate::failure::HttpFailure;
use crate::sse::{self, From, KEEP_ALIVE, Out, Over};

/// What shows that an event is a runtime session's.
const RUNTIME: HeaderName = HeaderName::from_static("x-ward-runtime");
/// How long an artifact has to arrive.
const ARRIVAL: Duration = Duration::from_secs(120);

/// Query of `POST /notebooks/{id}/artifacts`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Name {
    /// What people call it.
    pub(crate) name: Option<String>,
}

/// Query of `GET /notebooks/{id}/runtimes/{session}/comms`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Has {
    /// The number of the last message that the runtime has; it is given no more.
    pub(crate) after: u64,
}

/// Query of `DELETE /notebooks/{id}/runtimes/{session}`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct After {
    /// In how many seconds it is over, unless it is heard of again before: for a page that goes away
    /// and may only be loaded again.
    #[schemars(range(max = 60))]
    pub(crate) after: Option<u64>,
}

/// Answer of `GET /notebooks/{id}/artifacts`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ArtifactList {
    /// Those that are kept.
    artifacts: Vec<ArtifactRef>,
}

/// Answer of what changes nothing but itself.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Ended {
    /// Whether it was not over before.
    ended: bool,
}

/// `GET /notebooks`: yours, the latest first.
pub(crate) async fn list<S: Store>(State(app): State<Arc<App<S>>>, caller: Caller) -> Response {
    let notebooks = app.notebooks.list(&caller.actor);
    ok(&NotebookList { notebooks })
}

/// `POST /notebooks`: a new one, empty or from a file.
pub(crate) async fn make<S: Store>(
    State(app): State<Arc<App<S>>>,
    Person(caller): Person,
    Json(asked): Json<PostNotebook, MAX_WITH_FILE>,
) -> Result<Response, HttpFailure> {
    let notebooks = app.notebooks.clone();
    let info = whole(async move { notebooks.make(&caller.actor, asked).await }).await?;
    Ok(json(StatusCode::CREATED, &info))
}

/// `GET /notebooks/{id}`: what its events amount to.
pub(crate) async fn get<S: Store>(
    State(app): State<Arc<App<S>>>,
    caller: Caller,
    Id(id): Id,
) -> Result<Response, HttpFailure> {
    let book = app.notebooks.book(&caller.actor, &id).await?;
    let snapshot = book.snapshot();
    Ok(ok(&NotebookState {
        notebook: book.info(),
        seq: snapshot.seq.get(),
        state: snapshot.state,
    }))
}

/// `DELETE /notebooks/{id}`: it goes, with all that is kept beside it.
pub(crate) async fn delete<S: Store>(
    State(app): State<Arc<App<S>>>,
    Person(caller): Person,
    Id(id): Id,
) -> Result<Response, HttpFailure> {
    let notebooks = app.notebooks.clone();
    let info = whole(async move { notebooks.delete(&caller.actor, &id).await }).await?;
    Ok(ok(&info))
}

/// `POST /notebooks/{id}/compact`: its events go; what they amount to stays.
pub(crate) async fn compact<S: Store>(
    State(app): State<Arc<App<S>>>,
    Person(caller): Person,
    Id(id): Id,
    _: NoBody,
) -> Result<Response, HttpFailure> {
    let notebooks = app.notebooks.clone();
    let dropped = whole(async move { notebooks.compact(&caller.actor, &id).await }).await?;
    Ok(ok(&dropped))
}

/// `GET /notebooks/{id}/ipynb`: as Jupyter's file, with its artifacts in it.
pub(crate) async fn file<S: Store>(
    State(app): State<Arc<App<S>>>,
    caller: Caller,
    Id(id): Id,
) -> Result<Response, HttpFailure> {
    let book = app.notebooks.book(&caller.actor, &id).await?;
    let state = book.snapshot().state;
    let mut bytes = std::collections::HashMap::new();
    for artifact in state.artifacts_shown() {
        if let Ok(found) = app.notebooks.artifacts().read(&id, &artifact.digest).await {
            bytes.insert(artifact.digest.clone(), found);
        }
    }
    let resolve = |artifact: &ArtifactRef| bytes.get(&artifact.digest).cloned();
    let file = ipynb::to_text(&ipynb::write(&state, &resolve));
    Ok(written(StatusCode::OK, file.into_bytes()))
}

/// `GET /notebooks/{id}/events`: all that happens, until the notebook is deleted.
pub(crate) async fn events<S: Store>(
    State(app): State<Arc<App<S>>>,
    caller: Caller,
    connection: Connection,
    Id(id): Id,
    Params(From { from }): Params<From>,
    headers: HeaderMap,
) -> Result<Response, HttpFailure> {
    let after = sse::after(&headers, from)?.unwrap_or(Seq::START);
    let book = app.notebooks.book(&caller.actor, &id).await?;
    // What is gone is told before anything else is.
    book.events(after).await?;
    let hold = app.hold(&caller)?;
    Ok(sse::answer(
        &app,
        caller,
        connection,
        hold,
        |out| async move { follow(&out, &book, after).await },
    ))
}

async fn follow<S: Store>(out: &Out, book: &Book<S>, mut after: Seq) -> Result<(), Over> {
    let mut heads = book.heads();
    let mut passing = book.passing();
    let mut comms = book.comms();
    let gone = book.gone();
    tokio::pin!(gone);
    loop {
        heads.borrow_and_update();
        let events = book.events(after).await.map_err(|_| Over)?;
        if let Some(last) = events.last() {
            after = last.seq;
            for event in &events {
                out.event(event).await?;
            }
            continue;
        }
        tokio::select! {
            changed = heads.changed() => changed.map_err(|_| Over)?,
            present = passing.recv() => match present {
                Ok(present) => out.passing("presence", &present).await?,
                // What was passed over is no longer true.
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return Err(Over),
            },
            said = comms.recv() => match said {
                Ok(said) => {
                    if said.dropped > 0 {
                        let count = Some(said.dropped);
                        out.passing("comm.dropped", &CommsDropped { count }).await?;
                    }
                    for message in &said.messages {
                        out.passing("comm", message).await?;
                    }
                }
                Err(RecvError::Lagged(_)) => {
                    out.passing("comm.dropped", &CommsDropped { count: None }).await?;
                }
                Err(RecvError::Closed) => return Err(Over),
            },
            () = &mut gone => return Ok(()),
            () = tokio::time::sleep(KEEP_ALIVE) => out.alive().await?,
        }
    }
}

/// `POST /notebooks/{id}/events`: appends.
pub(crate) async fn append<S: Store>(
    State(app): State<Arc<App<S>>>,
    caller: Caller,
    Id(id): Id,
    headers: HeaderMap,
    Json(asked): Json<PostEvents>,
) -> Result<Response, HttpFailure> {
    let token = runtime_token(&headers)?;
    if caller.is_runtime() {
        let events = asked.entries.iter().map(|entry| &entry.event);
        let mut events = events.chain(&asked.events);
        if events.any(|event| event.author() != Author::Runtime) {
            return Err(HttpFailure::new(
                ErrorKind::Forbidden,
                "A runtime says what becomes of its runs, and nothing else.",
            ));
        }
    }
    let notebooks = app.notebooks.clone();
    let appended = whole(async move {
        let token = token.as_deref();
        notebooks.post(&caller.actor, &id, token, asked).await
    })
    .await?;
    Ok(ok(&appended))
}

/// `POST /notebooks/{id}/presence`: where somebody is; told to the others, and never kept.
pub(crate) async fn present<S: Store>(
    State(app): State<Arc<App<S>>>,
    caller: Caller,
    Id(id): Id,
    Json(presence): Json<Presence>,
) -> Result<Response, HttpFailure> {
    let book = app.notebooks.book(&caller.actor, &id).await?;
    book.present(&caller.actor, presence)?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `POST /notebooks/{id}/runtimes`: a runtime announces itself, or goes on with its session.
pub(crate) async fn announce<S: Store>(
    State(app): State<Arc<App<S>>>,
    Person(caller): Person,
    Id(id): Id,
    headers: HeaderMap,
    Json(asked): Json<PostNotebookRuntime>,
) -> Result<Response, HttpFailure> {
    let token = runtime_token(&headers)?;
    let notebooks = app.notebooks.clone();
    let announced = whole(async move {
        let token = token.as_deref();
        notebooks.announce(&caller.actor, &id, token, asked).await
    })
    .await?;
    Ok(json(StatusCode::CREATED, &announced))
}

/// `POST /notebooks/{id}/runtimes/{session}/renew`: it is still there.
pub(crate) async fn renew<S: Store>(
    State(app): State<Arc<App<S>>>,
    Person(caller): Person,
    Path((id, session)): Path<(String, String)>,
    headers: HeaderMap,
    _: NoBody,
) -> Result<Response, HttpFailure> {
    let token = runtime_token(&headers)?;
    let renewed = app
        .notebooks
        .renew(&caller.actor, &id, &session, token.as_deref());
    Ok(ok(&renewed.await?))
}

/// `DELETE /notebooks/{id}/runtimes/{session}`: a runtime session is over.
pub(crate) async fn end<S: Store>(
    State(app): State<Arc<App<S>>>,
    Person(caller): Person,
    Path((id, session)): Path<(String, String)>,
    Params(After { after }): Params<After>,
) -> Result<Response, HttpFailure> {
    let notebooks = app.notebooks.clone();
    let ended = whole(async move {
        let actor = &caller.actor;
        match after.filter(|after| *after > 0) {
            Some(after) => notebooks.leave(actor, &id, &session, after.min(60)).await,
            None => notebooks.end(actor, &id, &session).await,
        }
    })
    .await?;
    Ok(ok(&Ended { ended }))
}

/// `POST /notebooks/{id}/input`: a person answers what a run asks.
pub(crate) async fn answer<S: Store>(
    State(app): State<Arc<App<S>>>,
    Person(caller): Person,
    Id(id): Id,
    Json(asked): Json<PostInput>,
) -> Result<Response, HttpFailure> {
    let notebooks = app.notebooks.clone();
    whole(async move { notebooks.answer(&caller.actor, &id, asked).await }).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `POST /notebooks/{id}/runtimes/{session}/input`: the runtime that asked has the answer, once.
pub(crate) async fn answered<S: Store>(
    State(app): State<Arc<App<S>>>,
    Person(caller): Person,
    Path((id, session)): Path<(String, String)>,
    headers: HeaderMap,
    Json(asked): Json<FetchInput>,
) -> Result<Response, HttpFailure> {
    let token = runtime_token(&headers)?;
    let answer = app
        .notebooks
        .answered(&caller.actor, &id, &session, token.as_deref(), asked);
    Ok(ok(&answer.await?))
}

/// `POST /notebooks/{id}/runtimes/{session}/comms`: what a runtime says to whoever shows its widgets.
pub(crate) async fn tell_comms<S: Store>(
    State(app): State<Arc<App<S>>>,
    Person(caller): Person,
    Path((id, session)): Path<(String, String)>,
    headers: HeaderMap,
    Json(said): Json<PostComms>,
) -> Result<Response, HttpFailure> {
    let token = runtime_token(&headers)?;
    let told = app
        .notebooks
        .tell_comms(&caller.actor, &id, &session, token.as_deref(), said);
    told.await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `GET /notebooks/{id}/runtimes/{session}/comms`: what is said to a runtime's widgets, as it comes.
pub(crate) async fn take_comms<S: Store>(
    State(app): State<Arc<App<S>>>,
    Person(caller): Person,
    connection: Connection,
    Path((id, session)): Path<(String, String)>,
    Params(Has { after }): Params<Has>,
    headers: HeaderMap,
) -> Result<Response, HttpFailure> {
    let token = runtime_token(&headers)?;
    let taken = app
        .notebooks
        .take_comms(&caller.actor, &id, &session, token.as_deref(), after);
    let taken = tokio::select! {
        taken = taken => taken?,
        () = connection.stop.cancelled() => TakenComms::default(),
    };
    Ok(ok(&taken))
}

/// `GET /notebooks/{id}/agents`: what Ward started, and what it could.
pub(crate) async fn agents<S: Store>(
    State(app): State<Arc<App<S>>>,
    Person(caller): Person,
    Id(id): Id,
) -> Result<Response, HttpFailure> {
    Ok(ok(&app.notebooks.agents(&caller.actor, &id).await?))
}

/// `POST /notebooks/{id}/agents`: Ward starts a runtime.
pub(crate) async fn start_agent<S: Store>(
    State(app): State<Arc<App<S>>>,
    Person(caller): Person,
    Id(id): Id,
    Json(asked): Json<PostNotebookAgent>,
) -> Result<Response, HttpFailure> {
    let notebooks = app.notebooks.clone();
    let started = whole(async move { notebooks.start_agent(&caller.actor, &id, asked).await });
    Ok(json(StatusCode::CREATED, &started.await?))
}

/// `DELETE /notebooks/{id}/agents/{agent}`: it ends, with its kernel.
pub(crate) async fn end_agent<S: Store>(
    State(app): State<Arc<App<S>>>,
    Person(caller): Person,
    Path((id, agent)): Path<(String, String)>,
) -> Result<Response, HttpFailure> {
    let notebooks = app.notebooks.clone();
    let ended = whole(async move { notebooks.end_agent(&caller.actor, &id, &agent).await });
    Ok(ok(&Ended {
        ended: ended.await?,
    }))
}

/// `GET /notebooks/{id}/artifacts`: what is kept beside it.
pub(crate) async fn artifacts<S: Store>(
    State(app): State<Arc<App<S>>>,
    caller: Caller,
    Id(id): Id,
) -> Result<Response, HttpFailure> {
    let book = app.notebooks.book(&caller.actor, &id).await?;
    let artifacts = book.snapshot().state.artifacts.into_values();
    Ok(ok(&ArtifactList {
        artifacts: artifacts.collect(),
    }))
}

/// `POST /notebooks/{id}/artifacts`: keeps the bytes of the body beside it.
pub(crate) async fn keep<S: Store>(
    State(app): State<Arc<App<S>>>,
    Person(caller): Person,
    Id(id): Id,
    request: Request,
) -> Result<Response, HttpFailure> {
    let (mut parts, body) = request.into_parts();
    let Params(Name { name }) = Params::from_request_parts(&mut parts, &()).await?;
    let book = app.notebooks.book(&caller.actor, &id).await?;
    let media_type = media_type(&parts.headers)?;
    if name.as_ref().is_some_and(|name| name.len() > 200) {
        return Err(HttpFailure::new(
            ErrorKind::InvalidParams,
            "`name` has at most 200 bytes.",
        ));
    }
    let bytes = arrived(body).await?;
    let notebooks = app.notebooks.clone();
    let artifact = whole(async move {
        notebooks
            .keep_artifact(&caller.actor, &book, bytes, media_type, name)
            .await
    })
    .await?;
    Ok(json(StatusCode::CREATED, &artifact))
}

/// `GET /notebooks/{id}/artifacts/{digest}`: the bytes. Whatever they are, a browser is not to run
/// them in Ward's name.
pub(crate) async fn artifact<S: Store>(
    State(app): State<Arc<App<S>>>,
    caller: Caller,
    Path((id, digest)): Path<(String, String)>,
) -> Result<Response, HttpFailure> {
    let book = app.notebooks.book(&caller.actor, &id).await?;
    let known = book.snapshot().state.artifacts.remove(&digest);
    let known = known.ok_or_else(no_artifact)?;
    let bytes = app.notebooks.artifacts().read(&id, &known.digest).await?;
    let mut response = Response::new(Body::from(bytes));
    let headers = response.headers_mut();
    let media_type = HeaderValue::from_str(&known.media_type);
    headers.insert(
        CONTENT_TYPE,
        media_type.unwrap_or(HeaderValue::from_static("application/octet-stream")),
    );
    headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    headers.insert(
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; sandbox"),
    );
    Ok(response)
}

/// `DELETE /notebooks/{id}/artifacts/{digest}`: it is no longer kept.
pub(crate) async fn drop_artifact<S: Store>(
    State(app): State<Arc<App<S>>>,
    Person(caller): Person,
    Path((id, digest)): Path<(String, String)>,
) -> Result<Response, HttpFailure> {
    let book = app.notebooks.book(&caller.actor, &id).await?;
    let notebooks = app.notebooks.clone();
    let gone = async move { notebooks.drop_artifact(&caller.actor, &book, &digest).await };
    let gone = whole(gone).await?;
    Ok(ok(&gone))
}

fn no_artifact() -> Failure {
    Failure::new(
        ErrorKind::Unknown,
        "There is no such artifact in this notebook.",
    )
}

fn runtime_token(headers: &HeaderMap) -> Result<Option<String>, HttpFailure> {
    match headers.get(RUNTIME).map(HeaderValue::to_str) {
        None => Ok(None),
        Some(Ok(token)) => Ok(Some(token.to_owned())),
        Some(Err(_)) => Err(HttpFailure::new(
            ErrorKind::InvalidParams,
            "`X-Ward-Runtime` is the token of a runtime session.",
        )),
    }
}

fn media_type(headers: &HeaderMap) -> Result<String, HttpFailure> {
    let given = headers.get(CONTENT_TYPE).map(HeaderValue::to_str);
    let Some(Ok(given)) = given else {
        return Err(HttpFailure::new(
            ErrorKind::WrongContentType,
            "Say what the bytes are with `Content-Type`.",
        ));
    };
    let plain = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
    match given.len() <= 200 && given.contains('/') && given.bytes().all(plain) {
        true => Ok(given.to_owned()),
        false => Err(HttpFailure::new(
            ErrorKind::WrongContentType,
            "`Content-Type` is a media type, such as `image/png`.",
        )),
    }
}

async fn arrived(body: Body) -> Result<Vec<u8>, HttpFailure> {
    match tokio::time::timeout(ARRIVAL, to_bytes(body, MAX_ARTIFACT)).await {
        Ok(Ok(bytes)) => Ok(bytes.into()),
        Ok(Err(_)) => Err(HttpFailure::new(
            ErrorKind::TooLarge,
            format!("An artifact has at most {} MiB.", MAX_ARTIFACT >> 20),
        )),
        Err(_) => Err(HttpFailure::new(
            ErrorKind::TimedOut,
            format!("The body took longer than {} seconds.", ARRIVAL.as_secs()),
        )),
    }
}
