//! A kernel, a workspace, and cells to run.

use std::path::{Path, PathBuf};

use notebook::{CellId, CellType, ExecutionId, Media, StreamKind};
use protocol::sandbox::Tier;
use runtime_native::{
    ExecutionContext, Finished, Job, KernelOptions, KernelSpec, Kernels, Outbox, Said, Specs,
};
use sandbox::{Limits, Net, RoomOptions, Wall};
use serde_json::Value;

/// A kernel that runs in a room of its own.
pub(crate) struct Bench {
    folder: tempfile::TempDir,
    pub(crate) kernels: Kernels,
}

/// The environment with ipykernel, which `cargo xtask test` makes.
pub(crate) fn environment() -> PathBuf {
    let named = std::env::var_os("WARD_IPYKERNEL");
    let named = named.expect("WARD_IPYKERNEL names a venv with ipykernel, matplotlib and pandas; `cargo xtask test` makes one");
    PathBuf::from(named)
}

pub(crate) fn spec() -> KernelSpec {
    Specs::of_environment(&environment())
        .find("python")
        .unwrap()
}

fn room(folder: &Path) -> RoomOptions {
    RoomOptions {
        wall: Wall {
            workspace: folder.join("ws"),
            net: Net::Listening,
            limits: Limits {
                memory: 2 << 30,
                pids: 400,
                tmp: 256 << 20,
            },
        },
        state: folder.join("state"),
        own: Vec::new(),
        minimum: Tier::Walls,
    }
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::asking(false)
    }

    pub(crate) fn asking(asks: bool) -> Self {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        std::fs::create_dir(folder.path().join("ws")).unwrap();
        let kernels = Kernels::new(KernelOptions {
            spec: spec(),
            room: room(folder.path()),
            asks,
        });
        Self { folder, kernels }
    }

    /// Another kernel, in a room of its own on the same workspace.
    pub(crate) fn another(&self, spec: KernelSpec) -> Kernels {
        Kernels::new(KernelOptions {
            spec,
            room: room(self.folder.path()),
            asks: false,
        })
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.folder.path().join("ws")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// Runs a cell to its end.
    pub(crate) async fn run(&self, source: &str) -> Ran {
        let outbox = Outbox::new();
        let finished = self.kernels.execute(context(source, &outbox)).await;
        Ran {
            finished,
            said: outbox.take(),
        }
    }
}

pub(crate) fn context(source: &str, outbox: &Outbox) -> ExecutionContext {
    let job = Job {
        execution_id: ExecutionId::new("e").unwrap(),
        cell_id: CellId::new("c").unwrap(),
        cell_type: CellType::Code,
        source: source.to_owned(),
        requested_by: None,
    };
    ExecutionContext::new(job, outbox.clone())
}

/// What a cell did.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) finished: Finished,
    pub(crate) said: Vec<Said>,
}

impl Ran {
    /// All that was printed.
    pub(crate) fn printed(&self) -> String {
        self.on(StreamKind::Stdout)
    }

    /// All that was told on standard error.
    pub(crate) fn told(&self) -> String {
        self.on(StreamKind::Stderr)
    }

    fn on(&self, wanted: StreamKind) -> String {
        let texts = self.said.iter().filter_map(|said| match said {
            Said::Terminal { stream, text } if *stream == wanted => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    /// What is shown in this media type.
    pub(crate) fn shown(&self, media_type: &str) -> Option<Value> {
        self.said.iter().find_map(|said| match said {
            Said::Display { bundle, .. } | Said::Result { bundle, .. } => {
                match bundle.data.get(media_type)? {
                    Media::Inline(value) => Some(value.clone()),
                    Media::Artifact(_) => None,
                }
            }
            _ => None,
        })
    }

    pub(crate) fn error(&self) -> Option<(String, String)> {
        self.said.iter().find_map(|said| match said {
            Said::Error { name, value, .. } => Some((name.clone(), value.clone())),
            _ => None,
        })
    }
}

/// Waits until a cell has said something.
pub(crate) async fn said(outbox: &Outbox) -> Vec<Said> {
    loop {
        let said = outbox.take();
        if said.iter().any(|one| matches!(one, Said::Terminal { .. })) {
            return said;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

/// The processes of this machine whose command line names a folder.
pub(crate) fn processes_of(folder: &Path) -> Vec<String> {
    let wanted = folder.to_string_lossy().into_owned();
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(&wanted)).collect()
}
