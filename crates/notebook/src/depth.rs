//! How deep the JSON may be nested that an event carries and nobody here knows the shape of.
//!
//! Whoever reads JSON stops at some depth, most at 128 levels, and what is kept is read inside of
//! more than it came in: the event, the notebook's state, the answer. What is far from that limit
//! when it comes can always be read again.

use serde_json::{Map, Value};

use crate::bundle::{Bundle, Media};
use crate::event::NotebookEvent;
use crate::output::Output;

/// How many levels of lists and objects there may be.
pub const MAX_DEPTH: usize = 64;

/// Whether JSON is nested deeper than [`MAX_DEPTH`].
#[must_use]
pub fn is_too_deep(value: &Value) -> bool {
    is_deeper(value, MAX_DEPTH)
}

/// The same of what is said under names, each by itself.
pub(crate) fn holds_too_deep(fields: &Map<String, Value>) -> bool {
    fields.values().any(is_too_deep)
}

fn is_deeper(value: &Value, levels: usize) -> bool {
    let Some(left) = levels.checked_sub(1) else {
        return value.is_array() || value.is_object();
    };
    match value {
        Value::Array(values) => values.iter().any(|value| is_deeper(value, left)),
        Value::Object(fields) => fields.values().any(|value| is_deeper(value, left)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

impl Bundle {
    /// Whether something in it is nested deeper than [`MAX_DEPTH`].
    #[must_use]
    pub fn is_too_deep(&self) -> bool {
        let mut media = self.data.values();
        let deep = media.any(|media| match media {
            Media::Inline(value) => is_too_deep(value),
            Media::Artifact(_) => false,
        });
        deep || holds_too_deep(&self.metadata)
    }
}

impl Output {
    fn is_too_deep(&self) -> bool {
        match self {
            Self::Display { bundle, .. } | Self::Result { bundle, .. } => bundle.is_too_deep(),
            Self::Kept { raw, shown } => {
                let shown = shown.as_ref();
                holds_too_deep(raw) || shown.is_some_and(|shown| shown.is_too_deep())
            }
            Self::Terminal { .. }
            | Self::Error { .. }
            | Self::Markdown { .. }
            | Self::Dropped { .. } => false,
        }
    }
}

impl NotebookEvent {
    /// Whether something that it carries is nested deeper than [`MAX_DEPTH`].
    #[must_use]
    pub fn is_too_deep(&self) -> bool {
        match self {
            Self::NotebookMade(event) => {
                holds_too_deep(&event.metadata) || holds_too_deep(&event.extra)
            }
            Self::NotebookMetadata(event) => holds_too_deep(&event.set),
            Self::CellCreated(event) => {
                holds_too_deep(&event.metadata) || holds_too_deep(&event.extra)
            }
            Self::CellMetadata(event) => holds_too_deep(&event.set),
            Self::Displayed(event) => event.bundle.is_too_deep(),
            Self::DisplayUpdated(event) => event.bundle.is_too_deep(),
            Self::ResultOutput(event) => event.bundle.is_too_deep(),
            Self::Imported(event) => event.outputs.iter().any(Output::is_too_deep),
            Self::NotebookTitled(_)
            | Self::RuntimesChanged(_)
            | Self::CellSource(_)
            | Self::CellTyped(_)
            | Self::CellMoved(_)
            | Self::CellDeleted(_)
            | Self::CellVisibility(_)
            | Self::ExecutionRequested(_)
            | Self::ExecutionAssigned(_)
            | Self::ExecutionStarted(_)
            | Self::ExecutionCancel(_)
            | Self::ExecutionCompleted(_)
            | Self::ExecutionCancelled(_)
            | Self::InputRequested(_)
            | Self::InputAnswered(_)
            | Self::Terminal(_)
            | Self::ErrorOutput(_)
            | Self::Markdown(_)
            | Self::Cleared(_)
            | Self::Dropped(_)
            | Self::RuntimeStarted(_)
            | Self::RuntimeStatus(_)
            | Self::RuntimeRenewed(_)
            | Self::RuntimeRestart(_)
            | Self::RuntimeTerminated(_)
            | Self::ArtifactAdded(_)
            | Self::ArtifactRemoved(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn nested(levels: usize) -> Value {
        (0..levels).fold(Value::Null, |inner, level| match level % 2 {
            0 => json!([inner]),
            _ => json!({ "a": inner }),
        })
    }

    #[test]
    fn what_is_nested_as_deep_as_it_may_be_is_not_too_deep_and_one_level_more_is() {
        assert!(!is_too_deep(&nested(MAX_DEPTH)));
        assert!(is_too_deep(&nested(MAX_DEPTH + 1)));
    }

    #[test]
    fn every_event_that_carries_free_json_is_looked_into() {
        let events = |deep: &Value| {
            let with = json!({"data": {"application/json": {"inline": deep}}});
            let about = json!({"data": {}, "metadata": {"a": deep}});
            json!([
                {"kind": "notebook.made", "metadata": {"a": deep}},
                {"kind": "notebook.made", "extra": {"a": deep}},
                {"kind": "notebook.metadata", "set": {"a": deep}},
                {"kind": "cell.created", "cell_id": "a", "cell_type": "code", "place": "V", "metadata": {"a": deep}},
                {"kind": "cell.created", "cell_id": "a", "cell_type": "code", "place": "V", "extra": {"a": deep}},
                {"kind": "cell.metadata", "cell_id": "a", "set": {"a": deep}},
                {"kind": "output.display", "execution_id": "e", "bundle": with},
                {"kind": "output.display", "execution_id": "e", "bundle": about},
                {"kind": "output.display_updated", "execution_id": "e", "display_id": "d", "bundle": with},
                {"kind": "output.result", "execution_id": "e", "bundle": with},
                {"kind": "output.imported", "cell_id": "a", "outputs": [{"type": "display", "bundle": with}]},
                {"kind": "output.imported", "cell_id": "a", "outputs": [{"type": "kept", "raw": {"a": deep}}]},
            ])
        };
        let looked = |levels: usize| {
            let events = serde_json::from_value::<Vec<NotebookEvent>>(events(&nested(levels)));
            let deep = events.unwrap().into_iter().map(|one| one.is_too_deep());
            deep.collect::<Vec<bool>>()
        };
        assert_eq!(looked(MAX_DEPTH), vec![false; 12]);
        assert_eq!(looked(MAX_DEPTH + 1), vec![true; 12]);
    }
}
