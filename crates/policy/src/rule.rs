//! Rules: lines of policy, written in TOML.
//!
//! ```toml
//! [[rules]]
//! deny = "fs.write(migrations/**)"
//! reason = "Migrations are made by the release job."
//!
//! [[rules]]
//! allow = "net(example.com:443)"
//! ```

use std::collections::HashMap;

use serde::Serialize;

use crate::command::{Word, base_name};
use crate::decision::Verdict;
use crate::mistake::Mistake;
use crate::pattern::{Pattern, Topic};
use crate::place::{Base, Below};
use crate::rule_file;
use crate::touch::Touch;

/// Whose word something is. The order is that of weight: of two roles with one name, the larger
/// wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A workspace that nobody has trusted: only its deny and ask count, and none of its roles.
    Untrusted,
    /// Ward's own.
    Builtin,
    /// A workspace whose present content the person has trusted.
    Trusted,
    /// The person's config folder.
    Person,
}

impl Source {
    /// As people read it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Untrusted => "the workspace, untrusted",
            Self::Builtin => "built in",
            Self::Trusted => "the workspace, trusted",
            Self::Person => "your own",
        }
    }
}

/// Where something is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Origin {
    /// Whose word it is.
    pub source: Source,
    /// The file, as the caller named it.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A line of policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// What it says.
    pub verdict: Verdict,
    /// About what.
    pub pattern: Pattern,
    /// Why; empty where nobody said.
    pub reason: String,
    /// Where it is written.
    pub origin: Origin,
}

/// All rules that count. Their order means nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    all: Vec<Rule>,
    /// Which of them are about what, so that a thousand rules cost no more than the few that
    /// matter.
    index: HashMap<Topic, Vec<usize>>,
    /// All about files, and all about commands: for what is not known enough to look further.
    files: Vec<usize>,
    commands: Vec<usize>,
}

impl Rules {
    /// Reads a file of rules. One mistake refuses the whole file: a typing error must not quietly
    /// become a weaker policy. All of them are told.
    pub fn read(text: &str, file: &str, source: Source) -> Result<Self, Vec<Mistake>> {
        Ok(rule_file::read(text, file, source)?.into_iter().collect())
    }

    /// Adds the rules of another file.
    pub fn extend(&mut self, other: Self) {
        other.all.into_iter().for_each(|rule| self.push(rule));
    }

    /// Adds one rule.
    pub fn push(&mut self, rule: Rule) {
        let topic = rule.pattern.topic();
        let number = self.all.len();
        match topic {
            Topic::Files | Topic::Folder(_) => self.files.push(number),
            Topic::Commands | Topic::Program(_) => self.commands.push(number),
            Topic::Everything | Topic::Hosts => {}
        }
        self.index.entry(topic).or_default().push(number);
        self.all.push(rule);
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.all.iter()
    }

    /// Those that may have a say about this, in the order written.
    pub(crate) fn about(&self, touch: &Touch) -> impl Iterator<Item = &Rule> {
        let of = |topic: Topic| self.index.get(&topic).map_or(&[][..], Vec::as_slice);
        let (some, more) = match touch {
            Touch::Path { path, .. } => {
                match path.as_ref().map(|path| path.below(Base::Workspace)) {
                    Some(Below::Names([first, ..])) => {
                        (of(Topic::Files), of(Topic::Folder(first.clone())))
                    }
                    Some(Below::Elsewhere) => (of(Topic::Files), &[][..]),
                    // All of the workspace or more, or not known.
                    Some(Below::Names([]) | Below::Above | Below::Unknown) | None => {
                        (self.files.as_slice(), &[][..])
                    }
                }
            }
            Touch::Host { .. } => (of(Topic::Hosts), &[][..]),
            Touch::Use(_) => (of(Topic::Commands), &[][..]),
            Touch::Command(command) => match command.words.first().and_then(Word::known) {
                Some(program) => {
                    let program = Topic::Program(base_name(program).to_owned());
                    (of(Topic::Commands), of(program))
                }
                None => (self.commands.as_slice(), &[][..]),
            },
            Touch::Unknown(_) | Touch::Typed => (self.commands.as_slice(), &[][..]),
        };
        let mut found = [of(Topic::Everything), some, more].concat();
        found.sort_unstable();
        found.into_iter().map(|number| &self.all[number])
    }
}

impl FromIterator<Rule> for Rules {
    fn from_iter<I: IntoIterator<Item = Rule>>(rules: I) -> Self {
        let mut all = Self::default();
        rules.into_iter().for_each(|rule| all.push(rule));
        all
    }
}

/// The line, from 1, at this byte.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use protocol::ActionName;
    use protocol::facts::Access;

    use super::*;
    use crate::command::{About, Command, Doubt, Folder, Input, Part};
    use crate::exact::Exact;
    use crate::pattern::{Fit, Stance};
    use crate::place::{Place, Spot};
    use crate::touch::Reach;

    #[test]
    fn the_index_leaves_out_nothing_that_would_restrict() {
        let patterns = [
            "*",
            "fs.*",
            "fs.read",
            "fs.edit(src/**)",
            "fs.write(src)",
            "fs.write(**/a)",
            "fs.write(/etc/**)",
            "fs.write(~/x)",
            "fs.write({src,etc}/a)",
            "terminal.*",
            "terminal.run",
            "net",
            "net(a.org)",
            "terminal.run(git push *)",
            "terminal.run(/usr/bin/git push)",
            "terminal.run(* push)",
            "terminal.run(g?t *)",
            "terminal.run(*)",
            "terminal.write",
            "terminal.list",
        ];
        let rules: Rules = patterns
            .iter()
            .map(|pattern| Rule {
                verdict: Verdict::Deny,
                pattern: Pattern::parse(pattern).unwrap(),
                reason: String::new(),
                origin: Origin {
                    source: Source::Person,
                    file: String::new(),
                    line: 1,
                },
            })
            .collect();
        let words = |words: &[&str]| {
            words
                .iter()
                .map(|word| Word::Known((*word).to_owned()))
                .collect()
        };
        let command = |words| {
            Touch::Command(Command {
                words,
                part: Part::Acts,
                input: Input::None,
                folder: Folder::Workspace,
            })
        };
        let place = Place {
            workspace: "/project",
            home: None,
            own: &[],
        };
        let path = |path: Option<&str>, reach| Touch::Path {
            access: Access::Write,
            path: path.map(|path| Spot::new(path, &place)),
            reach,
            by: crate::touch::By::Action(ActionName::FsEdit),
            shown: String::new(),
        };
        let touches = [
            command(words(&["git", "push"])),
            command(words(&["./git", "push"])),
            command(words(&["ls"])),
            command(vec![
                Word::One("$X".to_owned()),
                Word::Known("push".to_owned()),
            ]),
            Touch::Unknown(Doubt {
                about: About::Commands,
                reason: String::new(),
            }),
            Touch::Typed,
            Touch::Use(ActionName::TerminalRun),
            Touch::Use(ActionName::TerminalList),
            Touch::Host {
                host: None,
                shown: String::new(),
            },
            path(Some("/project/src/a"), Reach::Itself),
            path(Some("/project/src"), Reach::Tree),
            path(Some("/project"), Reach::Tree),
            path(Some("/"), Reach::Tree),
            path(Some("/etc/passwd"), Reach::Itself),
            path(None, Reach::Itself),
        ];
        for touch in &touches {
            let fits = |rule: &&Rule| {
                rule.pattern
                    .fits(touch, Stance::Restrict, &Exact::new(None))
                    != Fit::No
            };
            let all: Vec<&Rule> = rules.iter().filter(fits).collect();
            assert_eq!(
                rules.about(touch).filter(fits).collect::<Vec<_>>(),
                all,
                "{touch}"
            );
        }
    }
}
