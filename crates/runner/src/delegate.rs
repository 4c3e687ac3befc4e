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
                let beginning = self.child(&record, id, role, task).await?;
                let above = Some((Arc::clone(session), call.call_id.clone()));
                self.begin(beginning, above).await?
            }
        };
        self.wait_for(session, &child, guard, cancel).await
    }

    async fn wait_for(
        &self,
        session: &Session,
        child: &Arc<Session>,
        guard: &Call,
        cancel: &CancellationToken,
    ) -> Result<String, Failure> {
        let mut status = child.follow();
        let mut cancelled = false;
        let end = loop {
            let now = status.borrow_and_update().clone();
            if now.ends > 0 {
                break now.last;
            }
            // It asks: then so does the call that waits for it.
            match now.state {
                SessionState::Waiting => guard.asks(&child.id),
                SessionState::Running | SessionState::Idle | SessionState::Failed => {
                    guard.answered(&child.id);
                }
            }
            tokio::select! {
                changed = status.changed() => if changed.is_err() { break None },
                () = cancel.cancelled(), if !cancelled => {
                    cancelled = true;
                    child.cancel();
                }
            }
        };
        {
            // What it took is taken from what this one may use.
            let spent = child.record().progress.clone();
            let mut record = session.record();
            record.progress.usage += spent.usage;
            record.progress.cost = match (record.progress.cost, spent.cost) {
                (Some(one), Some(other)) => Some(one + other),
                (one, other) => one.or(other),
            };
        }
        match end.as_deref() {
            Some(End::Completed(completed)) => Ok(
                serde_json::json!({"stop": completed.stop, "output": completed.output}).to_string(),
            ),
            Some(End::Failed(failed)) => Err(Failure::new(failed.kind, failed.error.clone())),
            None => Err(not_begun()),
        }
    }

    async fn child(
        &self,
        parent: &Record,
        id: String,
        role: String,
        task: String,
    ) -> Result<Beginning, Failure> {
        let mut parents = parent.progress.parents.clone();
        parents.push(parent.progress.role.clone());
        let spent = &parent.progress;
        let left = Limits {
            turns: spent
                .limits
                .turns
                .map(|turns| turns.saturating_sub(spent.turns)),
            tokens: spent
                .limits
                .tokens
                .map(|tokens| tokens.saturating_sub(spent.usage.total())),
            cost: spent
                .limits
                .cost
                .map(|cost| (cost - spent.dollars().unwrap_or(0.0)).max(0.0)),
            seconds: spent
                .limits
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

    /// Another role goes on from here, with no more authority than this one.
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
        if !parents.contains(&record.progress.role) {
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
