//! `fs.patch` in an editor. The patch is read here, once: what is decided on and what the editor is
//! sent are the same files, whatever another reader would make of the text.

use patch::{FilePatch, Hunk, Line, Operation};
use protocol::facts::{Access, PathFact};
use protocol::{ErrorKind, Failure};
use serde_json::{Value, json};

use crate::facts::path_fact;

/// The patch among the parameters.
pub(crate) fn text(params: &Value) -> Result<&str, Failure> {
    params.get("patch").and_then(Value::as_str).ok_or_else(|| {
        Failure::new(ErrorKind::InvalidParams, "`patch` is missing.").with("field", "patch")
    })
}

/// What it would touch.
pub(crate) fn facts(workspace: &str, patch: &str) -> Result<Vec<PathFact>, Failure> {
    let mut facts = Vec::new();
    for file in patch::parse(patch)? {
        let touched: &[(&String, Access)] = match &file.operation {
            Operation::Change { path } | Operation::Create { path } => &[(path, Access::Write)],
            Operation::Delete { path } => &[(path, Access::Delete)],
            Operation::Rename { from, to } => &[
                (from, Access::Read),
                (from, Access::Delete),
                (to, Access::Write),
            ],
            Operation::Copy { from, to } => &[(from, Access::Read), (to, Access::Write)],
        };
        for (path, access) in touched {
            facts.push(path_fact(workspace, relative(path)?, *access));
        }
    }
    Ok(facts)
}

/// The parameters that an editor is sent: files with their hunks, and no patch.
pub(crate) fn params(patch: &str) -> Result<Value, Failure> {
    let files = patch::parse(patch)?;
    Ok(json!({"files": files.iter().map(told).collect::<Vec<_>>()}))
}

fn told(file: &FilePatch<'_>) -> Value {
    let mut told = match &file.operation {
        Operation::Change { path } => json!({"change": "change", "path": path}),
        Operation::Create { path } => json!({"change": "create", "path": path}),
        Operation::Delete { path } => json!({"change": "delete", "path": path}),
        Operation::Rename { from, to } => json!({"change": "rename", "from": from, "path": to}),
        Operation::Copy { from, to } => json!({"change": "copy", "from": from, "path": to}),
    };
    told["hunks"] = file.hunks.iter().map(hunk).collect();
    if let Some(executable) = file.executable {
        told["executable"] = json!(executable);
    }
    told
}

/// Its lines keep their ends; each begins with what happens to it.
fn hunk(hunk: &Hunk<'_>) -> Value {
    let lines = hunk.lines.iter().map(|line| match line {
        Line::Kept(text) => format!(" {text}"),
        Line::Removed(text) => format!("-{text}"),
        Line::Added(text) => format!("+{text}"),
    });
    json!({"start": hunk.start, "lines": lines.collect::<Vec<_>>()})
}

/// A patch may come from anywhere, so its names are never absolute.
fn relative(path: &str) -> Result<&str, Failure> {
    match path.starts_with('/') {
        true => Err(Failure::new(
            ErrorKind::OutsideWorkspace,
            format!("The patch names {path}, and a name in a patch is not absolute."),
        )),
        false => Ok(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "\
diff --git a/old.txt b/new.txt
rename from old.txt
rename to new.txt
--- a/old.txt
+++ b/new.txt
@@ -2 +2 @@
-two
+2
\\ No newline at end of file
diff --git a/.git/hooks/x b/.git/hooks/x
new file mode 100755
--- /dev/null
+++ b/.git/hooks/x
@@ -0,0 +1 @@
+#!/bin/sh
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-x
";

    #[test]
    fn what_is_decided_on_and_what_is_sent_are_the_same_files() {
        let facts = facts("/work", PATCH).unwrap();
        let touched: Vec<(&str, Access)> = facts
            .iter()
            .map(|fact| (fact.path.as_str(), fact.access))
            .collect();
        assert_eq!(
            touched,
            [
                ("/work/old.txt", Access::Read),
                ("/work/old.txt", Access::Delete),
                ("/work/new.txt", Access::Write),
                ("/work/.git/hooks/x", Access::Write),
                ("/work/gone", Access::Delete),
            ]
        );
        assert_eq!(
            params(PATCH).unwrap(),
            json!({"files": [
                {"change": "rename", "from": "old.txt", "path": "new.txt",
                    "hunks": [{"start": 2, "lines": ["-two\n", "+2"]}]},
                {"change": "create", "path": ".git/hooks/x", "executable": true,
                    "hunks": [{"start": 0, "lines": ["+#!/bin/sh\n"]}]},
                {"change": "delete", "path": "gone",
                    "hunks": [{"start": 1, "lines": ["-x\n"]}]},
            ]})
        );
    }

    #[test]
    fn an_absolute_name_and_what_is_no_patch_are_refused() {
        let absolute = "--- /etc/passwd\n+++ /etc/passwd\n@@ -1 +1 @@\n-a\n+b\n";
        let refused = facts("/work", absolute).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::OutsideWorkspace);
        assert!(facts("/work", "no patch").is_err());
        assert!(text(&json!({"path": "x"})).is_err());
        let up = "--- a/../up\n+++ b/../up\n@@ -1 +1 @@\n-a\n+b\n";
        assert_eq!(facts("/work", up).unwrap()[0].path, "/up");
    }
}
