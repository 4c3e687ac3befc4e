//! Builtins of the shell that change what the rest of a line means.

use super::unwrap::Inside;
use super::variables::{Steering, assigned, is_name, steering, steering_in_shell};
use super::{About, Line, Part, Word};

/// Builtins that change what later words or names mean, or run a text as a script.
pub(super) const CHANGERS: &[&str] = &[
    ".",
    "alias",
    "bind",
    "compgen",
    "complete",
    "enable",
    "eval",
    "fc",
    "getopts",
    "hash",
    "let",
    "mapfile",
    "readarray",
    "shopt",
    "source",
    "trap",
    "unalias",
    "unset",
];

/// Builtins that do nothing to anything.
pub(super) const INERT: &[&str] = &[
    ":", "[", "break", "continue", "exit", "false", "pwd", "return", "shift", "test", "true",
    "umask", "wait",
];

/// Builtins that no program has the name of, so that only a shell could run them.
pub(super) fn is_no_program(name: &str) -> bool {
    let others = [
        "builtin", "cd", "command", "declare", "exec", "export", "local", "popd", "pushd", "read",
        "readonly", "set", "typeset",
    ];
    CHANGERS.contains(&name) || others.contains(&name)
}

/// One of [`INERT`], unless it names a variable by an expression, which bash evaluates:
/// `test -v 'a[$(…)]'` runs what is in it. A value that may be such an option counts as one.
pub(super) fn inert(words: Vec<Word>, line: &mut Line) {
    let evaluates = match words[0].shown() {
        // `-p NAME`, also attached: `wait -np 'a[$(…)]'`.
        "wait" => words[1..].iter().any(|word| match word {
            Word::Known(text) => text.starts_with('-') && !matches!(text.as_str(), "-n" | "-f"),
            Word::One(_) => true,
            Word::Some(text) => !matches!(text.as_str(), "$!" | "$$"),
        }),
        "test" | "[" => {
            let operands = words[1..].iter().filter(|word| word.known() != Some("]"));
            let operands: Vec<&Word> = operands.collect();
            operands.iter().any(|word| match word {
                Word::Known(text) => matches!(text.as_str(), "-v" | "-R"),
                // Quoted, it can only be an option where one is looked for.
                Word::One(_) => match operands.as_slice() {
                    [_] => false,
                    [first, _] => first.known().is_none(),
                    [first, operator, _] => {
                        first.known() == Some("!") || operator.known().is_none()
                    }
                    _ => true,
                },
                Word::Some(text) => !matches!(text.as_str(), "$?" | "$!" | "$#" | "$$"),
            })
        }
        _ => false,
    };
    if evaluates {
        line.doubt(
            About::Commands,
            "it may name a variable by an expression that is evaluated",
        );
    }
    line.push(words, Part::Surrounds);
}

/// `cd` to a folder below the one the command runs in, inside the workspace, prepares; anywhere
/// else it makes what follows act there, and needs a skill.
pub(super) fn change_folder(words: Vec<Word>, inside: Inside<'_>, line: &mut Line) {
    let stays = match words.as_slice() {
        [_, Word::Known(folder)] if !folder.starts_with('-') => {
            let path = crate::place::absolute(inside.cwd, folder);
            let climbs = folder.split('/').any(|name| name == "..");
            !folder.is_empty() && !climbs && crate::place::below(inside.workspace, &path).is_some()
        }
        _ => false,
    };
    let part = if stays { Part::Surrounds } else { Part::Acts };
    line.push(words, part);
}

/// Whether `printf` may set a variable: by `-v`, or by `%n`, which stores how much was written.
pub(super) fn printf_sets(words: &[Word]) -> bool {
    let (first, second) = (words.get(1), words.get(2));
    let format = match first.and_then(Word::known) {
        Some("--") => second.and_then(Word::known),
        first => first,
    };
    format.is_none_or(|format| {
        let stores = |conversion: &str| {
            let plain = |char: char| char.is_ascii_digit() || " #'*+-.hjlLqtz".contains(char);
            conversion.trim_start_matches(plain).starts_with('n')
        };
        format.starts_with("-v") || format.replace("%%", "").split('%').skip(1).any(stores)
    })
}

/// Whether this option of the shell changes nothing about how a line is read.
pub(super) fn is_harmless_option(name: &str) -> bool {
    matches!(name, "pipefail" | "errexit" | "nounset" | "xtrace")
}

pub(super) fn set(words: Vec<Word>, line: &mut Line) {
    let harmless = |word: &Word| {
        word.known().is_some_and(is_harmless_option)
            || word.known().is_some_and(|word| {
                let flags = word.strip_prefix(['-', '+']).unwrap_or_default();
                !flags.is_empty() && flags.chars().all(|flag| "euxo".contains(flag))
            })
    };
    if !words[1..].iter().all(harmless) {
        line.doubt(About::Commands, "`set` can change how the line is read");
    }
    line.push(words, Part::Surrounds);
}

/// Builtins that set variables.
pub(super) fn variables(words: Vec<Word>, builtin: &str, line: &mut Line) {
    for word in &words[1..] {
        let Some(word) = word.known() else {
            line.doubt(About::Commands, format!("`{builtin}` may set any variable"));
            continue;
        };
        if matches!(word, "-r" | "-x" | "-g") {
            continue;
        }
        let name = assigned(word).unwrap_or(word);
        // Without one it keeps what it has, except where it is read.
        let kept = (builtin != "read").then_some("");
        let value = word.split_once('=').map(|(_, value)| value).or(kept);
        let how = match builtin {
            _ if !is_name(name) => Steering::Program,
            "read" | "local" => steering_in_shell(name, value),
            _ => steering(name, value),
        };
        line.doubt_variable(name, how);
    }
    line.push(words, Part::Surrounds);
}
