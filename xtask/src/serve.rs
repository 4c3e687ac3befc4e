//! `cargo xtask serve`: builds what is missing, in release, and becomes `ward serve`.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;

use anyhow::Context as _;

use crate::cache::Places;
use crate::run;
use crate::ui::{self, Page};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Passed on to `ward serve`, such as `--addr 127.0.0.1:4000`
    #[arg(
        value_name = "ARGS",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    passed_on: Vec<OsString>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let places = Places::find()?;
    build(&places)?;
    let ward = places.built("release", "ward");
    if !run::on_path("npm") {
        println!("Without Node there is no chat page; the plain one is served instead.");
    } else if ui::build(&places, &ward)? == Page::Built {
        build(&places)?;
    }
    // Where the person stands is the workspace, so this goes on in the current folder.
    let error = std::process::Command::new(&ward)
        .arg("serve")
        .args(&args.passed_on)
        .exec();
    Err(error).with_context(|| format!("{} could not be started", ward.display()))
}

fn build(places: &Places) -> anyhow::Result<()> {
    run::run(
        run::cargo(&places.root).args(["build", "--release", "--package", "ward"]),
        "What the compiler says above is what to mend.",
    )
}
