//! The driver of the state machine on a store that it is given: the same on every platform.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use notebook::{Bundle, Capabilities, ExecutionId, Media, SessionId, ipynb};
use serde_json::Value;

use crate::context::{ExecutionContext, Finished};
use crate::log::{Level, Log};
use crate::machine::{Effect, Ending, Input, Job, Machine};
use crate::media::{decode, is_binary, is_json, length};
use crate::options::{AgentOptions, BadOptions};
use crate::outbox::{Outbox, Said};
use crate::store::{Announced, NotebookStore, Unanswered};

/// How long what is printed may wait for more of it.
const FLUSH: Duration = Duration::from_millis(30);
/// From how many bytes on something is kept beside the notebook instead of in it.
const LARGE: usize = 128 << 10;
/// How long to wait before a server that is away is asked again.
const AGAIN: Duration = Duration::from_millis(500);
/// How long to wait for the server to confirm that the agent has ended.
const FAREWELL: Duration = Duration::from_secs(5);
/// How long the notebook has to say why a session is over that the server does not renew.
const REASON: Duration = Duration::from_secs(5);

type Waiting<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// What runs a cell. It has to come to its end once it is told to stop.
pub type Handler = Rc<dyn Fn(ExecutionContext) -> Waiting<'static, Finished>>;

/// What lets a runtime begin anew.
type Anew = Rc<dyn Fn() -> Waiting<'static, Result<(), String>>>;

/// A notebook's agent. It is made on a store, given a handler, and started.
pub struct RuntimeAgent<S> {
    store: S,
    options: AgentOptions,
    capabilities: Capabilities,
    handler: Option<Handler>,
    anew: Option<Anew>,
    log: Log,
    handle: AgentHandle,
}

/// What ends an agent from elsewhere.
#[derive(Clone, Default)]
pub struct AgentHandle(Rc<RefCell<Wish>>);

#[derive(Default)]
struct Wish {
    shutdown: bool,
    waker: Option<Waker>,
    session: Option<SessionId>,
}

impl AgentHandle {
    /// Tells the agent to end: what runs is cut off, and its session is over.
    pub fn shutdown(&self) {
        let mut wish = self.0.borrow_mut();
        wish.shutdown = true;
        if let Some(waker) = wish.waker.take() {
            waker.wake();
        }
    }

    /// The agent's session, once it has one: what it can go on with after it was away.
    #[must_use]
    pub fn session(&self) -> Option<SessionId> {
        self.0.borrow().session.clone()
    }

    fn poll(&self, cx: &mut Context<'_>) -> bool {
        let mut wish = self.0.borrow_mut();
        wish.waker = Some(cx.waker().clone());
        wish.shutdown
    }
}

impl<S: NotebookStore> RuntimeAgent<S> {
    /// An agent on this store. Refuses a client id that is not who authenticated there, and names
    /// that cannot be.
    pub fn new(
        store: S,
        capabilities: Capabilities,
        options: AgentOptions,
    ) -> Result<Self, BadOptions> {
        options.check(&store.user())?;
        Ok(Self {
            store,
            options,
            capabilities,
            handler: None,
            anew: None,
            log: Log::nowhere(),
            handle: AgentHandle::default(),
        })
    }

    /// Says what runs a cell.
    pub fn on_execution<F>(&mut self, handler: impl Fn(ExecutionContext) -> F + 'static)
    where
        F: Future<Output = Finished> + 'static,
    {
        self.handler = Some(Rc::new(move |context| Box::pin(handler(context))));
    }

    /// Says what lets the runtime begin anew where somebody wants it; without it there is nothing
    /// that would be gone.
    pub fn on_restart<F>(&mut self, anew: impl Fn() -> F + 'static)
    where
        F: Future<Output = Result<(), String>> + 'static,
    {
        self.anew = Some(Rc::new(move || Box::pin(anew())));
    }

    /// Says where the agent's own words go.
    pub fn log_to(&mut self, log: Log) {
        self.log = log;
    }

    /// What ends it from elsewhere.
    #[must_use]
    pub fn handle(&self) -> AgentHandle {
        self.handle.clone()
    }

    /// The store that it was given.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// Announces the agent and runs what is assigned to it, until it is told to end, displaced or
    /// lost.
    pub async fn start(self) -> Result<Ending, BadOptions> {
        let handler = self.handler.clone().ok_or(BadOptions::NoHandler)?;
        let machine = Machine::new(self.options.clone(), self.capabilities.clone());
        let mut drive = Drive {
            agent: &self,
            handler,
            machine,
            changed: Box::pin(self.store.changed()),
            announcing: None,
            renewing: None,
            running: None,
            restarting: None,
            farewell: None,
            shut: false,
        };
        drive.take(Input::Start);
        loop {
            if let Some(ending) = drive.next().await {
                return Ok(ending);
            }
        }
    }
}

/// An agent that goes.
struct Drive<'a, S> {
    agent: &'a RuntimeAgent<S>,
    handler: Handler,
    machine: Machine,
    changed: Waiting<'a, ()>,
    announcing: Option<Waiting<'a, Result<Announced, Unanswered>>>,
    renewing: Option<Waiting<'a, Result<(), String>>>,
    running: Option<Running<'a>>,
    restarting: Option<Waiting<'static, Result<(), String>>>,
    farewell: Option<Waiting<'a, ()>>,
    shut: bool,
}

/// A run and its handler.
struct Running<'a> {
    id: ExecutionId,
    outbox: Outbox,
    handler: Option<Waiting<'static, Finished>>,
    finished: Option<Finished>,
    /// Ends when what was printed meanwhile may be passed on.
    pause: Option<Waiting<'a, ()>>,
    /// What is said is made ready: the large is brought elsewhere.
    saying: Option<Waiting<'a, Vec<Said>>>,
    asking: Option<Waiting<'a, Option<String>>>,
}

/// What happened.
enum Woken {
    Input(Input),
    Announced(Result<Announced, Unanswered>),
    /// The end cannot be told to the server.
    GivenUp,
}

impl<'a, S: NotebookStore> Drive<'a, S> {
    /// Waits for the next thing that happens, and does what follows from it.
    async fn next(&mut self) -> Option<Ending> {
        let woken = poll_fn(|cx| self.poll(cx)).await;
        match woken {
            Woken::Input(input) => self.take(input),
            Woken::Announced(Ok(announced)) => {
                self.agent.handle.0.borrow_mut().session = Some(announced.session_id.clone());
                self.renewing = Some(self.renew(announced.session_id.clone(), announced.lease));
                self.take(Input::Announced {
                    session_id: announced.session_id,
                    head: announced.head,
                })
            }
            Woken::Announced(Err(error)) => self.take(Input::Refused(error.to_string())),
            Woken::GivenUp => {
                let why = "The server could not be told that the agent ended.";
                self.agent.log.say(Level::Warn, why);
                self.take(Input::Lost(why.to_owned()))
                    .map(|_| Ending::Shutdown)
            }
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Woken> {
        if !self.shut && self.agent.handle.poll(cx) {
            self.shut = true;
            let farewell = self.agent.store.sleep(FAREWELL);
            self.farewell = Some(Box::pin(farewell));
            return Poll::Ready(Woken::Input(Input::Shutdown));
        }
        if let Some(Poll::Ready(answer)) = poll_some(&mut self.announcing, cx) {
            self.announcing = None;
            return Poll::Ready(Woken::Announced(answer));
        }
        if self.changed.as_mut().poll(cx).is_ready() {
            self.changed = Box::pin(self.agent.store.changed());
            let session = self.machine.session();
            let lost = session.and_then(|session| self.agent.store.lost(session));
            let input = lost.map_or(Input::Changed, |lost| Input::Lost(lost.0));
            return Poll::Ready(Woken::Input(input));
        }
        if let Some(Poll::Ready(renewed)) = poll_some(&mut self.renewing, cx) {
            self.renewing = None;
            if let Err(why) = renewed {
                return Poll::Ready(Woken::Input(Input::Lost(why)));
            }
        }
        if let Some(Poll::Ready(anew)) = poll_some(&mut self.restarting, cx) {
            self.restarting = None;
            if let Err(why) = anew {
                self.agent.log.say(Level::Warn, &why);
            }
            return Poll::Ready(Woken::Input(Input::Restarted));
        }
        if let Some(Poll::Ready(())) = poll_some(&mut self.farewell, cx) {
            self.farewell = None;
            return Poll::Ready(Woken::GivenUp);
        }
        self.poll_run(cx).map(Woken::Input)
    }

    /// What the run that is under way says, asks, and how it ends, in this order.
    fn poll_run(&mut self, cx: &mut Context<'_>) -> Poll<Input> {
        let agent = self.agent;
        let Some(session) = self.machine.session().cloned() else {
            return Poll::Pending;
        };
        let Some(run) = &mut self.running else {
            return Poll::Pending;
        };
        if let Some(Poll::Ready(finished)) = poll_some(&mut run.handler, cx) {
            run.handler = None;
            run.finished = Some(finished);
        }
        loop {
            if let Some(said) = &mut run.saying {
                let Poll::Ready(said) = said.as_mut().poll(cx) else {
                    return Poll::Pending;
                };
                run.saying = None;
                run.pause = Some(Box::pin(agent.store.sleep(FLUSH)));
                return Poll::Ready(Input::Said(run.id.clone(), said));
            }
            if let Some(Poll::Ready(())) = poll_some(&mut run.pause, cx) {
                run.pause = None;
            }
            let now = run.finished.is_some() || run.pause.is_none();
            if !run.outbox.is_due(now, cx) {
                break;
            }
            let said = run.outbox.take();
            run.saying = Some(Box::pin(ready(agent, session.clone(), said)));
        }
        if let Some(question) = run.outbox.take_question() {
            let store = &agent.store;
            let id = run.id.clone();
            run.asking = Some(Box::pin(
                async move { store.ask(&session, &id, question).await },
            ));
        }
        if let Some(Poll::Ready(answer)) = poll_some(&mut run.asking, cx) {
            run.asking = None;
            run.outbox.answer(answer);
        }
        match run.finished.take() {
            Some(finished) => {
                let id = run.id.clone();
                self.running = None;
                Poll::Ready(Input::Finished(id, finished))
            }
            None => Poll::Pending,
        }
    }

    /// Gives the machine something, and does what it says.
    fn take(&mut self, input: Input) -> Option<Ending> {
        let agent = self.agent;
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            let machine = &mut self.machine;
            let effects = agent.store.look(|seen| machine.take(input, seen));
            for effect in effects {
                match effect {
                    Effect::Announce(announcement) => {
                        agent.log.say(Level::Debug, "The agent announces itself.");
                        self.announcing = Some(Box::pin(async move {
                            loop {
                                let answer = agent.store.announce(&announcement).await;
                                let Err(Unanswered::Away(why)) = answer else {
                                    return answer;
                                };
                                agent.log.say(Level::Warn, &why);
                                agent.store.sleep(AGAIN).await;
                            }
                        }));
                    }
                    Effect::Append { number, event } => {
                        // There is no event before there is a session.
                        let Some(session) = self.machine.session() else {
                            continue;
                        };
                        let id = agent.store.write(session, event);
                        inputs.push(Input::Wrote { number, id });
                    }
                    Effect::Run(job) => self.run(job),
                    Effect::Cancel(id) => self.cancel(&id),
                    Effect::Restart => match &agent.anew {
                        Some(anew) => self.restarting = Some(anew()),
                        None => inputs.push(Input::Restarted),
                    },
                    Effect::End(ending) => {
                        agent.log.say(Level::Info, &ending.to_string());
                        return Some(ending);
                    }
                }
            }
            // Written in order, so told in order.
            inputs.sort_by_key(|input| match input {
                Input::Wrote { number, .. } => std::cmp::Reverse(*number),
                _ => std::cmp::Reverse(u64::MAX),
            });
        }
        None
    }

    fn run(&mut self, job: Job) {
        let words = format!("Cell {} runs ({}).", job.cell_id, job.execution_id);
        self.agent.log.say(Level::Debug, &words);
        let outbox = Outbox::new();
        let id = job.execution_id.clone();
        let context = ExecutionContext::new(job, outbox.clone());
        self.running = Some(Running {
            id,
            outbox,
            handler: Some((self.handler)(context)),
            finished: None,
            pause: None,
            saying: None,
            asking: None,
        });
    }

    fn cancel(&mut self, id: &ExecutionId) {
        if let Some(run) = self.running.as_ref().filter(|run| run.id == *id) {
            run.outbox.cancel();
        }
    }

    /// Keeps a lease alive; comes to its end where the server says that it cannot be.
    fn renew(&self, session: SessionId, lease: Duration) -> Waiting<'a, Result<(), String>> {
        let agent = self.agent;
        Box::pin(async move {
            let mut lease = lease;
            loop {
                agent.store.sleep(lease / 3).await;
                match agent.store.renew(&session).await {
                    Ok(renewed) => lease = renewed,
                    // The server decides whether it was away for too long.
                    Err(Unanswered::Away(why)) => agent.log.say(Level::Warn, &why),
                    Err(Unanswered::Refused(why)) => {
                        // Where the notebook says more about it meanwhile, that is how it ends.
                        agent.store.sleep(REASON).await;
                        return Err(why);
                    }
                }
            }
        })
    }
}

fn poll_some<T>(future: &mut Option<Waiting<'_, T>>, cx: &mut Context<'_>) -> Option<Poll<T>> {
    future.as_mut().map(|future| future.as_mut().poll(cx))
}

/// Makes what was said ready for the notebook: what is large is kept beside it.
async fn ready<S: NotebookStore>(
    agent: &RuntimeAgent<S>,
    session: SessionId,
    mut said: Vec<Said>,
) -> Vec<Said> {
    let mut dropped = 0;
    for one in &mut said {
        if let Said::Display { bundle, .. }
        | Said::Update { bundle, .. }
        | Said::Result { bundle, .. } = one
        {
            dropped += lighten(agent, &session, bundle).await;
        }
    }
    if dropped > 0 {
        said.push(Said::Dropped(dropped));
    }
    said
}

/// Brings what is large in a bundle elsewhere. How many bytes could not be kept.
async fn lighten<S: NotebookStore>(
    agent: &RuntimeAgent<S>,
    session: &SessionId,
    bundle: &mut Bundle,
) -> u64 {
    let large: Vec<String> = bundle
        .data
        .iter()
        .filter(|(_, media)| matches!(media, Media::Inline(value) if length(value) > LARGE))
        .map(|(media_type, _)| media_type.clone())
        .collect();
    let mut dropped = 0;
    for media_type in large {
        let Some(Media::Inline(value)) = bundle.data.remove(&media_type) else {
            continue;
        };
        let bytes = match &value {
            Value::String(text) if is_binary(&media_type) => decode(text).unwrap_or_default(),
            Value::String(text) if !is_json(&media_type) => text.clone().into_bytes(),
            value => ipynb::value_to_text(value).into_bytes(),
        };
        let size = bytes.len() as u64;
        match agent.store.upload(session, &media_type, bytes).await {
            Ok(artifact) => drop(bundle.data.insert(media_type, Media::Artifact(artifact))),
            Err(error) => {
                agent.log.say(Level::Warn, &error.to_string());
                dropped += size;
            }
        }
    }
    if bundle.data.is_empty() {
        let sentence = "It was too large to be shown here, and could not be kept.";
        *bundle = Bundle::text(sentence);
    }
    dropped
}
