//! The app: the modules that make up Ward, composed in one place.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use broker::Broker;
use gate::redact::Redactor;
use gate::runtime::{Launch, Near, Waiting};
use gate::{Gate, GateOptions};
use notebooks::Notebooks;
use protocol::method::ExecuteParams;
use protocol::sandbox::SandboxStatus;
use protocol::{ActionName, Digest, Facts, Failure};
use runner::Runner;
use runner::provider::Registry;
use serde_json::Value;
use serde_json::value::RawValue;
use server::auth::Tokens;
use server::{About, Parts, Server};
use store_sqlite::{DataFolder, SqliteStore};

use crate::{folders, settings};

/// Ward, as the owner of a data folder.
pub(crate) struct App {
    pub(crate) store: Arc<SqliteStore>,
    pub(crate) gate: Gate<SqliteStore>,
    pub(crate) runner: Runner<SqliteStore>,
    pub(crate) broker: Broker<SqliteStore>,
    pub(crate) notebooks: Notebooks<SqliteStore>,
}

impl App {
    /// Puts Ward together on a data folder that this process owns.
    pub(crate) async fn open(folder: DataFolder, workspace: &Path) -> anyhow::Result<Self> {
        let settings = settings::read()?;
        let registry = Registry::new(&settings.providers, |name| std::env::var(name).ok());
        let options = GateOptions {
            config: folders::config()?,
            data: folder.path().to_owned(),
            head: head_file(folder.path())?,
            workspace: workspace.to_owned(),
            home: home(),
            own: gate::real_folders(&own(folder.path())?),
            launch: launch(folder.path())?,
            patience: settings.expire_after,
            redactor: Arc::new(Redactor::from_environment(registry.keys())?),
        };
        let editors = broker::Options {
            lease: settings.lease,
            here: Some(broker::Here {
                program: options.launch.program.clone(),
                socket: folder.path().join(protocol::http::SOCKET_HOST),
                data: folder.path().to_owned(),
                usable: usable(own(folder.path())?),
            }),
        };
        let kept = notebooks::Options {
            data: folder.path().to_owned(),
            lease: settings.lease,
            workspace: workspace.to_owned(),
        };
        let store = Arc::new(SqliteStore::open(folder)?);
        let gate = Gate::open(Arc::clone(&store), options).await?;
        let runner = Runner::new(gate.clone(), registry, settings.models);
        let broker = Broker::open(Arc::clone(&store), editors).await?;
        let notebooks = Notebooks::open(gate.clone(), kept).await?;
        gate.connect(Arc::new(notebooks.beside(Arc::new(broker.clone()))));
        Ok(Self {
            store,
            gate,
            runner,
            broker,
            notebooks,
        })
    }

    /// Ends all that runs. What waits for an answer waits on.
    pub(crate) async fn close(&self) {
        self.runner.close().await;
        self.gate.close().await;
    }

    /// Ward over HTTP: on this address, or on its socket alone.
    pub(crate) fn server(
        &self,
        tokens: Tokens,
        workspace: &Path,
        sandbox: SandboxStatus,
        address: Option<SocketAddr>,
    ) -> (Server, About) {
        let about = About {
            version: env!("CARGO_PKG_VERSION").into(),
            workspace: workspace.display().to_string(),
            sandbox,
            store: self.store.path().display().to_string(),
        };
        if address.is_some() {
            self.broker.listens();
        }
        let server = Server::new(Parts {
            about: about.clone(),
            gate: self.gate.clone(),
            runner: self.runner.clone(),
            broker: self.broker.clone(),
            notebooks: self.notebooks.clone(),
            tokens: Arc::new(tokens),
            address,
        });
        (server, about)
    }
}

/// Who may talk to Ward. The first person's token is made where there is none.
pub(crate) fn tokens() -> anyhow::Result<Tokens> {
    let tokens = Tokens::open(&folders::config()?)?;
    tokens.first_person()?;
    Ok(tokens)
}

/// The token that commands of the first person use: the one in WARD_TOKEN, or their own.
pub(crate) fn own_token() -> anyhow::Result<String> {
    match std::env::var("WARD_TOKEN") {
        Ok(token) if !token.is_empty() => return Ok(token),
        Ok(_) | Err(_) => {}
    }
    tokens()?;
    Tokens::own(&folders::config()?)?
        .context("There is no token of yours in the config folder. `ward tokens add --person NAME` makes one; give it as WARD_TOKEN.")
}

/// The data folder: the one that was named, or the usual one.
pub(crate) fn data_folder(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    match named {
        Some(data) => Ok(std::path::absolute(data)?),
        None => folders::data(),
    }
}

/// Whether the head of a ledger in this folder is known.
pub(crate) fn has_head(data: &Path) -> bool {
    head_file(data).is_ok_and(|file| file.exists())
}

/// Where the ledger's head is kept: outside the data folder, one for each.
fn head_file(data: &Path) -> anyhow::Result<PathBuf> {
    let real = data.canonicalize()?;
    let digest = Digest::of(real.as_os_str().as_encoded_bytes());
    let name: String = digest.as_str().chars().skip(7).take(16).collect();
    let folder = folders::state()?.join("ledger");
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder)
        .with_context(|| format!("{} cannot be made", folder.display()))?;
    Ok(folder.join(name))
}

fn home() -> Option<String> {
    let home = std::env::home_dir()?.canonicalize().ok()?;
    home.to_str().map(ToOwned::to_owned)
}

/// Ward's own folders, with this one for the store.
fn own(data: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut own = folders::own()?;
    own.extend([folders::state()?, data.to_owned()]);
    Ok(own)
}

/// Refuses what holds Ward's own folders, and what is no workspace of a command.
fn usable(own: Vec<PathBuf>) -> broker::Usable {
    Arc::new(
        move |folder| match sandbox::usable_workspace(folder, &own) {
            Ok(_) => Ok(()),
            Err(error) => Err(Failure::new(
                protocol::ErrorKind::SandboxFailed,
                error.to_string(),
            )),
        },
    )
}

/// Runtime servers are this program again, with a pipe of their own.
fn launch(data: &Path) -> anyhow::Result<Launch> {
    let program = std::env::current_exe().context("Ward cannot find its own program")?;
    let arguments = ["runtime", "--gated", "--stdio", "--own"].map(OsString::from);
    let arguments = arguments.into_iter().chain([data.into()]);
    let own = own(data)?;
    Ok(Launch {
        program,
        arguments: arguments.collect(),
        near: Some(Arc::new(move |workspace| {
            let near = runtime_server::Near::open(workspace, &own)?;
            Ok(Arc::new(Here(near)) as Arc<dyn Near>)
        })),
    })
}

/// The runtime server's own code, in the gate's process.
struct Here(runtime_server::Near);

impl Near for Here {
    fn look<'a>(
        &'a self,
        action: &'a str,
        params: &'a Value,
    ) -> Waiting<'a, Option<Result<Facts, Failure>>> {
        Box::pin(self.0.look(action, params))
    }

    fn does(&self, action: &str) -> bool {
        ActionName::parse(action).is_some_and(runtime_server::Near::does)
    }

    fn execute(&self, params: ExecuteParams) -> Waiting<'_, Result<Box<RawValue>, Failure>> {
        Box::pin(self.0.execute(params))
    }
}
