//! The file of tokens: what is in it, who may change it, and that it fails closed.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up has failed"
)]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use gate::{Actor, Agent};
use protocol::Mode;
use serde_json::Value;
use server::auth::{Identity, NewAgent, TokenKind, Tokens, TokensError};

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

fn agent(workspace: &Path, person: &str) -> NewAgent {
    NewAgent {
        name: "watcher-1".into(),
        role: "watcher".into(),
        mode: Mode::Sandbox,
        workspace: workspace.to_owned(),
        person: person.into(),
    }
}

#[test]
fn the_first_person_is_made_once_with_a_token_for_their_eyes_alone() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("a/config");
    let tokens = Tokens::open(&config).unwrap();
    assert!(!config.exists());
    let first = tokens.first_person().unwrap();
    assert!(first.made);
    assert_eq!(first.file, config.join("token"));
    assert_eq!(mode(&config), 0o700);
    for file in ["token", "tokens.json", "tokens.lock"] {
        assert_eq!(mode(&config.join(file)), 0o600, "{file}");
    }
    let again = tokens.first_person().unwrap();
    assert_eq!((again.made, &again.id), (false, &first.id));

    let own = Tokens::own(&config).unwrap().unwrap();
    // 256 bits behind what says what it is.
    assert_eq!(own.strip_prefix("ward_person_").unwrap().len(), 43);
    let passed = tokens.authenticate(&own).unwrap();
    assert_eq!(
        passed.identity,
        Identity::Actor(Actor::Person(first.name.clone()))
    );
    let written = fs::read_to_string(config.join("tokens.json")).unwrap();
    assert!(!written.contains(&own));
    let written: Value = serde_json::from_str(&written).unwrap();
    let token = &written["tokens"][0];
    assert!(token["hash"].as_str().unwrap().starts_with("sha256:"));
    assert_eq!(
        (&token["kind"], &token["id"]),
        (&"person".into(), &first.id.into())
    );

    // A person who is revoked leaves no token behind, and the next start makes a new one.
    tokens.revoke(passed.token.as_deref().unwrap()).unwrap();
    assert_eq!(tokens.authenticate(&own), None);
    assert_eq!(Tokens::own(&config).unwrap(), None);
    assert!(tokens.first_person().unwrap().made);
}

#[test]
fn each_token_is_who_it_was_made_for_and_nobody_once_it_is_revoked() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config");
    let tokens = Tokens::open(&config).unwrap();
    let first = tokens.first_person().unwrap();
    let (bob_id, bob) = tokens.add_person("bob").unwrap();
    let (id, secret) = tokens.add_agent(agent(folder.path(), "bob")).unwrap();
    let (runtime_id, runtime) = tokens.add_runtime("notebook").unwrap();
    let real = folder.path().canonicalize().unwrap();
    let who = |secret: &str| tokens.authenticate(secret).map(|passed| passed.identity);
    let is_agent = Some(Identity::Actor(Actor::Agent(Agent {
        id: id.clone(),
        person: "bob".into(),
        role: "watcher".into(),
        mode: Mode::Sandbox,
        workspace: real,
    })));
    assert_eq!(
        who(&bob),
        Some(Identity::Actor(Actor::Person("bob".into())))
    );
    assert_eq!(who(&secret), is_agent);
    assert_eq!(
        who(&runtime),
        Some(Identity::Runtime {
            id: runtime_id,
            name: "notebook".into()
        })
    );
    let listed = tokens.list().unwrap();
    assert_eq!(listed.len(), 4);
    let kinds = listed
        .iter()
        .filter(|token| token.kind == TokenKind::Person);
    assert_eq!(kinds.count(), 2);

    // Another process sees it at once, and the other way round.
    let other = Tokens::open(&config).unwrap();
    other.revoke(&id).unwrap();
    assert_eq!(who(&secret), None);
    let (_, second) = other.add_agent(agent(folder.path(), "bob")).unwrap();
    assert!(who(&second).is_some());
    other.revoke(&bob_id).unwrap();
    assert_eq!(who(&bob), None);
    assert_eq!(who(&second), None);
    assert!(matches!(
        other.revoke("none"),
        Err(TokensError::UnknownToken(_))
    ));
    assert!(!tokens.first_person().unwrap().made);
    assert_eq!(tokens.first_person().unwrap().id, first.id);
}

#[test]
fn what_cannot_be_a_token_is_refused_with_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = Tokens::open(&folder.path().join("config")).unwrap();
    tokens.first_person().unwrap();
    for name in ["", ".", "..", "a/b", "ä", "a b", "-x", &"a".repeat(65)] {
        let refused = tokens.add_person(name);
        assert!(matches!(refused, Err(TokensError::BadName(_))), "{name:?}");
    }
    let refused = tokens.add_agent(agent(folder.path(), "nobody"));
    assert!(matches!(refused, Err(TokensError::UnknownPerson(_))));
    let person = tokens.first_person().unwrap().name;
    for workspace in ["nowhere", "config/token"] {
        let refused = tokens.add_agent(agent(&folder.path().join(workspace), &person));
        assert!(matches!(refused, Err(TokensError::BadWorkspace { .. })));
    }
    assert_eq!(tokens.list().unwrap().len(), 1);
}

#[test]
fn a_file_that_is_broken_or_open_to_others_lets_nobody_in_and_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config");
    let tokens = Tokens::open(&config).unwrap();
    tokens.first_person().unwrap();
    let own = Tokens::own(&config).unwrap().unwrap();
    let file = config.join("tokens.json");
    let good = fs::read(&file).unwrap();
    let passed = tokens.authenticate(&own).unwrap();

    for broken in ["", "{", "[]", r#"{"version": 2, "tokens": []}"#] {
        fs::write(&file, broken).unwrap();
        assert_eq!(tokens.authenticate(&own), None, "{broken}");
        assert!(!tokens.holds(&passed.pass));
        let error = tokens.add_person("bob").unwrap_err();
        assert!(matches!(error, TokensError::Broken { .. }), "{error}");
        assert!(Tokens::open(&config).is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), broken);
    }
    fs::write(&file, &good).unwrap();
    assert!(tokens.authenticate(&own).is_some());

    fs::set_permissions(&file, Permissions::from_mode(0o620)).unwrap();
    assert_eq!(tokens.authenticate(&own), None);
    let error = tokens.add_person("bob").unwrap_err();
    assert!(matches!(error, TokensError::Exposed { .. }), "{error}");
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    assert!(tokens.authenticate(&own).is_some());

    // Nobody has a token where there is no file.
    fs::remove_file(&file).unwrap();
    assert_eq!(tokens.authenticate(&own), None);
}

#[test]
fn many_who_change_it_at_once_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config");
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let config = &config;
            scope.spawn(move || {
                let tokens = Tokens::open(config).unwrap();
                for number in 0..5 {
                    tokens.add_person(&format!("p{thread}-{number}")).unwrap();
                }
            });
        }
    });
    assert_eq!(Tokens::open(&config).unwrap().list().unwrap().len(), 40);
}
