//! The front of a file, mapped into memory: to write there is no call of the system, and what is
//! there outlives this process as what was written with one does.
//!
//! Only where the system has set room aside for it, and keeps that, is it mapped: on a full disk a
//! write is refused then, and does not end the process.

use std::fs::File;
use std::io::{Error, Result};
use std::ops::Range;
use std::path::Path;

use mmap_io::{MemoryMappedFile, MmapMode};
use rustix::fs::{FallocateFlags, fallocate, fstatfs};

/// Where room that was set aside is kept, whatever is written there: ext2 to 4, XFS and tmpfs. Those
/// that copy what they write (btrfs, bcachefs, ZFS) need new room each time.
const KEEPS_ROOM: [u64; 3] = [0xEF53, 0x5846_5342, 0x0102_1994];

/// The front of a file. Nobody may make the file shorter than that while it is there.
#[derive(Debug)]
pub struct Mapped(MemoryMappedFile);

impl Mapped {
    /// Sets room aside for so many bytes at the front of a file, which becomes as long as that where
    /// it was shorter, and maps the file. None where the file system does not keep the room.
    pub fn front(file: &File, path: &Path, size: u64) -> Result<Option<Self>> {
        let kind = fstatfs(file)?.f_type;
        if !KEEPS_ROOM.contains(&(kind as u64)) {
            return Ok(None);
        }
        fallocate(file, FallocateFlags::empty(), 0, size)?;
        let mapped = MemoryMappedFile::from_file(file.try_clone()?, MmapMode::ReadWrite, path);
        mapped.map(Self).map(Some).map_err(Error::other)
    }

    /// Changes what stands in these places.
    pub fn change<T>(
        &self,
        places: Range<usize>,
        change: impl FnOnce(&mut [u8]) -> T,
    ) -> Result<T> {
        let (at, length) = (places.start as u64, places.len() as u64);
        let mut slice = self.0.as_slice_mut(at, length).map_err(Error::other)?;
        Ok(change(slice.as_mut()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_changed_is_in_the_file_and_nothing_behind_its_end_can_be() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .unwrap();
        let Some(mapped) = Mapped::front(&file, &path, 8).unwrap() else {
            panic!("the folder for temporary files is on none of the file systems that are mapped");
        };
        mapped
            .change(2..6, |bytes| bytes.copy_from_slice(b"text"))
            .unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"\0\0text\0\0");
        assert!(mapped.change(6..9, |bytes| bytes.fill(1)).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"\0\0text\0\0");
    }
}
