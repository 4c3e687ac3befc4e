//! The runtime server's file actions in another process than its own: the gate saves the way there
//! and back. It looks at what any file action would touch, and does those that read a file or a
//! folder and change nothing; all else is the runtime server's, which looks again with the same
//! code before it does anything.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use protocol::method::ExecuteParams;
use protocol::{ActionName, ErrorKind, Facts, Failure};
use rpc::Answer;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::action::Call;
use crate::context::Context;
use crate::grounds::Beyond;
use crate::output::Output;
use crate::registry;
use crate::workspace::Workspace;

/// Looks and reads, and can do nothing else.
#[derive(Debug)]
pub struct Near(Arc<Context>);

impl Near {
    /// In this workspace; `own` are Ward's own folders, as the runtime server knows them.
    pub fn open(workspace: &Path, own: &[PathBuf]) -> Result<Self, Failure> {
        let workspace = Arc::new(Workspace::open(workspace)?);
        let beyond = Arc::new(Beyond::open(own)?);
        Ok(Self(Arc::new(Context::to_look_at(workspace, beyond))))
    }

    /// What an action would touch. None for what the files alone do not tell.
    pub async fn look(&self, action: &str, params: &Value) -> Option<Result<Facts, Failure>> {
        if !action.starts_with("fs.") {
            return None;
        }
        let looked = match registry::prepare(action, params.clone()) {
            Ok(prepared) => prepared.resolve(Arc::clone(&self.0)).await,
            Err(failure) => Err(failure),
        };
        Some(looked.map_err(|failure| self.0.grounds.beyond(failure, params)))
    }

    /// Whether an action is done here.
    #[must_use]
    pub fn does(action: ActionName) -> bool {
        matches!(
            action,
            ActionName::FsRead | ActionName::FsList | ActionName::FsStat
        )
    }

    /// Does an action that [`does`](Self::does) names, as the runtime server would: with a permit,
    /// and only if it would still touch what was decided on.
    pub async fn execute(&self, params: ExecuteParams) -> Answer {
        let prepared = registry::prepare(&params.action, params.params)?;
        if !Self::does(prepared.name()) {
            return Err(elsewhere());
        }
        let (Some(permit), Some(expected)) = (params.permit, params.expect) else {
            return Err(elsewhere());
        };
        let context = Arc::clone(&self.0);
        prepared.look_again(context, &expected).await?;
        let wall = params.wall.unwrap_or_default();
        let context = self.0.permitted(&permit, wall, expected)?;
        // Whoever stops waiting stops a long listing too.
        let cancel = CancellationToken::new();
        let _stopped = cancel.clone().drop_guard();
        let call = Call {
            context: Arc::new(context),
            id: params.id,
            session: params.session,
            output: Output::nowhere(),
            cancel,
        };
        prepared.execute(call).await
    }
}

fn elsewhere() -> Failure {
    Failure::new(
        ErrorKind::Internal,
        "This is the runtime server's to do. Report it: nothing was done.",
    )
}

#[cfg(test)]
mod tests {
    use protocol::Mode;
    use protocol::wall::{PermitParams, WallParams};
    use serde_json::json;

    use super::*;

    struct Scene {
        _above: tempfile::TempDir,
        workspace: PathBuf,
        near: Near,
    }

    impl Scene {
        fn new() -> Self {
            let above = tempfile::tempdir().unwrap();
            let root = above.path().canonicalize().unwrap();
            let (workspace, own) = (root.join("work"), root.join("own"));
            for folder in [&workspace, &own] {
                std::fs::create_dir(folder).unwrap();
            }
            std::fs::write(workspace.join("file"), "inside\n").unwrap();
            std::fs::write(root.join("file"), "outside\n").unwrap();
            std::fs::write(own.join("token"), "Ward's own\n").unwrap();
            Self {
                near: Near::open(&workspace, &[own]).unwrap(),
                _above: above,
                workspace,
            }
        }

        /// Asked as the gate asks once it has decided on `facts`.
        fn permit(
            &self,
            action: &str,
            params: &Value,
            facts: Facts,
            beyond: bool,
        ) -> ExecuteParams {
            ExecuteParams {
                id: "a1".into(),
                action: action.into(),
                params: params.clone(),
                session: None,
                permit: Some(PermitParams {
                    digest: protocol::Digest::of(b""),
                    mode: Mode::Sandbox,
                }),
                wall: Some(WallParams {
                    beyond,
                    ..WallParams::default()
                }),
                expect: Some(facts),
            }
        }

        async fn facts(&self, action: &str, params: &Value) -> Facts {
            self.near.look(action, params).await.unwrap().unwrap()
        }
    }

    fn kind(answer: Answer) -> ErrorKind {
        answer.unwrap_err().kind
    }

    #[tokio::test]
    async fn a_read_that_was_permitted_answers_what_the_runtime_server_would() {
        let scene = Scene::new();
        let params = json!({"path": "file"});
        let facts = scene.facts("fs.read", &params).await;
        let answer = scene
            .near
            .execute(scene.permit("fs.read", &params, facts, false))
            .await;
        let answer: Value = serde_json::from_str(answer.unwrap().get()).unwrap();
        assert_eq!(
            answer,
            json!({
                "content": "inside\n", "encoding": protocol::Encoding::Utf8, "size": 7, "truncated": false,
                "digest": protocol::Digest::of(b"inside\n"),
            })
        );
    }

    #[tokio::test]
    async fn a_name_that_leads_elsewhere_since_it_was_decided_on_is_changed() {
        let scene = Scene::new();
        let params = json!({"path": "file"});
        let facts = scene.facts("fs.read", &params).await;
        let file = scene.workspace.join("file");
        std::fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("../file", &file).unwrap();
        let asked = scene.permit("fs.read", &params, facts, true);
        let failure = scene.near.execute(asked).await.unwrap_err();
        assert_eq!(failure.kind, ErrorKind::Changed);
        assert!(failure.details.contains_key("found"), "it is decided anew");
    }

    #[tokio::test]
    async fn what_is_outside_is_read_only_where_that_was_permitted_and_wards_own_never() {
        let scene = Scene::new();
        let params = json!({"path": "../file"});
        let facts = scene.facts("fs.read", &params).await;
        let asked = scene.permit("fs.read", &params, facts.clone(), false);
        assert_eq!(
            kind(scene.near.execute(asked).await),
            ErrorKind::OutsideWorkspace
        );
        let asked = scene.permit("fs.read", &params, facts, true);
        scene.near.execute(asked).await.unwrap();
        let own = json!({"path": "../own/token"});
        assert!(scene.near.look("fs.read", &own).await.unwrap().is_err());
        let asked = scene.permit("fs.read", &own, Facts::default(), true);
        scene.near.execute(asked).await.unwrap_err();
    }

    #[tokio::test]
    async fn nothing_is_changed_or_run_here_and_nothing_is_read_without_a_permit() {
        let scene = Scene::new();
        let write = json!({"path": "new", "content": "x"});
        let facts = scene.facts("fs.write", &write).await;
        let asked = scene.permit("fs.write", &write, facts, false);
        assert_eq!(kind(scene.near.execute(asked).await), ErrorKind::Internal);
        assert!(!scene.workspace.join("new").exists());
        let run = json!({"argv": ["touch", "new"]});
        let asked = scene.permit("terminal.run", &run, Facts::default(), false);
        assert_eq!(kind(scene.near.execute(asked).await), ErrorKind::Internal);
        let read = json!({"path": "file"});
        let facts = scene.facts("fs.read", &read).await;
        let mut asked = scene.permit("fs.read", &read, facts, false);
        asked.permit = None;
        assert_eq!(kind(scene.near.execute(asked).await), ErrorKind::Internal);
    }
}
