//! Where the chain ends, and the file outside the store that says so too.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use mapped::Mapped;
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

/// Tells our lines from others, and this form of them from later ones. Before each line there was one
/// place for it, and no sum in it.
const MARK: &str = "ward-ledger-head-2";
const ONE: &str = "ward-ledger-head-1";

/// How long a line is, always.
const LENGTH: usize = MARK.len() + 1 + 20 + 1 + 71 + 1 + 20 + 1 + 8 + 1;

/// The file: two places for a line, written in turn. Who is killed while one is written leaves the
/// other, which says what was before; the line that was begun has a wrong sum.
#[derive(Debug)]
pub(super) struct HeadFile {
    path: PathBuf,
    file: File,
    mapped: Option<Mapped>,
    /// How often a line was written.
    turn: AtomicUsize,
}

impl HeadFile {
    /// Opens it for writing; it is made, for its owner alone, where there is none.
    pub(super) fn open(path: PathBuf) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
            .open(&path)?;
        file.set_permissions(Permissions::from_mode(0o600))?;
        Ok(Self {
            path,
            file,
            mapped: None,
            turn: AtomicUsize::new(0),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the line in the place of the one before the last. It is not waited for the disk: the
    /// store is not waited for either.
    pub(super) fn set(&self, head: &Head, quiet: Seq) -> io::Result<()> {
        let line = line(head, quiet);
        let at = self.turn.fetch_add(1, Ordering::Relaxed) % 2 * LENGTH;
        match &self.mapped {
            Some(mapped) => mapped.change(at..at + LENGTH, |place| {
                place.copy_from_slice(line.as_bytes());
            }),
            None => self.file.write_all_at(line.as_bytes(), at as u64),
        }
    }

    /// Writes both lines, in one write; whatever was there before, nothing of it stays behind them.
    pub(super) fn begin(&mut self, head: &Head, quiet: Seq) -> io::Result<()> {
        let both = line(head, quiet).repeat(2);
        self.file.write_all_at(both.as_bytes(), 0)?;
        self.file.set_len(both.len() as u64)?;
        self.mapped = match Mapped::front(&self.file, &self.path, both.len() as u64) {
            Ok(mapped) => mapped,
            Err(error) => {
                tracing::info!(%error, "the ledger's head outside is written as any file is");
                None
            }
        };
        Ok(())
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
    let mut line = String::with_capacity(LENGTH);
    line.push_str(MARK);
    line.push(' ');
    push_digits(&mut line, seq);
    line.push(' ');
    line.push_str(head.hash.as_str());
    line.push(' ');
    push_digits(&mut line, quiet);
    let sum = crc32fast::hash(line.as_bytes());
    // Never fails on a string.
    let _ = writeln!(line, " {sum:08x}");
    line
}

/// Adds a number with all of its twenty digits.
fn push_digits(line: &mut String, mut number: u64) {
    let mut digits = [b'0'; 20];
    for digit in digits.iter_mut().rev() {
        *digit += u8::try_from(number % 10).unwrap_or_default();
        number /= 10;
    }
    line.push_str(&String::from_utf8_lossy(&digits));
}

fn parse(bytes: &[u8]) -> Option<Outside> {
    if bytes.starts_with(ONE.as_bytes()) {
        return parse_one(bytes);
    }
    let (first, second) = bytes.split_at_checked(LENGTH)?;
    let lines = [first, second].map(parse_line);
    let sound = lines.into_iter().flatten();
    // One of them says what was before.
    (second.len() == LENGTH).then(|| sound.max_by_key(|line| (line.head.seq, line.quiet)))?
}

fn parse_line(bytes: &[u8]) -> Option<Outside> {
    let text = std::str::from_utf8(bytes).ok()?;
    let outside = parts(text.strip_prefix(MARK)?)?;
    // A line that would not be written like this was not written by us.
    (line(&outside.head, outside.quiet) == text).then_some(outside)
}

/// As the Wards before this one wrote it: one line, replaced in one write.
fn parse_one(bytes: &[u8]) -> Option<Outside> {
    let text = std::str::from_utf8(bytes).ok()?;
    let outside = parts(text.strip_prefix(ONE)?)?;
    let (head, quiet) = (&outside.head, outside.quiet.get());
    let line = format!("{ONE} {:020} {} {quiet:020}\n", head.seq.get(), head.hash);
    (line == text).then_some(outside)
}

fn parts(text: &str) -> Option<Outside> {
    let mut parts = text.split_ascii_whitespace();
    let seq = Seq::new(parts.next()?.parse().ok()?);
    let hash = Digest::read(parts.next()?)?;
    let quiet = Seq::new(parts.next()?.parse().ok()?);
    let head = Head { seq, hash };
    Some(Outside { head, quiet })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(seq: u64) -> Head {
        Head {
            seq: Seq::new(seq),
            hash: Digest::of(&seq.to_le_bytes()),
        }
    }

    fn found(seq: u64, quiet: u64) -> Found {
        Found::Outside(Outside {
            head: head(seq),
            quiet: Seq::new(quiet),
        })
    }

    #[test]
    fn the_last_line_counts_and_nothing_else_is_taken_for_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("head");
        assert_eq!(look(&path).unwrap(), Found::Nothing);
        std::fs::write(&path, "x".repeat(500)).unwrap();
        assert_eq!(look(&path).unwrap(), Found::Unreadable);

        let mut file = HeadFile::open(path.clone()).unwrap();
        file.begin(&head(3), Seq::new(1)).unwrap();
        assert_eq!(look(&path).unwrap(), found(3, 1));
        for is_mapped in [true, false] {
            if !is_mapped {
                file.mapped = None;
            }
            for (seq, quiet) in [(7, 3), (8, 3), (9, 9), (u64::MAX, 9)] {
                file.begin(&head(5), Seq::new(3)).unwrap();
                file.set(&head(6), Seq::new(3)).unwrap();
                file.set(&head(seq), Seq::new(quiet)).unwrap();
                assert_eq!(look(&path).unwrap(), found(seq, quiet), "{is_mapped}");
            }
        }
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);

        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.len(), 2 * LENGTH);
        for other in ["", "ward", &text[1..], text.trim_end(), &text.repeat(2)] {
            assert_eq!(parse(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn of_a_line_that_was_begun_the_one_before_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("head");
        let mut file = HeadFile::open(path.clone()).unwrap();
        file.begin(&head(5), Seq::new(3)).unwrap();
        file.set(&head(6), Seq::new(3)).unwrap();
        let before = std::fs::read(&path).unwrap();
        file.set(&head(7), Seq::new(7)).unwrap();
        let after = std::fs::read(&path).unwrap();
        for cut in LENGTH..2 * LENGTH {
            let (written, left) = (&after[..cut], &before[cut..]);
            let torn = [written, left].concat();
            let is_whole = torn == after;
            let expected = if is_whole { found(7, 7) } else { found(6, 3) };
            std::fs::write(&path, torn).unwrap();
            assert_eq!(look(&path).unwrap(), expected, "{cut}");
        }
    }

    #[test]
    fn the_line_of_the_wards_before_is_read() {
        let hash = Digest::of(b"x");
        let (seq, quiet) = (Seq::new(7), Seq::new(3));
        let text = format!("ward-ledger-head-1 {:020} {hash} {:020}\n", 7, 3);
        let head = Head { seq, hash };
        assert_eq!(parse(text.as_bytes()), Some(Outside { head, quiet }));
        for other in [&text[1..], text.trim_end(), &text.repeat(2)] {
            assert_eq!(parse(other.as_bytes()), None, "{other}");
        }
    }
}
