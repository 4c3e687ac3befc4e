//! Why a question is asked once more: what was answered is no longer what would happen.

use std::collections::BTreeMap;
use std::path::Path;

use protocol::approval::{Approval, AskedAgain};
use protocol::facts::FileFact;
use protocol::{Digest, Facts, Mode};

/// The most files that are named.
const MOST_NAMED: usize = 3;

/// What a person answered about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    approval_id: String,
    facts: Facts,
    mode: Mode,
    /// The policy's version; not known after a restart.
    policy: Option<Digest>,
    /// By how many paths the wall was widened.
    widened: usize,
}

impl Seen {
    pub(crate) fn new(approval: &Approval, policy: Option<&Digest>, widened: usize) -> Self {
        Self {
            approval_id: approval.id.clone(),
            facts: approval.facts.clone(),
            mode: approval.mode,
            policy: policy.cloned(),
            widened,
        }
    }

    /// What has changed since, for people.
    pub(crate) fn again(
        &self,
        facts: &Facts,
        mode: Mode,
        policy: &Digest,
        widened: usize,
        workspace: &Path,
    ) -> AskedAgain {
        let mut told = Vec::new();
        let files = changed(&self.facts.files, &facts.files, workspace);
        let further = self.facts.more_files != facts.more_files;
        match (files.as_slice(), further) {
            ([], false) => {}
            ([], true) => told.push(
                "Of the many files that the command names, some have changed since the answer."
                    .to_owned(),
            ),
            ([one], _) => told.push(format!(
                "A file that the command names has changed since the answer: {one}."
            )),
            (several, _) => {
                let named = several[..several.len().min(MOST_NAMED)].join(", ");
                let more = match several.len().saturating_sub(MOST_NAMED) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                told.push(format!(
                    "Files that the command names have changed since the answer: {named}{more}."
                ));
            }
        }
        if (&self.facts.paths, &self.facts.hosts, &self.facts.command)
            != (&facts.paths, &facts.hosts, &facts.command)
        {
            told.push("What it would touch or run has changed since the answer.".to_owned());
        }
        if self.policy.as_ref().is_some_and(|before| before != policy) {
            told.push("Rules, roles or what is trusted have changed since the answer.".to_owned());
        }
        if self.mode != mode {
            told.push(format!("It would run in mode `{mode}` now."));
        }
        if self.widened != widened {
            told.push("It would run with a wider wall than was answered about.".to_owned());
        }
        if told.is_empty() {
            told.push("What would happen is no longer what was answered about.".to_owned());
        }
        AskedAgain {
            because: told.join(" "),
            after: self.approval_id.clone(),
        }
    }
}

/// Files that are other ones now, have come or have gone, as people read them.
fn changed(before: &[FileFact], now: &[FileFact], workspace: &Path) -> Vec<String> {
    let mut differing: BTreeMap<&str, &Digest> = before
        .iter()
        .map(|file| (file.path.as_str(), &file.digest))
        .collect();
    for file in now {
        match differing.get(file.path.as_str()) {
            Some(digest) if **digest == file.digest => {
                differing.remove(file.path.as_str());
            }
            Some(_) | None => {
                differing.insert(&file.path, &file.digest);
            }
        }
    }
    let within = |path: &str| {
        let inside = Path::new(path).strip_prefix(workspace);
        inside.map_or_else(
            |_| path.to_owned(),
            |path| path.to_string_lossy().into_owned(),
        )
    };
    differing.into_keys().map(within).collect()
}

#[cfg(test)]
mod tests {
    use protocol::facts::{Access, PathFact};

    use super::*;

    fn facts(files: &[(&str, &str)]) -> Facts {
        let fact = |(path, content): &(&str, &str)| FileFact {
            path: (*path).to_owned(),
            digest: Digest::of(content.as_bytes()),
        };
        Facts {
            files: files.iter().map(fact).collect(),
            ..Facts::default()
        }
    }

    fn because(before: &Facts, now: &Facts) -> String {
        let seen = Seen {
            approval_id: "a1".to_owned(),
            facts: before.clone(),
            mode: Mode::Sandbox,
            policy: Some(Digest::of(b"p")),
            widened: 0,
        };
        let again = seen.again(now, Mode::Sandbox, &Digest::of(b"p"), 0, Path::new("/work"));
        assert_eq!(again.after, "a1");
        again.because
    }

    #[test]
    fn the_files_that_changed_came_or_went_are_named() {
        let one = facts(&[("/work/d.sh", "a"), ("/work/e.sh", "a")]);
        let changed = facts(&[("/work/d.sh", "b"), ("/work/e.sh", "a")]);
        assert_eq!(
            because(&one, &changed),
            "A file that the command names has changed since the answer: d.sh."
        );
        let others = facts(&[("/work/d.sh", "a"), ("/etc/x", "a")]);
        assert_eq!(
            because(&one, &others),
            "Files that the command names have changed since the answer: /etc/x, e.sh."
        );
        let many: Vec<String> = (0..5).map(|number| format!("/work/{number}")).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|path| (path.as_str(), "a")).collect();
        assert_eq!(
            because(&Facts::default(), &facts(&many)),
            "Files that the command names have changed since the answer: 0, 1, 2 and 2 more."
        );
    }

    #[test]
    fn other_changes_are_told_too_and_all_of_them() {
        let nothing = Facts::default();
        let touches = Facts {
            paths: vec![PathFact {
                path: "/work/a".to_owned(),
                access: Access::Write,
                kind: None,
                digest: None,
            }],
            ..Facts::default()
        };
        assert_eq!(
            because(&nothing, &touches),
            "What it would touch or run has changed since the answer."
        );
        assert_eq!(
            because(&nothing, &nothing),
            "What would happen is no longer what was answered about."
        );
        let seen = Seen {
            approval_id: "a1".to_owned(),
            facts: nothing.clone(),
            mode: Mode::Sandbox,
            policy: Some(Digest::of(b"p")),
            widened: 0,
        };
        let again = seen.again(
            &nothing,
            Mode::Full,
            &Digest::of(b"q"),
            1,
            Path::new("/work"),
        );
        assert_eq!(
            again.because,
            "Rules, roles or what is trusted have changed since the answer. It would run in mode `full` now. It would run with a wider wall than was answered about."
        );
    }
}
