//! How entries are written: all that wait go into one batch of the store.
//!
//! There is no task of its own for it: the first who comes after a round was taken up leads the
//! next one, when that is through, with what all others have brought meanwhile. So those who were
//! told prepare what comes next while the others are written. Where a leader goes away, a task is
//! started in its place.

use std::pin::Pin;
use std::sync::Arc;

use store::{Append, Expected, Seq, Store, StoreError, StreamName};
use tokio::sync::oneshot;

use super::chain::Prepared;
use super::entry::NewEntry;
use super::head::Head;
use super::{Ledger, Shared, lock};
use crate::pause::pause;

/// Where what was written is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The places of the entries, in their order.
    pub seqs: Vec<Seq>,
    /// The heads of the other streams, in the order of their appends.
    pub heads: Vec<Seq>,
}

type Answer = Result<Written, StoreError>;

/// What one caller brought, and where the answer goes.
#[derive(Debug)]
pub(super) struct Job {
    entries: Vec<Prepared>,
    beside: Vec<Append>,
    /// How many appends there are beside the entries.
    appends: usize,
    told: oneshot::Sender<Answer>,
}

impl Job {
    fn touches(&self, stream: &StreamName) -> bool {
        self.beside.iter().any(|append| append.stream == *stream)
    }

    fn tell(self, answer: Answer) {
        // Whoever asked may have gone.
        let _ = self.told.send(answer);
    }
}

/// Who waits to be written.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    jobs: Vec<Job>,
    /// Whether somebody leads, who has not taken them yet.
    led: bool,
}

/// Jobs that are being written.
pub(super) type Round = Pin<Box<dyn Future<Output = ()> + Send>>;

impl<S: Store> Ledger<S> {
    /// Writes the entries at the end of the chain, together with appends to other streams: all of
    /// it, or nothing. When this returns it is written.
    ///
    /// Refuses with [`StoreError::Conflict`] where one of those streams is not where it was
    /// expected; what others write at the same time is not held up by that.
    ///
    /// Dropped before it returns, it may have been written or not.
    pub async fn write(
        &self,
        entries: Vec<NewEntry>,
        beside: Vec<Append>,
    ) -> Result<Written, StoreError> {
        let shared = &self.shared;
        let entries = entries
            .into_iter()
            .map(|entry| Prepared::new(&shared.redactor, entry))
            .collect();
        let (told, answer) = oneshot::channel();
        let job = Job {
            entries,
            appends: beside.len(),
            beside,
            told,
        };
        let is_led = {
            let mut waiting = lock(&shared.waiting);
            waiting.jobs.push(job);
            std::mem::replace(&mut waiting.led, true)
        };
        if !is_led {
            shared.lead().await;
        }
        answer.await.unwrap_or(Err(StoreError::Closed))
    }
}

/// Held by a leader. Dropped before the end, it has a task lead instead: others wait for it.
struct Lead<S: Store>(Option<Arc<Shared<S>>>);

impl<S: Store> Drop for Lead<S> {
    fn drop(&mut self) {
        let Some(shared) = self.0.take() else { return };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(async move { shared.lead().await })),
            // Everything ends; should somebody come all the same, they lead.
            Err(_) => lock(&shared.waiting).led = false,
        }
    }
}

impl<S: Store> Shared<S> {
    /// Finishes what is being written, and then writes what waits.
    async fn lead(self: &Arc<Self>) {
        let mut lead = Lead(Some(Arc::clone(self)));
        let mut turn = self.turn.lock().await;
        if let Some(left) = turn.as_mut() {
            left.await;
            *turn = None;
        }
        // Those who are about to bring something are let in first.
        pause().await;
        let jobs = {
            let mut waiting = lock(&self.waiting);
            waiting.led = false;
            std::mem::take(&mut waiting.jobs)
        };
        turn.insert(Box::pin(Arc::clone(self).round(jobs))).await;
        *turn = None;
        lead.0 = None;
    }

    async fn round(self: Arc<Self>, mut jobs: Vec<Job>) {
        // What nobody waits for any more, and nobody began to write, is let go.
        jobs.retain(|job| !job.told.is_closed());
        let mut groups = vec![jobs];
        while let Some(group) = groups.pop() {
            if !group.is_empty() {
                groups.extend(self.write_together(group).await);
            }
        }
    }

    /// Writes these jobs in one batch. Where a stream beside the ledger is not where it was
    /// expected, nothing is written yet: those who want something of it are to be written each on
    /// their own, the others together.
    async fn write_together(&self, mut jobs: Vec<Job>) -> Vec<Vec<Job>> {
        let (batch, head) = self.batch(&mut jobs);
        match self.store.append(batch).await {
            Ok(heads) => {
                self.written(jobs, head, heads);
                Vec::new()
            }
            Err(StoreError::Conflict { stream, .. }) if stream != self.stream && jobs.len() > 1 => {
                let (apart, together): (Vec<_>, Vec<_>) =
                    jobs.into_iter().partition(|job| job.touches(&stream));
                // The last group is written first.
                apart
                    .into_iter()
                    .rev()
                    .map(|job| vec![job])
                    .chain([together])
                    .collect()
            }
            Err(error) => {
                if let StoreError::Conflict { stream, .. } = &error
                    && *stream == self.stream
                {
                    tracing::error!(
                        %error,
                        "somebody else wrote to the ledger; nothing more is written to it until Ward is started again"
                    );
                }
                jobs.into_iter()
                    .for_each(|job| job.tell(Err(error.clone())));
                Vec::new()
            }
        }
    }

    /// What is to be appended, and the chain's head afterwards. The appends of the jobs follow the
    /// ledger's in order.
    fn batch(&self, jobs: &mut [Job]) -> (Vec<Append>, Head) {
        let mut head = lock(&self.state).head().clone();
        let expected = Expected::Head(head.seq);
        let mut events = Vec::with_capacity(jobs.len());
        let mut batch = Vec::with_capacity(1 + jobs.len());
        batch.push(Append {
            stream: self.stream.clone(),
            expected,
            events: Vec::new(),
        });
        let alone = jobs.len() == 1;
        for job in jobs {
            for entry in &job.entries {
                let event;
                (event, head) = entry.link(&head);
                events.push(event);
            }
            if alone {
                batch.append(&mut job.beside);
            } else {
                batch.extend(job.beside.iter().cloned());
            }
        }
        if let Some(ledger) = batch.first_mut() {
            ledger.events = events;
        }
        (batch, head)
    }

    /// Notes what is written, here and outside, and then tells.
    fn written(&self, jobs: Vec<Job>, head: Head, heads: Vec<Seq>) {
        let (mut places, quiet) = {
            let mut state = lock(&self.state);
            let mut seq = state.head().seq;
            let mut places = Vec::with_capacity(jobs.len());
            for job in &jobs {
                let mut seqs = Vec::with_capacity(job.entries.len());
                for entry in &job.entries {
                    seq = seq.next();
                    state.note(seq, entry.kind(), entry.action());
                    seqs.push(seq);
                }
                places.push(seqs);
            }
            state.advance(head.clone());
            (places.into_iter(), state.quiet())
        };
        if let Err(error) = self.file.set(&head, quiet) {
            // It stays behind the store, as if Ward had been killed here; the next one catches up.
            tracing::error!(
                %error,
                file = %self.file.path().display(),
                "the ledger's head could not be kept outside the store"
            );
        }
        // The ledger's own head comes first.
        let mut heads = heads.into_iter().skip(1);
        for job in jobs {
            let written = Written {
                seqs: places.next().unwrap_or_default(),
                heads: heads.by_ref().take(job.appends).collect(),
            };
            job.tell(Ok(written));
        }
    }
}
