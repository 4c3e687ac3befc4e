//! `cargo xtask vsix`: checks, tests, bundles and packages the VS Code extension into
//! `editors/vscode/dist/ward.vsix`. And the real workbench in which the editor tests run it.

use std::path::PathBuf;

use crate::cache::Places;
use crate::{needs, run, ui};

/// A full VS Code server build, and the Node that it needs: both from npm.
const CODE_SERVER: &str = "code-server@4.139.1";
const NODE: &str = "24.21.0";
/// What its native modules are built with.
const HEADERS: &[&str] = &["libkrb5-dev", "libsecret-1-dev", "libxkbfile-dev"];

#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args) -> anyhow::Result<()> {
    let package = build(&Places::find()?)?;
    println!(
        "Install it with `code --install-extension {}`.",
        package.display()
    );
    Ok(())
}

/// Makes the package; its path is answered.
pub(crate) fn build(places: &Places) -> anyhow::Result<PathBuf> {
    let folder = places.root.join("editors/vscode");
    ui::npm_install(&folder)?;
    std::fs::create_dir_all(folder.join("dist"))?;
    for (chore, advice) in [
        ("check", "What TypeScript says above is what to mend."),
        ("test", "`npm test` in editors/vscode runs them again."),
        ("build", "What esbuild says above is what to mend."),
        ("package", "What vsce says above is what to mend."),
    ] {
        run::run(
            run::program("npm", &folder).args(["run", "--silent", chore]),
            advice,
        )?;
    }
    Ok(folder.join("dist/ward.vsix"))
}

/// Sees to it that the workbench is in the cache; building it takes minutes, once.
pub(crate) fn code_server(places: &Places) -> anyhow::Result<PathBuf> {
    let folder = places.cache.join("code-server");
    let entry = folder.join("node_modules/code-server/out/node/entry.js");
    let node = folder.join("node/bin/node");
    if entry.is_file()
        && run::succeeds(
            std::process::Command::new(&node)
                .arg(&entry)
                .arg("--version"),
        )
    {
        return Ok(folder);
    }
    println!("{CODE_SERVER} is not there: it is built once into the cache (about 1 GB).");
    needs::install_packages(HEADERS)?;
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(folder.join("node"))?;
    std::fs::write(folder.join("package.json"), r#"{"private":true}"#)?;
    let machine = if cfg!(target_arch = "aarch64") {
        "arm64"
    } else {
        "x64"
    };
    let package = format!("node-linux-{machine}");
    let advice = "Is the npm registry reachable? `npm ping` says.";
    run::run(
        run::program("npm", &folder).args(["pack", "--silent", &format!("{package}@{NODE}")]),
        advice,
    )?;
    run::run(
        run::program("tar", &folder)
            .args(["xzf", &format!("{package}-{NODE}.tgz")])
            .args(["-C", "node", "--strip-components=1"]),
        "The package of Node cannot be unpacked.",
    )?;
    // Native modules are built against this Node's own headers.
    let mut path = folder.join("node/bin").into_os_string();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    run::run(
        run::program("npm", &folder)
            .args([
                "install",
                CODE_SERVER,
                "--unsafe-perm",
                "--foreground-scripts",
            ])
            .args(["--no-audit", "--no-fund", "--silent"])
            .env("PATH", path)
            .env("npm_config_nodedir", folder.join("node")),
        advice,
    )?;
    Ok(folder)
}
