//! A workspace for one test, and a way to ask for actions in it.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use protocol::{ErrorKind, Facts, Failure};
use runtime_server::action::Call;
use runtime_server::context::Context;
use runtime_server::output::Output;
use runtime_server::registry;
use runtime_server::workspace::Workspace;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub(crate) const SECRET: &str = "the secret outside";

/// A folder `inside`, which is the workspace, beside a file `secret`, which is not in it.
pub(crate) struct Fixture {
    outer: tempfile::TempDir,
    pub(crate) context: Arc<Context>,
    pub(crate) cancel: CancellationToken,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let outer = tempfile::tempdir().unwrap();
        std::fs::create_dir(outer.path().join("inside")).unwrap();
        std::fs::write(outer.path().join("secret"), SECRET).unwrap();
        let workspace = Workspace::open(&outer.path().join("inside")).unwrap();
        Self {
            outer,
            context: Arc::new(Context::files_only(workspace)),
            cancel: CancellationToken::new(),
        }
    }

    /// A workspace with these files, by path and content.
    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        let fixture = Self::new();
        for (path, content) in files {
            let path = fixture.path(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        fixture
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.context.grounds.workspace().real().join(relative)
    }

    pub(crate) fn outside(&self, relative: &str) -> PathBuf {
        self.outer.path().canonicalize().unwrap().join(relative)
    }

    pub(crate) fn link(&self, name: &str, target: impl AsRef<Path>) {
        symlink(target, self.path(name)).unwrap();
    }

    pub(crate) fn text(&self, relative: &str) -> String {
        std::fs::read_to_string(self.path(relative)).unwrap()
    }

    /// Every path in the workspace, sorted; folders end in `/`.
    pub(crate) fn all(&self) -> Vec<String> {
        fn below(root: &Path, folder: &Path, found: &mut Vec<String>) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let entry = entry.unwrap();
                let path = entry.path();
                let name = path
                    .strip_prefix(root)
                    .unwrap()
                    .to_string_lossy()
                    .into_owned();
                if entry.file_type().unwrap().is_dir() {
                    found.push(format!("{name}/"));
                    below(root, &path, found);
                } else {
                    found.push(name);
                }
            }
        }
        let mut found = Vec::new();
        let root = self.context.grounds.workspace().real();
        below(root, root, &mut found);
        found.sort();
        found
    }

    pub(crate) fn call(&self) -> Call {
        Call {
            context: Arc::clone(&self.context),
            id: "1".to_owned(),
            session: None,
            output: Output::nowhere(),
            cancel: self.cancel.clone(),
        }
    }

    pub(crate) async fn run(&self, action: &str, params: Value) -> Result<Value, Failure> {
        let result = registry::prepare(action, params)?
            .execute(self.call())
            .await?;
        Ok(serde_json::from_str(result.get()).unwrap())
    }

    pub(crate) async fn facts(&self, action: &str, params: Value) -> Result<Facts, Failure> {
        registry::prepare(action, params)?
            .resolve(Arc::clone(&self.context))
            .await
    }

    /// That both asking what it would do and doing it are refused, in the same way.
    pub(crate) async fn refused(&self, action: &str, params: Value) -> Failure {
        let resolved = self.facts(action, params.clone()).await;
        let done = self.run(action, params.clone()).await;
        match (resolved, done) {
            (Err(resolved), Err(done)) => {
                assert_eq!(resolved.kind, done.kind, "{action} {params}");
                done
            }
            other => panic!("{action} {params} was not refused: {other:?}"),
        }
    }

    pub(crate) async fn refused_as(&self, kind: ErrorKind, action: &str, params: Value) {
        let failure = self.refused(action, params.clone()).await;
        assert_eq!(failure.kind, kind, "{action} {params}: {failure}");
    }
}
