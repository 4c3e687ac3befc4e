//! `/ledger`: the record, for persons.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use gate::ledger::{Entry, EntryKind};
use protocol::{ErrorKind, Failure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{Seq, Store};

use crate::answer::ok;
use crate::app::App;
use crate::auth::Person;
use crate::connection::Connection;
use crate::extract::Params;
use crate::failure::HttpFailure;
use crate::sse::{self, From, Source};

/// How many entries are answered at once.
const MAX_COUNT: usize = 1000;
const DEFAULT_LIMIT: u64 = 100;
/// How many are read at a time, and how many are looked at for one answer.
const PIECE: usize = 500;
const MAX_LOOKED_AT: usize = 20_000;

/// Query of `GET /ledger`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Query {
    /// The number of the last entry that is known: those after it are answered.
    after: Option<u64>,
    /// So many of the last entries. It goes with nothing else.
    #[schemars(range(min = 1, max = 1000))]
    last: Option<u64>,
    /// How many entries at most; 100 where nothing is said.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u64>,
    /// Only those of this kind.
    kind: Option<EntryKind>,
    /// Only those about this action.
    action: Option<String>,
    /// Only those of this session.
    session: Option<String>,
}

/// Answer of `GET /ledger`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Page {
    /// The entries, in order.
    entries: Vec<Entry>,
    /// What to ask for with `after` to go on.
    next: u64,
    /// Whether there is more.
    more: bool,
}

impl Query {
    fn fits(&self, entry: &Entry) -> bool {
        let is = |asked: &Option<String>, found: &Option<String>| asked.is_none() || asked == found;
        self.kind.is_none_or(|kind| kind == entry.kind)
            && is(&self.action, &entry.action_id)
            && is(&self.session, &entry.session)
    }

    fn names_more_than_last(&self) -> bool {
        self.after.is_some()
            || self.limit.is_some()
            || self.kind.is_some()
            || self.action.is_some()
            || self.session.is_some()
    }
}

/// `GET /ledger`: entries, by their place and what they are about.
pub(crate) async fn list<S: Store>(
    State(app): State<Arc<App<S>>>,
    _: Person,
    Params(query): Params<Query>,
) -> Result<Response, HttpFailure> {
    let ledger = app.gate.ledger();
    if let Some(last) = query.last {
        if query.names_more_than_last() {
            return Err(refuse("last", "`last` goes with nothing else."));
        }
        let entries = ledger.tail(count("last", last)?).await?;
        return Ok(ok(&Page {
            next: entries.last().map_or(0, |entry| entry.seq.get()),
            entries,
            more: false,
        }));
    }
    let limit = count("limit", query.limit.unwrap_or(DEFAULT_LIMIT))?;
    let mut after = Seq::new(query.after.unwrap_or_default());
    let mut entries = Vec::new();
    let mut looked_at = 0;
    let more = loop {
        if entries.len() >= limit || looked_at >= MAX_LOOKED_AT {
            break ledger.head().seq > after;
        }
        let piece = ledger.read(after, PIECE).await?;
        if piece.is_empty() {
            break false;
        }
        for entry in piece {
            if entries.len() >= limit {
                break;
            }
            after = entry.seq;
            looked_at += 1;
            if query.fits(&entry) {
                entries.push(entry);
            }
        }
    };
    Ok(ok(&Page {
        entries,
        next: after.get(),
        more,
    }))
}

fn count(name: &str, count: u64) -> Result<usize, HttpFailure> {
    match usize::try_from(count) {
        Ok(count) if (1..=MAX_COUNT).contains(&count) => Ok(count),
        Ok(_) | Err(_) => Err(refuse(
            name,
            &format!("`{name}` is 1 to {MAX_COUNT}; `next` of the answer says how to go on."),
        )),
    }
}

fn refuse(name: &str, sentence: &str) -> HttpFailure {
    let failure = Failure::new(ErrorKind::InvalidParams, sentence);
    failure.with("field", name).into()
}

/// `GET /ledger/verify`: whether everything is as it was written.
pub(crate) async fn verify<S: Store>(
    State(app): State<Arc<App<S>>>,
    _: Person,
) -> Result<Response, HttpFailure> {
    Ok(ok(&app.gate.ledger().verify().await?))
}

/// `GET /ledger/events`: entries as they are written.
pub(crate) async fn events<S: Store>(
    State(app): State<Arc<App<S>>>,
    Person(caller): Person,
    connection: Connection,
    Params(From { from }): Params<From>,
    headers: HeaderMap,
) -> Result<Response, HttpFailure> {
    let after = sse::after(&headers, from)?.unwrap_or(Seq::START);
    let source = Source::Ledger(app.gate.ledger().clone());
    let hold = app.hold(&caller)?;
    Ok(sse::answer(
        &app,
        caller,
        connection,
        hold,
        |out| async move { sse::follow(&out, &source, after, std::future::pending()).await },
    ))
}
