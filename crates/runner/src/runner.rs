//! All sessions: begun, found, spoken to, changed, forked, deleted, and taken up again after a
//! restart.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gate::{Actor, Ask, Gate, new_id, now};
use protocol::runtime::RuntimeChoice;
use protocol::session::{
    Changed, Input, Limits, Models as ModelsTold, Origin, PatchSession, PostMessage, PostSession,
    ProviderInfo, SessionEvent, SessionInfo, SessionState, Started,
};
use protocol::{Digest, ErrorKind, Failure, Mode};
use serde_json::json;
use store::{Seq, Store};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::agent::least;
use crate::calls::Made;
use crate::input::{checked, checked_limits, message, no_session, origin_of, received, title_of};
use crate::journal::{Page, unwritten};
use crate::price::Models;
use crate::provider::Registry;
use crate::session::history::{Entry, Said};
use crate::session::record::{Progress, Record};
use crate::session::{End, Session};

/// What an agent cannot do, neither when a session begins nor later.
const CHOICES: &str = "choose its role, model or mode";

/// Sessions that run at once, of all persons.
const MAX_RUNNING: usize = 512;

/// Runs agents. Clones are the same runner.
pub struct Runner<S: Store>(pub(crate) Arc<Inner<S>>);

impl<S: Store> Clone for Runner<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: Store> std::fmt::Debug for Runner<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runner").finish_non_exhaustive()
    }
}

pub(crate) struct Inner<S: Store> {
    pub(crate) gate: Gate<S>,
    pub(crate) registry: Registry,
    pub(crate) models: Models,
    sessions: Mutex<HashMap<String, Arc<Session>>>,
    /// Cancelled when Ward ends.
    pub(crate) stop: CancellationToken,
    tasks: TaskTracker,
}

/// How a session begins.
pub(crate) struct Beginning {
    pub(crate) id: String,
    pub(crate) actor: Actor,
    pub(crate) role: String,
    pub(crate) parents: Vec<String>,
    /// The model that was asked for.
    pub(crate) model: Option<String>,
    /// The model where neither the request nor the role names one.
    pub(crate) fallback: Option<String>,
    pub(crate) mode: Mode,
    pub(crate) workspace: Option<PathBuf>,
    pub(crate) ask: Ask,
    pub(crate) runtime: Option<RuntimeChoice>,
    pub(crate) parent: Option<String>,
    pub(crate) root: String,
    pub(crate) depth: usize,
    pub(crate) limits: Limits,
    pub(crate) origin: Origin,
    pub(crate) input: Input,
}

impl<S: Store> Runner<S> {
    /// A runner that knows no sessions yet.
    #[must_use]
    pub fn new(gate: Gate<S>, registry: Registry, models: Models) -> Self {
        Self(Arc::new(Inner {
            gate,
            registry,
            models,
            sessions: Mutex::default(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }))
    }

    /// Takes up the sessions that there are: those that wait for a person wait on, those that were
    /// cut off say so. Only whoever stays for long enough to run them should.
    pub async fn take_up(&self) -> Result<(), Failure> {
        self.0.take_up().await
    }

    /// Begins a session, and answers it and the number of its first event. The same id with the
    /// same content finds the same session.
    pub async fn begin(
        &self,
        actor: &Actor,
        asked: PostSession,
    ) -> Result<(Arc<Session>, Seq), Failure> {
        let id = match &asked.id {
            Some(id) => checked(id)?.to_owned(),
            None => new_id()?,
        };
        checked_limits(&asked.limits)?;
        let mode = match (asked.mode, actor) {
            (Some(mode), _) => mode,
            (None, Actor::Agent(agent)) => agent.mode,
            (None, Actor::Person(_)) => Mode::Sandbox,
        };
        if let Actor::Agent(agent) = actor
            && mode > agent.mode
        {
            return Err(Failure::new(
                ErrorKind::Forbidden,
                format!(
                    "An agent cannot choose its mode; this one has `{}` at the freest. A person can make a token for another.",
                    agent.mode
                ),
            ));
        }
        let role = match (asked.role, actor) {
            (Some(role), _) => role,
            (None, Actor::Agent(agent)) => agent.role.clone(),
            (None, Actor::Person(_)) => policy::builtin::DEFAULT_ROLE.to_owned(),
        };
        let runtime = asked.runtime.filter(|choice| !choice.is_local());
        if runtime.is_some() {
            actor.must_be_person("choose where its actions run")?;
        }
        let beginning = Beginning {
            root: id.clone(),
            id,
            actor: actor.clone(),
            role,
            parents: Vec::new(),
            model: asked.model,
            fallback: None,
            mode,
            workspace: asked.workspace.map(PathBuf::from),
            ask: asked.ask,
            runtime,
            parent: None,
            depth: 0,
            limits: asked.limits,
            origin: origin_of(actor),
            input: asked.input,
        };
        let session = self.0.begin(beginning, None).await?;
        Ok((session, Seq::START))
    }

    /// Says something to a session's agent, and answers the number of the last event before it.
    /// Nothing at all goes on where the session had failed.
    pub async fn say(
        &self,
        actor: &Actor,
        id: &str,
        asked: PostMessage,
    ) -> Result<(Arc<Session>, Seq), Failure> {
        let session = self.session(actor, id)?;
        if session.record().parent.is_some() {
            return Err(Failure::new(
                ErrorKind::Forbidden,
                "This is the session of a sub-agent, which answers to the agent that called it. Speak to that one.",
            ));
        }
        if let Some(before) = self.0.said_before(&session, &asked).await? {
            return Ok((session, before));
        }
        let change = PatchSession {
            title: None,
            role: asked.role.clone(),
            model: asked.model.clone(),
            mode: asked.mode,
        };
        if let Some(limits) = &asked.limits {
            checked_limits(limits)?;
        }
        must_be_allowed(actor, &change)?;
        self.0
            .change(&session, change, asked.limits.clone())
            .await?;
        let before = self.0.say(&session, origin_of(actor), &asked).await?;
        Ok((session, before))
    }

    /// Changes what a session is called, or its role, model or mode from the next turn on.
    pub async fn change(
        &self,
        actor: &Actor,
        id: &str,
        change: PatchSession,
    ) -> Result<SessionInfo, Failure> {
        let session = self.session(actor, id)?;
        must_be_allowed(actor, &change)?;
        self.0.change(&session, change, None).await?;
        Ok(session.info())
    }

    /// A session of this actor's, or of the person's agents.
    pub fn session(&self, actor: &Actor, id: &str) -> Result<Arc<Session>, Failure> {
        let found = self.0.find(id);
        found
            .filter(|session| session.record().is_seen_by(actor))
            .ok_or_else(|| no_session(id))
    }

    /// How a session stopped last, if nothing runs of it.
    pub async fn last(&self, session: &Session) -> Result<Option<End>, Failure> {
        self.0.last(session).await
    }

    /// All of them, the latest first; sub-agents' aside.
    #[must_use]
    pub fn list(&self, actor: &Actor) -> Vec<SessionInfo> {
        let mut list: Vec<SessionInfo> = {
            let sessions = self.0.sessions();
            let seen = sessions.values().filter(|session| {
                let record = session.record();
                record.parent.is_none() && record.is_seen_by(actor)
            });
            seen.map(|session| session.info()).collect()
        };
        list.sort_by(|a, b| {
            let by_time = b.updated_at.cmp(&a.updated_at);
            by_time.then_with(|| b.session_id.cmp(&a.session_id))
        });
        list
    }

    /// Ends what runs of a session, and of the sub-agents below it.
    pub fn cancel(&self, actor: &Actor, id: &str) -> Result<SessionInfo, Failure> {
        let session = self.session(actor, id)?;
        session.cancel();
        Ok(session.info())
    }

    /// Deletes a session and its sub-agents'. What it did stays in the ledger.
    pub async fn delete(&self, actor: &Actor, id: &str) -> Result<SessionInfo, Failure> {
        let session = self.session(actor, id)?;
        if session.cancel() {
            let ends = session.ends();
            if session.runs() {
                session.stopped(ends).await;
            }
        }
        let below: Vec<Arc<Session>> = {
            let sessions = self.0.sessions();
            let below = sessions.values().filter(|other| {
                let record = other.record();
                record.root == id || record.id == id
            });
            below.cloned().collect()
        };
        for deleted in below {
            self.0.delete(&deleted).await?;
            self.0.sessions().remove(&deleted.id);
            deleted.gone.cancel();
        }
        Ok(session.info())
    }

    /// A new session that knows another's conversation up to an event.
    pub async fn fork(
        &self,
        actor: &Actor,
        id: &str,
        at: Option<u64>,
    ) -> Result<SessionInfo, Failure> {
        let session = self.session(actor, id)?;
        let forked = self.0.fork(&session, actor, at).await?;
        Ok(forked.info())
    }

    /// The models that can be had here, and why the others cannot.
    pub async fn models(&self) -> ModelsTold {
        let list = self.0.registry.list().await;
        let told = |listing: crate::provider::Listing| ProviderInfo {
            provider: listing.provider,
            wire: json!(listing.wire).as_str().unwrap_or_default().to_owned(),
            base_url: listing.base_url,
            models: listing.models,
            unusable: listing.unusable,
        };
        ModelsTold {
            default: self.0.registry.default_model().to_owned(),
            providers: list.into_iter().map(told).collect(),
        }
    }

    /// Lets go of everything that runs. What is written is where the next Ward goes on.
    pub async fn close(&self) {
        self.0.stop.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }
}

impl<S: Store> Inner<S> {
    pub(crate) fn sessions(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        // Nothing panics while it is held.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn find(&self, id: &str) -> Option<Arc<Session>> {
        self.sessions().get(id).cloned()
    }

    /// The model a role asks for.
    pub(crate) fn model_of(&self, role: &policy::Role) -> Option<String> {
        match (&role.provider, &role.model) {
            (Some(provider), Some(model)) if !model.contains('/') => {
                Some(format!("{provider}/{model}"))
            }
            (_, Some(model)) => Some(model.clone()),
            (_, None) => None,
        }
    }

    /// Begins a session and lets it run.
    pub(crate) async fn begin(
        self: &Arc<Self>,
        beginning: Beginning,
        above: Option<(Arc<Session>, String)>,
    ) -> Result<Arc<Session>, Failure> {
        let Beginning {
            id,
            actor,
            role,
            parents,
            model,
            fallback,
            mode,
            workspace,
            ask,
            runtime,
            parent,
            root,
            depth,
            limits,
            origin,
            input,
        } = beginning;
        let (message, title) = message(&input, origin.clone())?;
        let content = Digest::of(
            json!([input, role, model, mode, workspace, limits, actor, runtime])
                .to_string()
                .as_bytes(),
        );
        if let Some(known) = self.find(&id) {
            let same = known.record().content == content;
            return match same {
                true => Ok(known),
                false => Err(Failure::new(
                    ErrorKind::Conflict,
                    "A session with this id and other content was begun before. Give each its own id.",
                )),
            };
        }
        if self.tasks.len() >= MAX_RUNNING {
            return Err(Failure::new(
                ErrorKind::Busy,
                format!("{MAX_RUNNING} sessions run already. Wait for one of them, or cancel one."),
            ));
        }
        let workspace = match (workspace, &runtime) {
            (None, Some(choice)) => self.gate.workspace_of(&actor, choice),
            (named, _) => named,
        };
        let brief = self
            .gate
            .brief(&actor, &role, &parents, workspace.as_deref(), None)
            .await?;
        if let Some(choice) = &runtime {
            self.must_be_known(&actor, choice, &brief.workspace)?;
        }
        let usual = self
            .model_of(&brief.role)
            .or(fallback)
            .unwrap_or_else(|| self.registry.default_model().to_owned());
        let model = model.unwrap_or_else(|| usual.clone());
        if model != usual {
            actor.must_be_person(CHOICES)?;
        }
        // Before anything is begun: a model that cannot be had, a key that is missing.
        let resolved = self.registry.resolve(&model).await;
        let resolved = resolved.map_err(|error| self.failure(error))?;
        self.must_have_price(&brief.role.limits, &limits, &resolved)?;
        let at = now().0;
        let record = Record {
            id: id.clone(),
            actor,
            workspace: brief.workspace,
            ask,
            runtime,
            parent: parent.clone(),
            call: above.as_ref().map(|(_, call)| call.clone()),
            root,
            depth,
            content,
            created_at: at,
            progress: Progress {
                title,
                state: SessionState::Running,
                role: role.clone(),
                callers: parents.len(),
                parents,
                model: model.clone(),
                mode,
                limits,
                runtime_id: None,
                turns: 0,
                turns_below: 0,
                usage: Default::default(),
                cost: None,
                read: 0,
                worked_ms: 0,
                updated_at: at,
            },
        };
        let workspace = record.workspace.display().to_string();
        let session = Arc::new(Session::new(record, above).map_err(unwritten)?);
        let message_id = format!("{id}-m1");
        let page = Page::event(SessionEvent::Started(Started {
            session_id: id.clone(),
            role,
            model,
            mode,
            workspace,
            parent,
            forked_from: None,
        }))
        .and(received(&message_id, &message))
        .entry(Entry::Message(Said {
            id: message_id,
            message: Arc::new(message),
        }));
        self.create(&session, page).await?;
        self.sessions().insert(id, Arc::clone(&session));
        self.start(&session, Made::Now);
        Ok(session)
    }

    /// Lets a session run.
    pub(crate) fn start(self: &Arc<Self>, session: &Arc<Session>, made: Made) {
        let cancel = session.begin();
        let run = Arc::clone(self).run(Arc::clone(session), cancel, made);
        self.tasks.spawn(run);
    }

    /// Changes a session, once it is known that it can go on so.
    async fn change(
        &self,
        session: &Session,
        change: PatchSession,
        limits: Option<Limits>,
    ) -> Result<(), Failure> {
        let is_told = change != PatchSession::default();
        if !is_told && limits.is_none() {
            return Ok(());
        }
        let PatchSession {
            title,
            role,
            mut model,
            mode,
        } = change;
        let title = title.map(|title| title_of(&title));
        let mut next = session.record().clone();
        if let Some(role) = &role {
            let brief = self
                .gate
                .brief(&next.actor, role, &[], Some(&next.workspace), None)
                .await?;
            model = model.or_else(|| self.model_of(&brief.role));
            next.progress.role.clone_from(role);
            next.progress.parents.clear();
            next.progress.callers = 0;
        }
        if let Some(model) = &model {
            next.progress.model.clone_from(model);
        }
        if let Some(limits) = &limits {
            next.progress.limits.clone_from(limits);
        }
        let bounds = match role.is_some() || model.is_some() || limits.is_some() {
            true => {
                let agent = self.agent(&next).await?;
                Some(least(&agent.limits, &next.progress.limits))
            }
            false => None,
        };
        let changed = SessionEvent::Changed(Changed {
            role: role.clone(),
            model: model.clone(),
            mode,
            title: title.clone(),
            handoff: false,
        });
        let page = match is_told {
            true => Page::event(changed),
            false => Page::default(),
        };
        let mut pen = session.pen.lock().await;
        let history = self.history(session, &mut pen).await?;
        self.write(session, history, page, |progress| {
            if let Some(title) = title {
                progress.title = title;
            }
            if let Some(role) = role {
                progress.role = role;
                // A person's choice stands for itself.
                progress.parents.clear();
                progress.callers = 0;
            }
            if let Some(model) = model {
                progress.model = model;
            }
            if let Some(mode) = mode {
                progress.mode = mode;
            }
            if let Some(limits) = limits {
                progress.limits = limits;
            }
        })
        .await?;
        if let Some(bounds) = bounds {
            *session.bounds() = bounds;
        }
        Ok(())
    }
}

/// Whether this actor may change this of a session.
fn must_be_allowed(actor: &Actor, change: &PatchSession) -> Result<(), Failure> {
    let PatchSession {
        title: _,
        role,
        model,
        mode,
    } = change;
    if role.is_some() || model.is_some() || mode.is_some() {
        actor.must_be_person(CHOICES)?;
    }
    Ok(())
}
