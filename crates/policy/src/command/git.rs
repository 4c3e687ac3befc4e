//! What `git` may run besides itself.

use super::launchers::operands;
use super::unwrap::Inside;
use super::within::{TOO_MANY, command_for_rules, look_behind, values_for_rules};
use super::{About, Line, MOST_COMMANDS, Part, Word};

/// Options of a verb that name a command.
const OPTIONS: &[(&str, &[&str])] = &[
    ("archive", &["--exec"]),
    ("clone", &["-u", "--upload-pack"]),
    ("difftool", &["-x", "--extcmd"]),
    ("fetch", &["--upload-pack"]),
    ("fetch-pack", &["--exec", "--upload-pack"]),
    (
        "filter-branch",
        &[
            "--commit-filter",
            "--env-filter",
            "--index-filter",
            "--msg-filter",
            "--parent-filter",
            "--setup",
            "--tag-name-filter",
            "--tree-filter",
        ],
    ),
    ("grep", &["-O", "--open-files-in-pager"]),
    ("ls-remote", &["--exec", "--upload-pack"]),
    ("pull", &["--upload-pack"]),
    ("push", &["--exec", "--receive-pack"]),
    ("rebase", &["-x", "--exec"]),
    (
        "send-email",
        &[
            "--cc-cmd",
            "--header-cmd",
            "--sendmail-cmd",
            "--smtp-server",
            "--to-cmd",
        ],
    ),
    ("send-pack", &["--exec", "--receive-pack"]),
];

/// Verbs, and their own next where they have one, behind which a command stands.
const RUNS: &[(&str, Option<&str>)] = &[
    ("bisect", Some("run")),
    ("merge-index", None),
    ("submodule", Some("foreach")),
];

/// Settings given to `git` itself can name programs and give commands other names.
pub(super) fn git(words: Vec<Word>, inside: Inside<'_>, line: &mut Line) {
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
    look_at_verbs(&words, inside, line);
    line.push(words, Part::Acts);
}

/// The words from this one on, which may be the verb: what stands before may be a value.
fn from<'w>(words: &'w [Word], verb: &str) -> Option<&'w [Word]> {
    let at = words
        .iter()
        .skip(1)
        .position(|word| word.known() == Some(verb))?;
    words.get(at + 1..)
}

fn look_at_verbs(words: &[Word], inside: Inside<'_>, line: &mut Line) {
    for (verb, options) in OPTIONS {
        if let Some(words) = from(words, verb) {
            values_for_rules(options, words, inside, line);
        }
    }
    for (verb, next) in RUNS {
        let verb = from(words, verb);
        let behind = next.map_or(verb, |next| from(verb?, next));
        if let Some(words) = behind {
            look_behind(0, words, inside, line);
        }
    }
    if let Some(words) = from(words, "for-each-repo") {
        if words.len() > MOST_COMMANDS {
            return line.doubt(About::Commands, TOO_MANY);
        }
        // What it runs is `git` with these words.
        let end = operands(words, &[]).next().unwrap_or(words.len() - 1);
        for index in 1..=end {
            let git = std::iter::once(Word::Known("git".to_owned()));
            let inner = git.chain(words[index..].iter().cloned()).collect();
            command_for_rules(inner, inside, line);
        }
    }
    let sets = |word: &Word| {
        let text = word.known().unwrap_or_default();
        text.starts_with("-c") || text.starts_with("--c")
    };
    if from(words, "clone").is_some_and(|words| words.iter().any(sets)) {
        line.doubt(About::Commands, "`git clone -c` can make it run anything");
    }
    if from(words, "remote-ext").is_some() {
        line.doubt(About::Commands, "`git remote-ext` can run anything");
    }
}
