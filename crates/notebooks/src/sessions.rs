//! Runtime sessions: who runs the cells, for how long they are taken to be there, and what happens
//! when they are not.

use std::sync::Arc;
use std::time::Duration;

use gate::Actor;
use notebook::{
    NotebookEvent, RuntimeSession, RuntimeStarted, RuntimeTerminated, RuntimeUpdated, Runtimes,
    SessionId, SessionState, Termination,
};
use protocol::{Digest, ErrorKind, Failure};
use store::Store;
use tokio::time::Instant;

use crate::book::{Book, lock};
use crate::check::{displaced, lost};
use crate::wire::{Announced, PostNotebookRuntime};

/// What is known of a session that is not over; none of it is stored.
#[derive(Debug)]
pub(crate) struct Lease {
    person: String,
    /// Of its token.
    token: Digest,
    until: Instant,
    /// It said that it goes away, and was not heard of since.
    leaving: bool,
}

/// Why a run failed whose runtime said that it goes away, and did not come back.
const CLOSED: &str = "The page that ran this was closed while it worked on it.";

impl<S: Store> Book<S> {
    /// A runtime announces itself: the newest has the notebook.
    pub(crate) async fn announce(
        self: &Arc<Self>,
        actor: &Actor,
        token: Option<&str>,
        asked: PostNotebookRuntime,
        lease: Duration,
    ) -> Result<Announced, Failure> {
        let person = actor.must_be_person("be a notebook's runtime")?;
        check(&asked, person)?;
        if let Some(session) = &asked.session_id {
            return self.resume(session, actor, token, lease).await;
        }
        let session_id = SessionId::new(gate::new_id()?)
            .map_err(|error| Failure::new(ErrorKind::Internal, error.to_string()))?;
        let (secret, digest) = secret()?;
        lock(&self.leases).insert(
            session_id.clone(),
            Lease {
                person: person.to_owned(),
                token: digest,
                until: Instant::now() + lease,
                leaving: false,
            },
        );
        let started = NotebookEvent::RuntimeStarted(RuntimeStarted {
            session_id: session_id.clone(),
            runtime_id: asked.runtime_id,
            runtime_type: asked.runtime_type.clone(),
            client_id: person.to_owned(),
            capabilities: asked.capabilities,
        });
        // One append: between two that come at once there is none and no second one.
        let taken = self
            .say(|notebook| {
                let mut events = Vec::new();
                let is_displaced = |one: &&RuntimeSession| {
                    one.is_active()
                        && match notebook.runtimes {
                            Runtimes::One => true,
                            Runtimes::OnePerType => one.runtime_type == asked.runtime_type,
                        }
                };
                for older in notebook.sessions().iter().filter(is_displaced) {
                    events.extend(displaced(notebook, older));
                }
                events.push(started);
                events
            })
            .await;
        let taken = match taken {
            Ok(taken) => taken,
            Err(failure) => {
                lock(&self.leases).remove(&session_id);
                return Err(failure);
            }
        };
        self.tidy();
        self.watch(session_id.clone());
        Ok(Announced {
            session_id,
            token: Some(secret),
            lease_s: lease.as_secs(),
            head: taken.appended.head,
        })
    }

    /// The same session goes on, for whoever has its token; it gets a new one.
    async fn resume(
        &self,
        session: &SessionId,
        actor: &Actor,
        token: Option<&str>,
        lease: Duration,
    ) -> Result<Announced, Failure> {
        self.speaks_for(session, actor, token, lease)?;
        let (secret, digest) = secret()?;
        let renewed = NotebookEvent::RuntimeRenewed(RuntimeUpdated {
            session_id: session.clone(),
            state: SessionState::Ready,
        });
        let taken = self.say(|_| vec![renewed]).await?;
        match lock(&self.leases).get_mut(session) {
            Some(lease) => lease.token = digest,
            None => return Err(not_there()),
        }
        Ok(Announced {
            session_id: session.clone(),
            token: Some(secret),
            lease_s: lease.as_secs(),
            head: taken.appended.head,
        })
    }

    /// The session whose token this is, which is thereby still there.
    pub(crate) fn session_of(
        &self,
        actor: &Actor,
        token: &str,
        lease: Duration,
    ) -> Result<SessionId, Failure> {
        let digest = Digest::of(token.as_bytes());
        let mut leases = lock(&self.leases);
        let found = leases.iter_mut().find(|(_, lease)| lease.token == digest);
        match found {
            Some((session, known)) if known.person == actor.person() => {
                known.until = Instant::now() + lease;
                known.leaving = false;
                Ok(session.clone())
            }
            Some(_) | None => Err(not_there()),
        }
    }

    /// Renews a lease.
    pub(crate) fn renew(
        &self,
        session: &SessionId,
        actor: &Actor,
        token: Option<&str>,
        lease: Duration,
    ) -> Result<Announced, Failure> {
        self.speaks_for(session, actor, token, lease)?;
        Ok(Announced {
            session_id: session.clone(),
            token: None,
            lease_s: lease.as_secs(),
            head: self.heads().borrow().get(),
        })
    }

    fn speaks_for(
        &self,
        session: &SessionId,
        actor: &Actor,
        token: Option<&str>,
        lease: Duration,
    ) -> Result<(), Failure> {
        let token = token.ok_or_else(not_there)?;
        match self.session_of(actor, token, lease)? == *session {
            true => Ok(()),
            false => Err(not_there()),
        }
    }

    /// Ends a session: what it left is over with it.
    pub(crate) async fn end(
        &self,
        session: &SessionId,
        reason: Termination,
        why: &str,
    ) -> Result<bool, Failure> {
        let taken = self
            .say(|notebook| {
                let active = |one: &RuntimeSession| one.is_active();
                if !notebook.session(session).is_some_and(active) {
                    return Vec::new();
                }
                let mut events = lost(notebook, session, why);
                events.push(over(session, reason));
                events
            })
            .await?;
        self.tidy();
        Ok(taken.appended.appended > 0)
    }

    /// A session may be going away: it is over after this time, unless it is heard of again. Whether
    /// there is one.
    pub(crate) fn leave(self: &Arc<Self>, session: &SessionId, after: Duration) -> bool {
        let until = Instant::now() + after;
        match lock(&self.leases).get_mut(session) {
            Some(lease) => {
                lease.until = lease.until.min(until);
                lease.leaving = true;
            }
            None => return false,
        }
        // Whoever watches it already sleeps for longer.
        let (book, session) = (Arc::downgrade(self), session.clone());
        tokio::spawn(async move {
            tokio::time::sleep_until(until).await;
            let Some(book) = book.upgrade() else { return };
            let gone = lock(&book.leases)
                .get(&session)
                .is_some_and(|lease| lease.leaving && lease.until <= Instant::now());
            if gone && let Err(failure) = book.end(&session, Termination::Shutdown, CLOSED).await {
                tracing::warn!(%failure, "that a runtime is gone could not be written");
            }
        });
        true
    }

    /// Lets go of the leases of sessions that are over. One that is only about to be announced is
    /// not.
    pub(crate) fn tidy(&self) {
        let over: Vec<SessionId> = self.look(|notebook| {
            let over = notebook.sessions().iter().filter(|one| !one.is_active());
            over.map(|one| one.session_id.clone()).collect()
        });
        lock(&self.leases).retain(|session, _| !over.contains(session));
        self.tidy_comms(&over);
    }

    /// Ends a session that is not heard of for too long.
    fn watch(self: &Arc<Self>, session: SessionId) {
        let book = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                let until = match book.upgrade() {
                    Some(book) => match lock(&book.leases).get(&session) {
                        Some(lease) => lease.until,
                        None => return,
                    },
                    None => return,
                };
                if until > Instant::now() {
                    tokio::time::sleep_until(until).await;
                    continue;
                }
                let Some(book) = book.upgrade() else { return };
                let why = "The runtime was not heard of for too long.";
                match book.end(&session, Termination::Timeout, why).await {
                    Ok(_) => return,
                    Err(failure) => {
                        tracing::warn!(%failure, "that a runtime is gone could not be written");
                        tokio::time::sleep(Duration::from_secs(1)).await;
                    }
                }
            }
        });
    }
}

fn over(session: &SessionId, reason: Termination) -> NotebookEvent {
    NotebookEvent::RuntimeTerminated(RuntimeTerminated {
        session_id: session.clone(),
        reason,
        message: None,
    })
}

/// A token, and what is kept of it.
fn secret() -> Result<(String, Digest), Failure> {
    let secret = format!("ward-rt-{}{}", gate::new_id()?, gate::new_id()?);
    let digest = Digest::of(secret.as_bytes());
    Ok((secret, digest))
}

fn check(asked: &PostNotebookRuntime, person: &str) -> Result<(), Failure> {
    let refuse = |field: &str, why: &str| {
        Err(Failure::new(ErrorKind::InvalidParams, why).with("field", field))
    };
    if asked.client_id != person {
        return Err(Failure::new(
            ErrorKind::Forbidden,
            format!("`client_id` is the person whose token this is: `{person}`."),
        )
        .with("field", "client_id"));
    }
    let kind = asked.runtime_type.as_bytes();
    let good =
        |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(byte);
    if kind.is_empty() || kind.len() > 40 || !kind.iter().all(good) {
        return refuse(
            "runtime_type",
            "`runtime_type` has 1 to 40 small letters, digits, `_` or `-`.",
        );
    }
    if asked.runtime_id.is_empty() || asked.runtime_id.len() > 100 {
        return refuse("runtime_id", "`runtime_id` has 1 to 100 bytes.");
    }
    let models = &asked.capabilities.available_ai_models;
    if models.len() > 200 || models.iter().any(|model| model.len() > 200) {
        return refuse("capabilities", "At most 200 models, of 200 bytes each.");
    }
    Ok(())
}

fn not_there() -> Failure {
    Failure::new(
        ErrorKind::Forbidden,
        "This is not the token of a runtime session of yours that is not over. Announce the runtime anew.",
    )
}
