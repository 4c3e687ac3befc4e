use std::sync::Arc;

use serde_json::{Value, json};

use super::super::Tool;
use super::*;

/// A role that may do everything.
fn tools() -> Arc<[Tool]> {
    [
        "fs_list",
        "fs_read",
        "fs_search",
        "fs_glob",
        "fs_write",
        "fs_edit",
        "fs_mkdir",
        "fs_move",
        "fs_delete",
        "terminal_run",
    ]
    .into_iter()
    .map(|name| Tool {
        name: name.to_owned(),
        description: String::new(),
        input_schema: json!({"type": "object"}),
    })
    .collect()
}

fn wait<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(work)
}

fn ask(messages: &[Message]) -> Turn {
    let request = TurnRequest {
        model: Offline::NAME.to_owned(),
        messages: messages.iter().cloned().map(Arc::new).collect(),
        tools: tools(),
        ..TurnRequest::default()
    };
    let stream = Offline.turn(request, CancellationToken::new());
    let deltas: Vec<_> = wait(stream.collect::<Vec<_>>());
    let mut text = String::new();
    let mut calls = Vec::new();
    for delta in deltas {
        match delta.unwrap() {
            Delta::Text(more) => text.push_str(&more),
            Delta::ToolCall(call) => calls.push(call),
            Delta::ToolCallStarted { .. } | Delta::ArgumentsDelta { .. } | Delta::Used(_) => {}
            Delta::Reasoning(_) => panic!("it does not reason"),
            Delta::Done(turn) => {
                assert_eq!(turn.message.text(), text);
                assert_eq!(
                    turn.message.tool_calls().cloned().collect::<Vec<_>>(),
                    calls
                );
                return turn;
            }
        }
    }
    panic!("a turn without an end");
}

/// The calls of a turn as `name arguments`.
fn calls(turn: &Turn) -> Vec<(String, Value)> {
    turn.message
        .tool_calls()
        .map(|call| (call.name.clone(), call.arguments.clone()))
        .collect()
}

#[test]
fn plain_requests_become_these_calls() {
    let edit = |path: &str, old: &str, new: &str, all: bool| {
        (
            "fs_edit",
            json!({"path": path, "edits": [{"old": old, "new": new, "all": all}]}),
        )
    };
    let table: Vec<(&str, (&str, Value))> = vec![
        ("list the files", ("fs_list", json!({"path": "."}))),
        ("List all files, please.", ("fs_list", json!({"path": "."}))),
        ("ls", ("fs_list", json!({"path": "."}))),
        ("ls src", ("fs_list", json!({"path": "src"}))),
        (
            "Please list the files in src/bin.",
            ("fs_list", json!({"path": "src/bin"})),
        ),
        ("what files are here?", ("fs_list", json!({"path": "."}))),
        ("what is in src?", ("fs_list", json!({"path": "src"}))),
        (
            "What is in README.md?",
            ("fs_read", json!({"path": "README.md"})),
        ),
        (
            "show me the files in docs",
            ("fs_list", json!({"path": "docs"})),
        ),
        ("read README.md", ("fs_read", json!({"path": "README.md"}))),
        (
            "Could you read the file `a b.txt`?",
            ("fs_read", json!({"path": "a b.txt"})),
        ),
        (
            "show Cargo.toml",
            ("fs_read", json!({"path": "Cargo.toml"})),
        ),
        ("cat .gitignore", ("fs_read", json!({"path": ".gitignore"}))),
        (
            "search for TODO in src",
            ("fs_search", json!({"pattern": "TODO", "path": "src"})),
        ),
        (
            "search for TODO",
            ("fs_search", json!({"pattern": "TODO", "path": "."})),
        ),
        (
            "grep \"fn main()\" in src",
            (
                "fs_search",
                json!({"pattern": r"fn main\(\)", "path": "src"}),
            ),
        ),
        (
            "search for /fn \\w+/ in src",
            ("fs_search", json!({"pattern": r"fn \w+", "path": "src"})),
        ),
        (
            "find bread and butter",
            (
                "fs_search",
                json!({"pattern": "bread and butter", "path": "."}),
            ),
        ),
        (
            "find all *.rs files in src",
            ("fs_glob", json!({"pattern": "*.rs", "path": "src"})),
        ),
        (
            "write hello.txt: Hello",
            ("fs_write", json!({"path": "hello.txt", "content": "Hello"})),
        ),
        (
            "write hello.txt: Hello!",
            (
                "fs_write",
                json!({"path": "hello.txt", "content": "Hello!"}),
            ),
        ),
        (
            "write a.txt: salt and list of things",
            (
                "fs_write",
                json!({"path": "a.txt", "content": "salt and list of things"}),
            ),
        ),
        (
            "write a.txt:\none\ntwo\n",
            ("fs_write", json!({"path": "a.txt", "content": "one\ntwo"})),
        ),
        (
            "write \"one then run two\" to a.txt",
            (
                "fs_write",
                json!({"path": "a.txt", "content": "one then run two"}),
            ),
        ),
        (
            "create a file a.txt with directions to home",
            (
                "fs_write",
                json!({"path": "a.txt", "content": "directions to home"}),
            ),
        ),
        (
            "save Good day to notes/a.txt",
            (
                "fs_write",
                json!({"path": "notes/a.txt", "content": "Good day"}),
            ),
        ),
        ("in a.txt replace x with y", edit("a.txt", "x", "y", false)),
        (
            "replace \"x and run\" with 'y' in a.txt",
            edit("a.txt", "x and run", "y", false),
        ),
        (
            "change colour to color in a.txt everywhere",
            edit("a.txt", "colour", "color", true),
        ),
        (
            "in a.txt, replace every x with y",
            edit("a.txt", "x", "y", true),
        ),
        (
            "make a folder notes",
            ("fs_mkdir", json!({"path": "notes"})),
        ),
        (
            "rename a.txt to b.txt",
            ("fs_move", json!({"from": "a.txt", "to": "b.txt"})),
        ),
        ("delete a.txt", ("fs_delete", json!({"path": "a.txt"}))),
        (
            "run cargo test",
            ("terminal_run", json!({"command": "cargo test"})),
        ),
        (
            "$ ls -l | wc -l",
            ("terminal_run", json!({"command": "ls -l | wc -l"})),
        ),
        (
            "run `echo a; echo b`",
            ("terminal_run", json!({"command": "echo a; echo b"})),
        ),
        (
            "run echo this and that",
            ("terminal_run", json!({"command": "echo this and that"})),
        ),
    ];
    for (words, (tool, arguments)) in table {
        let turn = ask(&[Message::user(words)]);
        assert_eq!(calls(&turn), [(tool.to_owned(), arguments)], "{words}");
        assert_eq!(turn.stop, Stop::ToolUse, "{words}");
    }
}

#[test]
fn what_is_joined_by_and_is_called_together() {
    let turn = ask(&[Message::user("list the files and read README.md")]);
    assert_eq!(
        turn.message.text(),
        "I will list the files here, and read README.md."
    );
    assert_eq!(
        turn.message
            .tool_calls()
            .map(|call| call.call_id.as_str())
            .collect::<Vec<_>>(),
        ["offline-1", "offline-2"]
    );
}

/// Talks until the model stops calling; each call is answered by `answer`.
fn talk(words: &str, answer: impl Fn(&ToolCall) -> ToolResult) -> (Vec<(String, Value)>, String) {
    let mut messages = vec![Message::user(words)];
    let mut made = Vec::new();
    loop {
        let turn = ask(&messages);
        made.extend(calls(&turn));
        let results: Vec<ToolResult> = turn.message.tool_calls().map(&answer).collect();
        if results.is_empty() {
            assert_eq!(turn.stop, Stop::EndTurn);
            return (made, turn.message.text());
        }
        messages.push(turn.message);
        messages.push(Message::tool_results(results));
    }
}

#[test]
fn what_is_joined_by_then_waits_for_what_came_before_and_it_means_the_last_file() {
    let (calls, end) = talk(
        "write hello.txt: Hello, and then read it. Then run wc -c hello.txt",
        |call| match call.name.as_str() {
            "fs_write" => ToolResult::text(call, r#"{"digest":"sha256:0","created":true}"#),
            "fs_read" => ToolResult::text(call, r#"{"content":"Hello","truncated":false}"#),
            _ => ToolResult::text(
                call,
                r#"{"exit_code":0,"stdout":"5 hello.txt\n","stderr":"","timed_out":false}"#,
            ),
        },
    );
    assert_eq!(
        calls,
        [
            (
                "fs_write".to_owned(),
                json!({"path": "hello.txt", "content": "Hello"})
            ),
            ("fs_read".to_owned(), json!({"path": "hello.txt"})),
            (
                "terminal_run".to_owned(),
                json!({"command": "wc -c hello.txt"})
            ),
        ]
    );
    assert_eq!(
        end,
        "hello.txt is there now.\n\nhello.txt:\n\n```\nHello\n```\n\n\
         `wc -c hello.txt` went well:\n\n```\n5 hello.txt\n```"
    );
}

#[test]
fn after_something_went_wrong_it_does_not_go_on() {
    let (calls, end) = talk("delete a.txt, then list the files", |call| {
        ToolResult::error(call, "A person said no: keep it.")
    });
    assert_eq!(calls.len(), 1);
    assert_eq!(
        end,
        "fs.delete `a.txt` did not work: A person said no: keep it.\n\nSo I did not list the files here."
    );
}

#[test]
fn results_are_told_in_words() {
    let table = [
        (
            "list the files",
            r#"{"entries":[{"path":"src","kind":"directory"},{"path":"a.txt","kind":"file"}],"truncated":false}"#,
            "2 entries:\n\n```\nsrc/\na.txt\n```",
        ),
        (
            "search for TODO",
            r#"{"matches":[{"path":"a.rs","line":3,"column":1,"text":"  // TODO"}],"truncated":false}"#,
            "1 line:\n\n```\na.rs:3: // TODO\n```",
        ),
        (
            "in a.txt replace x with y",
            r#"{"digest":"sha256:0","diff":"-x\n+y\n"}"#,
            "a.txt is changed:\n\n```\n-x\n+y\n```",
        ),
        (
            "run false",
            r#"{"exit_code":1,"stdout":"","stderr":"","timed_out":false}"#,
            "`false` ended with code 1.",
        ),
        // What was cut to a budget is no JSON any more.
        (
            "read a.md",
            "```\nhalf",
            "fs.read `a.md`:\n\n````\n```\nhalf\n````",
        ),
    ];
    for (words, result, told) in table {
        let (_, end) = talk(words, |call| ToolResult::text(call, result));
        assert_eq!(end, told, "{words}");
    }
}

#[test]
fn what_it_does_not_understand_it_says_and_names_itself() {
    for words in [
        "",
        "hello",
        "why is the sky blue",
        "list the files, then dream",
        "it",
        "read it",
    ] {
        let turn = ask(&[Message::user(words)]);
        assert_eq!(calls(&turn), [], "{words}");
        assert!(turn.message.text().starts_with("I am `offline`"), "{words}");
        assert!(
            turn.message.text().contains("- search for TODO in src"),
            "{words}"
        );
    }
}

#[test]
fn every_example_it_gives_is_understood() {
    let told = answer::not_understood("");
    let examples: Vec<&str> = told
        .lines()
        .filter_map(|line| line.strip_prefix("- "))
        .collect();
    assert_eq!(examples.len(), 10);
    for example in examples {
        assert!(plan::plan(example).is_ok(), "{example}");
    }
}

#[test]
fn what_names_no_command_is_not_run_and_a_greeting_is_not_a_mistake() {
    for text in ["run the tests", "Run my tests.", "run all tests"] {
        assert!(plan::plan(text).is_err(), "{text}");
    }
    assert!(plan::plan("run the command: the").is_ok());
    for text in ["Hello!", "help", "What can you do?"] {
        let told = ask(&[Message::user(text)]).message.text();
        assert!(told.contains("What I understand"), "{told}");
        assert!(!told.contains("could not"), "{told}");
    }
    let told = ask(&[Message::user("run the tests")]).message.text();
    assert!(told.contains("make sense of \"run the tests\""), "{told}");
}

#[test]
fn a_tool_that_is_not_offered_is_not_called() {
    let request = TurnRequest {
        messages: vec![Arc::new(Message::user("run ls"))],
        tools: tools()
            .iter()
            .filter(|tool| tool.name != "terminal_run")
            .cloned()
            .collect(),
        ..TurnRequest::default()
    };
    let reply = reply(&request);
    assert!(reply.calls.is_empty());
    assert!(reply.text.contains("terminal.run"), "{}", reply.text);
}

#[test]
fn a_second_request_begins_anew_and_no_call_id_comes_twice() {
    let first = ask(&[Message::user("ls")]);
    let call = first.message.tool_calls().next().unwrap().clone();
    let second = ask(&[
        Message::user("ls"),
        first.message,
        Message::tool_results([ToolResult::text(&call, "{}")]),
        Message::user("read a.txt"),
    ]);
    let call = second.message.tool_calls().next().unwrap();
    assert_eq!(
        (call.call_id.as_str(), call.name.as_str()),
        ("offline-2", "fs_read")
    );
}

#[test]
fn cancelled_means_no_more_words() {
    let cancel = CancellationToken::new();
    let request = TurnRequest {
        messages: vec![Arc::new(Message::user("ls"))],
        ..TurnRequest::default()
    };
    let mut stream = Offline.turn(request, cancel.clone());
    let mut next = || wait(stream.next());
    assert!(matches!(next(), Some(Ok(Delta::Text(_)))));
    cancel.cancel();
    assert_eq!(next(), Some(Err(ProviderError::Cancelled)));
    assert_eq!(next(), None);
}

proptest::proptest! {
    #[test]
    fn no_words_make_it_panic(words in "(list|read|write|run|replace|in|then|and|it|with|to|:|\"|'|`|é| |\n|a.txt){0,12}") {
        ask(&[Message::user(words)]);
    }
}
