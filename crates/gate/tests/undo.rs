//! Who may undo.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up has failed"
)]

use std::sync::Arc;
use std::time::Duration;

use gate::redact::Redactor;
use gate::runtime::Launch;
use gate::{Actor, Agent, Gate, GateOptions, Undo};
use protocol::{ErrorKind, Mode};
use store_sqlite::{DataFolder, SqliteStore};

#[tokio::test]
async fn an_agent_can_undo_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().join("work");
    std::fs::create_dir(&workspace).unwrap();
    let data = DataFolder::own(&folder.path().join("data"), "test").unwrap();
    let options = GateOptions {
        config: folder.path().join("config"),
        data: data.path().to_owned(),
        head: folder.path().join("head"),
        workspace: workspace.clone(),
        home: None,
        own: Arc::new([]),
        launch: Launch {
            program: "/bin/false".into(),
            arguments: Vec::new(),
            near: None,
        },
        patience: Duration::from_secs(1),
        redactor: Arc::new(Redactor::new([], []).unwrap()),
    };
    let store = Arc::new(SqliteStore::open(data).unwrap());
    let gate = Gate::open(store, options).await.unwrap();
    let agent = Actor::Agent(Agent {
        id: "a".into(),
        person: "ada".into(),
        role: "backend".into(),
        mode: Mode::Full,
        workspace,
    });
    for (actor, kind) in [
        (agent, ErrorKind::Forbidden),
        // A person may; there is only nothing yet.
        (Actor::Person("ada".into()), ErrorKind::Unknown),
    ] {
        for what in [
            Undo::Action("x".into()),
            Undo::Session("x".into()),
            Undo::Last { workspace: None },
        ] {
            let failure = gate.undo(&actor, what).await.unwrap_err();
            assert_eq!(failure.kind, kind, "{failure}");
        }
    }
}
