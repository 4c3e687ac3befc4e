//! What `offline` says about what came of its calls.

use serde_json::Value;

use super::super::{ToolCall, ToolResult};

/// How much of a result is repeated.
const LINES: usize = 40;

/// What is said to somebody to begin with, which nobody has to make sense of.
const OPENINGS: &[&str] = &[
    "hello",
    "hey",
    "hi",
    "help",
    "what can you do",
    "what do you do",
    "who are you",
];

/// What `offline` says first where it is shown a picture.
pub(super) const BLIND: &str = "I do not see pictures, so I go by your words alone. ";

/// What `offline` says when it cannot make sense of a request.
pub(super) fn not_understood(words: &str) -> String {
    let words: String = words.chars().take(80).collect();
    let asked = words.trim_end_matches(['.', '!', '?', ' ']).to_lowercase();
    let sense = match asked.is_empty() || OPENINGS.contains(&asked.as_str()) {
        true => String::new(),
        false => format!(" I could not make sense of \"{words}\"."),
    };
    format!(
        "I am `offline`, the small model inside Ward: no network, no key, and no reasoning either; \
         I follow plain requests.{sense} What I understand:\n\n{EXAMPLES}"
    )
}

const EXAMPLES: &str = "\
- list the files in src
- read README.md
- search for TODO in src
- find *.rs
- write hello.txt: Hello
- in hello.txt replace Hello with Good day
- make a folder notes
- move hello.txt to notes/hello.txt
- delete notes/hello.txt
- run cargo test

Join them with \"and\" or \"then\". For more, choose another model.";

/// What came of one call.
pub(super) fn result(call: &ToolCall, result: &ToolResult) -> String {
    let words = result.words();
    let name = |key: &str| call.arguments[key].as_str().unwrap_or("?").to_owned();
    if result.is_error {
        return format!("{} did not work: {}", shown(call), cut(words.trim()));
    }
    let value: Value = serde_json::from_str(&words).unwrap_or(Value::Null);
    let known = match call.name.as_str() {
        "fs_list" | "fs_glob" => entries(&value),
        "fs_read" => value["content"]
            .as_str()
            .map(|content| format!("{}:\n\n{}", name("path"), fenced(content))),
        "fs_search" => matches(&value),
        "fs_write" => value["created"].as_bool().map(|created| match created {
            true => format!("{} is there now.", name("path")),
            false => format!("{} is replaced.", name("path")),
        }),
        "fs_edit" => value["diff"]
            .as_str()
            .map(|diff| format!("{} is changed:\n\n{}", name("path"), fenced(diff))),
        "fs_mkdir" => Some(format!("The folder {} is there.", name("path"))),
        "fs_move" => Some(format!("{} is now {}.", name("from"), name("to"))),
        "fs_delete" => Some(format!("{} is gone.", name("path"))),
        "terminal_run" => ran(&name("command"), &value),
        _ => None,
    };
    known.unwrap_or_else(|| format!("{}:\n\n{}", shown(call), fenced(&words)))
}

fn shown(call: &ToolCall) -> String {
    let about = ["command", "path", "from", "pattern"]
        .iter()
        .find_map(|key| call.arguments[*key].as_str());
    match about {
        Some(about) => format!("{} `{about}`", call.name.replacen('_', ".", 1)),
        None => call.name.replacen('_', ".", 1),
    }
}

fn entries(value: &Value) -> Option<String> {
    let entries = value["entries"].as_array()?;
    if entries.is_empty() {
        return Some("There is nothing.".to_owned());
    }
    let lines: Vec<String> = entries
        .iter()
        .map(|entry| {
            let path = entry["path"].as_str().unwrap_or("?");
            match entry["kind"].as_str() {
                Some("directory") => format!("{path}/"),
                _ => path.to_owned(),
            }
        })
        .collect();
    Some(format!(
        "{}:\n\n{}",
        count(entries.len(), "entry", "entries"),
        fenced(&lines.join("\n"))
    ))
}

fn matches(value: &Value) -> Option<String> {
    let matches = value["matches"].as_array()?;
    if matches.is_empty() {
        return Some("Nothing was found.".to_owned());
    }
    let lines: Vec<String> = matches
        .iter()
        .map(|found| {
            let path = found["path"].as_str().unwrap_or("?");
            let text = found["text"].as_str().unwrap_or("").trim();
            format!("{path}:{}: {text}", found["line"])
        })
        .collect();
    Some(format!(
        "{}:\n\n{}",
        count(matches.len(), "line", "lines"),
        fenced(&lines.join("\n"))
    ))
}

fn ran(command: &str, value: &Value) -> Option<String> {
    let end = match (
        &value["exit_code"],
        value["timed_out"].as_bool(),
        &value["signal"],
    ) {
        (_, Some(true), _) => "took too long and was stopped".to_owned(),
        (Value::Number(code), ..) if code.as_i64() == Some(0) => "went well".to_owned(),
        (Value::Number(code), ..) => format!("ended with code {code}"),
        (_, _, Value::String(signal)) => format!("was ended by {signal}"),
        _ => return None,
    };
    let output: String = ["stdout", "stderr"]
        .iter()
        .filter_map(|stream| value[*stream].as_str())
        .collect();
    Some(match output.trim().is_empty() {
        true => format!("`{command}` {end}."),
        false => format!("`{command}` {end}:\n\n{}", fenced(&output)),
    })
}

fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// In a fence that nothing inside can close.
fn fenced(text: &str) -> String {
    let mut fence = "```".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    format!("{fence}\n{}\n{fence}", cut(text.trim_end()))
}

fn cut(text: &str) -> String {
    let more = text.lines().count().saturating_sub(LINES);
    if more == 0 {
        return text.to_owned();
    }
    let lines: Vec<&str> = text.lines().take(LINES).collect();
    format!(
        "{}\n… and {}",
        lines.join("\n"),
        count(more, "more line", "more lines")
    )
}
