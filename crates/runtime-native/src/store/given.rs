//! What an agent does with the store that it is given.

use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use notebook::{ArtifactRef, ExecutionId, InputRequested, Notebook, NotebookEvent, SessionId};
use runtime_core::{
    Announced, Announcement, ArtifactClient, Given, Lost, NotebookStore, Question, Unanswered,
};
use serde::Deserialize;
use serde_json::json;
use store::replica::{Base, EventId, Fold as _};

use super::{HttpStore, read};
use crate::artifacts::Artifacts;
use crate::http::{Http, Request};

/// How much of a question is asked.
const LONGEST_PROMPT: usize = 2000;

/// What somebody typed; it may be a password.
#[derive(Deserialize)]
struct Answered {
    value: String,
}

impl<H: Http> NotebookStore for HttpStore<H> {
    fn user(&self) -> String {
        self.0.user.clone()
    }

    fn look<T>(&self, look: impl FnOnce(&Base<Notebook>) -> T) -> T {
        look(self.0.state.borrow().replica.confirmed())
    }

    fn write(&self, _session: &SessionId, event: NotebookEvent) -> EventId {
        Self::write(self, event)
    }

    fn changed(&self) -> impl Future<Output = ()> {
        // It hears of what comes from now on, also before it is waited for.
        let shared = Rc::clone(&self.0);
        let mut notified = Box::pin(async move { shared.changed.notified().await });
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        let _ = notified.as_mut().poll(&mut cx);
        notified
    }

    fn lost(&self, session: &SessionId) -> Option<Lost> {
        let state = self.0.state.borrow();
        state.lost.get(session).cloned().map(Lost)
    }

    async fn announce(&self, announcement: &Announcement) -> Result<Announced, Unanswered> {
        let known = announcement.session_id.as_ref().and_then(|session| {
            let state = self.0.state.borrow();
            state.tokens.get(session).cloned()
        });
        let body = serde_json::to_vec(announcement);
        let body = body.map_err(|error| Unanswered::Refused(error.to_string()))?;
        let answer = self
            .asked(Request {
                method: "POST",
                path: format!("{}/runtimes", self.0.path),
                runtime: known.as_deref(),
                content_type: Some("application/json"),
                body,
            })
            .await?;
        let given: Given = read(&answer)?;
        if let Some(token) = given.token {
            let mut state = self.0.state.borrow_mut();
            state.tokens.insert(given.session_id.clone(), token);
        }
        Ok(Announced {
            session_id: given.session_id,
            head: given.head,
            lease: Duration::from_secs(given.lease_s),
        })
    }

    async fn renew(&self, session: &SessionId) -> Result<Duration, Unanswered> {
        let token = self.token(session);
        let answer = self
            .asked(Request {
                method: "POST",
                path: format!("{}/runtimes/{session}/renew", self.0.path),
                runtime: token.as_deref(),
                content_type: Some("application/json"),
                body: b"{}".to_vec(),
            })
            .await?;
        let given: Given = read(&answer)?;
        Ok(Duration::from_secs(given.lease_s))
    }

    fn sleep(&self, time: Duration) -> impl Future<Output = ()> {
        tokio::time::sleep(time)
    }

    async fn upload(
        &self,
        session: &SessionId,
        media_type: &str,
        bytes: Vec<u8>,
    ) -> Result<ArtifactRef, Unanswered> {
        let token = self.token(session);
        let client = ArtifactClient::new(Artifacts { store: self, token });
        let kept = client.upload(media_type, bytes).await;
        kept.map_err(|error| Unanswered::Refused(error.to_string()))
    }

    async fn ask(
        &self,
        session: &SessionId,
        execution: &ExecutionId,
        question: Question,
    ) -> Option<String> {
        let asked = NotebookEvent::InputRequested(InputRequested {
            execution_id: execution.clone(),
            prompt: question.prompt.chars().take(LONGEST_PROMPT).collect(),
            password: question.password,
        });
        let id = Self::write(self, asked);
        loop {
            let changed = self.changed();
            let (there, run) = self.look(|seen| {
                let run = seen.state.execution(execution).cloned();
                (seen.state.has(&id), run)
            });
            let run = run.filter(|run| !run.state.is_over() && !run.cancel)?;
            if there && run.input.is_none() {
                break;
            }
            changed.await;
        }
        let token = self.token(session);
        let body = json!({"execution_id": execution}).to_string().into_bytes();
        let answer = self.asked(Request {
            method: "POST",
            path: format!("{}/runtimes/{session}/input", self.0.path),
            runtime: token.as_deref(),
            content_type: Some("application/json"),
            body,
        });
        let answer: Answered = read(&answer.await.ok()?).ok()?;
        Some(answer.value)
    }
}
