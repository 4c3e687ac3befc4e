//! Cargo's sub-commands that the chores need: taken from the PATH where they are there, else built once
//! into the cache.

use std::path::PathBuf;
use std::process::Command;

use crate::cache::Places;
use crate::run;

/// A program that cargo runs as `cargo <name>`.
#[derive(Debug)]
pub(crate) struct CargoTool {
    /// Its package.
    package: &'static str,
    /// What `cargo` calls it.
    name: &'static str,
}

pub(crate) const NEXTEST: CargoTool = CargoTool {
    package: "cargo-nextest",
    name: "nextest",
};

pub(crate) const FUZZ: CargoTool = CargoTool {
    package: "cargo-fuzz",
    name: "fuzz",
};

impl CargoTool {
    /// Sees to it that it is there; building one takes minutes, once.
    pub(crate) fn install(&self, places: &Places) -> anyhow::Result<()> {
        if self.answers(places) {
            return Ok(());
        }
        println!(
            "{} is not there: it is built once into the cache.",
            self.package
        );
        run::run(
            run::cargo(&places.root)
                .args(["install", self.package, "--locked", "--root"])
                .arg(root(places))
                .env("CARGO_TARGET_DIR", places.cache.join("tools-target")),
            &format!(
                "Install it by hand with `cargo install {} --locked`.",
                self.package
            ),
        )?;
        // Only the programs are worth keeping.
        let _ = std::fs::remove_dir_all(places.cache.join("tools-target"));
        Ok(())
    }

    /// `cargo <name>`, in the checkout.
    pub(crate) fn command(&self, places: &Places) -> Command {
        let mut command = run::cargo(&places.root);
        command.arg(self.name).env("PATH", path(places));
        command
    }

    fn answers(&self, places: &Places) -> bool {
        run::succeeds(self.command(places).arg("--version"))
    }
}

fn root(places: &Places) -> PathBuf {
    places.cache.join("tools")
}

/// The PATH with the cache's own programs behind the user's.
fn path(places: &Places) -> std::ffi::OsString {
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    if !path.is_empty() {
        path.push(":");
    }
    path.push(root(places).join("bin"));
    path
}
