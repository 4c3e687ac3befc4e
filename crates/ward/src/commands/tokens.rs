//! `ward tokens`: who may talk to Ward, and as whom.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use policy::roles::NoRole;
use protocol::Mode;
use protocol::http::LoginLink;
use server::auth::{NewAgent, TokenKind, Tokens};

use crate::client::Client;
use crate::commands::{policy_files, run_async};
use crate::console::{printable, tell};
use crate::{folders, workspace};

/// Make, list and revoke tokens
///
/// A person's token answers approvals and chooses roles; an agent's is bound to one role, one
/// workspace and a mode. Ward keeps only their hashes: a token is shown once, when it is made.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:\n  \
    ward tokens add --role watcher --name ci --workspace ~/src/app\n  \
    ward tokens add --person ada\n  \
    ward tokens list\n  \
    ward tokens revoke 4f2a\n  \
    ward tokens link")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Make a token and print it, once
    #[command(group = clap::ArgGroup::new("whose").required(true).args(["role", "person"]))]
    Add {
        /// An agent's, with this role
        #[arg(long, value_name = "ROLE")]
        role: Option<String>,
        /// A person's, with this name
        #[arg(long, value_name = "NAME")]
        person: Option<String>,
        /// What the agent is called [default: its role]
        #[arg(long, value_name = "NAME", conflicts_with = "person")]
        name: Option<String>,
        /// The freest mode the agent may run in: sandbox or full
        #[arg(long, value_parser = mode, default_value = "sandbox", conflicts_with = "person")]
        mode: Mode,
        /// Where the agent works [default: the current folder]
        #[arg(long, value_name = "DIR", conflicts_with = "person")]
        workspace: Option<PathBuf>,
    },
    /// List the tokens
    List {
        /// Print JSON, for programs
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token; it is refused from then on
    Revoke {
        /// The token's id, or the beginning of it
        id: String,
    },
    /// Print a link that signs your browser in to the Ward that runs; it works once, for ten minutes
    Link {
        /// Where that Ward's store is kept [default: ~/.local/share/ward]
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
    },
}

fn mode(word: &str) -> Result<Mode, String> {
    Mode::parse(word).ok_or_else(|| "it is sandbox or full".to_owned())
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let tokens = Tokens::open(&folders::config()?)?;
    let first = tokens.first_person()?;
    let mut out = std::io::stdout().lock();
    match args.what {
        What::Add {
            person: Some(name), ..
        } => {
            let (_, secret) = tokens.add_person(&name)?;
            writeln!(out, "{secret}")?;
        }
        What::Add {
            role,
            name,
            mode,
            workspace,
            ..
        } => {
            let role = role.unwrap_or_default();
            let workspace = workspace::find(workspace.as_deref())?;
            match policy_files::read(&workspace)?.roles.get(&role) {
                Ok(_) => {}
                // It may be trusted later; until then the token is worth nothing.
                Err(error @ NoRole::Untrusted { .. }) => tell(&printable(&error.to_string())),
                Err(error @ (NoRole::Unknown { .. } | NoRole::Mistaken { .. })) => {
                    bail!("{}", printable(&error.to_string()))
                }
            }
            let (_, secret) = tokens.add_agent(NewAgent {
                name: name.unwrap_or_else(|| role.clone()),
                role,
                mode,
                workspace,
                person: first.name,
            })?;
            writeln!(out, "{secret}")?;
        }
        What::List { json: true } => {
            writeln!(out, "{}", serde_json::to_string_pretty(&tokens.list()?)?)?;
        }
        What::List { json: false } => {
            for token in tokens.list()? {
                let what = match &token.kind {
                    TokenKind::Person => "person".to_owned(),
                    TokenKind::Runtime => "runtime".to_owned(),
                    TokenKind::Agent {
                        role,
                        mode,
                        workspace,
                        ..
                    } => {
                        format!(
                            "agent, role {role}, mode {mode}, in {}",
                            workspace.display()
                        )
                    }
                };
                let id: String = token.id.chars().take(8).collect();
                writeln!(
                    out,
                    "{id}  {}  {}",
                    printable(&token.name),
                    printable(&what)
                )?;
            }
        }
        What::Revoke { id } => {
            let listed = tokens.list()?;
            let mut fits = listed.iter().filter(|token| token.id.starts_with(&id));
            let token = match (fits.next(), fits.next()) {
                (Some(token), None) => token,
                (Some(_), Some(_)) => {
                    bail!("Several tokens begin with `{id}`. Write more of the id.")
                }
                (None, _) => bail!("There is no token `{id}`. `ward tokens list` shows them."),
            };
            let gone = tokens.revoke(&token.id)?;
            writeln!(out, "Revoked: {}.", printable(&gone.name))?;
        }
        What::Link { data } => {
            drop(out);
            return run_async(link(data.as_deref()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn link(data: Option<&Path>) -> anyhow::Result<ExitCode> {
    let client = Client::open(data, "ward tokens link").await?;
    let made = client
        .post::<LoginLink>("/login", &serde_json::json!({}))
        .await;
    client.close().await;
    writeln!(std::io::stdout(), "{}", made?.url)?;
    Ok(ExitCode::SUCCESS)
}
