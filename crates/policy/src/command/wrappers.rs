//! Commands that run other commands: which they are, and where their own words end.

use super::Word;

/// A command that adds nothing of its own to what it runs.
pub(super) struct Wrapper {
    pub(super) name: &'static str,
    /// Options without a value.
    flags: &'static [&'static str],
    /// Options with a value, behind them or attached.
    values: &'static [&'static str],
    /// Words of its own before the command.
    operands: usize,
}

pub(super) const WRAPPERS: &[Wrapper] = &[
    wrapper("builtin", &[], &[], 0),
    wrapper("command", &[], &[], 0),
    wrapper(
        "env",
        &["-i", "-", "--ignore-environment", "-0", "-v"],
        &["-u", "--unset"],
        0,
    ),
    // Not `-l`: a login shell reads start-up files.
    wrapper("exec", &["-c"], &["-a"], 0),
    wrapper(
        "ionice",
        &["-t"],
        &["-c", "-n", "--class", "--classdata"],
        0,
    ),
    wrapper("nice", &[], &["-n", "--adjustment"], 0),
    wrapper("nohup", &[], &[], 0),
    wrapper(
        "setsid",
        &["-c", "-f", "-w", "--fork", "--wait", "--ctty"],
        &[],
        0,
    ),
    wrapper(
        "stdbuf",
        &[],
        &["-i", "-o", "-e", "--input", "--output", "--error"],
        0,
    ),
    wrapper("time", &["-p"], &[], 0),
    wrapper(
        "timeout",
        &["--foreground", "--preserve-status", "-v", "--verbose"],
        &["-k", "-s", "--kill-after", "--signal"],
        1,
    ),
    wrapper(
        "xargs",
        &[
            "-0",
            "-r",
            "-t",
            "-x",
            "--null",
            "--no-run-if-empty",
            "--verbose",
            "--exit",
        ],
        &[
            "-n",
            "-P",
            "-L",
            "-s",
            "-d",
            "-E",
            "-I",
            "--max-args",
            "--max-procs",
            "--delimiter",
        ],
        0,
    ),
];

const fn wrapper(
    name: &'static str,
    flags: &'static [&'static str],
    values: &'static [&'static str],
    operands: usize,
) -> Wrapper {
    Wrapper {
        name,
        flags,
        values,
        operands,
    }
}

/// What follows a wrapper's own words; none where something in them is not known for sure.
pub(super) fn after_options<'w>(wrapper: &Wrapper, words: &'w [Word]) -> Option<&'w [Word]> {
    let mut rest = words.get(1..)?;
    while let Some(option) = rest.first() {
        let option = match option {
            Word::Known(text) => text.as_str(),
            // What it is decides what follows.
            Word::One(_) | Word::Some(_) if wrapper.operands == 0 => return Some(rest),
            Word::One(_) | Word::Some(_) => return None,
        };
        if option == "--" {
            rest = &rest[1..];
            break;
        }
        if !option.starts_with('-') || (option == "-" && wrapper.name != "env") {
            break;
        }
        let number = option[1..].chars().all(|char| char.is_ascii_digit()) && option.len() > 1;
        let attached = |value: &&str| {
            option.strip_prefix(*value).is_some_and(|rest| {
                rest.starts_with('=') || (!value.starts_with("--") && !rest.is_empty())
            })
        };
        if wrapper.flags.contains(&option) || (wrapper.name == "nice" && number) {
            rest = &rest[1..];
        } else if wrapper.values.contains(&option) {
            // The value itself may be anything but several words.
            if matches!(rest.get(1), None | Some(Word::Some(_))) {
                return None;
            }
            // A name that begins with `-` makes a shell a login shell.
            let named = rest.get(1).and_then(Word::known);
            if wrapper.name == "exec" && named.is_none_or(|name| name.starts_with('-')) {
                return None;
            }
            rest = &rest[2..];
        } else if wrapper.name == "exec" && option.starts_with("-a-") {
            return None;
        } else if wrapper.values.iter().any(attached) {
            rest = &rest[1..];
        } else {
            return None;
        }
    }
    let operands = rest.get(..wrapper.operands)?;
    if operands.iter().any(|word| matches!(word, Word::Some(_))) {
        return None;
    }
    Some(&rest[wrapper.operands..])
}
