//! The words of a command that may name files, and those of them that nobody can look up before the
//! command runs.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use policy::command::{Command, Line, Way, Word};
use protocol::facts::CommandFact;

use super::glob::{self, Budget};

/// The most words that are looked up; a longer line cannot be asked about.
pub(super) const MOST_WORDS: usize = 16 * 1024;
/// The most words that are told as not looked up.
const MOST_UNBOUND: usize = 16;
/// How much of each is told.
const LONGEST_TOLD: usize = 120;
/// Stands for the folder that a word is looked up from: `$PWD`. No path has it in it.
const HERE: char = '\0';

/// Variables that choose which file a word stands for.
const CHOOSERS: &[&str] = &["CDPATH", "PATH", "PYTHONPATH"];
/// Variables that are put into words here, as long as nothing changes them.
const TAKEN: &[&str] = &["HOME", "PWD"];

/// What a command's words may name.
#[derive(Debug, Default)]
pub(super) struct Words {
    /// Each once.
    pub(super) all: Vec<Name>,
    /// Words whose files cannot be looked up, as written.
    pub(super) unbound: Vec<String>,
}

/// A word that may name files.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Name {
    text: String,
    /// Whether a shell puts the names of files in its place.
    globs: bool,
}

impl Name {
    /// Where this is, seen from a folder; several for a glob.
    pub(super) fn paths(&self, folder: &Path, budget: &mut Budget) -> Vec<PathBuf> {
        let text = match self.text.contains(HERE) {
            true => &self.text.replace(HERE, &folder.to_string_lossy()),
            false => &self.text,
        };
        match self.globs {
            true => glob::found(folder, text, budget),
            false => vec![folder.join(text)],
        }
    }

    /// Whether a shell puts the names of files in its place.
    pub(super) fn globs(&self) -> bool {
        self.globs
    }

    /// As it is told.
    pub(super) fn shown(&self) -> String {
        self.text.replace(HERE, "$PWD")
    }
}

impl Words {
    /// Every word that may name a file: those that the policy sees, and all that looks like one,
    /// since too many do no harm. `confined` is whether its home folder is the room's own.
    pub(super) fn of(
        command: &CommandFact,
        workspace: &Path,
        home: Option<&str>,
        confined: bool,
    ) -> Self {
        let home = command.env.get("HOME").map(String::as_str).or(home);
        let line = Line::of(command, &workspace.to_string_lossy());
        let mut words = Self::default();
        let mut seen = HashSet::new();
        let mut add = |text: &str, globs: bool| {
            let taken = taken(text, home).text;
            for text in glob::braces(&taken, globs) {
                // No path is longer.
                if text.is_empty() || text.len() > 4096 || words.all.len() > MOST_WORDS {
                    continue;
                }
                let name = Name {
                    globs: globs && glob::is_one(&text),
                    text,
                };
                if seen.insert(name.clone()) {
                    words.all.push(name);
                }
            }
        };
        for command in &line.commands {
            for word in &command.words {
                with_glued(word.shown(), word.known().is_none(), &mut add);
            }
            let known = command.words.iter().filter_map(Word::known);
            modules(known, &mut add);
            if goes_home(command) {
                add("~", false);
            }
        }
        let reads = |redirection: &&policy::command::Redirection| redirection.way == Way::Read;
        for redirection in line.redirections.iter().filter(reads) {
            add(&redirection.shown, redirection.path.is_none());
        }
        command.program.iter().for_each(|text| add(text, false));
        let known: Vec<&str> = (line.commands.iter())
            .flat_map(|command| command.words.iter().filter_map(Word::known))
            .collect();
        for text in &command.argv {
            add(text, false);
            modules(text.split_whitespace(), &mut add);
            for piece in pieces(text) {
                // What stands in quotes is what it says.
                let globs = glob::is_one(piece) && !known.iter().any(|word| word.contains(piece));
                with_glued(piece, globs, &mut add);
            }
            // `"$PWD"/x` is one word.
            let bare = text.replace(['"', '\''], "");
            pieces(&bare).for_each(|piece| add(piece, false));
        }
        words.unbound = unbound(command, &line, home, confined);
        words
    }

    /// A word whose files were too many to be looked up.
    pub(super) fn leave_out(&mut self, word: &str) {
        tell(word, &mut self.unbound);
    }
}

/// What a line is made of, cut wherever a word could end: variables stay in one piece.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let ends = |char: char| char.is_whitespace() || "'\"`=,:();&|<>".contains(char);
    let inner = |char: char| "{}$".contains(char);
    text.split(ends)
        .flat_map(move |piece| std::iter::once(piece).chain(piece.split(inner)))
}

/// A word, and the file that an option in it may be glued to: `-fdeploy.mk`, `-d@body`.
fn with_glued(text: &str, globs: bool, add: &mut impl FnMut(&str, bool)) {
    add(text, globs);
    let mut rest = text.chars();
    let mut glued = text;
    if rest.next() == Some('-') && rest.next().is_some_and(|char| char.is_ascii_alphabetic()) {
        glued = rest.as_str();
        add(glued, globs);
    }
    if let Some(file) = glued.strip_prefix('@') {
        add(file, globs);
    }
}

/// The files of a module that is run by its name: `python3 -m tools.deploy`.
fn modules<'w>(words: impl Iterator<Item = &'w str>, add: &mut impl FnMut(&str, bool)) {
    let mut before = "";
    for word in words {
        let name = match before {
            "-m" => Some(word),
            _ => word.strip_prefix("-m"),
        };
        before = word;
        let is_part = |char: char| char.is_alphanumeric() || matches!(char, '_' | '.');
        let Some(name) = name.filter(|name| !name.is_empty() && name.chars().all(is_part)) else {
            continue;
        };
        let path = name.replace('.', "/");
        for ending in [".py", "/__main__.py", "/__init__.py"] {
            add(&format!("{path}{ending}"), false);
        }
    }
}

/// `cd` alone.
fn goes_home(command: &Command) -> bool {
    let mut words = command.words.iter().map(Word::shown);
    let is_option = |word: &str| word.starts_with('-') && word != "-";
    words.next() == Some("cd") && words.all(is_option)
}

/// A word with the variables in it that are known.
struct Taken {
    text: String,
    home: bool,
}

fn taken(word: &str, home: Option<&str>) -> Taken {
    let mut text = String::with_capacity(word.len());
    let mut has_home = false;
    let mut rest = word;
    if let Some(after) = rest.strip_prefix('~') {
        match (home, after.strip_prefix('+')) {
            (_, Some(after)) if is_end(after) => {
                text.push(HERE);
                rest = after;
            }
            (Some(home), None) if is_end(after) => {
                text.push_str(home);
                has_home = true;
                rest = after;
            }
            (_, _) => {}
        }
    }
    while let Some(at) = rest.find('$') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        match (variable(rest), home) {
            (Some(("PWD", after)), _) => {
                text.push(HERE);
                rest = after;
            }
            (Some(("HOME", after)), Some(home)) => {
                text.push_str(home);
                has_home = true;
                rest = after;
            }
            (_, _) => {
                text.push('$');
                rest = &rest[1..];
            }
        }
    }
    text.push_str(rest);
    Taken {
        text,
        home: has_home,
    }
}

fn is_end(after: &str) -> bool {
    after.is_empty() || after.starts_with('/')
}

/// `$NAME` or `${NAME}` at the start, and what follows it.
fn variable(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('$')?;
    if let Some(inner) = text.strip_prefix('{') {
        return inner.split_once('}');
    }
    let ends = |char: char| !is_in_name(char);
    Some(text.split_at(text.find(ends).unwrap_or(text.len())))
}

fn is_in_name(char: char) -> bool {
    char.is_ascii_alphanumeric() || char == '_'
}

/// What may name files that nobody can look up.
fn unbound(command: &CommandFact, line: &Line, home: Option<&str>, confined: bool) -> Vec<String> {
    let mut told = Vec::new();
    let unknown = line.commands.iter().flat_map(|command| &command.words);
    let unknown = unknown.map(|word| (word.shown(), word.known().is_some()));
    let read = (line.redirections.iter())
        .filter(|redirection| redirection.way == Way::Read)
        .map(|redirection| (redirection.shown.as_str(), redirection.path.is_some()));
    for (word, is_known) in unknown.chain(read) {
        let taken = taken(word, (!is_known).then_some(home).flatten());
        // The room's own folders are not looked into.
        let in_room = confined && (taken.home || word.starts_with("/tmp/"));
        let open = |char: char| is_in_name(char) || "{([@*#?$!-".contains(char);
        let is_open = |text: &str| {
            text.starts_with('~')
                || text.contains('`')
                || text.contains("<(")
                || text.contains("**")
                || glob::keeps_braces(text)
                || (text.split('$').skip(1)).any(|after| after.starts_with(open))
        };
        if in_room || (!is_known && is_open(&taken.text)) {
            tell(word, &mut told);
        }
    }
    let goes_back = |command: &&Command| {
        let mut words = command.words.iter().map(Word::shown);
        words.next() == Some("cd") && words.any(|word| word == "-")
    };
    if line.commands.iter().find(goes_back).is_some() {
        tell("cd -", &mut told);
    }
    for name in CHOOSERS {
        let sets = |text: &String| mentions(text, name, |after| after.starts_with(['=', '+']));
        if command.env.contains_key(*name) || command.argv.iter().any(sets) {
            tell(name, &mut told);
        }
    }
    for name in TAKEN {
        let sets = |text: &String| mentions(text, name, |_| true);
        if command.argv.iter().any(sets) {
            tell(name, &mut told);
        }
    }
    told
}

/// Whether a text has this name in it other than as a variable's value.
fn mentions(text: &str, name: &str, follows: impl Fn(&str) -> bool) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + name.len()..]);
        let is_value = before.ends_with('$') || before.ends_with("${");
        !before.ends_with(is_in_name)
            && !after.starts_with(is_in_name)
            && !is_value
            && follows(after)
    })
}

fn tell(word: &str, told: &mut Vec<String>) {
    let word: String = match told.len() {
        count if count > MOST_UNBOUND => return,
        MOST_UNBOUND => "…".to_owned(),
        _ => word.chars().take(LONGEST_TOLD).collect(),
    };
    if !told.contains(&word) {
        told.push(word);
    }
}
