//! Where the chain ends, and the file outside the store that says so too.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use protocol::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::Seq;

/// The last entry of the chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Head {
    /// Its place.
    #[schemars(with = "u64")]
    pub seq: Seq,
    /// Its hash.
    pub hash: Digest,
}

impl Head {
    /// What the first entry follows.
    pub(super) fn before_the_first() -> Self {
        Self {
            seq: Seq::START,
            hash: Digest::from_hash(&[0; 32]),
        }
    }
}

/// What the file outside says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outside {
    pub(super) head: Head,
    /// Up to where everything that began had ended.
    pub(super) quiet: Seq,
}

/// What was found in place of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    Nothing,
    /// Something that Ward did not write.
    Unreadable,
    Outside(Outside),
}

/// Tells our lines from others, and this form of them from later ones.
const MARK: &str = "ward-ledger-head-1";

/// The file: one line, always as long, so that it is replaced in one write.
#[derive(Debug)]
pub(super) struct HeadFile {
    path: PathBuf,
    file: File,
}

impl HeadFile {
    /// Opens it for writing; it is made, for its owner alone, where there is none.
    pub(super) fn open(path: PathBuf) -> io::Result<Self> {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
            .open(&path)?;
        file.set_permissions(Permissions::from_mode(0o600))?;
        Ok(Self { path, file })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces the line. It is not waited for the disk: the store is not waited for either.
    pub(super) fn set(&self, head: &Head, quiet: Seq) -> io::Result<()> {
        self.file.write_all_at(line(head, quiet).as_bytes(), 0)
    }

    /// Whatever was there before the first line is written, nothing of it stays behind it.
    pub(super) fn begin(&self, head: &Head, quiet: Seq) -> io::Result<()> {
        self.set(head, quiet)?;
        self.file.set_len(line(head, quiet).len() as u64)
    }
}

/// What the file at this path says.
pub(super) fn look(path: &Path) -> io::Result<Found> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(parse(&bytes).map_or(Found::Unreadable, Found::Outside)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Found::Nothing),
        Err(error) => Err(error),
    }
}

fn line(head: &Head, quiet: Seq) -> String {
    let (seq, quiet) = (head.seq.get(), quiet.get());
    format!("{MARK} {seq:020} {} {quiet:020}\n", head.hash)
}

fn parse(bytes: &[u8]) -> Option<Outside> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut parts = text.strip_suffix('\n')?.split(' ');
    if parts.next()? != MARK {
        return None;
    }
    let seq = Seq::new(parts.next()?.parse().ok()?);
    let hash = serde_json::from_value(parts.next()?.into()).ok()?;
    let quiet = Seq::new(parts.next()?.parse().ok()?);
    let head = Head { seq, hash };
    // A line that would not be written like this was not written by us.
    (line(&head, quiet) == text).then_some(Outside { head, quiet })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_replaces_the_one_before_whole_and_nothing_else_is_taken_for_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("head");
        assert_eq!(look(&path).unwrap(), Found::Nothing);
        std::fs::write(&path, "x".repeat(500)).unwrap();
        assert_eq!(look(&path).unwrap(), Found::Unreadable);

        let file = HeadFile::open(path.clone()).unwrap();
        let head = |seq| Head {
            seq: Seq::new(seq),
            hash: Digest::of(b"x"),
        };
        file.begin(&head(u64::MAX), Seq::new(9)).unwrap();
        file.set(&head(7), Seq::new(3)).unwrap();
        let outside = Outside {
            head: head(7),
            quiet: Seq::new(3),
        };
        assert_eq!(look(&path).unwrap(), Found::Outside(outside));
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);

        let text = std::fs::read_to_string(&path).unwrap();
        for other in ["", "ward", &text[1..], text.trim_end(), &text.repeat(2)] {
            assert_eq!(parse(other.as_bytes()), None, "{other}");
        }
    }
}
