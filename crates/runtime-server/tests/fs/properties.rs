//! What holds for every input.

use proptest::prelude::*;
use runtime_server::workspace::Final;
use serde_json::json;

use crate::support::{Fixture, SECRET};

fn tree() -> Fixture {
    let fixture = Fixture::with(&[
        ("a/b/file", "inside"),
        ("a/file", "inside"),
        ("file", "inside"),
    ]);
    fixture.link("up", "..");
    fixture.link("a/up", "../..");
    fixture.link("out", fixture.outside("secret"));
    fixture.link("root", "/");
    fixture.link("a/link", "b");
    fixture.link("a/absolute", fixture.path("a/b"));
    fixture.link("round", "./round");
    fixture
}

/// Paths made of what matters to a resolver, and of anything.
fn path() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        8 => prop::sample::select(vec![
            "a", "b", "file", "up", "out", "root", "link", "absolute", "round", "..", ".", "", "~",
            "proc", "self", "etc", "secret", "inside", "new",
        ]).prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    (prop::collection::vec(part, 0..8), prop::bool::weighted(0.2)).prop_map(|(parts, absolute)| {
        format!("{}{}", if absolute { "/" } else { "" }, parts.join("/"))
    })
}

fn run(fixture: &Fixture, action: &str, params: serde_json::Value) -> Option<serde_json::Value> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(fixture.run(action, params)).ok()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_found_is_inside(path in path()) {
        let fixture = tree();
        for last in [Final::Followed, Final::Itself] {
            if let Ok(found) = fixture.context.grounds.workspace().find(&path, last) {
                prop_assert!(found.real().starts_with(fixture.path("")));
                prop_assert_eq!(fixture.path("").join(found.relative()), found.real());
            }
        }
        if let Ok(place) = fixture.context.grounds.workspace().place(&path) {
            prop_assert!(place.real().starts_with(fixture.path("")));
        }
        if let Some(answer) = run(&fixture, "fs.read", json!({"path": path})) {
            prop_assert_eq!(&answer["content"], "inside");
        }
    }

    #[test]
    fn no_change_reaches_outside(path in path()) {
        let fixture = tree();
        let _ = run(&fixture, "fs.write", json!({"path": path, "content": "changed"}));
        let _ = run(&fixture, "fs.move", json!({"from": path, "to": "moved"}));
        let _ = run(&fixture, "fs.delete", json!({"path": path, "recursive": true}));
        prop_assert_eq!(std::fs::read_to_string(fixture.outside("secret")).unwrap(), SECRET);
        let beside = std::fs::read_dir(fixture.outside("")).unwrap().count();
        prop_assert_eq!(beside, 2);
    }

    #[test]
    fn no_patch_pattern_or_edit_panics(
        patch in "((diff --git a/f b/f|--- a/file|\\+\\+\\+ b/file|@@ -[0-9]{1,3},?[0-9]? \\+[0-9],?[0-9]? @@|[ +-]inside|\\\\ No newline|rename from \"?a|\\PC{0,9})\n){0,12}",
        pattern in "\\PC{0,12}",
        old in "\\PC{0,3}",
    ) {
        let fixture = tree();
        let _ = run(&fixture, "fs.patch", json!({"patch": patch}));
        let _ = run(&fixture, "fs.glob", json!({"pattern": pattern}));
        let _ = run(&fixture, "fs.search", json!({"pattern": pattern, "glob": pattern}));
        let _ = run(&fixture, "fs.edit", json!({"path": "file", "edits": [{"old": old, "new": "x"}]}));
    }
}
