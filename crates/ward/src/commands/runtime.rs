//! `ward runtime`: the runtime server, standalone over standard input and output or on a port, or
//! behind the gate that started it.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use protocol::method::Authority;
use runtime_server::{
    Listener, Reach, RoomSettings, Runtime, RuntimeOptions, Token, serve_listen, serve_stdio,
    stop_on_signals,
};
use sandbox::Net;

use crate::size::ByteSize;
use crate::{address, folders, settings, workspace};

/// How long threads that may block have when everything else has ended.
const PATIENCE: Duration = Duration::from_millis(500);

/// Do file and terminal actions over JSON-RPC
///
/// Speaks JSON-RPC 2.0 with Content-Length frames, as npm's vscode-jsonrpc does. `initialize`
/// answers every action with the schema of its parameters. Without a gate it is standalone: every
/// command runs in the sandbox, and file actions stay inside the workspace.
#[derive(Debug, clap::Args)]
#[command(
    group = clap::ArgGroup::new("where").required(true).args(["stdio", "listen"]),
    after_long_help = "On a port, `initialize` has to carry the token: {\"token\": \"…\"}. Prefer WARD_TOKEN over --token:\n\
        other users of the machine can see the arguments of a program.\n\n\
        Examples:\n  \
        ward runtime --stdio --workspace ~/src/app --net github.com\n  \
        WARD_TOKEN=\"$(openssl rand -hex 32)\" ward runtime --listen 127.0.0.1:3001"
)]
pub(crate) struct Args {
    /// Talk over standard input and output
    #[arg(long)]
    stdio: bool,

    /// Talk to clients that connect here, such as 127.0.0.1:3001; port 0 takes a free one
    #[arg(long, value_name = "ADDR", value_parser = address::parse)]
    listen: Option<SocketAddr>,

    /// The folder that actions work in [default: the current one]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,

    /// Hosts that commands may reach by name, such as `github.com,db.example:5432`, or `none`
    #[arg(long, value_name = "HOSTS", default_value = "none", value_parser = super::exec::net)]
    net: Net,

    /// The largest message that is taken, such as 4M; a larger one is answered with an error
    #[arg(long, value_name = "SIZE", default_value = "64M")]
    frame_limit: ByteSize,

    /// What clients on the port have to know [default: one is made and printed]
    #[arg(long, value_name = "TOKEN", env = "WARD_TOKEN", hide_env_values = true)]
    token: Option<String>,

    /// Let other machines connect; they still have to know the token
    #[arg(long, requires = "listen")]
    allow_remote: bool,

    /// Take the permits of the gate that started this process, and do nothing without one
    // A requirement is passed over where what it requires is excluded, so that both are said.
    #[arg(long, requires = "stdio", conflicts_with_all = ["listen", "net"], hide = true)]
    gated: bool,

    /// A folder of Ward's own, beside the usual ones, that no action may touch
    #[arg(long, value_name = "DIR", requires = "gated", hide = true)]
    own: Vec<PathBuf>,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let settings = settings::read()?;
    let mut own = folders::own()?;
    own.extend(args.own);
    let authority = if args.gated {
        Authority::Gated
    } else {
        Authority::Standalone
    };
    let (workspace, state) = (
        workspace::find(args.workspace.as_deref())?,
        folders::state()?,
    );
    if authority == Authority::Standalone {
        // Everything is confined here, so nothing could be done where nothing can be.
        let own: Vec<PathBuf> = own.iter().chain([&state]).cloned().collect();
        sandbox::usable_workspace(&workspace, &own)?;
    }
    let runtime = Runtime::open(RuntimeOptions {
        workspace,
        rooms: RoomSettings {
            state,
            own,
            minimum: settings.minimum,
            net: args.net,
            limits: settings.limits,
        },
        frame: usize::try_from(args.frame_limit.0).unwrap_or(usize::MAX),
    })?;
    let mut threads = match args.listen {
        // One client: one thread serves it with the least work for each request.
        None => tokio::runtime::Builder::new_current_thread(),
        Some(_) => tokio::runtime::Builder::new_multi_thread(),
    };
    let threads = threads
        .enable_all()
        .build()
        .context("Ward could not start its threads")?;
    let result = match args.listen {
        None => threads.block_on(over_stdio(runtime, authority)),
        Some(addr) => {
            let reach = if args.allow_remote {
                Reach::Anywhere
            } else {
                Reach::Loopback
            };
            threads.block_on(on_port(runtime, addr, reach, args.token))
        }
    };
    threads.shutdown_timeout(PATIENCE);
    result.map(|()| ExitCode::SUCCESS)
}

async fn over_stdio(runtime: Arc<Runtime>, authority: Authority) -> anyhow::Result<()> {
    let stop = stop_on_signals().context("Ward could not prepare for signals")?;
    serve_stdio(runtime, authority, stop)
        .await
        .context("Standard input or output cannot be used")?;
    Ok(())
}

async fn on_port(
    runtime: Arc<Runtime>,
    addr: SocketAddr,
    reach: Reach,
    token: Option<String>,
) -> anyhow::Result<()> {
    let stop = stop_on_signals().context("Ward could not prepare for signals")?;
    let chosen = token.is_some();
    let token = match token {
        Some(text) => Token::new(text)?,
        None => Token::random()?,
    };
    let listener = Listener::bind(&addr.to_string(), reach).await?;
    greet(listener.address(), (!chosen).then(|| token.reveal()))
        .context("Standard output is closed")?;
    serve_listen(runtime, listener, token, stop).await;
    Ok(())
}

fn greet(addr: SocketAddr, made: Option<&str>) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "Ward's runtime is on {addr}")?;
    if let Some(token) = made {
        writeln!(out, "  token  {token}")?;
    }
    out.flush()
}
