//! What a person is offered with a question: the narrowest pattern that answers it, and one that is
//! wider where people are likely to mean that.
//!
//! An offer is read and tried before it is made, so that it always parses and always answers.

use protocol::ActionName;
use protocol::facts::Access;

use crate::command::{Command, Folder, Input, Part, Word};
use crate::decision::{Kind, Step, Verdict};
use crate::exact::Exact;
use crate::glob::escaped;
use crate::pattern::{Fit, Pattern, Stance};
use crate::place::{Base, Below, Place, Spot};
use crate::touch::{By, Reach, Touch};

/// Programs whose second word says what they do.
const WITH_SUBCOMMANDS: &[&str] = &[
    "bazel", "bundle", "bun", "cargo", "composer", "deno", "dotnet", "gh", "git", "go", "gradle",
    "hg", "just", "make", "mix", "mvn", "npm", "pip", "pip3", "pnpm", "poetry", "rake", "rustup",
    "uv", "yarn",
];

/// Their words that only say that the next says what happens.
const RUNS_ANOTHER: &[&str] = &["dlx", "exec", "run", "tool", "x"];

/// Programs whose words only say what to look at or check. None that shows what is in a file: in
/// full mode that could be any.
const LOOKERS: &[&str] = &[
    "basename", "df", "dirname", "du", "echo", "eslint", "jest", "ls", "mypy", "pwd", "pytest",
    "realpath", "ruff", "stat", "tsc", "wc", "which",
];

/// Programs, besides those, to which what they read is data: to others it may be a script.
const READERS: &[&str] = &[
    "awk", "cargo", "cat", "column", "cut", "diff", "fold", "gh", "git", "grep", "head", "jq",
    "less", "more", "nl", "rev", "rg", "sed", "sort", "tac", "tail", "tee", "tr", "uniq",
];

/// A pattern with more than this is no longer read by a person.
const LONGEST: usize = 240;

/// Adds to every question what would answer it.
pub(crate) fn add(steps: &mut [Step], touches: &[Touch], exact: &Exact<'_>, place: &Place<'_>) {
    let words_tell = touches.iter().all(|touch| match touch {
        Touch::Command(command) => command.part == Part::Surrounds || in_words(command).is_some(),
        Touch::Unknown(_) => false,
        Touch::Path { .. } | Touch::Typed | Touch::Use(_) | Touch::Host { .. } => true,
    });
    for (step, touch) in steps.iter_mut().zip(touches) {
        if step.verdict != Verdict::Ask || may_be_denied(step) {
            continue;
        }
        let offer = match touch {
            Touch::Command(_) | Touch::Unknown(_) if !words_tell => the_line(exact),
            Touch::Use(ActionName::TerminalRun) if !words_tell => the_line(exact),
            // Who may run one of its commands may use the action.
            Touch::Use(ActionName::TerminalRun) => {
                touches.iter().find_map(acting).or_else(|| the_line(exact))
            }
            touch => narrowest(touch, exact),
        };
        step.offer = offer.filter(|text| answers(text, touch, exact));
        if step.offer.is_some() && words_tell && step.because.kind != Kind::Protected {
            step.offers_wider = wider(touch, place).filter(|text| answers(text, touch, exact));
        }
    }
}

/// Whether a rule that denies may have been meant: no grant answers for that.
fn may_be_denied(step: &Step) -> bool {
    std::iter::once(&step.because)
        .chain(&step.considered)
        .any(|voice| voice.kind == Kind::RuleMaybe)
}

fn answers(text: &str, touch: &Touch, exact: &Exact<'_>) -> bool {
    Pattern::parse(text).is_ok_and(|pattern| pattern.fits(touch, Stance::Permit, exact) == Fit::Yes)
}

fn narrowest(touch: &Touch, exact: &Exact<'_>) -> Option<String> {
    match touch {
        Touch::Path {
            access,
            path: Some(path),
            reach,
            ..
        } => {
            let path = match (in_names(path)?, reach) {
                (path, Reach::Itself) => path,
                (path, Reach::Tree) => deep(&path),
            };
            Some(on_path(*access, &path))
        }
        Touch::Path {
            path: None,
            by: By::Redirection,
            ..
        }
        | Touch::Unknown(_) => the_line(exact),
        Touch::Path { path: None, .. } => None,
        Touch::Command(command) => in_words(command).or_else(|| the_line(exact)),
        Touch::Typed => Some(ActionName::TerminalWrite.as_str().to_owned()),
        Touch::Use(action) => Some(action.as_str().to_owned()),
        // Without its port it would stand for every port.
        Touch::Host { host, .. } => {
            let host = host.as_ref().filter(|host| host.has_port())?;
            Some(format!("net({host})"))
        }
    }
}

fn wider(touch: &Touch, place: &Place<'_>) -> Option<String> {
    match touch {
        Touch::Path {
            access,
            path: Some(path),
            reach: Reach::Itself,
            ..
        } => Some(on_path(*access, &deep(&folder_of(path, place)?))),
        Touch::Command(command) => wider_command(command),
        Touch::Path { .. }
        | Touch::Unknown(_)
        | Touch::Typed
        | Touch::Use(_)
        | Touch::Host { .. } => None,
    }
}

/// The whole command and nothing else.
fn the_line(exact: &Exact<'_>) -> Option<String> {
    Some(format!("terminal.run(={})", exact.digest()?))
}

fn acting(touch: &Touch) -> Option<String> {
    match touch {
        Touch::Command(command) if command.part == Part::Acts => in_words(command),
        Touch::Command(_)
        | Touch::Path { .. }
        | Touch::Unknown(_)
        | Touch::Typed
        | Touch::Use(_)
        | Touch::Host { .. } => None,
    }
}

/// Whether its words say what it does, given what it reads and where it runs.
fn says_all(command: &Command) -> bool {
    let program = command.words.first().and_then(Word::known);
    let program = program.unwrap_or_default();
    let reads_script =
        |word: &Word| word.shown().ends_with('-') || word.shown().starts_with("/dev/");
    let takes_data = LOOKERS.contains(&program) || READERS.contains(&program);
    let input = match command.input {
        Input::None => true,
        Input::Given => takes_data && !command.words.iter().any(reads_script),
    };
    let folder = match command.folder {
        Folder::Workspace => true,
        Folder::Other => !command.is_by_folder(),
    };
    input && folder
}

/// A command by its words, where they are known, can be written and say all.
fn in_words(command: &Command) -> Option<String> {
    if !says_all(command) {
        return None;
    }
    let words: Option<Vec<String>> = command.words.iter().map(in_word).collect();
    let text = format!("terminal.run({})", words?.join(" "));
    (text.len() <= LONGEST).then_some(text)
}

fn in_word(word: &Word) -> Option<String> {
    let word = word.known().filter(|word| can_be_written(word))?;
    let mut text = String::with_capacity(word.len());
    for char in word.chars() {
        // `=` at the start would announce a digest.
        let means = "*?[\\".contains(char) || char.is_whitespace();
        if means || (char == '=' && text.is_empty()) {
            text.push('\\');
        }
        text.push(char);
    }
    Some(text)
}

/// Control characters could not be read, and what was not text has lost what it was.
fn can_be_written(text: &str) -> bool {
    let is_unfit = |char: char| char.is_control() || char == char::REPLACEMENT_CHARACTER;
    !text.is_empty() && !text.contains(is_unfit)
}

fn wider_command(command: &Command) -> Option<String> {
    if command.part == Part::Surrounds {
        return None;
    }
    let mut words = command.words.iter().map(Word::known);
    let program = words.next()??;
    if LOOKERS.contains(&program) {
        return Some(format!("terminal.run({program} *)"));
    }
    if !WITH_SUBCOMMANDS.contains(&program) {
        return None;
    }
    let mut text = program.to_owned();
    loop {
        let word = words.next()?.filter(|word| is_name(word))?;
        text = format!("{text} {word}");
        if !RUNS_ANOTHER.contains(&word) || program == "cargo" || program == "go" {
            return Some(format!("terminal.run({text} *)"));
        }
    }
}

/// Whether a word names something: no option, no path, nothing odd.
fn is_name(word: &str) -> bool {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "-_:.".contains(char);
    word.starts_with(|char: char| char.is_ascii_alphanumeric()) && word.chars().all(is_plain)
}

fn on_path(access: Access, path: &str) -> String {
    let name = match access {
        Access::Read => ActionName::FsRead,
        Access::Write => ActionName::FsWrite,
        Access::Delete => ActionName::FsDelete,
    };
    format!("{name}({path})")
}

/// A path as a pattern: from the workspace where it is in it, else from the root.
fn in_names(path: &Spot) -> Option<String> {
    let (start, names) = match path.in_workspace() {
        Some([]) => return Some(".".to_owned()),
        Some(names) => ("", names),
        None => ("/", path.names()),
    };
    if !names.iter().all(|name| can_be_written(name)) {
        return None;
    }
    let names: Vec<String> = names.iter().map(|name| in_name(name)).collect();
    let path = names.join("/");
    // A folder named `~` in the workspace is not the home folder.
    let escape = if start.is_empty() && path.starts_with('~') {
        "\\"
    } else {
        ""
    };
    Some(format!("{start}{escape}{path}"))
}

/// Blanks at the ends of a pattern are not part of it, unless they are escaped.
fn in_name(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for char in escaped(name).chars() {
        if char.is_whitespace() {
            text.push('\\');
        }
        text.push(char);
    }
    text
}

/// It and all below.
fn deep(path: &str) -> String {
    match path {
        "." => "**".to_owned(),
        "/" => "/**".to_owned(),
        path => format!("{path}/**"),
    }
}

/// The folder that a file is in, where it is one that people open: in the workspace, or deeper than
/// the machine's and the home's own folders and not hidden.
fn folder_of(path: &Spot, place: &Place<'_>) -> Option<String> {
    let parent = path.parent(place)?;
    if parent.in_workspace().is_some() {
        return in_names(&parent);
    }
    if parent.is_above() {
        return None;
    }
    let is_hidden = |name: &String| name.starts_with('.');
    let names = match parent.below(Base::Home) {
        Below::Names(names) => names,
        Below::Above | Below::Elsewhere | Below::Unknown => parent.names().get(1..)?,
    };
    if names.is_empty() || names.iter().any(is_hidden) {
        return None;
    }
    in_names(&parent)
}
