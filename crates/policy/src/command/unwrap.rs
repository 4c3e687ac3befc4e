//! Sees through commands that run other commands.
//!
//! Some add nothing of their own (`env`, `nohup`, `timeout` …): what counts is what they run. Some
//! change what it means (`sudo`, `chroot`, `watch` …): they need a skill under their own name, and
//! a rule that denies still sees what is inside. An option that is not known here makes the first
//! kind the second.

use std::cell::Cell;

use super::builtins::{self, CHANGERS, INERT};
use super::shells::{SHELLS, UNREAD, shell};
use super::variables::{assigned, is_reserved, steering};
use super::wrappers::{WRAPPERS, Wrapper, after_options, is_launcher};
use super::{About, Line, MOST_COMMANDS, Part, Word, base_name, is_plain_program, line};

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
            if name == "eval" {
                line::read(&texts.join(" "), inside.deeper(), line);
            } else {
                for text in texts {
                    script_for_rules(text, inside, line);
                }
            }
            line.push(words, Part::Surrounds);
        }
        name if INERT.contains(&name) => builtins::inert(words, line),
        "git" => git(words, line),
        _ => line.push(words, Part::Acts),
    }
}

/// Whether a program of this name may run others, by what it is told.
fn runs_others(name: &str) -> bool {
    WRAPPERS.iter().any(|wrapper| wrapper.name == name)
        || is_launcher(name)
        || SHELLS.contains(&name)
        || UNREAD.contains(&name)
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
fn may_start(word: &Word) -> bool {
    let (text, several) = match word {
        Word::Known(_) => return false,
        Word::One(text) => (text, false),
        Word::Some(text) => (text, text.contains(['$', '`', '{'])),
    };
    let first = text.chars().next();
    several || first.is_none_or(|char| !(char.is_alphanumeric() || "./_".contains(char)))
}

/// Settings given to `git` itself can name programs and give commands other names.
fn git(words: Vec<Word>, line: &mut Line) {
    let mut rest = words[1..].iter();
    while let Some(option) = rest.next() {
        match option.known() {
            Some("-C" | "--git-dir" | "--work-tree" | "--namespace") => {
                if matches!(rest.next(), Some(Word::Some(_))) {
                    line.doubt(About::Commands, "what `git` is told is not known");
                }
            }
            Some(option) if !option.starts_with('-') => break,
            Some(option) => {
                let steers = ["-c", "--config-env", "--exec-path="];
                if steers.iter().any(|steers| option.starts_with(steers)) {
                    line.doubt(
                        About::Commands,
                        format!("`git {option}` can make it run anything"),
                    );
                }
            }
            None => {
                line.doubt(About::Commands, "what `git` is told is not known");
                break;
            }
        }
    }
    line.push(words, Part::Acts);
}

/// Shows rules that deny or ask what may run inside: every word could begin the command, and one
/// that means more than itself to a shell could be a script. What cannot be known about these is
/// as unknown as without the command around them.
pub(super) fn look_inside(words: &[Word], inside: Inside<'_>, line: &mut Line) {
    if words.len() > MOST_COMMANDS {
        line.doubt(About::Commands, "it has too many words to look at");
        return;
    }
    let name = words.first().map(|word| base_name(word.shown()));
    // Up to the first word that is neither an option nor what may be the value of one.
    let mut is_own = true;
    for (index, word) in words.iter().enumerate().skip(1) {
        let Some(text) = word.known() else {
            line.doubt(
                About::Commands,
                "a word that is not known may be what another runs",
            );
            continue;
        };
        if let Some(option) = text.strip_prefix('-') {
            // `--command=SCRIPT`, `-cSCRIPT`.
            let attached = match option.split_once('=') {
                Some((_, value)) => Some(value),
                None if option.starts_with('-') => None,
                None => option.get(1..),
            };
            script_for_rules(attached.unwrap_or_default(), inside, line);
            continue;
        }
        match assigned(text) {
            // `sudo PATH=x ls`.
            Some(variable) if is_own => {
                let value = text.split_once('=').map(|(_, value)| value);
                line.doubt_variable(variable, steering(variable, value));
            }
            Some(_) => {}
            None => is_own &= words[index - 1].shown().starts_with('-'),
        }
        if text.contains(|char: char| char.is_whitespace() || "$(){}<>;&|*?[`".contains(char)) {
            script_for_rules(text, inside, line);
        } else if builtins::is_no_program(text) && name != Some("jobs") {
            // `docker exec`: what follows is looked at in its turn.
            line.push(words[index..].to_vec(), Part::Surrounds);
        } else {
            command_for_rules(words[index..].to_vec(), inside, line);
        }
    }
}

fn command_for_rules(words: Vec<Word>, inside: Inside<'_>, line: &mut Line) {
    let mut seen = Line::default();
    command(words, inside.deeper(), &mut seen);
    line.surround_with(seen);
}

fn script_for_rules(script: &str, inside: Inside<'_>, line: &mut Line) {
    let mut seen = Line::default();
    line::read(script, inside.deeper(), &mut seen);
    line.surround_with(seen);
}
