//! What the proxy refused, kept until somebody asks.

use std::sync::{Mutex, PoisonError};

use protocol::sandbox::{Stopped, StoppedAccess};

/// How many different targets are kept between two calls; a scan of a network is told by its
/// first hosts as well as by all of them.
const MAX_TARGETS: usize = 256;
/// How much of a target that could not be read is kept.
const MAX_SHOWN: usize = 260;

/// The targets refused since they were last taken: each once, in order, boundedly many.
#[derive(Debug, Default)]
pub(super) struct StoppedLog(Mutex<Vec<Stopped>>);

impl StoppedLog {
    /// Notes a target. One that could not be read is kept in printable form, for it ends up
    /// before a person.
    pub(super) fn note(&self, target: &str) {
        let stopped = Stopped {
            access: StoppedAccess::Connect,
            target: target
                .chars()
                .flat_map(|c| match c {
                    '!'..='~' => c.to_string().chars().collect::<Vec<_>>(),
                    _ => c.escape_unicode().collect(),
                })
                .take(MAX_SHOWN)
                .collect(),
        };
        tracing::debug!(target = %stopped.target, "the proxy refused a connection");
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if log.len() < MAX_TARGETS && !log.contains(&stopped) {
            log.push(stopped);
        }
    }

    /// Takes what was noted since the last call.
    pub(super) fn take(&self) -> Vec<Stopped> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(log: &StoppedLog) -> Vec<String> {
        log.take()
            .into_iter()
            .map(|stopped| stopped.target)
            .collect()
    }

    #[test]
    fn each_target_is_told_once_and_in_order() {
        let log = StoppedLog::default();
        for target in ["b.test:443", "a.test:443", "b.test:443"] {
            log.note(target);
        }
        assert_eq!(targets(&log), ["b.test:443", "a.test:443"]);
        assert_eq!(targets(&log), [""; 0]);
        log.note("b.test:443");
        assert_eq!(targets(&log), ["b.test:443"]);
    }

    #[test]
    fn it_stays_small_and_printable() {
        let log = StoppedLog::default();
        log.note("a\0b\u{1b}[2J\u{202e}:80");
        log.note(&"x".repeat(100_000));
        for port in 0..1000 {
            log.note(&format!("host:{port}"));
        }
        let told = targets(&log);
        assert_eq!(told[0], "a\\u{0}b\\u{1b}[2J\\u{202e}:80");
        assert_eq!(told[1].len(), MAX_SHOWN);
        assert_eq!(told.len(), MAX_TARGETS);
    }
}
