//! Sees through commands that run other commands.
//!
//! Some add nothing of their own (`env`, `nohup`, `timeout` …): what counts is what they run. Some
//! change what it means (`sudo`, `chroot`, `watch` …): they need a skill under their own name, and
//! a rule that denies still sees what is inside. An option that is not known here makes the first
//! kind the second.

use super::variables::{Steering, assigned, steering, steering_in_shell};
use super::{About, Line, MOST_COMMANDS, Part, Word, base_name, is_plain_program, line};

/// Where a command stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inside<'a> {
    pub(super) cwd: &'a str,
    pub(super) workspace: &'a str,
    pub(super) depth: usize,
}

impl<'a> Inside<'a> {
    pub(super) fn new(cwd: &'a str, workspace: &'a str) -> Self {
        Self {
            cwd,
            workspace,
            depth: 0,
        }
    }

    pub(super) fn deeper(self) -> Self {
        Self {
            depth: self.depth + 1,
            ..self
        }
    }
}

/// A command that adds nothing of its own to what it runs.
struct Wrapper {
    name: &'static str,
    /// Options without a value.
    flags: &'static [&'static str],
    /// Options with a value, behind them or attached.
    values: &'static [&'static str],
    /// Words of its own before the command.
    operands: usize,
}

const WRAPPERS: &[Wrapper] = &[
    wrapper("builtin", &[], &[], 0),
    wrapper("command", &[], &[], 0),
    wrapper(
        "env",
        &["-i", "-", "--ignore-environment", "-0", "-v"],
        &["-u", "--unset"],
        0,
    ),
    wrapper("exec", &["-c", "-l"], &["-a"], 0),
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

/// Commands that run others and change what that means.
const LAUNCHERS: &[&str] = &[
    "bwrap",
    "busybox",
    "cgexec",
    "chroot",
    "chrt",
    "dbus-run-session",
    "doas",
    "docker",
    "entr",
    "fakeroot",
    "fd",
    "fdfind",
    "firejail",
    "flatpak-spawn",
    "flock",
    "gdb",
    "kubectl",
    "ltrace",
    "nsenter",
    "numactl",
    "perf",
    "pkexec",
    "podman",
    "prlimit",
    "runuser",
    "rust-gdb",
    "script",
    "setarch",
    "setpriv",
    "ssh",
    "start-stop-daemon",
    "strace",
    "su",
    "sudo",
    "systemd-run",
    "taskset",
    "toybox",
    "unbuffer",
    "unshare",
    "valgrind",
    "watch",
    "wsl",
];

/// Shells that read a script as we do, or nearly.
const SHELLS: &[&str] = &["ash", "bash", "dash", "ksh", "rbash", "sh"];
/// What runs a text whose language we do not read.
const UNREAD: &[&str] = &[
    "csh", "elvish", "fish", "mksh", "nu", "parallel", "pwsh", "tcsh", "xonsh", "zsh",
];

/// Whether this is a shell whose language we read.
pub(super) fn is_shell(program: &str) -> bool {
    is_plain_program(program) && SHELLS.contains(&base_name(program))
}

/// Builtins that change what later words or names mean, or run a text as a script.
const CHANGERS: &[&str] = &[
    ".",
    "alias",
    "bind",
    "complete",
    "enable",
    "eval",
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
const INERT: &[&str] = &[
    ":", "[", "break", "continue", "exit", "false", "pwd", "return", "shift", "test", "true",
    "umask", "wait",
];

/// Adds a command and what it would run.
pub(super) fn command(words: Vec<Word>, inside: Inside<'_>, line: &mut Line) {
    if inside.depth > super::DEEPEST {
        line.doubt(About::Commands, "it nests too deep to be looked into");
        return line.push(words, Part::Acts);
    }
    let Some(program) = words.first().and_then(Word::known).map(str::to_owned) else {
        if !words.is_empty() {
            line.doubt(About::Commands, "its program is not known before it runs");
        }
        return line.push(words, Part::Acts);
    };
    let name = base_name(&program);
    if !is_plain_program(&program) {
        // Whatever it is called, it is not the program of that name; yet a rule that denies looks
        // inside, as if it were.
        let looks_inside = WRAPPERS.iter().any(|wrapper| wrapper.name == name)
            || [LAUNCHERS, SHELLS, UNREAD]
                .iter()
                .any(|names| names.contains(&name));
        if looks_inside {
            look_inside(&words, inside, line);
        }
        return line.push(words, Part::Acts);
    }
    if let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.name == name) {
        return unwrap(wrapper, words, inside, line);
    }
    if SHELLS.contains(&name) {
        return shell(words, inside, line);
    }
    if UNREAD.contains(&name) {
        line.doubt(
            About::Commands,
            format!("`{name}` runs a script that is not looked into"),
        );
        look_inside(&words, inside, line);
        return line.push(words, Part::Acts);
    }
    if LAUNCHERS.contains(&name) {
        look_inside(&words, inside, line);
        return line.push(words, Part::Acts);
    }
    match name {
        "find" => find(words, inside, line),
        "cd" => change_folder(words, inside, line),
        "pushd" | "popd" => line.push(words, Part::Acts),
        "set" => set(words, line),
        "export" | "declare" | "typeset" | "local" | "readonly" | "read" => {
            variables(words, name, line);
        }
        "printf"
            if words
                .get(1)
                .and_then(Word::known)
                .is_none_or(|word| word.starts_with("-v")) =>
        {
            line.doubt(About::Commands, "`printf` may set a variable");
            line.push(words, Part::Acts);
        }
        name if CHANGERS.contains(&name) => {
            line.doubt(
                About::Commands,
                format!("`{name}` can change or run anything"),
            );
            let texts: Vec<&str> = words.iter().skip(1).filter_map(Word::known).collect();
            if name == "eval" {
                line::read(&texts.join(" "), inside.deeper(), line);
            } else {
                for text in texts {
                    script_for_rules(text, inside, line);
                }
            }
            line.push(words, Part::Surrounds);
        }
        name if INERT.contains(&name) => line.push(words, Part::Surrounds),
        _ => line.push(words, Part::Acts),
    }
}

fn unwrap(wrapper: &Wrapper, words: Vec<Word>, inside: Inside<'_>, line: &mut Line) {
    let asks_where = |word: &Word| matches!(word.known(), Some("-v" | "-V"));
    if wrapper.name == "command" && words.get(1).is_some_and(asks_where) {
        return line.push(words, Part::Surrounds);
    }
    let Some(mut rest) = after_options(wrapper, &words) else {
        look_inside(&words, inside, line);
        return line.push(words, Part::Acts);
    };
    if wrapper.name == "env" {
        while let Some(variable) = rest.first().and_then(Word::known).and_then(assigned_in_env) {
            line.doubt_variable(variable, steering(variable));
            rest = &rest[1..];
        }
    }
    if rest.is_empty() {
        // `env` alone prints, `exec` alone redirects, `xargs` alone echoes.
        return line.push(words, Part::Acts);
    }
    let mut inner = rest.to_vec();
    if wrapper.name == "xargs" {
        let own = &words[..words.len() - rest.len()];
        match xargs_mark(own) {
            Some(mark) => inner = replace(inner, mark),
            None => inner.push(Word::Some("…".to_owned())),
        }
    }
    command(inner, inside.deeper(), line);
    line.push(words, Part::Surrounds);
}

/// What `xargs -I` replaces by what it reads; without it, that is added at the end.
fn xargs_mark(own: &[Word]) -> Option<&str> {
    own.iter()
        .enumerate()
        .find_map(|(index, word)| match word.known()?.strip_prefix("-I")? {
            "" => own.get(index + 1)?.known(),
            mark => Some(mark),
        })
}

/// `env` takes any name before `=`, also ones that a shell would not.
fn assigned_in_env(word: &str) -> Option<&str> {
    let (name, _) = word.split_once('=')?;
    (!name.is_empty() && !name.starts_with('-')).then_some(name)
}

/// What follows a wrapper's own words; none where something in them is not known for sure.
fn after_options<'w>(wrapper: &Wrapper, words: &'w [Word]) -> Option<&'w [Word]> {
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
            rest = &rest[2..];
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

/// Words in which a mark is replaced when they run.
fn replace(words: Vec<Word>, mark: &str) -> Vec<Word> {
    let replaced = |word: Word| match word {
        Word::Known(text) if text.contains(mark) => Word::One(text),
        word => word,
    };
    words.into_iter().map(replaced).collect()
}

/// `sh -c SCRIPT`, and what else a shell can be told.
fn shell(words: Vec<Word>, inside: Inside<'_>, line: &mut Line) {
    let is_known = |rest: &[Word]| rest.first().is_some_and(|word| word.known().is_some());
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
            "o" if is_known(rest) => rest = &rest[1..],
            flags if is_all(flags, "celuxnfvi") => {
                reads_script |= option.starts_with('-') && flags.contains('c');
                // `-i` reads start-up files, `-l` too: they can define anything.
                if flags.contains(['i', 'l']) {
                    line.doubt(About::Commands, "its shell reads start-up files first");
                }
            }
            flags if is_known(rest) && flags.ends_with('o') && is_all(flags, "ceuxo") => {
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
        // A script in a file, as if it were run by its own name.
        (false, Some(_)) => line.push(words, Part::Acts),
    }
}

/// `find … -exec CMD … ;`: the search is a command, and each of these is one too.
fn find(words: Vec<Word>, inside: Inside<'_>, line: &mut Line) {
    let starts =
        |word: &Word| matches!(word.known(), Some("-exec" | "-execdir" | "-ok" | "-okdir"));
    let mut rest = words.as_slice();
    while let Some(start) = rest.iter().position(starts) {
        rest = &rest[start + 1..];
        let ends = |word: &Word| matches!(word.known(), Some(";" | "+"));
        let end = rest.iter().position(ends).unwrap_or(rest.len());
        let mut inner = replace(rest[..end].to_vec(), "{}");
        for word in &mut inner {
            if *word == Word::One("{}".to_owned()) {
                *word = Word::Some("{}".to_owned());
            }
        }
        command(inner, inside.deeper(), line);
        rest = &rest[end..];
    }
    line.push(words, Part::Acts);
}

/// `cd` to a folder below the one the command runs in, inside the workspace, prepares; anywhere
/// else it makes what follows act there, and needs a skill.
fn change_folder(words: Vec<Word>, inside: Inside<'_>, line: &mut Line) {
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

fn set(words: Vec<Word>, line: &mut Line) {
    let harmless = |word: &Word| {
        matches!(
            word.known(),
            Some("pipefail" | "errexit" | "nounset" | "xtrace")
        ) || word.known().is_some_and(|word| {
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
fn variables(words: Vec<Word>, builtin: &str, line: &mut Line) {
    for word in &words[1..] {
        let Some(word) = word.known() else {
            line.doubt(About::Commands, format!("`{builtin}` may set any variable"));
            continue;
        };
        if matches!(word, "-r" | "-x" | "-g") {
            continue;
        }
        let name = assigned(word).unwrap_or(word);
        let how = match builtin {
            _ if !super::variables::is_name(name) => Steering::Program,
            "read" | "local" => steering_in_shell(name),
            _ => steering(name),
        };
        line.doubt_variable(name, how);
    }
    line.push(words, Part::Surrounds);
}

/// Shows rules that deny or ask what may run inside: every word could begin the command, and a word
/// with blanks in it could be a script.
fn look_inside(words: &[Word], inside: Inside<'_>, line: &mut Line) {
    if words.len() > MOST_COMMANDS {
        line.doubt(About::Commands, "it has too many words to look at");
        return;
    }
    for (index, word) in words.iter().enumerate().skip(1) {
        let Some(text) = word.known() else { continue };
        if text.starts_with('-') && !text.contains(' ') {
            continue;
        }
        if text.contains(|char: char| char.is_whitespace() || ";&|".contains(char)) {
            script_for_rules(text, inside, line);
        } else {
            line.push(words[index..].to_vec(), Part::Surrounds);
        }
    }
}

fn script_for_rules(script: &str, inside: Inside<'_>, line: &mut Line) {
    let mut seen = Line::default();
    line::read(script, inside.deeper(), &mut seen);
    line.surround_with(seen);
}
