//! Messages between a kernel and whoever shows its widgets, carried both ways for as long as there is
//! a session. What a kernel says waits here within limits; what does not fit is counted, and told.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jupyter_protocol::messaging::{
    CommClose, CommId, CommMsg, CommOpen, JupyterMessage, JupyterMessageContent as Content,
};
use notebook::{BadComm, Comm, CommKind, MAX_COMM, SessionId};
use runtime_core::{AgentHandle, NotebookStore as _, Unanswered};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

use crate::http::{Http, Request};
use crate::kernels::Kernels;
use crate::store::{HttpStore, read};

/// How many messages of a kernel's wait, and how many bytes of them.
const MAX_WAITING: usize = 4_096;
const MAX_BYTES: usize = 4 << 20;
/// How many go at once.
const MAX_SENT: usize = 512;
/// How long to wait before Ward is asked again.
const AGAIN: Duration = Duration::from_secs(1);

/// What a kernel said over its comms and nobody was told yet. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spoken(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    more: Notify,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<(usize, Comm)>,
    bytes: usize,
    dropped: u64,
}

impl Spoken {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held.
        let state = self.0.state.lock();
        state.unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a message in; one that does not fit is only counted.
    pub(crate) fn say(&self, comm: Comm) {
        let checked = comm.check();
        let mut state = self.state();
        match checked {
            Ok(size) if state.waiting.len() < MAX_WAITING && state.bytes + size <= MAX_BYTES => {
                state.bytes += size;
                state.waiting.push_back((size, comm));
            }
            Ok(_) | Err(_) => state.dropped += 1,
        }
        drop(state);
        self.0.more.notify_one();
    }

    /// Messages that nobody was told of are lost.
    fn lost(&self, count: u64) {
        self.state().dropped += count;
        self.0.more.notify_one();
    }

    /// The next messages, and how many were dropped; waits for them.
    async fn next(&self) -> (Vec<Comm>, u64) {
        loop {
            {
                let mut state = self.state();
                let mut next = Vec::new();
                let mut bytes = 0;
                while next.len() < MAX_SENT
                    && let Some((size, _)) = state.waiting.front()
                    && bytes + size <= MAX_COMM
                    && let Some((size, comm)) = state.waiting.pop_front()
                {
                    bytes += size;
                    next.push(comm);
                }
                state.bytes -= bytes;
                let dropped = std::mem::take(&mut state.dropped);
                if !next.is_empty() || dropped > 0 {
                    return (next, dropped);
                }
            }
            self.0.more.notified().await;
        }
    }
}

#[derive(Deserialize)]
struct Taken {
    messages: Vec<Numbered>,
}

#[derive(Deserialize)]
struct Numbered {
    number: u64,
    message: Comm,
}

/// Carries what is said over a kernel's comms, both ways, for as long as it is driven.
pub async fn carry_comms<H: Http>(
    store: &HttpStore<H>,
    handle: &AgentHandle,
    kernels: &Kernels,
) -> Infallible {
    let session = loop {
        let changed = store.changed();
        match handle.session() {
            Some(session) => break session,
            None => changed.await,
        }
    };
    let (told, _) = tokio::join!(
        tell(store, &session, kernels),
        hear(store, &session, kernels)
    );
    told
}

/// Tells Ward what the kernel says.
async fn tell<H: Http>(store: &HttpStore<H>, session: &SessionId, kernels: &Kernels) -> Infallible {
    let spoken = kernels.spoken();
    loop {
        let (messages, dropped) = spoken.next().await;
        let body = json!({"messages": messages, "dropped": dropped}).to_string();
        let answer = store.session_asks(session, "POST", "/comms", body.into_bytes());
        if let Err(why) = answer.await {
            tracing::debug!(%why, "what a kernel said over its comms is lost");
            spoken.lost(dropped + messages.len() as u64);
            store.sleep(AGAIN).await;
        }
    }
}

/// Tells the kernel what people, and agents that may, say to its comms.
async fn hear<H: Http>(store: &HttpStore<H>, session: &SessionId, kernels: &Kernels) -> Infallible {
    let mut after = 0;
    loop {
        let path = format!("/comms?after={after}");
        let answer = store.session_asks(session, "GET", &path, Vec::new()).await;
        let taken = answer.and_then(|answer| read::<Taken>(&answer));
        match taken {
            Ok(taken) => {
                for Numbered { number, message } in taken.messages {
                    kernels.tell(&message).await;
                    after = number;
                }
            }
            Err(why) => {
                tracing::debug!(%why, "nobody knows what was said to the kernel's comms");
                store.sleep(AGAIN).await;
            }
        }
    }
}

impl<H: Http> HttpStore<H> {
    /// Asks Ward for something of a session's.
    async fn session_asks(
        &self,
        session: &SessionId,
        method: &'static str,
        path: &str,
        body: Vec<u8>,
    ) -> Result<crate::http::Answer, Unanswered> {
        let token = self.token(session);
        self.asked(Request {
            method,
            path: format!("{}/runtimes/{session}{path}", self.path()),
            runtime: token.as_deref(),
            content_type: (!body.is_empty()).then_some("application/json"),
            body,
        })
        .await
    }
}

/// A kernel's message, where it is one of a comm.
pub(crate) fn from_kernel(message: &JupyterMessage) -> Option<Comm> {
    let comm = |kind, id: &CommId, target_name, data: &Map<String, Value>| Comm {
        kind,
        comm_id: id.0.clone(),
        target_name,
        data: data.clone(),
        metadata: message.metadata.as_object().cloned().unwrap_or_default(),
        buffers: Vec::new(),
    };
    let comm = match &message.content {
        Content::CommOpen(open) => {
            let target = Some(open.target_name.clone());
            comm(CommKind::Open, &open.comm_id, target, &open.data)
        }
        Content::CommMsg(said) => comm(CommKind::Message, &said.comm_id, None, &said.data),
        Content::CommClose(close) => comm(CommKind::Close, &close.comm_id, None, &close.data),
        _ => return None,
    };
    Some(comm.with_bytes(message.buffers.iter().map(|buffer| &**buffer)))
}

/// The same, as a kernel hears it.
pub(crate) fn to_kernel(comm: &Comm) -> Result<JupyterMessage, BadComm> {
    let comm_id = CommId(comm.comm_id.clone());
    let data = comm.data.clone();
    let content: Content = match comm.kind {
        CommKind::Open => CommOpen {
            comm_id,
            target_name: comm.target_name.clone().unwrap_or_default(),
            data,
            target_module: None,
        }
        .into(),
        CommKind::Message => CommMsg { comm_id, data }.into(),
        CommKind::Close => CommClose { comm_id, data }.into(),
    };
    let mut message = JupyterMessage::new(content, None);
    message.metadata = Value::Object(comm.metadata.clone());
    message.buffers = comm.bytes()?.into_iter().map(Into::into).collect();
    Ok(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comm(length: usize) -> Comm {
        Comm {
            kind: CommKind::Message,
            comm_id: "c".into(),
            target_name: None,
            data: Map::from_iter([("x".to_owned(), Value::from("a".repeat(length)))]),
            metadata: Map::new(),
            buffers: Vec::new(),
        }
    }

    #[tokio::test]
    async fn a_kernel_that_says_too_much_keeps_what_it_said_first_and_the_rest_is_counted() {
        let spoken = Spoken::default();
        for _ in 0..10_000 {
            spoken.say(comm(1));
        }
        spoken.say(comm(MAX_COMM));
        let (mut told, mut dropped) = (0, 0);
        while told < MAX_WAITING {
            let (messages, more) = spoken.next().await;
            assert!(messages.len() <= MAX_SENT);
            (told, dropped) = (told + messages.len(), dropped + more);
        }
        assert_eq!((told as u64, dropped), (4_096, 10_001 - 4_096));
        for _ in 0..10 {
            spoken.say(comm(MAX_COMM / 2));
        }
        assert!(spoken.state().bytes <= MAX_BYTES);
        let (messages, dropped) = spoken.next().await;
        assert_eq!((messages.len(), dropped), (1, 3));
    }

    #[test]
    fn a_message_is_the_same_behind_the_kernels_own_words() {
        let mut said = comm(3).with_bytes([b"\0\x01".as_slice()]);
        said.metadata = Map::from_iter([("version".to_owned(), Value::from("2.1.0"))]);
        assert_eq!(from_kernel(&to_kernel(&said).unwrap()), Some(said.clone()));
        said.kind = CommKind::Open;
        said.target_name = Some("slider".into());
        assert_eq!(from_kernel(&to_kernel(&said).unwrap()), Some(said));
    }
}
