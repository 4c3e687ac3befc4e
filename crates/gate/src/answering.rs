//! A person's answer: what it makes, and how it is taken back.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use policy::{Confinement, Verb, Verdict};
use protocol::approval::{
    AnswerParams, AnswerScope, Choice, GrantInfo, Resolution, Resolved, Subject,
};
use protocol::{ErrorKind, Facts, Failure, Mode};
use store::Store;

use crate::actor::Actor;
use crate::asking::not_yours;
use crate::clock::now;
use crate::gate::{Gate, Inner};
use crate::grants;
use crate::inbox::{Answered, Lifts, Open};
use crate::job::Job;
use crate::ledger::EntryKind;
use crate::path::{denied, unwritten};
use crate::record::Record;
use crate::request::new_id;

/// What a question needs to be answered with grants.
pub(crate) struct Lifted {
    pub(crate) job: Arc<Job>,
    /// Where the policy is; what counts is the policy of the answer's time.
    pub(crate) config: PathBuf,
    pub(crate) facts: Facts,
    pub(crate) verb: Verb,
    /// The mode that it was asked in, which says whether a wall can be held there.
    pub(crate) mode: Mode,
}

impl Lifted {
    /// Looks whether the policy, with these grants, has nothing left to ask.
    pub(crate) fn check(self) -> Lifts {
        Box::new(move |grants| {
            let Self {
                job,
                config,
                facts,
                verb,
                mode,
            } = &self;
            let book = job.workspace.policy(config)?;
            let confinement = match mode {
                Mode::Sandbox => Confinement::Kernel,
                Mode::Full => Confinement::Absent,
            };
            let decision = job.decide(&book, *verb, facts, confinement, grants)?;
            match decision.verdict {
                Verdict::Allow => return Ok(()),
                // By a rule that came after the question, which no grant answers for.
                Verdict::Deny => return Err(denied(&decision)),
                Verdict::Ask => {}
            }
            let open = decision
                .steps
                .iter()
                .find(|step| step.verdict != Verdict::Allow);
            let left = open.map_or("all of it", |step| step.touch.as_str());
            Err(Failure::new(
                ErrorKind::InvalidParams,
                format!(
                    "These patterns do not answer the question: they leave open {left}. Widen them, or answer once."
                ),
            ))
        })
    }
}

impl<S: Store> Gate<S> {
    /// Answers a question. The first valid answer wins; a later one learns who was first.
    pub async fn answer(
        &self,
        actor: &Actor,
        id: &str,
        params: AnswerParams,
    ) -> Result<Resolved, Failure> {
        actor.must_be_person("answer an approval")?;
        self.0.answer(actor, id, params).await
    }

    /// Takes a grant back. It holds no longer when this returns, also for what runs.
    pub async fn revoke(&self, actor: &Actor, id: &str) -> Result<GrantInfo, Failure> {
        let person = actor.must_be_person("revoke a grant")?;
        let gate = &self.0;
        let Some(info) = gate.grants.get(person, id) else {
            let shown: String = id.chars().take(100).collect();
            return Err(Failure::new(
                ErrorKind::Unknown,
                format!("There is no grant `{shown}` that is yours. `ward grants` lists them."),
            ));
        };
        gate.grants.revoked(&info.id);
        let at = now();
        let entry = crate::ledger::NewEntry {
            kind: EntryKind::Revoked,
            at,
            actor: actor.name(),
            role: Some(info.role.clone()),
            session: info.session_id.clone(),
            workspace: Some(info.workspace.clone()),
            action_id: None,
            data: serde_json::json!({ "grant": info }).into(),
        };
        let written = gate
            .ledger
            .write(vec![entry], vec![gate.grants.revoking(&info.id, at)]);
        // What it let through is open still: that ends too, whether or not this can be written.
        let (written, ()) = tokio::join!(written, gate.review(&info.workspace));
        written.map_err(|error| unwritten(&error))?;
        Ok(info)
    }
}

impl<S: Store> Inner<S> {
    async fn answer(
        &self,
        actor: &Actor,
        id: &str,
        params: AnswerParams,
    ) -> Result<Resolved, Failure> {
        let person = actor.person();
        let by = actor.name();
        let at = now();
        let mut made = Vec::new();
        self.opened(id).await;
        self.expire(person, at).await;
        let (open, resolved) = self.inbox.take(id, |open| {
            if open.person != person {
                return Err(not_yours(id));
            }
            if open.approval.digest != params.digest {
                return Err(Failure::new(
                    ErrorKind::Changed,
                    "This answer is about something else than what is asked now. Look at the question again.",
                )
                .with("digest", open.approval.digest.as_str()));
            }
            made = self.grants_of(open, &params, &by, at.0)?;
            Ok(Resolved {
                approval_id: open.approval.id.clone(),
                action_id: open.approval.action_id.clone(),
                resolution: match params.decision {
                    Choice::Allow => Resolution::Allowed,
                    Choice::Deny => Resolution::Denied,
                },
                by: Some(by.clone()),
                scope: Some(params.scope),
                reason: params.reason.clone(),
                grants: made.iter().map(|grant| grant.pattern.clone()).collect(),
            })
        })?;
        if let Err(failure) = self.write_answer(&open, &resolved, &made, Some(&by)).await {
            self.inbox.put_back(open);
            return Err(failure);
        }
        // Before anything can run: after this it never begins by itself again.
        self.pending.answered(&open.approval.id);
        self.grants.made(person, made);
        let answered = match params.decision {
            Choice::Allow => Answered::Allowed(params.scope),
            Choice::Deny => Answered::Denied {
                by,
                reason: params.reason,
            },
        };
        // Who waited may have gone; then nothing runs.
        let _ = open.answer.send(answered);
        self.pending.forget(&open.approval.id);
        self.inbox.tell_closed(person, Arc::clone(&resolved));
        Ok(Arc::unwrap_or_clone(resolved))
    }

    /// The grants that an answer makes, after looking whether they answer the whole question.
    fn grants_of(
        &self,
        open: &Open,
        params: &AnswerParams,
        by: &str,
        at: u64,
    ) -> Result<Vec<GrantInfo>, Failure> {
        let approval = &open.approval;
        let session = match (params.decision, params.scope) {
            (Choice::Deny, _) | (_, AnswerScope::Once) => return Ok(Vec::new()),
            (Choice::Allow, AnswerScope::Workspace) => None,
            (Choice::Allow, AnswerScope::Session) => match &approval.session_id {
                Some(session) => Some(session.clone()),
                None => {
                    return Err(Failure::new(
                        ErrorKind::InvalidParams,
                        "This action belongs to no session. Answer once, or for the workspace.",
                    ));
                }
            },
        };
        is_to_come(params.expires_at, at)?;
        let patterns: Vec<String> = match &params.patterns {
            Some(patterns) => patterns.clone(),
            None => approval
                .questions
                .iter()
                .map(|question| {
                    question.pattern.clone().ok_or_else(|| {
                        Failure::new(
                            ErrorKind::InvalidParams,
                            format!(
                                "No pattern can stand for this: {}. Answer it once.",
                                question.touch
                            ),
                        )
                    })
                })
                .collect::<Result<_, _>>()?,
        };
        // One grant for each, so that revoking it is enough.
        let mut seen = HashSet::new();
        let mut infos = Vec::with_capacity(patterns.len());
        for pattern in patterns {
            if !seen.insert(pattern.clone()) {
                continue;
            }
            infos.push(GrantInfo {
                id: new_id()?,
                pattern,
                wall: matches!(approval.subject, Subject::Again { .. }),
                role: approval.role.clone(),
                session_id: session.clone(),
                actor: approval.actor.clone(),
                workspace: approval.workspace.clone(),
                by: by.to_owned(),
                at,
                expires_at: params.expires_at,
            });
        }
        let mut all = self.grants.current(&open.person).to_vec();
        for info in &infos {
            all.push(grants::read(info)?);
        }
        (open.lifts)(&all)?;
        Ok(infos)
    }

    /// Writes what became of a question.
    pub(crate) async fn write_answer(
        &self,
        open: &Open,
        resolved: &Resolved,
        made: &[GrantInfo],
        by: Option<&str>,
    ) -> Result<(), Failure> {
        let approval = &open.approval;
        let Some(job) = self.jobs.get(&approval.action_id) else {
            return Err(Failure::new(
                ErrorKind::Closed,
                "The action that asked has ended.",
            ));
        };
        let mut record = Record::of(&job, &self.redactor, now());
        let told = record.answer(resolved, &approval.digest);
        told.map_err(|error| unwritten(&error))?;
        for grant in made {
            record.entry(EntryKind::Grant, serde_json::json!({ "grant": grant }));
        }
        if !made.is_empty() {
            record.beside(self.grants.making(&open.person, made, now()));
        }
        if let Some(by) = by {
            record.by(by);
        }
        record
            .write(self)
            .await
            .map_err(|error| unwritten(&error))?;
        self.stir(&job.id);
        Ok(())
    }
}

/// Refuses an end of grants that is past: they would answer nothing.
fn is_to_come(expires_at: Option<u64>, now: u64) -> Result<(), Failure> {
    match expires_at {
        Some(end) if end <= now => Err(Failure::new(
            ErrorKind::InvalidParams,
            format!(
                "The time in `expires_at` is past: {end}, and it is {now} now, in milliseconds since 1970. Give a later one, or leave it out."
            ),
        )),
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expiry_that_is_past_is_told_as_such() {
        for end in [None, Some(1_001), Some(u64::MAX)] {
            assert_eq!(is_to_come(end, 1_000), Ok(()));
        }
        for end in [0, 999, 1_000] {
            let refused = is_to_come(Some(end), 1_000).unwrap_err();
            assert_eq!(refused.kind, ErrorKind::InvalidParams);
            assert!(refused.message.contains("is past"), "{refused}");
        }
    }
}
