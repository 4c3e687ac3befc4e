//! Reads the roles and rules that hold in a workspace, and resolves what an action would touch:
//! what `ward policy` and `ward roles` share.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use policy::{Mistake, Rules, SkillFile, Source, builtin};
use protocol::Facts;
use protocol::facts::{Access, CommandFact, PathFact};
use runtime_server::context::Context;
use runtime_server::registry;
use runtime_server::workspace::Workspace;
use serde_json::{Map, Value};

use crate::folders;

/// What holds in a workspace.
pub(super) struct Files {
    pub(super) roles: policy::Roles,
    pub(super) rules: Rules,
    /// What is wrong with rules and skill files; the roles keep their own.
    pub(super) mistakes: Vec<Mistake>,
}

impl Files {
    /// Reads the built-ins, the person's config folder, and the workspace, which nobody has trusted
    /// as long as there is no way to.
    pub(super) fn read(workspace: &Path) -> anyhow::Result<Self> {
        let config = folders::config()?;
        let mut files = Self {
            roles: builtin::roles(),
            rules: Rules::default(),
            mistakes: Vec::new(),
        };
        files.add_rules(builtin::rules());
        let mut skills = files.skills(&config.join("skills"), Source::Person)?;
        files.roles_in(&config.join("roles"), Source::Person, &skills)?;
        files.rules_in(&config.join("rules.toml"), Source::Person)?;
        skills.extend(files.skills(&workspace.join(".ward/skills"), Source::Untrusted)?);
        for folder in [".ward/roles", ".claude/agents"] {
            files.roles_in(&workspace.join(folder), Source::Untrusted, &skills)?;
        }
        files.rules_in(&workspace.join("ward.toml"), Source::Untrusted)?;
        Ok(files)
    }

    /// Refuses to go on with rules that could not be read.
    pub(super) fn sound(self) -> anyhow::Result<Self> {
        if self.mistakes.iter().any(is_error) {
            let told: Vec<String> = self.mistakes.iter().map(Mistake::to_string).collect();
            bail!("{}", told.join("\nward: "));
        }
        Ok(self)
    }

    fn roles_in(
        &mut self,
        folder: &Path,
        source: Source,
        skills: &[SkillFile],
    ) -> anyhow::Result<()> {
        for path in entries(folder)? {
            if path.extension().is_none_or(|ending| ending != "md") {
                continue;
            }
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            if let Some(text) = text_of(&path)? {
                self.roles
                    .read(&text, &path.to_string_lossy(), &stem, source, skills);
            }
        }
        Ok(())
    }

    fn skills(&mut self, folder: &Path, source: Source) -> anyhow::Result<Vec<SkillFile>> {
        let mut skills = Vec::new();
        for path in entries(folder)? {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let file = path.join("SKILL.md");
            let Some(text) = text_of(&file)? else {
                continue;
            };
            match SkillFile::read(&text, &file.to_string_lossy(), &name, source) {
                Ok((skill, mistakes)) => {
                    skills.push(skill);
                    self.mistakes.extend(mistakes);
                }
                Err(mistakes) => self.mistakes.extend(mistakes),
            }
        }
        Ok(skills)
    }

    fn rules_in(&mut self, file: &Path, source: Source) -> anyhow::Result<()> {
        if let Some(text) = text_of(file)? {
            self.add_rules(Rules::read(&text, &file.to_string_lossy(), source));
        }
        Ok(())
    }

    fn add_rules(&mut self, rules: Result<Rules, Vec<Mistake>>) {
        match rules {
            Ok(rules) => self.rules.extend(rules),
            Err(mistakes) => self.mistakes.extend(mistakes),
        }
    }
}

pub(super) fn is_error(mistake: &Mistake) -> bool {
    match mistake.weight {
        policy::Weight::Error => true,
        policy::Weight::Note => false,
    }
}

/// What is in a folder, by name; nothing where it is not there.
fn entries(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let told = || format!("{} could not be read", folder.display());
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if missing(&error) => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(told),
    };
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<_>>()
        .with_context(told)?;
    paths.sort();
    Ok(paths)
}

fn text_of(file: &Path) -> anyhow::Result<Option<String>> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if missing(&error) => Ok(None),
        Err(error) => Err(error).with_context(|| format!("{} could not be read", file.display())),
    }
}

fn missing(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
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
    let prepared = registry::prepare(action, Value::Object(params.clone()))?;
    let context = Context::files_only(Workspace::open(workspace)?);
    let threads = tokio::runtime::Builder::new_current_thread()
        .build()
        .context("Ward could not start its threads")?;
    match threads.block_on(prepared.resolve(context.into())) {
        Ok(facts) => Ok(Resolved {
            facts,
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
