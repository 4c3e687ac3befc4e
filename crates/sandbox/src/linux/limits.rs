//! How much a command may use: processes, and memory over its whole tree.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::layers::{Off, on};

/// The kernel accepts no smaller bound on the pids of a namespace.
pub(crate) const FEWEST: u32 = 301;

/// Bounds the processes of this pid namespace, root's too (Linux 6.14). Where the kernel cannot,
/// RLIMIT_NPROC and the cgroup hold.
pub(crate) fn processes(most: u32) {
    let _ = std::fs::write("/proc/sys/kernel/pid_max", most.max(FEWEST).to_string());
}

/// Bounds the memory that processes of this ipc namespace share by key, in bytes: what nobody has
/// attached is nobody's, and no watchdog sees it. Where the kernel does not let us, it does not.
pub(crate) fn shared_memory(most: u64) {
    let _ = std::fs::write("/proc/sys/kernel/shmall", (most / 4096).to_string());
}

/// The memory that the processes below `pid` hold, in bytes, as far as it matters to a bound of
/// `most`.
pub(crate) fn tree_memory(pid: i32, most: u64) -> u64 {
    if !on(Off::Limits) {
        return 0;
    }
    let (mut own, mut shared) = (0, 0);
    let mut regions = HashMap::new();
    let mut pids = vec![pid];
    // Bounded, as the tree may grow while it is walked.
    for _ in 0..8192 {
        let Some(pid) = pids.pop() else { break };
        pids.extend(children(pid));
        let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) else {
            continue;
        };
        own += kilobytes(&status, "RssAnon:") * 1024;
        shared += kilobytes(&status, "RssShmem:") * 1024;
        // Small processes cannot hide much; the others are worth a closer look.
        if kilobytes(&status, "VmSize:") * 1024 > most / 16 {
            regions.extend(shared_regions(pid));
        }
    }
    own + shared.max(regions.values().sum())
}

/// The anonymous memory that a process shares with its children, by number and size. What is let
/// go of there no longer counts as resident and is still held, so it is counted by its size.
fn shared_regions(pid: i32) -> Vec<(u64, u64)> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let region = |line: &str| {
        let mut words = line.strip_suffix("/dev/zero (deleted)")?.split_whitespace();
        let (from, to) = words.next()?.split_once('-')?;
        let size = u64::from_str_radix(to, 16)
            .ok()?
            .checked_sub(u64::from_str_radix(from, 16).ok()?)?;
        Some((words.nth(3)?.parse().ok()?, size))
    };
    maps.lines().filter_map(region).collect()
}

/// The memory of this machine, in bytes.
pub(crate) fn machine() -> u64 {
    let info = rustix::system::sysinfo();
    info.totalram.saturating_mul(u64::from(info.mem_unit))
}

/// The processes that a process has started and that still run.
pub(crate) fn children(pid: i32) -> Vec<i32> {
    let mut pids = Vec::new();
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let children = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        pids.extend(
            children
                .split_whitespace()
                .filter_map(|pid| pid.parse::<i32>().ok()),
        );
    }
    pids
}

/// Everything below a process.
pub(crate) fn descendants(pid: i32) -> Vec<i32> {
    let mut found = children(pid);
    let mut at = 0;
    // Bounded, as the tree may grow while it is walked.
    while at < found.len() && found.len() < 65_536 {
        let below = children(found[at]);
        found.extend(below);
        at += 1;
    }
    found
}

fn kilobytes(status: &str, name: &str) -> u64 {
    status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

/// A control group of a room's own.
#[derive(Debug)]
pub(crate) struct Cgroup {
    folders: Vec<PathBuf>,
    /// Where the number of processes ended for memory is told.
    killed: PathBuf,
    /// How many there were at the last look.
    known: AtomicU64,
}

/// Numbers the groups of this process.
static NEXT: AtomicU32 = AtomicU32::new(0);

impl Cgroup {
    /// Makes one below the group this process is in, where that is allowed: version 2 where it
    /// was delegated, version 1 where it is writable. None otherwise.
    pub(crate) fn make(memory: u64, pids: u32) -> Option<Self> {
        if !on(Off::Limits) {
            return None;
        }
        let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("ward-{}-{number}", std::process::id());
        Self::version_2(&groups, &name, memory, pids)
            .or_else(|| Self::version_1(&groups, &name, memory, pids))
    }

    fn version_2(groups: &str, name: &str, memory: u64, pids: u32) -> Option<Self> {
        let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
        // Beside our own group: one that holds processes cannot hand controllers on.
        let folder = PathBuf::from("/sys/fs/cgroup")
            .join(own)
            .parent()?
            .join(name);
        std::fs::create_dir(&folder).ok()?;
        let group = Self {
            killed: folder.join("memory.events"),
            known: AtomicU64::new(0),
            folders: vec![folder.clone()],
        };
        std::fs::write(folder.join("memory.max"), memory.to_string()).ok()?;
        std::fs::write(folder.join("pids.max"), pids.to_string()).ok()?;
        // Else the limit would only push it into swap.
        let _ = std::fs::write(folder.join("memory.swap.max"), "0");
        Some(group)
    }

    fn version_1(groups: &str, name: &str, memory: u64, pids: u32) -> Option<Self> {
        let own = |controller: &str| {
            groups.lines().find_map(|line| {
                let (_, rest) = line.split_once(':')?;
                let (controllers, path) = rest.split_once(':')?;
                controllers.split(',').any(|c| c == controller).then(|| {
                    PathBuf::from("/sys/fs/cgroup")
                        .join(controller)
                        .join(path.trim_start_matches('/'))
                })
            })
        };
        let folder = own("memory")?.join(name);
        std::fs::create_dir(&folder).ok()?;
        let mut group = Self {
            killed: folder.join("memory.oom_control"),
            known: AtomicU64::new(0),
            folders: vec![folder.clone()],
        };
        std::fs::write(folder.join("memory.limit_in_bytes"), memory.to_string()).ok()?;
        let _ = std::fs::write(
            folder.join("memory.memsw.limit_in_bytes"),
            memory.to_string(),
        );
        if let Some(folder) = own("pids").map(|folder| folder.join(name))
            && std::fs::create_dir(&folder).is_ok()
        {
            group.folders.push(folder.clone());
            std::fs::write(folder.join("pids.max"), pids.to_string()).ok()?;
        }
        Some(group)
    }

    /// Puts a process, and all it will start, into the group.
    pub(crate) fn take(&self, pid: i32) -> std::io::Result<()> {
        self.folders
            .iter()
            .try_for_each(|folder| std::fs::write(folder.join("cgroup.procs"), pid.to_string()))
    }

    /// Whether the kernel has ended a process in it for memory since this was last asked.
    pub(crate) fn has_killed(&self) -> bool {
        let events = std::fs::read_to_string(&self.killed).unwrap_or_default();
        let count = events
            .lines()
            .find_map(|line| line.strip_prefix("oom_kill "))
            .and_then(|count| count.trim().parse().ok())
            .unwrap_or(0);
        self.known.swap(count, Ordering::Relaxed) < count
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        for folder in &self.folders {
            // Its processes have been waited for, but the kernel lets go of them a little later.
            for _ in 0..50 {
                match std::fs::remove_dir(folder) {
                    Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                        std::thread::sleep(std::time::Duration::from_millis(1));
                    }
                    _ => break,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_a_tree_counts_this_process_and_its_children() {
        let alone = tree_memory(std::process::id() as i32, u64::MAX);
        assert!(alone > 0);
    }
}
