//! The session: begun, spoken to, followed, found again.

use std::time::Duration;

use anyhow::{Context as _, bail};
use protocol::ErrorKind;
use protocol::gate::{Ask, Failed};
use protocol::session::{
    Input, Limits, PostMessage, PostSession, SessionAnswer, SessionEvent, SessionInfo, Sessions,
};
use serde_json::{Value, json};

use super::conversation::Conversation;
use super::{ABOUT_OFFLINE, Chat, OFFLINE};
use crate::client::{Client, Event};
use crate::ids::is_meant;

/// How often, and how far apart, a Ward that has gone is looked for.
const LOOKS: usize = 40;
const BETWEEN: Duration = Duration::from_millis(250);

/// How many of these looks are for another Ward alone. Whoever ended it may be about to start it
/// again, and could not while this chat holds the data folder.
const FOR_ANOTHER: usize = 20;

impl Chat {
    /// Says something to the agent; a session is begun where there is none.
    pub(super) async fn send(&mut self, text: &str, id: Option<String>) -> anyhow::Result<()> {
        let input = Input::Text(text.to_owned());
        let Some(session) = self.session.clone() else {
            let asked = PostSession {
                input,
                role: self.beginning.role.clone(),
                model: self.beginning.model.clone(),
                mode: self.beginning.mode,
                workspace: self
                    .beginning
                    .is_meant
                    .then(|| self.beginning.workspace.to_string_lossy().into_owned()),
                runtime: self.beginning.runtime.clone(),
                stream: false,
                limits: Limits::default(),
                id: None,
                ask: Ask::Wait,
                wait: Some(0),
            };
            let begun: SessionAnswer = self.client.post("/sessions", &asked).await?;
            return self.follow(&begun.session).await;
        };
        let said = PostMessage {
            input,
            role: None,
            model: None,
            mode: None,
            limits: None,
            stream: false,
            id,
            wait: Some(0),
        };
        let path = format!("/sessions/{session}/messages");
        let _: Value = self.client.post(&path, &said).await?;
        Ok(())
    }

    /// Shows a session from its first event on, and what comes.
    pub(super) async fn follow(&mut self, session: &SessionInfo) -> anyhow::Result<()> {
        self.questions.clear();
        self.leave_question();
        self.conversation = Conversation::of(session);
        self.beginning.workspace = session.workspace.clone().into();
        self.session = Some(session.session_id.clone());
        self.seen = 0;
        self.listen().await
    }

    async fn listen(&mut self) -> anyhow::Result<()> {
        let Some(session) = &self.session else {
            return Ok(());
        };
        let path = format!("/sessions/{session}/events?from={}", self.seen);
        self.events = Some(self.client.follow(&path).await?);
        if self.screen.is_terminal() {
            let path = format!("/approvals/events?front=true&session={session}");
            self.inbox = Some(self.client.follow(&path).await?);
        }
        Ok(())
    }

    /// An event of the session.
    pub(super) async fn told(&mut self, event: &Event) -> anyhow::Result<()> {
        self.seen = event.id.unwrap_or(self.seen);
        // What a newer Ward tells is left out.
        let Some(event) = SessionEvent::read(&event.kind, event.data.clone()) else {
            return Ok(());
        };
        let lines = self.conversation.event(&event, self.screen.columns());
        self.print(&lines);
        match &event {
            SessionEvent::PermissionRequested(asked) => self.asked(asked).await,
            SessionEvent::PermissionResolved(closed) => self.resolved(closed),
            SessionEvent::Changed(changed) if changed.model.as_deref() == Some(OFFLINE) => {
                self.say(ABOUT_OFFLINE);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Cancels what runs.
    pub(super) async fn cancel(&mut self) {
        let Some(session) = &self.session else {
            return;
        };
        let path = format!("/sessions/{session}/cancel");
        if let Err(error) = self.client.post::<Value>(&path, &json!({})).await {
            self.sorry(&error);
        }
    }

    /// No more events come: the session was deleted, or Ward has gone.
    pub(super) async fn lost(&mut self) -> anyhow::Result<()> {
        self.events = None;
        let Some(session) = self.session.clone() else {
            return Ok(());
        };
        for look in 0..LOOKS {
            match self
                .client
                .get::<SessionInfo>(&format!("/sessions/{session}"))
                .await
            {
                Ok(_) => {
                    if look > 0 {
                        self.say(match self.client.is_owner() {
                            true => "No other Ward came: this chat is Ward now, while it is open.",
                            false => "Ward is there again.",
                        });
                    }
                    return self.listen().await;
                }
                Err(error) if is_gone(&error) => {
                    self.say("This session was deleted. The next message begins another.");
                    self.forget();
                    return Ok(());
                }
                Err(_) => {}
            }
            if look == 0 {
                self.say("Ward has ended; looking for another …");
                let frame = self.frame();
                self.screen.draw(frame)?;
            }
            // Also where this chat tries to be one: what a Ward leaves behind when it is killed can
            // look like one for a moment.
            tokio::time::sleep(BETWEEN).await;
            if look < FOR_ANOTHER {
                continue;
            }
            let data = self.beginning.data.clone();
            let workspace = &self.beginning.workspace;
            let opened = Client::open_to_stay(data.as_deref(), workspace, "ward chat").await;
            if let Ok(client) = opened {
                self.client = client;
            }
        }
        bail!("Ward has ended. `ward chat --resume` goes on when it runs again.")
    }

    /// The next message begins another session.
    pub(super) fn forget(&mut self) {
        self.session = None;
        self.events = None;
        self.inbox = None;
        self.seen = 0;
        self.questions.clear();
        self.leave_question();
        self.conversation = Conversation::default();
    }

    /// The session whose id begins so, or the latest in the workspace.
    pub(super) async fn find(&self, named: Option<&str>) -> anyhow::Result<SessionInfo> {
        let Sessions { sessions } = self.client.get("/sessions").await?;
        let Some(named) = named else {
            let here = self.beginning.workspace.to_string_lossy();
            let latest = sessions.into_iter().find(|one| one.workspace == here);
            return latest.context(
                "There is no session in this workspace to go on with. `ward chat` begins one.",
            );
        };
        let mut fits = sessions
            .into_iter()
            .filter(|one| is_meant(&one.session_id, named));
        match (fits.next(), fits.next()) {
            (Some(session), None) => Ok(session),
            (Some(_), Some(_)) => {
                bail!("Several sessions begin with `{named}`. Write more of the id.")
            }
            (None, _) => bail!("There is no session `{named}`. /resume lists them."),
        }
    }
}

fn is_gone(error: &anyhow::Error) -> bool {
    let failed = error.downcast_ref::<Failed>();
    failed.is_some_and(|failed| matches!(failed.kind, ErrorKind::Unknown | ErrorKind::NotFound))
}
