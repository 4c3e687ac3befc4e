//! `ward ledger`: the record, and whether anybody changed it.

use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use anyhow::bail;
use gate::ledger::{Entry, EntryKind, Verdict};
use serde::Deserialize;

use crate::app;
use crate::client::Client;
use crate::commands::run_async;
use crate::console::printable;

/// How many entries are asked for at a time.
const PAGE: usize = 500;

/// Look at the record, and check that nobody changed it
///
/// Every request, decision, approval and outcome is an entry. Each carries a hash over itself and
/// over the one before, and where the chain ends is also kept outside the store.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:\n  \
    ward ledger tail -n 50 --follow\n  \
    ward ledger show 17\n  \
    ward ledger verify\n  \
    ward ledger export > record.jsonl")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,

    /// Where the store is kept [default: ~/.local/share/ward]
    #[arg(long, value_name = "DIR", global = true)]
    data: Option<PathBuf>,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Show the last entries
    Tail {
        /// How many
        #[arg(short = 'n', long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=1000))]
        lines: u64,
        /// Go on with what comes
        #[arg(short, long)]
        follow: bool,
    },
    /// Show one entry whole, or all entries of one action
    Show {
        /// The entry's number, or the action's id
        entry: String,
    },
    /// Walk the whole chain and name whatever does not fit; exits with 1 where something does not
    Verify {
        /// Print JSON, for programs
        #[arg(long)]
        json: bool,
    },
    /// Write all entries as JSON, one a line
    Export,
}

#[derive(Deserialize)]
struct Listed {
    entries: Vec<Entry>,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let folder = app::data_folder(args.data.as_deref())?;
    // To make one and find it whole would be no answer. One that is gone is known by its head.
    if !store_sqlite::is_in(&folder) && !app::has_head(&folder) {
        bail!(
            "There is no record in {}. `--data` names another folder.",
            folder.display()
        );
    }
    run_async(async {
        let client = Client::open(args.data.as_deref(), "ward ledger").await?;
        let done = work(&client, args.what).await;
        client.close().await;
        done
    })
}

async fn work(client: &Client, what: What) -> anyhow::Result<ExitCode> {
    match what {
        What::Tail { lines, follow } => tail(client, lines, follow).await,
        What::Show { entry } => show(client, &entry).await,
        What::Verify { json } => verify(client, json).await,
        What::Export => export(client).await,
    }
}

async fn tail(client: &Client, lines: u64, follow: bool) -> anyhow::Result<ExitCode> {
    let Listed { entries } = client.get(&format!("/ledger?last={lines}")).await?;
    let mut after = 0;
    for entry in &entries {
        after = entry.seq.get();
        line(&mut anstream::stdout().lock(), entry)?;
    }
    if follow {
        let mut events = client
            .follow(&format!("/ledger/events?from={after}"))
            .await?;
        while let Some(event) = events.next().await? {
            if let Ok(entry) = serde_json::from_value::<Entry>(event.data) {
                line(&mut anstream::stdout().lock(), &entry)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn show(client: &Client, entry: &str) -> anyhow::Result<ExitCode> {
    let number = entry.parse::<u64>().ok().filter(|number| *number > 0);
    let path = match number {
        Some(number) => format!("/ledger?after={}&limit=1", number - 1),
        None if entry
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte)) =>
        {
            format!("/ledger?action={entry}&limit={PAGE}")
        }
        None => bail!("`{entry}` is neither an entry's number nor an action's id."),
    };
    let Listed { entries } = client.get(&path).await?;
    if entries.is_empty() {
        bail!("There is no entry `{entry}`. `ward ledger tail` shows the last ones.");
    }
    let mut out = std::io::stdout().lock();
    for entry in &entries {
        writeln!(out, "{}", serde_json::to_string_pretty(entry)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn verify(client: &Client, json: bool) -> anyhow::Result<ExitCode> {
    let verdict: Verdict = client.get("/ledger/verify").await?;
    let mut out = anstream::stdout().lock();
    if json {
        writeln!(out, "{}", serde_json::to_string_pretty(&verdict)?)?;
    } else if verdict.ok {
        writeln!(
            out,
            "{} entries, and every one is as it was written.",
            verdict.entries
        )?;
        if let Some(head) = &verdict.head {
            writeln!(out, "  head  {} {}", head.seq, head.hash)?;
        }
    } else {
        let red = AnsiColor::Red.on_default().bold();
        writeln!(
            out,
            "{}The record was changed.{}",
            red.render(),
            red.render_reset()
        )?;
        for problem in &verdict.problems {
            writeln!(out, "  {}", printable(&problem.what))?;
        }
        if verdict.more > 0 {
            writeln!(out, "  and {} more that does not fit", verdict.more)?;
        }
    }
    Ok(if verdict.ok {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

async fn export(client: &Client) -> anyhow::Result<ExitCode> {
    let mut after = 0;
    let mut out = BufWriter::new(std::io::stdout());
    loop {
        let Listed { entries } = client
            .get(&format!("/ledger?after={after}&limit={PAGE}"))
            .await?;
        let Some(last) = entries.last() else { break };
        after = last.seq.get();
        for entry in &entries {
            serde_json::to_writer(&mut out, entry)?;
            writeln!(out)?;
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn line(out: &mut impl Write, entry: &Entry) -> std::io::Result<()> {
    let style = match entry.kind {
        EntryKind::Request => AnsiColor::Cyan.on_default(),
        EntryKind::Approval => AnsiColor::Yellow.on_default(),
        EntryKind::Gap => AnsiColor::Red.on_default().bold(),
        _ => Style::new(),
    };
    let field = |name: &str| {
        let value = entry.data.get(name)?;
        Some(
            value
                .as_str()
                .map_or_else(|| value.to_string(), ToOwned::to_owned),
        )
    };
    let about = match entry.kind {
        EntryKind::Request => field("action"),
        EntryKind::Decision => field("verdict"),
        EntryKind::Answer => field("resolution"),
        EntryKind::Outcome => field("kind")
            .or_else(|| field("exit_code").map(|code| format!("exit {code}")))
            .or_else(|| field("status")),
        _ => None,
    };
    let kind = entry.kind.as_str();
    writeln!(
        out,
        "{:>6}  {}{kind:<9}{}  {:<14} {:<14} {}  {}",
        entry.seq.get(),
        style.render(),
        style.render_reset(),
        printable(&entry.actor),
        printable(entry.role.as_deref().unwrap_or("")),
        printable(entry.action_id.as_deref().unwrap_or("")),
        printable(&about.unwrap_or_default()),
    )
}
