//! `ward approvals watch` from the outside: keys in, a screen out.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot set itself up has failed"
)]

#[path = "support/serving.rs"]
mod serving;
mod support;
#[path = "support/terminal.rs"]
mod terminal;

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};
use serving::{Serving, outside, with};
use support::Home;
use terminal::Terminal;

const CTRL_C: &str = "\u{3}";
const CTRL_U: &str = "\u{15}";
const ESC: &str = "\u{1b}";

/// `ward approvals watch`, waiting.
fn watch(home: &Home) -> Terminal {
    let mut watch = Terminal::start(home, &["approvals", "watch"], &[]);
    watch.sees("Waiting for questions; Ctrl-C ends.");
    watch
}

/// An agent that asks to write files outside the workspace.
struct Agent<'a> {
    ward: &'a Serving<'a>,
    token: String,
}

impl<'a> Agent<'a> {
    fn new(ward: &'a Serving<'a>) -> Self {
        let token = ward.agent("backend");
        Self { ward, token }
    }

    fn asks(&self, name: &str, more: &Value) {
        let body = with(
            outside(self.ward.home, name),
            &json!({"wait": 0, "id": name}),
        );
        let (status, told) = self.ward.act(&self.token, &with(body, more));
        assert_eq!(status, 202, "{told}");
    }
}

#[test]
fn what_was_typed_before_a_question_was_seen_does_not_answer_it() {
    let home = Home::new();
    let ward = Serving::start(&home);
    let agent = Agent::new(&ward);
    let mut watch = watch(&home);
    watch.types("a\ra\rw\r\r");
    agent.asks("one", &json!({}));
    watch.types("a\ra");
    watch.sees("+written");
    watch.types("a");
    watch.sees("[a]llow once  [w]orkspace  [d]eny  [l]ater");
    let approval = ward.asked(1).remove(0);
    assert_eq!(approval["action_id"], "one");
    // A word does not, whatever it begins with, nor what another key follows.
    for word in ["allow", "wa", "aa"] {
        watch.types(word);
        watch.sees_no_more("[a]llow once");
        watch.sees("[a]llow once");
    }
    assert_eq!(ward.asked(1), [approval]);
    watch.types("a");
    watch.sees("✓ allowed once");
    watch.sees("Waiting for questions");
    assert_eq!(ward.ended("one")["status"], "done");
    watch.types(CTRL_C);
    let (well, screen) = watch.ends();
    assert!(well, "{screen}");
}

#[test]
fn a_question_that_is_answered_elsewhere_is_gone_at_once() {
    let home = Home::new();
    let ward = Serving::start(&home);
    let agent = Agent::new(&ward);
    let mut watch = watch(&home);
    agent.asks("one", &json!({}));
    watch.sees("[a]llow once");
    agent.asks("two", &json!({}));
    agent.asks("three", &json!({}));
    let asked = ward.asked(3);
    let of = |id: &str| asked.iter().find(|approval| approval["action_id"] == id);
    let (one, two) = (of("one").unwrap(), of("two").unwrap());
    let deny = json!({"decision": "deny", "reason": "not there"});
    // The second is not on the screen yet, and never will be.
    assert_eq!(ward.answer(&ward.token, two, &deny).0, 200);
    watch.types("d");
    watch.sees("why not (Enter for no reason)?");
    watch.types("because");
    watch.sees("? because");
    let (_, resolved) = ward.answer(&ward.token, one, &deny);
    let by = resolved["by"].as_str().unwrap();
    watch.sees(&format!("✗ denied by {by}, elsewhere: not there"));
    watch.sees_no_more("because");
    watch.sees("/three\n");
    watch.sees("[a]llow once");
    assert!(!watch.screen().contains("/two\n"));
    watch.types("d");
    watch.sees("why not");
    watch.types("nor there\r");
    watch.sees("✗ denied: nor there");
    watch.sees("Waiting for questions");
    assert_eq!(ward.ended("three")["kind"], "denied");
}

#[test]
fn a_yes_for_longer_shows_its_grant_which_can_be_another() {
    let home = Home::new();
    let ward = Serving::start(&home);
    let agent = Agent::new(&ward);
    agent.asks("one", &json!({"session": "s"}));
    let mut watch = Terminal::start(&home, &["approvals", "watch"], &[]);
    watch.sees("[a]llow once  [s]ession  [w]orkspace  [d]eny  [l]ater");
    let offered = ward.asked(1)[0]["questions"][0]["pattern"].clone();
    let offered = offered.as_str().unwrap();
    watch.types("w");
    watch.sees("Enter says yes to exactly this, Esc goes back");
    watch.sees(&format!("grant {offered}"));
    watch.types(ESC);
    watch.sees("[s]ession");
    watch.types("s");
    watch.sees(&format!("grant {offered}"));
    watch.types(&format!("{CTRL_U}fs.write(/nowhere)\r"));
    watch.sees("✗ These patterns do not answer the question");
    watch.sees("[s]ession");
    watch.types("s");
    watch.sees(&format!("grant {offered}"));
    let wider = offered.replace("one)", "o*)");
    watch.types("\u{7f}\u{7f}\u{7f}*)\r");
    watch.sees("✓ allowed for this session");
    watch.sees(&format!("granted  {wider}"));
    let grants = ward.get("/grants");
    let grant = &grants["grants"][0];
    assert_eq!(
        (&grant["pattern"], &grant["session_id"]),
        (&json!(wider), &json!("s"))
    );
}

#[test]
fn a_question_can_be_put_off_and_is_asked_again_when_that_is_wanted() {
    let home = Home::new();
    let ward = Serving::start(&home);
    let agent = Agent::new(&ward);
    let mut watch = watch(&home);
    agent.asks("one", &json!({}));
    watch.sees("[l]ater");
    watch.types("l");
    watch.sees("Waiting for questions; 1 put off, l asks again; Ctrl-C ends.");
    agent.asks("two", &json!({}));
    watch.sees("/two\n");
    watch.sees("[a]llow once");
    watch.types("a");
    watch.sees("✓ allowed once");
    watch.sees("1 put off");
    assert_eq!(ward.ended("two")["status"], "done");
    watch.types("l");
    watch.sees("[a]llow once");
    watch.types("a");
    watch.sees("Waiting for questions; Ctrl-C ends.");
    assert_eq!(ward.ended("one")["status"], "done");
}

#[test]
fn without_a_terminal_nothing_that_is_written_is_an_answer() {
    let home = Home::new();
    let ward = Serving::start(&home);
    let agent = Agent::new(&ward);
    agent.asks("one", &json!({}));
    let approval = ward.asked(1).remove(0);
    let mut watch = home
        .ward()
        .args(["approvals", "watch"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = watch.stdin.take().unwrap();
    // It may have ended by now.
    let _ = input.write_all(b"a\na\n");
    drop(input);
    let output = watch.wait_with_output().unwrap();
    assert_eq!(
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap().as_str()
        ),
        (
            Some(1),
            "ward: `ward approvals watch` needs a terminal, to show the questions and to read keys. `ward approvals` lists them, and `ward approvals allow ID` and `ward approvals deny ID` answer without one.\n"
        )
    );
    assert_eq!(ward.asked(1), [approval]);
}

#[test]
fn a_script_that_is_rewritten_after_the_answer_is_asked_about_again_and_why_is_said() {
    let home = Home::new();
    std::fs::create_dir_all(home.config()).unwrap();
    let rules = "[[rules]]\nask = \"terminal.run\"\n";
    std::fs::write(home.config().join("rules.toml"), rules).unwrap();
    let script = home.workspace().join("d.sh");
    let ward = Serving::start(&home);
    let token = ward.agent("backend");
    let allow = json!({"decision": "allow", "scope": "once"});
    for command in ["bash ./d*.sh", "bash \"$PWD\"/d.sh", "bash ~+/d.sh"] {
        std::fs::write(&script, "echo shown\n").unwrap();
        let run = json!({
            "action": "terminal.run", "params": {"command": command}, "wait": 0,
        });
        let (status, told) = ward.act(&token, &run);
        assert_eq!(status, 202, "{told}");
        let first = ward.asked(1).remove(0);
        assert_eq!(first["again"], Value::Null);
        std::fs::write(&script, "echo rewritten\n").unwrap();
        let (status, told) = ward.answer(&ward.token, &first, &allow);
        assert_eq!(status, 200, "{told}");
        let second = ward.asked(1).remove(0);
        let because = "A file that the command names has changed since the answer: d.sh.";
        assert_eq!(
            second["again"],
            json!({"because": because, "after": first["id"]}),
            "{command}"
        );
        let id = second["id"].as_str().unwrap();
        let show = home
            .ward()
            .args(["approvals", "show", id])
            .output()
            .unwrap();
        let shown = String::from_utf8(show.stdout).unwrap();
        for row in [
            format!("  again      {because}\n"),
            format!("  digest     {}\n", second["digest"].as_str().unwrap()),
            format!(
                "  binds      {} (sha256:",
                script.canonicalize().unwrap().display()
            ),
        ] {
            assert!(shown.contains(&row), "{shown}");
        }
        let (status, told) = ward.answer(&ward.token, &second, &json!({"decision": "deny"}));
        assert_eq!(status, 200, "{told}");
    }
    let past = json!({
        "action": "terminal.run", "params": {"command": "bash $X"}, "wait": 0, "id": "past",
    });
    assert_eq!(ward.act(&token, &past).0, 202);
    let asked = ward.asked(1).remove(0);
    assert_eq!(asked["facts"]["unbound"], json!(["$X"]));
    let past = json!({"decision": "allow", "scope": "workspace", "expires_at": 1});
    let (status, told) = ward.answer(&ward.token, &asked, &past);
    assert_eq!(status, 400, "{told}");
    let error = told["error"].as_str().unwrap();
    assert!(
        error.starts_with("The time in `expires_at` is past: 1, "),
        "{error}"
    );
}
