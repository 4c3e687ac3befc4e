//! Who decides whether a connection may go where it wants to.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

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
