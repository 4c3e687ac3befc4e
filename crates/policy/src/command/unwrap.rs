//! Sees through commands that run other commands.
//!
//! Some add nothing of their own (`env`, `nohup`, `timeout` …): what counts is what they run. Some
//! change what it means (`sudo`, `chroot`, `watch` …): they need a skill under their own name, and
//! a rule that denies still sees what is inside. An option that is not known here makes the first
//! kind the second.

use std::cell::Cell;

use super::builtins::{self, CHANGERS, INERT};
use super::git::git;
use super::launchers::{is_launcher, runner_of};
use super::shells::{SHELLS, UNREAD, shell};
use super::variables::{assigned, is_reserved, steering};
use super::within::{self, command_for_rules, look_inside, script_for_rules};
use super::wrappers::{WRAPPERS, Wrapper, after_options};
use super::{About, Line, Part, Word, base_name, is_plain_program, line};

/// Where a command stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inside<'a> {
    pub(super) cwd: &'a str,
    pub(super) workspace: &'a str,
    pub(super) depth: usize,
    /// How much may still be read: what may run inside others is read once for each that may.
    left: &'a Cell<usize>,
}

/// How many words and bytes are read of one line in all, however often each.
pub(super) const MOST_READ: usize = 256 * 1024;

impl<'a> Inside<'a> {
    pub(super) fn new(cwd: &'a str, workspace: &'a str, left: &'a Cell<usize>) -> Self {
        Self {
            cwd,
            workspace,
            depth: 0,
            left,
        }
    }

    /// Whether this much more may be read.
    pub(super) fn spends(self, amount: usize) -> bool {
        let left = self.left.get().checked_sub(amount);
        self.left.set(left.unwrap_or_default());
        left.is_some()
    }

    pub(super) fn deeper(self) -> Self {
        Self {
            depth: self.depth + 1,
            ..self
        }
    }
}

/// `~/bin/git`: where that is, is not known, and yet its name is git.
fn at_home(mut words: Vec<Word>) -> Vec<Word> {
    if let Some(Word::One(program)) = words.first()
        && let Some((user, rest)) = program
            .strip_prefix('~')
            .and_then(|path| path.split_once('/'))
        && !user.contains(['$', '`'])
        && !rest.contains(['$', '`', '~'])
    {
        words[0] = Word::Known(program.clone());
    }
    words
}

/// Adds a command and what it would run.
pub(super) fn command(words: Vec<Word>, inside: Inside<'_>, line: &mut Line) {
    if inside.depth > super::DEEPEST {
        line.doubt(About::Commands, "it nests too deep to be looked into");
        return line.push(words, Part::Acts);
    }
    if !inside.spends(words.len()) {
        line.doubt(About::Commands, "it has too many commands to look at");
        return line.push(words, Part::Acts);
    }
    let Some(program) = words.first().and_then(Word::known).map(str::to_owned) else {
        if !words.is_empty() {
            line.doubt(About::Commands, "its program is not known before it runs");
        }
        return line.push(at_home(words), Part::Acts);
    };
    let name = base_name(&program);
    if let Some(verb) = name.strip_prefix("git-") {
        // Wherever it lies, it does what `git` does with this verb.
        let named = ["git", verb].map(|word| Word::Known(word.to_owned()));
        let as_git = named
            .into_iter()
            .chain(words[1..].iter().cloned())
            .collect();
        command_for_rules(as_git, inside, line);
        return line.push(words, Part::Acts);
    }
    if !is_plain_program(&program) {
        // Whatever it is called, it need not be the program of that name; yet it is looked into as
        // if it were, and what cannot be known of that one cannot be known of this.
        if runs_others(name) {
            let named = std::iter::once(Word::Known(name.to_owned()));
            let as_named = named.chain(words[1..].iter().cloned()).collect();
            command_for_rules(as_named, inside, line);
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
    if is_launcher(name) && !only_searches(name, &words) {
        look_inside(&words, inside, line);
        return line.push(words, Part::Acts);
    }
    if let Some(runner) = runner_of(name) {
        within::runner(runner, &words, inside, line);
        return line.push(words, Part::Acts);
    }
    match name {
        "find" => find(words, inside, line),
        "cd" => builtins::change_folder(words, inside, line),
        "pushd" | "popd" => line.push(words, Part::Acts),
        "set" => builtins::set(words, line),
        "export" | "declare" | "typeset" | "local" | "readonly" | "read" => {
            builtins::variables(words, name, line);
        }
        "printf" if builtins::printf_sets(&words) => {
            line.doubt(About::Commands, "`printf` may set a variable");
            line.push(words, Part::Acts);
        }
        name if CHANGERS.contains(&name) => {
            line.doubt(
                About::Commands,
                format!("`{name}` can change or run anything"),
            );
            let texts: Vec<&str> = words.iter().skip(1).filter_map(Word::known).collect();
            match name {
                "eval" => line::read(&texts.join(" "), inside.deeper(), line),
                // A script and its arguments, as behind a shell.
                "." | "source" => look_inside(&words, inside, line),
                _ => {
                    for text in texts {
                        script_for_rules(text, inside, line);
                    }
                }
            }
            line.push(words, Part::Surrounds);
        }
        name if INERT.contains(&name) => builtins::inert(words, line),
        "git" => git(words, inside, line),
        _ => line.push(words, Part::Acts),
    }
}

/// Whether a program of this name may run others, by what it is told.
fn runs_others(name: &str) -> bool {
    WRAPPERS.iter().any(|wrapper| wrapper.name == name)
        || is_launcher(name)
        || SHELLS.contains(&name)
        || UNREAD.contains(&name)
        || runner_of(name).is_some()
        || matches!(name, "find" | "git")
}

/// `fd` runs others only where it is told so; its other words are patterns, which look like scripts.
fn only_searches(name: &str, words: &[Word]) -> bool {
    let runs = |word: &Word| match word.known() {
        Some(text) => match text.strip_prefix("--") {
            Some(long) => long.starts_with("exec"),
            None => text.starts_with('-') && text.contains(['x', 'X']),
        },
        None => may_start(word),
    };
    matches!(name, "fd" | "fdfind") && !words[1..].iter().any(runs)
}

fn unwrap(wrapper: &Wrapper, words: Vec<Word>, inside: Inside<'_>, line: &mut Line) {
    let asks_where = |word: &Word| matches!(word.known(), Some("-v" | "-V"));
    if wrapper.name == "command" && words.get(1).is_some_and(asks_where) {
        return line.push(words, Part::Surrounds);
    }
    let Some(mut rest) = after_options(wrapper, &words) else {
        line.doubt(
            About::Commands,
            format!("how `{}` is used is not known", wrapper.name),
        );
        look_inside(&words, inside, line);
        return line.push(words, Part::Acts);
    };
    if wrapper.name == "env" {
        while let Some((variable, value)) =
            (rest.first().and_then(Word::known)).and_then(assigned_in_env)
        {
            line.doubt_variable(variable, steering(variable, Some(value)));
            rest = &rest[1..];
        }
    }
    // `time -p` is a word of bash's too, and what follows means what it does without it.
    let is_word = |word: &str| assigned(word).is_some() || is_reserved(word);
    if wrapper.name == "time" && (rest.first().and_then(Word::known)).is_some_and(is_word) {
        line.doubt(
            About::Commands,
            "what means something to bash behind `time` is a program to sh",
        );
        look_inside(&words, inside, line);
        return line.push(words, Part::Acts);
    }
    if rest.is_empty() {
        // `env` alone prints, `exec` alone redirects, `xargs` alone echoes.
        return line.push(words, Part::Acts);
    }
    let mut inner = rest.to_vec();
    if wrapper.name == "xargs" {
        let own = &words[..words.len() - rest.len()];
        match xargs_mark(own) {
            Mark::None => {}
            Mark::Is(mark) => inner = replace(inner, mark),
            Mark::Unknown => line.doubt(
                About::Commands,
                "where `xargs` puts what it reads is not known",
            ),
        }
        // Alone, `-I` puts what is read nowhere else; another option can take it back.
        let alone = match own.get(1).and_then(Word::known) {
            Some("-I") => own.len() == 3,
            Some(option) => option.starts_with("-I") && own.len() == 2,
            None => false,
        };
        if !alone {
            inner.push(Word::Some("…".to_owned()));
        }
    }
    command(inner, inside.deeper(), line);
    line.push(words, Part::Surrounds);
}

/// What `xargs -I` replaces by what it reads.
enum Mark<'w> {
    /// Nothing: that is added at the end.
    None,
    Is(&'w str),
    Unknown,
}

/// More words of its own than anyone gives `xargs`.
const MOST_OWN: usize = 256;

fn xargs_mark(own: &[Word]) -> Mark<'_> {
    if own.len() > MOST_OWN {
        return Mark::Unknown;
    }
    let mut marks = own.iter().enumerate().filter_map(|(index, word)| {
        let attached = word.known()?.strip_prefix("-I")?;
        Some(match attached {
            "" => own.get(index + 1).and_then(Word::known).unwrap_or_default(),
            mark => mark,
        })
    });
    match (marks.next(), marks.next()) {
        (None, _) => Mark::None,
        (Some(mark), None) if !mark.is_empty() => Mark::Is(mark),
        (Some(_), _) => Mark::Unknown,
    }
}

/// `env` takes any name before `=`, also ones that a shell would not, and those that look like an
/// option: what is one was read before.
fn assigned_in_env(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    (!name.is_empty()).then_some((name, value))
}

/// Words in which a mark is replaced when they run.
fn replace(words: Vec<Word>, mark: &str) -> Vec<Word> {
    let replaced = |word: Word| match word {
        Word::Known(text) if text.contains(mark) => Word::One(text),
        word => word,
    };
    words.into_iter().map(replaced).collect()
}

/// `find … -exec CMD … ;`: the search is a command, and each of these is one too.
fn find(words: Vec<Word>, inside: Inside<'_>, line: &mut Line) {
    let starts =
        |word: &Word| matches!(word.known(), Some("-exec" | "-execdir" | "-ok" | "-okdir"));
    let mut rest = words.as_slice();
    while let Some(start) = rest.iter().position(starts) {
        rest = &rest[start + 1..];
        // `+` ends it only behind `{}`; elsewhere it is a word like others.
        let ends = |index: &usize| match rest[*index].known() {
            Some("+") => *index > 0 && rest[*index - 1].known() == Some("{}"),
            end => end == Some(";"),
        };
        let end = (0..rest.len()).find(ends).unwrap_or(rest.len());
        let mut inner = replace(rest[..end].to_vec(), "{}");
        for word in &mut inner {
            if *word == Word::One("{}".to_owned()) {
                *word = Word::Some("{}".to_owned());
            }
        }
        command(inner, inside.deeper(), line);
        rest = &rest[end..];
    }
    if words.iter().any(may_start) {
        line.doubt(About::Commands, "a word of `find` may be `-exec`");
    }
    line.push(words, Part::Acts);
}

/// Whether a word that is not known may become one that runs something. What begins or ends like
/// no such word does not, unless it may become several words.
pub(super) fn may_start(word: &Word) -> bool {
    let (text, several) = match word {
        Word::Known(_) => return false,
        Word::One(text) => (text, false),
        Word::Some(text) => (text, text.contains(['$', '`', '{'])),
    };
    let first = text.chars().next();
    several || first.is_none_or(|char| !(char.is_alphanumeric() || "./_".contains(char)))
}
