//! What a command would run: every command of a shell line, what it redirects, and what about it
//! cannot be known.
//!
//! The shell is read by our own small reader (`line`), because of what the ready ones cost here:
//! brush-parser (MIT, kept) takes 25 µs a line, more than a whole decision may, keeps lines in a
//! process-wide cache and overflows the stack on deep nesting; tree-sitter-bash (MIT, kept) is C
//! and does not build for wasm32. Ours need not understand every script. It has to be right about
//! the lines that it says it understands, and calls all others opaque.

mod builtins;
mod git;
mod launchers;
mod line;
mod shells;
mod structure;
mod unwrap;
mod variables;
mod within;
mod word;
mod wrappers;

use std::cell::Cell;

use protocol::facts::CommandFact;

use crate::place;

/// What a command line would do, as far as it can be known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    /// Every command, in the order written, also those inside wrappers and substitutions.
    pub commands: Vec<Command>,
    /// Files that the shell opens for them.
    pub redirections: Vec<Redirection>,
    /// Why it is not known what runs, if so.
    pub doubts: Vec<Doubt>,
    /// What the next command is given to read.
    input: Input,
}

/// One command with its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Its words, the program first.
    pub words: Vec<Word>,
    /// Who has to look at it.
    pub part: Part,
    /// What it is given to read.
    pub input: Input,
    /// Where it runs.
    pub folder: Folder,
}

/// What a command is given to read by the line that it is in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Input {
    /// Nothing.
    #[default]
    None,
    /// A file, a here-document or what another writes: to a program that runs what it reads, it is
    /// a script, and no word of the command says which.
    Given,
}

/// Where a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Folder {
    /// In the workspace's own folder.
    Workspace,
    /// Elsewhere, or perhaps: `./deploy.sh` may be another file there.
    Other,
}

/// What a command is to the line it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// It does something: it needs a skill, and rules apply.
    Acts,
    /// It only surrounds or prepares (`env`, `cd src`, `sh -c`): nobody needs a skill for it, but a
    /// rule that denies or asks still sees it.
    Surrounds,
}

/// A word as the program would get it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// Exactly this.
    Known(String),
    /// One word, not known which; as written.
    One(String),
    /// Any number of words, not known which; as written.
    Some(String),
}

/// A file that the shell opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirection {
    /// For reading or for writing.
    pub way: Way,
    /// Absolute, with `..` worked out as text; [`None`] where it cannot be known.
    pub path: Option<String>,
    /// As written; where the path is known, exactly what is opened.
    pub shown: String,
}

/// Which way a redirection goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// From the file.
    Read,
    /// Into the file.
    Write,
}

/// Why a line is not fully known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubt {
    /// What remains unknown.
    pub about: About,
    /// Why, as the end of a sentence.
    pub reason: String,
}

/// What remains unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// What runs: other commands than those seen may run.
    Commands,
    /// How they behave: those seen run, but something steers them that is not known to be harmless.
    Behaviour,
}

impl Word {
    /// The word, where it is known.
    #[must_use]
    pub fn known(&self) -> Option<&str> {
        match self {
            Self::Known(text) => Some(text),
            Self::One(_) | Self::Some(_) => None,
        }
    }

    /// As written, or nearly.
    #[must_use]
    pub fn shown(&self) -> &str {
        match self {
            Self::Known(text) | Self::One(text) | Self::Some(text) => text,
        }
    }
}

impl Command {
    /// Whether its first words name a file from the folder it runs in: `./deploy.sh`, `sh build.sh`.
    pub(crate) fn is_by_folder(&self) -> bool {
        let mut words = self.words.iter().filter_map(Word::known);
        let is_relative = |path: &str| !path.starts_with('/');
        words.next().is_some_and(|program| {
            let is_path = program.contains('/') && is_relative(program);
            let runs = shells::is_shell(program) && self.part == Part::Acts;
            let mut operands = words.filter(|word| !word.starts_with(['-', '+']));
            is_path || (runs && operands.next().is_some_and(is_relative))
        })
    }
}

impl std::fmt::Display for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, word) in self.words.iter().enumerate() {
            if index > 0 {
                f.write_str(" ")?;
            }
            let text = word.shown();
            let plain = !text.is_empty() && !text.contains(|char: char| char.is_whitespace());
            match (word, plain) {
                (Word::Known(_), false) => write!(f, "'{text}'")?,
                (Word::Known(_) | Word::One(_) | Word::Some(_), _) => f.write_str(text)?,
            }
        }
        Ok(())
    }
}

/// The most commands that are looked at in one line; a line with more is opaque.
const MOST_COMMANDS: usize = 256;
/// How deep scripts in scripts are looked into.
const DEEPEST: usize = 8;
/// The longest line that is looked into, in bytes.
const LONGEST: usize = 64 * 1024;

impl Line {
    /// What this command would run. The shell that the runtime itself puts around a line is not
    /// shown to rules: nobody asked for it by name.
    #[must_use]
    pub fn of(fact: &CommandFact, workspace: &str) -> Self {
        let mut line = Self::default();
        for (name, value) in &fact.env {
            line.doubt_variable(name, variables::steering(name, Some(value)));
        }
        let left = Cell::new(unwrap::MOST_READ);
        let inside = unwrap::Inside::new(&fact.cwd, workspace, &left);
        match (fact.line.as_ref(), fact.argv.as_slice()) {
            (Some(text), [shell, flag, script])
                if text == script && flag == "-c" && shells::is_shell(shell) =>
            {
                line::read(script, inside, &mut line);
            }
            (Some(_) | None, argv) if argv.iter().map(String::len).sum::<usize>() > LONGEST => {
                line.doubt(About::Commands, "it is too long to be looked into");
                line.push(argv.iter().cloned().map(Word::Known).collect(), Part::Acts);
            }
            (Some(_) | None, argv) => {
                let words = argv.iter().cloned().map(Word::Known).collect();
                unwrap::command(words, inside, &mut line);
            }
        }
        line.settle();
        if place::below(workspace, &fact.cwd) != Some(Vec::new()) {
            line.moved();
        }
        line
    }

    fn doubt(&mut self, about: About, reason: impl Into<String>) {
        let doubt = Doubt {
            about,
            reason: reason.into(),
        };
        if !self.doubts.contains(&doubt) && self.doubts.len() < MOST_COMMANDS {
            self.doubts.push(doubt);
        }
    }

    fn doubt_variable(&mut self, name: &str, steering: variables::Steering) {
        match steering {
            variables::Steering::None => {}
            variables::Steering::Behaviour => self.doubt(
                About::Behaviour,
                format!("`{name}` is not among the variables known to be harmless"),
            ),
            variables::Steering::Program => self.doubt(
                About::Commands,
                format!("`{name}` can change which program runs"),
            ),
        }
    }

    fn push(&mut self, words: Vec<Word>, part: Part) {
        if words.is_empty() {
            return;
        }
        let is_same = |command: &&mut Command| command.words == words && command.part == part;
        if let Some(same) = self.commands.iter_mut().find(is_same) {
            same.input = same.input.max(self.input);
            return;
        }
        if self.commands.len() >= MOST_COMMANDS {
            self.doubt(About::Commands, "it has too many commands to look at");
            return;
        }
        self.commands.push(Command {
            words,
            part,
            input: self.input,
            folder: Folder::Workspace,
        });
    }

    /// Takes over what another line holds, as something that only rules which deny or ask see.
    fn surround_with(&mut self, other: Self) {
        let given = self.input;
        for command in other.commands {
            self.input = given.max(command.input);
            self.push(command.words, Part::Surrounds);
        }
        self.input = given;
        for doubt in other.doubts {
            self.doubt(doubt.about, doubt.reason);
        }
        for redirection in other.redirections {
            if !self.redirections.contains(&redirection) {
                self.redirections.push(redirection);
            }
        }
    }

    /// What a line writes to its own output goes nowhere else, unless that may be a file it reads:
    /// `<x >&0 >/dev/stdout` opens it anew.
    fn settle_output(&mut self) {
        let reads = |redirection: &Redirection| redirection.way == Way::Read;
        let reads = self.redirections.iter().any(reads);
        let is_own =
            |redirection: &Redirection| redirection.path.as_deref().is_some_and(is_own_output);
        self.redirections
            .retain(|redirection| reads || !is_own(redirection));
        for redirection in &mut self.redirections {
            if is_own(redirection) {
                redirection.path = None;
            }
        }
    }

    fn moved(&mut self) {
        for command in &mut self.commands {
            command.folder = Folder::Other;
        }
    }

    /// A relative file means something else after `cd`, wherever in the line that stands.
    fn settle(&mut self) {
        self.settle_output();
        let runs_input = |command: &Command| {
            command.input == Input::Given && launchers::may_start_shell(&command.words)
        };
        if self.commands.iter().any(runs_input) {
            self.doubt(
                About::Commands,
                "what its shell reads is not known before it runs",
            );
        }
        let moves = |command: &Command| {
            let name = command.words.first().and_then(Word::known);
            matches!(name, Some("cd" | "pushd" | "popd"))
        };
        // Where a wrapper may choose another folder, what is redirected in it may be there as well.
        let may_move = |command: &Command| {
            let mut words = command.words.iter().filter_map(Word::known);
            let name = words.next().map(base_name);
            match name {
                Some("chroot" | "doas" | "nsenter" | "sudo" | "systemd-run" | "unshare") => true,
                Some("env") => words.any(|word| word.starts_with("-C") || word.starts_with("--c")),
                Some("find") => words.any(|word| matches!(word, "-execdir" | "-okdir")),
                Some(_) | None => false,
            }
        };
        if self.commands.iter().any(may_move) {
            self.moved();
            let relative = |redirection: &&Redirection| !redirection.shown.starts_with('/');
            let elsewhere: Vec<Redirection> = (self.redirections.iter().filter(relative))
                .map(|redirection| Redirection {
                    path: None,
                    ..redirection.clone()
                })
                .collect();
            self.redirections.extend(elsewhere);
        }
        if !self.commands.iter().any(moves) {
            return;
        }
        self.moved();
        for redirection in &mut self.redirections {
            if !redirection.shown.starts_with('/') {
                redirection.path = None;
            }
        }
    }
}

/// Where a command's output goes anyway.
fn is_own_output(path: &str) -> bool {
    matches!(path, "/dev/stdout" | "/dev/stderr")
}

/// A program's name without the path in front of it.
pub(crate) fn base_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Whether the word names a program by its name alone, or in one of the system's own folders:
/// then it is the program of that name, also where that folder is written `//bin` or `/./bin`.
/// `./cargo` is not `cargo`, and what `..` leaves may be a link.
pub(crate) fn is_plain_program(word: &str) -> bool {
    if !word.contains('/') {
        return true;
    }
    let names: Vec<&str> = (word.split('/'))
        .filter(|name| !matches!(*name, "" | "."))
        .collect();
    let folders: [&[&str]; 5] = [
        &["bin"],
        &["usr", "bin"],
        &["usr", "local", "bin"],
        &["sbin"],
        &["usr", "sbin"],
    ];
    match names.split_last() {
        Some((name, folder)) => {
            word.starts_with('/') && word.ends_with(name) && folders.contains(&folder)
        }
        None => false,
    }
}
