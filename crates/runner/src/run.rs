//! The loop: the model is asked, what it calls is done through the gate, and it is asked again,
//! until it has said what it wanted to.

use std::sync::Arc;
use std::time::{Duration, Instant};

use protocol::session::{
    Completed, Limits, MessageCompleted, Origin, SessionEvent, SessionState, StopReason,
    TurnDropped, Usage, UsageTold,
};
use protocol::{ErrorKind, Failure};
use store::Store;
use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, least};
use crate::calls::Made;
use crate::compact::Shorter;
use crate::journal::Page;
use crate::provider::{Stop, ToolCall, Turn};
use crate::runner::Inner;
use crate::session::Session;
use crate::session::history::{Entry, Said};
use crate::session::record::Progress;

/// How often a turn that came to nothing is asked for again.
const AGAIN: usize = 2;
/// How often a conversation is made shorter for one turn.
const SHORTER: usize = 3;

impl<S: Store> Inner<S> {
    /// Runs an agent until it stops, and writes how it did.
    pub(crate) async fn run(
        self: Arc<Self>,
        session: Arc<Session>,
        cancel: CancellationToken,
        made: Made,
    ) {
        loop {
            let worked = tokio::select! {
                worked = self.work(&session, &cancel, made) => worked,
                // Ward ends: the next one takes it up from what is written.
                () = self.stop.cancelled() => return,
            };
            match self.finish(&session, worked).await {
                Ok(true) => return,
                // Somebody said something meanwhile.
                Ok(false) => {}
                Err(failure) => {
                    tracing::error!(%failure, session = session.id, "the end of a session could not be written");
                    session.end_unwritten(failure.into());
                    return;
                }
            }
        }
    }

    async fn work(
        self: &Arc<Self>,
        session: &Arc<Session>,
        cancel: &CancellationToken,
        made: Made,
    ) -> Result<StopReason, Failure> {
        if !self.ready(session, cancel).await? {
            return Ok(StopReason::Cancelled);
        }
        let record = session.record().clone();
        let mut agent = self.agent(&record).await?;
        let open = self.open_calls(session).await?;
        if !open.is_empty() {
            let limits = least(&agent.limits, &record.progress.limits);
            session.bounds().clone_from(&limits);
            if let Some(stop) = self
                .do_calls(session, &agent, &limits, &open, made, cancel)
                .await?
            {
                return Ok(stop);
            }
        }
        let mut again = 0;
        let mut shorter = 0;
        loop {
            if !self.ready(session, cancel).await? {
                return Ok(StopReason::Cancelled);
            }
            let record = session.record().clone();
            if agent.is_other_than(&record) {
                agent = self.agent(&record).await?;
            }
            let limits = least(&agent.limits, &record.progress.limits);
            session.bounds().clone_from(&limits);
            let stop = reached(&limits, &record.progress).or_else(|| used_up_above(session));
            if let Some(stop) = stop {
                return Ok(stop);
            }
            // Counted from now on: others may work below the same agent at the same time.
            let asking = Asking::of(session);
            self.take_queued(session).await?;
            // Before the model has to refuse: what it read will be read again, and more.
            let fills = |most: u64| record.progress.read > most / 10 * 8;
            if agent.known.context.is_some_and(fills) {
                match self.compact(session, &agent, &limits, cancel).await? {
                    // It took something too.
                    Shorter::Yes => continue,
                    Shorter::No => {}
                    Shorter::Stop(stop) => return Ok(stop),
                }
            }
            let (messages, calls) = {
                let mut pen = session.pen.lock().await;
                let history = self.history(session, &mut pen).await?;
                (history.told(), history.calls())
            };
            let mut used = Usage::default();
            let asked = self.turn(session, &agent, messages, calls, &mut used, cancel);
            let (mut turn, mut rest) = match self.in_time(session, &limits, asked).await {
                InTime::Late => {
                    self.drop_turn(session, &agent, Vec::new(), used, "its time is up")
                        .await?;
                    return Ok(StopReason::TimeLimit);
                }
                InTime::Done(Ok(asked)) => asked,
                InTime::Done(Err(failure)) => match failure.kind {
                    _ if cancel.is_cancelled() => {
                        self.drop_turn(session, &agent, Vec::new(), used, "it was cancelled")
                            .await?;
                        return Ok(StopReason::Cancelled);
                    }
                    ErrorKind::ContextFull if shorter < SHORTER => {
                        shorter += 1;
                        self.drop_turn(
                            session,
                            &agent,
                            Vec::new(),
                            used,
                            "the conversation is too long",
                        )
                        .await?;
                        match self.compact(session, &agent, &limits, cancel).await? {
                            Shorter::Yes => continue,
                            Shorter::No => return Err(failure),
                            Shorter::Stop(stop) => return Ok(stop),
                        }
                    }
                    _ => {
                        self.drop_turn(session, &agent, Vec::new(), used, "it failed")
                            .await?;
                        return Err(failure);
                    }
                },
            };
            if turn.stop == Stop::MalformedCall && again < AGAIN {
                again += 1;
                let reason = "the model's call cannot be read; it is asked again";
                self.drop_turn(session, &agent, rest, turn.usage, reason)
                    .await?;
                continue;
            }
            if turn.stop == Stop::ContextFull && shorter < SHORTER {
                shorter += 1;
                let told = std::mem::take(&mut rest);
                let reason = "the conversation is too long";
                self.drop_turn(session, &agent, told, turn.usage, reason)
                    .await?;
                // It was counted with what was dropped.
                turn.usage = Usage::default();
                let stop =
                    reached(&limits, &session.record().progress).or_else(|| used_up_above(session));
                if let Some(stop) = stop {
                    return Ok(stop);
                }
                match self.compact(session, &agent, &limits, cancel).await? {
                    Shorter::Yes => continue,
                    Shorter::No => {}
                    Shorter::Stop(stop) => return Ok(stop),
                }
            }
            let stop = turn.stop.clone();
            self.keep_turn(session, &agent, turn, rest).await?;
            drop(asking);
            let open = self.open_calls(session).await?;
            if !open.is_empty() {
                if !matches!(stop, Stop::ToolUse | Stop::EndTurn | Stop::Other(_)) {
                    self.not_done(session, &open).await?;
                } else if let Some(stop) = self
                    .do_calls(session, &agent, &limits, &open, Made::Now, cancel)
                    .await?
                {
                    return Ok(stop);
                }
            }
            (again, shorter) = (0, 0);
            match stop {
                // It waits for what comes of no call.
                Stop::ToolUse if open.is_empty() => return Ok(StopReason::Done),
                Stop::ToolUse | Stop::Paused => {}
                Stop::EndTurn | Stop::Other(_) if !open.is_empty() => {}
                Stop::EndTurn | Stop::Other(_) => return Ok(StopReason::Done),
                Stop::MaxTokens | Stop::ContextFull => return Ok(StopReason::Length),
                Stop::Refusal => return Ok(StopReason::Refusal),
                Stop::ContentFilter => return Ok(StopReason::ContentFilter),
                Stop::MalformedCall => {
                    return Err(Failure::new(
                        ErrorKind::BadStream,
                        "The model called a tool in a way that nobody can read, again and again. Say it in other words, or choose another model.",
                    ));
                }
            }
        }
    }

    async fn open_calls(&self, session: &Session) -> Result<Vec<(u64, ToolCall)>, Failure> {
        let mut pen = session.pen.lock().await;
        Ok(self.history(session, &mut pen).await?.open_calls())
    }

    /// Makes calls. Says why the agent stops, where it does.
    async fn do_calls(
        self: &Arc<Self>,
        session: &Arc<Session>,
        agent: &Agent,
        limits: &Limits,
        open: &[(u64, ToolCall)],
        made: Made,
        cancel: &CancellationToken,
    ) -> Result<Option<StopReason>, Failure> {
        let until = cancel.child_token();
        let calls = self.calls(session, agent, open, made, &until);
        tokio::pin!(calls);
        let stop = match self.in_time(session, limits, &mut calls).await {
            InTime::Done(done) => {
                done?;
                cancel.is_cancelled().then_some(StopReason::Cancelled)
            }
            InTime::Late => {
                // What runs is ended, and that is what came of it.
                until.cancel();
                calls.await?;
                Some(StopReason::TimeLimit)
            }
        };
        Ok(stop)
    }

    /// Waits for something no longer than there is time to work. Waiting for a person is not work.
    pub(crate) async fn in_time<T>(
        &self,
        session: &Session,
        limits: &Limits,
        work: impl Future<Output = T>,
    ) -> InTime<T> {
        tokio::pin!(work);
        let mut status = session.follow();
        let worked = |session: &Session| Duration::from_millis(session.record().progress.worked_ms);
        loop {
            let working = status.borrow_and_update().state != SessionState::Waiting;
            let began = Instant::now();
            let left = limits
                .seconds
                .map(|seconds| Duration::from_secs(seconds).saturating_sub(worked(session)));
            let done = tokio::select! {
                biased;
                done = &mut work => Some(InTime::Done(done)),
                () = after(left), if working => Some(InTime::Late),
                _ = status.changed() => None,
            };
            if working {
                let took = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
                session.record().progress.worked_ms += took;
            }
            if let Some(done) = done {
                return done;
            }
        }
    }

    /// Messages that came meanwhile take their place.
    async fn take_queued(&self, session: &Session) -> Result<(), Failure> {
        let mut pen = session.pen.lock().await;
        let history = self.history(session, &mut pen).await?;
        let count = history.queued();
        if count == 0 {
            return Ok(());
        }
        let page = Page::default().entry(Entry::Taken { count });
        self.write(session, history, page, |_| ()).await.map(drop)
    }

    /// A turn is whole: it is kept, counted and told, after the rest of what it said.
    async fn keep_turn(
        &self,
        session: &Session,
        agent: &Agent,
        turn: Turn,
        rest: Vec<SessionEvent>,
    ) -> Result<(), Failure> {
        let Turn {
            mut message, usage, ..
        } = turn;
        message.origin = match session.above {
            Some(_) => Origin::SubAgent(agent.role.clone()),
            None => Origin::Role(agent.role.clone()),
        };
        let cost = agent.known.cost(&usage);
        let mut pen = session.pen.lock().await;
        let history = self.history(session, &mut pen).await?;
        let mut spent = session.record().progress.clone();
        spent.spend(usage, cost);
        let number = spent.turns + 1;
        let id = format!("{}-t{number}", session.id);
        let page = Page {
            events: rest,
            entries: Vec::new(),
        };
        let page = page
            .and(SessionEvent::MessageCompleted(MessageCompleted {
                message_id: id.clone(),
                origin: message.origin.clone(),
                text: message.text(),
                calls: message
                    .tool_calls()
                    .map(|call| call.call_id.clone())
                    .collect(),
            }))
            .and(SessionEvent::Usage(UsageTold {
                turn: usage,
                total: spent.usage,
                cost: spent.dollars(),
                worked_ms: spent.worked_ms,
            }))
            .entry(Entry::Message(Said {
                id,
                message: Arc::new(message),
            }));
        self.write(session, history, page, |progress| {
            progress.turns = number;
            progress.read = usage.total();
            progress.spend(usage, cost);
        })
        .await?;
        drop(pen);
        self.spend_above(session, 1, usage, cost).await
    }

    /// What a sub-agent takes is taken from what those above it may use, as it takes it: others may
    /// work for them at the same time.
    pub(crate) async fn spend_above(
        &self,
        session: &Session,
        turns: u64,
        usage: Usage,
        cost: Option<u64>,
    ) -> Result<(), Failure> {
        let mut above = session.above.as_ref();
        while let Some((parent, _)) = above {
            let mut pen = parent.pen.lock().await;
            let history = self.history(parent, &mut pen).await?;
            let page = Page::default();
            self.write(parent, history, page, |progress| {
                progress.turns_below += turns;
                progress.spend(usage, cost);
            })
            .await?;
            above = parent.above.as_ref();
        }
        Ok(())
    }

    /// Calls of a turn that ended in its middle: they are not made.
    async fn not_done(&self, session: &Session, open: &[(u64, ToolCall)]) -> Result<(), Failure> {
        for (_, call) in open {
            let failure = Failure::new(
                ErrorKind::Cancelled,
                "Your turn ended before its end, so this was not done.",
            );
            self.came(session, call, Err(failure), Instant::now())
                .await?;
        }
        Ok(())
    }

    /// What was told of a turn is void. What it is known to have taken is counted all the same.
    async fn drop_turn(
        &self,
        session: &Session,
        agent: &Agent,
        told: Vec<SessionEvent>,
        usage: Usage,
        reason: &str,
    ) -> Result<(), Failure> {
        if usage == Usage::default() {
            let told: Vec<_> = told.into_iter().chain([dropped(reason)]).collect();
            return self.tell(session, &told).await.map(drop);
        }
        let cost = agent.known.cost(&usage);
        let mut pen = session.pen.lock().await;
        let history = self.history(session, &mut pen).await?;
        let mut spent = session.record().progress.clone();
        spent.spend(usage, cost);
        let page = Page {
            events: told,
            entries: Vec::new(),
        };
        let page = page
            .and(dropped(reason))
            .and(SessionEvent::Usage(UsageTold {
                turn: usage,
                total: spent.usage,
                cost: spent.dollars(),
                worked_ms: spent.worked_ms,
            }));
        self.write(session, history, page, |progress| {
            progress.spend(usage, cost);
        })
        .await?;
        drop(pen);
        self.spend_above(session, 0, usage, cost).await
    }

    /// Writes how a session stopped, and whether it has. It goes on where somebody said something
    /// meanwhile: what was done before needs no word then, what stopped in any other way is told.
    async fn finish(
        &self,
        session: &Session,
        worked: Result<StopReason, Failure>,
    ) -> Result<bool, Failure> {
        let mut pen = session.pen.lock().await;
        let history = self.history(session, &mut pen).await?;
        let waiting = history.queued() as u64;
        let goes_on = waiting > 0 && worked.as_ref().is_ok_and(|stop| goes_on(*stop, session));
        if goes_on && matches!(worked, Ok(StopReason::Done)) {
            return Ok(false);
        }
        let (event, state) = match worked {
            Ok(stop) => {
                let progress = session.record().progress.clone();
                let completed = Completed {
                    stop,
                    output: history.last_words(),
                    usage: progress.usage,
                    cost: progress.dollars(),
                    waiting,
                };
                (SessionEvent::Completed(completed), SessionState::Idle)
            }
            Err(failure) => {
                let failure = failure.with("session_id", session.id.as_str());
                (SessionEvent::Failed(failure.into()), SessionState::Failed)
            }
        };
        self.write(session, history, Page::event(event), |progress| {
            if !goes_on {
                progress.state = state;
            }
        })
        .await?;
        if goes_on {
            return Ok(false);
        }
        session.end(state);
        // The store has it, should it be needed again.
        *pen = None;
        Ok(true)
    }
}

fn dropped(reason: &str) -> SessionEvent {
    SessionEvent::TurnDropped(TurnDropped {
        reason: reason.to_owned(),
    })
}

/// Something that was waited for.
pub(crate) enum InTime<T> {
    Done(T),
    Late,
}

async fn after(left: Option<Duration>) {
    match left {
        Some(left) => tokio::time::sleep(left).await,
        None => std::future::pending().await,
    }
}

/// Whether what waits begins the next run after this stop. A person who cancelled said stop, also to
/// what they had said before; and limits are those of the whole session, so that where one is
/// reached only a message that came with others goes on. What waits then is told with the next one.
fn goes_on(stop: StopReason, session: &Session) -> bool {
    match stop {
        StopReason::Done | StopReason::Length | StopReason::Refusal | StopReason::ContentFilter => {
            true
        }
        StopReason::Cancelled => false,
        StopReason::TurnLimit
        | StopReason::TokenLimit
        | StopReason::CostLimit
        | StopReason::TimeLimit => {
            let limits = session.bounds().clone();
            reached(&limits, &session.record().progress).is_none()
        }
    }
}

/// Which limit is reached, if one is.
fn reached(limits: &Limits, progress: &Progress) -> Option<StopReason> {
    let is = |limit: Option<u64>, used: u64| limit.is_some_and(|most| used >= most);
    let worked = limits.seconds.map(|seconds| seconds.saturating_mul(1000));
    if is(limits.turns, progress.turns) || progress.has_had_turns(0) {
        Some(StopReason::TurnLimit)
    } else if let Some(stop) = used_up(limits, progress) {
        Some(stop)
    } else if is(worked, progress.worked_ms) {
        Some(StopReason::TimeLimit)
    } else {
        None
    }
}

/// Whether an agent and those below it have used what they have together.
pub(crate) fn used_up(limits: &Limits, progress: &Progress) -> Option<StopReason> {
    let dollars = progress.dollars().unwrap_or(0.0);
    if limits
        .tokens
        .is_some_and(|most| progress.usage.total() >= most)
    {
        Some(StopReason::TokenLimit)
    } else if limits.cost.is_some_and(|most| dollars >= most) {
        Some(StopReason::CostLimit)
    } else {
        None
    }
}

/// A turn that the model is asked for now, and that is not counted yet.
struct Asking<'a>(&'a Session);

impl<'a> Asking<'a> {
    fn of(session: &'a Session) -> Self {
        each_above(session, Session::asks_below);
        Self(session)
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        each_above(self.0, Session::asked_it_below);
    }
}

fn each_above(session: &Session, each: fn(&Session)) {
    let mut above = session.above.as_ref();
    while let Some((parent, _)) = above {
        each(parent);
        above = parent.above.as_ref();
    }
}

/// The same of those above.
fn used_up_above(session: &Session) -> Option<StopReason> {
    let mut above = session.above.as_ref();
    while let Some((parent, _)) = above {
        let limits = parent.bounds().clone();
        let progress = parent.record().progress.clone();
        if progress.has_had_turns(parent.asked_below()) {
            return Some(StopReason::TurnLimit);
        }
        if let Some(stop) = used_up(&limits, &progress) {
            return Some(stop);
        }
        above = parent.above.as_ref();
    }
    None
}
