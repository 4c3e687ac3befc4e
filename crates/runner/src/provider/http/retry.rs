//! A turn: attempts, until one answers or there is no use in trying again.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use sse_stream::Sse;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

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
    /// The attempt of this number.
    Ask(u32, Attempt),
    Read(u32, Answer, R),
    Over,
}

/// An attempt, until it is answered.
type Attempt = Pin<Box<dyn Future<Output = Result<Answer, ProviderError>> + Send>>;

/// The deltas of one turn, as a stream that is written out: it is asked for each word anew, and what
/// is awaited in its place would be made anew each time.
struct Attempts<R> {
    asking: Arc<Asking>,
    cancel: CancellationToken,
    cancelled: Pin<Box<WaitForCancellationFutureOwned>>,
    state: State<R>,
    /// What an event meant, and what of that is not passed on yet.
    out: Vec<Delta>,
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
    let asking = Arc::new(Asking::new(endpoint, call, request));
    let attempts = Attempts::<R> {
        state: State::Ask(0, attempt(&asking, Duration::ZERO)),
        asking,
        cancelled: Box::pin(cancel.clone().cancelled_owned()),
        cancel,
        out: Vec::new(),
        ready: VecDeque::new(),
        passed_on: false,
    };
    attempts.boxed()
}

/// One attempt, after a wait.
fn attempt(asking: &Arc<Asking>, wait: Duration) -> Attempt {
    let asking = Arc::clone(asking);
    Box::pin(async move {
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        asking.ask().await
    })
}

impl<R: Reader> Stream for Attempts<R> {
    type Item = Result<Delta, ProviderError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if this.cancel.is_cancelled() && !matches!(this.state, State::Over) {
                return Poll::Ready(Some(Err(this.fail(ProviderError::Cancelled))));
            }
            if let Some(delta) = this.ready.pop_front() {
                this.passed_on |= !matches!(delta, Delta::Used(_));
                return Poll::Ready(Some(Ok(delta)));
            }
            let step = match this.poll_step(cx) {
                Poll::Ready(Some(step)) => step,
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => {
                    ready!(this.cancelled.as_mut().poll(cx));
                    Err(ProviderError::Cancelled)
                }
            };
            if let Err(error) = step {
                let attempted = match &this.state {
                    State::Ask(attempt, _) | State::Read(attempt, ..) => *attempt,
                    State::Over => return Poll::Ready(Some(Err(this.fail(error)))),
                };
                let retries = this.asking.endpoint.retries();
                match retries.wait(attempted + 1, &error) {
                    Some(wait) if !this.passed_on => {
                        this.state = State::Ask(attempted + 1, attempt(&this.asking, wait));
                    }
                    _ => return Poll::Ready(Some(Err(this.fail(error)))),
                }
                this.ready.clear();
            }
        }
    }
}

impl<R: Reader> Attempts<R> {
    /// Ends it, and with it the connection.
    fn fail(&mut self, error: ProviderError) -> ProviderError {
        self.state = State::Over;
        self.ready.clear();
        error
    }

    /// An answer that begins, or an event of it; none where it is over.
    fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<(), ProviderError>>> {
        let step = match &mut self.state {
            State::Over => return Poll::Ready(None),
            State::Ask(attempt, answer) => {
                let attempt = *attempt;
                ready!(answer.as_mut().poll(cx)).map(|answer| {
                    let reader = R::new(self.asking.endpoint.name(), &self.asking.request);
                    self.state = State::Read(attempt, answer, reader);
                })
            }
            State::Read(_, answer, reader) => {
                let event = ready!(answer.as_mut().poll_next(cx));
                let over = read(&self.asking.endpoint, event, reader, &mut self.out);
                self.ready.extend(self.out.drain(..));
                match over {
                    Ok(true) => self.end(),
                    Ok(false) => Ok(()),
                    Err(error) => Err(error),
                }
            }
        };
        Poll::Ready(Some(step))
    }

    fn end(&mut self) -> Result<(), ProviderError> {
        let State::Read(attempted, answer, reader) =
            std::mem::replace(&mut self.state, State::Over)
        else {
            return Ok(());
        };
        if let Err(fault) = reader.end(&mut self.out) {
            // It counts as an attempt like any other.
            self.out.clear();
            self.state = State::Ask(attempted, attempt(&self.asking, Duration::ZERO));
            return Err(fault.into_error(&self.asking.endpoint));
        }
        self.ready.extend(self.out.drain(..));
        // A connection that was read to its end can be used again.
        tokio::spawn(tokio::time::timeout(
            Duration::from_millis(500),
            answer.for_each(|_| std::future::ready(())),
        ));
        Ok(())
    }
}

/// Reads an event, or the end of the connection; whether the answer is over with that.
fn read<R: Reader>(
    endpoint: &Endpoint,
    event: Option<Result<Sse, ProviderError>>,
    reader: &mut R,
    out: &mut Vec<Delta>,
) -> Result<bool, ProviderError> {
    let Some(Sse { event, data, .. }) = event.transpose()? else {
        return Ok(true);
    };
    if let Some(data) = data {
        let name = event.as_deref().unwrap_or_default();
        let read = reader.event(name, &data, out);
        read.map_err(|fault| fault.into_error(endpoint))?;
    }
    Ok(reader.is_complete())
}
