//! `fs.read` and `fs.stat`.

use protocol::facts::{Access, EntryKind, PathFact};
use protocol::{Digest, ErrorKind, Facts};
use serde_json::{Value, json};

use crate::support::Fixture;

fn digest(content: &str) -> Value {
    json!(Digest::of(content.as_bytes()))
}

#[tokio::test]
async fn a_file_is_read_whole() {
    let fixture = Fixture::with(&[("a/file", "one\ntwo\n")]);
    assert_eq!(
        fixture
            .run("fs.read", json!({"path": "a/file"}))
            .await
            .unwrap(),
        json!({"content": "one\ntwo\n", "encoding": "utf-8", "size": 8, "digest": digest("one\ntwo\n"), "truncated": false})
    );
}

#[tokio::test]
async fn an_absolute_path_inside_is_taken_by_the_real_and_by_the_given_way() {
    let fixture = Fixture::with(&[("file", "x")]);
    std::os::unix::fs::symlink(fixture.path(""), fixture.outside("alias")).unwrap();
    let alias = fixture.outside("alias");
    let workspace = runtime_server::workspace::Workspace::open(&alias).unwrap();
    for path in [fixture.path("file"), alias.join("file")] {
        let found = workspace.file(path.to_str().unwrap()).unwrap();
        assert_eq!(found.real(), fixture.path("file"));
    }
}

#[tokio::test]
async fn lines_count_from_one_and_the_answer_says_where_to_go_on() {
    let text = "1\n2\n3\n4";
    let fixture = Fixture::with(&[("file", text)]);
    for (params, content, next) in [
        (
            json!({"path": "file", "offset": 2, "limit": 2}),
            "2\n3\n",
            Some(4),
        ),
        (
            json!({"path": "file", "offset": 3, "limit": 2}),
            "3\n4",
            None,
        ),
        (json!({"path": "file", "offset": 4}), "4", None),
        (json!({"path": "file", "offset": 5}), "", None),
        (json!({"path": "file", "offset": 99, "limit": 1}), "", None),
        (json!({"path": "file", "limit": u64::MAX}), text, None),
        (json!({"path": "file", "limit": 1}), "1\n", Some(2)),
    ] {
        let mut expected = json!({"content": content, "encoding": "utf-8", "size": 7, "digest": digest(text), "truncated": next.is_some()});
        if let Some(next) = next {
            expected["next_offset"] = json!(next);
        }
        let answer = fixture.run("fs.read", params.clone()).await.unwrap();
        assert_eq!(answer, expected, "{params}");
    }
    for field in ["offset", "limit"] {
        fixture
            .refused_as(
                ErrorKind::InvalidParams,
                "fs.read",
                json!({"path": "file", field: 0}),
            )
            .await;
    }
}

#[tokio::test]
async fn a_long_file_is_answered_in_parts_that_make_it_whole_again() {
    let text: String = (0..200_000).map(|line| format!("line {line}\n")).collect();
    let fixture = Fixture::with(&[("file", &text)]);
    let mut read = String::new();
    let mut offset = Some(1);
    while let Some(from) = offset {
        let answer = fixture
            .run("fs.read", json!({"path": "file", "offset": from}))
            .await
            .unwrap();
        let content = answer["content"].as_str().unwrap();
        assert!(content.len() <= 1024 * 1024);
        read.push_str(content);
        offset = answer["next_offset"].as_u64();
    }
    assert_eq!(read, text);
}

#[tokio::test]
async fn a_huge_line_is_cut_between_characters_and_the_answer_says_by_how_much() {
    let line = format!("x{}", "ä".repeat(800_000));
    let text = format!("{line}\nnext\n");
    let fixture = Fixture::with(&[("file", &text)]);
    let answer = fixture
        .run("fs.read", json!({"path": "file"}))
        .await
        .unwrap();
    let content = answer["content"].as_str().unwrap();
    assert_eq!(content.len(), 1024 * 1024 - 1);
    assert!(line.starts_with(content));
    assert_eq!(answer["cut"], json!(line.len() + 1 - content.len()));
    assert_eq!(
        (&answer["truncated"], &answer["next_offset"]),
        (&json!(true), &json!(2))
    );
    let rest = fixture
        .run("fs.read", json!({"path": "file", "offset": 2}))
        .await
        .unwrap();
    assert_eq!(rest["content"], "next\n");
}

#[tokio::test]
async fn bytes_that_are_no_text_arrive_as_base64_and_utf8_is_refused_where_it_was_asked_for() {
    let fixture = Fixture::new();
    std::fs::write(fixture.path("file"), b"\xff\x00").unwrap();
    let answer = fixture
        .run("fs.read", json!({"path": "file"}))
        .await
        .unwrap();
    assert_eq!(
        (&answer["content"], &answer["encoding"]),
        (&json!("/wA="), &json!("base64"))
    );
    let refused = fixture
        .run("fs.read", json!({"path": "file", "encoding": "utf-8"}))
        .await;
    assert_eq!(refused.unwrap_err().kind, ErrorKind::BadEncoding);
    std::fs::write(fixture.path("file"), "text").unwrap();
    let answer = fixture
        .run("fs.read", json!({"path": "file", "encoding": "base64"}))
        .await;
    assert_eq!(answer.unwrap()["content"], "dGV4dA==");
}

#[tokio::test]
async fn a_file_over_the_limit_is_refused() {
    let fixture = Fixture::new();
    let file = std::fs::File::create(fixture.path("big")).unwrap();
    file.set_len(64 * 1024 * 1024 + 1).unwrap();
    let refused = fixture
        .run("fs.read", json!({"path": "big"}))
        .await
        .unwrap_err();
    assert_eq!(refused.kind, ErrorKind::TooLarge);
}

#[tokio::test]
async fn the_facts_of_a_read_are_the_real_path_behind_the_links() {
    let fixture = Fixture::with(&[("a/file", "x")]);
    fixture.link("b", "a");
    assert_eq!(
        fixture
            .facts("fs.read", json!({"path": "b/../b/file"}))
            .await
            .unwrap(),
        Facts {
            paths: vec![PathFact {
                path: fixture.path("a/file").to_str().unwrap().to_owned(),
                access: Access::Read,
                kind: Some(EntryKind::File),
                digest: None,
            }],
            ..Facts::default()
        }
    );
}

#[tokio::test]
async fn stat_tells_files_folders_and_links_without_following_them() {
    let fixture = Fixture::with(&[("a/file", "four")]);
    fixture.link("link", "../secret");
    for (path, expected) in [
        (
            "a/file",
            json!({"path": "a/file", "kind": "file", "size": 4}),
        ),
        ("a/", json!({"path": "a", "kind": "directory"})),
        (".", json!({"path": ".", "kind": "directory"})),
        (
            "link",
            json!({"path": "link", "kind": "symlink", "target": "../secret"}),
        ),
    ] {
        let mut answer = fixture.run("fs.stat", json!({"path": path})).await.unwrap();
        let entry = answer["entries"][0].as_object_mut().unwrap();
        assert!(entry.remove("modified").unwrap().as_i64().unwrap() > 1_600_000_000_000);
        assert_eq!(
            answer,
            json!({"entries": [expected], "truncated": false}),
            "{path}"
        );
    }
}
