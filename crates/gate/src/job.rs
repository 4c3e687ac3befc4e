//! An action that was taken in: who asks for what, where, as whom.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use policy::place::by_words;
use policy::{Asked, Confinement, Decision, Grant, Place, Verb, Verdict, decide};
use protocol::facts::{Access, BEYOND, PathFact};
use protocol::runtime::RuntimeChoice;
use protocol::wall::Widen;
use protocol::{ActionName, Digest, ErrorKind, Facts, Failure, Mode};
use serde::Serialize;
use serde_json::Value;

use crate::canonical::Object;
use crate::clock::now;
use crate::files::Files;
use crate::gate::GateOptions;
use crate::grants::session_key;
use crate::leave::Leave;
use crate::named::Named;
use crate::path::unknown_role;
use crate::pending::Kept;
use crate::redact;
use crate::request::Ask;
use crate::runtime::Runtime;
use crate::undo::changes_files;
use crate::workspace::Workspace;

/// An action on its way.
pub(crate) struct Job {
    pub(crate) id: String,
    pub(crate) actor: String,
    pub(crate) person: String,
    pub(crate) name: ActionName,
    pub(crate) params: Value,
    pub(crate) role: String,
    pub(crate) parents: Vec<String>,
    pub(crate) mode: Mode,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) session: Option<String>,
    /// Where it runs; [`None`] is the local runtime.
    pub(crate) runtime: Option<RuntimeChoice>,
    pub(crate) ask: Ask,
    pub(crate) content: Digest,
    pub(crate) home: Option<String>,
    /// Ward's own folders.
    own: Arc<[String]>,
    /// What it gives to its own command and nobody else may read.
    pub(crate) secrets: Arc<[String]>,
    /// What was answered for which host, for as long as this job runs.
    hosts: Mutex<HashMap<String, Arc<Reached>>>,
    /// The grants that its command runs under, where it needs some.
    leave: Mutex<Option<Arc<Leave>>>,
}

/// A host that a job's command wants to reach.
#[derive(Debug, Default)]
pub(crate) struct Reached {
    /// Whoever asks about it waits here for the one before.
    pub(crate) turn: tokio::sync::Mutex<()>,
    /// An answer that was given once: the digest of what a yes was for, or the no.
    answered: Mutex<Option<Result<Digest, Failure>>>,
}

impl Reached {
    pub(crate) fn answered(&self) -> Option<Result<Digest, Failure>> {
        let answered = self.answered.lock();
        answered.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn answer(&self, answer: Result<Digest, Failure>) {
        *self.answered.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
    }
}

impl Job {
    /// Stands for all of a request but its id.
    pub(crate) fn content(kept: &Kept, workspace: Option<&str>) -> Digest {
        Object::new()
            .string("action", &kept.action)
            .string("actor", &kept.actor)
            .string("mode", kept.mode.as_str())
            .value("params", &kept.params)
            .strings("parents", &kept.parents)
            .string("role", &kept.role)
            .maybe("runtime", named(&kept.runtime).as_deref())
            .maybe("session", kept.session.as_deref())
            .maybe("workspace", workspace)
            .digest()
    }

    /// As it is kept while it waits.
    pub(crate) fn kept(&self) -> Kept {
        Kept {
            id: self.id.clone(),
            actor: self.actor.clone(),
            action: self.name.as_str().to_owned(),
            params: self.params.clone(),
            role: self.role.clone(),
            parents: self.parents.clone(),
            mode: self.mode,
            workspace: self.workspace.real.clone(),
            session: self.session.clone(),
            runtime: self.runtime.clone(),
            ask: self.ask,
            content: self.content.clone(),
        }
    }

    /// The same again, after a restart.
    pub(crate) fn restored(
        kept: Kept,
        person: String,
        workspace: Arc<Workspace>,
        options: &GateOptions,
    ) -> Result<Self, Failure> {
        Ok(Self {
            secrets: redact::given(&kept.params).into(),
            name: name_of(&kept.action)?,
            id: kept.id,
            actor: kept.actor,
            person,
            params: kept.params,
            role: kept.role,
            parents: kept.parents,
            mode: kept.mode,
            workspace,
            session: kept.session,
            runtime: kept.runtime,
            ask: kept.ask,
            content: kept.content,
            home: options.home.clone(),
            own: Arc::clone(&options.own),
            hosts: Mutex::default(),
            leave: Mutex::default(),
        })
    }

    pub(crate) fn leave(&self) -> Option<Arc<Leave>> {
        self.leave
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn set_leave(&self, leave: Option<Arc<Leave>>) {
        *self.leave.lock().unwrap_or_else(PoisonError::into_inner) = leave;
    }

    /// What is known of a host.
    pub(crate) fn host(&self, host: &str) -> Arc<Reached> {
        // Nothing panics while it is held.
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(hosts.entry(host.to_owned()).or_default())
    }

    /// Whose room its commands run in: two of different actors, roles or sessions share none, so
    /// that what crosses a wall is known to be theirs.
    pub(crate) fn room(&self) -> String {
        let whose = Object::new()
            .string("actor", &self.actor)
            .strings("parents", &self.parents)
            .string("role", &self.role)
            .maybe("session", self.session.as_deref())
            .digest();
        let hex = whose.as_str().trim_start_matches("sha256:");
        hex.get(..24).unwrap_or(hex).to_owned()
    }

    /// What the policy says about an action, or about a host that a command of this job wants to
    /// reach.
    pub(crate) fn decide(
        &self,
        book: &Files,
        verb: Verb,
        facts: &Facts,
        confinement: Confinement,
        grants: &[Grant],
    ) -> Result<Decision, Failure> {
        let get = |name: &str| book.roles.get(name).map_err(unknown_role);
        let role = get(&self.role)?;
        let parents: Vec<&policy::Role> = self
            .parents
            .iter()
            .map(|name| get(name))
            .collect::<Result<_, _>>()?;
        let session = self.session.as_deref();
        let session =
            session.map(|session| session_key(&self.workspace.name, &self.actor, session));
        let own: Vec<&str> = self.own.iter().map(String::as_str).collect();
        let asked = Asked {
            verb,
            facts,
            place: Place {
                workspace: &self.workspace.name,
                home: self.home.as_deref(),
                own: &own,
            },
            session: session.as_deref(),
            confinement,
        };
        let authority = policy::Authority::under(role, &parents);
        let now = policy::Time(now().0);
        Ok(decide(
            &authority,
            self.mode,
            &book.rules,
            grants,
            &asked,
            now,
        ))
    }

    /// The digest of exactly what would happen: everything that an approval binds to. If any of it
    /// changes before it runs, it is another. The facts are as they are [`written`].
    pub(crate) fn digest(
        &self,
        facts: &Value,
        mode: Mode,
        book: &Files,
        widen: &[Widen],
    ) -> Result<Digest, Failure> {
        Ok(Object::new()
            .string("action", self.name.as_str())
            .string("actor", &self.actor)
            .value("facts", facts)
            .string("mode", mode.as_str())
            .value("params", &self.params)
            .strings("parents", &self.parents)
            .string("policy", book.version.as_str())
            .string("role", &self.role)
            .maybe("runtime", named(&self.runtime).as_deref())
            .maybe("session", self.session.as_deref())
            .value("widen", &written(widen)?)
            .string("workspace", &self.workspace.name)
            .digest())
    }

    /// What the policy is asked about.
    pub(crate) fn verb(&self) -> Verb {
        Verb::of(self.name, self.params.get("depth"))
    }

    /// Whether a wall can be held where it runs. An editor's files are held by their paths; of what
    /// it runs, a command is where that runtime says so, and nothing else.
    pub(crate) fn confinement(&self, runtime: &dyn Runtime) -> Confinement {
        let says = matches!(self.name, ActionName::TerminalRun | ActionName::CellExecute);
        if self.runtime.is_none() || says {
            return runtime.confinement();
        }
        let runs = matches!(
            self.name,
            ActionName::EditorCommand | ActionName::EditorTask
        );
        match runs || self.name.as_str().starts_with("terminal.") {
            true => Confinement::Absent,
            false => Confinement::Kernel,
        }
    }

    /// Whether its facts are of a command that it would start.
    pub(crate) fn starts_a_command(&self) -> bool {
        matches!(
            self.name,
            ActionName::TerminalRun | ActionName::TerminalOpen
        )
    }

    /// Facts as who asked may know them before they may look: not what is at a place outside the
    /// workspace.
    pub(crate) fn told<'a>(&self, facts: &'a Facts, verdict: Verdict) -> Cow<'a, Facts> {
        if verdict == Verdict::Allow {
            return Cow::Borrowed(facts);
        }
        let mut facts = facts.clone();
        if self.is_beyond(&facts) {
            match self.asked_for() {
                // The words it was asked with: where links lead, and what there is to be done where
                // something is there already, it would learn otherwise.
                Some(paths) => facts.paths = paths,
                None => {
                    let paths = facts.paths.iter_mut();
                    for path in paths.filter(|path| self.is_outside(path)) {
                        (path.kind, path.digest) = (None, None);
                    }
                }
            }
        }
        // They say what is in files, which it may have no leave to read.
        Named::default().put_into(&mut facts);
        Cow::Owned(facts)
    }

    /// What a look at places outside the workspace, or at what is protected, was for, where one failed
    /// there. What is wrong with them is told only to who may look: whether a file is there is itself
    /// worth knowing.
    pub(crate) fn beyond(&self, failure: &mut Failure) -> Option<Facts> {
        let places = failure.details.remove(BEYOND)?;
        let paths = places.as_array()?.iter().filter_map(Value::as_str);
        let paths = paths.map(|path| self.unseen(path.to_owned()));
        Some(Facts {
            paths: paths.collect(),
            ..Facts::default()
        })
    }

    /// Whether it would touch what is outside the workspace.
    pub(crate) fn is_beyond(&self, facts: &Facts) -> bool {
        facts.paths.iter().any(|path| self.is_outside(path))
    }

    fn is_outside(&self, path: &PathFact) -> bool {
        !Path::new(&path.path).starts_with(&self.workspace.real)
    }

    /// The paths that a file action names, by its words.
    fn asked_for(&self) -> Option<Vec<PathFact>> {
        if !self.name.as_str().starts_with("fs.") {
            return None;
        }
        let named = ["path", "from", "to"].into_iter();
        let named = named.filter_map(|field| self.params.get(field)?.as_str());
        let paths: Vec<_> = named
            .map(|given| {
                let path = by_words(&self.workspace.real.join(given));
                self.unseen(path.to_string_lossy().into_owned())
            })
            .collect();
        (!paths.is_empty()).then_some(paths)
    }

    /// A place of which nothing is known but that it is asked for.
    fn unseen(&self, path: String) -> PathFact {
        let access = match self.name {
            ActionName::FsDelete => Access::Delete,
            name if changes_files(name) => Access::Write,
            _ => Access::Read,
        };
        PathFact {
            path,
            access,
            kind: None,
            digest: None,
        }
    }

    /// Whether what it started goes on after its answer: a terminal or a background command.
    pub(crate) fn lasts(&self) -> bool {
        self.name == ActionName::TerminalOpen
            || (self.name == ActionName::TerminalRun
                && self.params.get("background") == Some(&Value::Bool(true)))
    }
}

/// A part of what happens, as it is written down and digested.
pub(crate) fn written<T: Serialize + ?Sized>(part: &T) -> Result<Value, Failure> {
    serde_json::to_value(part)
        .map_err(|error| Failure::new(ErrorKind::Internal, format!("This is no JSON: {error}.")))
}

/// A choice as it is digested.
fn named(choice: &Option<RuntimeChoice>) -> Option<String> {
    choice.as_ref().map(ToString::to_string)
}

/// The action of this name.
pub(crate) fn name_of(action: &str) -> Result<ActionName, Failure> {
    ActionName::parse(action).ok_or_else(|| {
        let shown: String = action.chars().take(100).collect();
        let all: Vec<&str> = ActionName::ALL.iter().map(|name| name.as_str()).collect();
        Failure::new(
            ErrorKind::UnknownAction,
            format!(
                "There is no action `{shown}`. The actions are {}.",
                all.join(", ")
            ),
        )
    })
}
