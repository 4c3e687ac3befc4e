//! One command and no other: its words, folder and environment, as a digest.

use std::cell::OnceCell;

use protocol::Digest;
use protocol::facts::CommandFact;

use crate::touch::{By, Touch};

/// The command that is asked about, whose digest is made only where a pattern names one.
#[derive(Debug)]
pub(crate) struct Exact<'a> {
    fact: Option<&'a CommandFact>,
    digest: OnceCell<Option<Digest>>,
}

impl<'a> Exact<'a> {
    pub(crate) fn new(fact: Option<&'a CommandFact>) -> Self {
        Self {
            fact,
            digest: OnceCell::new(),
        }
    }

    /// The digest of everything that is known about how it would run.
    pub(crate) fn digest(&self) -> Option<&Digest> {
        let make = || Some(Digest::of(&serde_json::to_vec(self.fact?).ok()?));
        self.digest.get_or_init(make).as_ref()
    }

    pub(crate) fn is(&self, digest: &str) -> bool {
        self.digest().is_some_and(|own| own.as_str() == digest)
    }

    /// Whether this is part of the command as such. A file that its shell opens is one only where
    /// nobody knows which: a known one is granted by its path.
    pub(crate) fn is_about(touch: &Touch) -> bool {
        match touch {
            Touch::Command(_) | Touch::Unknown(_) => true,
            Touch::Use(action) => *action == protocol::ActionName::TerminalRun,
            Touch::Path { path, by, .. } => path.is_none() && *by == By::Redirection,
            Touch::Typed | Touch::Host { .. } => false,
        }
    }
}
