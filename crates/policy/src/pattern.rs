//! What a rule, a skill or a grant is about: `fs.read`, `fs.write(src/**)`,
//! `terminal.run(cargo test *)`, `net(example.com:443)`.
//!
//! - `fs.read`, `fs.write` and `fs.delete` stand for what happens to a path, by whichever action,
//!   and for redirections too; other names stand for that action alone.
//! - `terminal.run` stands for a command, by whichever action.
//! - `fs.*`, `terminal.*`, `editor.*`, `cell.*` and `*` stand for all of a family, and for everything.
//! - In a command, a final `*` stands for any further words, also none; elsewhere a `*` stays
//!   within one word.
//! - A program that is named from a folder (`./deploy.sh`), or a script of a shell (`sh build.sh`), is
//!   the one in the workspace's own folder: to permit it, the command has to run there.
//!   To deny it or to ask, a script behind a shell is met by its own name as well.
//! - `\\` takes the meaning from the character behind it: `fs.write(a\\*b)`, `terminal.run(echo a\\ b)`.
//! - `terminal.run(=sha256:…)` stands for one command alone: the same words, in the same folder,
//!   with the same environment. It is what a person is offered where no words can say what runs.

use protocol::ActionName;

use crate::command::base_name;
use crate::glob::{BadGlob, NameGlob, PathGlob};
use crate::host::{BadHost, Host};
use crate::mistake::closest;
use crate::place::Base;

/// How surely a pattern fits. The order is that of sureness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    /// It does not.
    No,
    /// It cannot be known.
    Maybe,
    /// It does.
    Yes,
}

/// What a pattern is asked for. Where the two readings of a pattern differ, each errs towards no.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stance {
    /// It would permit: only what it plainly names.
    Permit,
    /// It would restrict: also what comes near.
    Restrict,
}

/// A pattern that has been read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    pub(crate) name: Name,
    pub(crate) argument: Argument,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
    Everything,
    Files,
    Terminals,
    Editors,
    Cells,
    Action(ActionName),
    Net,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Argument {
    Any,
    Path(Base, PathGlob),
    Command(Vec<NameGlob>, Rest),
    /// The digest of one command.
    Exact(String),
    Host(Host),
}

/// What may follow the words of a command pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    Nothing,
    Anything,
}

/// What a pattern is about, roughly: a pattern fits nothing outside its topic.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Topic {
    Everything,
    /// Files, wherever they are.
    Files,
    /// Files below this name in the workspace.
    Folder(String),
    Hosts,
    /// Commands, whichever the program.
    Commands,
    /// Commands of the program with this name.
    Program(String),
}

/// Why a pattern cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadPattern {
    /// There is no such action.
    #[error("There is no action `{name}`.")]
    Unknown {
        /// As written.
        name: String,
        /// The action that was perhaps meant.
        closest: Option<&'static str>,
    },
    /// A parenthesis is missing.
    #[error("`{0}` has no closing parenthesis.")]
    Unclosed(String),
    /// Nothing in the parentheses.
    #[error("`{0}` has nothing in its parentheses.")]
    Empty(String),
    /// The action has nothing that a pattern could be about.
    #[error("`{0}` takes no parentheses.")]
    NoArgument(String),
    /// A bad glob.
    #[error("In `{0}`, {1}.")]
    Glob(String, BadGlob),
    /// A bad host.
    #[error("In `{0}`, {1}.")]
    Host(String, BadHost),
    /// Behind `=` is no digest.
    #[error("In `{0}`, what follows `=` is no digest.")]
    Exact(String),
}

impl BadPattern {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Unknown { closest: Some(closest), .. } => format!("Did you mean `{closest}`?"),
            Self::Unknown { closest: None, .. } => {
                "Actions are written like `fs.read`, `fs.write(src/**)`, `terminal.run(cargo test *)` or `net(example.com:443)`.".to_owned()
            }
            Self::Unclosed(_) => "Close it with `)`.".to_owned(),
            Self::Empty(_) => "Leave the parentheses out to mean all of it.".to_owned(),
            Self::NoArgument(_) => "Leave the parentheses out.".to_owned(),
            Self::Glob(..) => "Paths are written like `src/**`, `*.{rs,toml}` or `/etc/hosts`.".to_owned(),
            Self::Host(..) => "Write no scheme and no path.".to_owned(),
            Self::Exact(_) => {
                "Take it as Ward offers it; a program whose name begins with `=` is written `\\=`.".to_owned()
            }
        }
    }
}

impl Pattern {
    /// Reads a pattern.
    pub fn parse(text: &str) -> Result<Self, BadPattern> {
        let text = text.trim();
        let (name, argument) = match text.split_once('(') {
            None => (text, None),
            Some((name, rest)) => {
                let inside = rest.strip_suffix(')');
                let inside = inside.ok_or_else(|| BadPattern::Unclosed(text.to_owned()))?;
                (name.trim_end(), Some(trimmed(inside)))
            }
        };
        let name = read_name(name)?;
        let argument = match argument {
            None => Argument::Any,
            Some("") => return Err(BadPattern::Empty(text.to_owned())),
            Some(argument) => read_argument(name, argument, text)?,
        };
        Ok(Self {
            text: text.to_owned(),
            name,
            argument,
        })
    }

    pub(crate) fn topic(&self) -> Topic {
        match (self.name, &self.argument) {
            (Name::Everything, _) | (_, Argument::Exact(_)) => Topic::Everything,
            (_, Argument::Path(Base::Workspace, glob)) => match glob.first_name() {
                Some(name) => Topic::Folder(name.to_owned()),
                None => Topic::Files,
            },
            (Name::Files, _) => Topic::Files,
            (Name::Net, _) => Topic::Hosts,
            (Name::Action(action), _) if is_files(action) => Topic::Files,
            (Name::Action(_) | Name::Terminals, Argument::Command(words, _)) => match words.first()
            {
                Some(NameGlob::Literal(program)) => Topic::Program(base_name(program).to_owned()),
                Some(NameGlob::Wild(_)) | None => Topic::Commands,
            },
            // It is about uses and about paths: it is looked at for both.
            (Name::Editors, _) => Topic::Everything,
            (Name::Action(action), _) if action.is_editors() => Topic::Everything,
            (Name::Action(_) | Name::Terminals | Name::Cells, _) => Topic::Commands,
        }
    }

    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

fn read_name(name: &str) -> Result<Name, BadPattern> {
    match name {
        "*" => Ok(Name::Everything),
        "fs.*" => Ok(Name::Files),
        "terminal.*" => Ok(Name::Terminals),
        "editor.*" => Ok(Name::Editors),
        "cell.*" => Ok(Name::Cells),
        "net" => Ok(Name::Net),
        name => ActionName::parse(name).map(Name::Action).ok_or_else(|| {
            let known = ActionName::ALL.iter().map(|action| action.as_str());
            BadPattern::Unknown {
                name: name.chars().take(100).collect(),
                closest: closest(name, known.chain(["net"])),
            }
        }),
    }
}

/// Without the blanks around it; one that is escaped belongs to it.
fn trimmed(text: &str) -> &str {
    let text = text.trim_start();
    let end = text.trim_end();
    let slashes = end.len() - end.trim_end_matches('\\').len();
    match text[end.len()..].chars().next() {
        Some(escaped) if slashes % 2 == 1 => &text[..end.len() + escaped.len_utf8()],
        Some(_) | None => end,
    }
}

/// The words of a command; an escaped blank belongs to its word.
fn split(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut start = None;
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        if char.is_whitespace() {
            words.extend(start.take().map(|start| &text[start..at]));
            continue;
        }
        start.get_or_insert(at);
        if char == '\\' {
            chars.next();
        }
    }
    words.extend(start.map(|start| &text[start..]));
    words
}

fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(|hex| {
        hex.len() == 64
            && hex
                .chars()
                .all(|char| matches!(char, '0'..='9' | 'a'..='f'))
    })
}

fn is_files(action: ActionName) -> bool {
    action.as_str().starts_with("fs.")
}

fn read_argument(name: Name, argument: &str, text: &str) -> Result<Argument, BadPattern> {
    let bad_glob = |error| BadPattern::Glob(text.to_owned(), error);
    match name {
        Name::Files => {}
        Name::Action(action) if is_files(action) => {}
        Name::Action(ActionName::TerminalRun) => {
            if let Some(digest) = argument.strip_prefix('=') {
                return match is_digest(digest) {
                    true => Ok(Argument::Exact(digest.to_owned())),
                    false => Err(BadPattern::Exact(text.to_owned())),
                };
            }
            let mut words = split(argument);
            let rest = match words.last() {
                Some(&"*") => Rest::Anything,
                Some(_) | None => Rest::Nothing,
            };
            if rest == Rest::Anything {
                words.pop();
            }
            let words: Result<_, _> = words.into_iter().map(NameGlob::parse).collect();
            return Ok(Argument::Command(words.map_err(bad_glob)?, rest));
        }
        Name::Net => {
            let host = Host::parse(argument);
            let host = host.map_err(|error| BadPattern::Host(text.to_owned(), error))?;
            return Ok(Argument::Host(host));
        }
        Name::Everything | Name::Terminals | Name::Editors | Name::Cells | Name::Action(_) => {
            return Err(BadPattern::NoArgument(text.to_owned()));
        }
    }
    let (base, glob) = match (argument.strip_prefix('/'), argument.strip_prefix("~/")) {
        (Some(glob), _) => (Base::Root, glob),
        (None, Some(glob)) => (Base::Home, glob),
        (None, None) => (Base::Workspace, argument),
    };
    Ok(Argument::Path(
        base,
        PathGlob::parse(glob).map_err(bad_glob)?,
    ))
}
