//! A turn: attempts, until one answers or there is no use in trying again.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::StreamExt;
use sse_stream::Sse;
use tokio_util::sync::CancellationToken;

use super::attempt::{Answer, Asking};
use super::{Call, Endpoint, Reader};
use crate::provider::{Delta, Deltas, ProviderError, TurnRequest};

/// How often, and after how long, something is tried again that may pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retries {
    /// How often it is tried again; 0 means never.
    pub times: u32,
    /// The wait before the second attempt; it doubles with each.
    pub first: Duration,
    /// The longest wait. A provider that asks for more is not waited for.
    pub longest: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Self {
            times: 3,
            first: Duration::from_millis(500),
            longest: Duration::from_secs(30),
        }
    }
}

impl Retries {
    /// How long to wait before attempt `next`, counted from 1; nothing if there is none.
    fn wait(&self, next: u32, error: &ProviderError) -> Option<Duration> {
        if next > self.times || !error.may_pass() {
            return None;
        }
        match error.retry_after() {
            Some(after) => (after <= self.longest).then_some(after),
            None => {
                let wait = self
                    .first
                    .saturating_mul(1 << (next - 1).min(16))
                    .min(self.longest);
                // Whoever was turned away together should not come back together.
                Some(wait.mul_f64(0.75 + 0.25 * chance()))
            }
        }
    }
}

/// Between 0 and 1.
fn chance() -> f64 {
    let mut byte = [0];
    match getrandom::fill(&mut byte) {
        Ok(()) => f64::from(byte[0]) / 255.0,
        Err(_) => 1.0,
    }
}

/// What is under way between two deltas.
enum State<R> {
    /// The attempt of this number comes after this wait.
    Ask(u32, Duration),
    Read(u32, Answer, R),
    Over,
}

struct Attempts<R> {
    asking: Asking,
    cancel: CancellationToken,
    state: State<R>,
    /// Read, and not passed on yet.
    ready: VecDeque<Delta>,
    passed_on: bool,
}

/// The deltas of one turn.
pub(super) fn turn<R: Reader>(
    endpoint: Endpoint,
    call: Call,
    request: TurnRequest,
    cancel: CancellationToken,
) -> Deltas {
    let attempts = Attempts::<R> {
        asking: Asking::new(endpoint, call, request),
        cancel,
        state: State::Ask(0, Duration::ZERO),
        ready: VecDeque::new(),
        passed_on: false,
    };
    futures_util::stream::unfold(attempts, |mut attempts| async move {
        let delta = attempts.next().await?;
        Some((delta, attempts))
    })
    .boxed()
}

impl<R: Reader> Attempts<R> {
    async fn next(&mut self) -> Option<Result<Delta, ProviderError>> {
        loop {
            if self.cancel.is_cancelled() && !matches!(self.state, State::Over) {
                return Some(Err(self.fail(ProviderError::Cancelled)));
            }
            if let Some(delta) = self.ready.pop_front() {
                self.passed_on |= !matches!(delta, Delta::Used(_));
                return Some(Ok(delta));
            }
            if matches!(self.state, State::Over) {
                return None;
            }
            let cancel = self.cancel.clone();
            let step = tokio::select! {
                biased;
                () = cancel.cancelled() => Err(ProviderError::Cancelled),
                step = self.step() => step,
            };
            if let Err(error) = step {
                let attempt = match &self.state {
                    State::Ask(attempt, _) | State::Read(attempt, ..) => *attempt,
                    State::Over => return Some(Err(self.fail(error))),
                };
                match self.asking.endpoint.retries().wait(attempt + 1, &error) {
                    Some(wait) if !self.passed_on => self.state = State::Ask(attempt + 1, wait),
                    _ => return Some(Err(self.fail(error))),
                }
                self.ready.clear();
            }
        }
    }

    /// Ends it, and with it the connection.
    fn fail(&mut self, error: ProviderError) -> ProviderError {
        self.state = State::Over;
        self.ready.clear();
        error
    }

    async fn step(&mut self) -> Result<(), ProviderError> {
        match &mut self.state {
            State::Over => Ok(()),
            State::Ask(attempt, wait) => {
                let attempt = *attempt;
                tokio::time::sleep(*wait).await;
                let answer = self.asking.ask().await?;
                let reader = R::new(self.asking.endpoint.name(), &self.asking.request);
                self.state = State::Read(attempt, answer, reader);
                Ok(())
            }
            State::Read(_, answer, reader) => {
                let event = answer.next().await.transpose()?;
                let mut out = Vec::new();
                let fault = |fault: super::Fault| fault.into_error(&self.asking.endpoint);
                let over = match event {
                    Some(Sse { event, data, .. }) => {
                        if let Some(data) = data {
                            let name = event.as_deref().unwrap_or_default();
                            reader.event(name, &data, &mut out).map_err(fault)?;
                        }
                        reader.is_complete()
                    }
                    None => true,
                };
                self.ready.extend(out);
                if over { self.end() } else { Ok(()) }
            }
        }
    }

    fn end(&mut self) -> Result<(), ProviderError> {
        let State::Read(attempt, answer, reader) = std::mem::replace(&mut self.state, State::Over)
        else {
            return Ok(());
        };
        let mut out = Vec::new();
        if let Err(fault) = reader.end(&mut out) {
            // It counts as an attempt like any other.
            self.state = State::Ask(attempt, Duration::ZERO);
            return Err(fault.into_error(&self.asking.endpoint));
        }
        self.ready.extend(out);
        // A connection that was read to its end can be used again.
        tokio::spawn(tokio::time::timeout(
            Duration::from_millis(500),
            answer.for_each(|_| std::future::ready(())),
        ));
        Ok(())
    }
}
