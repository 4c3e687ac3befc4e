//! `fs.list`, `fs.glob` and `fs.search`.

use std::os::unix::ffi::OsStrExt as _;

use protocol::ErrorKind;
use serde_json::{Value, json};

use crate::support::Fixture;

fn paths(answer: &Value, field: &str) -> Vec<String> {
    let list = answer[field].as_array().unwrap();
    list.iter()
        .map(|entry| entry["path"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn a_folder_is_listed_sorted_to_its_depth_and_hidden_names_only_when_asked_for() {
    let fixture = Fixture::with(&[("b/c/d", ""), ("b-x", ""), (".hidden", ""), ("a", "")]);
    fixture.link("b/up", "../..");
    for (params, expected) in [
        (json!({}), vec!["a", "b", "b-x"]),
        (json!({"path": "b"}), vec!["b/c", "b/up"]),
        (json!({"depth": 2}), vec!["a", "b", "b/c", "b/up", "b-x"]),
        (
            json!({"depth": 9, "hidden": true}),
            vec![".hidden", "a", "b", "b/c", "b/c/d", "b/up", "b-x"],
        ),
    ] {
        let answer = fixture.run("fs.list", params.clone()).await.unwrap();
        assert_eq!(paths(&answer, "entries"), expected, "{params}");
        assert_eq!(answer["truncated"], false);
    }
    fixture
        .refused_as(ErrorKind::NotADirectory, "fs.list", json!({"path": "a"}))
        .await;
    fixture
        .refused_as(ErrorKind::InvalidParams, "fs.list", json!({"depth": 0}))
        .await;
}

#[tokio::test]
async fn a_name_that_is_not_utf8_is_listed_and_harms_nothing() {
    let fixture = Fixture::with(&[("plain", "needle")]);
    let name = std::ffi::OsStr::from_bytes(b"bad\xff");
    std::fs::write(fixture.path("").join(name), "needle").unwrap();
    let listed = fixture.run("fs.list", json!({})).await.unwrap();
    assert_eq!(paths(&listed, "entries"), ["bad\u{fffd}", "plain"]);
    let globbed = fixture
        .run("fs.glob", json!({"pattern": "*"}))
        .await
        .unwrap();
    assert_eq!(paths(&globbed, "entries"), ["bad\u{fffd}", "plain"]);
    let found = fixture
        .run("fs.search", json!({"pattern": "needle"}))
        .await
        .unwrap();
    assert_eq!(paths(&found, "matches"), ["bad\u{fffd}", "plain"]);
}

#[tokio::test]
async fn a_huge_folder_is_cut_at_the_limit_and_the_first_names_are_kept() {
    let fixture = Fixture::new();
    for number in 0..10_050 {
        std::fs::write(fixture.path(&format!("{number:05}")), "").unwrap();
    }
    let answer = fixture.run("fs.list", json!({})).await.unwrap();
    let names = paths(&answer, "entries");
    assert_eq!(
        (names.len(), names[0].as_str(), names[9999].as_str()),
        (10_000, "00000", "09999")
    );
    assert_eq!(answer["truncated"], true);
    let answer = fixture
        .run("fs.glob", json!({"pattern": "*"}))
        .await
        .unwrap();
    assert_eq!(
        (paths(&answer, "entries").len(), &answer["truncated"]),
        (10_000, &json!(true))
    );
}

fn project() -> Fixture {
    Fixture::with(&[
        (".gitignore", "target/\n*.log\n!keep.log\n"),
        ("src/main.rs", "fn main() {}\n"),
        ("src/deep/lib.rs", "pub fn main_thing() {}\n"),
        ("src/deep/.gitignore", "/made.rs\n"),
        ("src/deep/made.rs", "fn main() {}\n"),
        ("target/debug/out.rs", "fn main() {}\n"),
        ("a.log", "fn main\n"),
        ("keep.log", "fn main\n"),
        (".github/x.rs", "fn main\n"),
        (".git/config.rs", "fn main\n"),
    ])
}

#[tokio::test]
async fn glob_finds_files_below_a_folder_and_leaves_out_what_is_ignored() {
    let fixture = project();
    fixture.link("src/link.rs", "main.rs");
    fixture.link("src/out", "/etc");
    for (params, expected) in [
        (json!({"pattern": "*.rs"}), vec![]),
        (
            json!({"pattern": "src/*.rs"}),
            vec!["src/link.rs", "src/main.rs"],
        ),
        (
            json!({"pattern": "**/*.rs"}),
            vec![
                ".github/x.rs",
                "src/deep/lib.rs",
                "src/link.rs",
                "src/main.rs",
            ],
        ),
        (
            json!({"pattern": "**/*.{rs,log}", "path": "src/deep"}),
            vec!["src/deep/lib.rs"],
        ),
        (json!({"pattern": "*.log"}), vec!["keep.log"]),
        (json!({"pattern": "src/out/*"}), vec![]),
    ] {
        let answer = fixture.run("fs.glob", params.clone()).await.unwrap();
        assert_eq!(paths(&answer, "entries"), expected, "{params}");
    }
    for pattern in ["", "/etc/*", "../*", "a/../../*", "[", "{a"] {
        fixture
            .refused_as(
                ErrorKind::BadPattern,
                "fs.glob",
                json!({"pattern": pattern}),
            )
            .await;
    }
}

#[tokio::test]
async fn search_finds_lines_with_their_place_and_context_and_leaves_out_what_is_ignored() {
    let fixture = project();
    let answer = fixture
        .run("fs.search", json!({"pattern": r"fn\s+main"}))
        .await
        .unwrap();
    assert_eq!(
        answer,
        json!({
            "matches": [
                {"path": ".github/x.rs", "line": 1, "column": 1, "text": "fn main"},
                {"path": "keep.log", "line": 1, "column": 1, "text": "fn main"},
                {"path": "src/deep/lib.rs", "line": 1, "column": 5, "text": "pub fn main_thing() {}"},
                {"path": "src/main.rs", "line": 1, "column": 1, "text": "fn main() {}"},
            ],
            "truncated": false,
        })
    );
    for (params, expected) in [
        (
            json!({"pattern": "main", "glob": "*.rs", "path": "src"}),
            vec!["src/deep/lib.rs", "src/main.rs"],
        ),
        (
            json!({"pattern": "main", "glob": "deep/**", "path": "src"}),
            vec!["src/deep/lib.rs"],
        ),
        (
            json!({"pattern": "main", "glob": "!*.rs"}),
            vec!["keep.log"],
        ),
        (json!({"pattern": "MAIN"}), vec![]),
        (
            json!({"pattern": "(?i)MAIN", "path": "src/main.rs"}),
            vec!["src/main.rs"],
        ),
        (
            json!({"pattern": "main", "path": "src/deep"}),
            vec!["src/deep/lib.rs"],
        ),
        (
            json!({"pattern": "main", "path": "target"}),
            vec!["target/debug/out.rs"],
        ),
    ] {
        let answer = fixture.run("fs.search", params.clone()).await.unwrap();
        assert_eq!(paths(&answer, "matches"), expected, "{params}");
    }
}

#[tokio::test]
async fn search_gives_the_lines_around_a_match_also_where_matches_are_neighbours() {
    let fixture = Fixture::with(&[("f", "1\n2 x\n3 x\r\n4\n5\n6\n7 äx\n")]);
    let answer = fixture
        .run("fs.search", json!({"pattern": "x", "context": 1}))
        .await
        .unwrap();
    assert_eq!(
        answer["matches"],
        json!([
            {"path": "f", "line": 2, "column": 3, "text": "2 x", "before": ["1"], "after": ["3 x"]},
            {"path": "f", "line": 3, "column": 3, "text": "3 x", "before": ["2 x"], "after": ["4"]},
            {"path": "f", "line": 7, "column": 4, "text": "7 äx", "before": ["6"]},
        ])
    );
}

#[tokio::test]
async fn search_stops_at_its_limit_and_cuts_long_lines_around_the_match() {
    let long = format!("{}needle{}", "ä".repeat(5000), "z".repeat(5000));
    let fixture = Fixture::with(&[("a", &"needle\n".repeat(300)), ("b", &long)]);
    let answer = fixture
        .run("fs.search", json!({"pattern": "needle"}))
        .await
        .unwrap();
    assert_eq!(
        (paths(&answer, "matches").len(), &answer["truncated"]),
        (200, &json!(true))
    );
    let answer = fixture
        .run(
            "fs.search",
            json!({"pattern": "needle", "limit": 300, "path": "a"}),
        )
        .await
        .unwrap();
    assert_eq!(
        (paths(&answer, "matches").len(), &answer["truncated"]),
        (300, &json!(false))
    );
    let answer = fixture
        .run("fs.search", json!({"pattern": "needle", "path": "b"}))
        .await
        .unwrap();
    let found = &answer["matches"][0];
    assert_eq!(found["column"], 5001);
    assert_eq!(
        found["text"],
        format!("…{}needle{}…", "ä".repeat(200), "z".repeat(794))
    );
    for limit in [0, 10_001] {
        fixture
            .refused_as(
                ErrorKind::InvalidParams,
                "fs.search",
                json!({"pattern": "x", "limit": limit}),
            )
            .await;
    }
}

#[tokio::test]
async fn search_skips_binary_files_special_files_and_links() {
    let fixture = Fixture::with(&[("text", "needle\n")]);
    std::fs::write(fixture.path("binary"), b"needle\0\n").unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, fixture.path("fifo"), 0o644.into()).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, fixture.path(".gitignore"), 0o644.into()).unwrap();
    std::fs::write(fixture.outside("needle"), "needle").unwrap();
    fixture.link("out", "../needle");
    fixture.link("up", "..");
    let answer = fixture
        .run("fs.search", json!({"pattern": "needle"}))
        .await
        .unwrap();
    assert_eq!(paths(&answer, "matches"), ["text"]);
}

#[tokio::test]
async fn a_pattern_that_cannot_be_read_is_refused_with_a_hint() {
    let fixture = Fixture::new();
    for params in [
        json!({"pattern": "("}),
        json!({"pattern": "a\nb"}),
        json!({"pattern": "a{1000000}{1000000}"}),
        json!({"pattern": "a", "glob": "["}),
    ] {
        let failure = fixture.refused("fs.search", params.clone()).await;
        assert_eq!(failure.kind, ErrorKind::BadPattern, "{params}");
        assert!(failure.message.contains("Write it"), "{failure}");
    }
}

#[tokio::test]
async fn a_cancelled_search_ends() {
    let fixture = Fixture::with(&[("a", "x")]);
    fixture.cancel.cancel();
    let ended = fixture.run("fs.search", json!({"pattern": "x"})).await;
    assert_eq!(ended.unwrap_err().kind, ErrorKind::Cancelled);
}

#[tokio::test]
async fn the_lines_around_many_matches_do_not_fill_the_memory() {
    let line = format!("needle {}\n", "x".repeat(900));
    let fixture = Fixture::with(&[("a", &line.repeat(3000))]);
    let params = json!({"pattern": "needle", "context": 20, "limit": 10_000});
    let answer = fixture.run("fs.search", params).await.unwrap();
    assert_eq!(answer["truncated"], true);
    assert!(answer.to_string().len() < 9 * 1024 * 1024);
}
