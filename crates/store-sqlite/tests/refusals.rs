//! What is refused when a data folder is opened: each with a sentence, and left as it was.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up has failed"
)]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use store::{Append, Expected, Millis, NewEvent, Store as _, StreamName};
use store_sqlite::{DataFolder, OpenError, SqliteStore};

fn open(folder: &Path) -> Result<SqliteStore, OpenError> {
    SqliteStore::open(DataFolder::own(folder, "a test")?)
}

fn closed_folder() -> tempfile::TempDir {
    tempfile::Builder::new()
        .permissions(PermissionsExt::from_mode(0o700))
        .tempdir()
        .unwrap()
}

/// The refusal, in words, after checking that the file is still what it was.
#[track_caller]
fn refused(folder: &tempfile::TempDir) -> String {
    let file = folder.path().join("ward.db");
    let before = std::fs::read(&file).unwrap();
    let error = open(folder.path()).unwrap_err();
    assert_eq!(
        std::fs::read(&file).unwrap(),
        before,
        "the file was changed"
    );
    error
        .to_string()
        .replace(&folder.path().display().to_string(), "DATA")
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let folder = closed_folder();
    std::fs::write(folder.path().join("ward.db"), "dear diary".repeat(1000)).unwrap();
    assert_eq!(
        refused(&folder),
        "The file DATA/ward.db is not a database of Ward's. Move it away, or name another folder with --data."
    );
}

#[test]
fn a_database_of_somebody_else_is_refused() {
    let folder = closed_folder();
    rusqlite::Connection::open(folder.path().join("ward.db"))
        .unwrap()
        .execute_batch("CREATE TABLE bookmarks (url TEXT)")
        .unwrap();
    assert_eq!(
        refused(&folder),
        "The file DATA/ward.db is not a database of Ward's. Move it away, or name another folder with --data."
    );
}

#[test]
fn a_database_of_a_newer_ward_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()).unwrap());
    rusqlite::Connection::open(folder.path().join("ward.db"))
        .unwrap()
        .pragma_update(None, "user_version", 99)
        .unwrap();
    assert_eq!(
        refused(&folder),
        "The database DATA/ward.db was written by a newer Ward (its schema is 99, this Ward knows 4). Use that Ward, or name another folder with --data."
    );
}

#[tokio::test]
async fn a_damaged_database_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let events = (0..500)
        .map(|number| NewEvent {
            kind: "happened".into(),
            at: Millis(number),
            data: serde_json::json!({ "words": "x".repeat(100) }).into(),
        })
        .collect();
    store
        .append(vec![Append {
            stream: StreamName::new("a").unwrap(),
            expected: Expected::Any,
            events,
        }])
        .await
        .unwrap();
    drop(store);
    let file = folder.path().join("ward.db");
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2 / 4096 * 4096;
    bytes[middle..middle + 4096].fill(0xA5);
    std::fs::write(&file, bytes).unwrap();
    let sentence = refused(&folder);
    assert!(
        sentence.starts_with("The database DATA/ward.db is damaged ("),
        "{sentence}"
    );
}

#[test]
fn a_folder_has_one_owner_and_the_second_is_told_who() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("deep/data");
    let owner = open(&data).unwrap();
    let mode = data.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o700);
    assert_eq!(
        open(&data).unwrap_err().to_string(),
        format!(
            "The data folder {} is in use by `a test`, process {}. Stop that one, or name another folder with --data.",
            data.display(),
            std::process::id()
        )
    );
    drop(owner);
    open(&data).unwrap();
}

#[test]
fn a_folder_that_others_can_enter_is_refused_unless_it_is_empty() {
    let open_to_others = || {
        tempfile::Builder::new()
            .permissions(PermissionsExt::from_mode(0o755))
            .tempdir()
            .unwrap()
    };
    let folder = open_to_others();
    drop(open(folder.path()).unwrap());
    let closed = folder.path().metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(closed, 0o700);

    let folder = open_to_others();
    std::fs::write(folder.path().join("letter"), "").unwrap();
    assert_eq!(
        open(folder.path()).unwrap_err().to_string(),
        format!(
            "The data folder {0} can be entered by other users (mode 755). Close it with `chmod 700 {0}`, or name another folder with --data.",
            folder.path().display()
        )
    );
}
