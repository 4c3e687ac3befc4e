//! The entries as lines of JSON, for whoever wants to keep or read them elsewhere.

use serde_json::json;
use store::{Seq, Store, StoreError};

use super::walk::{Place, Walk};
use super::{Ledger, lock};

/// A way through the ledger, a piece at a time.
#[derive(Debug)]
pub struct Export<S: Store> {
    ledger: Ledger<S>,
    after: Seq,
}

impl<S: Store> Ledger<S> {
    /// The entries after `after` as they are written, one JSON object a line.
    #[must_use]
    pub fn export(&self, after: Seq) -> Export<S> {
        Export {
            ledger: self.clone(),
            after,
        }
    }
}

impl<S: Store> Export<S> {
    /// The next lines, each with its end; nothing when all were told. An entry that cannot be read
    /// any more is a line that says so.
    pub async fn piece(&mut self) -> Result<Option<String>, StoreError> {
        let shared = &self.ledger.shared;
        let until = lock(&shared.state).head().seq;
        let mut walk = Walk::new(&*shared.store, &shared.stream, self.after, until);
        let places = walk.piece().await?;
        let mut lines = String::new();
        for place in places {
            let (seq, line) = match place {
                Place::Event(event, _) => (event.seq, event.data.to_string()),
                Place::Unreadable { seq, why } => {
                    (seq, json!({ "seq": seq, "unreadable": why }).to_string())
                }
            };
            self.after = seq;
            lines.push_str(&line);
            lines.push('\n');
        }
        Ok((!lines.is_empty()).then_some(lines))
    }
}
