//! `cargo xtask test`: installs what the tests need, then checks and tests everything.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache::Places;
use crate::steps::Steps;
use crate::ui::{self, Page};
use crate::{needs, package, run, schemathesis, tools, venv, vsix, wasm};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Also what is heavy: the extension in a real editor, HTTP against its document, longer fuzz
    /// runs, more cases, the other architecture, the documentation
    #[arg(long)]
    all: bool,

    /// Only the extension in a real workbench, with the Ward that is built now
    #[arg(long, conflicts_with = "all")]
    editor: bool,
}

/// How long each fuzz target runs.
const FUZZ_SECONDS: u32 = 10;
const FUZZ_SECONDS_HEAVY: u32 = 120;
/// Cases of each property where there is time. The dearest kill a whole store in each.
const MORE_CASES: &str = "1000";

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let places = Places::find()?;
    println!("Builds go to {}", places.target.display());
    println!("Tools are kept in {}", places.cache.display());
    let mut steps = Steps::new();
    let result = match args.editor {
        true => extension(&places, &mut steps)
            .and_then(|package| editor_steps(&places, &package, &mut steps)),
        false => every_step(args, &places, &mut steps),
    };
    steps.total();
    result
}

fn every_step(args: &Args, places: &Places, steps: &mut Steps) -> anyhow::Result<()> {
    steps.step("What the tests need: system", needs::install)?;
    steps.step("What the tests need: npm", || npm_install(places))?;
    steps.step("What the tests need: a Jupyter kernel", || {
        needs::kernel(places)
    })?;
    let nextest = steps.step("What the tests need: nextest", || Ok(nextest(places)))?;
    steps.step("Format", || format(places))?;
    steps.step("Lints", || clippy(places))?;
    steps.step("Build", || build(places))?;
    let page = steps.step("Page", || ui::build(places, &places.built("debug", "ward")))?;
    if page == Page::Built {
        steps.step("Build with the page", || build(places))?;
    }
    steps.step("What also runs in a page: wasm32", || pure(places))?;
    steps.step("The agent's core as packages", || package::check(places))?;
    steps.step("Rust tests", || rust_tests(args, places, nextest))?;
    steps.step("Node tests", || node_tests(args, places))?;
    steps.step("Python tests", || python_tests(places))?;
    let package = extension(places, steps)?;
    steps.step("Browser tests", || browser_tests(places))?;
    if places.root.join("fuzz/Cargo.toml").is_file() {
        steps.step("What the tests need: cargo-fuzz", || {
            tools::FUZZ.install(places)
        })?;
        steps.step("Fuzzing", || fuzz(args, places))?;
    }
    if args.all {
        steps.step("HTTP and the document that describes it", || {
            schemathesis::run(places)
        })?;
        editor_steps(places, &package, steps)?;
        steps.step("The other architecture", || other_architecture(places))?;
        steps.step("Documentation", || documentation(places))?;
    }
    Ok(())
}

fn extension(places: &Places, steps: &mut Steps) -> anyhow::Result<PathBuf> {
    steps.step("The VS Code extension", || vsix::build(places))
}

fn editor_steps(places: &Places, package: &Path, steps: &mut Steps) -> anyhow::Result<()> {
    let workbench = steps.step("What the editor tests need", || {
        needs::chromium()?;
        ui::npm_install(&places.root.join("tests/editor"))?;
        vsix::code_server(places)
    })?;
    steps.step("Editor tests", || editor_tests(places, package, &workbench))
}

/// Which runner the Rust tests have.
#[derive(Debug, Clone, Copy)]
enum Runner {
    Nextest,
    Cargo,
}

fn nextest(places: &Places) -> Runner {
    match tools::NEXTEST.install(places) {
        Ok(()) => Runner::Nextest,
        Err(error) => {
            println!("{error:#}\nThe tests run with plain `cargo test` instead.");
            Runner::Cargo
        }
    }
}

fn npm_install(places: &Places) -> anyhow::Result<()> {
    let folder = places.root.join("tests/node");
    let modified = |name: &str| std::fs::metadata(folder.join(name)).and_then(|m| m.modified());
    // npm writes this file last.
    if let (Ok(wanted), Ok(there)) = (
        modified("package.json"),
        modified("node_modules/.package-lock.json"),
    ) && there >= wanted
    {
        println!("Nothing is missing.");
        return Ok(());
    }
    run::run(
        run::program("npm", &folder).args(["install", "--no-audit", "--no-fund"]),
        "Is the npm registry reachable? `npm ping` says.",
    )
}

fn format(places: &Places) -> anyhow::Result<()> {
    run::run(
        run::cargo(&places.root).args(["fmt", "--all", "--check"]),
        "`cargo fmt --all` mends it.",
    )
}

fn clippy(places: &Places) -> anyhow::Result<()> {
    run::run(
        run::cargo(&places.root)
            .args(["clippy", "--workspace", "--all-targets"])
            .args(["--", "-D", "warnings"]),
        "Mend what clippy names; an `#[allow]` needs a `reason`.",
    )
}

/// `ward`, and the second one whose sandbox can be told to leave layers out. They differ in name,
/// so both fit into one target folder and share all they depend on.
fn build(places: &Places) -> anyhow::Result<()> {
    let advice = "What the compiler says above is what to mend.";
    run::run(
        run::cargo(&places.root).args(["build", "--package", "ward", "--bin", "ward"]),
        advice,
    )?;
    run::run(
        run::cargo(&places.root)
            .args(["build", "--package", "ward", "--bin", "ward-layers-off"])
            .args(["--features", "test-layers-off"]),
        advice,
    )
}

/// Crates that a page shares with Ward do no I/O and build for wasm32.
fn pure(places: &Places) -> anyhow::Result<()> {
    wasm::install_target(places)?;
    run::run(
        run::cargo(&places.root)
            .args(["check", "--target", wasm::TARGET])
            .args(["--package", "protocol", "--package", "store"])
            .args(["--package", "policy", "--package", "notebook"])
            .args(["--package", "runtime-core"]),
        "These crates must not need an operating system: I/O belongs into the crates above them.",
    )
}

/// What every test may rely on.
fn with_binaries<'a>(command: &'a mut Command, places: &Places) -> &'a mut Command {
    command
        .env("WARD_BIN", places.built("debug", "ward"))
        .env(
            "WARD_BIN_LAYERS_OFF",
            places.built("debug", "ward-layers-off"),
        )
        .env("WARD_IPYKERNEL", needs::kernel_folder(places))
        .env("INSTA_UPDATE", "no")
}

fn rust_tests(args: &Args, places: &Places, runner: Runner) -> anyhow::Result<()> {
    let mut command = match runner {
        Runner::Nextest => tools::NEXTEST.command(places),
        Runner::Cargo => run::cargo(&places.root),
    };
    match runner {
        Runner::Nextest => command.args(["run", "--workspace", "--no-fail-fast"]),
        Runner::Cargo => command.args(["test", "--workspace", "--no-fail-fast"]),
    };
    if args.all {
        command.env("PROPTEST_CASES", MORE_CASES);
    }
    run::run(
        with_binaries(&mut command, places),
        "`cargo nextest run -p CRATE TEST` runs one again; where a snapshot changed on purpose, `cargo insta review` takes it over.",
    )
}

fn node_tests(args: &Args, places: &Places) -> anyhow::Result<()> {
    let mut command = run::program("node", &places.root.join("tests/node"));
    if args.all {
        command.env("WARD_TEST_ALL", "1");
    }
    run::run(
        with_binaries(command.arg("--test"), places),
        "`WARD_BIN=target/debug/ward node --test FILE` in tests/node runs one file again.",
    )
}

/// The other real client of Socket.IO.
const PYTHON: &[&str] = &[
    "python-socketio==5.18.1",
    "requests==2.34.2",
    "websocket-client==1.9.2",
];

fn python_tests(places: &Places) -> anyhow::Result<()> {
    let python = venv::install(places, PYTHON)?.join("python");
    run::run(
        with_binaries(
            run::program(python, &places.root.join("tests/python")).args(["-m", "unittest", "-v"]),
            places,
        )
        .env("PYTHONDONTWRITEBYTECODE", "1"),
        "`WARD_BIN=target/debug/ward python -m unittest` in tests/python runs them again.",
    )
}

/// The page of the built binary, in a real browser.
fn browser_tests(places: &Places) -> anyhow::Result<()> {
    let folder = places.root.join("tests/browser");
    needs::chromium()?;
    ui::npm_install(&folder)?;
    run::run(
        with_binaries(
            run::program("node", &folder).args(["--test", "--test-concurrency=2"]),
            places,
        ),
        "`WARD_BIN=target/debug/ward node --test FILE` in tests/browser runs one file again.",
    )
}

/// The packaged extension, in a real workbench.
fn editor_tests(places: &Places, package: &Path, workbench: &Path) -> anyhow::Result<()> {
    let folder = places.root.join("tests/editor");
    run::run(
        with_binaries(
            run::program("node", &folder).args(["--test", "--test-concurrency=1"]),
            places,
        )
        .env("WARD_VSIX", package)
        .env("WARD_CODE_SERVER", workbench),
        "tests/editor/shots has pictures of what failed.",
    )
}

fn fuzz(args: &Args, places: &Places) -> anyhow::Result<()> {
    let seconds = if args.all {
        FUZZ_SECONDS_HEAVY
    } else {
        FUZZ_SECONDS
    };
    let targets = run::output(tools::FUZZ.command(places).arg("list"))?;
    for target in targets.split_whitespace() {
        let corpus = places.cache.join("fuzz-corpus").join(target);
        std::fs::create_dir_all(&corpus)?;
        // Without a sanitizer it needs no nightly compiler.
        let mut command = tools::FUZZ.command(places);
        command
            .args(["run", "--sanitizer", "none", "--target-dir"])
            .arg(places.cache.join("fuzz-target"))
            .args([OsStr::new(target), corpus.as_os_str(), OsStr::new("--")])
            .arg(format!("-max_total_time={seconds}"))
            .args(["-verbosity=0", "-print_final_stats=1"]);
        let words = places.root.join("fuzz").join(format!("{target}.dict"));
        if words.is_file() {
            command.arg(format!("-dict={}", words.display()));
        }
        run::run(
            &mut command,
            "The input that failed is in fuzz/artifacts; make it a test before mending.",
        )?;
    }
    Ok(())
}

fn other_architecture(places: &Places) -> anyhow::Result<()> {
    let target = if cfg!(target_arch = "aarch64") {
        "x86_64-unknown-linux-gnu"
    } else {
        "aarch64-unknown-linux-gnu"
    };
    run::run(
        run::program("rustup", &places.root).args(["target", "add", target]),
        "Without rustup the other architecture cannot be checked.",
    )?;
    run::run(
        run::cargo(&places.root).args(["check", "--package", "sandbox", "--target", target]),
        "The sandbox must compile for x86_64 and aarch64.",
    )
}

fn documentation(places: &Places) -> anyhow::Result<()> {
    run::run(
        run::cargo(&places.root)
            .args([
                "doc",
                "--workspace",
                "--no-deps",
                "--document-private-items",
            ])
            .env("RUSTDOCFLAGS", "-D warnings"),
        "Mend the links that rustdoc names.",
    )
}
