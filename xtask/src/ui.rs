//! `cargo xtask ui`: builds the page into `ui/dist`, from where the next build of the server takes
//! it. The types of what it asks Ward for come from Ward itself (`ward openapi`). Where nothing has
//! changed since, nothing is done.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::cache::Places;
use crate::{run, wasm};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// What became of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Page {
    /// It was built; the server does not have it yet.
    Built,
    /// It is as it was.
    Unchanged,
}

pub(crate) fn run(_: &Args) -> anyhow::Result<()> {
    let places = Places::find()?;
    run::run(
        run::cargo(&places.root).args(["build", "--package", "ward", "--bin", "ward"]),
        "What the compiler says above is what to mend.",
    )?;
    match build(&places, &places.built("debug", "ward"))? {
        Page::Built => println!("The next `cargo build` takes it in."),
        Page::Unchanged => println!("Nothing has changed."),
    }
    Ok(())
}

/// Builds the page, for what this `ward` understands.
pub(crate) fn build(places: &Places, ward: &Path) -> anyhow::Result<Page> {
    let ui = places.root.join("ui");
    let document = run::output(std::process::Command::new(ward).arg("openapi"))?;
    write_if_other(&ui.join("openapi.json"), &document)?;
    npm_install(&ui)?;
    wasm::build(places)?;
    let print = fingerprint(&ui)?;
    let built = ui.join(".built");
    if ui.join("dist/index.html").is_file()
        && std::fs::read_to_string(&built).is_ok_and(|known| known == print)
    {
        return Ok(Page::Unchanged);
    }
    for (chore, advice) in [
        ("types", "`ward openapi` is what the types are made of."),
        ("check", "What TypeScript says above is what to mend."),
        ("build", "What esbuild says above is what to mend."),
    ] {
        run::run(
            run::program("npm", &ui).args(["run", "--silent", chore]),
            advice,
        )?;
    }
    std::fs::write(&built, print).context("ui/.built could not be written")?;
    Ok(Page::Built)
}

/// The packages exactly as the lock file names them.
pub(crate) fn npm_install(folder: &Path) -> anyhow::Result<()> {
    let modified = |name: &str| std::fs::metadata(folder.join(name)).and_then(|m| m.modified());
    // npm writes this file last.
    if let (Ok(wanted), Ok(there)) = (
        modified("package-lock.json"),
        modified("node_modules/.package-lock.json"),
    ) && there >= wanted
    {
        return Ok(());
    }
    run::run(
        run::program("npm", folder).args(["ci", "--no-audit", "--no-fund"]),
        "Is the npm registry reachable? `npm ping` says.",
    )
}

/// Everything that the page is made of, in one number.
fn fingerprint(ui: &Path) -> anyhow::Result<String> {
    let mut files: Vec<PathBuf> = [
        "build.mjs",
        "openapi.json",
        "package-lock.json",
        "package.json",
        "tsconfig.json",
    ]
    .iter()
    .map(|name| ui.join(name))
    .collect();
    gather(&ui.join("src"), &mut files)?;
    for part in ["src", "wasm"] {
        gather(&ui.join("packages/runtime-browser").join(part), &mut files)?;
    }
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in files {
        let content = std::fs::read(&file)
            .with_context(|| format!("{} could not be read", file.display()))?;
        file.strip_prefix(ui).unwrap_or(&file).hash(&mut hasher);
        content.hash(&mut hasher);
    }
    Ok(format!("{:016x}\n", hasher.finish()))
}

fn gather(folder: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            gather(&path, files)?;
        } else if !path.ends_with("schema.ts") {
            files.push(path);
        }
    }
    Ok(())
}

fn write_if_other(path: &Path, text: &str) -> anyhow::Result<()> {
    if std::fs::read_to_string(path).is_ok_and(|there| there == text) {
        return Ok(());
    }
    std::fs::write(path, text).with_context(|| format!("{} could not be written", path.display()))
}
