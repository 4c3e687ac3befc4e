//! Reads the roles and rules that hold in a workspace, and resolves what an action would touch:
//! what `ward policy` and `ward roles` share.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use gate::files::{Files, Trust};
use policy::Mistake;
use protocol::Facts;
use protocol::facts::{Access, CommandFact, PathFact};
use runtime_server::Near;
use runtime_server::context::Context;
use runtime_server::registry;
use runtime_server::workspace::Workspace;
use serde_json::{Map, Value};

use crate::console::printable;
use crate::folders;

/// What decides in a workspace, with its mistakes.
pub(super) fn read(workspace: &Path) -> anyhow::Result<Files> {
    let config = folders::config()?;
    let trust = Trust::read(&config)?;
    Ok(Files::read(&config, workspace, &trust)?)
}

/// The same; refuses to go on with rules that could not be read.
pub(super) fn read_sound(workspace: &Path) -> anyhow::Result<Files> {
    let files = read(workspace)?;
    sound(&files)?;
    Ok(files)
}

/// Whether every rule could be read.
pub(super) fn sound(files: &Files) -> anyhow::Result<()> {
    if files.refused().is_empty() {
        return Ok(());
    }
    // What a workspace says in them must not reach a terminal as it is.
    let told = files.refused().iter().map(Mistake::to_string);
    let told: Vec<String> = told.map(|mistake| printable(&mistake)).collect();
    bail!("{}", told.join("\nward: "));
}

pub(super) fn is_error(mistake: &Mistake) -> bool {
    match mistake.weight {
        policy::Weight::Error => true,
        policy::Weight::Note => false,
    }
}

/// Ward's own folders.
pub(super) fn own() -> anyhow::Result<Vec<PathBuf>> {
    let mut own = folders::own()?;
    own.push(folders::state()?);
    Ok(own)
}

/// What an action would touch, and who says so.
pub(super) struct Resolved {
    pub(super) facts: Facts,
    /// Why these are only the parameters' word; [`None`] where the runtime resolved them.
    pub(super) instead: Option<String>,
}

/// Asks the runtime what an action would touch; where it refuses, the parameters have to do.
pub(super) fn resolve(
    workspace: &Path,
    action: &str,
    params: Map<String, Value>,
) -> anyhow::Result<Resolved> {
    let asked = Value::Object(params.clone());
    let prepared = registry::prepare(action, asked.clone())?;
    let own = own()?;
    // As the gate looks: a path that leads out of the workspace is decided on where it leads.
    let near = Near::open(workspace, &own)?;
    let context = Context::files_only(Workspace::open(workspace)?);
    let threads = tokio::runtime::Builder::new_current_thread()
        .build()
        .context("Ward could not start its threads")?;
    let facts = threads.block_on(async {
        match near.look(action, &asked).await {
            Some(facts) => facts,
            None => prepared.resolve(context.into()).await,
        }
    });
    match facts {
        Ok(facts) => Ok(Resolved {
            facts: gate::redirected(&facts, &workspace.to_string_lossy()).unwrap_or(facts),
            instead: None,
        }),
        Err(failure) => Ok(Resolved {
            facts: from_params(workspace, action, &params),
            instead: Some(failure.to_string()),
        }),
    }
}

/// Facts from the parameters alone: paths as written, links not followed.
fn from_params(workspace: &Path, action: &str, params: &Map<String, Value>) -> Facts {
    let text = |key: &str| params.get(key).and_then(Value::as_str);
    let access = match action {
        "fs.read" | "fs.list" | "fs.stat" | "fs.glob" | "fs.search" => Access::Read,
        "fs.delete" => Access::Delete,
        _ => Access::Write,
    };
    let fact = |path: &str, access| PathFact {
        path: workspace.join(path).to_string_lossy().into_owned(),
        access,
        kind: None,
        digest: None,
    };
    let mut facts = Facts::default();
    facts
        .paths
        .extend(text("path").map(|path| fact(path, access)));
    facts
        .paths
        .extend(text("from").map(|path| fact(path, Access::Delete)));
    facts
        .paths
        .extend(text("to").map(|path| fact(path, Access::Write)));
    if let Some(line) = text("command") {
        facts.command = Some(CommandFact {
            line: Some(line.to_owned()),
            argv: ["/bin/sh", "-c", line].map(str::to_owned).to_vec(),
            program: None,
            cwd: workspace.to_string_lossy().into_owned(),
            env: [].into(),
        });
    }
    facts
}
