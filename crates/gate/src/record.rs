//! What is written about an action: entries of the ledger, and events of the action's own stream.
//! Both go into the store together, before anything is told or run.

use std::borrow::Cow;

use policy::{Because, Decision, Verdict};
use protocol::approval::{Approval, Resolved, RuleInfo};
use protocol::sandbox::SandboxReport;
use protocol::{Digest, Facts, Failure};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use store::{Append, Expected, Json, Millis, NewEvent, Store, StoreError, StreamName};

use crate::gate::Inner;
use crate::job::Job;
use crate::ledger::{Data, EntryKind, NewEntry};
use crate::redact::{Redactor, hide};
use crate::undo::Changed;

/// The events of an action's stream.
pub(crate) mod events {
    /// It was asked for.
    pub(crate) const REQUESTED: &str = "action.requested";
    /// It was decided on.
    pub(crate) const DECIDED: &str = "action.decided";
    /// A person is asked.
    pub(crate) const ASKED: &str = "permission.requested";
    /// The question is closed.
    pub(crate) const ANSWERED: &str = "permission.resolved";
    /// Some of its output.
    pub(crate) const OUTPUT: &str = "action.output";
    /// Output that was not kept.
    pub(crate) const DROPPED: &str = "action.dropped";
    /// The terminal it opened has ended.
    pub(crate) const EXITED: &str = "terminal.exited";
    /// It has ended.
    pub(crate) const ENDED: &str = "action.ended";
}

/// Results beyond this are not kept in the stream.
const MAX_RESULT: usize = 256 * 1024;

/// The stream of an action.
pub(crate) fn stream_of(id: &str) -> Result<StreamName, StoreError> {
    StreamName::new(["action/", id].concat()).map_err(|error| StoreError::Failed(error.to_string()))
}

/// The stream of what a person is asked.
pub(crate) fn inbox_of(person: &str) -> Result<StreamName, StoreError> {
    StreamName::new(["inbox/", person].concat())
        .map_err(|error| StoreError::Failed(error.to_string()))
}

/// What is to be written at once.
pub(crate) struct Record<'a> {
    job: &'a Job,
    redactor: &'a Redactor,
    at: Millis,
    first: bool,
    entries: Vec<NewEntry>,
    events: Vec<NewEvent>,
    beside: Vec<Append>,
}

impl<'a> Record<'a> {
    pub(crate) fn of(job: &'a Job, redactor: &'a Redactor, at: Millis) -> Self {
        Self {
            job,
            redactor,
            at,
            first: false,
            entries: Vec::new(),
            events: Vec::new(),
            beside: Vec::new(),
        }
    }

    /// It was asked for: the first that is known of it.
    pub(crate) fn request(&mut self) {
        let (job, redactor) = (self.job, self.redactor);
        self.first = true;
        let params = redactor.part(&job.params);
        let parents = json!(job.parents);
        let parents = redactor.part(&parents);
        let entry = redactor
            .draft()
            .word("action", job.name.as_str())
            .word("content", job.content.as_str())
            .word("mode", job.mode.as_str())
            .part("params", &params)
            .part("parents", &parents);
        self.entry(EntryKind::Request, entry.entry(&job.secrets));
        let event = redactor
            .draft()
            .word("action", job.name.as_str())
            .string("actor", &job.actor)
            .word("content", job.content.as_str())
            .word("mode", job.mode.as_str())
            .part("params", &params)
            .part("parents", &parents)
            .string("person", &job.person)
            .string("role", &job.role)
            .maybe("session_id", job.session.as_deref())
            .string("workspace", &job.workspace.name);
        self.event(events::REQUESTED, event.event(&job.secrets));
    }

    /// What was decided on the facts, which are [`written`](crate::job::written) too.
    pub(crate) fn decision(
        &mut self,
        decision: &Decision,
        facts: &Facts,
        written: &Value,
        digest: &Digest,
        policy: &Digest,
    ) {
        let redactor = self.redactor;
        let rule = json!(rule_info(&decision.because));
        let (rule, known) = (redactor.part(&rule), redactor.part(written));
        let entry = redactor
            .draft()
            .word("digest", digest.as_str())
            .part("facts", &known)
            .word("mode", decision.mode.as_str())
            .word("policy", policy.as_str())
            .part("rule", &rule)
            .word("verdict", decision.verdict.as_str());
        self.entry(EntryKind::Decision, entry.entry(&self.job.secrets));
        // Who asked reads the events; the ledger is for people alone.
        let less;
        let told = match self.job.told(facts, decision.verdict) {
            Cow::Borrowed(_) => known,
            Cow::Owned(told) => {
                less = json!(told);
                redactor.part(&less)
            }
        };
        let event = redactor
            .draft()
            .part("facts", &told)
            .word("mode", decision.mode.as_str())
            .part("rule", &rule)
            .word("verdict", decision.verdict.as_str());
        self.event(events::DECIDED, event.event(&self.job.secrets));
    }

    pub(crate) fn question(&mut self, approval: &Approval) -> Result<(), StoreError> {
        self.entry(
            EntryKind::Approval,
            json!({
                "approval_id": approval.id, "digest": approval.digest, "subject": approval.subject,
                "rule": approval.rule, "questions": approval.questions, "expires_at": approval.expires_at,
            }),
        );
        let mut told = json!(approval);
        // What it looks like now is asked for; here it would be old.
        if let Some(told) = told.as_object_mut() {
            told.remove("to");
            // It shows what is in a file, and that is not for the record.
            told.remove("preview");
        }
        self.inbox(events::ASKED, told.clone())?;
        told["facts"] = json!(self.job.told(&approval.facts, Verdict::Ask));
        if self.job.actor.starts_with("agent:") && self.job.is_beyond(&approval.facts) {
            // They name where links lead, which who asks may not know.
            told["questions"] = json!([]);
        }
        self.event_of(events::ASKED, told);
        Ok(())
    }

    pub(crate) fn answer(
        &mut self,
        resolved: &Resolved,
        digest: &Digest,
    ) -> Result<(), StoreError> {
        let mut data = json!(resolved);
        data["digest"] = json!(digest);
        self.entry(EntryKind::Answer, data);
        self.event_of(events::ANSWERED, json!(resolved));
        self.inbox(events::ANSWERED, json!(resolved))
    }

    pub(crate) fn outcome(
        &mut self,
        outcome: &Result<&RawValue, &Failure>,
        duration_ms: u64,
        changed: &Changed,
    ) {
        let mut data = match outcome {
            Ok(result) => summary(result),
            Err(failure) => {
                json!({"status": "failed", "kind": failure.kind, "error": failure.message})
            }
        };
        data["duration_ms"] = json!(duration_ms);
        changed.tell(&mut data);
        self.entry(EntryKind::Outcome, data);
        if let Ok(result) = outcome
            && changed.is_nothing()
            && result.get().len() <= MAX_RESULT
        {
            let draft = self.redactor.draft().number("duration_ms", duration_ms);
            let draft = draft.raw("result", result).word("status", "done");
            return self.event(events::ENDED, draft.event(&self.job.secrets));
        }
        let mut told = told(outcome, duration_ms);
        changed.tell(&mut told);
        self.event_of(events::ENDED, told);
    }

    pub(crate) fn entry(&mut self, kind: EntryKind, data: impl Into<Data>) {
        let job = self.job;
        let mut data = data.into();
        if let Data::Value(value) = &mut data {
            hide(&job.secrets, value);
        }
        self.entries.push(NewEntry {
            kind,
            at: self.at,
            actor: job.actor.clone(),
            role: Some(job.role.clone()),
            session: job.session.clone(),
            workspace: Some(job.workspace.name.clone()),
            action_id: Some(job.id.clone()),
            data,
        });
    }

    /// The same by somebody else than who asked: a person who answers.
    pub(crate) fn by(&mut self, actor: &str) {
        for entry in &mut self.entries {
            entry.actor = actor.to_owned();
        }
    }

    pub(crate) fn beside(&mut self, append: Append) {
        self.beside.push(append);
    }

    fn event(&mut self, kind: &'static str, data: Json) {
        self.events.push(NewEvent {
            kind: kind.into(),
            at: self.at,
            data,
        });
    }

    /// The same of a value.
    fn event_of(&mut self, kind: &'static str, data: Value) {
        self.event(kind, self.redactor.event(data, &self.job.secrets));
    }

    fn inbox(&mut self, kind: &'static str, data: Value) -> Result<(), StoreError> {
        self.beside.push(Append {
            stream: inbox_of(&self.job.person)?,
            expected: Expected::Any,
            events: vec![NewEvent {
                kind: kind.into(),
                at: self.at,
                data: self.redactor.event(data, &self.job.secrets),
            }],
        });
        Ok(())
    }

    /// Writes all of it, or nothing.
    pub(crate) async fn write<S: Store>(mut self, gate: &Inner<S>) -> Result<(), StoreError> {
        self.beside.push(Append {
            stream: stream_of(&self.job.id)?,
            expected: if self.first {
                Expected::Head(store::Seq::START)
            } else {
                Expected::Any
            },
            events: self.events,
        });
        gate.ledger.write(self.entries, self.beside).await.map(drop)
    }
}

/// An outcome as clients are told.
pub(crate) fn told(outcome: &Result<&RawValue, &Failure>, duration_ms: u64) -> Value {
    match outcome {
        Ok(result) if result.get().len() > MAX_RESULT => json!({
            "status": "done", "duration_ms": duration_ms,
            "dropped": {"bytes": result.get().len()},
        }),
        Ok(result) => json!({
            "status": "done", "duration_ms": duration_ms,
            "result": serde_json::from_str::<Value>(result.get()).unwrap_or_default(),
        }),
        Err(failure) => {
            let mut data = json!({
                "status": "failed", "duration_ms": duration_ms, "kind": failure.kind,
                "error": failure.message,
            });
            if !failure.details.is_empty() {
                data["details"] = json!(failure.details);
            }
            data
        }
    }
}

/// What the ledger keeps of a result: what it was, not what was in it.
fn summary(result: &RawValue) -> Value {
    #[derive(Deserialize)]
    struct Known {
        exit_code: Option<i32>,
        signal: Option<String>,
        timed_out: Option<bool>,
        sandbox: Option<SandboxReport>,
        digest: Option<Digest>,
        terminal_id: Option<String>,
    }
    let mut data = json!({"status": "done", "bytes": result.get().len()});
    let Ok(known) = serde_json::from_str::<Known>(result.get()) else {
        return data;
    };
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            data[name] = value;
        }
    };
    set("exit_code", known.exit_code.map(Value::from));
    set("signal", known.signal.map(Value::from));
    set(
        "timed_out",
        known.timed_out.filter(|out| *out).map(Value::from),
    );
    set("digest", known.digest.map(|digest| json!(digest)));
    set("terminal_id", known.terminal_id.map(Value::from));
    set("sandbox", known.sandbox.map(|report| json!(report)));
    data
}

/// What made a decision, as it crosses a boundary.
pub(crate) fn rule_info(because: &Because) -> RuleInfo {
    let kind = json!(because.kind);
    RuleInfo {
        kind: kind.as_str().unwrap_or_default().to_owned(),
        text: because.text.clone(),
        reason: because.reason.clone(),
        file: because.origin.file.clone(),
        line: because.origin.line,
    }
}
