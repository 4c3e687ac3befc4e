//! A question to a person: how it is opened, answered, and closed without an answer.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use policy::{Confinement, Decision, Verb, Verdict};
use protocol::approval::{
    AnswerParams, AnswerScope, Approval, AskedAgain, Choice, GrantInfo, Question, Resolution,
    Resolved, Subject,
};
use protocol::{Digest, ErrorKind, Facts, Failure, Mode};
use store::Store;
use tokio::sync::oneshot;

use crate::actor::Actor;
use crate::clock::now;
use crate::files::Files;
use crate::gate::{Gate, Inner};
use crate::grants;
use crate::inbox::{Answered, Lifts, Open};
use crate::job::Job;
use crate::ledger::EntryKind;
use crate::live::{Live, State};
use crate::path::unwritten;
use crate::pending::Waiting;
use crate::preview;
use crate::record::{Record, rule_info};
use crate::request::{Ask, new_id};

/// How often it is looked whether who asked may still ask.
const LOOK: Duration = Duration::from_secs(1);

/// An answer that is waited for.
pub(crate) struct Answer {
    approval: Approval,
    person: String,
    answered: oneshot::Receiver<Answered>,
}

/// What a question needs to be answered with grants.
pub(crate) struct Lifted {
    pub(crate) job: Arc<Job>,
    pub(crate) book: Arc<Files>,
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
                book,
                facts,
                verb,
                mode,
            } = &self;
            let confinement = match mode {
                Mode::Sandbox => Confinement::Kernel,
                Mode::Full => Confinement::Absent,
            };
            let decision = job.decide(book, *verb, facts, confinement, grants)?;
            if decision.verdict == Verdict::Allow {
                return Ok(());
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

impl Answer {
    /// What is asked.
    pub(crate) fn approval(&self) -> &Approval {
        &self.approval
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
            data: serde_json::json!({ "grant": info }),
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
    /// Opens a question, and says what waits for its answer.
    #[allow(clippy::too_many_arguments, reason = "all of it is what is asked")]
    pub(crate) async fn ask(
        &self,
        job: &Arc<Job>,
        live: Option<&Live>,
        subject: Subject,
        book: &Arc<Files>,
        facts: &Facts,
        decision: &Decision,
        digest: &Digest,
        again: Option<AskedAgain>,
    ) -> Result<Answer, Failure> {
        if job.ask == Ask::Deny {
            return Err(nobody(decision));
        }
        let mut approval = self.approval(job, subject, facts, decision, digest)?;
        approval.again = again;
        if approval.subject == Subject::Action {
            approval.preview = preview::of(job.name, &job.params, facts).await;
        }
        let verb = match &approval.subject {
            Subject::Action => Verb::Action(job.name),
            Subject::Host { .. } => Verb::Net,
            Subject::Again { .. } => Verb::Wall,
        };
        let lifts = Lifted {
            job: Arc::clone(job),
            book: Arc::clone(book),
            facts: facts.clone(),
            verb,
            mode: decision.mode,
        };
        let state = State::Asking {
            approval_id: approval.id.clone(),
        };
        let answer = self.open(job, approval, lifts.check()).await?;
        if let Some(live) = live {
            live.state.send_replace(state);
        }
        Ok(answer)
    }

    fn approval(
        &self,
        job: &Job,
        subject: Subject,
        facts: &Facts,
        decision: &Decision,
        digest: &Digest,
    ) -> Result<Approval, Failure> {
        let asking = decision
            .steps
            .iter()
            .filter(|step| step.verdict == Verdict::Ask);
        let at = now();
        let patience = u64::try_from(self.options.patience.as_millis()).unwrap_or(u64::MAX);
        Ok(Approval {
            id: new_id()?,
            digest: digest.clone(),
            action_id: job.id.clone(),
            subject,
            action: job.name.as_str().to_owned(),
            params: job.params.clone(),
            facts: facts.clone(),
            role: job.role.clone(),
            actor: job.actor.clone(),
            mode: decision.mode,
            session_id: job.session.clone(),
            workspace: job.workspace.name.clone(),
            rule: rule_info(&decision.because),
            questions: asking
                .map(|step| Question {
                    touch: step.touch.clone(),
                    why: step.because.to_string(),
                    pattern: step.offer.clone(),
                    wider: step.offers_wider.clone(),
                })
                .collect(),
            preview: None,
            again: None,
            asked_at: at.0,
            expires_at: at.0.saturating_add(patience),
            to: None,
        })
    }

    /// Written, then told: the whole of it in a file of its own, then the record, then the inbox.
    async fn open(
        &self,
        job: &Arc<Job>,
        mut approval: Approval,
        lifts: Lifts,
    ) -> Result<Answer, Failure> {
        let waiting = Waiting {
            approval: approval.clone(),
            person: job.person.clone(),
            asked: job.kept(),
        };
        self.pending.keep(&waiting).map_err(|error| {
            Failure::new(
                ErrorKind::Internal,
                format!("The question could not be kept ({error}), so it was not asked. Look whether the disk is full."),
            )
        })?;
        let mut record = Record::of(job, &self.redactor, now());
        // Whoever reads of the question finds it.
        let opening = self.opening.read().await;
        let recorded = match record.question(&approval) {
            Ok(()) => record.write(self).await,
            Err(error) => Err(error),
        };
        if let Err(error) = recorded {
            self.pending.forget(&approval.id);
            return Err(unwritten(&error));
        }
        self.address(&mut approval, &job.person);
        let answer = self.put(approval, &job.person, lifts);
        drop(opening);
        self.stir(&job.id);
        answer
    }

    /// Lets whoever follows an action look at what was written about it.
    fn stir(&self, id: &str) {
        if let Some(live) = self.actions.get(id) {
            live.printed.send_modify(|_| ());
        }
    }

    /// Into the inbox, where it can be answered.
    pub(crate) fn put(
        &self,
        approval: Approval,
        person: &str,
        lifts: Lifts,
    ) -> Result<Answer, Failure> {
        let (answer, answered) = oneshot::channel();
        self.inbox.put(Open {
            approval: approval.clone(),
            person: person.to_owned(),
            lifts,
            answer,
        })?;
        Ok(Answer {
            approval,
            person: person.to_owned(),
            answered,
        })
    }

    /// Waits for a yes, and says so to whoever follows the action.
    pub(crate) async fn answered(&self, live: &Live, answer: Answer) -> Result<(), Failure> {
        let state = State::Asking {
            approval_id: answer.approval.id.clone(),
        };
        live.state.send_replace(state);
        self.wait(answer).await?;
        live.state.send_replace(State::Deciding);
        Ok(())
    }

    /// Waits for a yes, and answers how far it goes.
    pub(crate) async fn wait(&self, answer: Answer) -> Result<AnswerScope, Failure> {
        let Answer {
            approval,
            person,
            answered,
        } = answer;
        let left = Duration::from_millis(approval.expires_at.saturating_sub(now().0));
        let answered = tokio::time::timeout(left, answered);
        let answered = tokio::select! {
            biased;
            answered = answered => answered,
            gone = self.off_the_roll(&approval.actor) => {
                let how = Resolution::Withdrawn;
                let reason = Some(gone.message.as_str());
                self.close_unanswered(&person, &approval, how, reason).await;
                return Err(gone);
            }
        };
        match answered {
            Ok(Ok(Answered::Allowed(scope))) => Ok(scope),
            Ok(Ok(Answered::Denied { by, reason })) => Err(said_no(&by, reason.as_deref())),
            Ok(Err(_)) => Err(Failure::new(
                ErrorKind::Cancelled,
                "The question was withdrawn.",
            )),
            Err(_) => {
                self.close_unanswered(&person, &approval, Resolution::Expired, None)
                    .await;
                Err(Failure::new(
                    ErrorKind::Denied,
                    "Nobody answered in time, and no answer is not yes. Ask again when somebody is there.",
                )
                .with("approval_id", approval.id))
            }
        }
    }

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

    async fn write_answer(
        &self,
        open: &Open,
        resolved: &Resolved,
        made: &[GrantInfo],
        by: Option<&str>,
    ) -> Result<(), Failure> {
        let approval = &open.approval;
        let Some(job) = self.job_of(&approval.action_id) else {
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

    /// Ready when who asked is an agent whose token was revoked: nobody need answer it any more.
    async fn off_the_roll(&self, actor: &str) -> Failure {
        if !actor.starts_with("agent:") {
            return std::future::pending().await;
        }
        loop {
            if let Err(gone) = self.is_on_the_roll(actor) {
                return gone;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Closes a question that nobody answered.
    pub(crate) async fn close_unanswered(
        &self,
        person: &str,
        approval: &Approval,
        how: Resolution,
        reason: Option<&str>,
    ) {
        let taken = self.inbox.take(&approval.id, |open| {
            if open.person != person {
                return Err(not_yours(&approval.id));
            }
            Ok(Resolved {
                approval_id: approval.id.clone(),
                action_id: approval.action_id.clone(),
                resolution: how,
                by: None,
                scope: None,
                reason: reason.map(ToOwned::to_owned),
                grants: Vec::new(),
            })
        });
        let Ok((open, resolved)) = taken else {
            return;
        };
        if let Err(failure) = self.write_answer(&open, &resolved, &[], None).await {
            tracing::error!(%failure, "the end of a question could not be written");
        }
        self.pending.forget(&approval.id);
        self.inbox.tell_closed(person, resolved);
    }

    /// Closes what a job asks: it was cancelled.
    pub(crate) async fn withdraw(&self, job: &Job) {
        for approval in self.inbox.list(&job.person) {
            if approval.action_id == job.id {
                self.close_unanswered(&job.person, &approval, Resolution::Withdrawn, None)
                    .await;
            }
        }
    }

    fn job_of(&self, id: &str) -> Option<Arc<Job>> {
        self.jobs.get(id)
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

fn not_yours(id: &str) -> Failure {
    Failure::new(
        ErrorKind::Unknown,
        format!("There is no approval `{id}` that is yours."),
    )
}

/// Where nobody can be asked, ask means deny.
pub(crate) fn nobody(decision: &Decision) -> Failure {
    Failure::new(
        ErrorKind::Denied,
        format!(
            "A person would have to be asked ({}), and here nobody can be. Allow it by a rule, or let it wait for an answer.",
            decision.because
        ),
    )
    .with("rule", serde_json::json!(rule_info(&decision.because)))
}

fn said_no(by: &str, reason: Option<&str>) -> Failure {
    let why = match reason {
        Some(reason) => format!(": {reason}"),
        None => ".".to_owned(),
    };
    let name = by.strip_prefix("person:").unwrap_or(by);
    Failure::new(ErrorKind::Denied, format!("{name} said no{why}"))
        .with("by", by)
        .with("reason", reason)
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
