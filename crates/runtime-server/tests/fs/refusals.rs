//! Paths that are refused, whatever is asked for, and what is outside stays as it was.

use protocol::ErrorKind;
use serde_json::{Value, json};

use crate::support::{Fixture, SECRET};

/// Every action that takes a path, with that path.
fn every_action(path: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("fs.read", json!({"path": path})),
        ("fs.list", json!({"path": path})),
        ("fs.stat", json!({"path": path})),
        ("fs.glob", json!({"path": path, "pattern": "*"})),
        ("fs.search", json!({"path": path, "pattern": "."})),
        ("fs.write", json!({"path": path, "content": "x"})),
        (
            "fs.edit",
            json!({"path": path, "edits": [{"old": "secret", "new": "x"}]}),
        ),
        ("fs.mkdir", json!({"path": path})),
        ("fs.move", json!({"from": path, "to": "here"})),
        ("fs.move", json!({"from": "file", "to": path})),
        ("fs.delete", json!({"path": path, "recursive": true})),
    ]
}

#[tokio::test]
async fn no_action_goes_out_of_the_workspace() {
    let fixture = Fixture::with(&[("file", "x"), ("folder/x", "")]);
    fixture.link("up", "..");
    fixture.link("out", fixture.outside(""));
    fixture.link("magic", "/proc/self/root");
    fixture.link("cwd", "/proc/self/cwd");
    fixture.link("chain", "up");
    let absolute = fixture.outside("secret");
    let around = fixture.path("../secret");
    for path in [
        "../secret",
        "folder/../../secret",
        "./../inside/../secret",
        "../inside/file",
        "up/secret",
        "up/inside/../secret",
        "chain/secret",
        "out/secret",
        "magic/etc/hostname",
        "cwd/Cargo.toml",
        absolute.to_str().unwrap(),
        around.to_str().unwrap(),
        "/proc/self/root/etc/hostname",
        "/proc/self/cwd/Cargo.toml",
        "/etc/passwd",
        "/",
    ] {
        for (action, params) in every_action(path) {
            let failure = fixture.refused(action, params).await;
            // `/proc/self/cwd/..` and the like name folders above, too.
            assert_eq!(
                failure.kind,
                ErrorKind::OutsideWorkspace,
                "{action} {path}: {failure}"
            );
            assert_eq!(failure.details["path"], path, "{action}");
        }
    }
    assert_eq!(
        std::fs::read_to_string(fixture.outside("secret")).unwrap(),
        SECRET
    );
    assert_eq!(
        fixture.all(),
        [
            "chain", "cwd", "file", "folder/", "folder/x", "magic", "out", "up"
        ]
    );
}

#[tokio::test]
async fn text_that_cannot_be_a_path_is_refused() {
    let fixture = Fixture::with(&[("file", "x")]);
    let (name, path) = ("n".repeat(256), "n/".repeat(4096));
    for path in ["", "a\0b", "\0", &name, &path] {
        for (action, params) in every_action(path) {
            let failure = fixture.refused(action, params).await;
            assert_eq!(
                failure.kind,
                ErrorKind::InvalidParams,
                "{action} {path:?}: {failure}"
            );
            assert!(failure.message.len() < 500, "{failure}");
        }
    }
}

#[tokio::test]
async fn only_regular_files_are_read_and_replaced_and_nothing_blocks() {
    let fixture = Fixture::new();
    rustix::fs::mkfifoat(rustix::fs::CWD, fixture.path("fifo"), 0o644.into()).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(fixture.path("socket")).unwrap();
    std::fs::create_dir(fixture.path("folder")).unwrap();
    fixture.link("to-fifo", "fifo");
    for path in ["fifo", "socket", "folder", "to-fifo"] {
        for (action, params) in every_action(path) {
            if !["fs.read", "fs.write", "fs.edit"].contains(&action)
                || (path, action) == ("to-fifo", "fs.write")
            {
                continue;
            }
            fixture
                .refused_as(ErrorKind::NotAFile, action, params)
                .await;
        }
    }
    let stat = fixture
        .run("fs.stat", json!({"path": "fifo"}))
        .await
        .unwrap();
    assert_eq!(stat["entries"][0]["kind"], "other");
}

#[tokio::test]
async fn a_device_behind_a_link_is_refused() {
    let fixture = Fixture::new();
    fixture.link("null", "/dev/null");
    for (action, params) in every_action("null") {
        if ["fs.read", "fs.write", "fs.edit", "fs.list", "fs.search"].contains(&action) {
            fixture
                .refused_as(ErrorKind::OutsideWorkspace, action, params)
                .await;
        }
    }
    // A device node inside: only root can make one, so that others prove only the link above.
    let device = rustix::fs::makedev(1, 3);
    let made = rustix::fs::mknodat(
        rustix::fs::CWD,
        fixture.path("node"),
        rustix::fs::FileType::CharacterDevice,
        0o666.into(),
        device,
    );
    if made.is_ok() {
        for action in ["fs.read", "fs.write", "fs.edit"] {
            let (_, params) = every_action("node")
                .into_iter()
                .find(|(name, _)| *name == action)
                .unwrap();
            fixture
                .refused_as(ErrorKind::NotAFile, action, params)
                .await;
        }
    }
}

#[tokio::test]
async fn links_that_never_end_or_lead_nowhere_are_not_found() {
    let fixture = Fixture::new();
    fixture.link("round", "round");
    fixture.link("a", "b");
    fixture.link("b", "a");
    fixture.link("nowhere", "missing");
    for path in [
        "round",
        "a",
        "nowhere",
        "missing",
        "missing/x",
        "missing/../x",
    ] {
        fixture
            .refused_as(ErrorKind::NotFound, "fs.read", json!({"path": path}))
            .await;
    }
}

#[tokio::test]
async fn a_workspace_that_was_moved_is_told_and_nothing_else_takes_its_place() {
    let fixture = Fixture::with(&[("file", "x")]);
    let root = fixture.path("");
    std::fs::rename(&root, fixture.outside("moved")).unwrap();
    std::fs::create_dir(&root).unwrap();
    std::fs::write(root.join("file"), "an impostor").unwrap();
    fixture
        .refused_as(ErrorKind::Changed, "fs.read", json!({"path": "file"}))
        .await;
}
