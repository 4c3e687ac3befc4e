//! The leave that a command runs under. Where that is a grant, the command ends with it: when it is
//! revoked, and when it expires.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use policy::{Confinement, Grant, Verb, Verdict};
use protocol::wall::{WallParams, Widen};
use protocol::{ActionName, ErrorKind, Facts, Failure, Mode};
use serde_json::json;
use serde_json::value::RawValue;
use store::Store;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::canonical;
use crate::clock::now;
use crate::files::Files;
use crate::gate::Inner;
use crate::job::Job;
use crate::path::Decided;
use crate::request::new_id;
use crate::runtime::{Output, Permit, Runtime, Terms};
use crate::wall::facts_of;

/// The longest that is slept for an expiry: the clock may be set meanwhile.
const LONGEST: Duration = Duration::from_secs(60);

/// What grants let a command do that no rule does.
pub(crate) struct Leave {
    book: Arc<Files>,
    mode: Mode,
    needs: Vec<Need>,
    /// Cancelled when one of them is not granted any more.
    gone: CancellationToken,
    /// What it goes on as after its answer: a terminal, a background command.
    terminal: Mutex<Option<String>>,
}

struct Need {
    verb: Verb,
    facts: Facts,
    confinement: Confinement,
}

impl Need {
    fn is_met(&self, job: &Job, book: &Files, grants: &[Grant]) -> bool {
        job.decide(book, self.verb, &self.facts, self.confinement, grants)
            .is_ok_and(|decision| decision.verdict == Verdict::Allow)
    }
}

impl Leave {
    fn set_terminal(&self, terminal: Option<String>) {
        *self.terminal.lock().unwrap_or_else(PoisonError::into_inner) = terminal;
    }

    fn take_terminal(&self) -> Option<String> {
        let mut terminal = self.terminal.lock().unwrap_or_else(PoisonError::into_inner);
        terminal.take()
    }
}

impl<S: Store> Inner<S> {
    /// The grants that a command is about to run under, where it needs one.
    pub(crate) fn leave(
        &self,
        job: &Job,
        decided: &Decided,
        wider: &[Widen],
        runtime: &dyn Runtime,
    ) -> Option<Arc<Leave>> {
        let Decided {
            book,
            facts,
            decision,
            ..
        } = decided;
        let grants = self.grants.current(&job.person);
        let by_grant = decision.because.kind == policy::decision::Kind::Grant;
        if !job.starts_a_command() || (grants.is_empty() && !by_grant) {
            return None;
        }
        let mut needs = Vec::new();
        if decision.verdict == Verdict::Allow {
            let need = Need {
                verb: job.verb(),
                facts: facts.clone(),
                confinement: job.confinement(runtime),
            };
            needs.extend((!need.is_met(job, book, &[])).then_some(need));
        }
        // A trusted command has no wall.
        let wider = wider.iter().filter(|_| decision.mode == Mode::Sandbox);
        needs.extend(wider.filter_map(|widen| {
            let need = Need {
                verb: Verb::Wall,
                facts: facts_of(std::slice::from_ref(widen)),
                confinement: job.workspace.runtime.confinement(),
            };
            // What was allowed for this once needs no grant.
            let by_grant = !need.is_met(job, book, &[]) && need.is_met(job, book, &grants);
            by_grant.then_some(need)
        }));
        if needs.is_empty() {
            return None;
        }
        Some(Arc::new(Leave {
            book: Arc::clone(book),
            mode: decision.mode,
            needs,
            gone: CancellationToken::new(),
            terminal: Mutex::default(),
        }))
    }

    /// Has a command run for as long as its leave holds.
    pub(crate) async fn run_under(
        &self,
        leave: Arc<Leave>,
        job: &Arc<Job>,
        runtime: &dyn Runtime,
        permit: Permit,
        output: Output,
    ) -> Result<Box<RawValue>, Failure> {
        job.set_leave(Some(Arc::clone(&leave)));
        // It may have been taken back a moment before anybody could be told here.
        self.end_without_leave(job).await;
        let result = tokio::select! {
            biased;
            () = leave.gone.cancelled() => Err(Failure::new(
                ErrorKind::Denied,
                "The grant that this ran under was revoked or has expired, so it was ended. What it had done by then is done.",
            )),
            result = runtime.execute(permit, output) => result,
        };
        match &result {
            Ok(result) if job.lasts() => {
                leave.set_terminal(terminal_of(result));
                self.end_without_leave(job).await;
            }
            Ok(_) | Err(_) => job.set_leave(None),
        }
        result
    }

    /// Ends all that runs under a grant which does not hold any more.
    pub(crate) async fn end_all_without_leave(&self) {
        for job in self.jobs.all() {
            self.end_without_leave(&job).await;
        }
    }

    async fn end_without_leave(&self, job: &Job) {
        let Some(leave) = job.leave() else { return };
        let grants = self.grants.current(&job.person);
        if !leave.gone.is_cancelled()
            && leave
                .needs
                .iter()
                .all(|need| need.is_met(job, &leave.book, &grants))
        {
            return;
        }
        leave.gone.cancel();
        if let Some(terminal) = leave.take_terminal()
            && let Err(failure) = self.stop(job, &leave, &terminal).await
        {
            tracing::warn!(%failure, terminal, "what ran under a grant that is gone could not be stopped");
        }
    }

    /// Stops what goes on after the answer to what started it.
    async fn stop(&self, job: &Job, leave: &Leave, terminal: &str) -> Result<(), Failure> {
        let runtime = self.runtime_of(job)?;
        let action = ActionName::TerminalStop.as_str();
        let params = json!({ "terminal_id": terminal });
        let facts = runtime.resolve(action, &params).await?;
        let stop =
            json!({ "action": action, "params": params, "facts": facts, "mode": leave.mode });
        let permit = Permit::new(Terms {
            id: new_id()?,
            action: action.to_owned(),
            params,
            session: Some(job.room()),
            facts,
            digest: canonical::digest(&stop)?,
            mode: leave.mode,
            wall: WallParams::default(),
        });
        runtime.execute(permit, Output::nowhere()).await.map(drop)
    }
}

fn terminal_of(result: &RawValue) -> Option<String> {
    let result: serde_json::Value = serde_json::from_str(result.get()).ok()?;
    Some(result.get("terminal_id")?.as_str()?.to_owned())
}

/// Waits for grants to expire, and ends what they let through. Ends with the gate.
pub(crate) async fn watch_expiry<S: Store>(gate: Weak<Inner<S>>, mut changes: watch::Receiver<()>) {
    let mut seen = now();
    loop {
        let Some(inner) = gate.upgrade() else { return };
        let next = inner.grants.next_expiry(seen);
        drop(inner);
        let expired = async {
            let Some(next) = next else {
                return std::future::pending().await;
            };
            let left = Duration::from_millis(next.0.saturating_sub(now().0));
            tokio::time::sleep(left.min(LONGEST)).await;
        };
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            () = expired => {}
        }
        let Some(inner) = gate.upgrade() else { return };
        let at = now();
        for workspace in inner.grants.expired(seen, at) {
            inner.review(&workspace).await;
        }
        seen = at;
    }
}
