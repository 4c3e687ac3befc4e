//! Shows rules that deny or ask what may run inside a command that is not seen through.

use super::builtins;
use super::launchers::{Runner, SWITCHES, operands};
use super::unwrap::{Inside, command, may_start};
use super::variables::{assigned, steering};
use super::{About, Line, MOST_COMMANDS, Part, Word, base_name, line};

pub(super) const TOO_MANY: &str = "it has too many words to look at";

/// Shows rules that deny or ask what may run inside: every word could begin the command, and one
/// that means more than itself to a shell could be a script. What cannot be known about these is
/// as unknown as without the command around them.
pub(super) fn look_inside(words: &[Word], inside: Inside<'_>, line: &mut Line) {
    look_up_to(words.len(), words, inside, line);
}

/// What a runner of tools runs: at the latest it begins with the first word that is surely neither
/// an option nor the value of one, and what follows belongs to that.
pub(super) fn runner(runner: &Runner, words: &[Word], inside: Inside<'_>, line: &mut Line) {
    if runner.verbs.is_empty() {
        return look_behind(runner.own, words, inside, line);
    }
    if words.len() > MOST_COMMANDS {
        return line.doubt(About::Commands, TOO_MANY);
    }
    let is_verb = |index: &usize| {
        words[*index]
            .known()
            .is_some_and(|word| runner.verbs.contains(&word))
    };
    let says_what = operands(words, SWITCHES).next();
    let before = says_what.unwrap_or(words.len());
    if words[1..before].iter().any(|word| word.known().is_none()) {
        line.doubt(
            About::Commands,
            "a word that is not known may be what makes it run another",
        );
    }
    for index in (1..words.len()).filter(is_verb) {
        look_behind(runner.own, &words[index..], inside, line);
    }
}

/// The same behind the first word, where so many of its own precede the command.
pub(super) fn look_behind(own: usize, words: &[Word], inside: Inside<'_>, line: &mut Line) {
    let begins = operands(words, SWITCHES).nth(own);
    look_up_to(begins.map_or(words.len(), |at| at + 1), words, inside, line);
}

fn look_up_to(end: usize, words: &[Word], inside: Inside<'_>, line: &mut Line) {
    if words.len() > MOST_COMMANDS {
        return line.doubt(About::Commands, TOO_MANY);
    }
    let name = words.first().map(|word| base_name(word.shown()));
    // Up to the first word that is neither an option nor what may be the value of one.
    let mut is_own = true;
    for (index, word) in words.iter().enumerate().take(end).skip(1) {
        let Some(text) = word.known() else {
            line.doubt(
                About::Commands,
                "a word that is not known may be what another runs",
            );
            continue;
        };
        if let Some(script) = name.and_then(|name| set_command(name, text)) {
            script_for_rules(&script, inside, line);
        }
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

/// What is a command in the value of one of these options, which may be shortened and attached.
pub(super) fn values_for_rules(
    options: &[&str],
    words: &[Word],
    inside: Inside<'_>,
    line: &mut Line,
) {
    for (index, word) in words.iter().enumerate().skip(1) {
        let Some(text) = word.known() else {
            if may_start(word) {
                let reason = "a word that is not known may be an option that runs a command";
                line.doubt(About::Commands, reason);
            }
            continue;
        };
        // Behind another option it may be the value of that.
        if text == "--" && !words[index - 1].shown().starts_with('-') {
            return;
        }
        for attached in options.iter().filter_map(|option| value_in(option, text)) {
            match (attached, words.get(index + 1)) {
                ("", Some(Word::Known(value))) => script_for_rules(value, inside, line),
                ("", Some(Word::One(_) | Word::Some(_))) => {
                    line.doubt(
                        About::Commands,
                        "which command an option names is not known",
                    );
                }
                (value, _) => script_for_rules(value, inside, line),
            }
        }
    }
}

/// What is attached to an option in this word, where it is that option: `--ex=CMD`, `-ixCMD`.
fn value_in<'t>(option: &str, text: &'t str) -> Option<&'t str> {
    if text.starts_with("--") {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        return (name.len() > 2 && option.starts_with(name)).then_some(value);
    }
    let letter = option
        .strip_prefix('-')
        .filter(|letter| letter.len() == 1)?;
    let (_, value) = text.strip_prefix('-')?.split_once(letter)?;
    Some(value)
}

pub(super) fn command_for_rules(words: Vec<Word>, inside: Inside<'_>, line: &mut Line) {
    let mut seen = Line::default();
    command(words, inside.deeper(), &mut seen);
    line.surround_with(seen);
}

pub(super) fn script_for_rules(script: &str, inside: Inside<'_>, line: &mut Line) {
    let mut seen = Line::default();
    line::read(script, inside.deeper(), &mut seen);
    line.surround_with(seen);
}

/// The command in what some programs take for a setting: `ProxyCommand=git push`, `EXEC:git push`,
/// `shell git push`.
fn set_command(name: &str, text: &str) -> Option<String> {
    let is_unquoted = |char: &char| !matches!(char, '"' | '\'');
    match name {
        "autossh" | "scp" | "sftp" | "slogin" | "ssh" | "sshfs" => {
            // `-o` may stand behind other flags: `-4oProxyCommand git push`.
            let end = text.to_ascii_lowercase().find("command")? + "command".len();
            let (key, value) = text.split_at_checked(end)?;
            let is_key = |char: char| char.is_ascii_alphanumeric() || char == '-';
            let value = value.trim_start_matches(|char: char| "= \t".contains(char));
            let unquoted = value
                .strip_prefix('"')
                .and_then(|value| value.strip_suffix('"'));
            let is_key = key.trim_start().chars().all(is_key);
            is_key.then(|| unquoted.unwrap_or(value).to_owned())
        }
        "socat" => {
            let (kind, value) = text.split_once(':')?;
            let runs = ["exec", "shell", "system"];
            let runs = runs.contains(&kind.to_ascii_lowercase().as_str());
            let value = value.split(',').next()?;
            runs.then(|| value.chars().filter(is_unquoted).collect())
        }
        "gdb" | "rust-gdb" => {
            let words = text.trim_start_matches(['-', 'e', 'x', '=', ' ']);
            let script = words.strip_prefix("shell ");
            Some(script.or(words.strip_prefix('!'))?.to_owned())
        }
        _ => None,
    }
}
