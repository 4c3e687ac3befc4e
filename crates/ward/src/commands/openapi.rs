//! `ward openapi`: the document that describes Ward over HTTP, for programs that are generated from
//! it, the page's types among them.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
use store_sqlite::SqliteStore;

/// Print what `GET /openapi.json` answers
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args) -> anyhow::Result<ExitCode> {
    let document = server::openapi::<SqliteStore>(env!("CARGO_PKG_VERSION"));
    let mut out = std::io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, &document)
        .and_then(|()| out.write_all(b"\n").map_err(serde_json::Error::io))
        .context("The document could not be written")?;
    Ok(ExitCode::SUCCESS)
}
