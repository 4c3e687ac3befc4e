//! Whom Ward is measured beside: installed by name into the cache, or by apt-get where that may be.
//! One that cannot be had leaves its rows empty, and they say so.

use std::path::PathBuf;

use anyhow::Context as _;

use super::Subject;
use super::kernel::Kernel;
use super::python::{self, Python};
use crate::cache::Places;
use crate::{needs, run};

/// Those that are written here, in tests/node/bench.
pub(crate) const SERVERS: [&str; 5] = [
    "server.mjs",
    "agents.mjs",
    "broker.mjs",
    "notebook.mjs",
    "jupyter.py",
];

/// What there is of them.
#[derive(Debug)]
pub(crate) struct Peers {
    /// What npm installed.
    pub(crate) node_modules: PathBuf,
    /// The peers that are written here: a server on `vscode-jsonrpc`, one on `@openai/agents`, one on
    /// `socket.io`, stores of a notebook, a client of a kernel.
    pub(crate) servers: [PathBuf; 5],
    /// What pip installed.
    pub(crate) python: Option<Python>,
    /// A Jupyter kernel.
    pub(crate) kernel: Option<Kernel>,
}

/// Gets what can be had.
pub(crate) fn install(places: &Places, subject: Subject) -> anyhow::Result<Peers> {
    if subject == Subject::Runtime
        && !run::on_path("bwrap")
        && let Err(error) = needs::install_packages(&["bubblewrap"])
    {
        println!("{error:#}\nThe rows beside bwrap stay empty.");
    }
    let source = places.root.join("tests/node/bench");
    let folder = places.cache.join("peers");
    let wanted = std::fs::read(source.join("package.json")).context("the peers are not named")?;
    // Written last, so that what was interrupted is done again.
    let done = folder.join("installed.json");
    if std::fs::read(&done).ok().as_ref() == Some(&wanted) {
        println!("Nothing is missing.");
    } else {
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join("package.json"), &wanted)?;
        run::run(
            run::program("npm", &folder).args([
                "install",
                "--no-audit",
                "--no-fund",
                "--no-package-lock",
                // What LiveStore's packages name as peers does not go together; what is needed is named.
                "--legacy-peer-deps",
            ]),
            "Is the npm registry reachable? `npm ping` says.",
        )?;
        std::fs::write(done, &wanted)?;
    }
    let python = match subject {
        Subject::Runtime
        | Subject::Runner
        | Subject::Broker
        | Subject::Notebook
        | Subject::Page => None,
        Subject::Gate => python::install(places)
            .inspect_err(|error| {
                println!("{error:#}\nThe rows beside {} stay empty.", python::shown());
            })
            .ok(),
    };
    let kernel = match subject {
        Subject::Notebook => Kernel::install(places)
            .inspect_err(|error| {
                println!("{error:#}\nThe row of a kernel stays empty.");
            })
            .ok(),
        Subject::Runtime | Subject::Gate | Subject::Runner | Subject::Broker | Subject::Page => {
            None
        }
    };
    Ok(Peers {
        node_modules: folder.join("node_modules"),
        servers: SERVERS.map(|name| source.join(name)),
        python,
        kernel,
    })
}
