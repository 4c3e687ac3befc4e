//! Tells what the wall stopped, by looking at the writes and connections a command tries.
//!
//! The kernel enforces; this only watches. Each call that is told here goes on afterwards and
//! meets the mounts and Landlock as if nobody had looked, so that a command which changes the path
//! while it is being read can confuse the report but never the wall.

use std::ffi::CString;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};

use protocol::sandbox::{Stopped, StoppedAccess};
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, StatVfsMountFlags};

use super::filter::Arch;
use super::sys::{self, Notification};

/// Where a call keeps a path: the argument with the folder's descriptor, and the one with the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// A path relative to the working directory.
    Path(usize),
    /// A path relative to a descriptor.
    At(usize, usize),
    /// Two of them.
    Two((Option<usize>, usize), (Option<usize>, usize)),
    /// `openat2`: the flags lie in memory.
    Openat2,
    /// A socket address and its length.
    Address(usize, usize),
}

/// The calls that are told whatever their arguments. `open`, `openat` and `sendto` are told too,
/// where they write or name an address.
pub(crate) const TOLD: &[(&str, Told)] = &[
    ("openat2", Told::Openat2),
    ("creat", Told::Path(0)),
    ("mkdir", Told::Path(0)),
    ("mkdirat", Told::At(0, 1)),
    ("rmdir", Told::Path(0)),
    ("unlink", Told::Path(0)),
    ("unlinkat", Told::At(0, 1)),
    ("rename", Told::Two((None, 0), (None, 1))),
    ("renameat", Told::Two((Some(0), 1), (Some(2), 3))),
    ("renameat2", Told::Two((Some(0), 1), (Some(2), 3))),
    ("link", Told::Path(1)),
    ("linkat", Told::At(2, 3)),
    ("symlink", Told::Path(1)),
    ("symlinkat", Told::At(1, 2)),
    ("mknod", Told::Path(0)),
    ("mknodat", Told::At(0, 1)),
    ("truncate", Told::Path(0)),
    ("chmod", Told::Path(0)),
    ("fchmodat", Told::At(0, 1)),
    ("connect", Told::Address(1, 2)),
];

/// No more than this many are told of one command.
const MOST: usize = 64;

/// What a command wrote to or reached for, as far as it is worth telling.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// What was stopped.
    pub(crate) stopped: Vec<Stopped>,
    /// What landed in the session's home.
    pub(crate) scratch: Vec<String>,
}

/// Watches one command.
#[derive(Debug)]
pub(crate) struct Watcher {
    /// The command's own root, to resolve paths as it sees them.
    root: Option<OwnedFd>,
    workspace: PathBuf,
    home: PathBuf,
    calls: Vec<(i32, Told)>,
    seen: Seen,
}

impl Watcher {
    /// A watcher for a command whose init has this pid.
    pub(crate) fn new(init: i32, workspace: &Path, home: &Path) -> Self {
        let arch = Arch::HERE;
        let also = [
            ("open", Told::Path(0)),
            ("openat", Told::At(0, 1)),
            ("sendto", Told::Address(4, 5)),
        ];
        let calls = TOLD
            .iter()
            .chain(&also)
            .filter_map(|(name, told)| Some((i32::try_from(arch.number(name)?).ok()?, *told)))
            .collect();
        let path = format!("/proc/{init}/root");
        let root = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok();
        Self {
            root,
            workspace: workspace.into(),
            home: home.into(),
            calls,
            seen: Seen::default(),
        }
    }

    /// Looks at one call; the caller lets it go on.
    pub(crate) fn look(&mut self, call: &Notification) {
        let Some((_, told)) = self.calls.iter().find(|(number, _)| *number == call.number) else {
            return;
        };
        match *told {
            Told::Path(path) => self.look_at(call, None, path),
            Told::At(folder, path) => self.look_at(call, Some(folder), path),
            Told::Two(one, other) => {
                self.look_at(call, one.0, one.1);
                self.look_at(call, other.0, other.1);
            }
            Told::Openat2 => {
                let mut flags = [0_u8; 8];
                let read = sys::read_memory(call.pid, call.arguments[2], &mut flags);
                let writing =
                    (OFlags::WRONLY | OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC).bits();
                if read.is_ok() && u64::from_le_bytes(flags) & u64::from(writing) != 0 {
                    self.look_at(call, Some(0), 1);
                }
            }
            Told::Address(address, length) => self.look_at_address(call, address, length),
        }
    }

    /// What was seen.
    pub(crate) fn finish(self) -> Seen {
        self.seen
    }

    fn look_at(&mut self, call: &Notification, folder: Option<usize>, path: usize) {
        let Some(path) = self.absolute(call, folder, path) else {
            return;
        };
        let shown = path.to_string_lossy();
        if self.seen.stopped.iter().any(|s| s.target == shown)
            || self.seen.scratch.iter().any(|s| *s == shown)
        {
            return;
        }
        if self.closed_for_writing(&path) {
            if !path.starts_with(&self.workspace) && !writable_outside(&path) {
                // The user could not have written there either: not the wall's doing.
                return;
            }
            self.stop(StoppedAccess::Write, shown.into_owned());
        } else if path.starts_with(&self.home)
            && !path.starts_with(&self.workspace)
            && self.seen.scratch.len() < MOST
        {
            self.seen.scratch.push(shown.into_owned());
        }
    }

    fn stop(&mut self, access: StoppedAccess, target: String) {
        let stopped = Stopped { access, target };
        if self.seen.stopped.len() < MOST && !self.seen.stopped.contains(&stopped) {
            self.seen.stopped.push(stopped);
        }
    }

    /// Whether the mount that the path lies on refuses writing, as the command sees it.
    fn closed_for_writing(&self, path: &Path) -> bool {
        let Some(root) = &self.root else { return false };
        let resolve = |path: &Path| {
            let path = CString::new(path.as_os_str().as_bytes()).ok()?;
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            rustix::fs::openat2(root, &path, flags, Mode::empty(), ResolveFlags::IN_ROOT).ok()
        };
        let Some(place) = resolve(path).or_else(|| resolve(path.parent()?)) else {
            // Not even the folder is there: nothing to refuse but the path itself.
            return false;
        };
        rustix::fs::fstatvfs(&place).is_ok_and(|vfs| vfs.f_flag.contains(StatVfsMountFlags::RDONLY))
    }

    fn absolute(&self, call: &Notification, folder: Option<usize>, path: usize) -> Option<PathBuf> {
        let path = read_path(call.pid, call.arguments[path])?;
        if path.is_absolute() {
            return Some(folded(&path));
        }
        let descriptor = folder.map_or(libc::AT_FDCWD, |folder| call.arguments[folder] as i32);
        let base = if descriptor == libc::AT_FDCWD {
            std::fs::read_link(format!("/proc/{}/cwd", call.pid))
        } else {
            std::fs::read_link(format!("/proc/{}/fd/{descriptor}", call.pid))
        };
        Some(folded(&base.ok()?.join(path)))
    }

    fn look_at_address(&mut self, call: &Notification, address: usize, length: usize) {
        let mut bytes = [0_u8; 128];
        let length = (call.arguments[length] as usize).min(bytes.len());
        let Ok(read) = sys::read_memory(call.pid, call.arguments[address], &mut bytes[..length])
        else {
            return;
        };
        if let Some(target) = elsewhere(&bytes[..read]) {
            self.stop(StoppedAccess::Connect, target);
        }
    }
}

/// The address, where it is not the room's own.
fn elsewhere(address: &[u8]) -> Option<String> {
    let family = u16::from_ne_bytes([*address.first()?, *address.get(1)?]);
    match i32::from(family) {
        libc::AF_INET => {
            let port = u16::from_be_bytes([*address.get(2)?, *address.get(3)?]);
            let octets: [u8; 4] = address.get(4..8)?.try_into().ok()?;
            let ip = Ipv4Addr::from(octets);
            (!ip.is_loopback() && !ip.is_unspecified()).then(|| format!("{ip}:{port}"))
        }
        libc::AF_INET6 => {
            let port = u16::from_be_bytes([*address.get(2)?, *address.get(3)?]);
            let octets: [u8; 16] = address.get(8..24)?.try_into().ok()?;
            let ip = Ipv6Addr::from(octets);
            (!ip.is_loopback() && !ip.is_unspecified()).then(|| format!("[{ip}]:{port}"))
        }
        libc::AF_UNIX => {
            let name = address.get(2..)?;
            let name = name
                .split(|byte| *byte == 0)
                .next()
                .filter(|name| !name.is_empty())?;
            let path = Path::new(std::ffi::OsStr::from_bytes(name));
            // A socket that is there outside and not inside: the wall keeps it away.
            (path.is_absolute() && !path.starts_with("/tmp") && path.exists())
                .then(|| format!("unix:{}", path.display()))
        }
        _ => None,
    }
}

fn read_path(pid: u32, address: u64) -> Option<PathBuf> {
    let mut bytes = [0_u8; 4096];
    // Never over the end of a page at once: the next one may not be mapped.
    let mut read = 0;
    while read < bytes.len() {
        let to_page_end = 4096 - ((address as usize + read) & 4095);
        let length = to_page_end
            .min(bytes.len() - read)
            .min(256.max(to_page_end.min(512)));
        let at = address + read as u64;
        let got = sys::read_memory(pid, at, &mut bytes[read..read + length]).ok()?;
        if let Some(end) = bytes[read..read + got].iter().position(|byte| *byte == 0) {
            let path = bytes[..read + end].to_vec();
            return (!path.is_empty()).then(|| PathBuf::from(std::ffi::OsString::from_vec(path)));
        }
        if got == 0 {
            return None;
        }
        read += got;
    }
    None
}

/// Takes `.` and `..` out, as far as words can.
fn folded(path: &Path) -> PathBuf {
    let mut folded = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                folded.pop();
            }
            Component::RootDir | Component::Normal(_) | Component::Prefix(_) => {
                folded.push(component)
            }
        }
    }
    folded
}

/// Whether the user could write there without the wall.
fn writable_outside(path: &Path) -> bool {
    let access = |path: &Path| {
        let flags = AtFlags::EACCESS;
        rustix::fs::accessat(rustix::fs::CWD, path, rustix::fs::Access::WRITE_OK, flags)
    };
    match access(path) {
        Ok(()) => true,
        Err(rustix::io::Errno::NOENT) => path.parent().is_some_and(|parent| access(parent).is_ok()),
        Err(_) => false,
    }
}

/// Takes what is waiting at the listener and lets each go on. False where no more will come.
pub(crate) fn serve(listener: &OwnedFd, watcher: &mut Watcher) -> bool {
    match sys::notification(listener.as_fd()) {
        Ok(Some(call)) => {
            watcher.look(&call);
            sys::let_go_on(listener.as_fd(), call.id);
            true
        }
        Ok(None) => true,
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_folded_by_its_words() {
        assert_eq!(folded(Path::new("/a/./b/../c//d")), PathBuf::from("/a/c/d"));
        assert_eq!(folded(Path::new("/../../a")), PathBuf::from("/a"));
    }

    #[test]
    fn an_address_elsewhere_is_told_and_loopback_is_not() {
        let v4 = |ip: [u8; 4]| [&[2, 0, 1, 187], &ip[..]].concat();
        assert_eq!(
            elsewhere(&v4([93, 184, 216, 34])).as_deref(),
            Some("93.184.216.34:443")
        );
        assert_eq!(elsewhere(&v4([127, 0, 0, 1])), None);
        assert_eq!(elsewhere(&[2]), None);
        assert_eq!(elsewhere(&[]), None);
    }

    #[test]
    fn a_path_is_read_from_another_process_up_to_its_end() {
        let long = CString::new(vec![b'x'; 3000]).unwrap();
        let read = read_path(std::process::id(), long.as_ptr() as u64);
        assert_eq!(read, Some(PathBuf::from("x".repeat(3000))));
    }
}
