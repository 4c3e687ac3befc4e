//! `ward chat`: a conversation with an agent in a terminal.
//!
//! It is a client like any other: it posts messages, follows the session's events and answers
//! questions over the same routes as the page does. What is shown is what was told, also of one's
//! own words: they appear when they are written.
//!
//! - `screen.rs` is the terminal, `editor.rs` the line that is typed, `view.rs` what stands below.
//! - `conversation.rs` makes lines of events, with `markdown.rs` and `calls.rs`.
//! - `follow.rs` is the session, `questions.rs` what the agent asks, `slash.rs` and `commands.rs`
//!   what begins with a slash, `keys.rs` what a key does.
//! - `piped.rs` is the same without a terminal, a line at a time.
//!
//! Everything that comes from the agent, from files and from commands is made printable before it is
//! shown: none of it can move the cursor, hide, or look like a word of Ward's.

mod calls;
mod commands;
mod conversation;
pub(crate) mod editor;
mod follow;
pub(crate) mod history;
mod keys;
mod markdown;
mod piped;
mod questions;
pub(crate) mod screen;
mod slash;
pub(crate) mod text;
mod view;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use crossterm::event::{Event as Key, EventStream};
use futures_util::{FutureExt as _, StreamExt as _};
use protocol::Mode;
use protocol::runtime::RuntimeChoice;
use protocol::session::{Models, SessionInfo};
use tokio::signal::unix::{SignalKind, signal};

use crate::client::{Client, Event, Events};
use crate::console::printable;
use crate::folders;
use crate::ids::short;
use crate::paint::{BOLD, DIM, RED, YELLOW, paint};
use conversation::Conversation;
use editor::Editor;
use history::History;
use questions::Questions;
use screen::Screen;
use text::flow;

/// How many events are shown at once where many have come.
const AT_ONCE: usize = 512;

/// How a conversation is begun.
#[derive(Debug)]
pub(crate) struct Beginning {
    pub(crate) role: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) mode: Option<Mode>,
    /// Where its actions run; the local runtime where nothing is said.
    pub(crate) runtime: Option<RuntimeChoice>,
    pub(crate) workspace: PathBuf,
    /// Whether that folder is meant; a certain runtime has one of its own.
    pub(crate) is_meant: bool,
    pub(crate) data: Option<PathBuf>,
    /// A session to go on with: this one, or the latest.
    pub(crate) resume: Option<Option<String>>,
}

/// A conversation in a terminal.
struct Chat {
    client: Client,
    screen: Screen,
    history: History,
    editor: Editor,
    focus: Focus,
    conversation: Conversation,
    questions: Questions,
    beginning: Beginning,
    /// The model where neither the person nor the role names one.
    usual: String,
    /// The session, once there is one.
    session: Option<String>,
    /// Its events, and the number of the last one.
    events: Option<Events>,
    seen: u64,
    /// The person's inbox: following it is what makes this the client that is asked first.
    inbox: Option<Events>,
    /// Ctrl-C was the last key: once more leaves.
    armed: bool,
    leaving: bool,
}

/// What a key is for.
#[derive(Debug, Default)]
enum Focus {
    /// The line.
    #[default]
    Line,
    /// The question.
    Question,
    /// The reason for a no; what was being typed comes back after it.
    Reason(String),
    /// Which session to go on with.
    Choice(Vec<SessionInfo>),
}

/// Talks until the person leaves.
pub(crate) async fn run(beginning: Beginning) -> anyhow::Result<ExitCode> {
    let purpose = "ward chat";
    let data = beginning.data.clone();
    let client = Client::open_to_stay(data.as_deref(), &beginning.workspace, purpose).await?;
    let mut chat = Chat {
        client,
        screen: Screen::open()?,
        history: History::open(&folders::state()?.join("chat-history")),
        editor: Editor::default(),
        focus: Focus::Line,
        conversation: Conversation::default(),
        questions: Questions::default(),
        beginning,
        usual: String::new(),
        session: None,
        events: None,
        seen: 0,
        inbox: None,
        armed: false,
        leaving: false,
    };
    let talked = match chat.greet().await {
        Ok(()) if chat.screen.is_terminal() => chat.talk().await,
        Ok(()) => chat.read_lines().await,
        Err(error) => Err(error),
    };
    let Chat { client, screen, .. } = chat;
    drop(screen);
    client.close().await;
    talked.map(|()| ExitCode::SUCCESS)
}

impl Chat {
    /// Says where one is, and goes on with a session where that was asked for.
    async fn greet(&mut self) -> anyhow::Result<()> {
        if let Some(named) = self.beginning.resume.take() {
            let session = self.find(named.as_deref()).await?;
            self.say(&format!(
                "Going on with session {}: {}",
                short(&session.session_id),
                printable(&session.title)
            ));
            return self.follow(&session).await;
        }
        let models: Models = self.client.get("/models").await?;
        let model = match &self.beginning.model {
            Some(model) => model.clone(),
            None => models.default,
        };
        if self.screen.is_terminal() {
            let line = format!(
                "{} {}",
                paint(BOLD, "Ward"),
                paint(DIM, "· /help says what can be typed, Ctrl-D leaves")
            );
            self.screen.print(&line);
        }
        let columns = self.screen.columns();
        if model == OFFLINE {
            self.print(&flow(YELLOW, ABOUT_OFFLINE, columns));
        }
        if self.beginning.mode == Some(Mode::Full) {
            self.tell_of_full(&self.role()).await?;
        }
        self.usual = model;
        Ok(())
    }

    async fn talk(&mut self) -> anyhow::Result<()> {
        let mut keys = EventStream::new();
        let catch = |kind| signal(kind).context("Ward could not prepare for signals");
        let mut terminate = catch(SignalKind::terminate())?;
        let mut hangup = catch(SignalKind::hangup())?;
        while !self.leaving {
            let frame = self.frame();
            self.screen.draw(frame)?;
            let due = self.questions.guard.due();
            let ticks = self.conversation.since.is_some();
            tokio::select! {
                biased;
                _ = terminate.recv() => break,
                _ = hangup.recv() => break,
                key = keys.next() => match key {
                    Some(Ok(key)) => self.pressed(key).await?,
                    Some(Err(_)) | None => break,
                },
                event = next(&mut self.events) => self.happened(event).await?,
                told = next(&mut self.inbox) => {
                    // What is asked is told by the session as well.
                    if !matches!(told, Ok(Some(_))) {
                        self.inbox = None;
                    }
                }
                () = until(due) => self.due().await?,
                () = tokio::time::sleep(Duration::from_secs(1)), if ticks => {}
            }
        }
        self.farewell();
        let frame = screen::Frame::default();
        self.screen.draw(frame)
    }

    async fn pressed(&mut self, key: Key) -> anyhow::Result<()> {
        match key {
            Key::Key(key) if key.is_press() || key.is_repeat() => self.key(key).await,
            Key::Paste(text) => {
                if matches!(self.focus, Focus::Question) {
                    self.focus = Focus::Line;
                }
                self.editor.insert(&text);
                Ok(())
            }
            Key::Resize(..) => {
                self.screen.measure();
                Ok(())
            }
            Key::Key(_) | Key::FocusGained | Key::FocusLost | Key::Mouse(_) => Ok(()),
        }
    }

    /// An event of the session, and all that have come with it.
    async fn happened(&mut self, first: anyhow::Result<Option<Event>>) -> anyhow::Result<()> {
        let mut event = first;
        for _ in 0..AT_ONCE {
            match event {
                Ok(Some(told)) => self.told(&told).await?,
                Ok(None) | Err(_) => return self.lost().await,
            }
            match next(&mut self.events).now_or_never() {
                Some(more) => event = more,
                None => break,
            }
        }
        Ok(())
    }

    /// Something of the chat's own, in words.
    fn say(&mut self, text: &str) {
        let mut lines = Vec::new();
        let columns = self.screen.columns();
        self.conversation.note(text, columns, &mut lines);
        self.print(&lines);
    }

    /// What went wrong, in words.
    fn sorry(&mut self, error: &anyhow::Error) {
        let text = printable(&format!("{error:#}"));
        let mut lines = Vec::new();
        let rows = flow(RED, &format!("✗ {text}"), self.screen.columns());
        self.conversation.block(rows, &mut lines);
        self.print(&lines);
    }

    fn print(&mut self, lines: &[String]) {
        for line in lines {
            self.screen.print(line);
        }
    }

    /// How it goes on without the person.
    fn farewell(&mut self) {
        let Some(session) = self.session.clone() else {
            return;
        };
        let runs = self.conversation.since.is_some();
        if runs && !self.questions.is_empty() {
            self.say("The agent waits for your answer, also after this.");
        } else if runs && self.client.is_owner() {
            self.say("The agent was at work, and stops here.");
        } else if runs {
            self.say("The agent goes on without you.");
        }
        let id = short(&session);
        self.say(&format!("ward chat --resume {id} goes on from here."));
    }
}

/// The next of these; never, where there are none.
async fn next(events: &mut Option<Events>) -> anyhow::Result<Option<Event>> {
    match events {
        Some(events) => events.next().await,
        None => std::future::pending().await,
    }
}

/// Until then; never, where nothing is due.
pub(crate) async fn until(due: Option<tokio::time::Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

const OFFLINE: &str = runner::provider::Offline::NAME;
const ABOUT_OFFLINE: &str = "The model is `offline`, Ward's own small one: it follows plain requests, such as \"read README.md\". `ward models` says how to get a real one.";
const ABOUT_FULL: &str = "Mode full: what the agent runs is not held by the sandbox and can reach whatever you can. Roles, rules and the ledger still hold.";
