//! `fs.move` and `fs.delete`.

use protocol::facts::{Access, EntryKind, PathFact};
use protocol::{Digest, ErrorKind};
use serde_json::json;

use crate::support::{Fixture, SECRET};

#[tokio::test]
async fn files_folders_and_links_are_moved() {
    let fixture = Fixture::with(&[("a/file", "x"), ("b", "")]);
    fixture.link("link", "../secret");
    for (from, to) in [
        ("a/file", "new/place"),
        ("a", "new/a"),
        ("link", "new/link"),
    ] {
        let done = fixture
            .run("fs.move", json!({"from": from, "to": to}))
            .await
            .unwrap();
        assert_eq!(done, json!({"changed": true}), "{from}");
    }
    assert_eq!(
        fixture.all(),
        ["b", "new/", "new/a/", "new/link", "new/place"]
    );
    let done = fixture
        .run(
            "fs.move",
            json!({"from": "b", "to": "./b", "replace": true}),
        )
        .await;
    assert_eq!(done.unwrap(), json!({"changed": false}));
}

#[tokio::test]
async fn a_move_replaces_only_a_file_and_only_where_that_is_said() {
    let fixture = Fixture::with(&[("a", "a"), ("b", "b"), ("folder/x", ""), ("empty/x", "")]);
    std::fs::remove_file(fixture.path("empty/x")).unwrap();
    for (from, to, replace, kind) in [
        ("a", "b", false, ErrorKind::AlreadyExists),
        ("a", "folder", false, ErrorKind::AlreadyExists),
        ("a", "folder", true, ErrorKind::NotAFile),
        ("folder", "empty", true, ErrorKind::NotAFile),
        ("missing", "c", false, ErrorKind::NotFound),
        ("folder", "folder/in", false, ErrorKind::InvalidParams),
        ("folder", "folder/in/deep", false, ErrorKind::InvalidParams),
        ("a", "b/c", false, ErrorKind::NotADirectory),
        (".", "c", false, ErrorKind::InvalidParams),
        ("folder/..", "c", false, ErrorKind::InvalidParams),
        ("a", ".", false, ErrorKind::InvalidParams),
        ("a", "../a", false, ErrorKind::OutsideWorkspace),
        ("../secret", "c", false, ErrorKind::OutsideWorkspace),
    ] {
        let before = fixture.all();
        let params = json!({"from": from, "to": to, "replace": replace});
        fixture.refused_as(kind, "fs.move", params).await;
        assert_eq!(fixture.all(), before, "{from} {to}");
    }
    fixture
        .run("fs.move", json!({"from": "a", "to": "b", "replace": true}))
        .await
        .unwrap();
    assert_eq!(fixture.text("b"), "a");
}

#[tokio::test]
async fn the_facts_of_a_move_and_a_delete_name_what_is_taken_away_and_replaced() {
    let fixture = Fixture::with(&[("a", "a"), ("b", "b"), ("folder/x", "")]);
    let fact = |path: &str, access, kind, digest: Option<&str>| PathFact {
        path: fixture.path(path).to_str().unwrap().to_owned(),
        access,
        kind: Some(kind),
        digest: digest.map(|text| Digest::of(text.as_bytes())),
    };
    let moved = fixture
        .facts("fs.move", json!({"from": "a", "to": "b", "replace": true}))
        .await;
    assert_eq!(
        moved.unwrap().paths,
        [
            fact("a", Access::Delete, EntryKind::File, Some("a")),
            fact("b", Access::Write, EntryKind::File, Some("b")),
        ]
    );
    let deleted = fixture
        .facts("fs.delete", json!({"path": "folder", "recursive": true}))
        .await;
    assert_eq!(
        deleted.unwrap().paths,
        [fact("folder", Access::Delete, EntryKind::Directory, None)]
    );
}

#[tokio::test]
async fn a_folder_is_deleted_with_what_is_in_it_and_links_are_not_followed() {
    let fixture = Fixture::with(&[("a/b/c", ""), ("a/d", ""), ("kept/x", ""), ("file", "")]);
    fixture.link("a/out", "../..");
    fixture.link("a/b/kept", "../../kept");
    fixture.link("link", "kept");
    fixture
        .refused_as(ErrorKind::NotEmpty, "fs.delete", json!({"path": "a"}))
        .await;
    fixture
        .refused_as(ErrorKind::NotFound, "fs.delete", json!({"path": "missing"}))
        .await;
    for params in [
        json!({"path": "a", "recursive": true}),
        json!({"path": "link", "recursive": true}),
        json!({"path": "file"}),
    ] {
        let done = fixture.run("fs.delete", params).await.unwrap();
        assert_eq!(done, json!({"changed": true}));
    }
    assert_eq!(fixture.all(), ["kept/", "kept/x"]);
    assert_eq!(
        std::fs::read_to_string(fixture.outside("secret")).unwrap(),
        SECRET
    );
}

#[tokio::test]
async fn the_workspace_itself_is_not_deleted() {
    let fixture = Fixture::with(&[("a/x", "")]);
    let root = fixture.path("").to_str().unwrap().to_owned();
    for path in [".", "a/..", "./", &root, "a/../"] {
        let params = json!({"path": path, "recursive": true});
        fixture
            .refused_as(ErrorKind::InvalidParams, "fs.delete", params)
            .await;
    }
    assert_eq!(fixture.all(), ["a/", "a/x"]);
}

#[tokio::test]
async fn a_cancelled_delete_stops() {
    let fixture = Fixture::with(&[("a/x", "")]);
    fixture.cancel.cancel();
    let ended = fixture
        .run("fs.delete", json!({"path": "a", "recursive": true}))
        .await;
    assert_eq!(ended.unwrap_err().kind, ErrorKind::Cancelled);
    assert_eq!(fixture.all(), ["a/", "a/x"]);
}

#[tokio::test]
async fn a_tree_too_deep_to_hold_open_is_refused_and_harms_nothing() {
    let fixture = Fixture::new();
    let mut path = fixture.path("deep");
    for _ in 0..200 {
        path.push("d");
    }
    std::fs::create_dir_all(&path).unwrap();
    std::fs::write(path.join("file"), "needle").unwrap();
    let params = json!({"path": "deep", "recursive": true});
    fixture
        .refused_as(ErrorKind::TooLarge, "fs.delete", params)
        .await;
    let listed = fixture
        .run("fs.list", json!({"depth": 1000}))
        .await
        .unwrap();
    assert_eq!(listed["entries"].as_array().unwrap().len(), 128);
    let found = fixture
        .run("fs.search", json!({"pattern": "needle"}))
        .await
        .unwrap();
    assert_eq!(found, json!({"matches": [], "truncated": true}));
    assert!(path.join("file").exists());
}
