//! The database's schema, its versions, and what is refused when one is opened.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::error::OpenError;

/// `WARD`, in the place SQLite keeps for it: tells our databases from others.
const APPLICATION: i64 = 0x5741_5244;

/// One script for each step from a version to the next; the version is how many have run.
const MIGRATIONS: &[&str] = &[
    // A stream's head is kept beside its name, so that an append needs no search for it.
    "CREATE TABLE streams (
        id   INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        head INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE events (
        stream INTEGER NOT NULL REFERENCES streams (id),
        seq    INTEGER NOT NULL,
        at     INTEGER NOT NULL,
        kind   TEXT NOT NULL,
        data   TEXT NOT NULL,
        PRIMARY KEY (stream, seq)
    ) STRICT, WITHOUT ROWID;",
    // Events lie in the order in which they were written, whatever their stream: what is appended
    // together lies together, and a batch changes half as many pages. The index finds a stream's
    // events and its head.
    "CREATE TABLE written (
        id     INTEGER PRIMARY KEY,
        stream TEXT NOT NULL,
        seq    INTEGER NOT NULL,
        at     INTEGER NOT NULL,
        kind   TEXT NOT NULL,
        data   TEXT NOT NULL
    ) STRICT;
    INSERT INTO written (stream, seq, at, kind, data)
        SELECT streams.name, seq, at, kind, data FROM events
        JOIN streams ON streams.id = events.stream ORDER BY stream, seq;
    DROP TABLE events;
    DROP TABLE streams;
    ALTER TABLE written RENAME TO events;
    CREATE UNIQUE INDEX places ON events (stream, seq);",
    // From here on a journal lies beside the database: a Ward that does not know it is refused.
    "",
    // A row can hold several events, up to the place `last`.
    "ALTER TABLE events ADD COLUMN last INTEGER;",
];

/// Events are appended many at a time: in larger pages than the usual 4,096 bytes that costs less.
const PAGE: i64 = 8192;

/// Up to this size a database is read through when it is opened; beyond, it would delay the start,
/// and damage is found when the place is read.
const CHECKED_BELOW: u64 = 16 << 20;

/// Opens the one connection that writes, after checking what is there.
pub(crate) fn open(path: &Path) -> Result<Connection, OpenError> {
    let sqlite = |why: rusqlite::Error| refusal(path, why);
    let mut connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )
    .map_err(sqlite)?;
    connection
        .busy_timeout(Duration::from_secs(5))
        .map_err(sqlite)?;
    let found = version(&connection, path)?;
    check(&connection, path)?;
    // Of a new database; one that is there keeps its own.
    connection
        .pragma_update(None, "page_size", PAGE)
        .map_err(sqlite)?;
    connection
        .pragma_update(None, "journal_mode", "WAL")
        .map_err(sqlite)?;
    connection
        .pragma_update(None, "synchronous", "NORMAL")
        .map_err(sqlite)?;
    plan_once(&connection).map_err(sqlite)?;
    migrate(&mut connection, found).map_err(sqlite)?;
    Ok(connection)
}

/// Has a statement planned when it is prepared, and not again for each value that is bound to it.
pub(crate) fn plan_once(connection: &Connection) -> rusqlite::Result<()> {
    let stable = DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG;
    connection.set_db_config(stable, true).map(drop)
}

/// How many migrations have run on what is there. Refuses what is not ours, and what is newer.
fn version(connection: &Connection, path: &Path) -> Result<usize, OpenError> {
    let number = |sql: &str| {
        connection
            .query_row(sql, [], |row| row.get::<_, i64>(0))
            .map_err(|why| refusal(path, why))
    };
    let application = number("PRAGMA application_id")?;
    let found = number("PRAGMA user_version")?;
    let tables = number("SELECT count(*) FROM sqlite_schema")?;
    if application == 0 && found == 0 && tables == 0 {
        return Ok(0);
    }
    if application != APPLICATION {
        return Err(OpenError::Foreign {
            path: path.to_owned(),
        });
    }
    let known = MIGRATIONS.len();
    match usize::try_from(found) {
        Ok(found) if found <= known => Ok(found),
        _ => Err(OpenError::Newer {
            path: path.to_owned(),
            found,
            known: known as i64,
        }),
    }
}

fn check(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    if path.metadata().map_or(0, |file| file.len()) > CHECKED_BELOW {
        return Ok(());
    }
    let verdict: String = connection
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(|why| refusal(path, why))?;
    if verdict == "ok" {
        return Ok(());
    }
    Err(OpenError::Damaged {
        path: path.to_owned(),
        why: verdict.lines().collect::<Vec<_>>().join(" "),
    })
}

fn migrate(connection: &mut Connection, found: usize) -> rusqlite::Result<()> {
    if found == MIGRATIONS.len() {
        return Ok(());
    }
    let transaction = connection.transaction()?;
    for script in MIGRATIONS.iter().skip(found) {
        transaction.execute_batch(script)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", MIGRATIONS.len() as i64)?;
    transaction.commit()
}

fn refusal(path: &Path, why: rusqlite::Error) -> OpenError {
    let path = path.to_owned();
    match why.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => OpenError::Foreign { path },
        Some(ErrorCode::DatabaseCorrupt) => OpenError::Damaged {
            path,
            why: why.to_string(),
        },
        _ => OpenError::Sqlite { path, why },
    }
}
