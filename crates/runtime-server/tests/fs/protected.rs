//! What carries authority or runs by itself is read, but never changed.

use protocol::ErrorKind;
use serde_json::json;

use crate::support::Fixture;

fn repository() -> Fixture {
    Fixture::with(&[
        (".git/config", "[core]"),
        (".git/hooks/pre-commit.sample", "x"),
        (".git/HEAD", "ref"),
        ("nested/lib/.git/config", "[core]"),
        ("ward.toml", "x"),
        ("sub/AGENTS.md", "x"),
        (".github/workflows/ci.yml", "x"),
        (".github/CODEOWNERS", "x"),
        ("file", "x"),
        ("plain/x", "x"),
        ("made/workflows/ci.yml", "x"),
    ])
}

#[tokio::test]
async fn nothing_protected_is_written_moved_or_deleted() {
    let fixture = repository();
    fixture.link("hidden", ".git");
    fixture.link("hooks", "nested/lib/.git");
    let before = fixture.all();
    let write = |path: &str| ("fs.write", json!({"path": path, "content": "x"}));
    let delete = |path: &str| ("fs.delete", json!({"path": path, "recursive": true}));
    let moved = |from: &str, to: &str| ("fs.move", json!({"from": from, "to": to}));
    let edit = json!([{"old": "x", "new": "y"}]);
    for (action, params) in [
        write(".git/config"),
        write(".GIT/hooks/pre-commit"),
        write(".git/hooks/pre-commit"),
        write(".git"),
        write("new/.git/hooks/pre-commit"),
        write("new/.git"),
        write("hidden/config"),
        write("hooks/hooks/post-checkout"),
        write("plain/../.git/config"),
        write("ward.toml"),
        write(".ward/roles/x.md"),
        write("sub/AGENTS.md"),
        write(".envrc"),
        write(".vscode/tasks.json"),
        write(".github/workflows/x.yml"),
        ("fs.edit", json!({"path": "ward.toml", "edits": edit})),
        ("fs.mkdir", json!({"path": ".vscode"})),
        ("fs.mkdir", json!({"path": "x/.claude/hooks"})),
        delete("ward.toml"),
        delete(".git"),
        delete("nested"),
        delete("nested/lib"),
        delete("sub"),
        delete(".github"),
        moved(".git", "git"),
        moved("nested", "other"),
        moved("file", ".git/config.worktree"),
        moved("plain", ".husky"),
        moved("made", "deep/.github"),
        moved("ward.toml", "x"),
    ] {
        fixture
            .refused_as(ErrorKind::Protected, action, params)
            .await;
    }
    assert_eq!(fixture.all(), before);
}

#[tokio::test]
async fn a_refusal_names_what_is_protected_and_why() {
    let fixture = repository();
    let failure = fixture
        .refused("fs.delete", json!({"path": "nested", "recursive": true}))
        .await;
    assert_eq!(
        failure.message,
        "`nested/lib/.git` is protected: `.git` is a repository's own data, so agents may only read it. A person can change it outside Ward."
    );
}

#[tokio::test]
async fn the_rest_is_free_and_reading_is_too() {
    let fixture = repository();
    for (action, params) in [
        ("fs.read", json!({"path": ".git/config"})),
        ("fs.list", json!({"path": ".git/hooks"})),
        ("fs.stat", json!({"path": "ward.toml"})),
        ("fs.mkdir", json!({"path": ".git"})),
        ("fs.write", json!({"path": ".git/HEAD", "content": "x"})),
        ("fs.write", json!({"path": ".gitignore", "content": "x"})),
        (
            "fs.write",
            json!({"path": ".github/CODEOWNERS", "content": "x"}),
        ),
        ("fs.delete", json!({"path": "plain", "recursive": true})),
    ] {
        fixture.facts(action, params.clone()).await.unwrap();
        fixture.run(action, params).await.unwrap();
    }
}
