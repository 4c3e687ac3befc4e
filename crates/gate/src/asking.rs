//! A question to a person: how it is opened, waited for, and closed without an answer.

use std::sync::Arc;
use std::time::Duration;

use policy::{Decision, Verb, Verdict};
use protocol::approval::{
    AnswerScope, Approval, AskedAgain, Question, Resolution, Resolved, Subject,
};
use protocol::{Digest, ErrorKind, Facts, Failure};
use store::{Millis, Store};
use tokio::sync::oneshot;

use crate::answering::Lifted;
use crate::clock::now;
use crate::gate::Inner;
use crate::inbox::{Answered, Lifts, Open};
use crate::job::Job;
use crate::live::{Live, State};
use crate::path::unwritten;
use crate::pending::Waiting;
use crate::preview;
use crate::record::{Record, rule_info};
use crate::request::{Ask, new_id};

/// How often it is looked whether who asked may still ask.
const LOOK: Duration = Duration::from_secs(1);
/// How often it is looked whether a question's time is over: while the machine sleeps, timers stand
/// still and the time goes on.
const OVER: Duration = Duration::from_secs(30);

/// An answer that is waited for.
pub(crate) struct Answer {
    approval: Approval,
    person: String,
    answered: oneshot::Receiver<Answered>,
}

impl Answer {
    /// What is asked.
    pub(crate) fn approval(&self) -> &Approval {
        &self.approval
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
            Subject::Action => job.verb(),
            Subject::Host { .. } => Verb::Net,
            Subject::Again { .. } => Verb::Wall,
        };
        let lifts = Lifted {
            job: Arc::clone(job),
            config: self.options.config.clone(),
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
    pub(crate) fn stir(&self, id: &str) {
        if let Some(live) = self.actions.get(id) {
            live.has_asked();
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
        let answered = tokio::select! {
            biased;
            answered = answered => answered.ok(),
            () = is_over(&approval) => None,
            gone = self.off_the_roll(&approval.actor) => {
                let how = Resolution::Withdrawn;
                let reason = Some(gone.message.as_str());
                self.close_unanswered(&person, &approval, how, reason).await;
                return Err(gone);
            }
        };
        match answered {
            Some(Answered::Allowed(scope)) => Ok(scope),
            Some(Answered::Denied { by, reason }) => Err(said_no(&by, reason.as_deref())),
            None if approval.expires_at > now().0 => Err(Failure::new(
                ErrorKind::Cancelled,
                "The question was withdrawn.",
            )),
            None => {
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

    /// Closes those of a person whose time is over, and who waits for which may not have seen it.
    pub(crate) async fn expire(&self, person: &str, now: Millis) {
        let is_over = |approval: &Approval| approval.expires_at <= now.0;
        for approval in self.inbox.select(person, is_over) {
            self.close_unanswered(person, &approval, Resolution::Expired, None)
                .await;
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
}

/// Ready when a question's time is over.
async fn is_over(approval: &Approval) {
    loop {
        let left = Duration::from_millis(approval.expires_at.saturating_sub(now().0));
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(OVER)).await;
    }
}

pub(crate) fn not_yours(id: &str) -> Failure {
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
