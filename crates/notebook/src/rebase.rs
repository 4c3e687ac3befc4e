//! What becomes of a pending event when others came before it.

use std::collections::HashMap;

use store::replica::Rebase;

use crate::event::{CellSource, NotebookEvent};
use crate::id::CellId;
use crate::source::Splice;

impl Rebase for NotebookEvent {
    fn rebase(&self, upstream: &[Self]) -> Option<Self> {
        let pending = std::slice::from_ref(self);
        Self::rebase_all(pending, upstream).pop().flatten()
    }

    fn rebase_all(pending: &[Self], upstream: &[Self]) -> Vec<Option<Self>> {
        let mut others = Others::of(upstream);
        let rebased = pending.iter().map(|event| others.rebase(event));
        rebased.collect()
    }
}

/// What others did to a cell.
#[derive(Debug, Default, Clone)]
struct Done {
    deleted: bool,
    /// All of its source was replaced.
    replaced: bool,
    /// Its source was edited at all, or it is of another type.
    changed: bool,
    /// The pieces that were, as they are meant on top of what is pending so far.
    splices: Vec<Splice>,
}

struct Others(HashMap<CellId, Done>);

impl Others {
    fn of(upstream: &[NotebookEvent]) -> Self {
        let mut cells: HashMap<CellId, Done> = HashMap::new();
        for event in upstream {
            match event {
                NotebookEvent::CellDeleted(event) => {
                    cells.entry(event.cell_id.clone()).or_default().deleted = true;
                }
                NotebookEvent::CellTyped(event) => {
                    cells.entry(event.cell_id.clone()).or_default().changed = true;
                }
                NotebookEvent::CellSource(event) => {
                    let done = cells.entry(event.cell_id.clone()).or_default();
                    done.changed = true;
                    if event.source.is_some() {
                        done.replaced = true;
                        done.splices.clear();
                    }
                    done.splices.extend(event.splices.iter().cloned());
                }
                // The rest has no bearing on what somebody else has pending: whoever comes last is
                // right, and the fold passes over what does not fit.
                _ => {}
            }
        }
        Self(cells)
    }

    fn rebase(&mut self, event: &NotebookEvent) -> Option<NotebookEvent> {
        match event {
            NotebookEvent::CellSource(event) => self.edit(event).map(NotebookEvent::CellSource),
            // It was wanted for what was seen, and that is not what would run.
            NotebookEvent::ExecutionRequested(wanted) => {
                let done = self.0.get(&wanted.cell_id);
                let stale = done.is_some_and(|done| done.deleted || done.changed);
                (!stale).then(|| event.clone())
            }
            other => {
                let gone = cell_of(other).and_then(|cell| self.0.get(cell));
                let gone = gone.is_some_and(|done| done.deleted);
                (!gone).then(|| other.clone())
            }
        }
    }

    fn edit(&mut self, event: &CellSource) -> Option<CellSource> {
        let Some(done) = self.0.get_mut(&event.cell_id) else {
            return Some(event.clone());
        };
        if done.deleted {
            return None;
        }
        if event.source.is_some() {
            // What others did before is gone with it, for all that follows too.
            self.0.remove(&event.cell_id);
            return Some(event.clone());
        }
        if done.replaced {
            return None;
        }
        let splices = event.splices.iter().map(|splice| {
            let mut mine = splice.clone();
            for theirs in &mut done.splices {
                let moved = mine.after(theirs);
                *theirs = theirs.before(&mine);
                mine = moved;
            }
            mine
        });
        Some(CellSource {
            splices: splices.collect(),
            ..event.clone()
        })
    }
}

/// The cell that an edit is about.
fn cell_of(event: &NotebookEvent) -> Option<&CellId> {
    match event {
        NotebookEvent::CellTyped(event) => Some(&event.cell_id),
        NotebookEvent::CellMoved(event) => Some(&event.cell_id),
        NotebookEvent::CellDeleted(event) => Some(&event.cell_id),
        NotebookEvent::CellVisibility(event) => Some(&event.cell_id),
        NotebookEvent::CellMetadata(event) => Some(&event.cell_id),
        NotebookEvent::CellSource(event) => Some(&event.cell_id),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn events(values: Value) -> Vec<NotebookEvent> {
        serde_json::from_value(values).unwrap()
    }

    fn rebased(pending: Value, upstream: Value) -> Value {
        json!(NotebookEvent::rebase_all(
            &events(pending),
            &events(upstream)
        ))
    }

    fn typed(at: u32, text: &str) -> Value {
        json!({"kind": "cell.source", "cell_id": "a", "splices": [{"at": at, "delete": 0, "insert": text}]})
    }

    #[test]
    fn what_was_typed_offline_keeps_its_place_among_what_others_typed() {
        // Here: "ab" became "aXb", then "aXYb". There: "ab" became "OKab".
        assert_eq!(
            rebased(
                json!([typed(1, "X"), typed(2, "Y")]),
                json!([typed(0, "OK")])
            ),
            json!([typed(3, "X"), typed(4, "Y")])
        );
    }

    #[test]
    fn what_is_meant_for_a_cell_that_is_gone_is_dropped() {
        let pending = json!([
            typed(0, "x"),
            {"kind": "cell.moved", "cell_id": "a", "place": "V"},
            {"kind": "execution.requested", "execution_id": "e", "cell_id": "a"},
            {"kind": "cell.moved", "cell_id": "b", "place": "V"},
        ]);
        let upstream = json!([{"kind": "cell.deleted", "cell_id": "a"}]);
        assert_eq!(
            rebased(pending.clone(), upstream),
            json!([null, null, null, pending[3]])
        );
    }

    #[test]
    fn a_run_is_not_wanted_of_what_nobody_saw() {
        let wanted = json!([{"kind": "execution.requested", "execution_id": "e", "cell_id": "a"}]);
        assert_eq!(
            rebased(wanted.clone(), json!([typed(0, "x")])),
            json!([null])
        );
        let elsewhere = json!([{"kind": "cell.source", "cell_id": "b", "source": "x"}]);
        assert_eq!(rebased(wanted.clone(), elsewhere), wanted);
    }

    #[test]
    fn who_replaced_all_is_right_and_pieces_of_what_was_replaced_are_dropped() {
        let whole = json!({"kind": "cell.source", "cell_id": "a", "source": "new"});
        assert_eq!(
            rebased(json!([typed(1, "x")]), json!([whole])),
            json!([null])
        );
        assert_eq!(
            rebased(json!([whole, typed(3, "!")]), json!([typed(0, "x")])),
            json!([whole, typed(3, "!")])
        );
    }
}
