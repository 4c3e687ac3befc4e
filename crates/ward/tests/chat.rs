//! `ward chat` from the outside: keys in, a screen out.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot set itself up has failed"
)]

mod support;
#[path = "support/terminal.rs"]
mod terminal;

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use support::Home;
use terminal::Terminal;

const CTRL_C: &str = "\u{3}";
const CTRL_D: &str = "\u{4}";

fn write(home: &Home, name: &str, content: &str) {
    std::fs::write(home.workspace().join(name), content).unwrap();
}

fn read(home: &Home, name: &str) -> Option<String> {
    std::fs::read_to_string(home.workspace().join(name)).ok()
}

#[test]
fn a_conversation_is_shown_as_it_happens_and_files_change_through_the_gate() {
    let home = Home::new();
    write(&home, "README.md", "# Title\n\nSome words.\n");
    let mut chat = Terminal::chat(&home, &[]);
    chat.sees("The model is `offline`");
    chat.says("read README.md");
    chat.sees("● fs.read README.md");
    chat.sees("╰ 3 lines");
    chat.sees("Some words.");
    chat.settles();
    chat.says("write hello.txt: Hello");
    chat.sees("│ +Hello");
    chat.sees("╰ created");
    chat.sees("hello.txt is there now.");
    chat.settles();
    assert_eq!(read(&home, "hello.txt").as_deref(), Some("Hello"));
    chat.says("in hello.txt replace Hello with Good day");
    chat.sees("│ -Hello");
    chat.sees("│ +Good day");
    chat.settles();
    chat.says("/undo");
    chat.sees("↶ restored");
    assert_eq!(read(&home, "hello.txt").as_deref(), Some("Hello"));
    chat.says("/undo");
    chat.sees("↶ removed");
    assert_eq!(read(&home, "hello.txt"), None);
    chat.says("/cost");
    chat.sees("tokens in");
    chat.types(CTRL_D);
    let (well, screen) = chat.ends();
    assert!(well && screen.contains("ward chat --resume"), "{screen}");
}

#[test]
fn a_question_is_answered_by_a_key_and_a_no_carries_its_reason() {
    let home = Home::new();
    let mut chat = Terminal::chat(&home, &[]);
    chat.says("write ../outside.txt: Hello");
    chat.sees("▲ The agent asks to fs.write");
    chat.sees("+Hello");
    chat.sees("[a]llow once  [s]ession  [w]orkspace  [d]eny");
    chat.types("d");
    chat.sees("why not");
    chat.types("not there\r");
    chat.sees("✗ denied: not there");
    chat.sees("did not work");
    chat.settles();
    assert_eq!(read(&home, "../outside.txt"), None);
    chat.says("write ../other.txt: Hello");
    chat.sees("/other.txt\n");
    chat.sees("[a]llow once");
    chat.types("a");
    chat.sees("✓ allowed once");
    chat.sees("other.txt is there now.");
    assert_eq!(read(&home, "../other.txt").as_deref(), Some("Hello"));
}

#[test]
fn a_host_is_asked_for_while_the_command_waits() {
    let home = Home::new();
    let mut chat = Terminal::chat(&home, &[]);
    chat.says("run curl -sS http://example.com");
    chat.sees("● $ curl -sS http://example.com");
    chat.sees("▲ The agent asks to reach example.com:80");
    chat.sees("[a]llow once");
    chat.types("d");
    chat.sees("why not");
    chat.types("\r");
    chat.sees("✗ denied");
    chat.sees("╰ exit");
    chat.sees("▲ stopped: connection to example.com:80");
    chat.settles();
}

#[test]
fn the_answer_of_another_client_takes_the_question_away() {
    let home = Home::new();
    let mut chat = Terminal::chat(&home, &[]);
    chat.says("write ../outside.txt: Hello");
    chat.sees("[a]llow once");
    let listed = home.transcript(&["approvals", "--json"]);
    let id = listed
        .split("\"id\": \"")
        .nth(1)
        .unwrap_or_else(|| panic!("{listed}"));
    let id = id.split('"').next().unwrap();
    let told = home.transcript(&["approvals", "allow", id, "--scope", "session"]);
    assert!(told.contains("allowed."), "{told}");
    chat.sees("✓ allowed for this session by");
    chat.sees("elsewhere");
    chat.sees("granted  fs.write(");
    chat.sees_no_more("[a]llow once");
    chat.sees("outside.txt is there now.");
    chat.settles();
}

#[test]
fn whoever_types_while_a_question_comes_does_not_answer_it() {
    let home = Home::new();
    write(
        &home,
        "go.sh",
        "until [ -e go ]; do sleep 0.05; done; echo x > /etc/ward-test",
    );
    let mut chat = Terminal::chat(&home, &[]);
    chat.says("run sh go.sh");
    chat.sees("● acting");
    chat.types("a message");
    chat.sees("› a message");
    write(&home, "go", "");
    chat.sees("The agent asks, above. Tab answers it.");
    chat.types("\t");
    chat.sees("[d]eny");
    chat.types("d");
    chat.sees("why not");
    chat.types("\r");
    chat.sees("✗ denied");
    // What was being typed is still there.
    chat.sees("› a message");
}

#[test]
fn a_word_does_not_answer_a_question_whatever_it_begins_with() {
    let home = Home::new();
    let mut chat = Terminal::chat(&home, &[]);
    chat.says("write ../outside.txt: Hello");
    chat.sees("[a]llow once");
    for word in ["allow", "session", "wait", "delete", "list"] {
        chat.types(word);
        chat.sees(&format!("› {word}"));
        chat.sees("Tab answers it.");
        // Back to the question, with an empty line.
        chat.types("\u{15}\t");
        chat.sees("[a]llow once");
        chat.sees_no_more(&format!("› {word}"));
    }
    assert_eq!(read(&home, "../outside.txt"), None);
    chat.types("a");
    chat.sees("✓ allowed once");
}

#[test]
fn ctrl_c_cancels_what_runs_and_then_leaves() {
    let home = Home::new();
    let mut chat = Terminal::chat(&home, &[]);
    chat.says("run echo begun; sleep 1000");
    chat.sees("│ begun");
    chat.sees("● acting");
    chat.types(CTRL_C);
    chat.sees("■ Cancelled.");
    chat.sees("Ctrl-C once more leaves");
    chat.types(CTRL_C);
    let (well, screen) = chat.ends();
    assert!(well, "{screen}");
}

#[test]
fn a_message_is_taken_while_the_agent_is_at_work() {
    let home = Home::new();
    write(
        &home,
        "go.sh",
        "until [ -e go ]; do sleep 0.05; done; echo went",
    );
    let mut chat = Terminal::chat(&home, &[]);
    chat.says("run sh go.sh");
    chat.sees("● acting");
    chat.says("list the files");
    chat.sees("› list the files");
    write(&home, "go", "");
    chat.sees("│ went");
    chat.sees("● fs.list");
    chat.settles();
}

#[test]
fn role_and_mode_change_from_the_next_turn_on_and_typing_errors_are_told() {
    let home = Home::new();
    let mut chat = Terminal::chat(&home, &[]);
    chat.says("/rloe");
    chat.sees("There is no /rloe. Did you mean /role?");
    chat.says("/role");
    chat.sees("● system_agent");
    chat.sees("/role ROLE chooses one.");
    chat.says("list the files");
    chat.sees("There is nothing.");
    chat.settles();
    chat.says("/role architect");
    chat.sees("The role is architect from here on.");
    chat.says("/role nobody");
    chat.sees("✗ ");
    chat.sees("nobody");
    chat.types("\u{15}");
    chat.says("/mode fast");
    chat.sees("It is sandbox or full.");
    chat.says("/mode full");
    chat.sees("The role architect is held by the sandbox in any mode.");
    chat.says("/role backend");
    chat.sees("is not held by the sandbox");
    chat.says("/model");
    chat.sees("The model is offline.");
    chat.says("/quit");
    let (well, screen) = chat.ends();
    assert!(well, "{screen}");
}

#[test]
fn a_session_and_its_question_are_there_again_after_a_restart() {
    let home = Home::new();
    let mut chat = Terminal::chat(&home, &[]);
    chat.says("write first.txt: One");
    chat.sees("first.txt is there now.");
    chat.settles();
    chat.says("write ../outside.txt: Hello");
    chat.sees("[a]llow once");
    chat.types(CTRL_D);
    let (well, screen) = chat.ends();
    assert!(well, "{screen}");
    assert!(
        screen.contains("The agent waits for your answer"),
        "{screen}"
    );

    let mut chat = Terminal::chat(&home, &["--resume"]);
    chat.sees("Going on with session");
    chat.sees("› write first.txt: One");
    chat.sees("first.txt is there now.");
    chat.sees("[a]llow once");
    chat.types("a");
    chat.sees("outside.txt is there now.");
    chat.settles();
    chat.says("/new");
    chat.sees("The next message begins a new session.");
    chat.says("/resume");
    chat.sees("  1  ");
    chat.sees("which (Enter for none)?");
    chat.types("1\r");
    chat.sees("── session");
    chat.settles();
    chat.types("\u{1b}[A\u{1b}[A");
    chat.sees("› /new");
}

/// `ward serve`, when it can be used.
fn served(home: &Home) -> std::process::Child {
    let mut serve = home
        .ward()
        .args(["serve", "--addr", "127.0.0.1:0", "--no-open"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(serve.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert!(!line.is_empty(), "ward serve did not start");
    serve
}

#[test]
fn ward_can_be_started_again_while_a_conversation_waits_for_it() {
    let home = Home::new();
    let mut serve = served(&home);
    let mut chat = Terminal::chat(&home, &[]);
    chat.says("write a.txt: one");
    chat.sees("a.txt is there now.");
    chat.settles();
    serve.kill().unwrap();
    serve.wait().unwrap();
    chat.sees("Ward has ended; looking for another …");
    let mut serve = served(&home);
    chat.sees("Ward is there again.");
    chat.settles();
    chat.says("write b.txt: two");
    chat.sees("b.txt is there now.");
    chat.settles();
    assert_eq!(read(&home, "b.txt").as_deref(), Some("two"));
    serve.kill().unwrap();
    serve.wait().unwrap();
}

#[test]
fn a_conversation_goes_on_when_the_ward_behind_it_ends() {
    let home = Home::new();
    let mut serve = served(&home);
    let mut chat = Terminal::chat(&home, &[]);
    chat.says("write a.txt: one");
    chat.sees("a.txt is there now.");
    chat.settles();
    chat.says("write ../outside.txt: Hello");
    chat.sees("[a]llow once");
    serve.kill().unwrap();
    serve.wait().unwrap();
    chat.sees("this chat is Ward now");
    chat.types("a");
    chat.sees("✓ allowed once");
    chat.sees("outside.txt is there now.");
    chat.settles();
    assert_eq!(read(&home, "../outside.txt").as_deref(), Some("Hello"));
}

#[test]
fn nothing_hostile_reaches_the_terminal() {
    let home = Home::new();
    let name = "evil\u{1b}]0;pwned\u{7}\u{202e}.txt";
    write(&home, name, "text \u{1b}[2J\u{1b}[31mred\u{9b}5m\n");
    write(
        &home,
        "notes.md",
        "&#27;[2J **bold** \u{1b}]52;c;cHduZWQ=\u{7}\u{8}\u{8}\n",
    );
    let mut chat = Terminal::chat(&home, &[]);
    chat.says("list the files");
    chat.sees("evil\\u{1b}]0;pwned\\u{7}\\u{202e}.txt");
    chat.settles();
    chat.says("read notes.md");
    chat.sees("\\u{1b}]52;c;cHduZWQ=\\u{7}\\u{8}\\u{8}");
    chat.settles();
    chat.says("run cat evil*");
    chat.sees("│ text red");
    chat.settles();
    let raw = chat.raw();
    for hostile in [
        "\u{1b}]",
        "\u{1b}[2J",
        "\u{7}",
        "\u{8}",
        "\u{202e}",
        "\u{9b}",
    ] {
        assert!(!raw.contains(hostile), "{hostile:?} in {raw:?}");
    }
}

#[test]
fn a_message_can_have_several_rows_and_a_paste_is_one() {
    let home = Home::new();
    let mut chat = Terminal::chat(&home, &[]);
    chat.types("write a.txt: one\u{1b}\rtwo");
    chat.sees("› write a.txt: one\n  two");
    chat.types("\u{1b}[200~\nthree\u{1b}[201~");
    chat.sees("  two\n  three");
    chat.types("\r");
    chat.sees("a.txt is there now.");
    chat.settles();
    assert_eq!(read(&home, "a.txt").as_deref(), Some("one\ntwo\nthree"));
}

#[test]
fn no_color_is_respected() {
    let home = Home::new();
    let mut chat = Terminal::chat_with(&home, &[], &[("NO_COLOR", "1")]);
    chat.says("write a.txt: one");
    chat.sees("a.txt is there now.");
    chat.settles();
    let raw = chat.raw();
    let coloured = raw.split("\u{1b}[").skip(1).any(|rest| {
        let end = rest.find(|character: char| !matches!(character, '0'..='9' | ';'));
        end.is_some_and(|end| rest[end..].starts_with('m'))
    });
    assert!(!coloured, "{raw:?}");
}

#[test]
fn without_a_terminal_every_line_is_a_message_and_what_asks_is_denied() {
    let home = Home::new();
    let mut chat = home
        .ward()
        .arg("chat")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = chat.stdin.take().unwrap();
    lines
        .write_all(b"write a.txt: one\nwrite ../outside.txt: Hello\n/unod\nread a.txt\n")
        .unwrap();
    drop(lines);
    let output = chat.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    let session = text
        .split("--resume ")
        .nth(1)
        .unwrap_or_else(|| panic!("{text}"));
    let session = session.split(' ').next().unwrap();
    let text = text.replace(session, "[ID]");
    let home_folder = home
        .workspace()
        .parent()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    let text = text.replace(&home_folder, "[HOME]");
    let text: Vec<String> = text.lines().map(without_time).collect();
    insta::assert_snapshot!(text.join("\n"));
    assert_eq!(read(&home, "../outside.txt"), None);
}

/// How long something took is another every time.
fn without_time(line: &str) -> String {
    match line.split_once(" · ") {
        Some((before, _)) if line.starts_with("  ╰") => format!("{before} · [TIME]"),
        _ => line.to_owned(),
    }
}
