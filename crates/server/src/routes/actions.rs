//! `/actions`: asking for actions, and what becomes of them.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use gate::{Ended, Live, Request, Seen};
use protocol::http::{ActionStep, DEFAULT_WAIT, MAX_WAIT, PostAction};
use protocol::{ErrorKind, Failure};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use store::{Seq, Store};

use super::whole;
use crate::answer::{json, ok};
use crate::app::App;
use crate::auth::{Caller, Person};
use crate::connection::Connection;
use crate::extract::{Id, Json, NoBody, Params};
use crate::failure::HttpFailure;
use crate::sse::{self, From, Source};

/// `POST /actions`: does it, and waits for its end as long as was asked for. Hanging up cancels
/// nothing.
pub(crate) async fn post<S: Store>(
    State(app): State<Arc<App<S>>>,
    caller: Caller,
    connection: Connection,
    Json(asked): Json<PostAction>,
) -> Result<Response, HttpFailure> {
    let wait = asked.wait.unwrap_or(DEFAULT_WAIT);
    if wait > MAX_WAIT {
        let failure = Failure::new(
            ErrorKind::InvalidParams,
            format!(
                "`wait` is at most {MAX_WAIT} seconds. Follow `GET /actions/{{id}}/events` for longer."
            ),
        );
        return Err(failure.with("field", "wait").into());
    }
    let hold = if wait > 0 {
        Some(app.hold(&caller)?)
    } else {
        None
    };
    let request = Request::from(asked.into_request());
    let live = if request.id.is_some() {
        // What was sent before is looked up: the one part that could be left half done.
        let (gate, actor) = (app.gate.clone(), caller.actor.clone());
        whole(async move { gate.submit(&actor, request).await }).await?
    } else {
        app.gate.submit(&caller.actor, request).await?
    };
    if wait > 0 {
        tokio::select! {
            _ = live.ended() => {}
            () = tokio::time::sleep(Duration::from_secs(wait)) => {}
            () = connection.stop.cancelled() => {}
            () = caller.gone(&app.tokens) => {
                return Err(HttpFailure::new(
                    ErrorKind::Unauthorized,
                    "Your token was revoked while you waited. What runs goes on to its end; for an agent nothing more is begun.",
                ));
            }
        }
    }
    drop(hold);
    answer(&live)
}

fn answer(live: &Live) -> Result<Response, HttpFailure> {
    let told = Told::of(live);
    let Some(ended) = &told.ended else {
        return Ok(json(StatusCode::ACCEPTED, &told.state(&live.id)));
    };
    match &ended.outcome {
        Err(failure) if failure.kind == ErrorKind::Denied => {
            Err(failure.clone().with("id", live.id.as_str()).into())
        }
        Ok(_) | Err(_) => Ok(ok(&EndedBody {
            id: &live.id,
            outcome: outcome(ended),
        })),
    }
}

/// `GET /actions/{id}`: how far it is, or how it ended.
pub(crate) async fn get<S: Store>(
    State(app): State<Arc<App<S>>>,
    caller: Caller,
    Id(id): Id,
) -> Result<Response, HttpFailure> {
    let told = Told::from(app.gate.seen(&caller.actor, &id).await?);
    Ok(ok(&told.state(&id)))
}

/// `POST /actions/{id}/cancel`: ends it, wherever it is.
pub(crate) async fn cancel<S: Store>(
    State(app): State<Arc<App<S>>>,
    caller: Caller,
    Id(id): Id,
    _: NoBody,
) -> Result<Response, HttpFailure> {
    let told = match app.gate.seen(&caller.actor, &id).await? {
        Seen::Live(live) => {
            live.cancel();
            Told::of(&live)
        }
        Seen::Past(ended) => Told::from(Seen::Past(ended)),
    };
    Ok(ok(&told.state(&id)))
}

/// `GET /actions/{id}/events`: all that is written about it, until nothing more can come.
pub(crate) async fn events<S: Store>(
    State(app): State<Arc<App<S>>>,
    caller: Caller,
    connection: Connection,
    Id(id): Id,
    Params(From { from }): Params<From>,
    headers: HeaderMap,
) -> Result<Response, HttpFailure> {
    let after = sse::after(&headers, from)?.unwrap_or(Seq::START);
    let stream = app.gate.stream_of(&caller.actor, &id).await?;
    let source = Source::Stream(Arc::clone(app.gate.store()), stream);
    if app.gate.is_over(&id) && source.head().await? <= after {
        return Ok(sse::nothing_more());
    }
    let hold = app.hold(&caller)?;
    let gate = app.gate.clone();
    Ok(sse::answer(
        &app,
        caller,
        connection,
        hold,
        |out| async move { sse::follow(&out, &source, after, gate.over(&id)).await },
    ))
}

/// `GET /actions/{id}/changes`: what it did to files.
pub(crate) async fn changes<S: Store>(
    State(app): State<Arc<App<S>>>,
    Person(caller): Person,
    Id(id): Id,
) -> Result<Response, HttpFailure> {
    Ok(ok(&app.gate.changes(&caller.actor, &id).await?))
}

/// An action as it is told.
struct Told {
    step: ActionStep,
    approval_id: Option<String>,
    ended: Option<Arc<Ended>>,
}

impl Told {
    fn of(live: &Live) -> Self {
        let (step, approval_id, ended) = match live.state() {
            gate::State::Deciding => (ActionStep::Deciding, None, None),
            gate::State::Asking { approval_id } => (ActionStep::Asking, Some(approval_id), None),
            gate::State::Running => (ActionStep::Running, None, None),
            gate::State::Ended(ended) => (ActionStep::Ended, None, Some(ended)),
        };
        Self {
            step,
            approval_id,
            ended,
        }
    }

    fn state<'a>(&'a self, id: &'a str) -> StateBody<'a> {
        StateBody {
            id,
            state: self.step,
            approval_id: self.approval_id.as_deref(),
            outcome: self.ended.as_deref().map(outcome),
        }
    }
}

impl std::convert::From<Seen> for Told {
    fn from(seen: Seen) -> Self {
        match seen {
            Seen::Live(live) => Self::of(&live),
            Seen::Past(ended) => Self {
                step: ActionStep::Ended,
                approval_id: None,
                ended: Some(Arc::new(ended)),
            },
        }
    }
}

/// `protocol::http::ActionEnded`, with the result as the runtime wrote it.
#[derive(Serialize)]
struct EndedBody<'a> {
    id: &'a str,
    outcome: OutcomeBody<'a>,
}

/// `protocol::http::ActionState`, likewise.
#[derive(Serialize)]
struct StateBody<'a> {
    id: &'a str,
    state: ActionStep,
    #[serde(skip_serializing_if = "Option::is_none")]
    approval_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<OutcomeBody<'a>>,
}

/// `protocol::http::Outcome`, likewise.
#[derive(Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
enum OutcomeBody<'a> {
    Done {
        result: &'a RawValue,
        duration_ms: u64,
    },
    Failed {
        error: &'a str,
        kind: ErrorKind,
        #[serde(skip_serializing_if = "Map::is_empty")]
        details: &'a Map<String, Value>,
        duration_ms: u64,
    },
}

fn outcome(ended: &Ended) -> OutcomeBody<'_> {
    let duration_ms = ended.duration_ms;
    match &ended.outcome {
        Ok(result) => OutcomeBody::Done {
            result,
            duration_ms,
        },
        Err(failure) => OutcomeBody::Failed {
            error: &failure.message,
            kind: failure.kind,
            details: &failure.details,
            duration_ms,
        },
    }
}

#[cfg(test)]
mod tests {
    use protocol::http::{ActionState, Outcome};
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_told_is_what_the_protocol_says() {
        let raw = RawValue::from_string(r#"{"a": 1.50}"#.into()).unwrap();
        let done = Ended {
            outcome: Ok(Arc::from(raw)),
            duration_ms: 7,
        };
        let failed = Ended {
            outcome: Err(Failure::new(ErrorKind::Cancelled, "No.").with("x", 1)),
            duration_ms: 8,
        };
        let read = |ended: Ended| -> ActionState {
            let told = Told::from(Seen::Past(ended));
            serde_json::from_str(&serde_json::to_string(&told.state("i")).unwrap()).unwrap()
        };
        let state = |outcome| ActionState {
            id: "i".into(),
            state: ActionStep::Ended,
            approval_id: None,
            outcome: Some(outcome),
        };
        assert_eq!(
            read(done),
            state(Outcome::Done {
                result: json!({"a": 1.5}),
                duration_ms: 7
            })
        );
        assert_eq!(
            read(failed),
            state(Outcome::Failed {
                error: "No.".into(),
                kind: ErrorKind::Cancelled,
                details: Map::from_iter([("x".to_owned(), json!(1))]),
                duration_ms: 8
            })
        );
    }
}
