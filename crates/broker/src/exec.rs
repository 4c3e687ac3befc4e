//! A command that runs in an editor and is confined all the same: what the editor is sent is a whole
//! `ward exec` of it, made here.
//!
//! That the editor is on this machine is not its word: it has shown it (see [`crate::Broker::here`]).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gate::runtime::Permit;
use protocol::facts::CommandFact;
use protocol::sandbox::{SandboxReport, Tier};
use protocol::{ErrorKind, Failure};
use serde_json::{Value, json};

/// How commands are confined on this machine.
#[derive(Clone)]
pub struct Here {
    /// Ward's own program.
    pub program: PathBuf,
    /// Ward's own socket, over which an editor shows that it is here.
    pub socket: PathBuf,
    /// Where the store is: Ward's own, which no command may reach.
    pub data: PathBuf,
    /// Refuses a folder around which there can be no wall.
    pub usable: Usable,
}

/// Refuses a folder around which there can be no wall.
pub type Usable = Arc<dyn Fn(&Path) -> Result<(), Failure> + Send + Sync>;

impl std::fmt::Debug for Here {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Here")
            .field("program", &self.program)
            .field("socket", &self.socket)
            .field("data", &self.data)
            .finish_non_exhaustive()
    }
}

/// The parameters of a `terminal.run` that runs the permitted command in the sandbox. Where that
/// cannot be made, its words end with the mark.
pub(crate) fn wrapped(
    here: &Here,
    workspace: &str,
    permit: &Permit,
    mark: &str,
) -> Result<Value, Failure> {
    let command = permit.facts().command.as_ref();
    let command = command.ok_or_else(|| {
        Failure::new(
            ErrorKind::Internal,
            "There is no command that could be confined.",
        )
    })?;
    (here.usable)(Path::new(workspace))?;
    params(here, workspace, command, permit.params(), mark)
}

fn params(
    here: &Here,
    workspace: &str,
    command: &CommandFact,
    asked: &Value,
    mark: &str,
) -> Result<Value, Failure> {
    // Outside of it, `ward exec` would quietly run it in the workspace itself.
    if !Path::new(&command.cwd).starts_with(workspace) {
        return Err(Failure::new(
            ErrorKind::OutsideWorkspace,
            format!(
                "A command that is confined runs inside {workspace}, and {} is not.",
                command.cwd
            ),
        ));
    }
    let (Some(program), Some(data)) = (here.program.to_str(), here.data.to_str()) else {
        return Err(Failure::new(
            ErrorKind::NotCapable,
            "The path of Ward's own program or data folder is not UTF-8, so that no editor can be told it.",
        ));
    };
    // An editor that is killed can stop nothing any more.
    let exec = [
        program,
        "exec",
        "--until-parent-ends",
        "--own",
        data,
        "--mark",
        mark,
        "--workspace",
        workspace,
        "--",
    ];
    let mut argv: Vec<String> = exec.map(str::to_owned).to_vec();
    // What the action sets is set inside. Outside, it could change what `ward exec` itself does.
    if !command.env.is_empty() {
        // `env` would take it for one more thing to set, and run what comes next.
        if command
            .argv
            .first()
            .is_some_and(|program| program.contains('='))
        {
            return Err(Failure::new(
                ErrorKind::InvalidParams,
                "A program with `=` in its name cannot be run with an environment of its own.",
            )
            .with("field", "argv"));
        }
        argv.extend(["env", "--"].map(str::to_owned));
        for (name, value) in &command.env {
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                return Err(Failure::new(
                    ErrorKind::InvalidParams,
                    format!("`{name}` cannot be set in an environment."),
                )
                .with("field", "env"));
            }
            argv.push(format!("{name}={value}"));
        }
    }
    argv.extend(command.argv.iter().cloned());
    // How long it may take, and what an editor may not be able to give: as it was asked.
    let mut params = asked.as_object().cloned().unwrap_or_default();
    for name in ["command", "env"] {
        params.remove(name);
    }
    params.insert("argv".to_owned(), json!(argv));
    params.insert("cwd".to_owned(), json!(command.cwd));
    Ok(Value::Object(params))
}

/// Why the sandbox of a command could not be made, so that it was not run, where its result says so.
/// Outside of a room a command could read the mark, and say so of itself.
pub(crate) fn not_made(result: &Value, mark: &str, tier: Tier) -> Option<Failure> {
    if tier != Tier::Room {
        return None;
    }
    let end = format!(" [{mark}]");
    let mut printed = ["stderr", "stdout"].into_iter();
    let said = printed.find_map(|name| Some(result.get(name)?.as_str()?.split_once(&end)?.0))?;
    // Behind what a shell may have said before.
    let line = said.rfind("\nward: ").map_or(0, |at| at + 1);
    let (_, why) = said[line..].split_once("ward: ")?;
    Some(Failure::new(ErrorKind::SandboxFailed, why))
}

/// Says in a command's result what held it: Ward's own word, whatever the editor said.
pub(crate) fn held_by(result: &mut Value, tier: Tier) {
    if let Value::Object(result) = result {
        result.insert("sandbox".to_owned(), json!(SandboxReport::quiet(tier)));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn here() -> Here {
        Here {
            program: "/usr/bin/ward".into(),
            socket: "/data/ward.sock".into(),
            data: "/data".into(),
            usable: Arc::new(|_| Ok(())),
        }
    }

    fn command(argv: &[&str], cwd: &str, env: &[(&str, &str)]) -> CommandFact {
        let env = env.iter().map(|(name, value)| (*name, *value));
        CommandFact {
            line: None,
            argv: argv.iter().map(|word| (*word).to_owned()).collect(),
            program: None,
            cwd: cwd.to_owned(),
            env: env
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect::<BTreeMap<_, _>>(),
        }
    }

    #[test]
    fn the_whole_command_runs_inside_and_so_does_its_environment() {
        let asked = command(
            &["sh", "-c", "cargo test -- --x"],
            "/work/below",
            &[("WARD_SANDBOX_MINIMUM", "none"), ("-i", "x")],
        );
        let as_asked = json!({
            "command": "cargo test -- --x", "cwd": "below", "timeout_ms": 1500,
            "env": {"WARD_SANDBOX_MINIMUM": "none", "-i": "x"},
        });
        assert_eq!(
            params(&here(), "/work", &asked, &as_asked, "m1").unwrap(),
            json!({
                "argv": [
                    "/usr/bin/ward", "exec", "--until-parent-ends", "--own", "/data", "--mark", "m1",
                    "--workspace", "/work", "--",
                    "env", "--", "-i=x", "WARD_SANDBOX_MINIMUM=none",
                    "sh", "-c", "cargo test -- --x",
                ],
                "cwd": "/work/below",
                "timeout_ms": 1500,
            })
        );
    }

    #[test]
    fn a_folder_outside_the_workspace_and_a_name_that_is_none_are_refused() {
        let refused = |asked: &CommandFact| {
            params(&here(), "/work", asked, &json!({}), "m1")
                .unwrap_err()
                .kind
        };
        for cwd in ["/", "/work-not", "/home/ada"] {
            let asked = command(&["ls"], cwd, &[]);
            assert_eq!(refused(&asked), ErrorKind::OutsideWorkspace, "{cwd}");
        }
        for name in ["", "A=B", "A\0"] {
            let asked = command(&["ls"], "/work", &[(name, "x")]);
            assert_eq!(refused(&asked), ErrorKind::InvalidParams, "{name:?}");
        }
        // What `env` would read as another thing to set is not what was decided on.
        let asked = command(&["X=1", "rm"], "/work", &[("A", "1")]);
        assert_eq!(refused(&asked), ErrorKind::InvalidParams);
    }

    #[test]
    fn a_sandbox_that_could_not_be_made_is_no_command_that_failed() {
        let result = |stderr: &str| json!({"exit_code": 125, "stdout": "", "stderr": stderr});
        let not_made = |result: &Value, tier| not_made(result, "m1", tier);
        assert_eq!(not_made(&result("ward: No.\n"), Tier::Room), None);
        assert_eq!(not_made(&json!({"exit_code": 125}), Tier::Room), None);
        let marked = result("note\nward: /x/ward: no workspace.\nOr so. [m1]\n");
        assert_eq!(not_made(&marked, Tier::Walls), None);
        let failure = not_made(&marked, Tier::Room).unwrap();
        assert_eq!(
            (failure.kind, &*failure.message),
            (ErrorKind::SandboxFailed, "/x/ward: no workspace.\nOr so.")
        );
    }

    #[test]
    fn what_held_a_command_is_not_the_editors_word() {
        let mut result = json!({"exit_code": 0, "sandbox": {"tier": "none", "stopped": []}});
        held_by(&mut result, Tier::Room);
        assert_eq!(result, json!({"exit_code": 0, "sandbox": {"tier": "room"}}));
    }
}
