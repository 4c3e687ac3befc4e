//! What is held to a rule of what a launcher, a shell or a runner of tools runs.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up has failed"
)]

mod support;

use policy::{Mode, Verdict, builtin};
use protocol::{ActionName, Facts};
use support::{decision, line, role, rules};

fn run_under(lines: &[&str], text: &str) -> Verdict {
    let dev = role("dev", &["*"]);
    let facts = line(text);
    let action = ActionName::TerminalRun;
    decision(&dev, Mode::Full, &rules(lines), action, &facts).verdict
}

#[test]
fn a_deny_of_several_words_asks_whatever_may_be_an_option_between_them() {
    let some = [
        "allow terminal.run(*)",
        "deny terminal.run(npm run deploy *)",
        "deny terminal.run(gh pr merge *)",
        "deny terminal.run(cargo publish)",
    ];
    for text in [
        "npm \"$O\" run deploy",
        "npm $O run deploy",
        "npm -s run deploy",
        "npm --prefix \"$D\" run deploy",
        "npm run \"$O\" deploy",
        "npm \"$O\" \"$P\" deploy",
        "gh \"$X\" pr merge 1",
        "gh -R \"$X\" pr merge",
        "cargo +nightly publish",
        "cargo +nightly \"$O\" publish",
        "cargo \"$O\" value publish",
    ] {
        assert_eq!(run_under(&some, text), Verdict::Ask, "{text}");
    }
    for text in [
        "npm run test \"$O\"",
        "npm run test deploy",
        "gh pr view \"$X\"",
        "cargo run +nightly publish",
        "cargo +nightly build",
        "cargo test \"$X\" publish",
    ] {
        assert_eq!(run_under(&some, text), Verdict::Allow, "{text}");
    }
}

#[test]
fn what_a_launcher_runs_is_held_to_what_is_denied_to_write() {
    let some = [
        "allow terminal.run(*)",
        "allow fs.write(**)",
        "deny fs.write(secret/**)",
    ];
    for text in [
        "flock lk sh -c '>secret/x'",
        "flock lk -c 'ls>secret/x'",
        "//bin/sh -c '>secret/x'",
        "/opt/bin/sh -c '>secret/x'",
    ] {
        assert_eq!(run_under(&some, text), Verdict::Deny, "{text}");
    }
    assert_eq!(run_under(&some, "flock lk sh -c '>open/x'"), Verdict::Allow);
}

#[test]
fn a_shell_that_stands_among_devices_may_be_handed_its_script() {
    let dev = role("dev", &["*"]);
    let some = rules(&["allow terminal.run(*)"]);
    let mut facts = line("bash stdin");
    let verdict =
        |facts: &Facts| decision(&dev, Mode::Full, &some, ActionName::TerminalRun, facts).verdict;
    assert_eq!(verdict(&facts), Verdict::Allow);
    facts.command.as_mut().unwrap().cwd = "/dev".to_owned();
    assert_eq!(verdict(&facts), Verdict::Ask);
}

#[test]
fn a_shell_in_front_of_a_script_does_not_hide_it_from_a_rule() {
    let denied = [
        "sh deploy.sh",
        "sh ./deploy.sh",
        "bash -x ./deploy.sh prod",
        "bash -- ./deploy.sh",
        "bash deploy.sh -c x",
        "/bin/sh sub/deploy.sh",
        "./sh ./deploy.sh",
        "env sh ./deploy.sh",
        "sudo sh ./deploy.sh",
        "bash -c 'sh ./deploy.sh'",
        "bash -O extglob ./deploy.sh",
        "bash /proc/self/cwd/deploy.sh",
        ". ./deploy.sh",
        "source deploy.sh",
        ". ./deploy.sh prod",
        "sh /usr/bin/gcloud --version",
        "sh gcloud auth",
        "sh ./fakeroot gcloud auth",
        "find . -exec sh ./deploy.sh {} +",
    ];
    let deny = [
        "deny terminal.run(./deploy.sh *)",
        "deny terminal.run(gcloud *)",
    ];
    let ask = [
        "ask terminal.run(./deploy.sh *)",
        "ask terminal.run(gcloud *)",
    ];
    for text in denied {
        let with =
            |rules: [&'static str; 2]| run_under(&[rules[0], rules[1], "allow terminal.run"], text);
        assert_eq!(with(deny), Verdict::Deny, "{text}");
        assert_eq!(with(ask), Verdict::Ask, "{text}");
    }
    let of_two = [
        "deny terminal.run(./deploy.sh prod *)",
        "allow terminal.run",
    ];
    for text in [
        "sh ./deploy.sh prod",
        ". ./deploy.sh prod x",
        "source deploy.sh prod",
    ] {
        assert_eq!(run_under(&of_two, text), Verdict::Deny, "{text}");
    }
    // It is still the shell that needs to be allowed, and that alone.
    assert_eq!(
        run_under(&["allow terminal.run(sh *)"], "sh ./deploy.sh x"),
        Verdict::Allow
    );
    assert_eq!(
        run_under(&["allow terminal.run(./deploy.sh *)"], "sh ./deploy.sh x"),
        Verdict::Ask
    );
    let backend = builtin::roles();
    let backend = backend.get("backend").unwrap();
    let built_in = builtin::rules().unwrap();
    for text in [
        "bash scripts/test.sh",
        "sh -e build.sh \"$X\"",
        "bash -x ./ci/run a b",
    ] {
        let run = ActionName::TerminalRun;
        let verdict = decision(backend, Mode::Sandbox, &built_in, run, &line(text)).verdict;
        assert_eq!(verdict, Verdict::Allow, "{text}");
    }
}

#[test]
fn a_runner_of_tools_is_looked_into_no_further_than_it_runs_one() {
    let some = [
        "allow terminal.run(npm *)",
        "allow terminal.run(npx *)",
        "allow terminal.run(uv *)",
        "allow terminal.run(poetry *)",
        "allow terminal.run(rustup *)",
        "deny terminal.run(git push *)",
    ];
    for text in [
        "npm test",
        "npm run build -- \"$X\" 'a(b'",
        "npm run deploy git push",
        "npm install git push",
        "npx -y eslint 'src/**/*.ts' *.js",
        "npx tsc --noEmit -p \"$X\"",
        "npm exec eslint \"$X\"",
        "uv run pytest -k 'a and (b or c)' $X",
        "uv run --frozen --with x pytest git push",
        "uv pip install \"$X\"",
        "uv sync",
        "poetry run python -c 'print(1)'",
        "rustup run stable cargo test \"$X\"",
        "rustup show",
    ] {
        assert_eq!(run_under(&some, text), Verdict::Allow, "{text}");
    }
    for text in [
        "npx \"$X\"",
        "uv $X git push",
        "uv run $X",
        "npx {git,push}",
    ] {
        assert_eq!(run_under(&some, text), Verdict::Ask, "{text}");
    }
}
