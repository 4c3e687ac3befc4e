//! `fs.patch`.

use std::os::unix::fs::PermissionsExt as _;

use protocol::facts::{Access, EntryKind, PathFact};
use protocol::{Digest, ErrorKind};
use serde_json::json;

use crate::support::Fixture;

const OVER_SEVERAL_FILES: &str = "\
commit 1234
    Text that git writes before.

diff --git a/changed b/changed
index 111..222 100644
--- a/changed
+++ b/changed
@@ -1,3 +1,3 @@ context
 one
-two
+2
 three
@@ -9,2 +9,3 @@
 nine
 ten
+eleven
diff --git a/gone b/gone
deleted file mode 100644
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-bye
\\ No newline at end of file
diff --git a/old name b/new name
similarity index 100%
rename from old name
rename to new name
diff --git a/sub/new.sh b/sub/new.sh
new file mode 100755
--- /dev/null
+++ b/sub/new.sh
@@ -0,0 +1,2 @@
+#!/bin/sh
+true
\\ No newline at end of file
diff --git a/empty b/empty
new file mode 100644
index 000..000
-- 
2.47.0
";

fn several_files() -> Fixture {
    Fixture::with(&[
        ("changed", "one\ntwo\nthree\n4\n5\n6\n7\n8\nnine\nten\n"),
        ("gone", "bye"),
        ("old name", "moved\n"),
    ])
}

#[tokio::test]
async fn a_patch_changes_makes_deletes_and_renames_files() {
    let fixture = several_files();
    let answer = fixture
        .run("fs.patch", json!({"patch": OVER_SEVERAL_FILES}))
        .await
        .unwrap();
    let changed = "one\n2\nthree\n4\n5\n6\n7\n8\nnine\nten\neleven\n";
    let digest = |text: &str| Digest::of(text.as_bytes());
    assert_eq!(
        answer,
        json!({"files": [
            {"path": "changed", "change": "changed", "digest": digest(changed)},
            {"path": "gone", "change": "deleted"},
            {"path": "old name", "change": "deleted"},
            {"path": "new name", "change": "created", "digest": digest("moved\n")},
            {"path": "sub/new.sh", "change": "created", "digest": digest("#!/bin/sh\ntrue")},
            {"path": "empty", "change": "created", "digest": digest("")},
        ]})
    );
    assert_eq!(
        fixture.all(),
        ["changed", "empty", "new name", "sub/", "sub/new.sh"]
    );
    assert_eq!(fixture.text("changed"), changed);
    assert_eq!(fixture.text("sub/new.sh"), "#!/bin/sh\ntrue");
    let mode = std::fs::metadata(fixture.path("sub/new.sh"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o100, 0o100);
}

#[tokio::test]
async fn the_facts_of_a_patch_name_every_file() {
    let fixture = several_files();
    let facts = fixture
        .facts("fs.patch", json!({"patch": OVER_SEVERAL_FILES}))
        .await
        .unwrap();
    let fact = |path: &str, access, old: Option<&str>| PathFact {
        path: fixture.path(path).to_str().unwrap().to_owned(),
        access,
        kind: old.map(|_| EntryKind::File),
        digest: old.map(|old| Digest::of(old.as_bytes())),
    };
    let changed = fixture.text("changed");
    assert_eq!(
        facts.paths,
        [
            fact("changed", Access::Write, Some(&changed)),
            fact("gone", Access::Delete, Some("bye")),
            fact("old name", Access::Read, Some("moved\n")),
            fact("old name", Access::Delete, Some("moved\n")),
            fact("new name", Access::Write, None),
            fact("sub/new.sh", Access::Write, None),
            fact("empty", Access::Write, None),
        ]
    );
}

#[tokio::test]
async fn a_patch_that_does_not_fit_changes_nothing_and_says_where() {
    let fixture = several_files();
    std::fs::write(fixture.path("gone"), "other").unwrap();
    let before = fixture.all();
    let failure = fixture
        .refused("fs.patch", json!({"patch": OVER_SEVERAL_FILES}))
        .await;
    assert_eq!(failure.kind, ErrorKind::PatchFailed);
    assert_eq!(
        failure.message,
        "Hunk 1 (line 21 of the patch) does not fit `gone`: on line 1 it wants `bye` and there is `other`. Read the file again and make the patch anew. Nothing was changed."
    );
    assert_eq!(fixture.all(), before);
    assert!(fixture.text("changed").contains("two"));
}

#[tokio::test]
async fn hunks_are_found_some_lines_away_and_keep_the_files_line_ends() {
    let patch = "--- a/f\n+++ b/f\n@@ -2,2 +2,3 @@\n x\n+new\n y\n";
    for (before, after) in [
        ("x\ny\n", "x\nnew\ny\n"),
        ("0\n0\n0\n0\nx\ny\n", "0\n0\n0\n0\nx\nnew\ny\n"),
        ("0\r\nx\r\ny\r\n", "0\r\nx\r\nnew\r\ny\r\n"),
    ] {
        let fixture = Fixture::with(&[("f", before)]);
        fixture
            .run("fs.patch", json!({"patch": patch}))
            .await
            .unwrap();
        assert_eq!(fixture.text("f"), after);
    }
    let fixture = Fixture::with(&[("f", "0\nx\ny\n")]);
    fixture
        .run("fs.patch", json!({"patch": patch.replace('\n', "\r\n")}))
        .await
        .unwrap();
    assert_eq!(fixture.text("f"), "0\nx\nnew\ny\n");
}

#[tokio::test]
async fn a_patch_without_prefixes_and_with_times_is_taken() {
    let fixture = Fixture::with(&[("b/f", "x\n")]);
    let patch = "--- b/f\t2024-01-01 00:00:00\n+++ b/f\t2024-01-02 00:00:00\n@@ -1 +1 @@\n-x\n+y\n";
    fixture
        .run("fs.patch", json!({"patch": patch}))
        .await
        .unwrap();
    assert_eq!(fixture.text("b/f"), "y\n");
}

#[tokio::test]
async fn what_would_lose_changes_or_leave_the_workspace_is_refused() {
    let fixture = Fixture::with(&[("f", "x\n"), (".git/config", "")]);
    fixture.link("out", "..");
    fixture.link("link", "f");
    let change = |path: &str| format!("--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-x\n+y\n");
    let create = |path: &str| format!("--- /dev/null\n+++ {path}\n@@ -0,0 +1 @@\n+y\n");
    for (patch, kind) in [
        (String::new(), ErrorKind::InvalidParams),
        ("just text\n".to_owned(), ErrorKind::InvalidParams),
        ("@@ -1 +1 @@\n-x\n+y\n".to_owned(), ErrorKind::PatchFailed),
        (format!("{}+lost\n", change("f")), ErrorKind::PatchFailed),
        (change("f").replace("-1 +1", "-1,2 +1"), ErrorKind::PatchFailed),
        (change("f").replace("@@ -1 +1 @@", "@@ -x +1 @@"), ErrorKind::PatchFailed),
        (change("f").replace("@@ -1 +1 @@\n", ""), ErrorKind::PatchFailed),
        (format!("{0}{0}", change("f")), ErrorKind::PatchFailed),
        (change("f").replace("-x", "-z"), ErrorKind::PatchFailed),
        (change("missing"), ErrorKind::NotFound),
        (change("link"), ErrorKind::NotAFile),
        (create("b/f"), ErrorKind::AlreadyExists),
        (create("/etc/ward-test"), ErrorKind::OutsideWorkspace),
        (create("b/../../x"), ErrorKind::OutsideWorkspace),
        (create("b/out/x"), ErrorKind::OutsideWorkspace),
        (create("b/.git/hooks/pre-commit"), ErrorKind::Protected),
        ("diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc\n\\ No newline at end of file\n".to_owned(), ErrorKind::PatchFailed),
        ("diff --git a/f b/f\nold mode 100644\nnew mode 120000\n".to_owned(), ErrorKind::PatchFailed),
        ("diff --git a/i b/i\nindex 1..2\nBinary files a/i and b/i differ\n".to_owned(), ErrorKind::PatchFailed),
        ("diff --git a/i b/i\nindex 1..2\nGIT binary patch\nliteral 0\n\n".to_owned(), ErrorKind::PatchFailed),
        ("diff --git a/f b/f\nindex 1..1\n".to_owned(), ErrorKind::PatchFailed),
        ("diff --git a/f b/f\ndeleted file mode 100644\n".to_owned(), ErrorKind::PatchFailed),
        ("--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-x\n+y\n".to_owned(), ErrorKind::PatchFailed),
    ] {
        let before = fixture.all();
        fixture.refused_as(kind, "fs.patch", json!({"patch": patch})).await;
        assert_eq!((fixture.all(), fixture.text("f")), (before, "x\n".to_owned()), "{patch}");
    }
}

#[tokio::test]
async fn a_mode_change_alone_is_applied() {
    let fixture = Fixture::with(&[("f", "x\n")]);
    let patch = "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n";
    fixture
        .run("fs.patch", json!({"patch": patch}))
        .await
        .unwrap();
    let mode = std::fs::metadata(fixture.path("f"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!((fixture.text("f"), mode & 0o111), ("x\n".to_owned(), 0o111));
}

#[tokio::test]
async fn a_patch_that_needs_a_name_twice_leaves_nothing_behind() {
    let fixture = Fixture::with(&[("a", "x\n"), ("gone", "x\n")]);
    let patch = "\
--- a/a
+++ b/a
@@ -1 +1 @@
-x
+y
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-x
--- /dev/null
+++ b/new/deep/file
@@ -0,0 +1 @@
+y
--- /dev/null
+++ b/new
@@ -0,0 +1 @@
+y
";
    let before = fixture.all();
    let refused = fixture.run("fs.patch", json!({"patch": patch})).await;
    assert_eq!(refused.unwrap_err().kind, ErrorKind::Changed);
    assert_eq!(
        (fixture.all(), fixture.text("a")),
        (before, "x\n".to_owned())
    );
}
