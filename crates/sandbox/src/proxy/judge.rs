//! Who decides whether a connection may go where it wants to.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};

use super::hosts::HostList;
use super::target::Target;

/// An answer that may take its time.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Decides for one connection at a time; the connection is held until it has decided.
///
/// It is asked once for the target as the client wrote it, before any name is looked up. If a name
/// then leads to no address but such as are not public, it is asked again for each of these
/// addresses as targets of their own: only where the address is allowed too does the connection
/// go there. If the client hangs up meanwhile, the answer is no longer waited for and its future is
/// dropped.
pub trait Judge: fmt::Debug + Send + Sync {
    /// The verdict on `target`. Takes as long as it needs, without blocking the thread.
    fn judge<'a>(&'a self, target: &'a Target) -> Pending<'a, Verdict>;

    /// How often leave was taken back so far. Looked at before a connection is judged, so that what
    /// is taken back while it is being made is not missed.
    fn reviews(&self) -> u64 {
        0
    }

    /// Comes back when a connection that was judged after so many reviews may stay open no longer:
    /// one of these targets, which it was let through for, has no leave left. Never, where a verdict
    /// is for good.
    fn taken_back<'a>(&'a self, reviews: u64, targets: &'a [Target]) -> Pending<'a, ()> {
        let (_, _) = (reviews, targets);
        Box::pin(std::future::pending())
    }
}

/// What one connection was let through for.
#[derive(Debug)]
pub(super) struct Leave<'j> {
    judge: &'j dyn Judge,
    reviews: u64,
    targets: Mutex<Vec<Target>>,
}

impl<'j> Leave<'j> {
    /// Before it is judged.
    pub(super) fn to_be_asked(judge: &'j dyn Judge) -> Self {
        Self {
            judge,
            reviews: judge.reviews(),
            targets: Mutex::default(),
        }
    }

    /// Comes back when it is taken back.
    pub(super) async fn taken_back(self) {
        let targets = self.targets.into_inner();
        // Nothing panics while it is held.
        let targets = targets.unwrap_or_else(PoisonError::into_inner);
        self.judge.taken_back(self.reviews, &targets).await;
    }
}

impl Judge for Leave<'_> {
    fn judge<'a>(&'a self, target: &'a Target) -> Pending<'a, Verdict> {
        Box::pin(async move {
            let verdict = self.judge.judge(target).await;
            if verdict == Verdict::Allowed {
                let mut targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
                targets.push(target.clone());
            }
            verdict
        })
    }
}

/// What was decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It may go there.
    Allowed,
    /// Nothing lets it through.
    NotListed,
    /// It was refused, for this reason (a clause without a full stop), which the client is told.
    Denied(String),
}

impl Judge for HostList {
    fn judge<'a>(&'a self, target: &'a Target) -> Pending<'a, Verdict> {
        let verdict = if self.allows(target) {
            Verdict::Allowed
        } else {
            Verdict::NotListed
        };
        Box::pin(std::future::ready(verdict))
    }
}
