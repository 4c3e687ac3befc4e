//! `fs.edit`.

use protocol::{Digest, ErrorKind};
use serde_json::{Value, json};

use crate::support::Fixture;

fn edits(edits: &[(&str, &str)]) -> Value {
    let edits: Vec<Value> = edits
        .iter()
        .map(|(old, new)| json!({"old": old, "new": new}))
        .collect();
    json!({"path": "file", "edits": edits})
}

#[tokio::test]
async fn edits_are_done_in_order_and_the_diff_is_answered() {
    let fixture = Fixture::with(&[("file", "one\ntwo\nthree\n")]);
    let answer = fixture
        .run("fs.edit", edits(&[("two", "2"), ("2\nthree", "2\n3")]))
        .await
        .unwrap();
    let text = "one\n2\n3\n";
    assert_eq!(fixture.text("file"), text);
    assert_eq!(
        answer,
        json!({
            "digest": Digest::of(text.as_bytes()),
            "diff": "--- a/file\n+++ b/file\n@@ -1,3 +1,3 @@\n one\n-two\n-three\n+2\n+3\n",
        })
    );
}

#[tokio::test]
async fn all_edits_are_done_or_none_and_the_refusal_says_why() {
    let text = "aaa\nb\r\nc\n";
    let fixture = Fixture::with(&[("file", text)]);
    for (params, kind, details) in [
        (
            edits(&[("b", "x"), ("missing", "y")]),
            ErrorKind::NoMatch,
            json!({"edit": 1}),
        ),
        (
            edits(&[("b", "x"), ("b", "y")]),
            ErrorKind::NoMatch,
            json!({"edit": 1}),
        ),
        (
            edits(&[("a", "x")]),
            ErrorKind::AmbiguousMatch,
            json!({"matches": 3, "lines": [1, 1, 1], "edit": 0}),
        ),
        (
            edits(&[("aa", "x")]),
            ErrorKind::AmbiguousMatch,
            json!({"matches": 2, "lines": [1, 1], "edit": 0}),
        ),
        (
            edits(&[("\n", "x")]),
            ErrorKind::AmbiguousMatch,
            json!({"matches": 3, "lines": [1, 2, 3], "edit": 0}),
        ),
        (
            edits(&[("", "x")]),
            ErrorKind::InvalidParams,
            json!({"field": "edits[0]"}),
        ),
        (
            edits(&[("b", "b")]),
            ErrorKind::InvalidParams,
            json!({"field": "edits[0]"}),
        ),
        (
            edits(&[("b", "x"), ("x", "b")]),
            ErrorKind::InvalidParams,
            json!({}),
        ),
        (
            edits(&[]),
            ErrorKind::InvalidParams,
            json!({"field": "edits"}),
        ),
    ] {
        let failure = fixture.refused("fs.edit", params.clone()).await;
        assert_eq!(failure.kind, kind, "{params}: {failure}");
        for (name, value) in details.as_object().unwrap() {
            assert_eq!(
                failure.details.get(name),
                Some(value),
                "{params}: {failure}"
            );
        }
        assert_eq!(fixture.text("file"), text, "{params}");
    }
    assert_eq!(fixture.all(), ["file"]);
}

#[tokio::test]
async fn a_refusal_says_what_is_different_about_text_that_looks_the_same() {
    let fixture = Fixture::with(&[("file", "if x {\r\n    y\r\n}\n")]);
    for (old, hint) in [
        ("if x {\n    y\n", "ends its lines with \\r\\n"),
        ("if x {\r\n  y", "other blanks or line breaks"),
        ("nothing", "Read the file again"),
    ] {
        let failure = fixture.refused("fs.edit", edits(&[(old, "z")])).await;
        assert_eq!(failure.kind, ErrorKind::NoMatch);
        assert!(failure.message.contains(hint), "{failure}");
    }
}

#[tokio::test]
async fn every_occurrence_is_replaced_where_all_is_said_and_line_ends_stay() {
    let fixture = Fixture::with(&[("file", "a\r\na\na")]);
    let params = json!({"path": "file", "edits": [{"old": "a", "new": "bb", "all": true}]});
    fixture.run("fs.edit", params).await.unwrap();
    assert_eq!(fixture.text("file"), "bb\r\nbb\nbb");
}

#[tokio::test]
async fn an_edit_through_a_link_changes_the_file_and_leaves_the_link() {
    let fixture = Fixture::with(&[("file", "a"), ("folder/x", "")]);
    fixture.link("folder/link", "../file");
    fixture.link("out", "../secret");
    let params = |path: &str| json!({"path": path, "edits": [{"old": "a", "new": "b"}]});
    fixture.run("fs.edit", params("folder/link")).await.unwrap();
    assert_eq!(fixture.text("file"), "b");
    assert!(
        std::fs::symlink_metadata(fixture.path("folder/link"))
            .unwrap()
            .is_symlink()
    );
    fixture
        .refused_as(ErrorKind::OutsideWorkspace, "fs.edit", params("out"))
        .await;
    fixture
        .refused_as(ErrorKind::NotFound, "fs.edit", params("missing"))
        .await;
    fixture
        .refused_as(ErrorKind::NotAFile, "fs.edit", params("folder"))
        .await;
}

#[tokio::test]
async fn what_is_no_text_or_not_what_was_seen_is_not_edited() {
    let fixture = Fixture::with(&[("file", "a")]);
    let mut params = edits(&[("a", "b")]);
    params["expect"] = json!(Digest::of(b"other"));
    fixture
        .refused_as(ErrorKind::Changed, "fs.edit", params)
        .await;
    std::fs::write(fixture.path("file"), b"a\xff").unwrap();
    fixture
        .refused_as(ErrorKind::BadEncoding, "fs.edit", edits(&[("a", "b")]))
        .await;
}

#[tokio::test]
async fn an_edit_that_grows_a_file_beyond_the_limit_is_refused_before_it_is_done() {
    let fixture = Fixture::with(&[("file", &"a".repeat(100_000))]);
    let edit = json!({"old": "a", "new": "a".repeat(10_000), "all": true});
    let params = json!({"path": "file", "edits": [edit]});
    fixture
        .refused_as(ErrorKind::TooLarge, "fs.edit", params)
        .await;
}
