//! The path of an action, in one straight line: facts, policy, ledger, ask, permit, runtime,
//! outcome.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use policy::{Confinement, Decision, Verdict};
use protocol::approval::Subject;
use protocol::wall::{WallParams, Widen};
use protocol::{Digest, ErrorKind, Facts, Failure, Mode};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use store::{Store, StoreError};

use crate::actor::Actor;
use crate::again::Seen;
use crate::asking::Answer;
use crate::clock::now;
use crate::files::Files;
use crate::gate::{Gate, Inner};
use crate::job::{Job, name_of, written};
use crate::live::{Begun, Ended, Live, State, used};
use crate::named::{Named, named};
use crate::pause::pause;
use crate::pending::Kept;
use crate::printing;
use crate::record::{Record, rule_info, stream_of};
use crate::redirected::redirected;
use crate::request::{Request, new_id};
use crate::runtime::{Permit, Runtime, Terms};
use crate::wall::{Before, led_away};

/// How often an action is decided anew because what it would touch keeps changing.
pub(crate) const TRIES: usize = 8;

impl<S: Store> Gate<S> {
    /// Takes an action in. It goes its way whether or not anybody waits for it; the same id again
    /// finds the same action.
    ///
    /// Refuses what an actor may not choose (`forbidden`), an id that was used for something else
    /// (`conflict`), and what is no action at all.
    pub async fn submit(&self, actor: &Actor, request: Request) -> Result<Arc<Live>, Failure> {
        let given = request.id.is_some();
        let (job, book) = self.0.admit(actor, request.bound_to(actor)?)?;
        let live = Arc::new(Live::of(&job));
        if let Begun::Known(live) = self.0.actions.begin(&live)? {
            return Ok(live);
        }
        if given {
            match self.0.recall(&job).await {
                Ok(None) => {}
                Ok(Some(ended)) => {
                    self.0.actions.ended(&live, ended);
                    return Ok(live);
                }
                Err(failure) => {
                    self.0.actions.forget(&job.id);
                    return Err(failure);
                }
            }
        }
        let inner = Arc::clone(&self.0);
        let followed = Arc::clone(&live);
        let (job, start) = (Arc::new(job), Start::New(book));
        tokio::spawn(async move { inner.carry_out(job, followed, start).await });
        Ok(live)
    }
}

/// Where an action begins.
pub(crate) enum Start {
    /// It was just taken in, under this policy.
    New(Arc<Files>),
    /// It was asked about before.
    Resumed(Box<Resumed>),
}

/// What was said yes to, for an action that is carried on with after a restart.
pub(crate) struct Resumed {
    pub(crate) answer: Answer,
    pub(crate) digest: Digest,
    pub(crate) widen: Vec<Widen>,
}

impl<S: Store> Inner<S> {
    /// The job that a request becomes, and the policy as it was then.
    pub(crate) fn admit(
        &self,
        actor: &Actor,
        request: Request,
    ) -> Result<(Job, Arc<Files>), Failure> {
        let name = name_of(&request.action)?;
        if !protocol::is_plain(&request.params) {
            return Err(Failure::new(
                ErrorKind::InvalidParams,
                "A field of `params` has a name that cannot be written down and read again. Leave it out.",
            )
            .with("field", "params"));
        }
        if let Some(id) = &request.id
            && matches!(self.redactor.redact_str(id), Cow::Owned(_))
        {
            // It is the name of what is written about the action, and could not be taken out of that.
            return Err(Failure::new(
                ErrorKind::InvalidParams,
                "`id` has a secret in it. Choose another, or leave it out.",
            )
            .with("field", "id"));
        }
        let runtime = request.runtime.filter(|choice| !choice.is_local());
        let is_the_runtimes = request.workspace.is_none() && runtime.is_some();
        let (workspace, book) = match (&request.workspace, &runtime) {
            (None, Some(choice)) => self.workspace_and_policy_of(actor, choice)?,
            (named, _) => self.workspace_and_policy(named.as_deref())?,
        };
        let mut kept = Kept {
            id: match request.id {
                Some(id) => id,
                None => new_id()?,
            },
            actor: actor.name(),
            action: request.action,
            params: request.params,
            role: match request.role {
                Some(role) => role,
                None => policy::builtin::DEFAULT_ROLE.to_owned(),
            },
            parents: request.parents,
            mode: request.mode.unwrap_or(Mode::Sandbox),
            workspace: workspace.real.clone(),
            session: request.session,
            runtime,
            ask: request.ask,
            content: Digest::of(b""),
        };
        // Sent again, it is the same also where that runtime is not known any more.
        let named = (!is_the_runtimes).then_some(&*workspace.name);
        kept.content = Job::content(&kept, named);
        let known = book.roles.get(&kept.role);
        known.map_err(unknown_role)?;
        let person = actor.person().to_owned();
        let mut job = Job::restored(kept, person, workspace, &self.options)?;
        job.name = name;
        Ok((job, book))
    }

    /// Where an action runs, as it is now: an editor may have come or gone since.
    pub(crate) fn runtime_of(&self, job: &Job) -> Result<Arc<dyn Runtime>, Failure> {
        let Some(choice) = &job.runtime else {
            return Ok(Arc::clone(&job.workspace.runtime));
        };
        let elsewhere = self.elsewhere.get().ok_or_else(|| {
            Failure::new(
                ErrorKind::NoRuntime,
                "No editor can connect to this Ward. Start it with `ward serve`.",
            )
        })?;
        elsewhere.find(&job.person, choice, &job.workspace.name, job.name)
    }

    /// From the request to the outcome, which is written before it is told.
    pub(crate) async fn carry_out(&self, job: Arc<Job>, live: Arc<Live>, start: Start) {
        let began = Instant::now();
        self.jobs.begin(job.id.clone(), &job);
        let outcome = tokio::select! {
            outcome = self.path(&job, &live, start) => outcome,
            () = live.cancel.cancelled() => {
                Box::pin(self.withdraw(&job)).await;
                Err(Failure::new(ErrorKind::Cancelled, "The action was cancelled."))
            }
        };
        if !(job.lasts() && outcome.is_ok()) {
            self.jobs.end(&job.id);
        }
        let duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let result: Result<Arc<RawValue>, Failure> = outcome.map(|done| Arc::from(done.result));
        let borrowed: Result<&RawValue, &Failure> = result.as_ref().map(|result| &**result);
        let workspace = &job.workspace.name;
        let changed = self
            .undo
            .after(&job.id, job.name, workspace, borrowed)
            .await;
        let mut record = Record::of(&job, &self.redactor, now());
        record.outcome(&borrowed, duration_ms, &changed);
        let outcome = match record.write(self).await {
            Ok(()) => result,
            Err(error) => Err(end_unwritten(&error, result.err())),
        };
        self.actions.ended(
            &live,
            Ended {
                outcome,
                duration_ms,
            },
        );
    }

    async fn path(&self, job: &Arc<Job>, live: &Arc<Live>, start: Start) -> Result<Done, Failure> {
        let mut approved = None;
        let mut widen = Vec::new();
        let mut again = None;
        let mut seen: Option<Box<Seen>> = None;
        let mut first = match start {
            Start::New(book) => Some(book),
            Start::Resumed(resumed) => {
                widen = resumed.widen;
                let before = Seen::new(resumed.answer.approval(), None, widen.len());
                again = Before::of(resumed.answer.approval(), &before).map(Box::new);
                seen = Some(Box::new(before));
                Box::pin(self.answered(live, resumed.answer)).await?;
                approved = Some(resumed.digest);
                None
            }
        };
        for _ in 0..TRIES {
            let decided = self.decide(job, first.take(), &widen).await?;
            let Decided {
                book,
                facts,
                written,
                decision,
                digest,
                unseen,
                expect: _,
            } = &decided;
            if decision.verdict != Verdict::Deny
                && let Some(before) = again.take()
            {
                // It was let run once, and is to run again; that may be another question by now.
                approved = Some(digest.clone());
                let asked = self.once_more(job, live, &decided, *before, &mut widen);
                if let Some(book) = Box::pin(asked).await? {
                    approved = Some(job.digest(written, decision.mode, &book, &widen)?);
                    continue;
                }
            }
            match decision.verdict {
                Verdict::Deny => return Err(denied(decision)),
                Verdict::Ask if approved.as_ref() == Some(digest) => {}
                Verdict::Ask => {
                    // Few are asked about, and all would carry the room that it takes.
                    let (about, version) = (Subject::Action, &book.version);
                    let changed = seen.as_ref().map(|seen| {
                        let workspace = &job.workspace.real;
                        seen.again(facts, decision.mode, version, widen.len(), workspace)
                    });
                    // Not by a name: what has one has its room in every action's future.
                    let answer = Box::pin(self.ask(
                        job,
                        Some(live),
                        about,
                        facts,
                        decision,
                        digest,
                        changed,
                    ))
                    .await?;
                    let before = Seen::new(answer.approval(), Some(version), widen.len());
                    seen = Some(Box::new(before));
                    Box::pin(self.answered(live, answer)).await?;
                    approved = Some(digest.clone());
                    // What was said yes to may have changed meanwhile: look again.
                    continue;
                }
                Verdict::Allow => {}
            }
            if let Some(failure) = unseen {
                return Err(failure.clone());
            }
            if let Some(path) = led_away(&widen) {
                return Err(Failure::new(
                    ErrorKind::Changed,
                    format!(
                        "{path}, for which the wall was to be opened, has become a link or is gone since it was asked about. The command was not run again. Look what is there, then ask anew."
                    ),
                ));
            }
            let done = match self.run(job, live, &decided, &widen).await {
                Err(failure) if has_changed(&failure) => continue,
                done => done?,
            };
            let Some(book) = self
                .wall_hit(job, live, &decided, &done, &mut widen)
                .await?
            else {
                return Ok(done);
            };
            // The same once more with a wider wall is what the yes was about.
            approved = Some(job.digest(written, decision.mode, &book, &widen)?);
        }
        Err(Failure::new(
            ErrorKind::Changed,
            "What the action would touch changed again and again while it was decided on. Try it when nothing else works there.",
        ))
    }

    /// Facts, policy, ledger. The first time, the request is written too, and the policy is the one
    /// it was taken in under, a moment ago; from then on it is looked at anew.
    async fn decide(
        &self,
        job: &Job,
        first: Option<Arc<Files>>,
        widen: &[Widen],
    ) -> Result<Decided, Failure> {
        let mut record = Record::of(job, &self.redactor, now());
        let is_first = first.is_some();
        let book = first.map_or_else(|| job.workspace.policy(&self.options.config), Ok);
        let looked = async { self.look(job, book?, widen).await };
        // The runtime looks while the request is made ready to be written.
        let asked = async {
            if is_first {
                pause().await;
                record.request();
            }
        };
        let (decided, ()) = tokio::join!(looked, asked);
        if let Ok(Decided {
            book,
            facts,
            written,
            decision,
            digest,
            ..
        }) = &decided
        {
            record.decision(decision, facts, written, digest, &book.version);
        } else if !is_first {
            return decided;
        }
        match record.write(self).await {
            Ok(()) => decided,
            Err(error) => Err(unwritten(&error)),
        }
    }

    /// Facts and policy, with nothing written and nothing done.
    pub(crate) async fn look(
        &self,
        job: &Job,
        book: Arc<Files>,
        widen: &[Widen],
    ) -> Result<Decided, Failure> {
        self.is_on_the_roll(&job.actor)?;
        let runtime = self.runtime_of(job)?;
        let resolved = runtime.resolve(job.name.as_str(), &job.params).await;
        let (facts, unseen) = match resolved {
            Ok(facts) => (facts, None),
            Err(mut failure) => match job.beyond(&mut failure) {
                Some(facts) => (facts, Some(failure)),
                None => return Err(failure),
            },
        };
        let grants = self.grants.current(&job.person);
        let verb = job.verb();
        let confinement = job.confinement(&*runtime);
        // A redirection is decided on where links lead it; the runtime is held to its own facts.
        // An editor that confines is on this machine, as the local runtime is.
        let is_here = job.runtime.is_none() || runtime.confinement() == Confinement::Kernel;
        let led = match is_here {
            true => redirected(&facts, &job.workspace.name),
            false => None,
        };
        let (facts, expect) = match led {
            Some(led) => (led, Some(facts)),
            None => (facts, None),
        };
        let decision = job.decide(&book, verb, &facts, confinement, &grants)?;
        // A person answers about what is in the script too; only where one is asked it is looked at.
        let (facts, expect) = match decision.verdict {
            Verdict::Ask => match Box::pin(self.with_files(job, &facts, decision.mode)).await? {
                Some(shown) => (shown, expect.or(Some(facts))),
                None => (facts, expect),
            },
            Verdict::Allow | Verdict::Deny => (facts, expect),
        };
        let written = written(&facts)?;
        let digest = job.digest(&written, decision.mode, &book, widen)?;
        Ok(Decided {
            book,
            facts,
            written,
            expect,
            decision,
            digest,
            unseen,
        })
    }

    /// The facts of a command with the files that its words name; none where they name none.
    pub(crate) async fn with_files(
        &self,
        job: &Job,
        facts: &Facts,
        mode: Mode,
    ) -> Result<Option<Facts>, Failure> {
        if !job.starts_a_command() {
            return Ok(None);
        }
        let home = self.options.home.as_deref();
        let named = named(facts, mode, &job.workspace.real, home).await?;
        if named == Named::default() {
            return Ok(None);
        }
        let mut facts = facts.clone();
        named.put_into(&mut facts);
        Ok(Some(facts))
    }

    /// Refuses what an agent asked for whose token was revoked since.
    pub(crate) fn is_on_the_roll(&self, actor: &str) -> Result<(), Failure> {
        let (Some(roll), Some(agent)) = (self.roll.get(), actor.strip_prefix("agent:")) else {
            return Ok(());
        };
        if roll(agent) {
            return Ok(());
        }
        Err(Failure::new(
            ErrorKind::Forbidden,
            "The token of the agent that asked for this was revoked. Nothing more is done for it.",
        ))
    }

    /// The permit, the runtime, what it printed.
    async fn run(
        &self,
        job: &Arc<Job>,
        live: &Arc<Live>,
        decided: &Decided,
        widen: &[Widen],
    ) -> Result<Done, Failure> {
        let Decided {
            book,
            facts,
            expect,
            decision,
            digest,
            ..
        } = decided;
        // A runtime does what has one id once; with the wall widened it is another run.
        let run = match widen.len() {
            0 => job.id.clone(),
            count => format!("{}+{count}", job.id),
        };
        let mut wider = self.granted_paths(job, book)?;
        wider.extend_from_slice(widen);
        let runtime = self.runtime_of(job)?;
        let leave = self.leave(job, decided, &wider, &*runtime);
        let permit = Permit::new(Terms {
            id: run.clone(),
            action: job.name.as_str().to_owned(),
            params: job.params.clone(),
            // Files are in no room.
            session: (!job.name.as_str().starts_with("fs.")).then(|| job.room()),
            facts: expect.as_ref().unwrap_or(facts).clone(),
            digest: digest.clone(),
            mode: decision.mode,
            wall: WallParams {
                beyond: true,
                widen: wider,
            },
        });
        // An editor has an undo of its own, which knows what was not saved.
        if job.runtime.is_none() {
            self.undo.before(&job.id, job.name, facts).await;
        }
        live.state.send_replace(State::Running);
        let (output, printed) =
            printing::start(self, job, live).map_err(|error| unwritten(&error))?;
        if run != job.id {
            self.jobs.begin(run.clone(), job);
        }
        let result = match leave {
            None => runtime.execute(permit, output).await,
            Some(leave) => Box::pin(self.run_under(leave, job, &*runtime, permit, output)).await,
        };
        if run != job.id {
            self.jobs.end(&run);
        }
        if !(job.lasts() && result.is_ok()) {
            printed.all().await;
        }
        if result.as_ref().is_err_and(has_changed) {
            self.undo.forget(&job.id, job.name);
        }
        Ok(Done { result: result? })
    }

    /// What became of an action that was sent before: under a Ward that has ended since, or so long
    /// ago that it is no longer in memory.
    async fn recall(&self, job: &Job) -> Result<Option<Ended>, Failure> {
        let stream = stream_of(&job.id).map_err(|error| unwritten(&error))?;
        let Some(recalled) = self.look_up(&stream).await? else {
            return Ok(None);
        };
        if recalled.content != Some(job.content.clone())
            || recalled.actor.as_deref() != Some(&job.actor)
        {
            return Err(used());
        }
        Ok(Some(recalled.ended()))
    }
}

/// What was decided, and on what.
pub(crate) struct Decided {
    pub(crate) book: Arc<Files>,
    pub(crate) facts: Facts,
    /// The same, as they are written down.
    pub(crate) written: Value,
    /// What the runtime itself found, where that is less.
    pub(crate) expect: Option<Facts>,
    pub(crate) decision: Decision,
    pub(crate) digest: Digest,
    /// What is wrong with a place outside the workspace. Only who may look there may know.
    pub(crate) unseen: Option<Failure>,
}

/// An action that was done.
pub(crate) struct Done {
    pub(crate) result: Box<RawValue>,
}

/// Whether the runtime found other facts than were decided on.
fn has_changed(failure: &Failure) -> bool {
    failure.kind == ErrorKind::Changed && failure.details.contains_key("found")
}

pub(crate) fn denied(decision: &Decision) -> Failure {
    let rule = rule_info(&decision.because);
    Failure::new(
        ErrorKind::Denied,
        // A reason is a sentence of its own, often enough.
        format!(
            "Denied by {}.",
            decision.because.to_string().trim_end_matches('.')
        ),
    )
    .with("rule", json!(rule))
    .with("role", decision.role.as_str())
}

pub(crate) fn unknown_role(error: policy::roles::NoRole) -> Failure {
    Failure::new(ErrorKind::UnknownRole, error.to_string())
}

/// Where only the end could not be written: whether it was done is another question.
fn end_unwritten(error: &StoreError, failure: Option<Failure>) -> Failure {
    tracing::error!(%error, "the end of an action could not be written");
    match failure {
        Some(mut failure) => {
            let more = format!(" And Ward could not write down that it ended so: {error}");
            failure.message.push_str(&more);
            failure
        }
        None => Failure::new(
            ErrorKind::Internal,
            format!(
                "It was done, but Ward could not write down how it ended: {error} Look what is there before you ask for it again."
            ),
        ),
    }
}

pub(crate) fn unwritten(error: &StoreError) -> Failure {
    tracing::error!(%error, "the record could not be written");
    match error {
        StoreError::Conflict { .. } => used(),
        StoreError::Failed(_) | StoreError::Closed => Failure::new(
            ErrorKind::Internal,
            format!("Ward could not write this down, so it was not done: {error}"),
        ),
    }
}
