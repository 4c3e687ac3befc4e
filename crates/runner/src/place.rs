//! Where a session's actions run, if not here: found when it starts, and again after a loss.

use std::path::Path;

use gate::Actor;
use protocol::runtime::{RuntimeChoice, RuntimeHealth, RuntimeInfo};
use protocol::session::{RuntimeAwaited, RuntimeChosen, SessionEvent};
use protocol::{ErrorKind, Failure};
use store::Store;
use tokio_util::sync::CancellationToken;

use crate::journal::Page;
use crate::runner::Inner;
use crate::session::Session;
use crate::session::record::Record;

impl<S: Store> Inner<S> {
    /// The runtime that was found for a session, as it is now.
    pub(crate) fn runtime(&self, record: &Record) -> Option<RuntimeInfo> {
        let id = RuntimeChoice::Id(record.progress.runtime_id.clone()?);
        self.choose(record, &id).ok()
    }

    fn choose(&self, record: &Record, choice: &RuntimeChoice) -> Result<RuntimeInfo, Failure> {
        let elsewhere = self.gate.elsewhere().ok_or_else(nobody)?;
        let workspace = record.workspace.to_string_lossy();
        elsewhere.choose(record.actor.person(), choice, &workspace)
    }

    /// Refuses, before anything is begun, an id that no runtime of this person's ever had, and a need
    /// that several fulfil. What is away, or is not there yet, is waited for.
    pub(crate) fn must_be_known(
        &self,
        actor: &Actor,
        choice: &RuntimeChoice,
        workspace: &Path,
    ) -> Result<(), Failure> {
        let (elsewhere, may_come) = match (self.gate.elsewhere(), choice) {
            (None, RuntimeChoice::Id(_)) => return Err(nobody()),
            (None, RuntimeChoice::Need(_)) => return Ok(()),
            (Some(elsewhere), RuntimeChoice::Id(id)) => {
                (elsewhere, elsewhere.is_known(actor.person(), id))
            }
            (Some(elsewhere), RuntimeChoice::Need(_)) => (elsewhere, true),
        };
        let workspace = workspace.to_string_lossy();
        match elsewhere.choose(actor.person(), choice, &workspace) {
            Err(failure) if may_come && can_be_awaited(&failure) => match elsewhere.can_come() {
                true => Ok(()),
                false => Err(nobody()),
            },
            chosen => chosen.map(drop),
        }
    }

    /// Waits until there is the runtime that was chosen. Whether there is; not, where the session
    /// was cancelled meanwhile. An id that is no runtime's, and never was, is not waited for.
    pub(crate) async fn ready(
        &self,
        session: &Session,
        cancel: &CancellationToken,
    ) -> Result<bool, Failure> {
        let record = session.record().clone();
        let Some(choice) = record.runtime.clone() else {
            return Ok(true);
        };
        if self
            .runtime(&record)
            .is_some_and(|found| matches!(found.state, RuntimeHealth::Ready | RuntimeHealth::Busy))
        {
            return Ok(true);
        }
        let Some(elsewhere) = self.gate.elsewhere() else {
            return self.choose(&record, &choice).map(|_| true);
        };
        // Ids are made by Ward: one that nobody ever had will not come.
        let person = record.actor.person();
        let may_come = match &choice {
            RuntimeChoice::Id(id) => {
                record.progress.runtime_id.is_some() || elsewhere.is_known(person, id)
            }
            RuntimeChoice::Need(_) => true,
        };
        let mut changes = elsewhere.changes();
        let mut told = false;
        loop {
            changes.borrow_and_update();
            match self.choose(&record, &choice) {
                Ok(found) => {
                    self.settle_on(session, found).await?;
                    return Ok(true);
                }
                Err(failure) if may_come && can_be_awaited(&failure) => {
                    if !told {
                        told = true;
                        let failure = match elsewhere.can_come() {
                            true => failure,
                            // Under another Ward it can.
                            false => nobody(),
                        };
                        let awaited = SessionEvent::RuntimeAwaited(RuntimeAwaited {
                            runtime: choice.clone(),
                            reason: failure.message,
                        });
                        self.tell(session, &[awaited]).await?;
                    }
                }
                Err(failure) => return Err(failure),
            }
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return Ok(false) },
                () = cancel.cancelled() => return Ok(false),
            }
        }
    }

    async fn settle_on(&self, session: &Session, found: RuntimeInfo) -> Result<(), Failure> {
        let chosen = SessionEvent::RuntimeChosen(RuntimeChosen {
            runtime_id: found.runtime_id.clone(),
            kind: found.kind,
            workspace: found.workspace,
        });
        let mut pen = session.pen.lock().await;
        let history = self.history(session, &mut pen).await?;
        self.write(session, history, Page::event(chosen), |progress| {
            progress.runtime_id = Some(found.runtime_id);
        })
        .await
        .map(drop)
    }
}

/// Whether there may be one later.
fn can_be_awaited(failure: &Failure) -> bool {
    matches!(failure.kind, ErrorKind::NoRuntime | ErrorKind::RuntimeAway)
}

fn nobody() -> Failure {
    Failure::new(
        ErrorKind::NoRuntime,
        "No editor can connect to this Ward. Start it with `ward serve`.",
    )
}
