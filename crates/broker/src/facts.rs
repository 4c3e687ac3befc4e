//! What an action in an editor would touch. Ward looks where it can: a path that is on this machine
//! is followed through its links. What is elsewhere is the editor's word, which also keeps to its
//! own folders.

use std::collections::BTreeMap;

use protocol::facts::{Access, CommandFact, EntryKind, PathFact};
use protocol::{ActionName, ErrorKind, Facts, Failure};
use serde::Deserialize;
use serde_json::Value;

use crate::leads::{Led, kept, real};
use crate::patched;

/// The facts of an action in the workspace of an editor of this kind.
pub(crate) fn of(
    action: &str,
    params: &Value,
    workspace: &str,
    kind: &str,
) -> Result<Facts, Failure> {
    let name = ActionName::parse(action).ok_or_else(|| {
        Failure::new(
            ErrorKind::UnknownAction,
            format!("There is no action `{action}`."),
        )
    })?;
    let mut facts = Facts {
        word_of: Some(kind.to_owned()),
        ..Facts::default()
    };
    if name == ActionName::FsPatch {
        facts.paths = patched::facts(workspace, patched::text(params)?)?;
        return Ok(facts);
    }
    let text = |field: &str| params.get(field).and_then(Value::as_str);
    for (field, access) in touched(name) {
        let given = match (text(field), name) {
            // Which file that is, only the editor knows.
            (_, ActionName::EditorSelection) => ".",
            (Some(given), _) => given,
            (
                None,
                ActionName::FsList
                | ActionName::FsGlob
                | ActionName::FsSearch
                | ActionName::EditorDiagnostics
                | ActionName::EditorSymbols,
            ) => ".",
            (None, _) => {
                return Err(Failure::new(
                    ErrorKind::InvalidParams,
                    format!("`{field}` is missing."),
                )
                .with("field", *field));
            }
        };
        let led = match name {
            // They are about a link itself, as in the local runtime.
            ActionName::FsDelete | ActionName::FsMove | ActionName::FsStat => {
                kept(workspace, given)
            }
            _ => real(workspace, given),
        };
        let mut fact = fact(led, *access);
        if is_about_all(name) {
            // On another machine it cannot be looked at.
            fact.kind = fact.kind.or(Some(EntryKind::Directory));
        }
        facts.paths.push(fact);
    }
    match name {
        ActionName::TerminalRun | ActionName::TerminalOpen => {
            facts.command = Some(command(name, params, workspace)?);
        }
        ActionName::EditorRename => {
            let others = others(params)?;
            let others = others.map(|given| path_fact(workspace, given, Access::Write));
            facts.paths.extend(others);
        }
        _ => {}
    }
    Ok(facts)
}

/// The files that change beside the one that is named first.
fn others(params: &Value) -> Result<impl Iterator<Item = &str>, Failure> {
    let misfit = || {
        Failure::new(ErrorKind::InvalidParams, "`files` is a list of paths.").with("field", "files")
    };
    let files = match params.get("files") {
        None => &[][..],
        Some(files) => files.as_array().ok_or_else(misfit)?,
    };
    match files.iter().all(Value::is_string) {
        true => Ok(files.iter().filter_map(Value::as_str)),
        false => Err(misfit()),
    }
}

/// The command as a person is shown it: all of it, or it is refused.
fn command(name: ActionName, params: &Value, workspace: &str) -> Result<CommandFact, Failure> {
    #[derive(Deserialize)]
    struct Asked {
        command: Option<String>,
        argv: Option<Vec<String>>,
        cwd: Option<String>,
        #[serde(default)]
        env: BTreeMap<String, String>,
    }
    let misfit = |why: String| Failure::new(ErrorKind::InvalidParams, why);
    let asked: Asked = serde_json::from_value(params.clone())
        .map_err(|error| misfit(format!("The parameters of {name} do not fit: {error}.")))?;
    let words = |line: &str| ["sh", "-c", line].map(str::to_owned).to_vec();
    let (line, argv) = match (asked.command, asked.argv) {
        (Some(line), None) => (Some(line.clone()), words(&line)),
        (None, Some(argv)) if !argv.is_empty() => (None, argv),
        (None, None) if name == ActionName::TerminalOpen => (None, vec!["sh".to_owned()]),
        _ => {
            return Err(misfit(format!(
                "{name} takes `command` or `argv`, one of them."
            )));
        }
    };
    let cwd = real(workspace, asked.cwd.as_deref().unwrap_or("."));
    Ok(CommandFact {
        line,
        argv,
        program: None,
        cwd: cwd.path.to_string_lossy().into_owned(),
        env: asked.env,
    })
}

/// Which parameters are paths, and what happens to them.
fn touched(name: ActionName) -> &'static [(&'static str, Access)] {
    match name {
        ActionName::FsRead
        | ActionName::FsList
        | ActionName::FsStat
        | ActionName::FsGlob
        | ActionName::FsSearch
        | ActionName::EditorOpen
        | ActionName::EditorSelection
        | ActionName::EditorDiagnostics
        | ActionName::EditorSymbols => &[("path", Access::Read)],
        ActionName::FsWrite
        | ActionName::FsEdit
        | ActionName::FsMkdir
        | ActionName::EditorDiff
        | ActionName::EditorFormat
        | ActionName::EditorRename => &[("path", Access::Write)],
        ActionName::FsMove => &[("from", Access::Delete), ("to", Access::Write)],
        ActionName::FsDelete => &[("path", Access::Delete)],
        // What a patch touches stands in the patch.
        ActionName::FsPatch
        | ActionName::TerminalRun
        | ActionName::TerminalOpen
        | ActionName::TerminalWrite
        | ActionName::TerminalResize
        | ActionName::TerminalClose
        | ActionName::TerminalList
        | ActionName::TerminalRead
        | ActionName::TerminalStop
        | ActionName::EditorCommand
        | ActionName::EditorTask
        | ActionName::CellExecute => &[],
    }
}

/// Whether it tells of whatever is in a folder.
fn is_about_all(name: ActionName) -> bool {
    matches!(
        name,
        ActionName::FsGlob
            | ActionName::FsSearch
            | ActionName::EditorSelection
            | ActionName::EditorDiagnostics
            | ActionName::EditorSymbols
    )
}

pub(crate) fn path_fact(workspace: &str, given: &str, access: Access) -> PathFact {
    fact(real(workspace, given), access)
}

fn fact(led: Led, access: Access) -> PathFact {
    let path = led.path.into_os_string();
    PathFact {
        path: path
            .into_string()
            .unwrap_or_else(|path| path.to_string_lossy().into_owned()),
        access,
        kind: led.kind,
        digest: None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_is_followed_through_links_and_out_of_the_workspace_where_it_leads_there() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let work = root.join("work");
        std::fs::create_dir(&work).unwrap();
        std::os::unix::fs::symlink(&root, work.join("up")).unwrap();
        std::os::unix::fs::symlink("../fresh", work.join("nowhere")).unwrap();
        std::os::unix::fs::symlink("loop", work.join("loop")).unwrap();
        let workspace = work.to_str().unwrap();
        let path = |given: &str| {
            let facts = of("fs.write", &json!({"path": given}), workspace, "vscode").unwrap();
            assert_eq!(facts.word_of.as_deref(), Some("vscode"));
            facts.paths[0].path.clone()
        };
        let below = |name: &str| root.join(name).to_str().unwrap().to_owned();
        assert_eq!(path("src/new.rs"), below("work/src/new.rs"));
        assert_eq!(path("up/secret"), below("secret"));
        assert_eq!(path("../elsewhere"), below("elsewhere"));
        assert_eq!(path("nowhere"), below("fresh"));
        assert_eq!(path("nowhere/below"), below("fresh/below"));
        assert_eq!(path("loop"), below("work/loop"));
        assert_eq!(path("/etc/passwd"), "/etc/passwd");
    }

    #[test]
    fn a_rename_is_decided_on_by_every_file_that_it_names() {
        let written = |params: Value| {
            let facts = of("editor.rename", &params, "/nowhere", "vscode")?;
            let written = facts.paths.into_iter().map(|fact| (fact.path, fact.access));
            Ok(written.collect::<Vec<_>>())
        };
        let to = |path: &str| (path.to_owned(), Access::Write);
        let named = json!({"path": "a.ts", "name": "b"});
        assert_eq!(written(named), Ok(vec![to("/nowhere/a.ts")]));
        let more = json!({"path": "a.ts", "name": "b", "files": ["src/b.ts", "../c.ts"]});
        let all = ["/nowhere/a.ts", "/nowhere/src/b.ts", "/c.ts"];
        assert_eq!(written(more), Ok(all.map(to).to_vec()));
        for files in [json!("b.ts"), json!([1]), json!(null)] {
            let refused: Result<_, Failure> =
                written(json!({"path": "a.ts", "name": "b", "files": files}));
            assert_eq!(refused.unwrap_err().kind, ErrorKind::InvalidParams);
        }
    }

    #[test]
    fn who_moves_or_deletes_a_link_is_decided_on_by_the_link_and_not_by_what_it_leads_to() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join(".git/hooks")).unwrap();
        std::fs::write(root.join("hook.sh"), "").unwrap();
        std::os::unix::fs::symlink("../../hook.sh", root.join(".git/hooks/pre-commit")).unwrap();
        std::os::unix::fs::symlink(".git/hooks", root.join("hooks")).unwrap();
        let link = root.join(".git/hooks/pre-commit");
        let given =
            json!({"path": "hooks/pre-commit", "from": "hook.sh", "to": "hooks/pre-commit"});
        let paths = |action: &str| -> Vec<PathBuf> {
            let facts = of(action, &given, root.to_str().unwrap(), "vscode").unwrap();
            facts
                .paths
                .into_iter()
                .map(|fact| fact.path.into())
                .collect()
        };
        for action in ["fs.delete", "fs.stat"] {
            assert_eq!(paths(action), std::slice::from_ref(&link), "{action}");
        }
        assert_eq!(paths("fs.move"), [root.join("hook.sh"), link]);
        assert_eq!(paths("fs.write"), [root.join("hook.sh")]);
    }

    #[test]
    fn a_command_is_shown_whole_with_its_words_and_its_environment() {
        let command = |params: Value| {
            let facts = of("terminal.run", &params, "/work", "vscode");
            facts.map(|facts| facts.command.unwrap())
        };
        let shown = command(json!({"argv": ["rm", "-r", "x"], "env": {"A": "1"}, "cwd": "sub"}));
        assert_eq!(
            shown.unwrap(),
            CommandFact {
                line: None,
                argv: ["rm", "-r", "x"].map(str::to_owned).to_vec(),
                program: None,
                cwd: "/work/sub".to_owned(),
                env: BTreeMap::from([("A".to_owned(), "1".to_owned())]),
            }
        );
        assert_eq!(
            command(json!({"command": "ls"})).unwrap().line.unwrap(),
            "ls"
        );
        for params in [
            json!({}),
            json!({"command": "ls", "argv": ["rm"]}),
            json!({"argv": []}),
            json!({"argv": "rm"}),
        ] {
            let failure = command(params.clone()).unwrap_err();
            assert_eq!(failure.kind, ErrorKind::InvalidParams, "{params}");
        }
    }

    #[test]
    fn every_action_has_facts_or_says_what_is_missing() {
        for name in ActionName::ALL {
            let patch = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n";
            let given =
                json!({"path": "a", "from": "a", "to": "b", "command": "ls", "patch": patch});
            assert!(
                of(name.as_str(), &given, "/work", "vscode").is_ok(),
                "{name}"
            );
        }
        let failure = of("fs.read", &json!({}), "/work", "vscode").unwrap_err();
        assert_eq!(failure.kind, ErrorKind::InvalidParams);
        assert!(of("fs.fly", &json!({}), "/work", "vscode").is_err());
    }
}
