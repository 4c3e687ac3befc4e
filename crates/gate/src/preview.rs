//! What a file action would change, as the person sees it who is asked about it.

use protocol::action::fs::{EditParams, PatchParams, WriteParams};
use protocol::facts::{EntryKind, PathFact};
use protocol::{ActionName, Data, Digest, Facts};
use serde_json::Value;

use crate::diff;
use crate::undo::disk;

/// The longest preview.
const MOST: usize = 64 * 1024;
/// Larger files are told by their sizes.
const LARGEST: u64 = 256 * 1024;

/// A diff of what the action would change; nothing for what changes no content, and nothing where
/// the file is no longer what the facts say.
pub(crate) async fn of(action: ActionName, params: &Value, facts: &Facts) -> Option<String> {
    match action {
        ActionName::FsWrite | ActionName::FsEdit | ActionName::FsPatch => {}
        _ => return None,
    }
    let (params, fact) = (params.clone(), facts.paths.first().cloned());
    let work = move || match action {
        ActionName::FsWrite => written(serde_json::from_value(params).ok()?, &fact?),
        ActionName::FsEdit => edited(&serde_json::from_value(params).ok()?, &fact?),
        ActionName::FsPatch => {
            let PatchParams { patch } = serde_json::from_value(params).ok()?;
            Some(diff::visible(&patch, MOST))
        }
        _ => None,
    };
    tokio::task::spawn_blocking(work).await.ok().flatten()
}

fn written(params: WriteParams, fact: &PathFact) -> Option<String> {
    let new = Data::decode(params.content, params.encoding).ok()?;
    let size = new.len();
    let old = match fact.kind {
        None => Some(Vec::new()),
        Some(EntryKind::File) => current(fact)?,
        Some(EntryKind::Symlink) => {
            let new = String::from_utf8(new).ok().unwrap_or_default();
            let note = "The symbolic link itself is replaced by a file.\n";
            return Some(note.to_owned() + &diff::unified(&params.path, "", &new, MOST));
        }
        Some(EntryKind::Directory | EntryKind::Other) => return None,
    };
    let texts = old
        .and_then(|old| String::from_utf8(old).ok())
        .zip(String::from_utf8(new).ok())
        .filter(|_| size as u64 <= LARGEST);
    Some(match texts {
        Some((old, new)) => diff::unified(&params.path, &old, &new, MOST),
        None => {
            let header = diff::header(&params.path);
            format!("{header}No text, or too long to be shown: it would have {size} bytes.\n")
        }
    })
}

fn edited(params: &EditParams, fact: &PathFact) -> Option<String> {
    let old = String::from_utf8(current(fact)??).ok()?;
    let mut new = old.clone();
    for edit in &params.edits {
        if edit.old.is_empty() || !new.contains(&edit.old) {
            return None;
        }
        let grown = edit.new.len().saturating_sub(edit.old.len());
        if grown.saturating_mul(new.matches(&edit.old).count()) as u64 > LARGEST {
            return None;
        }
        // Where it may occur only once, the runtime has seen to it.
        new = new.replace(&edit.old, &edit.new);
    }
    Some(diff::unified(&params.path, &old, &new, MOST))
}

/// The file as the facts have it: its content, or that it is too large.
#[allow(clippy::option_option, reason = "no file, a large file, a file")]
fn current(fact: &PathFact) -> Option<Option<Vec<u8>>> {
    let Some(bytes) = disk::read(std::path::Path::new(&fact.path), LARGEST).ok()? else {
        return Some(None);
    };
    (Some(Digest::of(&bytes)) == fact.digest).then_some(Some(bytes))
}

#[cfg(test)]
mod tests {
    use protocol::facts::Access;
    use serde_json::json;

    use super::*;

    async fn preview(action: ActionName, params: Value, facts: &[PathFact]) -> Option<String> {
        let facts = Facts {
            paths: facts.to_vec(),
            ..Facts::default()
        };
        of(action, &params, &facts).await
    }

    fn fact(path: &std::path::Path, content: Option<&[u8]>) -> PathFact {
        PathFact {
            path: path.to_str().unwrap().to_owned(),
            access: Access::Write,
            kind: content.map(|_| EntryKind::File),
            digest: content.map(Digest::of),
        }
    }

    #[tokio::test]
    async fn a_write_and_an_edit_show_what_would_change() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("a");
        std::fs::write(&path, "one\ntwo\n").unwrap();
        let now = fact(&path, Some(b"one\ntwo\n"));

        let write = json!({"path": "a", "content": "one\n\u{1b}[8m2\n"});
        assert_eq!(
            preview(
                ActionName::FsWrite,
                write.clone(),
                std::slice::from_ref(&now)
            )
            .await
            .unwrap(),
            "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n one\n-two\n+\\u{1b}[8m2\n"
        );
        let edit = json!({"path": "a", "edits": [
            {"old": "two", "new": "2"}, {"old": "2\n", "new": "2\n3\n"},
        ]});
        assert_eq!(
            preview(ActionName::FsEdit, edit.clone(), &[now])
                .await
                .unwrap(),
            "--- a/a\n+++ b/a\n@@ -1,2 +1,3 @@\n one\n-two\n+2\n+3\n"
        );
        // What is no longer there is not shown.
        let before = fact(&path, Some(b"something else"));
        assert_eq!(
            preview(ActionName::FsWrite, write, std::slice::from_ref(&before)).await,
            None
        );
        assert_eq!(preview(ActionName::FsEdit, edit, &[before]).await, None);
    }

    #[tokio::test]
    async fn what_is_new_no_text_or_too_long_is_told_as_such() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let write = json!({"path": "b", "content": "new\n"});
        assert_eq!(
            preview(
                ActionName::FsWrite,
                write.clone(),
                &[fact(&folder.join("b"), None)]
            )
            .await
            .unwrap(),
            "--- a/b\n+++ b/b\n@@ -0,0 +1 @@\n+new\n"
        );
        let note = "--- a/b\n+++ b/b\nNo text, or too long to be shown: it would have 4 bytes.\n";
        for old in [b"\xff\xfe".to_vec(), vec![b'a'; 300 * 1024]] {
            std::fs::write(folder.join("b"), &old).unwrap();
            let fact = fact(&folder.join("b"), Some(&old));
            let shown = preview(ActionName::FsWrite, write.clone(), &[fact]).await;
            assert_eq!(shown.unwrap(), note);
        }
    }

    #[tokio::test]
    async fn a_patch_is_shown_as_it_is_and_nothing_is_shown_of_other_actions() {
        let patch = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\u{202e}\n";
        let shown = preview(ActionName::FsPatch, json!({"patch": patch}), &[]).await;
        assert_eq!(shown.unwrap(), patch.replace('\u{202e}', "\\u{202e}"));
        assert_eq!(
            preview(ActionName::FsDelete, json!({"path": "x"}), &[]).await,
            None
        );
        assert_eq!(preview(ActionName::FsWrite, json!({}), &[]).await, None);
    }
}
