//! `ward grants`: answers that hold for longer, and taking them back.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use protocol::approval::GrantInfo;
use serde::Deserialize;

use crate::client::Client;
use crate::commands::run_async;
use crate::console::printable;
use crate::ids::{is_meant, short};

/// List remembered answers, or take one back
///
/// A grant is a yes that holds for more than once: in one session, or in one workspace. It lifts a
/// question, never a rule that denies. Revoked or expired, it no longer holds, also for what runs: a connection that it let through is
/// closed, and a command that runs under it, or with the wall widened by it, is ended.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:\n  \
    ward grants\n  \
    ward grants revoke 4f2a")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<What>,

    /// Where the store is kept [default: ~/.local/share/ward]
    #[arg(long, value_name = "DIR", global = true)]
    data: Option<PathBuf>,

    /// Print JSON, for programs
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// List the grants that hold
    List,
    /// Take a grant back
    Revoke {
        /// The grant's id, or the beginning of it
        #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
        id: String,
    },
}

#[derive(Deserialize)]
struct Listed {
    grants: Vec<GrantInfo>,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    run_async(async {
        let client = Client::open(args.data.as_deref(), "ward grants").await?;
        let done = work(&client, args.what.unwrap_or(What::List), args.json).await;
        client.close().await;
        done
    })
}

async fn work(client: &Client, what: What, json: bool) -> anyhow::Result<ExitCode> {
    let Listed { grants } = client.get("/grants").await?;
    let mut out = std::io::stdout().lock();
    match what {
        What::List if json => writeln!(out, "{}", serde_json::to_string_pretty(&grants)?)?,
        What::List if grants.is_empty() => writeln!(out, "Nothing is granted.")?,
        What::List => {
            for grant in &grants {
                let id = short(&grant.id);
                let place = match &grant.session_id {
                    Some(session) => format!("session {session}"),
                    None => format!("workspace {}", grant.workspace),
                };
                writeln!(
                    out,
                    "{id}  {}  {}",
                    printable(&grant.role),
                    printable(&grant.pattern)
                )?;
                writeln!(
                    out,
                    "          in {}, by {}",
                    printable(&place),
                    printable(&grant.by)
                )?;
            }
        }
        What::Revoke { id } => {
            let mut fits = grants.iter().filter(|grant| is_meant(&grant.id, &id));
            let grant = match (fits.next(), fits.next()) {
                (Some(grant), None) => grant,
                (Some(_), Some(_)) => {
                    anyhow::bail!("Several grants begin with `{id}`. Write more of the id.")
                }
                (None, _) => anyhow::bail!("There is no grant `{id}`. `ward grants` lists them."),
            };
            let gone: GrantInfo = client.delete(&format!("/grants/{}", grant.id)).await?;
            writeln!(
                out,
                "Revoked: {} for {}.",
                printable(&gone.pattern),
                printable(&gone.role)
            )?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
