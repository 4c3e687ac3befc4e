//! The notebook agent's core as packages: what somebody else would get of it, used from a project of
//! their own that knows nothing of this workspace.

use std::path::Path;

use anyhow::Context as _;

use crate::cache::Places;
use crate::run;

/// The core, and all of Ward that it is made of.
const PACKAGES: &[&str] = &["protocol", "store", "notebook", "runtime-core"];

const FRESH: &str = r#"//! A runtime of somebody else's.

pub use runtime_core::{ExecutionContext, Finished, RuntimeAgent, echo};

/// Says the source of a cell backwards.
pub async fn backwards(context: ExecutionContext) -> Finished {
    let source: String = context.cell().source.chars().rev().collect();
    context.stdout(&source);
    Finished::Ok
}
"#;

/// Packages them, unpacks them elsewhere, and builds a project on what was packaged.
pub(crate) fn check(places: &Places) -> anyhow::Result<()> {
    let mut command = run::cargo(&places.root);
    // They are not in a registry, so nothing is resolved from one; the project below builds them.
    command.args(["package", "--quiet", "--no-verify", "--exclude-lockfile"]);
    command.arg("--allow-dirty");
    for package in PACKAGES {
        command.args(["--package", package]);
    }
    run::run(
        &mut command,
        "What a package needs has to be in its folder.",
    )?;
    let folder = places.cache.join("packages");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(folder.join("fresh/src"))?;
    let version = env!("CARGO_PKG_VERSION");
    let mut patches = String::new();
    for package in PACKAGES {
        let file = format!("package/{package}-{version}.crate");
        run::run(
            run::program("tar", &folder)
                .arg("xzf")
                .arg(places.target.join(file)),
            "`cargo package` writes it.",
        )?;
        patches += &format!("{package} = {{ path = \"../{package}-{version}\" }}\n");
    }
    let manifest = format!(
        "[package]\nname = \"fresh\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [dependencies]\nruntime-core = \"{version}\"\n\n\
         [patch.crates-io]\n{patches}\n[workspace]\n"
    );
    let fresh = folder.join("fresh");
    write(&fresh.join("Cargo.toml"), &manifest)?;
    write(&fresh.join("src/lib.rs"), FRESH)?;
    // The versions that everything else is tested with.
    std::fs::copy(places.root.join("Cargo.lock"), fresh.join("Cargo.lock"))?;
    run::run(
        run::cargo(&fresh)
            .arg("check")
            .env("CARGO_TARGET_DIR", &places.target),
        "The packages have to build without the workspace around them.",
    )
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("{} could not be written", path.display()))
}
