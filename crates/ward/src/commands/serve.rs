//! `ward serve`: Ward on a port, with its store.

use std::future::Future;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail};
use protocol::http::SOCKET_HOST;
use protocol::sandbox::SandboxStatus;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use server::auth::Tokens;
use server::{About, Socket};
use store::{Append, Expected, Millis, NewEvent, Store as _, StreamName};
use store_sqlite::{DataFolder, SqliteStore};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::agents::Agents;
use crate::app::{self, App};
use crate::opener::Opener;
use crate::{address, console, folders, settings, workspace};

/// Files that can be open at once, where the system allows it.
const FILES: u64 = 8192;

/// Start Ward on 127.0.0.1:3000
///
/// The gate over HTTP: agents and programs ask for actions with a token, people answer in the
/// browser or with `ward approvals`. The page is opened through a link that signs in once. One Ward
/// owns a data folder; other commands find it by its socket there. Ctrl-C or SIGTERM ends it.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:\n  \
    ward serve\n  \
    ward serve --workspace ~/src/app --addr 127.0.0.1:4000\n  \
    curl http://127.0.0.1:3000/healthz")]
pub(crate) struct Args {
    /// Where to answer; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:3000", value_parser = address::parse)]
    addr: SocketAddr,

    /// The folder that agents work in [default: the current one]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,

    /// Where the store is kept [default: ~/.local/share/ward]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// One more token of yours, beside the one in the config folder; it is kept nowhere
    #[arg(long, value_name = "TOKEN", env = "WARD_TOKEN", hide_env_values = true)]
    token: Option<String>,

    /// Let other machines connect; they still need a token, and nothing is encrypted
    #[arg(long)]
    allow_remote: bool,

    /// Do not open the page in the browser
    #[arg(long)]
    no_open: bool,

    /// End when standard input does: when whoever started Ward has gone, however it went
    #[arg(long)]
    until_stdin_ends: bool,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    if !args.addr.ip().is_loopback() && !args.allow_remote {
        bail!(
            "{} can be reached from other machines, and what is said there is not encrypted. Use a loopback address, such as 127.0.0.1:{}, or say --allow-remote.",
            args.addr,
            args.addr.port()
        );
    }
    more_files();
    let settings = settings::read()?;
    let workspace = workspace::find(args.workspace.as_deref())?;
    let sandbox = sandbox::probe(settings.minimum, &folders::state()?);
    let data = app::data_folder(args.data.as_deref())?;
    let folder = DataFolder::own(&data, &format!("ward serve --addr {}", args.addr))?;
    let mut tokens = app::tokens()?;
    if let Some(token) = &args.token {
        tokens.accept(token)?;
    }
    // One thread for all that is asked: an action is a tenth of a millisecond of work, and a second
    // thread would take part of it over again and again, which costs more than it saves. What takes
    // long, or waits for the disk, has threads of its own.
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("Ward could not start its threads")?
        .block_on(async {
            let opener = if args.no_open { None } else { Opener::find()? };
            let asked = asked_to_end(args.until_stdin_ends)?;
            serve(
                args.addr, folder, &workspace, sandbox, tokens, opener, asked,
            )
            .await
        })?;
    Ok(ExitCode::SUCCESS)
}

/// Takes leave for more open files, as far as it may: many systems begin with a thousand, and a
/// thousand editors are as many.
fn more_files() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(FILES, |most| most.min(FILES));
    if limit.current.is_none_or(|current| current >= wanted) {
        return;
    }
    let more = Rlimit {
        current: Some(wanted),
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, more) {
        tracing::debug!(%error, "there is no leave for more open files");
    }
}

async fn serve(
    addr: SocketAddr,
    folder: DataFolder,
    workspace: &Path,
    sandbox: SandboxStatus,
    tokens: Tokens,
    opener: Option<Opener>,
    asked: impl Future<Output = ()> + Send,
) -> anyhow::Result<()> {
    let stop = CancellationToken::new();
    let socket = Socket::bind(&folder.path().join(SOCKET_HOST))?;
    let app = App::open(folder, workspace).await?;
    let listener = TcpListener::bind(addr).await.with_context(|| {
        format!("{addr} cannot be used; --addr names another address, and with port 0 a free one")
    })?;
    let addr = listener.local_addr()?;
    let (server, about) = app.server(tokens, workspace, sandbox, Some(addr));
    let agents = Agents::new(addr, Arc::clone(server.tokens()))?;
    app.notebooks.start_agents_with(agents.share());
    let started = json!({
        "version": about.version,
        "process": std::process::id(),
        "workspace": about.workspace,
        "address": addr.to_string(),
    });
    record(&app.store, "ward.started", started).await?;
    app.gate.wake()?;
    app.runner.take_up().await?;
    greet(addr, &about, server.login_link()?.as_deref()).context("Standard output is closed")?;
    if let Err(error) = sandbox::usable_workspace(workspace, &folders::own()?) {
        console::tell(&format!(
            "{error} As it is, nothing is done there in sandbox mode."
        ));
    }
    if let (Some(opener), Some(link)) = (&opener, server.login_link()?) {
        opener.open(&link);
    }
    sandbox::settle();
    let (result, ()) = tokio::join!(
        server::serve(listener, server.router(), async {
            asked.await;
            // While they can still say what became of their runs.
            agents.close().await;
            stop.cancel();
        }),
        server::serve_unix(socket, server.router(), stop.cancelled()),
    );
    // Those that were started meanwhile.
    agents.close().await;
    app.close().await;
    record(
        &app.store,
        "ward.stopped",
        json!({"process": std::process::id()}),
    )
    .await?;
    result.context("Ward could not go on answering")
}

/// Ready when Ward is asked to end.
fn asked_to_end(until_stdin_ends: bool) -> anyhow::Result<impl Future<Output = ()> + Send> {
    let catch = |kind| signal(kind).context("Ward could not prepare for signals");
    let mut interrupt = catch(SignalKind::interrupt())?;
    let mut terminate = catch(SignalKind::terminate())?;
    let mut hangup = catch(SignalKind::hangup())?;
    let input = CancellationToken::new();
    if until_stdin_ends {
        let input = input.clone();
        std::thread::Builder::new()
            .name("stdin".into())
            .spawn(move || {
                // What is written there means nothing; one that cannot be read has ended.
                let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
                input.cancel();
            })
            .context("Ward could not start its threads")?;
    }
    Ok(async move {
        tokio::select! {
            () = input.cancelled() => {}
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
        tracing::info!("Ward was asked to end");
    })
}

/// Writes what happens to Ward itself to its own stream.
async fn record(
    store: &SqliteStore,
    kind: &'static str,
    data: serde_json::Value,
) -> anyhow::Result<()> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let event = NewEvent {
        kind: kind.into(),
        at: Millis(u64::try_from(now.as_millis()).unwrap_or(u64::MAX)),
        data: data.into(),
    };
    store
        .append(vec![Append {
            stream: StreamName::new("ward")?,
            expected: Expected::Any,
            events: vec![event],
        }])
        .await?;
    Ok(())
}

fn greet(addr: SocketAddr, about: &About, link: Option<&str>) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "Ward is on http://{addr}")?;
    writeln!(out, "  workspace  {}", about.workspace)?;
    writeln!(out, "  sandbox    {}", about.sandbox.tier)?;
    writeln!(out, "  store      {}", about.store)?;
    if let Some(link) = link {
        writeln!(out, "  sign in    {link}")?;
    }
    writeln!(out, "Ctrl-C ends it.")?;
    out.flush()
}
