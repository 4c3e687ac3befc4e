//! What a rule, a skill or a grant is about: `fs.read`, `fs.write(src/**)`,
//! `terminal.run(cargo test *)`, `net(example.com:443)`.
//!
//! - `fs.read`, `fs.write` and `fs.delete` stand for what happens to a path, by whichever action,
//!   and for redirections too; other names stand for that action alone.
//! - `terminal.run` stands for a command, by whichever action.
//! - `fs.*`, `terminal.*` and `*` stand for all of a family, and for everything.
//! - In a command, a final `*` stands for any further words, also none; elsewhere a `*` stays
//!   within one word.

use protocol::ActionName;
use protocol::facts::Access;

use crate::command::{About, Command, Part, Word, base_name, is_plain_program};
use crate::glob::{BadGlob, NameGlob, PathGlob};
use crate::host::{BadHost, Host};
use crate::mistake::closest;
use crate::place::{Place, below, names};
use crate::touch::Touch;

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
    name: Name,
    argument: Argument,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    Everything,
    Files,
    Terminals,
    Action(ActionName),
    Net,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Argument {
    Any,
    Path(Base, PathGlob),
    Command(Vec<NameGlob>, Rest),
    Host(Host),
}

/// What a path pattern is measured from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Base {
    Workspace,
    Root,
    Home,
}

/// What may follow the words of a command pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    Nothing,
    Anything,
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
                (name.trim_end(), Some(inside.trim()))
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

    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it fits this thing.
    pub(crate) fn fits(&self, touch: &Touch, place: &Place<'_>, stance: Stance) -> Fit {
        if !self.names(touch) {
            return Fit::No;
        }
        match (&self.argument, touch) {
            (Argument::Any, Touch::Command(command)) if command.part == Part::Surrounds => {
                // `deny terminal.run` is met by the commands that act, and by the use of the action.
                Fit::No
            }
            (Argument::Any, Touch::Unknown(doubt)) => match (doubt.about, stance) {
                (About::Behaviour, Stance::Restrict) => Fit::No,
                (About::Behaviour | About::Commands, _) => Fit::Yes,
            },
            (Argument::Any, _) => Fit::Yes,
            (Argument::Path(base, glob), Touch::Path { path, tree, .. }) => match path {
                Some(path) => fits_path(*base, glob, path, *tree, place, stance),
                None => Fit::Maybe,
            },
            (Argument::Command(words, rest), Touch::Command(command)) => {
                fits_command(words, *rest, command, stance)
            }
            (Argument::Command(..), Touch::Unknown(doubt)) => match (doubt.about, stance) {
                (About::Behaviour, Stance::Restrict) => Fit::No,
                (About::Behaviour | About::Commands, _) => Fit::Maybe,
            },
            (Argument::Command(..), Touch::Typed) => Fit::Maybe,
            // Whoever may run some command may look after it.
            (Argument::Command(..), Touch::Use(_)) => match stance {
                Stance::Permit => Fit::Yes,
                Stance::Restrict => Fit::No,
            },
            (Argument::Host(pattern), Touch::Host { host, .. }) => {
                match host.as_ref().and_then(|host| pattern.fits(host)) {
                    Some(true) => Fit::Yes,
                    Some(false) => Fit::No,
                    None => Fit::Maybe,
                }
            }
            (Argument::Path(..) | Argument::Command(..) | Argument::Host(_), _) => Fit::No,
        }
    }

    /// Whether its name stands for this kind of thing.
    fn names(&self, touch: &Touch) -> bool {
        let action = match self.name {
            Name::Everything => return true,
            Name::Files => return matches!(touch, Touch::Path { .. }),
            Name::Terminals => return !matches!(touch, Touch::Path { .. } | Touch::Host { .. }),
            Name::Net => return matches!(touch, Touch::Host { .. }),
            Name::Action(action) => action,
        };
        match touch {
            Touch::Path { access, by, .. } => {
                *by == Some(action)
                    || action
                        == match access {
                            Access::Read => ActionName::FsRead,
                            Access::Write => ActionName::FsWrite,
                            Access::Delete => ActionName::FsDelete,
                        }
            }
            Touch::Command(_) | Touch::Unknown(_) => action == ActionName::TerminalRun,
            Touch::Typed => matches!(action, ActionName::TerminalRun | ActionName::TerminalWrite),
            Touch::Use(used) => {
                action == *used || (action == ActionName::TerminalRun && is_upkeep(*used))
            }
            Touch::Host { .. } => false,
        }
    }
}

impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// Actions on what one's own commands are doing.
fn is_upkeep(action: ActionName) -> bool {
    match action {
        ActionName::TerminalResize
        | ActionName::TerminalClose
        | ActionName::TerminalList
        | ActionName::TerminalRead
        | ActionName::TerminalStop => true,
        ActionName::FsRead
        | ActionName::FsList
        | ActionName::FsStat
        | ActionName::FsGlob
        | ActionName::FsSearch
        | ActionName::FsWrite
        | ActionName::FsEdit
        | ActionName::FsPatch
        | ActionName::FsMkdir
        | ActionName::FsMove
        | ActionName::FsDelete
        | ActionName::TerminalRun
        | ActionName::TerminalOpen
        | ActionName::TerminalWrite => false,
    }
}

fn read_name(name: &str) -> Result<Name, BadPattern> {
    match name {
        "*" => Ok(Name::Everything),
        "fs.*" => Ok(Name::Files),
        "terminal.*" => Ok(Name::Terminals),
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

fn read_argument(name: Name, argument: &str, text: &str) -> Result<Argument, BadPattern> {
    let is_files = |action: ActionName| action.as_str().starts_with("fs.");
    let bad_glob = |error| BadPattern::Glob(text.to_owned(), error);
    match name {
        Name::Files => {}
        Name::Action(action) if is_files(action) => {}
        Name::Action(ActionName::TerminalRun) => {
            let mut words: Vec<&str> = argument.split_whitespace().collect();
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
        Name::Everything | Name::Terminals | Name::Action(_) => {
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

fn fits_path(
    base: Base,
    glob: &PathGlob,
    path: &str,
    tree: bool,
    place: &Place<'_>,
    stance: Stance,
) -> Fit {
    let folder = match base {
        Base::Workspace => place.workspace,
        Base::Root => "/",
        Base::Home => match place.home {
            Some(home) => home,
            None => return Fit::Maybe,
        },
    };
    let Some(inner) = below(folder, path) else {
        // A whole tree that holds the pattern's folder holds what the pattern names.
        let holds = tree && names(folder).starts_with(&names(path));
        return match stance {
            Stance::Restrict if holds => Fit::Maybe,
            Stance::Restrict | Stance::Permit => Fit::No,
        };
    };
    match stance {
        Stance::Permit if !tree => when(glob.fits(&inner)),
        // A tree is permitted only by a pattern that fits whatever is in it.
        Stance::Permit => {
            let mut deep = inner;
            deep.extend(["\u{0}", "\u{0}"]);
            when(glob.fits(&deep[..deep.len() - 2]) && glob.fits(&deep))
        }
        Stance::Restrict if glob.fits_or_holds(&inner) => Fit::Yes,
        Stance::Restrict if tree && glob.reaches_below(&inner) => Fit::Maybe,
        Stance::Restrict => Fit::No,
    }
}

fn when(fits: bool) -> Fit {
    if fits { Fit::Yes } else { Fit::No }
}

fn fits_command(pattern: &[NameGlob], rest: Rest, command: &Command, stance: Stance) -> Fit {
    let fit = in_order(pattern, rest, &command.words, stance);
    if fit == Fit::Yes || stance == Stance::Permit {
        return fit;
    }
    // `git -C x push` may be `git push`: options and what follows them can stand in between.
    let Some((program, words)) = command.words.split_first() else {
        return fit;
    };
    let mut kept = vec![program.clone()];
    let mut after_option = false;
    let mut words = words.iter();
    for word in words.by_ref() {
        let next = pattern.get(kept.len());
        let is_next = word
            .known()
            .is_some_and(|text| next.is_some_and(|next| next.fits(text)));
        let is_option = word.known().is_some_and(|text| text.starts_with('-'));
        if is_next || !(is_option || after_option) {
            kept.push(word.clone());
        }
        after_option = is_option && !is_next;
        if kept.len() >= pattern.len() {
            break;
        }
    }
    kept.extend(words.cloned());
    match in_order(pattern, rest, &kept, stance) {
        Fit::No => fit,
        Fit::Maybe | Fit::Yes => Fit::Maybe,
    }
}

/// Whether the words of a command are those of the pattern, one by one.
fn in_order(pattern: &[NameGlob], rest: Rest, words: &[Word], stance: Stance) -> Fit {
    let mut words = words.iter();
    let mut sure = Fit::Yes;
    for (index, glob) in pattern.iter().enumerate() {
        match words.next() {
            Some(Word::Known(word)) if index == 0 => match fits_program(glob, word, stance) {
                Fit::No => return Fit::No,
                fit => sure = sure.min(fit),
            },
            Some(Word::Known(word)) if glob.fits(word) => {}
            Some(Word::Known(_)) | None => return Fit::No,
            Some(Word::One(_)) => sure = Fit::Maybe,
            Some(Word::Some(_)) => return Fit::Maybe,
        }
    }
    match (rest, words.next()) {
        (Rest::Anything, _) | (Rest::Nothing, None) => sure,
        (Rest::Nothing, Some(Word::Some(_))) => Fit::Maybe,
        (Rest::Nothing, Some(Word::Known(_) | Word::One(_))) => Fit::No,
    }
}

/// A path in front does not hide a name from a rule that restricts; for one that permits, only the
/// system's own folders hold the program of that name.
fn fits_program(glob: &NameGlob, word: &str, stance: Stance) -> Fit {
    if glob.fits(word) {
        return Fit::Yes;
    }
    let name = base_name(word);
    match stance {
        Stance::Restrict => when(match glob {
            NameGlob::Literal(literal) => base_name(literal) == name,
            NameGlob::Wild(_) => glob.fits(name),
        }),
        Stance::Permit if !glob.fits(name) => Fit::No,
        Stance::Permit if is_plain_program(word) => Fit::Yes,
        Stance::Permit => Fit::Maybe,
    }
}
