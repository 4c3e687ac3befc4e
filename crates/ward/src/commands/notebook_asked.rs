//! What the gate asks about the cells of `ward notebook run`.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::time::Duration;

use indicatif::ProgressBar;
use notebook::CellId;
use protocol::ActionName;
use protocol::approval::{AnswerScope, Approval, Choice};
use protocol::gate::Ask;
use serde::Deserialize;

use crate::approval::{answer, respond};
use crate::client::Client;
use crate::console::{printable, tell};

/// How long to wait before a Ward that is away is asked again.
const AGAIN: Duration = Duration::from_secs(1);

/// The questions about one notebook's cells.
pub(super) struct Questions<'a> {
    client: &'a Client,
    notebook: &'a str,
    ask: Ask,
    /// It says which cell it is.
    bar: &'a ProgressBar,
    refused: RefCell<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct Listed {
    approvals: Vec<Approval>,
}

impl<'a> Questions<'a> {
    pub(super) fn new(
        client: &'a Client,
        notebook: &'a str,
        ask: Ask,
        bar: &'a ProgressBar,
    ) -> Self {
        Self {
            client,
            notebook,
            ask,
            bar,
            refused: RefCell::default(),
        }
    }

    /// Why a cell was refused, where that is because nobody can be asked.
    pub(super) fn refused(&self, cell: &CellId) -> Option<String> {
        self.refused.borrow().get(cell.as_str()).cloned()
    }

    /// Sees to them, for as long as it is driven.
    pub(super) async fn watch(&self) -> Infallible {
        let mut seen = BTreeSet::new();
        loop {
            if let Err(error) = self.follow(&mut seen).await {
                tracing::debug!("questions are not heard of: {error:#}");
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    async fn follow(&self, seen: &mut BTreeSet<String>) -> anyhow::Result<()> {
        let mut events = self.client.follow("/approvals/events").await?;
        loop {
            // Whatever the events said, the list is what is open now.
            let listed: Listed = self.client.get("/approvals").await?;
            for approval in listed.approvals {
                if self.is_ours(&approval) && seen.insert(approval.id.clone()) {
                    self.question(&approval).await?;
                }
            }
            loop {
                match events.next().await? {
                    Some(event) if event.kind == "permission.requested" => break,
                    Some(_) => {}
                    None => return Ok(()),
                }
            }
        }
    }

    fn is_ours(&self, approval: &Approval) -> bool {
        approval.action == ActionName::CellExecute.as_str()
            && approval.params["notebook_id"] == self.notebook
    }

    async fn question(&self, approval: &Approval) -> anyhow::Result<()> {
        match self.ask {
            Ask::Wait => {
                let cell = self.bar.message();
                let told = format!(
                    "{cell} waits for an answer: ward approvals show {}",
                    printable(&approval.id)
                );
                self.bar.suspend(|| tell(&told));
            }
            Ask::Deny => {
                if let Some(cell) = approval.params["cell_id"].as_str() {
                    let told = format!(
                        "A person would have to be asked ({}), and here nobody can be. Allow it by a rule, or wait for an answer with --ask wait.",
                        approval.rule
                    );
                    self.refused.borrow_mut().insert(cell.to_owned(), told);
                }
                let why = "Nobody can be asked: `ward notebook run` runs by itself.".to_owned();
                let digest = approval.digest.clone();
                let no = answer(Choice::Deny, AnswerScope::Once, digest, Some(why), None);
                respond(self.client, approval, &no).await?;
            }
        }
        Ok(())
    }
}
