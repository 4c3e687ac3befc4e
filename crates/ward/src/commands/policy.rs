//! `ward policy`: what would be decided, and why; and whether a policy still decides as a team
//! expects.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail};
use gate::files::Files;
use policy::{Asked, Authority, Confinement, Decision, Mode, Place, Time, Verb, Verdict, builtin};
use protocol::{ActionName, Facts};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toml::Spanned;

use super::policy_files::{self, Resolved};
use crate::console::printable;
use crate::workspace;

/// Explain what a role may do, or test a table of expectations
///
/// Decisions are made from the role's skills, the mode, and the rules: the built-in ones,
/// ~/.config/ward/rules.toml and the workspace's ward.toml, of which only deny and ask count until
/// the workspace is trusted (`ward trust`).
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:\n  \
    ward policy explain --role backend terminal.run command='cargo test && git push'\n  \
    ward policy explain --role watcher fs.write path=src/main.rs content=x\n  \
    ward policy explain net example.com:443\n  \
    ward policy explain wall .git/config\n  \
    ward policy test policy-tests.toml")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Print what would be decided about an action, and everything that had a say
    Explain(Explain),
    /// Check a table of expected decisions
    #[command(after_long_help = "The table is TOML:\n\n  \
        [[tests]]\n  \
        role = \"backend\"\n  \
        mode = \"sandbox\"                     # sandbox, where left out\n  \
        action = \"terminal.run\"\n  \
        params = { command = \"git push\" }\n  \
        expect = \"deny\"\n  \
        rule = \"terminal.run(git push *)\"    # what decides; optional\n\n  \
        [[tests]]\n  \
        action = \"net\"                       # a host that a running command wants to reach\n  \
        hosts = [\"example.com:443\"]\n  \
        expect = \"ask\"\n\n  \
        [[tests]]\n  \
        action = \"wall\"                      # a path that it was stopped at\n  \
        paths = [\".git/config\"]\n  \
        expect = \"ask\"")]
    Test {
        /// The table
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// The folder that actions work in [default: the current one]
        #[arg(long, value_name = "DIR")]
        workspace: Option<PathBuf>,
    },
}

#[derive(Debug, clap::Args)]
struct Explain {
    /// Who asks
    #[arg(long, value_name = "ROLE", default_value = builtin::DEFAULT_ROLE)]
    role: String,
    /// sandbox or full; never more than the role's own
    #[arg(long, value_name = "MODE", default_value = "sandbox", value_parser = mode)]
    mode: Mode,
    /// The folder that the action works in [default: the current one]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
    /// Such as fs.read or terminal.run; or net or wall, for what a running command was stopped at
    #[arg(value_name = "ACTION")]
    action: String,
    /// Its parameters: key=text, key:=JSON, or one JSON object; for net, hosts with their ports; for
    /// wall, paths
    #[arg(value_name = "PARAMS")]
    params: Vec<String>,
}

fn mode(word: &str) -> Result<Mode, String> {
    Mode::parse(word).ok_or_else(|| "it can be sandbox or full".to_owned())
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.what {
        What::Explain(args) => explain(args),
        What::Test { file, workspace } => test(&file, &workspace::find(workspace.as_deref())?),
    }
}

/// What `--json` prints.
#[derive(Serialize)]
struct Explained<'a> {
    #[serde(flatten)]
    decision: &'a Decision,
    facts: &'a Facts,
    /// Why the facts are only the parameters' word.
    #[serde(skip_serializing_if = "Option::is_none")]
    unresolved: Option<&'a str>,
}

fn explain(args: Explain) -> anyhow::Result<ExitCode> {
    let workspace = workspace::find(args.workspace.as_deref())?;
    let files = policy_files::read_sound(&workspace)?;
    let known = |facts| Resolved {
        facts,
        instead: None,
    };
    let (verb, resolved) = match args.action.as_str() {
        "net" if args.params.is_empty() => bail!("Name the hosts, such as `example.com:443`."),
        "wall" if args.params.is_empty() => bail!("Name the paths, such as `.git/config`."),
        "net" => (Verb::Net, known(hosts(args.params))),
        "wall" => (Verb::Wall, known(stopped(&workspace, &args.params))),
        name => action(&workspace, name, read_params(&args.params)?)?,
    };
    let decision = decide(
        &files,
        &args.role,
        args.mode,
        verb,
        &resolved.facts,
        &workspace,
    )?;
    let mut out = std::io::stdout().lock();
    if args.json {
        let explained = Explained {
            decision: &decision,
            facts: &resolved.facts,
            unresolved: resolved.instead.as_deref(),
        };
        serde_json::to_writer_pretty(&mut out, &explained)?;
        writeln!(out)?;
    } else {
        write!(out, "{}", decision.explain())?;
        let runs = matches!(
            verb,
            Verb::Action(ActionName::TerminalRun | ActionName::TerminalOpen)
        );
        if runs && files.rules.iter().any(restricts_files) {
            writeln!(
                out,
                "\n  Rules about files hold for file actions and redirections; what a command reads by itself is\n  held by the wall alone."
            )?;
        }
        if let Some(why) = resolved.instead {
            writeln!(
                out,
                "\n  The runtime would not do this: {}",
                printable(&why)
            )?;
            writeln!(
                out,
                "  What it would touch is taken from the parameters as they are."
            )?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether a rule would keep a file from being read or written.
fn restricts_files(rule: &policy::Rule) -> bool {
    rule.verdict != Verdict::Allow && rule.pattern.as_str().starts_with("fs.")
}

fn action(
    workspace: &Path,
    name: &str,
    params: Map<String, Value>,
) -> anyhow::Result<(Verb, Resolved)> {
    let depth = params.get("depth").cloned();
    let resolved = policy_files::resolve(workspace, name, params)?;
    let action = ActionName::parse(name).context("The action has no name that Ward knows")?;
    Ok((Verb::of(action, depth.as_ref()), resolved))
}

fn hosts(hosts: Vec<String>) -> Facts {
    Facts {
        hosts,
        ..Facts::default()
    }
}

/// Writes that a command was stopped at.
fn stopped(workspace: &Path, paths: &[String]) -> Facts {
    let paths = paths.iter().map(|path| workspace.join(path));
    gate::stopped_at(paths.map(|path| path.to_string_lossy().into_owned()))
}

fn read_params(words: &[String]) -> anyhow::Result<Map<String, Value>> {
    if let [word] = words
        && word.starts_with('{')
    {
        return serde_json::from_str(word).context("The parameters are not a JSON object");
    }
    let mut params = Map::new();
    for word in words {
        let Some((key, text)) = word.split_once('=') else {
            bail!(
                "`{word}` is no parameter. Write it as key=text, or all of them as one JSON object."
            );
        };
        let (key, value) = match key.strip_suffix(':') {
            Some(key) => {
                let value = serde_json::from_str(text);
                (key, value.with_context(|| format!("`{key}` is not JSON"))?)
            }
            None => (key, Value::String(text.to_owned())),
        };
        params.insert(key.to_owned(), value);
    }
    Ok(params)
}

fn decide(
    files: &Files,
    role: &str,
    mode: Mode,
    verb: Verb,
    facts: &Facts,
    workspace: &Path,
) -> anyhow::Result<Decision> {
    let role = files.roles.get(role);
    let role = role.map_err(|error| anyhow::anyhow!(printable(&error.to_string())))?;
    let home = std::env::home_dir();
    let home = home.as_ref().map(|home| home.to_string_lossy());
    let workspace = workspace.to_string_lossy();
    let own = gate::real_folders(&policy_files::own()?);
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    let asked = Asked {
        verb,
        facts,
        place: Place {
            workspace: &workspace,
            home: home.as_deref(),
            own: &own,
        },
        session: None,
        confinement: Confinement::Kernel,
    };
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let now = Time(u64::try_from(now.as_millis()).unwrap_or(u64::MAX));
    Ok(policy::decide(
        &Authority::of(role),
        mode,
        &files.rules,
        &[],
        &asked,
        now,
    ))
}

/// The table as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct Table {
    tests: Vec<Spanned<Expectation>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct Expectation {
    #[serde(default = "default_role")]
    role: String,
    #[serde(default = "default_mode")]
    mode: Mode,
    action: String,
    #[serde(default)]
    params: Map<String, Value>,
    #[serde(default)]
    hosts: Vec<String>,
    #[serde(default)]
    paths: Vec<String>,
    expect: Verdict,
    rule: Option<String>,
}

fn default_role() -> String {
    builtin::DEFAULT_ROLE.to_owned()
}

fn default_mode() -> Mode {
    Mode::Sandbox
}

fn test(file: &Path, workspace: &Path) -> anyhow::Result<ExitCode> {
    let shown = file.display();
    let text =
        std::fs::read_to_string(file).with_context(|| format!("{shown} could not be read"))?;
    let line = |at: usize| 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count();
    let table: Table = toml::from_str(&text).map_err(|error| {
        let at = line(error.span().map_or(0, |span| span.start));
        let what = error.message().replace('\n', " ");
        anyhow::anyhow!(
            "{shown}, line {at}: {}",
            what.replace("unknown field", "unknown key")
        )
    })?;
    let files = policy_files::read_sound(workspace)?;
    let mut out = std::io::stdout().lock();
    let (all, mut failed) = (table.tests.len(), 0);
    for expected in table.tests {
        let at = line(expected.span().start);
        let expected = expected.into_inner();
        let place = || format!("{shown}, line {at}");
        let decision = decide_expected(&files, &expected, workspace).with_context(place)?;
        let because = &decision.because;
        let fits = decision.verdict == expected.expect
            && expected
                .rule
                .as_ref()
                .is_none_or(|rule| *rule == because.text);
        if !fits {
            failed += 1;
            let wanted = match &expected.rule {
                Some(rule) => format!("{} by `{rule}`", expected.expect),
                None => expected.expect.to_string(),
            };
            writeln!(
                out,
                "{}: expected {wanted}, but it is {}",
                place(),
                decision.verdict
            )?;
            writeln!(out, "  because of {}", printable(&because.to_string()))?;
        }
    }
    writeln!(out, "{} of {all} decisions are as expected.", all - failed)?;
    Ok(if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn decide_expected(
    files: &Files,
    expected: &Expectation,
    workspace: &Path,
) -> anyhow::Result<Decision> {
    let Expectation {
        params,
        hosts: named,
        paths,
        ..
    } = expected;
    // Decided about nothing, a row would pass that no rule was asked about.
    let only = |key: &str, there: bool, others: bool| -> anyhow::Result<()> {
        if !there || others {
            let action = &expected.action;
            bail!(
                "`{action}` is decided about `{key}`, and about nothing else: write `{key} = […]`."
            );
        }
        Ok(())
    };
    let (verb, facts) = match expected.action.as_str() {
        "net" => {
            only(
                "hosts",
                !named.is_empty(),
                !params.is_empty() || !paths.is_empty(),
            )?;
            (Verb::Net, hosts(named.clone()))
        }
        "wall" => {
            only(
                "paths",
                !paths.is_empty(),
                !params.is_empty() || !named.is_empty(),
            )?;
            (Verb::Wall, stopped(workspace, paths))
        }
        name => {
            if !named.is_empty() || !paths.is_empty() {
                bail!(
                    "`hosts` is for `net` and `paths` for `wall`: what `{name}` is asked with is in `params`."
                );
            }
            let (verb, resolved) = action(workspace, name, params.clone())?;
            (verb, resolved.facts)
        }
    };
    decide(
        files,
        &expected.role,
        expected.mode,
        verb,
        &facts,
        workspace,
    )
}
