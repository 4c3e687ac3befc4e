//! `ward run`: one agent, without anybody in front.

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use protocol::gate::{Ask, Failed};
use protocol::runtime::{LOCAL, RuntimeChoice, RuntimeNeed};
use protocol::sandbox::{SandboxReport, Stopped, StoppedAccess};
use protocol::session::{
    Input, Limits, PostSession, SessionAnswer, SessionEvent, SessionState, StopReason, ToolCalled,
    ToolOutput,
};
use protocol::{ErrorKind, Mode};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

use crate::client::{Client, Event};
use crate::commands::run_async;
use crate::console::{printable, tell};
use crate::duration::Span;
use crate::ids::is_whole;
use crate::workspace;

/// The exit codes that are spoken of in more than one place.
const DONE: u8 = 0;
const FAILED: u8 = 1;
const REFUSED: u8 = 3;

/// Let one agent do a task, without anybody in front
///
/// The same as a session over HTTP: every action goes through the gate. Nobody can be asked here, so
/// what would ask is refused; with `--ask wait` it waits for whoever answers, by `ward approvals` or
/// on the page. The agent's words go to standard output, what it does to standard error.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Exit codes:\n  \
    0    the agent is done\n  \
    1    something went wrong\n  \
    2    the arguments do not fit\n  \
    3    it is done, but something that it or a sub-agent wanted was refused\n  \
    4    a limit was reached, or the model stopped early\n  \
    130  it was cancelled\n\n\
    Examples:\n  \
    ward run \"list the files, then read README.md\"\n  \
    ward run --role architect --model claude-sonnet-4-5 \"how is this built?\"\n  \
    ward run --runtime vscode \"open README.md\"\n  \
    git diff | ward run --json \"review this\" -")]
pub(crate) struct Args {
    /// What the agent shall do; `-` beside it, or alone, adds what is on standard input
    #[arg(value_name = "TASK", required = true, num_args = 1..=2)]
    task: Vec<String>,

    /// Who the agent is [default: system_agent]
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,

    /// Its model; `ward models` lists them [default: the role's, or the usual one]
    #[arg(long, value_name = "MODEL", env = "WARD_MODEL")]
    model: Option<String>,

    /// How its actions may run, at the freest: sandbox or full
    #[arg(long, value_name = "MODE", default_value = "sandbox", value_parser = mode)]
    mode: Mode,

    /// Where its actions run: `local`, a kind of editor that shows this folder, such as `vscode`, or
    /// a runtime's id. One that is not connected is waited for
    #[arg(long, value_name = "RUNTIME", default_value = "local", value_parser = runtime)]
    runtime: RuntimeChoice,

    /// Tell everything as it happens, a line of JSON for each event
    #[arg(long)]
    json: bool,

    /// Where a person's answer is needed: `wait` for it, or `deny`
    #[arg(long, value_name = "HOW", default_value = "deny", value_parser = ask)]
    ask: Ask,

    /// How many turns the model has at most
    #[arg(long, value_name = "N")]
    max_turns: Option<u64>,

    /// How many tokens it may use at most
    #[arg(long, value_name = "N")]
    max_tokens: Option<u64>,

    /// How many dollars it may cost at most; the price of the model has to be in the settings
    #[arg(long, value_name = "DOLLARS")]
    max_cost: Option<f64>,

    /// How long it may work at most, such as 10m
    #[arg(long, value_name = "TIME")]
    max_time: Option<Span>,

    /// The folder that it works in [default: the current one]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,

    /// Where the store is kept [default: ~/.local/share/ward]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

/// A mode by its name.
pub(crate) fn mode(text: &str) -> Result<Mode, String> {
    Mode::parse(text).ok_or_else(|| "it can be sandbox or full".to_owned())
}

/// A runtime by its id, or by what it is.
pub(crate) fn runtime(text: &str) -> Result<RuntimeChoice, String> {
    if is_whole(text) || text == LOCAL {
        return Ok(RuntimeChoice::Id(text.to_owned()));
    }
    let good =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    if text.is_empty() || text.len() > 40 || !text.bytes().all(good) {
        return Err("it can be local, a kind such as vscode, or a runtime's id".to_owned());
    }
    Ok(RuntimeChoice::Need(RuntimeNeed {
        kind: Some(text.to_owned()),
        ..RuntimeNeed::default()
    }))
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let workspace = workspace::find(args.workspace.as_deref())?;
    // A certain runtime has a folder of its own.
    let is_meant = args.workspace.is_some() || !args.runtime.is_one();
    let asked = PostSession {
        input: Input::Text(task(&args.task)?),
        role: args.role,
        model: args.model,
        mode: Some(args.mode),
        workspace: is_meant.then(|| workspace.to_string_lossy().into_owned()),
        runtime: Some(args.runtime).filter(|choice| !choice.is_local()),
        stream: false,
        limits: Limits {
            turns: args.max_turns,
            tokens: args.max_tokens,
            cost: args.max_cost,
            seconds: args.max_time.map(|time| time.0.as_secs()),
        },
        id: None,
        ask: args.ask,
        wait: Some(0),
    };
    run_async(async {
        let data = args.data.as_deref();
        let client = match args.ask {
            // Whoever answers has to find it.
            Ask::Wait => Client::open_to_stay(data, &workspace, "ward run").await?,
            Ask::Deny => Client::open(data, "ward run").await?,
        };
        let told = follow(&client, &asked, args.json).await;
        client.close().await;
        told
    })
}

pub(super) fn ask(word: &str) -> Result<Ask, String> {
    match word {
        "wait" => Ok(Ask::Wait),
        "deny" => Ok(Ask::Deny),
        _ => Err("it can be wait or deny".to_owned()),
    }
}

/// The task, with what is on standard input where `-` asks for it.
fn task(words: &[String]) -> anyhow::Result<String> {
    let (named, input) = match words {
        [only] if only == "-" => ("", true),
        [task] => (task.as_str(), false),
        [task, dash] if dash == "-" => (task.as_str(), true),
        _ => bail!("Put the task into quotes: ward run \"list the files\""),
    };
    if !input {
        return Ok(named.to_owned());
    }
    let read = std::io::read_to_string(std::io::stdin());
    let read = read.context("Standard input could not be read")?;
    Ok(format!("{named}\n\n{read}").trim().to_owned())
}

async fn follow(client: &Client, asked: &PostSession, json: bool) -> anyhow::Result<ExitCode> {
    let begun: SessionAnswer = client.post("/sessions", asked).await?;
    let path = format!("/sessions/{}", begun.session.session_id);
    let mut interrupt =
        signal(SignalKind::interrupt()).context("Ward could not prepare for signals")?;
    let mut terminate =
        signal(SignalKind::terminate()).context("Ward could not prepare for signals")?;
    let mut events = client.follow(&format!("{path}/events")).await?;
    let mut telling = Telling {
        json,
        terminal: std::io::stdout().is_terminal(),
        refused: false,
        midline: false,
        children: Vec::new(),
    };
    if begun.session.model == "offline" && !json {
        tell("the model is `offline`, Ward's own small one; `ward models` says how to get another");
    }
    loop {
        let next = tokio::select! {
            next = events.next() => next?,
            _ = interrupt.recv() => { cancel(client, &path).await?; continue }
            _ = terminate.recv() => { cancel(client, &path).await?; continue }
        };
        let Some(event) = next else {
            bail!("Ward ended before the agent did. `ward run` begins anew.");
        };
        let Some(code) = telling.event(&event)? else {
            continue;
        };
        if code == DONE && telling.refused_below(client).await? {
            return Ok(ExitCode::from(REFUSED));
        }
        return Ok(ExitCode::from(code));
    }
}

async fn cancel(client: &Client, path: &str) -> anyhow::Result<()> {
    let _: Value = client.post(&format!("{path}/cancel"), &json!({})).await?;
    Ok(())
}

/// How events are told here.
struct Telling {
    json: bool,
    terminal: bool,
    /// Whether something was refused.
    refused: bool,
    /// Whether the last words did not end their line.
    midline: bool,
    /// The sessions of sub-agents.
    children: Vec<String>,
}

impl Telling {
    /// Whether something was refused that a sub-agent wanted. They are over by now, and the agent
    /// that called them is told only what they say themselves.
    async fn refused_below(&mut self, client: &Client) -> anyhow::Result<bool> {
        let mut refused = false;
        while let Some(child) = self.children.pop() {
            let path = format!("/sessions/{child}");
            // Not there where it could not be begun.
            let Ok(found) = client.get::<SessionAnswer>(&path).await else {
                continue;
            };
            let is_over = matches!(
                found.session.state,
                SessionState::Idle | SessionState::Failed
            );
            if !is_over {
                continue;
            }
            let mut events = client.follow(&format!("{path}/events")).await?;
            while let Some(event) = events.next().await? {
                match SessionEvent::read(&event.kind, event.data) {
                    Some(SessionEvent::ToolCalled(called)) => self.children.extend(called.child),
                    Some(SessionEvent::ToolOutput(came)) => {
                        for line in refusals(&came) {
                            refused = true;
                            self.did(&format!("a sub-agent: {line}"))?;
                        }
                    }
                    Some(SessionEvent::Completed(_) | SessionEvent::Failed(_)) => break,
                    _ => {}
                }
            }
        }
        Ok(refused)
    }

    /// Tells one event. The exit code, if it was the last.
    fn event(&mut self, event: &Event) -> anyhow::Result<Option<u8>> {
        if self.json {
            let mut out = std::io::stdout().lock();
            let line = json!({"id": event.id, "event": event.kind, "data": event.data});
            writeln!(out, "{line}")?;
            out.flush()?;
        }
        let Some(event) = SessionEvent::read(&event.kind, event.data.clone()) else {
            return Ok(None);
        };
        match event {
            SessionEvent::Text(delta) => self.words(&delta.text)?,
            SessionEvent::MessageCompleted(_) | SessionEvent::TurnDropped(_) => self.end_line()?,
            SessionEvent::ToolCalled(called) => {
                self.did(&shown(&called))?;
                self.children.extend(called.child);
            }
            SessionEvent::ToolOutput(came) => {
                let refusals = refusals(&came);
                self.refused |= !refusals.is_empty();
                for line in refusals {
                    self.did(&line)?;
                }
                if !came.ok && came.kind != Some(ErrorKind::Denied) {
                    self.did(&failed_call(&came))?;
                }
            }
            SessionEvent::RuntimeAwaited(awaited) => {
                self.did(&format!("{} Waiting for it.", awaited.reason))?;
            }
            SessionEvent::PermissionRequested(asked) => self.did(&format!(
                "{} waits for an answer: ward approvals show {}",
                asked.approval.action, asked.approval_id
            ))?,
            SessionEvent::Failed(failed) => {
                self.end_line()?;
                return self.failed(failed).map(Some);
            }
            SessionEvent::Completed(completed) => {
                self.end_line()?;
                let code = match completed.stop {
                    StopReason::Done if self.refused => REFUSED,
                    StopReason::Done => DONE,
                    StopReason::Cancelled => 130,
                    StopReason::Length
                    | StopReason::Refusal
                    | StopReason::ContentFilter
                    | StopReason::TurnLimit
                    | StopReason::TokenLimit
                    | StopReason::CostLimit
                    | StopReason::TimeLimit => 4,
                };
                if code == 4 {
                    self.did(&format!("the agent stopped early: {}", why(completed.stop)))?;
                }
                return Ok(Some(code));
            }
            _ => {}
        }
        Ok(None)
    }

    fn failed(&self, failed: Failed) -> anyhow::Result<u8> {
        if self.json {
            return Ok(FAILED);
        }
        Err(failed.into())
    }

    fn words(&mut self, text: &str) -> anyhow::Result<()> {
        if self.json || text.is_empty() {
            return Ok(());
        }
        let mut out = std::io::stdout().lock();
        if self.terminal {
            // What the model writes must not move the cursor.
            let mut lines = text.split('\n').peekable();
            while let Some(line) = lines.next() {
                write!(out, "{}", printable(line))?;
                if lines.peek().is_some() {
                    writeln!(out)?;
                }
            }
        } else {
            out.write_all(text.as_bytes())?;
        }
        out.flush()?;
        self.midline = !text.ends_with('\n');
        Ok(())
    }

    fn end_line(&mut self) -> anyhow::Result<()> {
        if std::mem::take(&mut self.midline) {
            writeln!(std::io::stdout().lock())?;
        }
        Ok(())
    }

    fn did(&mut self, line: &str) -> anyhow::Result<()> {
        if !self.json {
            self.end_line()?;
            tell(&printable(line));
        }
        Ok(())
    }
}

/// What was refused of a call, a sentence each: all of it, or what the wall kept it from.
fn refusals(came: &ToolOutput) -> Vec<String> {
    match (came.ok, came.kind) {
        (true, _) => stopped(&came.output),
        (false, Some(ErrorKind::Denied)) => vec![failed_call(came)],
        (false, _) => Vec::new(),
    }
}

fn failed_call(came: &ToolOutput) -> String {
    let name = came.name.replacen('_', ".", 1);
    format!("{name} did not work: {}", came.output)
}

/// What the wall kept a command from that it wanted, a sentence each: hosts, and the paths that a
/// command which failed would have changed. One that did without did not need them.
fn stopped(result: &str) -> Vec<String> {
    #[derive(serde::Deserialize)]
    struct Ran {
        exit_code: Option<i32>,
        sandbox: SandboxReport,
    }
    let Ok(ran) = serde_json::from_str::<Ran>(result) else {
        return Vec::new();
    };
    let all = ran.sandbox.stopped.into_iter();
    all.filter_map(|Stopped { access, target }| match access {
        StoppedAccess::Connect => Some(format!("it was kept from reaching {target}")),
        StoppedAccess::Write if ran.exit_code == Some(0) => None,
        StoppedAccess::Write => Some(format!("it was kept from changing {target}")),
    })
    .collect()
}

/// A call in a line: what, and on what.
fn shown(called: &ToolCalled) -> String {
    let name = match &called.action {
        Some(action) => action.clone(),
        None => called.name.clone(),
    };
    let about = ["command", "path", "from", "pattern", "role", "name"];
    let about = about.iter().find_map(|key| called.arguments[*key].as_str());
    match about {
        Some(about) => format!("{name} {about}"),
        None => name,
    }
}

fn why(stop: StopReason) -> &'static str {
    match stop {
        StopReason::Done => "it was done",
        StopReason::Length => "its answer became too long",
        StopReason::Refusal => "the model would not",
        StopReason::ContentFilter => "the provider kept the answer back",
        StopReason::Cancelled => "it was cancelled",
        StopReason::TurnLimit => "the limit of turns was reached",
        StopReason::TokenLimit => "the limit of tokens was reached",
        StopReason::CostLimit => "the limit of cost was reached",
        StopReason::TimeLimit => "the limit of time was reached",
    }
}
