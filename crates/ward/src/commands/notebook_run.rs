//! `ward notebook run`: a notebook from its first cell to its last, without anybody in front.

use std::fs::{DirBuilder, Permissions};
use std::io::{IsTerminal as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use notebook::{
    CellId, Execution, ExecutionCancel, ExecutionId, ExecutionRequested, ExecutionState, Media,
    NotebookEvent, NotebookMetadata, Output, SessionState,
};
use runtime_native::{
    AgentOptions, Capabilities, HttpStore, KernelOptions, Kernels, NotebookStore as _,
    RuntimeAgent, Specs, echo, runtime_type,
};
use serde_json::{Map, Value, json};
use tempfile::NamedTempFile;
use tokio::signal::unix::{SignalKind, signal};

use super::notebook::behind_a_wall;
use super::notebook_way::Way;
use super::variable;
use crate::client::{Client, encoded};
use crate::commands::run_async;
use crate::console::{printable, tell};
use crate::duration::Span;
use crate::{app, workspace};

/// The largest file.
const MAX_FILE: u64 = 256 << 20;

/// Run a notebook, without anybody in front
///
/// Its cells run one after the other on a Jupyter kernel inside the sandbox, through the gate like
/// everything else. Where no Ward runs, this command is one for as long as it lasts.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Exit codes:\n  \
    0    all cells ran\n  \
    1    a cell failed, or something else went wrong\n  \
    2    the arguments do not fit\n  \
    3    a cell was refused\n  \
    130  it was cancelled\n\n\
    Examples:\n  \
    ward notebook run analysis.ipynb --out done.ipynb\n  \
    ward notebook run analysis.ipynb --venv --out done.ipynb")]
pub(crate) struct Args {
    /// The notebook
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Where it goes with its outputs; without it, what cells print goes to standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// What runs the cells: python, an installed Jupyter kernel, or echo [default: the notebook's]
    #[arg(long, value_name = "KERNEL")]
    kernel: Option<String>,

    /// Where no kernel for Python is installed, make an environment with one in Ward's data folder
    #[arg(long)]
    venv: bool,

    /// Go on after a cell that failed
    #[arg(long)]
    allow_errors: bool,

    /// How long each cell may run at most, such as 5m
    #[arg(long, value_name = "TIME")]
    timeout: Option<Span>,

    /// The folder that cells may read and write [default: the current one]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,

    /// Where the store is kept [default: ~/.local/share/ward]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let workspace = workspace::find(args.workspace.as_deref())?;
    let file = read(&args.file)?;
    let named = file["metadata"]["kernelspec"]["name"].as_str();
    let kernel = args.kernel.clone();
    let kernel = kernel.unwrap_or_else(|| named.unwrap_or("python").to_owned());
    let out = args.out.as_deref().map(Out::prepare).transpose()?;
    let kernels = match kernel.as_str() {
        "echo" => None,
        name => {
            let found = Specs::usual(variable).find(name);
            let spec = match found {
                Err(_) if args.venv => {
                    Specs::of_environment(&environment(args.data.as_deref())?).find(name)?
                }
                Err(missing) if matches!(name, "python" | "python3") => {
                    bail!("{missing} Or let Ward make one: --venv")
                }
                found => found?,
            };
            Some(behind_a_wall(spec, workspace.clone(), false)?)
        }
    };
    run_async(async {
        let client = Client::open(args.data.as_deref(), "ward notebook run").await?;
        let client = Rc::new(client);
        let title = args.file.file_stem().unwrap_or_default().to_string_lossy();
        let body = json!({"title": title, "workspace": workspace, "ipynb": file});
        let made: anyhow::Result<Value> = client.post("/notebooks", &body).await;
        let told = match made {
            Ok(made) => {
                let id = made["id"].as_str().context("Ward made no notebook")?;
                let told = execute(&args, &client, id, &kernel, kernels, out).await;
                let path = format!("/notebooks/{}", encoded(id));
                if let Err(error) = client.delete::<Value>(&path).await {
                    tracing::warn!("the notebook could not be taken away: {error:#}");
                }
                told
            }
            Err(error) => Err(error),
        };
        if let Ok(client) = Rc::try_unwrap(client) {
            client.close().await;
        }
        told
    })
}

/// Runs all cells of a notebook that Ward has, and writes the file.
async fn execute(
    args: &Args,
    client: &Rc<Client>,
    id: &str,
    kernel: &str,
    kernels: Option<(KernelOptions, Capabilities)>,
    out: Option<Out>,
) -> anyhow::Result<ExitCode> {
    let store = HttpStore::open(Way(Rc::clone(client)), id).await?;
    let capabilities = match &kernels {
        Some((_, capabilities)) => capabilities.clone(),
        None => Capabilities {
            can_execute_code: true,
            confined: true,
            ..Default::default()
        },
    };
    let options = AgentOptions {
        runtime_id: "ward-notebook-run".to_owned(),
        runtime_type: runtime_type(kernel),
        client_id: store.user(),
        session_id: None,
    };
    let mut agent = RuntimeAgent::new(store.clone(), capabilities, options)?;
    let kernels = kernels.map(|(options, _)| Kernels::new(options));
    if let Some(kernels) = &kernels {
        let language = kernels.start().await?;
        describe(&store, kernel, language);
        let kernels = kernels.clone();
        agent.on_execution(move |context| {
            let kernels = kernels.clone();
            async move { kernels.execute(context).await }
        });
    } else {
        agent.on_execution(echo);
    }
    let handle = agent.handle();
    let mut going = std::pin::pin!(agent.start());
    let mut syncing = std::pin::pin!(store.sync());
    let run = Run {
        store: &store,
        args,
    };
    let mut running = std::pin::pin!(run.all());
    let ended = tokio::select! {
        ended = &mut running => ended,
        ending = &mut going => bail!("{}", ending?),
        why = &mut syncing => bail!("{why}"),
    };
    let code = match ended {
        Ok(code) => {
            if let Some(out) = out {
                let path = format!("/notebooks/{}/ipynb", encoded(id));
                out.write(&client.get(&path).await?)?;
            }
            Ok(code)
        }
        Err(error) => Err(error),
    };
    handle.shutdown();
    tokio::select! {
        _ = &mut going => {}
        _ = &mut syncing => {}
    }
    if let Some(kernels) = kernels {
        kernels.end().await;
    }
    code
}

/// Says what runs the notebook, where it does not say so itself.
fn describe(store: &HttpStore<Way>, kernel: &str, language: Value) {
    let mut set = Map::new();
    store.look(|seen| {
        let known = &seen.state.metadata;
        if !known.contains_key("language_info") {
            set.insert("language_info".to_owned(), language.clone());
        }
        if !known.contains_key("kernelspec") {
            let name = &language["name"];
            let spec = json!({"name": kernel, "display_name": kernel, "language": name});
            set.insert("kernelspec".to_owned(), spec);
        }
    });
    if !set.is_empty() {
        HttpStore::write(
            store,
            NotebookEvent::NotebookMetadata(NotebookMetadata { set }),
        );
    }
}

/// A notebook that is run.
struct Run<'a> {
    store: &'a HttpStore<Way>,
    args: &'a Args,
}

impl Run<'_> {
    async fn all(&self) -> anyhow::Result<ExitCode> {
        let told = "Ward could not prepare for signals";
        let mut interrupt = signal(SignalKind::interrupt()).context(told)?;
        let mut terminate = signal(SignalKind::terminate()).context(told)?;
        let mut stopping = std::pin::pin!(async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        });
        self.until(|seen| {
            let active = seen.active(None);
            active.is_some_and(|session| session.state == SessionState::Ready)
        })
        .await;
        let cells = self.cells();
        let bar = bar(cells.len());
        let mut code = ExitCode::SUCCESS;
        for (number, cell) in cells.iter().enumerate() {
            bar.set_message(format!("cell {}", number + 1));
            let id = ExecutionId::new(format!("run-{}", number + 1))?;
            let wanted = ExecutionRequested {
                execution_id: id.clone(),
                cell_id: cell.clone(),
                runtime_type: None,
                role: None,
            };
            HttpStore::write(self.store, NotebookEvent::ExecutionRequested(wanted));
            let over = self.over(&id);
            let run = tokio::select! {
                run = over => run,
                () = &mut stopping => {
                    self.cancel(&id);
                    self.over(&id).await;
                    bar.abandon();
                    tell("cancelled");
                    return Ok(ExitCode::from(130));
                }
                () = limit(self.args.timeout) => {
                    self.cancel(&id);
                    self.over(&id).await
                }
            };
            self.print(cell, &bar)?;
            bar.inc(1);
            if let Some((sentence, exit)) = went_wrong(&run) {
                bar.suspend(|| tell(&format!("cell {}: {}", number + 1, printable(&sentence))));
                code = ExitCode::from(exit);
                if !self.args.allow_errors {
                    bar.abandon();
                    return Ok(code);
                }
            }
        }
        bar.finish_and_clear();
        Ok(code)
    }

    /// The cells of code that say something, in order.
    fn cells(&self) -> Vec<CellId> {
        self.store.look(|seen| {
            let cells = seen.state.cells().into_iter();
            let cells = cells.filter(|cell| cell.cell_type == notebook::CellType::Code);
            let cells = cells.filter(|cell| !cell.source.trim().is_empty());
            cells.map(|cell| cell.cell_id.clone()).collect()
        })
    }

    fn cancel(&self, id: &ExecutionId) {
        let event = ExecutionCancel {
            execution_id: id.clone(),
        };
        HttpStore::write(self.store, NotebookEvent::ExecutionCancel(event));
    }

    /// Waits for the end of a run.
    async fn over(&self, id: &ExecutionId) -> Execution {
        loop {
            let changed = self.store.changed();
            let run = self.store.look(|seen| seen.state.execution(id).cloned());
            if let Some(run) = run.filter(|run| run.state.is_over()) {
                return run;
            }
            changed.await;
        }
    }

    async fn until(&self, is: impl Fn(&notebook::Notebook) -> bool) {
        loop {
            let changed = self.store.changed();
            if self.store.look(|seen| is(&seen.state)) {
                return;
            }
            changed.await;
        }
    }

    /// What a cell shows as text, where it goes to no file.
    fn print(&self, cell: &CellId, bar: &ProgressBar) -> anyhow::Result<()> {
        if self.args.out.is_some() {
            return Ok(());
        }
        let outputs = self.store.look(|seen| {
            let cell = seen.state.cell(cell);
            cell.map(|cell| cell.outputs.clone()).unwrap_or_default()
        });
        let terminal = std::io::stdout().is_terminal();
        bar.suspend(|| {
            let mut out = std::io::stdout().lock();
            for text in outputs.iter().filter_map(text) {
                let mut lines = text.lines();
                let written = lines.try_for_each(|line| match terminal {
                    // What a cell prints must not move the cursor.
                    true => writeln!(out, "{}", printable(line)),
                    false => writeln!(out, "{line}"),
                });
                written?;
            }
            out.flush()
        })?;
        Ok(())
    }
}

/// An output as text.
fn text(output: &Output) -> Option<String> {
    match output {
        Output::Terminal { text, .. } | Output::Markdown { text } => Some(text.clone()),
        Output::Display { bundle, .. } | Output::Result { bundle, .. } => {
            match bundle.data.get("text/plain")? {
                Media::Inline(Value::String(text)) => Some(text.clone()),
                Media::Inline(_) | Media::Artifact(_) => None,
            }
        }
        Output::Error { name, value, .. } => Some(format!("{name}: {value}")),
        Output::Dropped { bytes } => Some(format!("({bytes} bytes were dropped)")),
        Output::Kept { .. } => None,
    }
}

/// What went wrong in a run, and what the command exits with for it.
fn went_wrong(run: &Execution) -> Option<(String, u8)> {
    match (run.state, &run.failed) {
        (ExecutionState::Completed, _) => None,
        (ExecutionState::Cancelled, _) => Some(("it took too long, and was stopped".into(), 1)),
        (_, Some(failed)) if failed.kind == "denied" => Some((failed.message.clone(), 3)),
        (_, Some(failed)) => Some((failed.message.clone(), 1)),
        (_, None) => Some(("it failed".to_owned(), 1)),
    }
}

async fn limit(time: Option<Span>) {
    match time {
        Some(time) => tokio::time::sleep(time.0).await,
        None => std::future::pending().await,
    }
}

/// A bar for a person in front; nothing for anybody else.
fn bar(cells: usize) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(cells as u64), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} {elapsed}");
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

fn read(path: &Path) -> anyhow::Result<Value> {
    let told = || format!("{} cannot be read", path.display());
    if std::fs::metadata(path).with_context(told)?.len() > MAX_FILE {
        bail!("{} is too large for a notebook", path.display());
    }
    let bytes = std::fs::read(path).with_context(told)?;
    let file: Value = serde_json::from_slice(&bytes)
        .with_context(|| format!("{} is no notebook", path.display()))?;
    match file["nbformat"].as_u64() {
        Some(4) => Ok(file),
        Some(other) => bail!(
            "{} has the format {other}; Ward reads format 4. `jupyter nbconvert --to notebook` brings it there.",
            path.display()
        ),
        None => bail!("{} is no notebook: it has no `nbformat`", path.display()),
    }
}

/// Where the file goes: whole, or it stays as it was.
///
/// It is opened before any cell runs, under a name that nobody can guess: a cell may write beside
/// it, and must not be able to lead Ward elsewhere by a link.
struct Out {
    file: NamedTempFile,
    path: PathBuf,
}

impl Out {
    fn prepare(path: &Path) -> anyhow::Result<Self> {
        let path = std::path::absolute(path)?;
        let told = || format!("{} cannot be written", path.display());
        let folder = path.parent().with_context(told)?;
        let file = tempfile::Builder::new()
            .prefix(".ward-")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder)
            .with_context(told)?;
        Ok(Self { file, path })
    }

    fn write(mut self, file: &Value) -> anyhow::Result<()> {
        let told = || format!("{} cannot be written", self.path.display());
        let mut bytes = Vec::new();
        let style = serde_json::ser::PrettyFormatter::with_indent(b" ");
        let mut writer = serde_json::Serializer::with_formatter(&mut bytes, style);
        serde::Serialize::serialize(file, &mut writer)?;
        bytes.push(b'\n');
        self.file.write_all(&bytes).with_context(told)?;
        self.file.persist(&self.path).with_context(told)?;
        Ok(())
    }
}

/// An environment of Ward's own with a kernel for Python, made where there is none.
fn environment(data: Option<&Path>) -> anyhow::Result<PathBuf> {
    let data = app::data_folder(data)?;
    // It may be the first thing in the data folder, which is for this user alone.
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&data)
        .with_context(|| format!("{} cannot be made", data.display()))?;
    let folder = data.join("python");
    if Specs::of_environment(&folder).find("python").is_ok() {
        return Ok(folder);
    }
    tell(&format!("installs ipykernel into {}", folder.display()));
    let place = folder
        .to_str()
        .context("The data folder's name is no text")?;
    run_python(Path::new("python3"), &["-m", "venv", place])?;
    let pip = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ];
    let words: Vec<&str> = pip.into_iter().chain(["ipykernel"]).collect();
    run_python(&folder.join("bin/python"), &words)?;
    Ok(folder)
}

/// Runs a Python of the person's own. It takes nothing from the current folder: what lies in a
/// workspace is not trusted.
fn run_python(program: &Path, words: &[&str]) -> anyhow::Result<()> {
    let status = Command::new(program)
        .arg("-I")
        .args(words)
        .current_dir("/")
        .stdout(Stdio::null())
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => bail!("`{}` failed: {status}", program.display()),
        Err(error) => bail!("`{}` could not be run: {error}", program.display()),
    }
}
