//! What runs now, for the questions that come out of it and for those who follow it to its end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::job::Job;

/// The jobs that run, by the id they run under. A terminal's is here until the terminal has ended.
pub(crate) struct Jobs {
    running: Mutex<HashMap<String, Arc<Job>>>,
    /// Told whenever one ends.
    ends: watch::Sender<()>,
}

impl Default for Jobs {
    fn default() -> Self {
        Self {
            running: Mutex::default(),
            ends: watch::Sender::new(()),
        }
    }
}

impl Jobs {
    pub(crate) fn begin(&self, id: String, job: &Arc<Job>) {
        self.running().insert(id, Arc::clone(job));
    }

    pub(crate) fn end(&self, id: &str) {
        let ended = self.running().remove(id);
        if ended.is_some() {
            self.ends.send_replace(());
        }
    }

    pub(crate) fn get(&self, id: &str) -> Option<Arc<Job>> {
        self.running().get(id).cloned()
    }

    /// All that run.
    pub(crate) fn all(&self) -> Vec<Arc<Job>> {
        self.running().values().cloned().collect()
    }

    /// Ready when nothing runs under this id.
    pub(crate) async fn ended(&self, id: &str) {
        let mut ends = self.ends.subscribe();
        while self.running().contains_key(id) {
            // The sender lives as long as this.
            let _ = ends.changed().await;
        }
    }

    fn running(&self) -> MutexGuard<'_, HashMap<String, Arc<Job>>> {
        // Nothing panics while it is held.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
