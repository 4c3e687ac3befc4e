//! `ward models`: who can answer here, and why the others cannot.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use protocol::session::Models;

use crate::client::Client;
use crate::commands::run_async;
use crate::console::printable;

/// List the models that can be used here, and why others cannot
///
/// A model's name says whose it is (claude-…, gemini-…, gpt-…), or `provider/model` does. Keys come
/// from the environment or from `providers` in the settings. `offline` needs nothing.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:\n  \
    ward models\n  \
    ANTHROPIC_API_KEY=… ward models\n  \
    ward run --model ollama/llama3.2 \"read README.md\"")]
pub(crate) struct Args {
    /// As JSON
    #[arg(long)]
    json: bool,

    /// Where the store is kept [default: ~/.local/share/ward]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    run_async(async {
        let client = Client::open(args.data.as_deref(), "ward models").await?;
        let models = client.get("/models").await;
        client.close().await;
        show(&models?, args.json)
    })
}

fn show(models: &Models, json: bool) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    if json {
        writeln!(out, "{}", serde_json::to_string_pretty(models)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let width = models.providers.iter().map(|one| one.provider.len());
    let width = width.max().unwrap_or_default();
    writeln!(out, "Usable")?;
    for one in models.providers.iter().filter(|one| one.unusable.is_none()) {
        let names = printable(&one.models.join(", "));
        writeln!(out, "  {:<width$}  {names}", printable(&one.provider))?;
    }
    writeln!(out, "Not usable")?;
    for one in &models.providers {
        if let Some(why) = &one.unusable {
            writeln!(
                out,
                "  {:<width$}  {}",
                printable(&one.provider),
                printable(why)
            )?;
        }
    }
    writeln!(
        out,
        "Where nobody names one: {}. WARD_MODEL, or `model` in [providers], names another.",
        printable(&models.default)
    )?;
    Ok(ExitCode::SUCCESS)
}
