//! `fs.write` and `fs.mkdir`.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt};

use protocol::facts::{Access, EntryKind, PathFact};
use protocol::{Digest, ErrorKind, Facts};
use serde_json::json;

use crate::support::{Fixture, SECRET};

#[tokio::test]
async fn a_file_is_made_with_the_folders_above_it_and_then_replaced() {
    let fixture = Fixture::new();
    let digest = |content: &str| json!(Digest::of(content.as_bytes()));
    assert_eq!(
        fixture
            .run("fs.write", json!({"path": "a/b/file", "content": "one"}))
            .await
            .unwrap(),
        json!({"digest": digest("one"), "created": true})
    );
    assert_eq!(
        fixture
            .run(
                "fs.write",
                json!({"path": "a/b/file", "content": "AgM=", "encoding": "base64"})
            )
            .await
            .unwrap(),
        json!({"digest": digest("\u{2}\u{3}"), "created": false})
    );
    assert_eq!(fixture.text("a/b/file"), "\u{2}\u{3}");
    assert_eq!(fixture.all(), ["a/", "a/b/", "a/b/file"]);
}

#[tokio::test]
async fn a_replaced_file_keeps_its_mode_and_a_new_one_has_the_usual() {
    let fixture = Fixture::with(&[("tool", "old")]);
    std::fs::set_permissions(fixture.path("tool"), PermissionsExt::from_mode(0o750)).unwrap();
    for path in ["tool", "new"] {
        fixture
            .run("fs.write", json!({"path": path, "content": "x"}))
            .await
            .unwrap();
    }
    let mode = |path: &str| std::fs::metadata(fixture.path(path)).unwrap().mode() & 0o7777;
    std::fs::write(fixture.path("plain"), "").unwrap();
    assert_eq!((mode("tool"), mode("new")), (0o750, mode("plain") & 0o644));
}

#[tokio::test]
async fn a_write_never_goes_through_a_hard_link() {
    let fixture = Fixture::new();
    std::fs::hard_link(fixture.outside("secret"), fixture.path("linked")).unwrap();
    fixture
        .run("fs.write", json!({"path": "linked", "content": "new"}))
        .await
        .unwrap();
    fixture
        .run(
            "fs.edit",
            json!({"path": "linked", "edits": [{"old": "new", "new": "newer"}]}),
        )
        .await
        .unwrap();
    assert_eq!(fixture.text("linked"), "newer");
    assert_eq!(
        std::fs::read_to_string(fixture.outside("secret")).unwrap(),
        SECRET
    );
}

#[tokio::test]
async fn a_final_link_is_replaced_itself_if_it_stays_inside_and_refused_if_it_leads_out() {
    let fixture = Fixture::with(&[("target", "kept")]);
    fixture.link("link", "target");
    fixture.link("dangling", "nowhere");
    fixture.link("out", "../secret");
    fixture.link("out-absolute", fixture.outside("secret"));
    fixture.link("out-missing", "../missing");
    for path in ["link", "dangling"] {
        fixture
            .run("fs.write", json!({"path": path, "content": "new"}))
            .await
            .unwrap();
        assert!(
            std::fs::symlink_metadata(fixture.path(path))
                .unwrap()
                .is_file()
        );
    }
    assert_eq!(fixture.text("target"), "kept");
    for path in ["out", "out-absolute", "out-missing"] {
        let params = json!({"path": path, "content": "new"});
        fixture
            .refused_as(ErrorKind::OutsideWorkspace, "fs.write", params)
            .await;
        assert!(
            std::fs::symlink_metadata(fixture.path(path))
                .unwrap()
                .is_symlink()
        );
    }
    assert_eq!(
        std::fs::read_to_string(fixture.outside("secret")).unwrap(),
        SECRET
    );
    assert!(!fixture.outside("missing").exists());
}

#[tokio::test]
async fn only_what_was_expected_is_replaced() {
    let fixture = Fixture::with(&[("file", "seen")]);
    let write = |path: &str, expect: &str| json!({"path": path, "content": "new", "expect": Digest::of(expect.as_bytes())});
    for (path, expect) in [("file", "other"), ("missing/file", "seen")] {
        fixture
            .refused_as(ErrorKind::Changed, "fs.write", write(path, expect))
            .await;
    }
    assert_eq!(
        (fixture.text("file"), fixture.all()),
        ("seen".to_owned(), vec!["file".to_owned()])
    );
    fixture
        .run("fs.write", write("file", "seen"))
        .await
        .unwrap();
    assert_eq!(fixture.text("file"), "new");
}

#[tokio::test]
async fn the_facts_of_a_write_name_what_would_be_replaced() {
    let fixture = Fixture::with(&[("a/file", "old")]);
    fixture.link("b", "a");
    let fact = |path: &str, kind, digest| Facts {
        paths: vec![PathFact {
            path: fixture.path(path).to_str().unwrap().to_owned(),
            access: Access::Write,
            kind,
            digest,
        }],
        ..Facts::default()
    };
    let facts = async |path: &str| {
        let params = json!({"path": path, "content": "x"});
        fixture.facts("fs.write", params).await.unwrap()
    };
    let old = Some(Digest::of(b"old"));
    assert_eq!(
        facts("b/file").await,
        fact("a/file", Some(EntryKind::File), old)
    );
    assert_eq!(facts("b/new/file").await, fact("a/new/file", None, None));
    assert_eq!(
        facts("b").await,
        fact("b", Some(EntryKind::Symlink), Some(Digest::of(b"a")))
    );
    assert_eq!(fixture.all(), ["a/", "a/file", "b"], "asking makes nothing");
}

#[tokio::test]
async fn what_fails_leaves_nothing_behind() {
    let fixture = Fixture::with(&[("file", "kept"), ("folder/x", "")]);
    let before = fixture.all();
    let long = "n".repeat(256);
    for (params, kind) in [
        (
            json!({"path": "file/below", "content": "x"}),
            ErrorKind::NotADirectory,
        ),
        (
            json!({"path": "folder", "content": "x"}),
            ErrorKind::NotAFile,
        ),
        (
            json!({"path": format!("new/folder/{long}"), "content": "x"}),
            ErrorKind::InvalidParams,
        ),
        (
            json!({"path": "new/file", "content": "!", "encoding": "base64"}),
            ErrorKind::BadEncoding,
        ),
    ] {
        let failure = fixture.run("fs.write", params.clone()).await.unwrap_err();
        assert_eq!(failure.kind, kind, "{params}");
        assert_eq!(fixture.all(), before, "{params}");
    }
    assert_eq!(fixture.text("file"), "kept");
}

#[tokio::test]
async fn folders_are_made_once() {
    let fixture = Fixture::with(&[("file", "")]);
    fixture.link("link", "a");
    for (path, changed) in [
        ("a/b", true),
        ("a/b", false),
        ("link/b", false),
        (".", false),
    ] {
        let done = fixture
            .run("fs.mkdir", json!({"path": path}))
            .await
            .unwrap();
        assert_eq!(done, json!({"changed": changed}), "{path}");
    }
    assert_eq!(fixture.all(), ["a/", "a/b/", "file", "link"]);
    fixture
        .refused_as(
            ErrorKind::AlreadyExists,
            "fs.mkdir",
            json!({"path": "file"}),
        )
        .await;
    fixture
        .refused_as(
            ErrorKind::NotADirectory,
            "fs.mkdir",
            json!({"path": "file/x"}),
        )
        .await;
    fixture.link("nowhere", "missing");
    fixture
        .refused_as(
            ErrorKind::NotFound,
            "fs.mkdir",
            json!({"path": "nowhere/x"}),
        )
        .await;
}
