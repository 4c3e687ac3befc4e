//! A file of the journal. Its front is [`Mapped`] into memory; where it cannot be, and behind the
//! front, it is written as any file.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Result};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{Ordering, compiler_fence};

use mapped::Mapped;

/// How much is mapped. What is put into the database at once fits; it stays in memory.
pub(crate) const FRONT: usize = 512 * 1024;
/// How much is emptied at a time.
const PIECE: usize = 4096;

/// A file that is written from its beginning to its end, emptied, and written again.
#[derive(Debug)]
pub(crate) struct Pad {
    path: PathBuf,
    file: File,
    front: Option<Mapped>,
    /// How much is written.
    used: usize,
    /// How much of that is its head; none before it is cleared.
    head: Option<usize>,
}

impl Pad {
    /// Opens a file, or makes it; what is in it is answered, and nothing can be written before
    /// [`Pad::clear`].
    pub(crate) fn open(path: &Path) -> Result<(Self, Vec<u8>)> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let pad = Self {
            path: path.to_owned(),
            file,
            front: None,
            used: 0,
            head: None,
        };
        Ok((pad, bytes))
    }

    /// Empties the file but for `head`, with which it begins from now on.
    pub(crate) fn clear(&mut self, head: &[u8]) -> Result<()> {
        self.front = None;
        self.file.set_len(0)?;
        self.front = front(&self.file, &self.path)?;
        self.used = 0;
        self.write(head)?;
        self.head = Some(self.used);
        Ok(())
    }

    /// Writes behind what is there. Where that fails, nothing of it is left. Who is killed meanwhile
    /// leaves a part of it, but never without its first four bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let end = self.used + bytes.len();
        match &self.front {
            Some(front) if end <= FRONT => {
                let (first, rest) = bytes.split_at(bytes.len().min(4));
                front.change(self.used..end, |place| {
                    let (to, behind) = place.split_at_mut(first.len());
                    to.copy_from_slice(first);
                    compiler_fence(Ordering::SeqCst);
                    behind.copy_from_slice(rest);
                })?;
            }
            Some(_) | None => {
                if let Err(error) = self.file.write_all_at(bytes, self.used as u64) {
                    self.blank(self.used, end)?;
                    return Err(error);
                }
            }
        }
        self.used = end;
        Ok(())
    }

    /// Empties the file but for its head. Who is killed meanwhile, or copies the file, has what stood
    /// there up to some place, and nothing behind it.
    pub(crate) fn empty(&mut self) -> Result<()> {
        let head = self.head.unwrap_or_default();
        self.blank(head, self.used)?;
        self.used = head;
        Ok(())
    }

    /// Blanks what is written from here to there, which is the end.
    fn blank(&mut self, from: usize, end: usize) -> Result<()> {
        let Some(front) = &self.front else {
            return self.file.set_len(from as u64);
        };
        if end > FRONT {
            self.file.set_len(from.max(FRONT) as u64)?;
        }
        front.change(from.min(FRONT)..end.min(FRONT), |written| {
            for piece in written.rchunks_mut(PIECE) {
                piece.fill(0);
                compiler_fence(Ordering::SeqCst);
            }
        })
    }
}

impl Drop for Pad {
    fn drop(&mut self) {
        self.front = None;
        if self.head == Some(self.used) {
            // It is as good as empty in any case.
            let _ = self.file.set_len(0);
        }
    }
}

/// None where it cannot be had.
fn front(file: &File, path: &Path) -> Result<Option<Mapped>> {
    match Mapped::front(file, path, FRONT as u64) {
        Ok(front) => Ok(front),
        Err(error) => {
            tracing::info!(%error, "the journal is written as any file is");
            file.set_len(0)?;
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_mapped_is_written_and_emptied_all_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pad");
        let (mut pad, found) = Pad::open(&path).unwrap();
        assert_eq!(found, b"");
        pad.clear(b"head.").unwrap();
        let read = || {
            let mut bytes = std::fs::read(&path).unwrap();
            bytes.truncate(bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1);
            String::from_utf8(bytes).unwrap()
        };
        for mapped in [true, false] {
            if !mapped {
                pad.front = None;
                pad.file.set_len(5).unwrap();
            }
            for text in ["one", "two"] {
                pad.write(text.as_bytes()).unwrap();
                assert_eq!(read(), format!("head.{text}"), "{mapped}");
                pad.empty().unwrap();
                assert_eq!(read(), "head.", "{mapped}");
            }
        }
        drop(pad);
        assert_eq!(path.metadata().unwrap().len(), 0);
    }
}
