//! Where a path leads that need not be there.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// So many links lead on from each other at most, as for the kernel.
const MOST_LINKS: usize = 40;

/// The real path of what need not be there. A link leads on also where nothing is at its end: where
/// that is, and not that nothing is there, is what a path is judged by.
pub(super) fn real(path: &Path) -> PathBuf {
    let mut links = 0;
    let mut real = PathBuf::from("/");
    let mut left: Vec<OsString> = Vec::new();
    add(&mut left, path);
    while let Some(name) = left.pop() {
        match Path::new(&name).components().next() {
            Some(Component::Normal(_)) => {}
            Some(Component::ParentDir) => {
                real.pop();
                continue;
            }
            Some(Component::RootDir | Component::CurDir | Component::Prefix(_)) | None => continue,
        }
        let next = real.join(&name);
        match next.read_link() {
            Ok(target) if links < MOST_LINKS => {
                links += 1;
                if target.is_absolute() {
                    real = PathBuf::from("/");
                }
                add(&mut left, &target);
            }
            Ok(_) | Err(_) => real = next,
        }
    }
    real
}

/// Adds the parts of a path, the first of them on top.
fn add(left: &mut Vec<OsString>, path: &Path) {
    let parts = path.components().rev();
    left.extend(parts.map(|part| part.as_os_str().to_owned()));
}
