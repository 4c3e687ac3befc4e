//! How an entry is linked to the one before it, and what the chain knows while it grows.

use std::collections::{BTreeSet, HashMap};

use protocol::Digest;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use store::{Event, Json, Millis, NewEvent, Seq};

use super::entry::{Data, EntryKind, NewEntry};
use super::head::Head;
use crate::canonical::text;
use crate::redact::Redactor;

/// What stands between an entry and its hash.
const HASH: &str = ",\"hash\":\"";

/// An entry that is ready but for its place: what does not depend on the one before it is hashed,
/// so that little is left to do in line.
///
/// Canonical JSON sorts its fields by name, and `prev` comes after all that can be long.
#[derive(Debug)]
pub(super) struct Prepared {
    kind: EntryKind,
    at: Millis,
    /// Where it begins or ends one.
    action: Option<String>,
    /// The canonical text without the values of `prev` and `seq`, and where those belong.
    text: String,
    prev: usize,
    seq: usize,
    /// The hash of what is before `prev`.
    hashed: Sha256,
}

impl Prepared {
    /// Without secrets, and no longer than it may be.
    pub(super) fn new(redactor: &Redactor, entry: NewEntry) -> Self {
        let NewEntry {
            kind,
            at,
            actor,
            role,
            session,
            workspace,
            action_id,
            data,
        } = entry;
        let data = match data {
            Data::Value(value) => redactor.entry(value),
            Data::Clean(clean) => clean,
        };
        let mut text = String::with_capacity(1024);
        let pair = |text: &mut String, name: &str, value: &Option<String>| {
            if let Some(value) = value {
                text.push_str(name);
                text::push_string(text, &redactor.redact_str(value));
            }
        };
        text.push('{');
        if let Some(action_id) = &action_id {
            text.push_str("\"action_id\":");
            text::push_string(&mut text, action_id);
            text.push(',');
        }
        text.push_str("\"actor\":");
        text::push_string(&mut text, &redactor.redact_str(&actor));
        text.push_str(",\"at\":");
        text::push_whole(&mut text, at.0);
        text.push_str(",\"data\":");
        text.push_str(data.as_str());
        text.push_str(",\"kind\":");
        text::push_word(&mut text, kind.as_str());
        text.push_str(",\"prev\":");
        let prev = text.len();
        pair(&mut text, ",\"role\":", &role);
        text.push_str(",\"seq\":");
        let seq = text.len();
        pair(&mut text, ",\"session\":", &session);
        pair(&mut text, ",\"workspace\":", &workspace);
        text.push('}');

        let action = match kind {
            EntryKind::Request | EntryKind::Outcome => action_id,
            EntryKind::Begun
            | EntryKind::Decision
            | EntryKind::Approval
            | EntryKind::Answer
            | EntryKind::Grant
            | EntryKind::Revoked
            | EntryKind::Gap => None,
        };
        Self {
            kind,
            at,
            action,
            hashed: Sha256::new_with_prefix(text.get(..prev).unwrap_or_default()),
            text,
            prev,
            seq,
        }
    }

    /// The event that follows `head`, and the head that it makes.
    pub(super) fn link(&self, head: &Head) -> (NewEvent, Head) {
        let seq = head.seq.next();
        let part = |range: std::ops::Range<usize>| self.text.get(range).unwrap_or_default();
        let mut rest = String::with_capacity(256);
        text::push_word(&mut rest, head.hash.as_str());
        rest.push_str(part(self.prev..self.seq));
        text::push_whole(&mut rest, seq.get());
        rest.push_str(part(self.seq..self.text.len()));
        let hash = Digest::from_hash(&self.hashed.clone().chain_update(&rest).finalize().into());
        let mut text = String::with_capacity(self.text.len() + 256);
        text.push_str(part(0..self.prev));
        // All but the bracket at the end, and the hash in front of that.
        text.push_str(rest.get(..rest.len() - 1).unwrap_or_default());
        text.push_str(HASH);
        text.push_str(hash.as_str());
        text.push_str("\"}");
        let event = NewEvent {
            kind: self.kind.as_str().into(),
            at: self.at,
            data: Json::from_text(text),
        };
        (event, Head { seq, hash })
    }

    pub(super) fn kind(&self) -> EntryKind {
        self.kind
    }

    pub(super) fn action(&self) -> Option<&str> {
        self.action.as_deref()
    }
}

/// How an entry lies in the store. Either way there is one text that it can be, so that not a byte
/// of it can be changed without notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// The text that was hashed, and the hash at its end.
    Hashed,
    /// As the first Wards wrote it: the hash is among the other fields, in the order of their names,
    /// and a number stands as it was given. What was hashed has to be made from that again.
    Sorted,
}

/// How an entry lies in the store, where it has the hash that it says; nothing where it was changed.
pub(super) fn form_of(event: &Event, text: &Json) -> Option<Form> {
    let told = hash_told(event)?;
    let end = format!("{HASH}{}\"}}", told.as_str());
    if let Some(hashed) = text.as_str().strip_suffix(&end) {
        let hash = Sha256::new_with_prefix(hashed).chain_update("}").finalize();
        return (Digest::from_hash(&hash.into()) == told).then_some(Form::Hashed);
    }
    if serde_json::to_string(&event.data).ok()? != text.as_str() {
        return None;
    }
    let mut fields = event.data.as_object()?.clone();
    fields.remove("hash")?;
    let mut hashed = String::with_capacity(1024);
    text::push(&mut hashed, &Value::Object(fields));
    (Digest::of(hashed.as_bytes()) == told).then_some(Form::Sorted)
}

/// The hash that an entry says it has.
pub(super) fn hash_told(event: &Event) -> Option<Digest> {
    Digest::read(event.data.get("hash")?.as_str()?)
}

/// Where the chain is, and what has begun and not ended.
#[derive(Debug)]
pub(super) struct State {
    head: Head,
    open: HashMap<String, Seq>,
    begun: BTreeSet<Seq>,
}

impl State {
    pub(super) fn at(head: Head) -> Self {
        Self {
            head,
            open: HashMap::new(),
            begun: BTreeSet::new(),
        }
    }

    pub(super) fn head(&self) -> &Head {
        &self.head
    }

    pub(super) fn advance(&mut self, head: Head) {
        self.head = head;
    }

    /// Notes an entry for what it begins or ends.
    pub(super) fn note(&mut self, seq: Seq, kind: EntryKind, action: Option<&str>) {
        let Some(action) = action else { return };
        match kind {
            EntryKind::Request => {
                if !self.open.contains_key(action) {
                    self.open.insert(action.to_owned(), seq);
                    self.begun.insert(seq);
                }
            }
            EntryKind::Outcome => {
                if let Some(seq) = self.open.remove(action) {
                    self.begun.remove(&seq);
                }
            }
            EntryKind::Begun
            | EntryKind::Decision
            | EntryKind::Approval
            | EntryKind::Answer
            | EntryKind::Grant
            | EntryKind::Revoked
            | EntryKind::Gap => {}
        }
    }

    /// Whether what began with this entry has not ended.
    pub(super) fn is_open(&self, seq: Seq) -> bool {
        self.begun.contains(&seq)
    }

    /// Up to where everything that began has ended.
    pub(super) fn quiet(&self) -> Seq {
        match self.begun.first() {
            Some(first) => Seq::new(first.get().saturating_sub(1)),
            None => self.head.seq,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::canonical;

    fn entry(some: Option<&str>) -> NewEntry {
        NewEntry {
            kind: EntryKind::Request,
            at: Millis(1_700_000_000_123),
            actor: "person:\"ada\"".into(),
            role: some.map(Into::into),
            session: some.map(Into::into),
            workspace: some.map(Into::into),
            action_id: some.map(Into::into),
            data: json!({"z": [1, 2.5, null], "a": {"é": "\u{7f}\n"}}).into(),
        }
    }

    #[test]
    fn the_hash_is_the_digest_of_all_that_is_written_but_itself() {
        for some in [None, Some("one")] {
            let redactor = Redactor::new([], []).unwrap();
            let prepared = Prepared::new(&redactor, entry(some));
            let (event, head) = prepared.link(&Head::before_the_first());
            let read = |event: &NewEvent| -> serde_json::Map<String, Value> {
                serde_json::from_str(event.data.as_str()).unwrap()
            };
            let mut fields = read(&event);
            let hash = fields.remove("hash").unwrap();
            assert_eq!(hash, head.hash.as_str());
            assert_eq!(canonical::digest(&fields).unwrap(), head.hash);
            // Written a second time, after another, it is the same but for its place.
            let again = read(&prepared.link(&head).0);
            fields.insert("seq".into(), json!(2));
            fields.insert("prev".into(), hash);
            fields.insert("hash".into(), again["hash"].clone());
            assert_eq!(again, fields);
        }
    }

    #[test]
    fn it_is_quiet_up_to_the_first_that_has_not_ended() {
        let mut state = State::at(Head::before_the_first());
        let mut quiet = Vec::new();
        for (seq, kind, action) in [
            (1, EntryKind::Begun, None),
            (2, EntryKind::Request, Some("a")),
            (3, EntryKind::Request, Some("b")),
            (4, EntryKind::Outcome, Some("a")),
            (5, EntryKind::Outcome, Some("unheard of")),
            (6, EntryKind::Outcome, Some("b")),
        ] {
            let seq = Seq::new(seq);
            state.note(seq, kind, action);
            state.advance(Head {
                seq,
                ..Head::before_the_first()
            });
            quiet.push(state.quiet().get());
        }
        assert_eq!(quiet, [1, 1, 1, 2, 2, 6]);
    }
}
