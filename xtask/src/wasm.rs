//! `cargo xtask wasm`: builds what Ward's page shares with Ward itself, for wasm32, into the npm
//! package in `ui/packages/runtime-browser`. Where nothing has changed since, nothing is done.
//!
//! The glue between the two sides is written by the library behind `wasm-bindgen`'s own program, of
//! exactly the version that the crate is built with: `Cargo.toml` names it once.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use wasm_bindgen_cli_support::Bindgen;

use crate::cache::Places;
use crate::run;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) const TARGET: &str = "wasm32-unknown-unknown";
const NAME: &str = "runtime_browser";

pub(crate) fn run(_: &Args) -> anyhow::Result<()> {
    let places = Places::find()?;
    let folder = build(&places)?;
    println!("It is in {}", folder.display());
    Ok(())
}

/// Builds it, and answers the folder that has it.
pub(crate) fn build(places: &Places) -> anyhow::Result<PathBuf> {
    install_target(places)?;
    run::run(
        run::cargo(&places.root)
            .args(["build", "--package", "runtime-browser"])
            .args(["--target", TARGET, "--profile", "page"]),
        "What the compiler says above is what to mend.",
    )?;
    let built = places.target.join(TARGET).join("page");
    let built = built.join(format!("{NAME}.wasm"));
    let folder = places.root.join("ui/packages/runtime-browser/wasm");
    if is_newer(&folder.join(format!("{NAME}_bg.wasm")), &built) {
        return Ok(folder);
    }
    bind(&built, &folder)?;
    Ok(folder)
}

/// Sees to it that Rust can build for a page.
pub(crate) fn install_target(places: &Places) -> anyhow::Result<()> {
    // Asked of the compiler, which need not have come by rustup.
    let folder = run::output(run::program("rustc", &places.root).args([
        "--print",
        "target-libdir",
        "--target",
        TARGET,
    ]));
    if folder.is_ok_and(|folder| Path::new(folder.trim()).is_dir()) {
        return Ok(());
    }
    run::run(
        run::program("rustup", &places.root).args(["target", "add", TARGET]),
        "Ward's page is partly written in Rust: install Rust's target wasm32-unknown-unknown, which rustup would have done.",
    )
}

/// Writes the glue beside the compiled part.
fn bind(built: &Path, folder: &Path) -> anyhow::Result<()> {
    // Another folder first: what is half written is never taken for the whole.
    let aside = folder.with_extension("new");
    if aside.exists() {
        std::fs::remove_dir_all(&aside)?;
    }
    let mut bindgen = Bindgen::new();
    bindgen.input_path(built).out_name(NAME).typescript(true);
    // Names and who compiled it are of no use to a page.
    bindgen.remove_name_section(true);
    bindgen.remove_producers_section(true);
    bindgen.web(true)?;
    bindgen
        .generate(&aside)
        .with_context(|| format!("no glue could be written for {}", built.display()))?;
    // It describes what only the glue uses, and would be taken for the types of the file itself.
    let _ = std::fs::remove_file(aside.join(format!("{NAME}_bg.wasm.d.ts")));
    // The types name something that a project need not know otherwise.
    let types = aside.join(format!("{NAME}.d.ts"));
    let described = std::fs::read_to_string(&types)?;
    std::fs::write(
        &types,
        format!("/// <reference lib=\"esnext.disposable\" />\n{described}"),
    )?;
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    std::fs::rename(&aside, folder)?;
    let size = std::fs::metadata(folder.join(format!("{NAME}_bg.wasm")))?.len();
    println!("{size:>8} {NAME}_bg.wasm");
    if size == 0 {
        bail!("the compiled part is empty");
    }
    Ok(())
}

/// Whether a file is there and no older than another.
fn is_newer(file: &Path, than: &Path) -> bool {
    let modified = |path: &Path| std::fs::metadata(path).and_then(|m| m.modified());
    match (modified(file), modified(than)) {
        (Ok(file), Ok(than)) => file >= than,
        _ => false,
    }
}
