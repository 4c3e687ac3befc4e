//! Builds the root that the commands of a room see: system and toolchains to read, the workspace
//! and a scratch home to write, a private `/tmp`, a handful of devices, and nothing else.

use std::ffi::CString;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use protocol::sandbox::Tier;
use rustix::fs::CWD;
use rustix::mount::{
    MountFlags, MountPropagationFlags, OpenTreeFlags, UnmountFlags, mount, mount_bind,
    mount_bind_recursive, mount_change, open_tree, unmount,
};

use super::plan::{HOME, Plan, Scratch, TEMPORARY};
use super::sys::{Reach, attr, mount_setattr};

/// Device nodes that a command needs and that reach nothing.
const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom", "tty"];

/// Links in `/dev` that programs expect.
const DEVICE_LINKS: &[(&str, &str)] = &[
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// Where the old root hangs while the new one is built.
const OLD: &str = "/old";
/// Where the new one is built.
const NEW: &str = "/new";

/// A step that failed: what was being done, and the system's word.
pub(crate) type Failed = (String, io::Error);

fn at<T>(what: impl Into<String>, result: io::Result<T>) -> Result<T, Failed> {
    result.map_err(|error| (what.into(), error))
}

/// Builds the root and enters it. Only for a process alone in its new user, mount, pid, network
/// and ipc namespaces. Answers a copy of the whole old tree, for widening, where it is wanted.
pub(crate) fn assemble(plan: &Plan, keep_host: bool) -> Result<Option<OwnedFd>, Failed> {
    let private = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
    at(
        "making mounts private",
        mount_change("/", private).map_err(Into::into),
    )?;
    step_aside()?;
    let host = if keep_host {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::AT_RECURSIVE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        // An older kernel cannot take parts of a detached tree later; widening then says so.
        open_tree(CWD, OLD, flags).ok()
    } else {
        None
    };

    for (path, target) in &plan.links {
        let link = inside(path);
        make_parents(&link)?;
        at(
            shown("linking", path),
            std::os::unix::fs::symlink(target, link),
        )?;
    }
    for path in &plan.readable {
        // What lies in the home folder comes after the home folder itself.
        if !path.starts_with(&plan.home) {
            show(path, attr::READ_ONLY)?;
        }
    }
    devices()?;
    tmpfs("/tmp", plan.tmp, 0o1777)?;
    tmpfs("/run", 1 << 20, 0o755)?;
    bind(
        &inside(Path::new("/tmp")),
        &inside(Path::new("/var/tmp")),
        0,
    )?;

    let scratch = scratch(plan)?;
    bind(&scratch.join(HOME), &inside(&plan.home), 0)?;
    for path in plan
        .readable
        .iter()
        .filter(|path| path.starts_with(&plan.home))
    {
        show(path, attr::READ_ONLY)?;
    }
    for (index, cache) in plan.caches.iter().enumerate() {
        overlay(cache, &scratch, index)?;
    }
    show(&plan.workspace, 0)?;
    mask(&plan.masked)?;

    let proc = inside(Path::new("/proc"));
    make_dir(&proc)?;
    let quiet = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    at(
        "mounting /proc",
        mount("proc", &proc, "proc", quiet, None).map_err(Into::into),
    )?;
    enter()?;
    Ok(host)
}

/// Puts an empty tmpfs in the place of the root and hangs the old root below it, so that no source
/// of a mount can be hidden by what is built.
fn step_aside() -> Result<(), Failed> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    let made = mount("tmpfs", "/tmp", "tmpfs", flags, Some(c"size=16m,mode=755"));
    at("mounting the new root", made.map_err(Into::into))?;
    at("making the new root", fs::create_dir("/tmp/old"))?;
    at("making the new root", fs::create_dir("/tmp/new"))?;
    at(
        "entering the new root",
        rustix::process::pivot_root("/tmp", "/tmp/old").map_err(Into::into),
    )?;
    at(
        "entering the new root",
        rustix::process::chdir("/").map_err(Into::into),
    )?;
    at(
        "mounting the new root",
        mount_bind(NEW, NEW).map_err(Into::into),
    )
}

/// Makes what was built the root, lets go of everything else, and closes it for writing.
fn enter() -> Result<(), Failed> {
    let entered = rustix::process::chdir(NEW)
        .and_then(|()| rustix::process::pivot_root(".", "."))
        .and_then(|()| unmount(".", UnmountFlags::DETACH))
        .and_then(|()| rustix::process::chdir("/"));
    at("entering the assembled root", entered.map_err(Into::into))?;
    at(
        "closing the assembled root",
        mount_setattr(CWD, c"/", attr::READ_ONLY, Reach::This),
    )
}

fn devices() -> Result<(), Failed> {
    make_dir(&inside(Path::new("/dev")))?;
    for name in DEVICES {
        let path = PathBuf::from("/dev").join(name);
        let target = inside(&path);
        at(shown("making", &path), File::create(&target))?;
        at(
            shown("binding", &path),
            mount_bind(outside(&path), &target).map_err(Into::into),
        )?;
        at(
            shown("binding", &path),
            set(&target, attr::NO_SUID, Reach::This),
        )?;
    }
    for (name, target) in DEVICE_LINKS {
        let link = inside(Path::new("/dev")).join(name);
        at(
            shown("linking", &link),
            std::os::unix::fs::symlink(target, &link),
        )?;
    }
    let pts = inside(Path::new("/dev/pts"));
    make_dir(&pts)?;
    let quiet = MountFlags::NOSUID | MountFlags::NOEXEC;
    let options = c"newinstance,ptmxmode=0666,mode=620";
    at(
        "mounting /dev/pts",
        mount("devpts", &pts, "devpts", quiet, Some(options)).map_err(Into::into),
    )?;
    tmpfs("/dev/shm", 512 << 20, 0o1777)
}

fn tmpfs(path: &str, size: u64, mode: u32) -> Result<(), Failed> {
    tmpfs_at(&inside(Path::new(path)), size, mode)
}

fn tmpfs_at(target: &Path, size: u64, mode: u32) -> Result<(), Failed> {
    make_dir(target)?;
    let options = CString::new(format!("size={size},mode={mode:o}")).unwrap_or_default();
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    let mounted = mount("tmpfs", target, "tmpfs", flags, Some(options.as_c_str()));
    at(shown("mounting", target), mounted.map_err(Into::into))
}

/// Shows a path of the old tree at the same path of the new one.
fn show(path: &Path, attributes: u64) -> Result<(), Failed> {
    bind(&outside(path), &inside(path), attributes)
}

fn bind(from: &Path, to: &Path, attributes: u64) -> Result<(), Failed> {
    let is_dir = at(shown("looking at", from), from.metadata())?.is_dir();
    if is_dir {
        make_dir(to)?;
    } else {
        make_parents(to)?;
        if !to.exists() {
            at(shown("making", to), File::create(to))?;
        }
    }
    at(
        shown("binding", from),
        mount_bind_recursive(from, to).map_err(Into::into),
    )?;
    let attributes = attributes | attr::NO_SUID | attr::NO_DEV;
    at(shown("closing", to), set(to, attributes, Reach::Below))
}

/// Makes the scratch: what the commands of the room write outside the workspace.
fn scratch(plan: &Plan) -> Result<PathBuf, Failed> {
    let folder = match &plan.scratch {
        Scratch::Folder(folder) => outside(folder),
        Scratch::Memory | Scratch::None => {
            let folder = PathBuf::from("/scratch");
            tmpfs_at(&folder, plan.tmp, 0o700)?;
            folder
        }
    };
    furnish(&folder, plan)?;
    Ok(folder)
}

/// Makes the folders of the scratch, and what is in the scratch home from the start.
pub(crate) fn furnish(folder: &Path, plan: &Plan) -> Result<(), Failed> {
    make_dir(&folder.join(HOME))?;
    if plan.tier != Tier::Room {
        make_dir(&folder.join(TEMPORARY))?;
    }
    if let Some(identity) = &plan.git_identity {
        let settings = folder.join(HOME).join(".gitconfig");
        at(shown("writing", &settings), fs::write(&settings, identity))?;
    }
    Ok(())
}

/// Shows a cache with a layer of the session's own above it. Where the kernel does not stack
/// filesystems for users, the cache is shown for reading.
fn overlay(cache: &Path, scratch: &Path, index: usize) -> Result<(), Failed> {
    let target = inside(cache);
    make_dir(&target)?;
    let lower = outside(cache);
    let (upper, work) = (
        scratch.join(format!("cache-{index}")),
        scratch.join(format!("work-{index}")),
    );
    make_dir(&upper)?;
    make_dir(&work)?;
    // Options are separated by commas and colons: a path with one is not for this.
    let plain = |path: &Path| {
        !path
            .as_os_str()
            .as_bytes()
            .iter()
            .any(|b| b",:\\".contains(b))
    };
    // Volatile: nothing of it outlives the room, so nothing need be forced to the disk.
    let options = format!(
        "lowerdir={},upperdir={},workdir={},userxattr,volatile",
        lower.display(),
        upper.display(),
        work.display()
    );
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    if [&lower, &upper, &work].iter().all(|path| plain(path))
        && let Ok(options) = CString::new(options)
        && mount(
            "overlay",
            &target,
            "overlay",
            flags,
            Some(options.as_c_str()),
        )
        .is_ok()
    {
        return Ok(());
    }
    show(cache, attr::READ_ONLY)
}

/// Covers files and folders with nothing.
fn mask(paths: &[PathBuf]) -> Result<(), Failed> {
    if paths.is_empty() {
        return Ok(());
    }
    let (file, folder) = (Path::new("/empty-file"), Path::new("/empty-folder"));
    at("making a mask", File::create(file))?;
    at(
        "making a mask",
        DirBuilder::new().mode(0o000).create(folder),
    )?;
    for path in paths {
        let target = inside(path);
        // It was there when the plan was made; what has gone since need not be covered.
        let Ok(metadata) = target.symlink_metadata() else {
            continue;
        };
        let cover = if metadata.is_dir() { folder } else { file };
        at(
            shown("covering", path),
            mount_bind(cover, &target).map_err(Into::into),
        )?;
        at(
            shown("covering", path),
            set(&target, attr::READ_ONLY, Reach::This),
        )?;
    }
    Ok(())
}

fn set(path: &Path, attributes: u64, reach: Reach) -> io::Result<()> {
    mount_setattr(
        CWD,
        &CString::new(path.as_os_str().as_bytes())?,
        attributes,
        reach,
    )
}

fn make_parents(path: &Path) -> Result<(), Failed> {
    path.parent().map_or(Ok(()), make_dir)
}

fn make_dir(path: &Path) -> Result<(), Failed> {
    let made = DirBuilder::new().mode(0o755).recursive(true).create(path);
    at(shown("making", path), made)
}

fn inside(path: &Path) -> PathBuf {
    Path::new(NEW).join(path.strip_prefix("/").unwrap_or(path))
}

fn outside(path: &Path) -> PathBuf {
    Path::new(OLD).join(path.strip_prefix("/").unwrap_or(path))
}

fn shown(what: &str, path: &Path) -> String {
    format!("{what} {}", path.display())
}
