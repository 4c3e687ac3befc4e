//! Programs that the tests need from the system: installed by apt-get where that may be, else
//! named for the person to install.

use std::path::PathBuf;

use anyhow::bail;

use crate::cache::Places;
use crate::{run, venv};

/// A program and the Debian package that has it.
struct Need {
    program: &'static str,
    package: &'static str,
    why: &'static str,
}

/// Everything but Rust, Node and a C compiler, which the README asks for.
const NEEDS: &[Need] = &[
    Need {
        program: "git",
        package: "git",
        why: "the tests commit, branch and clone inside the sandbox",
    },
    Need {
        program: "c++",
        package: "g++",
        why: "the fuzz targets are linked with libFuzzer, which is C++",
    },
    Need {
        program: "python3",
        package: "python3",
        why: "the tests run Python programs inside the sandbox",
    },
    Need {
        program: "pytest",
        package: "python3-pytest",
        why: "the tests run pytest inside the sandbox",
    },
    Need {
        program: "setpriv",
        package: "util-linux",
        why: "the tests also run as an unprivileged user",
    },
];

/// Sees to it that all of them are there.
pub(crate) fn install() -> anyhow::Result<()> {
    for program in ["node", "npm"] {
        if !run::on_path(program) {
            bail!(
                "`{program}` is not on the PATH. Install Node 20 or newer; the README says what Ward needs."
            );
        }
    }
    let missing: Vec<&Need> = NEEDS
        .iter()
        .filter(|need| !run::on_path(need.program))
        .collect();
    if missing.is_empty() {
        println!("Nothing is missing.");
        return Ok(());
    }
    for need in &missing {
        println!("Missing: {} ({})", need.program, need.why);
    }
    let packages: Vec<&str> = missing.iter().map(|need| need.package).collect();
    install_packages(&packages)
}

/// A Jupyter kernel in an environment of its own, and what the notebooks of the tests use.
const KERNEL: &[&str] = &["ipykernel==7.1.0", "matplotlib==3.11.2", "pandas==3.1.1"];

/// Sees to it that there is a Jupyter kernel.
pub(crate) fn kernel(places: &Places) -> anyhow::Result<()> {
    venv::install(places, KERNEL).map(drop)
}

/// The environment that has it.
pub(crate) fn kernel_folder(places: &Places) -> PathBuf {
    venv::folder(places, KERNEL)
}

/// The browser that shows the page, and the workbench of the editor tests.
pub(crate) fn chromium() -> anyhow::Result<()> {
    match run::on_path("chromium") {
        true => Ok(()),
        false => install_packages(&["chromium"]),
    }
}

/// Installs Debian packages where that may be, else names them.
pub(crate) fn install_packages(packages: &[&str]) -> anyhow::Result<()> {
    if !may_install() {
        bail!(
            "Install these first: {}. On Debian or Ubuntu: sudo apt-get install {}",
            packages.join(", "),
            packages.join(" ")
        );
    }
    apt_get(packages)
}

/// Whether packages can be installed without asking anybody.
fn may_install() -> bool {
    let root =
        run::output(std::process::Command::new("id").arg("-u")).is_ok_and(|uid| uid.trim() == "0");
    root && run::on_path("apt-get")
}

fn apt_get(packages: &[&str]) -> anyhow::Result<()> {
    let advice = format!("Install by hand: {}", packages.join(", "));
    let here = std::env::current_dir()?;
    let apt_get = || {
        let mut command = run::program("apt-get", &here);
        command.env("DEBIAN_FRONTEND", "noninteractive");
        command.args(["-o", "DPkg::Lock::Timeout=400"]);
        command
    };
    run::run(apt_get().arg("update"), &advice)?;
    run::run(
        apt_get()
            .args(["install", "-y", "--no-install-recommends"])
            .args(packages),
        &advice,
    )
}
