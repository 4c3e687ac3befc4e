//! The place of an event in its stream.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The place of an event in its stream, counted from 1 without gaps. [`Seq::START`] is before the
/// first.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Seq(u64);

impl Seq {
    /// Before the first event: where an empty stream is, and where a reader begins.
    pub const START: Self = Self(0);

    /// The place of this number.
    #[must_use]
    pub fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0
    }

    /// The place after it.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Where a stream must be for an append to fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Wherever it is.
    Any,
    /// Its last event is this one; [`Seq::START`] where there must be none.
    Head(Seq),
}
