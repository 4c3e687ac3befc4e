//! What the words with a slash do.

use protocol::Mode;
use protocol::gate::Failed;
use protocol::http::{RoleInfo, Roles};
use protocol::session::{Models, PatchSession, SessionInfo, SessionState, Sessions, Usage};
use protocol::undo::{State, UndoParams, Undone};

use super::slash::{self, Extent, HELP, Slash};
use super::text::{clip, flow};
use super::view::home;
use super::{ABOUT_FULL, Chat, Focus};
use crate::console::printable;
use crate::ids::short;
use crate::paint::{BOLD, DIM, RED, YELLOW, diff, paint};

/// How many sessions can be chosen from.
const LISTED: usize = 15;

impl Chat {
    /// A line was typed: for Ward or for the agent. What goes wrong is told, and the line is there
    /// again.
    pub(super) async fn submit(&mut self, line: &str) -> anyhow::Result<()> {
        let done = match slash::read(line) {
            Some(Ok(slash)) => self.command(slash).await,
            Some(Err(told)) => {
                self.block(flow(RED, &printable(&told), self.screen.columns()));
                Ok(())
            }
            None if line.trim().is_empty() && !self.conversation.failed => Ok(()),
            None => self.send(line.trim(), None).await,
        };
        if let Err(error) = done {
            self.sorry(&error);
            if self.editor.is_empty() {
                self.editor.set(line.to_owned());
            }
        }
        Ok(())
    }

    async fn command(&mut self, slash: Slash) -> anyhow::Result<()> {
        match slash {
            Slash::Role(None) => self.roles().await,
            Slash::Role(Some(role)) => {
                let change = PatchSession {
                    role: Some(role.clone()),
                    ..PatchSession::default()
                };
                let (_, mode) = self.change(change).await?;
                if mode == Mode::Full {
                    self.tell_of_full(&role).await?;
                }
                self.beginning.role = Some(role);
                Ok(())
            }
            Slash::Model(None) => self.models().await,
            Slash::Model(Some(model)) => {
                let change = PatchSession {
                    model: Some(model.clone()),
                    ..PatchSession::default()
                };
                self.change(change).await?;
                self.beginning.model = Some(model);
                Ok(())
            }
            Slash::Mode(None) => {
                self.say(&format!(
                    "The mode is {}. sandbox: held by the kernel, and what would cross the wall asks. full: trusted.",
                    self.mode()
                ));
                Ok(())
            }
            Slash::Mode(Some(mode)) => {
                let change = PatchSession {
                    mode: Some(mode),
                    ..PatchSession::default()
                };
                let (role, _) = self.change(change).await?;
                self.beginning.mode = Some(mode);
                if mode == Mode::Full {
                    self.tell_of_full(&role).await?;
                }
                Ok(())
            }
            Slash::Undo(extent) => self.undo(extent).await,
            Slash::Resume(Some(id)) => {
                let session = self.find(Some(&id)).await?;
                self.go_on_with(&session).await
            }
            Slash::Resume(None) => self.choose().await,
            Slash::New => {
                self.forget();
                self.say("The next message begins a new session.");
                Ok(())
            }
            Slash::Cost => self.cost().await,
            Slash::Help => {
                self.block(HELP.lines().map(ToOwned::to_owned).collect());
                Ok(())
            }
            Slash::Quit => {
                self.leaving = true;
                Ok(())
            }
        }
    }

    /// Changes the session, or how the next one begins. Answers its role and mode as they are then:
    /// the events that tell of a change may still be on their way.
    async fn change(&mut self, change: PatchSession) -> anyhow::Result<(String, Mode)> {
        if let Some(session) = &self.session {
            let path = format!("/sessions/{session}");
            let now: SessionInfo = self.client.patch(&path, &change).await?;
            return Ok((now.role, now.mode));
        }
        let told = [
            change.role.map(|role| format!("The role is {role}.")),
            change.model.map(|model| format!("The model is {model}.")),
            change.mode.map(|mode| format!("The mode is {mode}.")),
        ];
        for line in told.iter().flatten() {
            self.say(&printable(line));
        }
        Ok((self.role(), self.mode()))
    }

    /// Says what mode full means for this role: some are held by the sandbox in any mode.
    pub(super) async fn tell_of_full(&mut self, role: &str) -> anyhow::Result<()> {
        let Roles { roles } = self.all_roles().await?;
        let held = |one: &RoleInfo| one.name == role && one.mode == Mode::Sandbox;
        let about = match roles.iter().any(held) {
            true => format!(
                "The role {} is held by the sandbox in any mode. /role names others.",
                printable(role)
            ),
            false => ABOUT_FULL.to_owned(),
        };
        self.block(flow(YELLOW, &about, self.screen.columns()));
        Ok(())
    }

    async fn all_roles(&self) -> anyhow::Result<Roles> {
        let path = format!(
            "/roles?workspace={}",
            crate::client::encoded(&self.beginning.workspace.to_string_lossy())
        );
        self.client.get(&path).await
    }

    async fn roles(&mut self) -> anyhow::Result<()> {
        let Roles { roles } = self.all_roles().await?;
        let now = self.role();
        let columns = self.screen.columns();
        let rows = roles.iter().map(|role| {
            let mark = if role.name == now { "●" } else { " " };
            let note = if role.usable {
                ""
            } else {
                " (not trusted: ward trust)"
            };
            let line = format!("{mark} {:<16} ", printable(&role.name));
            let about = format!("{}{note}", printable(&role.description));
            let room = columns.saturating_sub(20);
            format!("{}{}", paint(BOLD, &line), paint(DIM, &clip(&about, room)))
        });
        let mut rows: Vec<String> = rows.collect();
        rows.push(paint(DIM, "/role ROLE chooses one."));
        self.block(rows);
        Ok(())
    }

    async fn models(&mut self) -> anyhow::Result<()> {
        let models: Models = self.client.get("/models").await?;
        self.usual.clone_from(&models.default);
        let now = paint(BOLD, &printable(&self.model()));
        let mut rows = vec![format!("The model is {now}.")];
        for provider in &models.providers {
            let name = printable(&provider.provider);
            let (style, what) = match &provider.unusable {
                None => (BOLD, provider.models.join(", ")),
                Some(why) => (DIM, why.clone()),
            };
            let line = format!("  {name:<12} ");
            let what = paint(DIM, &printable(&what));
            rows.push(format!("{}{what}", paint(style, &line)));
        }
        rows.push(paint(DIM, "/model MODEL chooses one."));
        self.block(rows);
        Ok(())
    }

    async fn undo(&mut self, extent: Extent) -> anyhow::Result<()> {
        let Some(session) = self.session.clone() else {
            self.say("Nothing was done in this session yet.");
            return Ok(());
        };
        let params = match (extent, self.conversation.changed.last()) {
            (Extent::Last, None) => {
                self.say(
                    "No file action of this session can be undone. What commands changed is not kept.",
                );
                return Ok(());
            }
            (Extent::Last, Some(action)) => UndoParams {
                action: Some(action.clone()),
                ..UndoParams::default()
            },
            (Extent::Session, _) => UndoParams {
                session: Some(session),
                ..UndoParams::default()
            },
        };
        let undone: Undone = match self.client.post("/undo", &params).await {
            Ok(undone) => undone,
            Err(error) => {
                // What stands in the way is shown.
                let failed = error.downcast_ref::<Failed>();
                let found = failed.and_then(|failed| failed.details.get("diff")?.as_str());
                let rows: Vec<String> = found.unwrap_or_default().lines().map(diff).collect();
                self.block(rows);
                return Err(error);
            }
        };
        let mut rows = Vec::new();
        for action in &undone.actions {
            self.conversation
                .changed
                .retain(|id| *id != action.action_id);
            for file in &action.files {
                let what = match (&file.before, &file.after) {
                    (_, State::Absent) => "removed",
                    (State::Absent, _) => "put back",
                    (_, _) => "restored",
                };
                let path = printable(&home(&file.path));
                rows.push(format!("{} {path}", paint(YELLOW, &format!("↶ {what}"))));
            }
        }
        if rows.is_empty() {
            rows.push("There was nothing to undo.".to_owned());
        }
        self.block(rows);
        Ok(())
    }

    async fn choose(&mut self) -> anyhow::Result<()> {
        let Sessions { mut sessions } = self.client.get("/sessions").await?;
        if sessions.is_empty() {
            self.say("There are no sessions yet.");
            return Ok(());
        }
        // Those of this workspace first, the latest first among them.
        let here = self.beginning.workspace.to_string_lossy().into_owned();
        sessions.sort_by_key(|session| session.workspace != here);
        sessions.truncate(LISTED);
        let columns = self.screen.columns();
        let mut rows = Vec::new();
        for (number, session) in sessions.iter().enumerate() {
            let state = match session.state {
                SessionState::Running => "works",
                SessionState::Waiting => "asks",
                SessionState::Idle => "",
                SessionState::Failed => "failed",
            };
            let place = match session.workspace == here {
                true => String::new(),
                false => format!(" · {}", printable(&home(&session.workspace))),
            };
            let head = format!("{:>3}  {}  ", number + 1, short(&session.session_id));
            let title = session.title.lines().next().unwrap_or_default();
            let about = format!("{}{place}", printable(title));
            rows.push(format!(
                "{}{} {}",
                paint(BOLD, &head),
                clip(&about, columns.saturating_sub(24)),
                paint(YELLOW, state)
            ));
        }
        if !self.screen.is_terminal() {
            rows.push("/resume ID goes on with one.".to_owned());
        }
        self.block(rows);
        if self.screen.is_terminal() {
            self.focus = Focus::Choice(sessions);
        }
        Ok(())
    }

    /// A number of the list, or an id.
    pub(super) async fn chose(
        &mut self,
        line: &str,
        sessions: &[SessionInfo],
    ) -> anyhow::Result<()> {
        let line = line.trim();
        if line.is_empty() {
            return Ok(());
        }
        let number = line.parse::<usize>().ok();
        let chosen = number.and_then(|number| sessions.get(number.checked_sub(1)?));
        let found = match chosen {
            Some(session) => Ok(session.clone()),
            None => self.find(Some(line)).await,
        };
        match found {
            Ok(session) => self.go_on_with(&session).await,
            Err(error) => {
                self.sorry(&error);
                Ok(())
            }
        }
    }

    async fn go_on_with(&mut self, session: &SessionInfo) -> anyhow::Result<()> {
        let title = printable(session.title.lines().next().unwrap_or_default());
        let id = short(&session.session_id);
        self.block(vec![paint(DIM, &format!("── session {id}: {title}"))]);
        self.follow(session).await
    }

    async fn cost(&mut self) -> anyhow::Result<()> {
        let Some(session) = &self.session else {
            self.say("Nothing was said in this session yet.");
            return Ok(());
        };
        let session: SessionInfo = self.client.get(&format!("/sessions/{session}")).await?;
        let Usage {
            input,
            output,
            cache_read,
            cache_write,
            reasoning,
        } = session.usage;
        let mut told = format!("{} turns · {input} tokens in, {output} out", session.turns);
        for (count, what) in [
            (cache_read, "read from the cache"),
            (cache_write, "written to it"),
            (reasoning, "of thinking"),
        ] {
            if count > 0 {
                told.push_str(&format!(", {count} {what}"));
            }
        }
        match session.cost {
            Some(cost) => told.push_str(&format!(" · ${cost:.4}")),
            None => told.push_str(" · no price is known for this model"),
        }
        self.say(&told);
        Ok(())
    }

    /// Rows of the chat's own.
    fn block(&mut self, rows: Vec<String>) {
        if rows.is_empty() {
            return;
        }
        let mut lines = Vec::new();
        self.conversation.block(rows, &mut lines);
        self.print(&lines);
    }
}
