//! `GET /approvals/events`: a person's inbox as it changes. Whoever follows it is a client of that
//! person's, and may be the one that is asked first.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use gate::{Actor, Attachment, Attention, Gate};
use protocol::approval::Approval;
use protocol::http::{EVENT_HELLO, EVENT_REQUESTED, EVENT_ROUTED, Hello, PostAttention, Routed};
use protocol::{ErrorKind, Failure};
use schemars::JsonSchema;
use serde::Deserialize;
use store::{Event, Seq, Store};

use crate::answer::ok;
use crate::app::App;
use crate::auth::Person;
use crate::connection::Connection;
use crate::extract::{Id, Json, Params};
use crate::failure::HttpFailure;
use crate::sse::{self, Out, Over, Source};

/// Query of `GET /approvals/events`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Query {
    /// The number of the last event that is known: those after it are told. Where nothing is said,
    /// what is open now is told first, without numbers, and then what comes.
    from: Option<u64>,
    /// The session that this client shows.
    session: Option<String>,
    /// Whether it is in front.
    #[serde(default)]
    front: bool,
}

pub(crate) async fn events<S: Store>(
    State(app): State<Arc<App<S>>>,
    Person(caller): Person,
    connection: Connection,
    Params(query): Params<Query>,
    headers: HeaderMap,
) -> Result<Response, HttpFailure> {
    let known = sse::after(&headers, query.from)?;
    let gate = app.gate.clone();
    let source = Source::Stream(Arc::clone(gate.store()), gate.inbox(&caller.actor)?);
    let hold = app.hold(&caller)?;
    // Before anything is listed: what comes in between is told twice rather than never.
    let start = match known {
        Some(after) => Start::After(after),
        None => Start::Now(source.head().await?),
    };
    let attention = Attention {
        front: query.front,
        session: query.session,
    };
    let attached = Arc::new(gate.attach(&caller.actor, attention)?);
    app.clients.add(caller.actor.person(), &attached);
    let actor = caller.actor.clone();
    Ok(sse::answer(&app, caller, connection, hold, |out| {
        let inbox = Inbox {
            out,
            gate,
            actor,
            source,
            attached,
            routes: HashMap::new(),
        };
        inbox.tell(start)
    }))
}

enum Start {
    /// The client knows everything up to here.
    After(Seq),
    /// It knows nothing; the stream is here.
    Now(Seq),
}

struct Inbox<S: Store> {
    out: Out,
    gate: Gate<S>,
    actor: Actor,
    source: Source<S>,
    attached: Arc<Attachment>,
    /// Which client the open questions went to first, as this one was told.
    routes: HashMap<String, Option<String>>,
}

impl<S: Store> Inbox<S> {
    async fn tell(mut self, start: Start) -> Result<(), Over> {
        let mut attention = self.gate.attention();
        let hello = Hello {
            client_id: self.attached.id(),
        };
        self.out.passing(EVENT_HELLO, &hello).await?;
        let mut shown = HashSet::new();
        let mut after = match start {
            Start::After(after) => {
                self.route().await?;
                after
            }
            Start::Now(head) => {
                for approval in self.open() {
                    self.out.passing(EVENT_REQUESTED, &approval).await?;
                    shown.insert(approval.id.clone());
                    self.routes.insert(approval.id, approval.to);
                }
                head
            }
        };
        loop {
            let events = self.source.read(after).await.map_err(sse::unreadable)?;
            if !events.is_empty() {
                for event in events {
                    after = event.seq;
                    self.pass_on(&event, &mut shown).await?;
                }
                continue;
            }
            tokio::select! {
                head = self.source.beyond(after) => drop(head.map_err(sse::unreadable)?),
                Ok(()) = attention.changed() => self.route().await?,
                () = tokio::time::sleep(sse::KEEP_ALIVE) => self.out.alive().await?,
            }
        }
    }

    async fn pass_on(&mut self, event: &Event, shown: &mut HashSet<String>) -> Result<(), Over> {
        let id = match event.data.get("id") {
            Some(serde_json::Value::String(id)) if event.kind == EVENT_REQUESTED => id,
            Some(_) | None => return self.out.event(event).await,
        };
        if shown.remove(id) {
            return Ok(());
        }
        let open = self.gate.approval(&self.actor, id).await;
        self.out.event(event).await?;
        if let Ok(approval) = open {
            self.tell_route(approval).await?;
        }
        Ok(())
    }

    /// Tells which questions another client is asked first now.
    async fn route(&mut self) -> Result<(), Over> {
        let open = self.open();
        let mut before = std::mem::take(&mut self.routes);
        for approval in open {
            match before.remove(&approval.id) {
                Some(to) if to == approval.to => {
                    self.routes.insert(approval.id, to);
                }
                Some(_) | None => self.tell_route(approval).await?,
            }
        }
        Ok(())
    }

    async fn tell_route(&mut self, approval: Approval) -> Result<(), Over> {
        let routed = Routed {
            approval_id: approval.id,
            to: approval.to,
        };
        self.out.passing(EVENT_ROUTED, &routed).await?;
        self.routes.insert(routed.approval_id, routed.to);
        Ok(())
    }

    fn open(&self) -> Vec<Approval> {
        self.gate.approvals(&self.actor).unwrap_or_default()
    }
}

/// `POST /clients/{id}`: the person is there now, or no longer.
pub(crate) async fn turn<S: Store>(
    State(app): State<Arc<App<S>>>,
    Person(caller): Person,
    Id(id): Id,
    Json(turned): Json<PostAttention>,
) -> Result<Response, HttpFailure> {
    let Some(attached) = app.clients.get(caller.actor.person(), &id) else {
        let failure = Failure::new(
            ErrorKind::Unknown,
            "There is no such client of yours. `GET /approvals/events` says who you are, for as long as it is open.",
        );
        return Err(failure.into());
    };
    let attention = Attention {
        front: turned.front,
        session: turned.session.clone(),
    };
    attached.turn(attention);
    Ok(ok(&turned))
}
