//! Names and parameters that do not fit.

use protocol::{ActionName, ErrorKind};
use runtime_server::registry;
use serde_json::{Value, json};

fn refusal(action: &str, params: Value) -> (ErrorKind, String) {
    match registry::prepare(action, params) {
        Err(failure) => (failure.kind, failure.message),
        Ok(_) => panic!("{action} was taken"),
    }
}

#[test]
fn bad_parameters_are_refused_with_the_field_and_what_is_expected() {
    for (action, params, message) in [
        (
            "fs.read",
            json!({}),
            "fs.read needs `path`, which is missing.",
        ),
        (
            "fs.read",
            Value::Null,
            "fs.read needs `path`, which is missing.",
        ),
        (
            "fs.read",
            json!([1]),
            "The parameters of fs.read have to be an object with the fields encoding, limit, offset, path.",
        ),
        (
            "fs.read",
            json!({"path": "x", "ofset": 3}),
            "fs.read has no field `ofset`. Did you mean `offset`? The fields there are path, offset, limit, encoding.",
        ),
        (
            "fs.read",
            json!({"path": 3}),
            "`path` of fs.read does not fit: invalid type: integer `3`, expected a string.",
        ),
        (
            "fs.read",
            json!({"path": "x", "offset": -1}),
            "`offset` of fs.read does not fit: invalid value: integer `-1`, expected u64.",
        ),
        (
            "fs.edit",
            json!({"path": "x", "edits": [{"old": "a", "new": "b"}, {"old": "a"}]}),
            "fs.edit needs `edits[1].new`, which is missing.",
        ),
        (
            "fs.edit",
            json!({"path": "x", "edits": [{"old": "a", "nwe": "b"}]}),
            "fs.edit has no field `edits[0].nwe`. Did you mean `new`? The fields there are old, new, all.",
        ),
    ] {
        assert_eq!(
            refusal(action, params.clone()),
            (ErrorKind::InvalidParams, message.to_owned()),
            "{params}"
        );
    }
}

#[test]
fn an_unknown_action_is_refused_with_the_closest_name() {
    let (kind, message) = refusal("fs.raed", json!({}));
    assert_eq!(kind, ErrorKind::UnknownAction);
    assert!(
        message.starts_with("There is no action `fs.raed`. Did you mean `fs.read`? The actions are fs.read, fs.list,"),
        "{message}"
    );
    let (kind, message) = refusal(&"x".repeat(100_000), json!({}));
    assert_eq!(kind, ErrorKind::UnknownAction);
    assert!(message.len() < 1000, "{message}");
}

#[test]
fn every_file_action_is_listed_with_the_schema_of_its_parameters() {
    for name in ActionName::ALL
        .iter()
        .filter(|name| name.as_str().starts_with("fs."))
    {
        let info = registry::list().iter().find(|info| info.name == *name);
        let info = info.unwrap_or_else(|| panic!("{name} is not listed"));
        assert_eq!(info.params["type"], "object", "{name}");
        assert_eq!(info.params["additionalProperties"], false, "{name}");
        assert!(info.description.ends_with('.'), "{name}");
    }
}
