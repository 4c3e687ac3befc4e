//! Walks the whole chain and names what is not as it was written.

use protocol::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{Event, Json, Seq, Store, StoreError};

use super::chain::{Form, form_of, hash_told};
use super::entry::{EntryKind, HASHED, TEXT};
use super::head::{Found, Head, look};
use super::walk::{Place, Walk};
use super::{Ledger, lock};

/// How many problems are named; beyond, they are counted.
const NAMED: usize = 100;

/// What became of the ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// Whether everything is as it was written.
    pub ok: bool,
    /// How many entries there are.
    pub entries: u64,
    /// The last of them.
    pub head: Option<Head>,
    /// What is not as it was written, in order; the first hundred.
    pub problems: Vec<Problem>,
    /// How many problems there are beyond those.
    pub more: u64,
}

/// Something that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// Where.
    pub seq: u64,
    /// What kind of problem it is.
    pub kind: ProblemKind,
    /// A sentence about it.
    pub what: String,
}

/// What can be wrong with a ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProblemKind {
    /// An entry does not have its hash any more.
    Changed,
    /// Entries are not there.
    Missing,
    /// An entry is in another's place.
    Moved,
    /// An entry does not follow the one before it.
    Unlinked,
    /// An entry cannot be read.
    Unreadable,
    /// The end is not there.
    CutOff,
    /// An entry is not the one that the head says was there: the chain was written anew.
    Rewritten,
    /// The head outside the store is gone, or not Ward's.
    Head,
    /// When the ledger was opened, it was not where it had been left.
    Gap,
}

impl<S: Store> Ledger<S> {
    /// Walks the whole chain, in pieces, and names what is not as it was written.
    pub async fn verify(&self) -> Result<Verdict, StoreError> {
        let shared = &self.shared;
        // The file first: what is known here is then never behind it.
        let outside = look(shared.file.path()).unwrap_or(Found::Unreadable);
        let known = lock(&shared.state).head().clone();
        let mut check = Check::new(known.clone());
        match outside {
            Found::Outside(outside) => check.anchors.push(outside.head),
            Found::Nothing => check.problem(
                known.seq,
                ProblemKind::Head,
                "The file outside the store that says where the ledger ends is gone.".into(),
            ),
            Found::Unreadable => check.problem(
                known.seq,
                ProblemKind::Head,
                "The file outside the store that says where the ledger ends cannot be read, or was not written by Ward.".into(),
            ),
        }
        let mut walk = Walk::new(&*shared.store, &shared.stream, Seq::START, known.seq);
        loop {
            let places = walk.piece().await?;
            if places.is_empty() {
                break;
            }
            for place in &places {
                check.place(place);
            }
        }
        Ok(check.verdict())
    }
}

/// Whether this entry says that it and all that follow are written as they were hashed.
fn says_hashed(event: &Event) -> bool {
    let says = event.data.get("data").and_then(|data| data.get(TEXT));
    event.kind == EntryKind::Begun.as_str() && says.is_some_and(|says| says == HASHED)
}

/// What is known on the way.
#[derive(Debug)]
struct Check {
    /// Where the chain was known to be; the farthest first.
    anchors: Vec<Head>,
    /// The last place that was seen.
    last: Seq,
    /// The hash of what was there, where it has one.
    hash: Option<Digest>,
    /// Whether this may be an entry as the first Wards wrote them: none was seen yet that is written
    /// as today. So nobody can bring one into the older text.
    early: bool,
    entries: u64,
    problems: Vec<Problem>,
    more: u64,
}

impl Check {
    fn new(known: Head) -> Self {
        let start = Head::before_the_first();
        Self {
            anchors: vec![known],
            last: start.seq,
            hash: Some(start.hash),
            early: true,
            entries: 0,
            problems: Vec::new(),
            more: 0,
        }
    }

    fn problem(&mut self, seq: Seq, kind: ProblemKind, what: String) {
        if self.problems.len() == NAMED {
            self.more += 1;
            return;
        }
        let seq = seq.get();
        self.problems.push(Problem { seq, kind, what });
    }

    fn place(&mut self, place: &Place) {
        let seq = match place {
            Place::Event(event, _) => event.seq,
            Place::Unreadable { seq, .. } => *seq,
        };
        let next = self.last.next();
        if seq > next {
            let what = if seq == next.next() {
                format!("Entry {next} is missing.")
            } else {
                let last = seq.get().saturating_sub(1);
                format!("Entries {next} to {last} are missing.")
            };
            self.problem(next, ProblemKind::Missing, what);
            self.hash = None;
        }
        self.last = seq;
        self.entries += 1;
        match place {
            Place::Event(event, text) => self.event(event, text),
            Place::Unreadable { seq, why } => {
                self.problem(
                    *seq,
                    ProblemKind::Unreadable,
                    format!("Entry {seq} cannot be read: {why}."),
                );
                self.hash = None;
            }
        }
    }

    fn event(&mut self, event: &Event, text: &Json) {
        let seq = event.seq;
        let told = hash_told(event);
        let form = form_of(event, text);
        if form == Some(Form::Hashed) || says_hashed(event) {
            self.early = false;
        }
        let wrong = self.wrong(event, told.as_ref(), form);
        // What follows another's entry is not held against the next.
        let moved = matches!(wrong, Some((ProblemKind::Moved, _)));
        if let Some((kind, what)) = wrong {
            self.problem(seq, kind, what);
        }
        if self
            .anchors
            .iter()
            .any(|head| head.seq == seq && told.as_ref() != Some(&head.hash))
        {
            self.problem(
                seq,
                ProblemKind::Rewritten,
                format!(
                    "Entry {seq} is not the one that was written there: the ledger was written anew."
                ),
            );
        }
        self.hash = told.filter(|_| !moved);
    }

    /// What is wrong with an entry, if something is; one thing is enough.
    fn wrong(
        &self,
        event: &Event,
        told: Option<&Digest>,
        form: Option<Form>,
    ) -> Option<(ProblemKind, String)> {
        let seq = event.seq;
        let field = |name: &str| event.data.get(name);
        if told.is_none() {
            let what = format!("Entry {seq} has no hash.");
            return Some((ProblemKind::Changed, what));
        }
        let as_written = match form {
            Some(Form::Hashed) => true,
            Some(Form::Sorted) => self.early,
            None => false,
        };
        if !as_written {
            let what = format!("Entry {seq} was changed: its hash does not fit what it says.");
            return Some((ProblemKind::Changed, what));
        }
        let own = field("seq").cloned().unwrap_or_default();
        if own != seq.get() {
            let what = format!("In the place of entry {seq} is entry {own}.");
            return Some((ProblemKind::Moved, what));
        }
        let columns = [
            ("kind", serde_json::json!(event.kind)),
            ("at", serde_json::json!(event.at)),
        ];
        for (name, column) in columns {
            if field(name) != Some(&column) {
                let what = format!(
                    "Entry {seq} was changed: beside it the database says {column} as its `{name}`."
                );
                return Some((ProblemKind::Changed, what));
            }
        }
        if let Some(before) = &self.hash
            && field("prev").and_then(serde_json::Value::as_str) != Some(before.as_str())
        {
            let what = if seq == Seq::START.next() {
                format!("Entry {seq} is not the first of its chain.")
            } else {
                format!(
                    "Entry {seq} does not follow the one before it: one of the two was changed, or something was between them."
                )
            };
            return Some((ProblemKind::Unlinked, what));
        }
        if event.kind == EntryKind::Gap.as_str() {
            let what = event.data.pointer("/data/what");
            let what = what.and_then(serde_json::Value::as_str).unwrap_or_default();
            return Some((ProblemKind::Gap, what.to_owned()));
        }
        None
    }

    fn verdict(mut self) -> Verdict {
        let known = self.anchors.iter().map(|head| head.seq).max();
        if let Some(known) = known
            && self.last < known
        {
            let what = format!(
                "The ledger ends with entry {}, but {known} were written: its end was cut off.",
                self.last
            );
            self.problem(self.last.next(), ProblemKind::CutOff, what);
        }
        let head = self.hash.map(|hash| Head {
            seq: self.last,
            hash,
        });
        Verdict {
            ok: self.problems.is_empty(),
            entries: self.entries,
            head: head.filter(|head| head.seq > Seq::START),
            problems: self.problems,
            more: self.more,
        }
    }
}
