//! What the figures were measured on, and beside which versions.

use std::process::Command;

use super::peers::Peers;
use super::{Subject, python};
use crate::run;

/// A list in Markdown.
pub(crate) fn describe(peers: &Peers, subject: Subject) -> anyhow::Result<String> {
    let said = |program: &str, arguments: &[&str]| {
        run::output(Command::new(program).args(arguments))
            .map_or_else(|_| "not there".to_owned(), |text| text.trim().to_owned())
    };
    let npm_version = |package: &str| {
        let manifest = peers.node_modules.join(package).join("package.json");
        let line = format!("require({manifest:?}).version");
        said("node", &["-p", &line])
    };
    let processors = std::thread::available_parallelism()?;
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: Vec<&str> = load.split(' ').take(3).collect();
    let mut beside = vec![format!("Node {}", said("node", &["--version"]))];
    let codex = || format!("@openai/codex {}", npm_version("@openai/codex"));
    match subject {
        Subject::Runtime => {
            beside.push(codex());
            beside.push(format!("vscode-jsonrpc {}", npm_version("vscode-jsonrpc")));
            beside.push(said("bwrap", &["--version"]));
        }
        Subject::Runner => {
            for package in ["@openai/agents", "openai"] {
                beside.push(format!("{package} {}", npm_version(package)));
            }
        }
        Subject::Broker => beside.push(format!("socket.io {}", npm_version("socket.io"))),
        Subject::Notebook => {
            let packages = [
                "@livestore/livestore",
                "@livestore/adapter-node",
                "better-sqlite3",
            ];
            for package in packages {
                beside.push(format!("{package} {}", npm_version(package)));
            }
            if let Some(kernel) = &peers.kernel {
                beside.push(kernel.version());
                for package in ["ipykernel", "jupyter_client"] {
                    beside.push(format!("{package} {}", kernel.package(package)));
                }
            }
        }
        // It is measured beside nothing.
        Subject::Page => {}
        Subject::Gate => {
            beside.push(codex());
            let package = "@modelcontextprotocol/server-filesystem";
            beside.push(format!("{package} {}", npm_version(package)));
            if let Some(python) = &peers.python {
                beside.extend([python.version(), python::shown()]);
            }
        }
    }
    let lines = [
        format!("- Date: {}", said("date", &["-u", "+%F"])),
        format!("- Kernel: {}", said("uname", &["-srm"])),
        format!("- Processors: {processors} ({})", model()),
        format!("- Load before the run: {}", load.join(" ")),
        format!("- Beside: {}", beside.join(", ")),
    ];
    Ok(lines.join("\n"))
}

fn model() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.trim() == "model name")
        .map_or_else(
            || std::env::consts::ARCH.to_owned(),
            |(_, model)| model.trim().to_owned(),
        )
}
