//! A workspace over the life of a room: what a command may not change when it starts, and what it
//! must not leave behind when it ends.
//!
//! What appears while a command runs is taken for its doing, what appears while none runs for the
//! person's.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use protocol::sandbox::SetAside;

use super::message::Protected;
use super::scan::{Found, Scanner};
use super::sweep::sweep;
use crate::aside::Aside;
use crate::os_text::OsText;

/// A workspace with what was found in it at the last look.
#[derive(Debug)]
pub(crate) struct Workspace {
    root: PathBuf,
    scanner: Scanner,
    known: Found,
    aside: Aside,
    /// Sockets of the person's own programs.
    hidden: BTreeSet<PathBuf>,
    running: u32,
    /// What the commands that run may change though it is protected.
    granted: Vec<PathBuf>,
    /// Set aside while something ran, not yet told in an outcome.
    untold: Vec<SetAside>,
}

/// What the workspace demands of one command.
#[derive(Debug, Default)]
pub(crate) struct Demands {
    pub(crate) protected: Vec<Protected>,
    pub(crate) hidden: Vec<OsText>,
}

impl Workspace {
    pub(crate) fn new(root: &Path, aside: Aside) -> Self {
        let mut scanner = Scanner::new(root);
        // So that the first command finds most of it known.
        scanner.look();
        Self {
            root: root.to_owned(),
            scanner,
            known: Found::default(),
            aside,
            hidden: BTreeSet::new(),
            running: 0,
            granted: Vec::new(),
            untold: Vec::new(),
        }
    }

    fn begin(&mut self, granted: &[PathBuf]) -> Demands {
        let mut now = self.scanner.look();
        if self.running > 0 {
            now = self.set_aside(now);
        }
        let new = now
            .sockets
            .iter()
            .filter(|socket| !self.known.sockets.contains(socket));
        let theirs: Vec<PathBuf> = if self.running == 0 {
            new.cloned().collect()
        } else {
            let listening = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
            let outside = |socket: &&PathBuf| {
                socket
                    .to_str()
                    .is_some_and(|path| listening.lines().any(|line| line.ends_with(path)))
            };
            new.filter(outside).cloned().collect()
        };
        self.hidden.extend(theirs);
        self.known = now;
        self.running += 1;
        self.granted.extend_from_slice(granted);
        let hidden = self
            .known
            .sockets
            .iter()
            .filter(|socket| self.hidden.contains(*socket));
        let hidden = hidden.map(|socket| OsText(socket.clone().into())).collect();
        Demands {
            protected: self.known.to_protect(),
            hidden,
        }
    }

    /// Sets aside what is there by now that a command made; what was, since somebody was told.
    pub(crate) fn sweep(&mut self) -> Vec<SetAside> {
        let now = self.scanner.look();
        self.known = self.set_aside(now);
        std::mem::take(&mut self.untold)
    }

    fn set_aside(&mut self, now: Found) -> Found {
        let granted = |path: &Path| self.granted.iter().any(|granted| path.starts_with(granted));
        let taken = sweep(&self.root, &self.known, &now, &self.aside, granted);
        if taken.is_empty() {
            return now;
        }
        self.untold.extend(taken);
        let mut left = self.scanner.look();
        // A command that runs may have made something since: that is not known, and is looked at the
        // next time.
        let known = &self.known;
        left.carriers.retain(|path, found| {
            let found = Some(&*found);
            now.carriers.get(path) == found || known.carriers.get(path) == found
        });
        left.links.retain(|path, target| {
            let target = Some(&*target);
            now.links.get(path) == target || known.links.get(path) == target
        });
        left
    }
}

/// One command's stay in the workspace.
#[derive(Debug)]
pub(crate) struct Stay {
    /// None for who is trusted, after whom nobody sweeps.
    workspace: Option<Arc<Mutex<Workspace>>>,
    granted: Vec<PathBuf>,
}

impl Stay {
    /// Begins it, for a command that may change `granted` though it is protected.
    pub(crate) fn begin(
        workspace: Option<&Arc<Mutex<Workspace>>>,
        granted: Vec<PathBuf>,
    ) -> (Self, Demands) {
        let demands = workspace.map(|workspace| lock(workspace).begin(&granted));
        (
            Self {
                workspace: workspace.cloned(),
                granted,
            },
            demands.unwrap_or_default(),
        )
    }

    /// Ends it; what was set aside.
    pub(crate) fn end(self) -> Vec<SetAside> {
        let workspace = self.workspace.as_ref();
        workspace.map_or_else(Vec::new, |workspace| lock(workspace).sweep())
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        let Some(workspace) = &self.workspace else {
            return;
        };
        let mut workspace = lock(workspace);
        workspace.running = workspace.running.saturating_sub(1);
        for granted in &self.granted {
            if let Some(at) = workspace.granted.iter().position(|path| path == granted) {
                workspace.granted.swap_remove(at);
            }
        }
    }
}

pub(crate) fn lock(workspace: &Mutex<Workspace>) -> MutexGuard<'_, Workspace> {
    workspace.lock().unwrap_or_else(PoisonError::into_inner)
}
