//! How an entry is linked to the one before it, and what the chain knows while it grows.

use std::collections::{BTreeSet, HashMap};

use protocol::Digest;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use store::{Event, Millis, NewEvent, Seq};

use super::entry::{EntryKind, NewEntry};
use super::head::Head;
use super::text;

/// An entry that is ready but for its place: what does not depend on the one before it is hashed,
/// so that little is left to do in line.
///
/// Canonical JSON sorts its fields by name, and `prev` comes after all that can be long.
#[derive(Debug)]
pub(super) struct Prepared {
    kind: EntryKind,
    at: Millis,
    action: Option<String>,
    /// What is written, without place and hashes. It goes to the store the first time, and is read
    /// from the text where it has to be written again.
    fields: Option<Map<String, Value>>,
    /// The text up to the digest of the entry before, and the hash so far.
    front: Vec<u8>,
    hashed: Sha256,
    /// The text between that digest and the place, and after the place.
    middle: Vec<u8>,
    back: Vec<u8>,
}

impl Prepared {
    pub(super) fn new(entry: NewEntry) -> Self {
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
        let mut front = Vec::with_capacity(512);
        front.push(b'{');
        let pair = |text: &mut Vec<u8>, name: &str, value: &str| {
            text.push(b'"');
            text.extend_from_slice(name.as_bytes());
            text.extend_from_slice(b"\":");
            text::push_string(text, value);
        };
        if let Some(id) = &action_id {
            pair(&mut front, "action_id", id);
            front.push(b',');
        }
        pair(&mut front, "actor", &actor);
        front.extend_from_slice(b",\"at\":");
        text::push_whole(&mut front, at.0);
        front.extend_from_slice(b",\"data\":");
        text::push(&mut front, &data);
        front.push(b',');
        pair(&mut front, "kind", kind.as_str());
        front.extend_from_slice(b",\"prev\":\"");
        let mut middle = Vec::with_capacity(64);
        middle.push(b'"');
        if let Some(role) = &role {
            middle.push(b',');
            pair(&mut middle, "role", role);
        }
        middle.extend_from_slice(b",\"seq\":");
        let mut back = Vec::with_capacity(128);
        for (name, value) in [("session", &session), ("workspace", &workspace)] {
            if let Some(value) = value {
                back.push(b',');
                pair(&mut back, name, value);
            }
        }
        back.push(b'}');

        let mut fields = Map::new();
        fields.insert("actor".into(), actor.into());
        fields.insert("at".into(), at.0.into());
        fields.insert("data".into(), data);
        fields.insert("kind".into(), kind.as_str().into());
        for (name, value) in [
            ("action_id", action_id.clone()),
            ("role", role),
            ("session", session),
            ("workspace", workspace),
        ] {
            if let Some(value) = value {
                fields.insert(name.into(), value.into());
            }
        }
        Self {
            kind,
            at,
            action: action_id,
            fields: Some(fields),
            hashed: Sha256::new_with_prefix(&front),
            front,
            middle,
            back,
        }
    }

    /// The event that follows `head`, and the head that it makes.
    pub(super) fn link(&mut self, head: &Head) -> Result<(NewEvent, Head), serde_json::Error> {
        let seq = head.seq.next();
        let mut rest = Vec::with_capacity(256);
        rest.extend_from_slice(head.hash.as_str().as_bytes());
        rest.extend_from_slice(&self.middle);
        text::push_whole(&mut rest, seq.get());
        rest.extend_from_slice(&self.back);
        let hash = Digest::from_hash(&self.hashed.clone().chain_update(&rest).finalize().into());
        let mut fields = match self.fields.take() {
            Some(fields) => fields,
            None => {
                let text = [self.front.as_slice(), rest.as_slice()].concat();
                serde_json::from_slice(&text)?
            }
        };
        fields.insert("seq".into(), seq.get().into());
        fields.insert("prev".into(), head.hash.as_str().into());
        fields.insert("hash".into(), hash.as_str().into());
        let event = NewEvent {
            kind: self.kind.as_str().to_owned(),
            at: self.at,
            data: Value::Object(fields),
        };
        Ok((event, Head { seq, hash }))
    }

    pub(super) fn kind(&self) -> EntryKind {
        self.kind
    }

    pub(super) fn action(&self) -> Option<&str> {
        self.action.as_deref()
    }
}

/// The hash that an entry should have, from what is written.
pub(super) fn hash_of(event: &Event) -> Option<Digest> {
    let mut fields = event.data.as_object()?.clone();
    fields.remove("hash")?;
    let mut text = Vec::with_capacity(1024);
    text::push(&mut text, &Value::Object(fields));
    Some(Digest::of(&text))
}

/// The hash that an entry says it has.
pub(super) fn hash_told(event: &Event) -> Option<Digest> {
    serde_json::from_value(event.data.get("hash")?.clone()).ok()
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
            data: json!({"z": [1, 2.5, null], "a": {"é": "\u{7f}\n"}}),
        }
    }

    #[test]
    fn the_hash_is_the_digest_of_all_that_is_written_but_itself() {
        for some in [None, Some("one")] {
            let mut prepared = Prepared::new(entry(some));
            let head = Head::before_the_first();
            let (event, head) = prepared.link(&head).unwrap();
            let mut fields = event.data.as_object().unwrap().clone();
            let hash = fields.remove("hash").unwrap();
            assert_eq!(hash, head.hash.as_str());
            assert_eq!(canonical::digest(&fields).unwrap(), head.hash);
            // Written a second time, after another, it is the same but for its place.
            let (again, _) = prepared.link(&head).unwrap();
            fields.insert("seq".into(), json!(2));
            fields.insert("prev".into(), hash);
            fields.insert("hash".into(), again.data["hash"].clone());
            assert_eq!(again.data, Value::Object(fields));
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
