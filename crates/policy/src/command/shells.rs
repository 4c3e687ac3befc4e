//! Shells: what a script in an argument would run.

use super::builtins::is_harmless_option;
use super::unwrap::Inside;
use super::within::{command_for_rules, look_inside};
use super::{About, Line, Part, Word, base_name, is_plain_program, line};
use crate::place;

/// Shells that read a script as we do, or nearly.
pub(super) const SHELLS: &[&str] = &["ash", "bash", "bash-static", "dash", "ksh", "rbash", "sh"];

/// What runs a text whose language we do not read.
pub(super) const UNREAD: &[&str] = &[
    "at",
    "batch",
    "cgdb",
    "csh",
    "elvish",
    "expect",
    "fish",
    "gdb",
    "hush",
    "ksh93",
    "lksh",
    "lldb",
    "mksh",
    "mksh-static",
    "nu",
    "osh",
    "parallel",
    "posh",
    "pwsh",
    "rust-gdb",
    "screen",
    "sem",
    "socat",
    "tcsh",
    "tmux",
    "xonsh",
    "yash",
    "zsh",
    "zsh-static",
];

/// Whether this is a shell whose language we read.
pub(super) fn is_shell(program: &str) -> bool {
    is_plain_program(program) && SHELLS.contains(&base_name(program))
}

/// `sh -c SCRIPT`, and what else a shell can be told.
pub(super) fn shell(words: Vec<Word>, inside: Inside<'_>, line: &mut Line) {
    // `-o keyword` makes later words assignments.
    let is_harmless = |rest: &[Word]| {
        let name = rest.first().and_then(Word::known);
        name.is_some_and(is_harmless_option)
    };
    let is_all = |flags: &str, of: &str| flags.chars().all(|flag| of.contains(flag));
    let mut rest = &words[1..];
    let mut reads_script = false;
    while let Some(option) = rest.first() {
        let Some(option) = option.known() else {
            line.doubt(
                About::Commands,
                "what its shell reads is not known before it runs",
            );
            return line.push(words, Part::Acts);
        };
        let Some(flags) = option.strip_prefix(['-', '+']) else {
            break;
        };
        rest = &rest[1..];
        match flags {
            "" | "-" => break,
            "o" if is_harmless(rest) => rest = &rest[1..],
            flags if is_all(flags, "celuxnfvi") => {
                // `+c` is `-c` to bash.
                reads_script |= flags.contains('c');
                // `-i` reads start-up files, `-l` too: they can define anything.
                if flags.contains(['i', 'l']) {
                    line.doubt(About::Commands, "its shell reads start-up files first");
                }
            }
            flags if is_harmless(rest) && flags.ends_with('o') && is_all(flags, "ceuxo") => {
                reads_script |= flags.contains('c');
                rest = &rest[1..];
            }
            _ => {
                line.doubt(
                    About::Commands,
                    format!("its shell is started with `{option}`"),
                );
                look_inside(&words, inside, line);
                return line.push(words, Part::Acts);
            }
        }
    }
    match (reads_script, rest.first()) {
        (true, Some(Word::Known(script))) => {
            line::read(script, inside.deeper(), line);
            line.push(words.clone(), Part::Surrounds);
        }
        (true, Some(Word::One(_) | Word::Some(_)) | None) | (false, None) => {
            line.doubt(
                About::Commands,
                "what its shell reads is not known before it runs",
            );
            line.push(words, Part::Acts);
        }
        (false, Some(script)) => {
            if (script.known()).is_none_or(|path| may_be_handed(inside.cwd, path)) {
                line.doubt(
                    About::Commands,
                    "what its shell reads is not known before it runs",
                );
            }
            // A script in a file is also what a rule about its own name means.
            command_for_rules(rest.to_vec(), inside, line);
            line.push(words, Part::Acts);
        }
    }
}

/// Whether a script may be what the shell is handed open: `/dev/stdin`, `/proc/self/fd/0`.
fn may_be_handed(cwd: &str, path: &str) -> bool {
    let path = place::absolute(cwd, path);
    let kernels = ["/dev", "/proc"];
    kernels
        .iter()
        .any(|folder| place::below(folder, &path).is_some())
}
