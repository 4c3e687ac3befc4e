//! What setting a variable can do to the commands that see it.

/// How much a variable steers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Steering {
    /// Known to be harmless.
    None,
    /// Perhaps how a program behaves: most programs read some variable of their own.
    Behaviour,
    /// Which program runs, what is loaded into it, or how the shell reads the line.
    Program,
}

/// Logging, language, colours, sizes. Everything that is not here may steer.
const HARMLESS: &[&str] = &[
    "CI",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "COLUMNS",
    "DEBUG",
    "FORCE_COLOR",
    "LANGUAGE",
    "LINES",
    "LOG_LEVEL",
    "NODE_ENV",
    "NO_COLOR",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONUNBUFFERED",
    "RUST_BACKTRACE",
    "RUST_LIB_BACKTRACE",
    "RUST_LOG",
    "RUST_MIN_STACK",
    "RUST_TEST_THREADS",
    "TERM",
    "TZ",
];

const PROGRAM: &[&str] = &[
    "BASHOPTS",
    "BASH_ENV",
    "CDPATH",
    "ENV",
    "FPATH",
    "GCONV_PATH",
    "GLOBIGNORE",
    "IFS",
    "PATH",
    "POSIXLY_CORRECT",
    "PROMPT_COMMAND",
    "PS1",
    "PS2",
    "PS4",
    "SHELL",
    "SHELLOPTS",
    "ZDOTDIR",
];

/// What setting this in the environment of a command can do, to this value where it is known.
pub(super) fn steering(name: &str, value: Option<&str>) -> Steering {
    if HARMLESS.contains(&name) {
        return Steering::None;
    }
    if name == "LANG" || name.starts_with("LC_") {
        return match value.is_some_and(is_plain_locale) {
            true => Steering::None,
            false => Steering::Program,
        };
    }
    let loads = ["LD_", "DYLD_", "BASH_FUNC_"];
    if PROGRAM.contains(&name) || loads.iter().any(|prefix| name.starts_with(prefix)) {
        return Steering::Program;
    }
    Steering::Behaviour
}

/// Whether a shell takes every byte below 128 for the same character as we do: in GBK, Big5 or
/// Shift JIS the backslash may be half of another.
fn is_plain_locale(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    matches!(value.as_str(), "" | "c" | "posix")
        || value.ends_with(".utf-8")
        || value.ends_with(".utf8")
}

/// What setting this in the shell can do: `for f in …`, `x=1`. A name in lower case that no
/// program is known to read stays within the line, where its value is unknown anyway.
pub(super) fn steering_in_shell(name: &str, value: Option<&str>) -> Steering {
    let lower = name
        .chars()
        .all(|char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '_');
    if lower && !name.ends_with("_proxy") && !name.starts_with("npm_") {
        return Steering::None;
    }
    steering(name, value)
}

/// The name before `=` or `+=`, where the word is an assignment.
pub(super) fn assigned(word: &str) -> Option<&str> {
    let (name, _) = word.split_once('=')?;
    let name = name.strip_suffix('+').unwrap_or(name);
    is_name(name).then_some(name)
}

/// Whether this is a word of the shell's own, where a command would begin.
pub(super) fn is_reserved(word: &str) -> bool {
    let words = [
        "!", "[[", "case", "coproc", "for", "function", "if", "select", "until", "while", "{",
    ];
    words.contains(&word)
}

/// Whether this can be the name of a variable.
pub(super) fn is_name(text: &str) -> bool {
    let first = text.chars().next();
    first.is_some_and(|char| char.is_ascii_alphabetic() || char == '_')
        && text
            .chars()
            .all(|char| char.is_ascii_alphanumeric() || char == '_')
}
