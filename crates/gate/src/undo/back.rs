//! Puts things back: through the runtime, under permits, on the record.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use protocol::action::terminal::RunResult;
use protocol::facts::{EntryKind as Kind, PathFact};
use protocol::undo::{FileChange, State, Undone, UndoneAction};
use protocol::wall::{WallParams, Widen, WidenAccess};
use protocol::{ActionName, Data, Digest, ErrorKind, Facts, Failure, Mode};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use store::{Append, Expected, NewEvent, Seq, Store, StoreError};

use super::find::Undoable;
use super::manifest::{Changed, Step};
use super::plan::{self, Put};
use super::{Undo, blocking, disk, left};
use crate::actor::Actor;
use crate::canonical;
use crate::clock::now;
use crate::diff;
use crate::gate::{Gate, Inner};
use crate::ledger::{EntryKind, NewEntry};
use crate::path::unwritten;
use crate::record::{events, stream_of};
use crate::request::new_id;
use crate::runtime::{Output, Permit, Terms};
use crate::workspace::Workspace;

/// As an undo is named where actions are.
const UNDO: &str = "undo";

impl<S: Store> Gate<S> {
    /// Takes back what an action, or a session, did to files: all of it or nothing.
    ///
    /// Refuses what has changed since (`changed`, with a diff), what was undone already (`closed`),
    /// what changed no file (`invalid_params`), and what is not kept. An undo is an action as well
    /// and can be undone. Once begun it goes on, whether or not anybody waits.
    pub async fn undo(&self, actor: &Actor, what: Undo) -> Result<Undone, Failure> {
        let person = actor.must_be_person("undo what was done")?.to_owned();
        let inner = Arc::clone(&self.0);
        let undone = tokio::spawn(async move { inner.undo(&person, &what).await });
        undone.await.unwrap_or_else(|_| {
            Err(Failure::new(
                ErrorKind::Internal,
                "The undo ended too early. `ward ledger tail` shows what was done.",
            ))
        })
    }
}

impl<S: Store> Inner<S> {
    async fn undo(&self, person: &str, what: &Undo) -> Result<Undone, Failure> {
        let _one_at_a_time = self.undo.turn.lock().await;
        let found = self.find(person, what).await?;
        let blobs = Arc::clone(&self.undo.blobs);
        let manifests: Vec<_> = found.iter().map(|action| action.manifest.clone()).collect();
        let plans = blocking(move || plan::plan(&blobs, &manifests)).await;
        let plans = plans.ok_or_else(ending)??;
        let mut undone = Undone::default();
        for (action, puts) in found.into_iter().zip(plans) {
            match self.take_back(person, &action, puts).await {
                Ok(action) => undone.actions.push(action),
                Err(failure) if undone.actions.is_empty() => return Err(failure),
                Err(failure) => {
                    let ids = undone.actions.iter().map(|action| &action.action_id);
                    let ids = json!(ids.collect::<Vec<_>>());
                    return Err(failure.with("undone", ids));
                }
            }
        }
        Ok(undone)
    }

    /// One action: written, done, written.
    async fn take_back(
        &self,
        person: &str,
        action: &Undoable,
        puts: Vec<Put>,
    ) -> Result<UndoneAction, Failure> {
        let began = Instant::now();
        let workspace = self.workspace(Some(Path::new(&action.manifest.workspace)))?;
        let note = Note {
            id: new_id()?,
            actor: Actor::Person(person.to_owned()).name(),
            person,
            of: action,
            workspace: &workspace,
        };
        let request =
            json!({"action": UNDO, "params": {}, "undo_of": action.id, "mode": Mode::Sandbox});
        let mut told = request.clone();
        for (key, value) in note.about() {
            told[key] = value;
        }
        let write = note.write(self, EntryKind::Request, request, events::REQUESTED, told);
        write.await.map_err(|error| unwritten(&error))?;

        let mut steps = Vec::new();
        let mut outcome = Ok(());
        for (index, put) in puts.into_iter().enumerate() {
            let run = format!("{}.{index}", note.id);
            outcome = self.put_back(&note, run, put, &mut steps).await;
            if outcome.is_err() {
                break;
            }
        }
        let half_done = outcome.is_err() && !steps.is_empty();
        let changed = self.undo.written(&action.manifest.workspace, steps).await;
        let mut data = match &outcome {
            Ok(()) => json!({"status": "done"}),
            Err(failure) => {
                json!({"status": "failed", "kind": failure.kind, "error": failure.message})
            }
        };
        data["undo_of"] = json!(action.id);
        data["duration_ms"] = json!(u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX));
        changed.tell(&mut data);
        let mut told = data.clone();
        if outcome.is_ok() {
            told["result"] = json!({"undo_of": action.id});
        }
        let write = note.write(self, EntryKind::Outcome, data, events::ENDED, told);
        write.await.map_err(|error| unwritten(&error))?;
        let undo_id = note.id;
        let Changed { files, .. } = changed;
        match outcome {
            Ok(()) => Ok(UndoneAction {
                action_id: action.id.clone(),
                undo_id,
                files,
            }),
            Err(failure) if half_done => {
                Err(failure.with("undo_id", undo_id).with("files", json!(files)))
            }
            Err(failure) => Err(failure),
        }
    }

    async fn put_back(
        &self,
        note: &Note<'_>,
        run: String,
        put: Put,
        steps: &mut Vec<Step>,
    ) -> Result<(), Failure> {
        let (name, params, expected) = match put {
            Put::Write {
                path,
                digest,
                mode,
                over,
            } => {
                let (blobs, wanted) = (Arc::clone(&self.undo.blobs), digest);
                let bytes = blocking(move || blobs.read(&wanted)).await;
                let bytes = bytes.ok_or_else(ending)?.ok().flatten();
                let content = Data::from_bytes(bytes.ok_or_else(|| plan::gone(&path))?);
                let mut params =
                    json!({"path": path, "content": content.text, "encoding": content.encoding});
                if let Some(mode) = mode {
                    params["mode"] = json!(mode);
                }
                (ActionName::FsWrite, params, vec![(path, over)])
            }
            Put::Mkdir { path, mode } => {
                let mut params = json!({"path": path});
                if let Some(mode) = mode {
                    // What was in it has to be put back into it.
                    params["mode"] = json!(protocol::Permissions::of(mode.bits() | 0o700));
                }
                (ActionName::FsMkdir, params, vec![(path, State::Absent)])
            }
            Put::Delete { path, what } => (
                ActionName::FsDelete,
                json!({"path": path}),
                vec![(path, what)],
            ),
            Put::DeleteEmpty { path } => {
                let params = json!({"path": path});
                let what = State::Directory { mode: None };
                let done = self.act(
                    note,
                    run,
                    ActionName::FsDelete,
                    params,
                    vec![(path, what)],
                    steps,
                );
                // Then somebody else uses it by now, and it stays.
                let _ = done.await;
                return Ok(());
            }
            Put::Move { from, to, what } => {
                let params = json!({"from": from, "to": to});
                (
                    ActionName::FsMove,
                    params,
                    vec![(from, what), (to, State::Absent)],
                )
            }
            Put::Link { path, target } => return self.link(note, run, path, target, steps).await,
        };
        self.act(note, run, name, params, expected, steps).await
    }

    /// One file action, if what is there is what was planned on.
    async fn act(
        &self,
        note: &Note<'_>,
        run: String,
        name: ActionName,
        params: Value,
        expected: Vec<(String, State)>,
        steps: &mut Vec<Step>,
    ) -> Result<(), Failure> {
        let facts = note
            .workspace
            .runtime
            .resolve(name.as_str(), &params)
            .await?;
        for (index, (path, state)) in expected.iter().enumerate() {
            if !facts
                .paths
                .get(index)
                .is_some_and(|fact| fits(fact, path, state))
            {
                return Err(changed(path));
            }
        }
        let earlier = self.undo.look(name, &facts).await;
        let done = self
            .execute(note, run, name, params, facts, Vec::new())
            .await;
        let looked = blocking(move || match done {
            Ok(result) => (left::after(name, earlier, &result), Ok(())),
            Err(failure) => (left::after_failure(name, earlier, &failure), Err(failure)),
        });
        let (changes, done) = looked.await.ok_or_else(ending)?;
        steps.extend(changes);
        done
    }

    /// No file action makes links, so a command does, inside the wall.
    async fn link(
        &self,
        note: &Note<'_>,
        run: String,
        path: String,
        target: String,
        steps: &mut Vec<Step>,
    ) -> Result<(), Failure> {
        let params = json!({"argv": ["ln", "-s", "--", target, path]});
        let name = ActionName::TerminalRun;
        let facts = note
            .workspace
            .runtime
            .resolve(name.as_str(), &params)
            .await?;
        let mut widen = Vec::new();
        if let Some(above) = Path::new(&path).parent()
            && !above.starts_with(&note.workspace.real)
        {
            widen.push(Widen {
                path: above.to_string_lossy().into_owned(),
                access: WidenAccess::Write,
            });
        }
        let result = self.execute(note, run, name, params, facts, widen).await?;
        let looked = path.clone();
        let there = blocking(move || disk::state(Path::new(&looked))).await;
        let made = State::Symlink { target };
        if there.ok_or_else(ending)?.is_ok_and(|there| there == made) {
            steps.push(Step::Change(FileChange::new(
                path,
                State::Absent,
                made,
                None,
            )));
            return Ok(());
        }
        let said = serde_json::from_str::<RunResult>(result.get());
        let said = said.map(|result| result.stderr).unwrap_or_default();
        Err(Failure::new(
            ErrorKind::Io,
            format!(
                "The symbolic link {} could not be made again: {}.",
                diff::name(&path),
                diff::name(said.trim())
            ),
        )
        .with("path", path))
    }

    async fn execute(
        &self,
        note: &Note<'_>,
        run: String,
        name: ActionName,
        params: Value,
        facts: Facts,
        widen: Vec<Widen>,
    ) -> Result<Box<RawValue>, Failure> {
        let digest = canonical::digest(&json!({
            "action": name, "params": params, "facts": facts, "actor": note.actor,
            "mode": Mode::Sandbox, "undo_of": note.of.id, "widen": widen,
        }))?;
        let permit = Permit::new(Terms {
            id: run,
            action: name.as_str().to_owned(),
            params,
            session: None,
            facts,
            digest,
            mode: Mode::Sandbox,
            wall: WallParams {
                beyond: true,
                widen,
            },
        });
        let runtime = &note.workspace.runtime;
        runtime.execute(permit, Output::nowhere()).await
    }
}

/// An undo, as it is written down.
struct Note<'a> {
    id: String,
    actor: String,
    person: &'a str,
    of: &'a Undoable,
    workspace: &'a Workspace,
}

impl Note<'_> {
    fn about(&self) -> [(&'static str, Value); 5] {
        let content = Digest::of(self.of.id.as_bytes());
        [
            ("actor", json!(self.actor)),
            ("person", json!(self.person)),
            ("workspace", json!(self.workspace.name)),
            ("session_id", json!(self.of.session)),
            ("content", json!(content)),
        ]
    }

    async fn write<S: Store>(
        &self,
        gate: &Inner<S>,
        kind: EntryKind,
        data: Value,
        event: &'static str,
        mut told: Value,
    ) -> Result<(), StoreError> {
        let at = now();
        gate.redactor.redact(&mut told);
        let entry = NewEntry {
            kind,
            at,
            actor: self.actor.clone(),
            role: None,
            session: self.of.session.clone(),
            workspace: Some(self.workspace.name.clone()),
            action_id: Some(self.id.clone()),
            data: data.into(),
        };
        let append = Append {
            stream: stream_of(&self.id)?,
            expected: match kind {
                EntryKind::Request => Expected::Head(Seq::START),
                _ => Expected::Any,
            },
            events: vec![NewEvent {
                kind: event.into(),
                at,
                data: told.into(),
            }],
        };
        gate.ledger.write(vec![entry], vec![append]).await.map(drop)
    }
}

/// Whether what the runtime sees at a path is what was planned on.
fn fits(fact: &PathFact, path: &str, state: &State) -> bool {
    fact.path == path
        && match state {
            State::Absent => fact.kind.is_none(),
            State::File { digest, .. } => {
                fact.kind == Some(Kind::File) && fact.digest.as_ref() == Some(digest)
            }
            State::Directory { .. } => fact.kind == Some(Kind::Directory),
            State::Symlink { target } => {
                let digest = Digest::of(target.as_bytes());
                fact.kind == Some(Kind::Symlink) && fact.digest == Some(digest)
            }
            State::Other => false,
        }
}

fn changed(path: &str) -> Failure {
    Failure::new(
        ErrorKind::Changed,
        format!(
            "{} was changed by somebody else at this moment, so it was left as it is. Look at it, then try once more.",
            diff::name(path)
        ),
    )
    .with("path", path)
}

fn ending() -> Failure {
    Failure::new(ErrorKind::ShuttingDown, "Ward is ending.")
}
