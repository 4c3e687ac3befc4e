//! The reader against real shells: where it says that it knows the words, they get the same.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up has failed"
)]

mod support;

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use policy::command::{Line, Word};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use support::{WORKSPACE, line};

/// Lines that the reader claims to know all of, with the words it sees.
fn known(text: &str) -> Option<Vec<String>> {
    let facts = line(&format!("p {text}"));
    let seen = Line::of(facts.command.as_ref()?, WORKSPACE);
    let mut acts = seen
        .commands
        .iter()
        .filter(|command| command.words.first().and_then(Word::known) == Some("p"));
    let (command, None) = (acts.next()?, acts.next()) else {
        return None;
    };
    if seen.commands.len() != 1 || !seen.doubts.is_empty() || !seen.redirections.is_empty() {
        return None;
    }
    let words = command.words.iter().skip(1);
    words.map(|word| word.known().map(str::to_owned)).collect()
}

#[test]
fn words_that_are_known_are_the_words_that_a_shell_hands_on() {
    let piece = prop::sample::select(vec![
        "a", "b", "=", " ", "  ", "\t", "'", "\"", "\\", "\\\\", "$", "{", "}", "{}", ",", "..",
        "~", "*", "?", "[", "]", "#", " #", "!", "-", "/", "^", "%", "@", "+", ":", "'a b'",
        "\"a b\"", "\\ ", "\\\n", "\"\\$\"", "\"\\a\"", "''", "\"\"", "é", ".", "1",
    ]);
    let lines = prop::collection::vec(piece, 0..9).prop_map(|pieces| pieces.concat());
    let mut runner = TestRunner::deterministic();
    let mut claimed = Vec::new();
    for _ in 0..20_000 {
        let text = lines.new_tree(&mut runner).unwrap().current();
        claimed.extend(known(&text).map(|words| (text, words)));
    }
    assert!(
        claimed.len() > 1_000,
        "the reader knows too little: {}",
        claimed.len()
    );
    for shell in ["bash", "sh"] {
        // The newline ends a comment, which the reader takes away as the shell does.
        let script: String = std::iter::once("p() { printf '<%s>\\n' \"$@\"; }\n".to_owned())
            .chain(claimed.iter().map(|(text, words)| match words.is_empty() {
                true => format!(": {text}\nprintf ';\\n'\n"),
                false => format!("p {text}\nprintf ';\\n'\n"),
            }))
            .collect();
        let output = Command::new(shell)
            .args(["-c", &script])
            .env_clear()
            .output();
        let Ok(output) = output else { continue };
        let told = String::from_utf8(output.stdout).unwrap();
        let expected: String = claimed
            .iter()
            .map(|(_, words)| {
                words
                    .iter()
                    .map(|word| format!("<{word}>\n"))
                    .collect::<String>()
                    + ";\n"
            })
            .collect();
        for ((text, _), (told, expected)) in claimed
            .iter()
            .zip(told.split(";\n").zip(expected.split(";\n")))
        {
            assert_eq!(told, expected, "{shell}: {text:?}");
        }
        assert_eq!(
            told,
            expected,
            "{shell}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

/// Whether the reader claims to know all of this line, and sees no other program in it than `p`.
fn is_only_p(text: &str) -> bool {
    let facts = line(text);
    let seen = Line::of(facts.command.as_ref().unwrap(), WORKSPACE);
    let around = [
        "p", "true", "sh", "xargs", "env", "time", "command", "read", "exec",
    ];
    let is_around = |word: &Word| word.known().is_some_and(|name| around.contains(&name));
    let programs = seen.commands.iter().map(|command| command.words.first());
    seen.doubts.is_empty() && programs.flatten().all(is_around)
}

#[test]
fn where_one_program_is_seen_no_shell_runs_another() {
    let piece = || {
        prop::sample::select(vec![
            "p ",
            "q ",
            "(q)",
            " ",
            "\n",
            ";",
            "&",
            "&-",
            "|",
            "<",
            "<<",
            "-E",
            "\nE\n",
            "<<-",
            "\"\tE\"",
            "\\\tE",
            "'\nE'",
            "\n\tE\n",
            "\n\nE\n",
            " #",
            "&>/dev/null ",
            "$\\\n",
            "\\\n",
            "for x in a ",
            ";do ",
            "\ndo q\ndone\n",
            ";done",
            "time ",
            "-p ",
            "'-p' ",
            "-- ",
            ">&2 ",
            "RUST_LOG=",
            "+=",
            "sh -c ",
            "bash +c ",
            "xargs ",
            "env ",
        ])
    };
    let pieces = move |most| prop::collection::vec(piece(), 0..most).prop_map(|all| all.concat());
    let part = prop_oneof![
        4 => pieces(3),
        1 => pieces(4).prop_map(|text| format!("\"{text}\"")),
        1 => pieces(4).prop_map(|text| format!("'{text}'")),
    ];
    let lines = prop::collection::vec(part, 1..7).prop_map(|parts| parts.concat());
    let lines = (prop::sample::select(vec!["p ", "p ", ""]), lines)
        .prop_map(|(first, rest)| format!("{first}{rest}"));
    // Lines that run `q`, gone on with on another line wherever that is.
    let runs = prop::sample::select(vec![
        "p='a[$(q)]';((p))",
        "p='a[$(q)]';p $((p))",
        "p&>/dev/null q",
        "p 2>/dev/null||q",
        "p q|sh",
        "p<<E|sh\nq\nE",
        "m=p;p q|xargs -I \"$m\" sh -c p",
        "m=p;p q|xargs -I\"$m\" env p",
        "p q|xargs env",
        "exec -a p sh -c q",
        "p=q;$p",
        "env -- -x=1 q",
    ]);
    let breaks = prop::collection::vec(prop::num::usize::ANY, 0..3);
    let broken = (runs, breaks).prop_map(|(line, breaks)| {
        let mut line = line.to_owned();
        for at in breaks {
            line.insert_str(at % (line.len() + 1), "\\\n");
        }
        line
    });
    let lines = prop_oneof![4 => lines, 1 => broken];
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("one-program");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    for (name, says) in [("p", "echo q"), ("q", ": > \"$0.ran\"")] {
        let path = folder.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{says}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let ran = folder.join("q.ran");
    let path = format!("{}:/usr/bin:/bin", folder.display());
    let mut runner = TestRunner::deterministic();
    let mut claimed = 0;
    for _ in 0..12_000 {
        let text = lines.new_tree(&mut runner).unwrap().current();
        if !text.contains('q') || !is_only_p(&text) {
            continue;
        }
        claimed += 1;
        for shell in ["bash", "sh"] {
            let output = Command::new(shell)
                .args(["-c", &text])
                .current_dir(&folder)
                .env_clear()
                .env("PATH", &path)
                .stdin(Stdio::null())
                .output();
            if output.is_ok() {
                assert!(!ran.exists(), "{shell}: {text:?}");
            }
        }
    }
    assert!(claimed > 300, "the reader knows too little: {claimed}");
}

/// Whether the reader claims to know all of this line.
fn is_known(text: &str) -> bool {
    let facts = line(text);
    let seen = Line::of(facts.command.as_ref().unwrap(), WORKSPACE);
    seen.doubts.is_empty()
}

#[test]
fn what_no_shell_can_read_is_not_known() {
    let plain = [
        "&& ls",
        "| ls",
        "|| ls",
        "; ls",
        "& ls",
        "ls &&",
        "ls |",
        "ls && && ls",
        "ls | | ls",
        "ls ; ; ls",
        "ls &; ls",
        "ls &| ls",
        "ls;; ls",
        "ls; fi",
        "ls; done",
        "ls; }",
        "if ls; fi",
        "if ls; then; ls; fi",
        "while ls; do done",
        "{ ls;",
        "( )",
        "(ls) ls",
        "(ls) (ls)",
        "{ ls; } ls",
        "if ls; then ls; fi ls",
        "( && ls )",
        "$(&& ls)",
        "ls $(ls |)",
        "(ls;; ls)",
        "do ls; done",
        "then ls",
        "else ls",
        "! ",
        "ls | ! ls",
        "if ls; then ls; else ls; else ls; fi",
    ];
    for text in plain {
        assert!(!is_known(text), "{text}");
    }
    let whole = [
        "ls",
        "ls;",
        "ls &",
        "ls &&\nls",
        "ls |\n\nls",
        "(ls)",
        "(ls;)",
        "( ls & )",
        "{ ls; }",
        "{ (ls) }",
        "(ls) > /dev/null",
        "{ ls; } | ls",
        "if ls; then ls; elif ls; then ls; else ls; fi",
        "if (ls) then ls; fi",
        "if if ls; then ls; fi then ls; fi",
        "while ! ls; do ls; done | ls",
        "for x in a b; do ls; done",
        "for x\ndo ls; done",
        "for x do ls; done",
        "\n\nls\n\n",
        "until ls\ndo\nls\ndone",
        "! ls | ls",
        "ls # x",
        "# x",
        "",
        "time ls",
        "> /dev/null",
        "ls && (ls; ls) || { ls\n}",
        "A=1; ls",
        "LANG=C ls && ls",
    ];
    for text in whole {
        let facts = line(text);
        let seen = Line::of(facts.command.as_ref().unwrap(), WORKSPACE);
        let unreadable = |doubt: &&policy::command::Doubt| doubt.reason.contains("could not read");
        assert_eq!(seen.doubts.iter().find(unreadable), None, "{text}");
    }
    let piece = prop::sample::select(vec![
        "ls",
        "ls",
        "ls",
        "&&",
        "||",
        "|",
        "|&",
        ";",
        ";",
        "&",
        "\n",
        "(",
        ")",
        "{",
        "}",
        "if",
        "then",
        "else",
        "elif",
        "fi",
        "while",
        "until",
        "do",
        "done",
        "for x in a",
        "!",
        "A=1",
        "> /dev/null",
        "< /dev/null",
        ";;",
        "# x\n",
    ]);
    let lines = prop::collection::vec(piece, 1..9).prop_map(|pieces| pieces.join(" "));
    let mut runner = TestRunner::deterministic();
    let mut claimed = std::collections::BTreeSet::new();
    for _ in 0..40_000 {
        let text = lines.new_tree(&mut runner).unwrap().current();
        if is_known(&text) {
            claimed.insert(text);
        }
    }
    assert!(
        claimed.len() > 500,
        "the reader knows too little: {}",
        claimed.len()
    );
    for text in claimed
        .iter()
        .filter(|text| !text.trim().is_empty())
        .take(2_000)
    {
        let output = Command::new("bash")
            .args(["-n", "-c", text])
            .env_clear()
            .output();
        let Ok(output) = output else { return };
        assert!(
            output.status.success(),
            "{text:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
