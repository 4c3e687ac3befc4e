//! Tells what the wall stopped, by looking at the writes and connections a command tries.
//!
//! The kernel enforces; this only watches. Each call that is told here goes on afterwards and
//! meets the mounts and Landlock as if nobody had looked, so that a command which changes the path
//! while it is being read can confuse the report but never the wall.

use std::cell::OnceCell;
use std::ffi::CString;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};

use protocol::sandbox::{Stopped, StoppedAccess, Tier};
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, StatVfsMountFlags};

use super::filter::{Arch, Call, call};
use super::places::is_place;
use super::plan::Plan;
use super::sys::{self, Notification};

/// What a call tells in its arguments.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Told {
    /// Paths that it would change.
    Paths(&'static [PathArgument]),
    /// A socket address and its length.
    Address(usize, usize),
}

/// A path among a call's arguments.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PathArgument {
    need: Need,
    /// Where the folder's descriptor is that the path starts from; the working directory where left out.
    folder: Option<usize>,
    path: usize,
}

/// What has to be at a path for the call to get as far as the wall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Something: what is not there cannot be changed.
    Something,
    /// Nothing: what is there cannot be made.
    Nothing,
    /// No matter.
    Either,
}

const fn from(need: Need, path: usize) -> PathArgument {
    PathArgument {
        need,
        folder: None,
        path,
    }
}

const fn at(need: Need, folder: usize, path: usize) -> PathArgument {
    PathArgument {
        need,
        folder: Some(folder),
        path,
    }
}

/// The calls that are told whatever their arguments.
pub(crate) const TOLD: &[(Call, Told)] = &[
    (call!(x86_64 creat), Told::Paths(&[from(Need::Either, 0)])),
    (call!(x86_64 mkdir), Told::Paths(&[from(Need::Nothing, 0)])),
    (call!(mkdirat), Told::Paths(&[at(Need::Nothing, 0, 1)])),
    (
        call!(x86_64 rmdir),
        Told::Paths(&[from(Need::Something, 0)]),
    ),
    (
        call!(x86_64 unlink),
        Told::Paths(&[from(Need::Something, 0)]),
    ),
    (call!(unlinkat), Told::Paths(&[at(Need::Something, 0, 1)])),
    (
        call!(x86_64 rename),
        Told::Paths(&[from(Need::Something, 0), from(Need::Either, 1)]),
    ),
    (
        call!(renameat),
        Told::Paths(&[at(Need::Something, 0, 1), at(Need::Either, 2, 3)]),
    ),
    (
        call!(renameat2),
        Told::Paths(&[at(Need::Something, 0, 1), at(Need::Either, 2, 3)]),
    ),
    (call!(x86_64 link), Told::Paths(&[from(Need::Nothing, 1)])),
    (call!(linkat), Told::Paths(&[at(Need::Nothing, 2, 3)])),
    (
        call!(x86_64 symlink),
        Told::Paths(&[from(Need::Nothing, 1)]),
    ),
    (call!(symlinkat), Told::Paths(&[at(Need::Nothing, 1, 2)])),
    (call!(x86_64 mknod), Told::Paths(&[from(Need::Nothing, 0)])),
    (call!(mknodat), Told::Paths(&[at(Need::Nothing, 0, 1)])),
    (call!(truncate), Told::Paths(&[from(Need::Something, 0)])),
    (call!(connect), Told::Address(1, 2)),
];

/// The calls that are told where they write or name an address; the filter looks at that.
const TOLD_SOMETIMES: &[(Call, Told)] = &[
    (call!(x86_64 open), Told::Paths(&[from(Need::Either, 0)])),
    (call!(openat), Told::Paths(&[at(Need::Either, 0, 1)])),
    (call!(sendto), Told::Address(4, 5)),
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
    /// The command's own root, to resolve paths as it sees them. Most commands write nothing.
    root: OnceCell<OwnedFd>,
    workspace: PathBuf,
    home: PathBuf,
    /// Where writing is allowed, where mounts do not say it.
    writable: Option<Vec<PathBuf>>,
    calls: Vec<(i32, Told)>,
    seen: Seen,
}

impl Watcher {
    /// A watcher for a command of a room of this plan.
    pub(crate) fn new(plan: &Plan) -> Self {
        let calls = TOLD
            .iter()
            .chain(TOLD_SOMETIMES)
            .filter_map(|(call, told)| Some((i32::try_from(call.number(Arch::HERE)?).ok()?, *told)))
            .collect();
        Self {
            root: OnceCell::new(),
            workspace: plan.workspace.clone(),
            home: plan.home_inside(),
            writable: (plan.tier != Tier::Room).then(|| plan.rules(0).writable),
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
            Told::Paths(paths) => paths.iter().for_each(|path| self.look_at(call, path)),
            Told::Address(address, length) => self.look_at_address(call, address, length),
        }
    }

    /// What was seen.
    pub(crate) fn finish(self) -> Seen {
        self.seen
    }

    fn look_at(&mut self, call: &Notification, argument: &PathArgument) {
        let Some(path) = self.absolute(call, argument) else {
            return;
        };
        // A device or a descriptor by its name is nothing outside the wall.
        if path.starts_with("/dev") || path.starts_with("/proc") {
            return;
        }
        if self.is_closed(call.pid, &path, argument.need) {
            // Where the user could not have written either, it is not the wall's doing.
            if path.starts_with(&self.workspace) || writable_outside(&path) {
                self.stop(StoppedAccess::Write, path.to_string_lossy().into_owned());
            }
        } else if path.starts_with(&self.home) && !path.starts_with(&self.workspace) {
            let shown = path.to_string_lossy();
            if self.seen.scratch.len() < MOST && !self.seen.scratch.iter().any(|s| *s == shown) {
                self.seen.scratch.push(shown.into_owned());
            }
        }
    }

    fn stop(&mut self, access: StoppedAccess, target: String) {
        let stopped = Stopped { access, target };
        if self.seen.stopped.len() < MOST && !self.seen.stopped.contains(&stopped) {
            self.seen.stopped.push(stopped);
        }
    }

    /// It is looked up by whoever calls: only root may look at init, which is not dumpable.
    fn root(&self, caller: u32) -> Option<&OwnedFd> {
        if self.root.get().is_none() {
            let path = format!("/proc/{caller}/root");
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            let root = rustix::fs::open(path, flags, Mode::empty()).ok()?;
            let _ = self.root.set(root);
        }
        self.root.get()
    }

    /// Whether the wall refuses writing at a path, as the command sees it.
    fn is_closed(&self, caller: u32, path: &Path, need: Need) -> bool {
        let Some(root) = self.root(caller) else {
            return false;
        };
        let resolve = |path: &Path| {
            let path = CString::new(path.as_os_str().as_bytes()).ok()?;
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            rustix::fs::openat2(root, &path, flags, Mode::empty(), ResolveFlags::IN_ROOT).ok()
        };
        let place = match (resolve(path), need) {
            (Some(_), Need::Nothing) | (None, Need::Something) => return false,
            (Some(place), Need::Something | Need::Either) => Some(place),
            (None, Need::Nothing | Need::Either) => path.parent().and_then(resolve),
        };
        let Some(place) = place else {
            // Not even the folder is there: the wall's doing where it is there outside.
            return self.writable.is_none() && path.parent().is_some_and(Path::exists);
        };
        match &self.writable {
            None => {
                let vfs = rustix::fs::fstatvfs(&place);
                vfs.is_ok_and(|vfs| vfs.f_flag.contains(StatVfsMountFlags::RDONLY))
                    || rustix::fs::fstat(&place).is_ok_and(|stat| is_place(&stat))
            }
            Some(writable) => {
                let real = std::fs::read_link(format!("/proc/self/fd/{}", place.as_raw_fd()));
                real.is_ok_and(|real| !writable.iter().any(|w| real.starts_with(w)))
            }
        }
    }

    fn absolute(&self, call: &Notification, argument: &PathArgument) -> Option<PathBuf> {
        let path = read_path(call.pid, call.arguments[argument.path])?;
        if path.is_absolute() {
            return Some(folded(&path));
        }
        let descriptor = argument
            .folder
            .map_or(libc::AT_FDCWD, |folder| call.arguments[folder] as i32);
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
                folded.push(component);
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
