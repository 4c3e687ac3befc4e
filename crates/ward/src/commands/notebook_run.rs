//! `ward notebook run`: a notebook from its first cell to its last, without anybody in front.

use std::fs::{DirBuilder, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use notebook::{NotebookEvent, NotebookMetadata, ipynb};
use protocol::ErrorKind;
use protocol::gate::{Ask, Failed};
use runtime_native::{
    AgentOptions, Capabilities, HttpStore, KernelOptions, KernelSpec, Kernels, NotebookStore as _,
    RuntimeAgent, Specs, echo, runtime_type,
};
use serde_json::{Map, Value, json};
use tempfile::NamedTempFile;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::notebook::behind_a_wall;
use super::notebook_asked::Questions;
use super::notebook_cells::{CANCELLED, Cells, bar};
use super::notebook_way::Way;
use super::run::ask;
use super::variable;
use crate::client::{Client, encoded};
use crate::commands::run_async;
use crate::console::tell;
use crate::duration::Span;
use crate::{app, workspace};

/// The largest file.
const MAX_FILE: u64 = 256 << 20;
/// For how long Ward may be away before the run is given up.
const GONE: Duration = Duration::from_secs(20);
/// How long Ward has to take the notebook away.
const FAREWELL: Duration = Duration::from_secs(5);

/// Run a notebook, without anybody in front
///
/// Its cells run one after the other on a Jupyter kernel inside the sandbox, through the gate like
/// everything else. Where no Ward runs, this command is one for as long as it lasts; nobody can be
/// asked there, so that what would ask is refused.
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
    pub(super) out: Option<PathBuf>,

    /// What runs the cells: python, an installed Jupyter kernel, or echo [default: the notebook's]
    #[arg(long, value_name = "KERNEL")]
    kernel: Option<String>,

    /// Where no kernel for Python is installed, make an environment with one in Ward's data folder
    #[arg(long)]
    venv: bool,

    /// Go on after a cell that failed
    #[arg(long)]
    pub(super) allow_errors: bool,

    /// Where a person's answer is needed: `wait` for it, by `ward approvals` or on the page, or
    /// `deny` [default: wait where `ward serve` runs, else deny]
    #[arg(long, value_name = "HOW", value_parser = ask)]
    ask: Option<Ask>,

    /// How long each cell may run at most, such as 5m
    #[arg(long, value_name = "TIME")]
    pub(super) timeout: Option<Span>,

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
    let named = file
        .get("metadata")
        .map(|about| &about["kernelspec"]["name"]);
    let named = named.and_then(Value::as_str);
    let kernel = args.kernel.clone();
    let kernel = kernel.unwrap_or_else(|| named.unwrap_or("python").to_owned());
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
    let notebook = Prepared {
        args,
        workspace,
        // What is only there to be looked at would count against what Ward takes.
        text: ipynb::to_text(&file),
        kernel,
        kernels,
    };
    run_async(async {
        // Before anything is made that a signal could leave behind.
        let mut signals = Signals::catch()?;
        let stop = CancellationToken::new();
        let mut working = std::pin::pin!(notebook.run(&stop));
        tokio::select! {
            told = &mut working => return told,
            () = signals.next() => stop.cancel(),
        }
        tokio::select! {
            told = &mut working => told,
            // Whoever asks twice waits for nobody. The kernel goes with this process.
            () = signals.next() => {
                tell("cancelled, without waiting for its end");
                Ok(ExitCode::from(CANCELLED))
            }
        }
    })
}

/// What asks this command to end.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn catch() -> anyhow::Result<Self> {
        let told = "Ward could not prepare for signals";
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).context(told)?,
            terminate: signal(SignalKind::terminate()).context(told)?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// A notebook that can be run.
struct Prepared {
    args: Args,
    workspace: PathBuf,
    /// The file's text.
    text: String,
    kernel: String,
    kernels: Option<(KernelOptions, Capabilities)>,
}

impl Prepared {
    async fn run(&self, stop: &CancellationToken) -> anyhow::Result<ExitCode> {
        let args = &self.args;
        let out = args.out.as_deref().map(Out::prepare).transpose()?;
        let (data, purpose) = (args.data.as_deref(), "ward notebook run");
        let client = match args.ask {
            // Whoever answers has to find it.
            Some(Ask::Wait) => Client::open_to_stay(data, &self.workspace, purpose).await?,
            Some(Ask::Deny) | None => Client::open(data, purpose).await?,
        };
        let client = Rc::new(client);
        let title = args.file.file_stem().unwrap_or_default().to_string_lossy();
        let body = json!({"title": title, "workspace": self.workspace, "ipynb": self.text});
        let made: anyhow::Result<Value> = client.post("/notebooks", &body).await;
        let told = match made {
            Ok(made) => {
                let id = made["id"].as_str().context("Ward made no notebook")?;
                let told = self.execute(&client, id, out, stop).await;
                let path = format!("/notebooks/{}", encoded(id));
                let gone = timeout(FAREWELL, client.delete::<Value>(&path)).await;
                if let Err(error) = gone.context("Ward does not answer").flatten() {
                    tracing::warn!("the notebook could not be taken away: {error:#}");
                }
                told
            }
            Err(error) => Err(about_the_file(error, &args.file)),
        };
        if let Ok(client) = Rc::try_unwrap(client) {
            client.close().await;
        }
        told
    }

    /// Runs all cells of a notebook that Ward has, and writes the file. Whatever comes of it, no
    /// kernel is left.
    async fn execute(
        &self,
        client: &Rc<Client>,
        id: &str,
        out: Option<Out>,
        stop: &CancellationToken,
    ) -> anyhow::Result<ExitCode> {
        let store = HttpStore::open(Way(Rc::clone(client)), id).await?;
        let kernels = self.kernels.as_ref();
        let kernels = kernels.map(|(options, _)| Kernels::new(options.clone()));
        let bar = bar();
        let ask = self.args.ask.unwrap_or(match client.is_owner() {
            true => Ask::Deny,
            false => Ask::Wait,
        });
        let questions = Questions::new(client, id, ask, &bar);
        let cells = Cells {
            store: &store,
            args: &self.args,
            stop,
            bar: &bar,
            questions: &questions,
        };
        let told = self.drive(&cells, kernels.as_ref()).await;
        bar.finish_and_clear();
        if let Some(kernels) = kernels {
            kernels.end().await;
        }
        let Some(code) = told? else {
            tell("cancelled before any cell ran");
            return Ok(ExitCode::from(CANCELLED));
        };
        if let Some(out) = out {
            let path = format!("/notebooks/{}/ipynb", encoded(id));
            let file = ipynb::parse(&client.text(&path).await?);
            out.write(&file.context("Ward's answer is not what was expected")?)?;
        }
        Ok(code)
    }

    /// Runs all cells, on a runtime of this process. [`None`] where it was cancelled before any ran.
    async fn drive(
        &self,
        cells: &Cells<'_>,
        kernels: Option<&Kernels>,
    ) -> anyhow::Result<Option<ExitCode>> {
        let (store, stop) = (cells.store, cells.stop);
        let capabilities = match &self.kernels {
            Some((_, capabilities)) => capabilities.clone(),
            None => Capabilities {
                can_execute_code: true,
                confined: true,
                ..Default::default()
            },
        };
        let options = AgentOptions {
            runtime_id: "ward-notebook-run".to_owned(),
            runtime_type: runtime_type(&self.kernel),
            client_id: store.user(),
            session_id: None,
        };
        let mut agent = RuntimeAgent::new(store.clone(), capabilities, options)?;
        if let Some(kernels) = kernels {
            let language = tokio::select! {
                language = kernels.start() => language?,
                () = stop.cancelled() => return Ok(None),
            };
            describe(store, kernels.spec(), language);
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
        let ended = tokio::select! {
            ended = cells.run() => ended,
            ending = &mut going => bail!("{}", ending?),
            why = &mut syncing => bail!("{why}"),
            never = cells.questions.watch() => match never {},
            () = store.away_for(GONE) => bail!(
                "Ward does not answer any more, so that nobody knows what became of the cells. Start it again, and run the notebook anew."
            ),
        };
        handle.shutdown();
        tokio::select! {
            _ = &mut going => {}
            _ = &mut syncing => {}
            // There is nobody to be told.
            () = store.away_for(Duration::ZERO) => {}
        }
        ended
    }
}

/// Says what runs the notebook, where it does not say so itself.
fn describe(store: &HttpStore<Way>, used: &KernelSpec, language: Value) {
    let mut set = Map::new();
    store.look(|seen| {
        let known = &seen.state.metadata;
        let named = known.get("kernelspec").map(|spec| &spec["name"]);
        let is_another = named.is_none_or(|name| *name != used.name);
        if is_another {
            let spec = json!({"name": used.name, "display_name": used.display_name, "language": used.language});
            set.insert("kernelspec".to_owned(), spec);
        }
        if is_another || !known.contains_key("language_info") {
            set.insert("language_info".to_owned(), language);
        }
    });
    if !set.is_empty() {
        HttpStore::write(
            store,
            NotebookEvent::NotebookMetadata(NotebookMetadata { set }),
        );
    }
}

/// Why Ward takes no notebook, in words about its file.
fn about_the_file(error: anyhow::Error, path: &Path) -> anyhow::Error {
    let failed = error.downcast_ref::<Failed>();
    match failed.is_some_and(|failed| failed.kind == ErrorKind::TooLarge) {
        true => too_large(path),
        false => error,
    }
}

fn too_large(path: &Path) -> anyhow::Error {
    let size = std::fs::metadata(path).map_or(0, |about| about.len());
    let file = path.display();
    anyhow!(
        "{file} has {} MiB, which is more than Ward takes. Its outputs are made anew: clear them in an editor, or by `jupyter nbconvert --clear-output --inplace {file}`.",
        size.div_ceil(1 << 20)
    )
}

fn read(path: &Path) -> anyhow::Result<Map<String, Value>> {
    let told = || format!("{} cannot be read", path.display());
    if std::fs::metadata(path).with_context(told)?.len() > MAX_FILE {
        return Err(too_large(path));
    }
    let bytes = std::fs::read(path).with_context(told)?;
    let no_notebook = || format!("{} is no notebook", path.display());
    let text = String::from_utf8(bytes).with_context(no_notebook)?;
    let file = ipynb::parse(&text).with_context(no_notebook)?;
    match file.get("nbformat").and_then(Value::as_u64) {
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
        if path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/") {
            let folder = path.display();
            bail!(
                "{folder} is a folder. Name a file in it with --out, such as {}.",
                path.join("done.ipynb").display()
            );
        }
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

    fn write(mut self, file: &Map<String, Value>) -> anyhow::Result<()> {
        let told = || format!("{} cannot be written", self.path.display());
        let text = ipynb::to_lines(file);
        self.file.write_all(text.as_bytes()).with_context(told)?;
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
