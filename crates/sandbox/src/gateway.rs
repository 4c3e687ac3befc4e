//! A room's way to the network: a socket that listens inside, and the proxy outside that takes what
//! arrives there. The proxy starts with the first connection; most commands make none.

use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, PoisonError};

use protocol::sandbox::Stopped;

use crate::proxy::{HostList, Judge, Proxy, ProxyHandle};
use crate::wall::Net;

/// The socket inside and, once needed, the proxy outside.
#[derive(Debug)]
pub(crate) struct Gateway {
    /// None where the network is the machine's own.
    listener: Option<TcpListener>,
    judge: Arc<dyn Judge>,
    proxy: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Waiting,
    Running(ProxyHandle),
    /// There is none, or it could not be started; connections are left without an answer, which is as good as no.
    Broken,
}

impl Gateway {
    pub(crate) fn new(listener: TcpListener, net: &Net) -> Self {
        let judge: Arc<dyn Judge> = match net {
            Net::None | Net::Listening => Arc::new(HostList::default()),
            Net::Hosts(hosts) => Arc::new(hosts.clone()),
            Net::Judged(judge) => Arc::clone(judge),
        };
        Self {
            listener: Some(listener),
            judge,
            proxy: Mutex::new(State::Waiting),
        }
    }

    /// No way at all: who is trusted needs none.
    pub(crate) fn none() -> Self {
        Self {
            listener: None,
            judge: Arc::new(HostList::default()),
            proxy: Mutex::new(State::Broken),
        }
    }

    /// The socket to wait on, as long as no proxy does so itself.
    pub(crate) fn waiting(&self) -> Option<BorrowedFd<'_>> {
        let listener = self.listener.as_ref()?;
        matches!(*self.state(), State::Waiting).then(|| listener.as_fd())
    }

    /// Starts the proxy, where it does not run yet.
    pub(crate) fn start(&self) {
        let mut state = self.state();
        let (State::Waiting, Some(listener)) = (&*state, &self.listener) else {
            return;
        };
        let started = listener
            .try_clone()
            .and_then(|listener| Proxy::start(listener, Arc::clone(&self.judge)));
        *state = match started {
            Ok(handle) => State::Running(handle),
            Err(error) => {
                tracing::warn!(%error, "the proxy could not be started");
                State::Broken
            }
        };
    }

    /// What it has refused since this was last asked.
    pub(crate) fn take_stopped(&self) -> Vec<Stopped> {
        match &*self.state() {
            State::Running(handle) => handle.take_stopped(),
            State::Waiting | State::Broken => Vec::new(),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.proxy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
