//! The files that decide: roles, skills and rules, from the person's config folder and from the
//! workspace; and whether the person has trusted what the workspace holds.
//!
//! What is in the workspace may have been put there by anybody. It is read without following links,
//! within limits, and until the person has trusted exactly these bytes only its deny and ask count.

mod folder;
mod reading;
mod stamp;
mod trust;

use std::path::{Path, PathBuf};

use policy::{Mistake, Origin, Roles, Rules, Source, Verdict, Weight, builtin};
use protocol::Digest;
use sha2::{Digest as _, Sha256};

use self::folder::{Folder, Links};
use self::reading::Found;
use self::stamp::Seen;

pub(crate) use self::stamp::{Here, Place};
pub use self::trust::{BadTrust, Trust, Trusted};

/// What a workspace tells agents in its `AGENTS.md`; nothing where there is none that can be read.
pub(crate) fn guide(workspace: &Path) -> Option<String> {
    let name = Path::new("AGENTS.md");
    match Folder::new(workspace, Links::Refused).text(name) {
        Ok(text) => text,
        Err(refusal) => {
            tracing::warn!(%refusal, "AGENTS.md is not told to agents");
            None
        }
    }
}

/// What decides in a workspace, as it was when it was read.
#[derive(Debug, Clone)]
pub struct Files {
    /// The roles, also those that cannot be used because they are not trusted.
    pub roles: Roles,
    /// All rules.
    pub rules: Rules,
    /// What is wrong with any of the files.
    pub mistakes: Vec<Mistake>,
    /// Changes whenever anything that decides does: a byte, a name, the trust, Ward itself.
    pub version: Digest,
    /// What the workspace holds, for [`Trust`]; [`None`] where it holds nothing that decides.
    pub found: Option<Trusted>,
    /// Whose word the workspace's files are.
    pub source: Source,
    refused: Vec<Mistake>,
    seen: Seen,
}

/// Why the files cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum BadFiles {
    /// The workspace cannot be opened.
    #[error("The workspace {path} cannot be read: {error}.")]
    Workspace {
        /// Which.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// What has been trusted cannot be read.
    #[error(transparent)]
    Trust(#[from] BadTrust),
}

impl Files {
    /// Reads everything that decides in this workspace. A file that cannot be used is a mistake,
    /// and the others are read all the same.
    pub fn read(config: &Path, workspace: &Path, trust: &Trust) -> Result<Self, BadFiles> {
        let mut files = Self::read_with(config, workspace, |found| {
            match trust.holds(workspace, &found.digest) {
                true => Source::Trusted,
                false => Source::Untrusted,
            }
        })?;
        files.seen.extend(trust.seen());
        Ok(files)
    }

    /// The same, as if the person had trusted the workspace: what `ward trust` shows.
    pub fn read_as_trusted(config: &Path, workspace: &Path) -> Result<Self, BadFiles> {
        Self::read_with(config, workspace, |_| Source::Trusted)
    }

    fn read_with(
        config: &Path,
        workspace: &Path,
        trusted: impl FnOnce(&Trusted) -> Source,
    ) -> Result<Self, BadFiles> {
        let own = reading::own(&Folder::new(config, Links::Followed));
        let folder = Folder::new(workspace, Links::Refused);
        folder.check().map_err(|error| BadFiles::Workspace {
            path: workspace.to_owned(),
            error,
        })?;
        let theirs = reading::workspace(&folder);
        let found = theirs.trusted();
        let source = found.as_ref().map_or(Source::Untrusted, trusted);

        let mut files = Self {
            roles: builtin::roles(),
            rules: Rules::default(),
            mistakes: Vec::new(),
            version: version(&own, &theirs, source),
            found,
            source,
            refused: Vec::new(),
            seen: Seen::default(),
        };
        files.add_rules(builtin::rules());
        let mut skills = Vec::new();
        files.add(own, Source::Person, &mut skills);
        files.add(theirs, source, &mut skills);
        let allows = files.allows();
        if let Some(found) = &mut files.found {
            found.allows = allows;
        }
        let of_roles = files.roles.mistakes().iter().cloned();
        files.mistakes = of_roles
            .chain(std::mem::take(&mut files.mistakes))
            .collect();
        Ok(files)
    }

    /// Whether everything is still as it was read, by what the file system says about each file:
    /// cheap enough to ask before every action. The workspace's folder was just looked at.
    pub(crate) fn is_current(&self, workspace: &Here<'_>) -> bool {
        self.seen.is_current(workspace)
    }

    /// What the workspace's files allow, or would if they were trusted, a line each.
    #[must_use]
    pub fn allows(&self) -> Vec<String> {
        let theirs = |origin: &Origin| matches!(origin.source, Source::Trusted | Source::Untrusted);
        let roles = self.roles.iter().filter(|role| theirs(&role.origin));
        let roles = roles.map(|role| {
            let skills: Vec<&str> = role
                .skills
                .iter()
                .map(|skill| skill.pattern.as_str())
                .collect();
            let skills = match skills.is_empty() {
                true => "nothing".to_owned(),
                false => skills.join(", "),
            };
            let (name, mode) = (&role.name, role.mode);
            format!("role {name}, mode {mode}, may {skills}")
        });
        let rules = self.rules.iter().filter(|rule| theirs(&rule.origin));
        let rules = rules
            .filter(|rule| rule.verdict == Verdict::Allow)
            .map(|rule| match rule.reason.as_str() {
                "" => format!("allow {}", rule.pattern),
                reason => format!("allow {}: {reason}", rule.pattern),
            });
        roles.chain(rules).collect()
    }

    /// Mistakes in rules. Where there are any nothing may be decided: a rule that denies may be
    /// among those that could not be read.
    #[must_use]
    pub fn refused(&self) -> &[Mistake] {
        &self.refused
    }

    fn add(&mut self, found: Found, source: Source, skills: &mut Vec<policy::SkillFile>) {
        self.seen.extend(&found.seen);
        self.mistakes.extend(found.mistakes);
        self.refused.extend(found.refused.iter().cloned());
        self.mistakes.extend(found.refused);
        for file in &found.skills {
            match policy::SkillFile::read(&file.text, &file.shown, &file.stem, source) {
                Ok((skill, mistakes)) => {
                    skills.push(skill);
                    self.mistakes.extend(mistakes);
                }
                Err(mistakes) => self.mistakes.extend(mistakes),
            }
        }
        for file in &found.roles {
            let (text, shown, stem) = (&file.text, &file.shown, &file.stem);
            self.roles.read(text, shown, stem, source, skills);
        }
        for file in &found.rules {
            self.add_rules(Rules::read(&file.text, &file.shown, source));
        }
    }

    fn add_rules(&mut self, rules: Result<Rules, Vec<Mistake>>) {
        match rules {
            Ok(rules) => self.rules.extend(rules),
            Err(mistakes) => {
                let errors = mistakes.iter().filter(|mistake| is_error(mistake));
                self.refused.extend(errors.cloned());
                self.mistakes.extend(mistakes);
            }
        }
    }
}

fn is_error(mistake: &Mistake) -> bool {
    match mistake.weight {
        Weight::Error => true,
        Weight::Note => false,
    }
}

fn version(own: &Found, workspace: &Found, source: Source) -> Digest {
    let mut hash = Sha256::new();
    for part in [
        env!("CARGO_PKG_VERSION"),
        own.digest().as_str(),
        workspace.digest().as_str(),
        source.as_str(),
    ] {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    Digest::from_hash(&hash.finalize().into())
}

#[cfg(test)]
mod tests;
