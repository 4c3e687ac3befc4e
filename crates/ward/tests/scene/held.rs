//! Attacks that stay where they are after they have tried, so that the host can look at them.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use super::Scene;

/// How long anything that must happen may take, on a machine that is busy.
pub(crate) const LONG: Duration = Duration::from_secs(20);

/// An attack that has tried and now waits; dropping it ends it.
#[derive(Debug)]
pub(crate) struct Waiting {
    child: Child,
    stdin: Option<ChildStdin>,
    /// The word in its command line by which its processes are known.
    mark: String,
    /// What it said before it waited.
    pub(crate) said: String,
}

/// A process as the host sees it.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    folder: PathBuf,
}

impl Scene {
    /// Starts an attack and waits until it has tried, or has been ended for trying.
    pub(crate) fn hold(&self, flags: &[&str], words: &[&str]) -> Waiting {
        let mark = self.mark();
        let argv = [&["./attack", mark.as_str()], words].concat();
        Waiting::start(self.command(flags, &argv), mark)
    }

    /// How long to wait for what shall not happen: long where it is meant to, in a counter-proof.
    pub(crate) fn patience(&self) -> Duration {
        match self.held {
            super::Held::Without(_) => LONG,
            super::Held::Room | super::Held::Walls | super::Held::Nothing => LONG / 100,
        }
    }

    /// A word that no other process on this machine has in its command line.
    pub(crate) fn mark(&self) -> String {
        format!("mark={}", self.name())
    }
}

impl Waiting {
    pub(crate) fn start(mut command: Command, mark: String) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let mut said = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        // The last line of every attack; where the kernel ended it, the stream ends instead.
        while lines.read_line(&mut said).unwrap() > 0 && !said.ends_with("tried\n") {}
        if !said.ends_with("tried\n") {
            let status = child.wait().unwrap();
            let ran = !matches!(status.code(), Some(125..=127));
            assert!(ran, "the command itself did not run: {status:?}");
        }
        Self {
            child,
            stdin,
            mark,
            said,
        }
    }

    /// The pid of the process that was started: `ward exec`, or what leads to it.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The attack's own processes, of all that its command line stands in.
    pub(crate) fn processes(&self) -> Vec<Process> {
        processes(&self.mark)
    }

    /// Whether the host sees a descriptor of this kind in it.
    pub(crate) fn has_descriptor(&self, kind: &str) -> bool {
        let processes = self.processes();
        let mut links = processes.iter().flat_map(Process::descriptors);
        links.any(|link| link.contains(kind))
    }

    /// Lets it end.
    pub(crate) fn finish(mut self) -> std::process::ExitStatus {
        drop(self.stdin.take());
        self.child.wait().unwrap()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        drop(self.stdin.take());
        if until(LONG, || matches!(self.child.try_wait(), Ok(Some(_)))).is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

impl Process {
    /// What a file of the process's folder in /proc says.
    pub(crate) fn tell(&self, name: &str) -> String {
        let mut text = Vec::new();
        if let Ok(mut file) = std::fs::File::open(self.folder.join(name)) {
            let _ = file.read_to_end(&mut text);
        }
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Where a link of the process's folder in /proc leads.
    pub(crate) fn link(&self, name: &str) -> String {
        let link = std::fs::read_link(self.folder.join(name)).unwrap_or_default();
        link.to_string_lossy().into_owned()
    }

    /// Where its descriptors lead.
    pub(crate) fn descriptors(&self) -> Vec<String> {
        let folder = std::fs::read_dir(self.folder.join("fd"));
        let entries = folder.into_iter().flatten().flatten();
        let links = entries.filter_map(|entry| std::fs::read_link(entry.path()).ok());
        links
            .map(|link| link.to_string_lossy().into_owned())
            .collect()
    }

    /// A number of its status, in kilobytes.
    pub(crate) fn kilobytes(&self, name: &str) -> u64 {
        let status = self.tell("status");
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|rest| rest.split_whitespace().next());
        number.and_then(|number| number.parse().ok()).unwrap_or(0)
    }

    /// A path as this process sees it, to be looked at from outside.
    pub(crate) fn inside(&self, path: &str) -> PathBuf {
        self.folder.join("root").join(path.trim_start_matches('/'))
    }
}

/// The processes on this machine with this word in their command line that run the attack program,
/// not one that leads to it.
pub(crate) fn processes(mark: &str) -> Vec<Process> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse() else {
            continue;
        };
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let mut words = line.split(|byte| *byte == 0);
        if words.next().is_some_and(|first| first.ends_with(b"attack"))
            && words.any(|word| word == mark.as_bytes())
        {
            found.push(Process {
                pid,
                folder: entry.path(),
            });
        }
    }
    found
}

/// Waits until something is so; how long it took, none where it never was.
pub(crate) fn until(at_most: Duration, mut so: impl FnMut() -> bool) -> Option<Duration> {
    let started = Instant::now();
    loop {
        if so() {
            return Some(started.elapsed());
        }
        if started.elapsed() > at_most {
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
