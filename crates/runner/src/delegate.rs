//! Agents that call agents, and agents that hand over. Authority only shrinks: whoever is called
//! may do what all those above it may.

use std::sync::Arc;

use protocol::session::{Changed, Limits, Origin, SessionEvent, SessionState};
use protocol::{ErrorKind, Failure};
use serde::Deserialize;
use store::Store;
use tokio_util::sync::CancellationToken;

use crate::calls::{Made, arguments, not_begun};
use crate::journal::Page;
use crate::provider::ToolCall;
use crate::runner::{Beginning, Inner};
use crate::session::record::Record;
use crate::session::{Call, End, Session};
use crate::turn::id_of;

impl<S: Store> Inner<S> {
    /// Lets another agent do a task, and waits for what it says.
    pub(crate) async fn delegate(
        self: &Arc<Self>,
        session: &Arc<Session>,
        number: u64,
        call: &ToolCall,
        guard: &Call,
        made: Made,
        cancel: &CancellationToken,
    ) -> Result<String, Failure> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Asked {
            role: String,
            task: String,
        }
        let id = id_of(&session.id, number);
        let child = match made {
            Made::Before => self.find(&id).ok_or_else(not_begun)?,
            Made::Now => {
                let Asked { role, task } = arguments(call)?;
                let record = session.record().clone();
                let bounds = session.bounds().clone();
                let beginning = self.child(&record, &bounds, id, role, task).await?;
                let above = Some((Arc::clone(session), call.call_id.clone()));
                self.begin(beginning, above).await?
            }
        };
        self.wait_for(&child, guard, cancel).await
    }

    async fn wait_for(
        &self,
        child: &Arc<Session>,
        guard: &Call,
        cancel: &CancellationToken,
    ) -> Result<String, Failure> {
        let mut status = child.follow();
        let mut cancelled = false;
        loop {
            let now = status.borrow_and_update().clone();
            // It asks: then so does the call that waits for it.
            match now.state {
                SessionState::Waiting => guard.asks_below(child),
                SessionState::Running => guard.answered_below(),
                SessionState::Idle | SessionState::Failed => break,
            }
            tokio::select! {
                changed = status.changed() => if changed.is_err() { break },
                () = cancel.cancelled(), if !cancelled => {
                    cancelled = true;
                    child.cancel();
                }
            }
        }
        self.came_of(child).await
    }

    /// What came of a sub-agent's task, once it has stopped.
    pub(crate) async fn came_of(&self, child: &Session) -> Result<String, Failure> {
        match self.last(child).await? {
            Some(End::Completed(completed)) => Ok(
                serde_json::json!({"stop": completed.stop, "output": completed.output}).to_string(),
            ),
            Some(End::Failed(failed)) if failed.kind != ErrorKind::Interrupted => {
                Err(Failure::new(failed.kind, failed.error))
            }
            Some(End::Failed(_)) => Err(Failure::new(
                ErrorKind::Interrupted,
                format!(
                    "Ward ended while the agent that you called worked on this, in the session `{}`. Nobody knows how far it came: look at what it did before you call it again.",
                    child.id
                ),
            )),
            None => Err(Failure::new(
                ErrorKind::Interrupted,
                "The session of the agent that you called is gone, and what it said with it. Look at what it did before you call it again.",
            )),
        }
    }

    async fn child(
        &self,
        parent: &Record,
        bounds: &Limits,
        id: String,
        role: String,
        task: String,
    ) -> Result<Beginning, Failure> {
        let mut parents = parent.progress.parents.clone();
        parents.push(parent.progress.role.clone());
        let spent = &parent.progress;
        let left = Limits {
            // Those of a role are its own: it may let others work longer than it does itself.
            turns: spent
                .limits
                .turns
                .map(|turns| turns.saturating_sub(spent.turns + spent.turns_below)),
            tokens: bounds
                .tokens
                .map(|tokens| tokens.saturating_sub(spent.usage.total())),
            cost: bounds
                .cost
                .map(|cost| (cost - spent.dollars().unwrap_or(0.0)).max(0.0)),
            seconds: bounds
                .seconds
                .map(|seconds| seconds.saturating_sub(spent.worked_ms / 1000)),
        };
        Ok(Beginning {
            id,
            actor: parent.actor.clone(),
            role,
            parents,
            model: None,
            fallback: Some(parent.progress.model.clone()),
            mode: parent.progress.mode,
            workspace: Some(parent.workspace.clone()),
            ask: parent.ask,
            runtime: parent.runtime.clone(),
            parent: Some(parent.id.clone()),
            root: parent.root.clone(),
            depth: parent.depth + 1,
            limits: left,
            origin: Origin::Role(parent.progress.role.clone()),
            input: protocol::session::Input::Text(task),
        })
    }

    /// Another role goes on from here, with no more authority than this one, and may use no more.
    pub(crate) async fn hand_over(
        &self,
        session: &Session,
        call: &ToolCall,
    ) -> Result<String, Failure> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Asked {
            role: String,
            #[allow(dead_code, reason = "for the people who read the record")]
            why: String,
        }
        let asked: Asked = arguments(call)?;
        let record = session.record().clone();
        let mut parents = record.progress.parents.clone();
        if record.progress.role == asked.role {
            return Err(Failure::new(
                ErrorKind::InvalidParams,
                format!("You are `{}` already.", asked.role),
            ));
        }
        let mut handed = parents.iter().skip(record.progress.callers);
        if !handed.any(|role| *role == record.progress.role) {
            parents.push(record.progress.role.clone());
        }
        let workspace = Some(record.workspace.as_path());
        let brief = self
            .gate
            .brief(&record.actor, &asked.role, &parents, workspace, None);
        let model = match self.model_of(&brief.await?.role) {
            Some(model) => model,
            None => record.progress.model.clone(),
        };
        let mut next = record.clone();
        next.progress.role.clone_from(&asked.role);
        next.progress.parents.clone_from(&parents);
        next.progress.model.clone_from(&model);
        // Before anything is handed over: a model that cannot be had, or whose price is not known.
        self.agent(&next).await?;
        let changed = SessionEvent::Changed(Changed {
            role: Some(asked.role.clone()),
            model: (model != record.progress.model).then(|| model.clone()),
            handoff: true,
            ..Changed::default()
        });
        let mut pen = session.pen.lock().await;
        let history = self.history(session, &mut pen).await?;
        self.write(session, history, Page::event(changed), |progress| {
            progress.role.clone_from(&asked.role);
            progress.parents = parents;
            progress.model = model;
        })
        .await?;
        Ok(format!("`{}` goes on from here.", asked.role))
    }
}
