//! Where an agent's own words go: to a sink that the platform gives.

use std::fmt;
use std::rc::Rc;

/// How much something matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For who looks for a fault.
    Debug,
    /// What happens.
    Info,
    /// What should not be.
    Warn,
    /// What failed.
    Error,
}

type Sink = dyn Fn(Level, &str);

/// A sink for what an agent has to say about itself. What cells print never goes there.
#[derive(Clone)]
pub struct Log(Rc<Sink>);

impl Log {
    /// Says it to this.
    pub fn to(sink: impl Fn(Level, &str) + 'static) -> Self {
        Self(Rc::new(sink))
    }

    /// Says it to nobody.
    #[must_use]
    pub fn nowhere() -> Self {
        Self::to(|_, _| {})
    }

    /// Says something.
    pub fn say(&self, level: Level, words: &str) {
        (self.0)(level, words);
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Log")
    }
}
