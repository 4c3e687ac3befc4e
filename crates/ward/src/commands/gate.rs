//! `ward gate`: the gate as JSON-RPC, for an editor or any host that embeds it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use gate::Actor;
use protocol::http::SOCKET_HOST;
use protocol::method::EXIT;
use rpc::{Frame, FrameReader};
use runtime_server::{standard_streams, stop_on_signals};
use serde::Deserialize;
use server::auth::Identity;
use store_sqlite::{DataFolder, OpenError};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy};

use crate::app::{self, App};
use crate::{client, workspace};

/// How long threads that may block have when everything else has ended.
const PATIENCE: Duration = Duration::from_millis(500);
/// How much is passed on at a time.
const PIECE: usize = 64 * 1024;
/// What says `exit` is no longer than this.
const SHORT: usize = 1024;

/// Ask for actions over JSON-RPC, decided by roles and rules
///
/// For an editor or any other host that embeds Ward. Speaks JSON-RPC 2.0 with Content-Length
/// frames, as npm's vscode-jsonrpc does. Every action goes through the gate: it is decided by the
/// role and the rules, asked about with `permission/requested` where it must be, run in the sandbox
/// and recorded. Where a Ward owns the data folder already, this is a client of it, in the same
/// workspace, and ends when that Ward does.
#[derive(Debug, clap::Args)]
#[command(
    after_long_help = "The host is the person who starts it; with a token in WARD_TOKEN it is whoever that belongs to.\n\n\
    Examples:\n  \
    ward gate --stdio --workspace ~/src/app"
)]
pub(crate) struct Args {
    /// Talk over standard input and output
    #[arg(long, required = true)]
    stdio: bool,

    /// The folder that actions work in [default: the current one]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,

    /// Where the store is kept [default: ~/.local/share/ward]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let workspace = workspace::find(args.workspace.as_deref())?;
    let data = app::data_folder(args.data.as_deref())?;
    let threads = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("Ward could not start its threads")?;
    threads.block_on(async {
        match DataFolder::own(&data, "ward gate --stdio") {
            // As a task: whenever what is blocked on is woken by another, the event loop looks for
            // I/O first, and here every action wakes it.
            Ok(folder) => tokio::spawn(own(folder, workspace)).await?,
            Err(OpenError::Held { folder, .. }) if folder.join(SOCKET_HOST).exists() => {
                pass_on(&folder.join(SOCKET_HOST), &workspace).await
            }
            Err(error) => Err(error.into()),
        }
    })?;
    threads.shutdown_timeout(PATIENCE);
    Ok(ExitCode::SUCCESS)
}

/// Serves the host with a gate of our own.
async fn own(folder: DataFolder, workspace: PathBuf) -> anyhow::Result<()> {
    let stop = stop_on_signals().context("Ward could not prepare for signals")?;
    let actor = actor()?;
    let app = App::open(folder, &workspace).await?;
    app.gate.wake()?;
    let (reader, writer) = standard_streams().context("Standard input or output cannot be used")?;
    let end = app.gate.serve(actor, None, reader, writer, stop).await;
    tracing::debug!(?end, "the client has gone");
    app.close().await;
    Ok(())
}

/// Whose word the host's is.
fn actor() -> anyhow::Result<Actor> {
    let tokens = app::tokens()?;
    let Ok(token) = std::env::var("WARD_TOKEN") else {
        return Ok(Actor::Person(tokens.first_person()?.name));
    };
    match tokens.authenticate(&token).map(|passed| passed.identity) {
        Some(Identity::Actor(actor)) => Ok(actor),
        Some(Identity::Runtime { .. } | Identity::Lent { .. }) => bail!(
            "The token in WARD_TOKEN is a runtime's; the gate takes a person's or an agent's."
        ),
        None => {
            bail!("The token in WARD_TOKEN is not one of Ward's. `ward tokens list` shows them.")
        }
    }
}

/// Hands every byte to the Ward that owns the data folder, and back, until either side has ended.
async fn pass_on(socket: &Path, workspace: &Path) -> anyhow::Result<()> {
    let stop = stop_on_signals().context("Ward could not prepare for signals")?;
    let there = client::knock(socket, &app::own_token()?, workspace).await?;
    let (mut input, mut output) =
        standard_streams().context("Standard input or output cannot be used")?;
    let (mut from, mut to) = tokio::io::split(there);
    let mut said = Said::Nothing;
    let back = async {
        // However Ward's side ends, it has: what was said last decides what that means.
        let _ = copy(&mut from, &mut output).await;
        let _ = output.flush().await;
    };
    let forth = async {
        // What Ward does not take any more is no failure of its own: its side ends as well.
        let _ = hand_over(&mut input, &mut to, &mut said).await;
        let _ = to.shutdown().await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = back => {}
        () = forth => {}
        () = stop.cancelled() => return Ok(()),
    }
    match said {
        Said::Exit | Said::End => Ok(()),
        Said::Nothing => bail!(
            "The Ward that owns the data folder has ended, or closed the connection. What was under way may go on there; start again to be its client, or to be a gate of your own."
        ),
    }
}

/// What the host said about its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    Nothing,
    /// `exit`.
    Exit,
    /// It closed its side.
    End,
}

/// Passes on what the host says, to its end, and notices how it ends.
async fn hand_over(
    input: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    said: &mut Said,
) -> std::io::Result<()> {
    let mut frames = FrameReader::new(SHORT);
    let mut piece = vec![0; PIECE];
    loop {
        let read = input.read(&mut piece).await?;
        let bytes = piece.get(..read).unwrap_or_default();
        if bytes.is_empty() {
            *said = Said::End;
            return Ok(());
        }
        frames.push(bytes);
        while let Some(frame) = frames.next() {
            if is_exit(frame) {
                *said = Said::Exit;
            }
        }
        to.write_all(bytes).await?;
        to.flush().await?;
    }
}

fn is_exit(frame: Frame<'_>) -> bool {
    #[derive(Deserialize)]
    struct Named {
        method: String,
    }
    match frame {
        Frame::Body(body) => {
            serde_json::from_slice::<Named>(body).is_ok_and(|named| named.method == EXIT)
        }
        Frame::TooLarge { .. } | Frame::Bad(_) => false,
    }
}
