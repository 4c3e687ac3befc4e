//! Builds and tests of the usual toolchains, with the toolchain in the user's own home folder.

use std::path::PathBuf;
use std::process::{Command, Output};

use crate::scene::{Held, Scene, User, skip};

/// A scene whose commands have the home folder and the PATH of whoever runs the tests, because that
/// is where the toolchains are.
fn at_home() -> Option<(Scene, PathBuf)> {
    let home = std::env::home_dir().filter(|home| home.is_dir())?;
    Some((Scene::new(User::Current, Held::Room), home))
}

fn run(scene: &Scene, home: &PathBuf, argv: &[&str]) -> Output {
    let mut command = scene.command(&[], argv);
    command
        .env("HOME", home)
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("XDG_STATE_HOME", scene.path("home/state"))
        .env("XDG_CONFIG_HOME", scene.path("home/config"));
    for name in [
        "RUSTUP_HOME",
        "CARGO_HOME",
        "RUSTUP_TOOLCHAIN",
        "PYENV_ROOT",
    ] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command.output().unwrap()
}

fn is_there(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success())
}

/// Proves that a command succeeds where its program is there.
fn works(program: &str, files: &[(&str, &str)], line: &str) -> Option<Scene> {
    let Some((scene, home)) = at_home().filter(|_| is_there(program)) else {
        skip(format!("`{program}` is not here"));
        return None;
    };
    for (name, text) in files {
        scene.file(&format!("work/{name}"), text);
    }
    let output = run(&scene, &home, &["sh", "-c", line]);
    assert!(output.status.success(), "{line}: {output:?}");
    Some(scene)
}

#[test]
fn cargo_builds_and_tests_a_crate() {
    let manifest =
        "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";
    let main = "fn main() { println!(\"built inside\"); }\n#[test]\nfn passes() { assert_eq!(1 + 1, 2); }\n";
    let files = [("Cargo.toml", manifest), ("src/main.rs", main)];
    let line = "cargo build --offline && cargo test --offline && ./target/debug/tiny";
    if let Some(scene) = works("cargo", &files, line) {
        assert!(scene.path("work/target/debug/tiny").is_file());
    }
}

#[test]
fn npm_tests_a_package() {
    let package = r#"{"name": "tiny", "version": "1.0.0", "scripts": {"test": "node --test"}}"#;
    let test = "const test = require('node:test'); test('passes', () => {});\n";
    works(
        "npm",
        &[("package.json", package), ("a.test.js", test)],
        "npm --no-update-notifier test",
    );
}

#[test]
fn python_makes_an_environment_and_tests_in_it() {
    let test = "import unittest, tempfile\nclass T(unittest.TestCase):\n  def test_it(self):\n    \
                with tempfile.TemporaryFile() as f: f.write(b'x')\n";
    let line = "python3 -m venv --without-pip env && ./env/bin/python -m unittest test_it.py";
    works("python3", &[("test_it.py", test)], line);
}

#[test]
fn pytest_tests() {
    works(
        "pytest",
        &[(
            "test_it.py",
            "def test_it(tmp_path):\n    (tmp_path / 'a').write_text('x')\n",
        )],
        "pytest -q",
    );
}

#[test]
fn make_builds_with_the_c_compiler() {
    let makefile = "all: one two\n\t./one && ./two\none two: main.c\n\tcc -o $@ main.c\n";
    let main = "#include <stdio.h>\nint main(void) { return puts(\"made\") < 0; }\n";
    works(
        "make",
        &[("Makefile", makefile), ("main.c", main)],
        "make -j4",
    );
}
