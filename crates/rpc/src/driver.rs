//! The one loop of a connection: read, start, poll, answer, write.
//!
//! Everything runs in the task that polls it. A handler that is ready at once is answered without
//! a task, a channel or a map entry, and the answers of one round leave in few writes. That is
//! where the speed comes from.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use protocol::method::{CANCEL_REQUEST, CancelParams};
use protocol::{ErrorKind, Failure};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;
use tokio_util::sync::WaitForCancellationFutureOwned;

use crate::cancel::Cancel;
use crate::frame::{Frame, FrameReader};
use crate::glimpse::{Glimpse, glimpse};
use crate::id::Id;
use crate::message::{self, Answer, Incoming};
use crate::outbox::Outbox;
use crate::peer::{End, Limits};
use crate::remote::{Queues, Shared};
use crate::service::{Notification, Request, Service};
use crate::work::{Noticing, Panicked, Work, panicked, poll_caught};

/// Rounds before other tasks get their turn, for byte streams that are always ready.
const ROUNDS: usize = 64;

pub(crate) struct Driver<'s, S, R, W> {
    service: &'s S,
    reader: R,
    writer: W,
    limits: Limits,
    shared: Arc<Shared>,
    queues: Queues,
    closing: Pin<Box<WaitForCancellationFutureOwned>>,
    frames: FrameReader,
    /// The notification that holds back everything behind it.
    noticing: Option<Noticing<'s>>,
    working: FuturesUnordered<Work<'s>>,
    /// Those of `working`, to be found when they are cancelled.
    cancels: HashMap<Id, Arc<Cancel>>,
    out: Outbox,
    scratch: Vec<u8>,
    ending: Option<Ending>,
}

/// The connection ends: nothing is read any more, what is under way may finish until the deadline.
struct Ending {
    end: End,
    deadline: Pin<Box<Sleep>>,
}

impl<'s, S, R, W> Driver<'s, S, R, W>
where
    S: Service,
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    pub(crate) fn new(
        service: &'s S,
        reader: R,
        writer: W,
        limits: Limits,
        shared: Arc<Shared>,
        queues: Queues,
    ) -> Self {
        Self {
            service,
            reader,
            writer,
            limits,
            closing: Box::pin(shared.closing.clone().cancelled_owned()),
            shared,
            queues,
            frames: FrameReader::new(limits.frame),
            noticing: None,
            working: FuturesUnordered::new(),
            cancels: HashMap::new(),
            out: Outbox::default(),
            scratch: Vec::new(),
            ending: None,
        }
    }

    /// One round; whether anything moved.
    fn round(&mut self, cx: &mut Context<'_>) -> bool {
        let mut moved = self.finish_work(cx);
        moved |= self.finish_noticing(cx);
        moved |= self.take_frames(cx);
        moved |= self.read(cx);
        moved |= self.take_queued(cx);
        moved |= self.write(cx);
        moved
    }

    /// Answers the requests that are done.
    fn finish_work(&mut self, cx: &mut Context<'_>) -> bool {
        let mut moved = false;
        while let Poll::Ready(Some((id, answer))) = self.working.poll_next_unpin(cx) {
            self.cancels.remove(&id);
            self.answer(Some(&id), &answer);
            moved = true;
        }
        moved
    }

    fn finish_noticing(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(noticing) = &mut self.noticing else {
            return false;
        };
        match poll_caught(noticing.as_mut(), cx) {
            Poll::Pending => false,
            Poll::Ready(done) => {
                if let Err(Panicked) = done {
                    tracing::error!("a notification's handler panicked");
                }
                self.noticing = None;
                true
            }
        }
    }

    /// Whether another frame may be taken up.
    fn may_take(&self) -> bool {
        self.ending.is_none()
            && self.noticing.is_none()
            && !self.shared.closing.is_cancelled()
            && self.working.len() < self.limits.in_flight.max(1)
            && !self.out.is_full()
    }

    /// Takes up the frames that have arrived.
    fn take_frames(&mut self, cx: &mut Context<'_>) -> bool {
        let mut moved = false;
        while self.may_take() {
            self.frames
                .set_limit(self.shared.frame_limit.load(Ordering::Relaxed));
            let Some(frame) = self.frames.next() else {
                break;
            };
            moved = true;
            match frame {
                Frame::Body(body) => {
                    let incoming = message::read(body);
                    self.take(incoming, cx);
                }
                Frame::TooLarge { length, start } => {
                    let from = glimpse(start);
                    self.too_large(length, from);
                }
                Frame::Bad(bad) => {
                    let failure = Failure::new(
                        ErrorKind::ParseError,
                        format!(
                            "The frame cannot be read: {bad}. A frame is `Content-Length: N`, an empty line and N bytes of JSON."
                        ),
                    );
                    self.answer(None, &Err(failure));
                }
            }
            // What is written now the other side reads while the rest is worked on.
            if self.out.is_worth_a_write() {
                self.write(cx);
            }
        }
        moved
    }

    fn too_large(&mut self, length: u64, from: Glimpse) {
        let limit = self.shared.frame_limit.load(Ordering::Relaxed);
        let failure = Failure::new(
            ErrorKind::FrameTooLarge,
            format!("The frame has {length} bytes, and the limit is {limit}. Send less at once."),
        )
        .with("length", length)
        .with("limit", limit as u64);
        match from {
            Glimpse::Request(id) => self.answer(Some(&id), &Err(failure)),
            Glimpse::Response(id) => self.answered(Some(id), Err(failure)),
            Glimpse::Nothing => self.answer(None, &Err(failure)),
        }
    }

    fn take(&mut self, incoming: Incoming, cx: &mut Context<'_>) {
        match incoming {
            Incoming::Request { id, method, params } => self.start(id, method, params, cx),
            Incoming::Notification { method, params } if method == CANCEL_REQUEST => {
                self.cancel(params.as_deref());
            }
            Incoming::Notification { method, params } => {
                let notification = Notification { method, params };
                self.noticing = Some(Box::pin(self.service.notification(notification)));
                self.finish_noticing(cx);
            }
            Incoming::Response { id, answer } => self.answered(id, answer),
            Incoming::Invalid { id, failure } => self.answer(id.as_ref(), &Err(failure)),
        }
    }

    /// Starts a request, and answers it at once where its handler is ready at once.
    fn start(
        &mut self,
        id: Id,
        method: String,
        params: Option<Box<RawValue>>,
        cx: &mut Context<'_>,
    ) {
        if !self.cancels.is_empty() && self.cancels.contains_key(&id) {
            let failure = Failure::new(
                ErrorKind::InvalidRequest,
                format!("A request with the id {id} is still under way. Give each its own."),
            );
            self.answer(Some(&id), &Err(failure));
            return;
        }
        let cancel = Arc::new(Cancel::default());
        let request = Request {
            method,
            params,
            cancel: Arc::clone(&cancel),
        };
        let mut handling: crate::work::Handling<'s> = Box::pin(self.service.request(request));
        match poll_caught(handling.as_mut(), cx) {
            Poll::Ready(Ok(answer)) => self.answer(Some(&id), &answer),
            Poll::Ready(Err(Panicked)) => self.answer(Some(&id), &Err(panicked())),
            Poll::Pending => {
                self.cancels.insert(id.clone(), Arc::clone(&cancel));
                self.working.push(Work {
                    id,
                    cancel,
                    handling: Some(handling),
                });
            }
        }
    }

    fn cancel(&mut self, params: Option<&RawValue>) {
        let params = params.and_then(|json| serde_json::from_str::<CancelParams>(json.get()).ok());
        let id = params.and_then(|params| match params.id {
            Value::String(id) => Some(Id::String(id)),
            Value::Number(id) => Some(Id::Number(id)),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        });
        // What is already answered cannot be cancelled; that is no fault.
        if let Some(cancel) = id.and_then(|id| self.cancels.get(&id)) {
            cancel.cancel();
        }
    }

    /// Hands an answer to whoever of ours asked.
    fn answered(&mut self, id: Option<Id>, answer: Answer) {
        let number = match &id {
            Some(Id::Number(number)) => number.as_u64(),
            Some(Id::String(_)) | None => None,
        };
        let failure = answer.as_ref().err().map(ToString::to_string);
        if !number.is_some_and(|number| self.shared.answered(number, answer)) {
            let id = id.map(|id| id.to_string());
            tracing::debug!(?id, ?failure, "dropped an answer that nobody waits for");
        }
    }

    fn answer(&mut self, id: Option<&Id>, answer: &Answer) {
        // What a handler told before it answered leaves before its answer. The queue is bounded,
        // so this is not looked at twice.
        while let Ok(frame) = self.queues.frames.try_recv() {
            self.out.bytes.extend_from_slice(&frame);
        }
        message::respond(&mut self.out.bytes, &mut self.scratch, id, answer);
    }

    fn read(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.may_take() {
            return false;
        }
        let mut buffer = ReadBuf::new(self.frames.spare());
        match Pin::new(&mut self.reader).poll_read(cx, &mut buffer) {
            Poll::Pending => return false,
            Poll::Ready(Ok(())) => {
                let count = buffer.filled().len();
                self.frames.filled(count);
                if count == 0 && self.frames.is_between_frames() {
                    self.end(End::EndOfInput);
                } else if count == 0 {
                    self.end(End::Truncated);
                } else {
                    self.take_frames(cx);
                }
            }
            Poll::Ready(Err(error)) => self.end(End::Failed(error)),
        }
        true
    }

    /// Takes what our side has to say.
    fn take_queued(&mut self, cx: &mut Context<'_>) -> bool {
        let mut moved = false;
        while !self.out.has_enough() {
            match self.queues.frames.poll_recv(cx) {
                Poll::Ready(Some(frame)) => self.out.bytes.extend_from_slice(&frame),
                // Only once the queue is empty, else a cancel could overtake its request.
                Poll::Ready(None) | Poll::Pending => match self.queues.abandoned.poll_recv(cx) {
                    Poll::Ready(Some(id)) => {
                        let params = CancelParams { id: id.into() };
                        if let Ok(frame) = message::call(None, CANCEL_REQUEST, &params) {
                            self.out.bytes.extend_from_slice(&frame);
                        }
                    }
                    Poll::Ready(None) | Poll::Pending => break,
                },
            }
            moved = true;
        }
        moved
    }

    fn write(&mut self, cx: &mut Context<'_>) -> bool {
        if self.out.is_done() {
            return false;
        }
        let before = (self.out.has_enough(), self.out.is_full());
        match self.out.poll_write(&mut self.writer, cx) {
            // Room again means that something else may move.
            Poll::Pending => before != (self.out.has_enough(), self.out.is_full()),
            Poll::Ready(Ok(())) => true,
            Poll::Ready(Err(error)) => {
                self.end(End::Failed(error));
                true
            }
        }
    }

    /// Begins to end: tells everybody under way, refuses everything new.
    fn end(&mut self, end: End) {
        let broken = matches!(end, End::Failed(_));
        if self.ending.is_none() {
            self.ending = Some(Ending {
                end,
                deadline: Box::pin(tokio::time::sleep(self.limits.grace)),
            });
            self.noticing = None;
            for cancel in self.cancels.values() {
                cancel.cancel();
            }
            self.shared.disconnect();
            self.queues.frames.close();
            self.queues.abandoned.close();
        }
        if broken {
            self.out.clear();
        }
    }

    /// Whether nothing is left to be done, or the time for it is over.
    fn ended(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(ending) = &mut self.ending else {
            return false;
        };
        let idle = self.working.is_empty() && self.out.is_done();
        idle || ending.deadline.as_mut().poll(cx).is_ready()
    }
}

impl<S, R, W> Future for Driver<'_, S, R, W>
where
    S: Service,
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    type Output = End;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<End> {
        let driver = self.get_mut();
        if driver.ending.is_none() && driver.closing.as_mut().poll(cx).is_ready() {
            driver.end(End::Closed);
        }
        for _ in 0..ROUNDS {
            if driver.round(cx) {
                continue;
            }
            if driver.ended(cx)
                && let Some(ending) = driver.ending.take()
            {
                return Poll::Ready(ending.end);
            }
            return Poll::Pending;
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<S, R, W> Drop for Driver<'_, S, R, W> {
    fn drop(&mut self) {
        // Dropped in the middle, too, nobody may be left waiting.
        self.shared.disconnect();
    }
}
