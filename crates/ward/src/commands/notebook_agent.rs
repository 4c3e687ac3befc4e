//! `ward notebook agent`: the runtime of a notebook, as a process.

use std::ffi::OsString;
use std::io::{BufRead as _, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use notebook::SessionState;
use runtime_native::{
    AgentHandle, Capabilities, Ending, Http, HttpStore, Kernels, NotebookStore as _, RuntimeArgs,
    Specs, carry_comms, create_agent_on, echo, open_store, parse_runtime_args,
};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use super::notebook::behind_a_wall;
use super::variable;
use crate::commands::run_async;
use crate::console::{printable, tell};
use crate::{folders, workspace};

/// The longest token.
const MAX_LINE: u64 = 1024;

/// Run the cells of a notebook that `ward serve` has
///
/// What the gate lets run is run here, in order, on a Jupyter kernel inside the sandbox: it can read
/// and write the notebook's workspace, and reaches neither your home folder nor the network. A newer
/// agent of the same notebook takes this one's place. Ctrl-C ends it, and its kernel.
#[derive(Debug, clap::Args)]
#[command(
    after_long_help = "What is not given is taken from WARD_URL, WARD_TOKEN, WARD_CLIENT_ID and \
    WARD_NOTEBOOK; the token also from the config folder.\n\n\
    Examples:\n  \
    ward notebook agent --notebook 4f2a --client-id ada --kernel python\n  \
    ward notebook agent --notebook 4f2a --client-id ada --kernel echo"
)]
pub(crate) struct Args {
    /// Which notebook
    #[arg(long, value_name = "ID")]
    notebook: Option<String>,

    /// The id of the person whose agent this is: yours
    #[arg(long, value_name = "USER")]
    client_id: Option<String>,

    /// What runs the cells: echo, python, or an installed Jupyter kernel
    #[arg(long, value_name = "KERNEL", default_value = "python")]
    kernel: String,

    /// What this runtime is called [default: native-KERNEL]
    #[arg(long, value_name = "NAME")]
    runtime_id: Option<String>,

    /// Where Ward is [default: http://127.0.0.1:3000]
    #[arg(long, value_name = "URL")]
    url: Option<String>,

    /// The folder that cells may read and write [default: the notebook's]
    ///
    /// Where Ward is on another machine, it has to be named. Where it is another folder than the
    /// notebook's on this one, each run asks: it was decided on for the notebook's.
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,

    /// Started by Ward: the token is the first line of standard input, and its end is the agent's
    #[arg(long, hide = true)]
    gated: bool,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let named = args.workspace;
    let mut words: Vec<OsString> = vec!["--kernel".into(), args.kernel.into()];
    let flags = [
        ("--notebook", args.notebook),
        ("--client-id", args.client_id),
        ("--runtime-id", args.runtime_id),
        ("--url", args.url),
    ];
    for (flag, value) in flags {
        if let Some(value) = value {
            words.extend([flag.into(), value.into()]);
        }
    }
    let token = match args.gated {
        true => Some(first_line()?),
        false => None,
    };
    let given = |name: &str| match (&token, name) {
        (Some(token), "WARD_TOKEN") => Some(token.clone()),
        _ => variable(name),
    };
    let gated = args.gated;
    let args = parse_runtime_args(words, given, &folders::config()?)?;
    run_async(serve(args, named, gated))
}

/// The first line of standard input.
fn first_line() -> anyhow::Result<String> {
    let mut line = String::new();
    let read = std::io::stdin().lock().take(MAX_LINE).read_line(&mut line);
    read.context("Standard input cannot be read")?;
    Ok(line.trim().to_owned())
}

/// Ready when standard input is at its end: whoever started this is gone, or wants it to end. The
/// thread is left to itself, as nothing can wake it.
fn end_of_input() -> oneshot::Receiver<()> {
    let (sender, ended) = oneshot::channel();
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        let _ = sender.send(());
    });
    ended
}

async fn serve(args: RuntimeArgs, named: Option<PathBuf>, gated: bool) -> anyhow::Result<ExitCode> {
    let told = "Ward could not prepare for signals";
    let mut interrupt = signal(SignalKind::interrupt()).context(told)?;
    let mut terminate = signal(SignalKind::terminate()).context(told)?;
    let mut input = match gated {
        true => Some(end_of_input()),
        false => None,
    };
    let store = open_store(&args).await?;
    let (kernels, capabilities) = match args.kernel.as_str() {
        // It runs nothing.
        "echo" => {
            let capabilities = Capabilities {
                can_execute_code: true,
                can_execute_sql: true,
                confined: true,
                ..Capabilities::default()
            };
            (None, capabilities)
        }
        name => {
            let spec = Specs::usual(variable).find(name)?;
            let place = place(named.as_deref(), args.is_here(), store.workspace())?;
            let (options, mut capabilities) = behind_a_wall(spec, place.folder, true)?;
            capabilities.confined &= place.is_the_notebooks;
            capabilities.takes_comms = true;
            (Some(Kernels::new(options)), capabilities)
        }
    };
    let mut agent = create_agent_on(&store, &args, capabilities)?;
    match &kernels {
        None => agent.on_execution(echo),
        Some(kernels) => {
            // A kernel that cannot start is told before the agent is there.
            tokio::select! {
                started = kernels.start() => drop(started?),
                _ = interrupt.recv() => return Ok(ExitCode::from(130)),
                _ = terminate.recv() => return Ok(ExitCode::from(143)),
                () = at_end(&mut input) => return Ok(ExitCode::SUCCESS),
            }
            let anew = kernels.clone();
            agent.on_restart(move || {
                let anew = anew.clone();
                async move { anew.restart().await.map_err(|error| error.to_string()) }
            });
            let kernels = kernels.clone();
            agent.on_execution(move |context| {
                let kernels = kernels.clone();
                async move { kernels.execute(context).await }
            });
        }
    }
    let handle = agent.handle();
    let mut going = std::pin::pin!(agent.start());
    let mut syncing = std::pin::pin!(store.sync());
    let mut carrying = std::pin::pin!(async {
        match &kernels {
            Some(kernels) => carry_comms(&store, &handle, kernels).await,
            None => std::future::pending().await,
        }
    });
    let mut waits = true;
    let ending = loop {
        tokio::select! {
            never = &mut carrying => match never {},
            // Only now does the notebook have it: whoever runs a cell finds it there.
            () = has_notebook(&store, &handle), if waits => {
                waits = false;
                if gated {
                    // Whoever reads it may be gone; then standard input is at its end too.
                    let _ = writeln!(std::io::stdout(), "ready");
                }
                tell(&format!(
                    "runs the cells of the notebook {} ({}); Ctrl-C ends it",
                    printable(&args.notebook),
                    printable(&args.kernel)
                ));
            }
            ending = &mut going => break ending?,
            why = &mut syncing => break Ending::Lost(why),
            _ = interrupt.recv() => handle.shutdown(),
            _ = terminate.recv() => handle.shutdown(),
            () = at_end(&mut input) => {
                input = None;
                handle.shutdown();
            }
        }
    };
    if let Some(kernels) = &kernels {
        kernels.end().await;
    }
    match ending {
        Ending::Shutdown => Ok(ExitCode::SUCCESS),
        Ending::Displaced => {
            tell(&ending.to_string());
            Ok(ExitCode::SUCCESS)
        }
        Ending::Terminated(_) | Ending::Lost(_) | Ending::Refused(_) => {
            tell(&printable(&ending.to_string()));
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Waits until the agent's session is there, for all who see the notebook.
async fn has_notebook<H: Http>(store: &HttpStore<H>, handle: &AgentHandle) {
    loop {
        let changed = store.changed();
        let session = handle.session();
        let is_there = session.is_some_and(|id| {
            store.look(|seen| {
                let session = seen.state.session(&id);
                session.is_some_and(|session| match session.state {
                    SessionState::Ready | SessionState::Busy | SessionState::Restarting => true,
                    SessionState::Starting | SessionState::Terminated => false,
                })
            })
        });
        if is_there {
            return;
        }
        changed.await;
    }
}

async fn at_end(input: &mut Option<oneshot::Receiver<()>>) {
    match input {
        // A thread that could not be started is no reason to end.
        Some(input) => {
            if input.await.is_err() {
                std::future::pending::<()>().await;
            }
        }
        None => std::future::pending().await,
    }
}

/// Where cells run.
struct Place {
    folder: PathBuf,
    /// Whether it is what the gate decides on: the notebook's workspace, or, where that is on
    /// another machine, the folder that was named for it.
    is_the_notebooks: bool,
}

/// The folder that was named, or the notebook's own where it is on this machine.
fn place(named: Option<&Path>, is_here: bool, notebooks: &str) -> anyhow::Result<Place> {
    if !is_here && named.is_none() {
        bail!(
            "The notebook's workspace is on another machine. Name the folder here that cells may read and write with --workspace."
        );
    }
    let folder = workspace::find(Some(named.unwrap_or(Path::new(notebooks))))?;
    let is_the_notebooks = !is_here || folder == Path::new(notebooks);
    if !is_the_notebooks {
        tell(&format!(
            "{} is not the notebook's workspace, so that each run asks",
            printable(&folder.to_string_lossy())
        ));
    }
    Ok(Place {
        folder,
        is_the_notebooks,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_notebooks_own_workspace_is_what_was_decided_on() {
        let ours = tempfile::tempdir().unwrap();
        let ours = ours.path().canonicalize().unwrap();
        let other = tempfile::tempdir().unwrap();
        let notebooks = ours.to_str().unwrap();
        let found = place(None, true, notebooks).unwrap();
        assert!(found.is_the_notebooks && found.folder == ours);
        assert!(
            place(Some(&ours), true, notebooks)
                .unwrap()
                .is_the_notebooks
        );
        assert!(
            !place(Some(other.path()), true, notebooks)
                .unwrap()
                .is_the_notebooks
        );
        let told = place(None, false, notebooks).err().unwrap().to_string();
        assert!(told.contains("--workspace"), "{told}");
        assert!(
            place(Some(other.path()), false, notebooks)
                .unwrap()
                .is_the_notebooks
        );
    }
}
