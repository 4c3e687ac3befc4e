//! Free JSON: what an event carries and nobody here knows the shape of.
//!
//! Whoever reads JSON stops at some depth, most at 128 levels, and what is kept is read inside of
//! more than it came in: the event, the notebook's state, the answer. What is far from that limit
//! when it comes can always be read again. And there is a name that no field of it may have.

use protocol::{is_plain, is_plain_name};
use serde_json::{Map, Value};

use crate::bundle::{Bundle, Media};
use crate::event::NotebookEvent;
use crate::output::Output;

/// How many levels of lists and objects there may be.
pub const MAX_DEPTH: usize = 64;

/// Why JSON cannot be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unkept {
    /// It is nested deeper than [`MAX_DEPTH`].
    #[error("JSON that is nested more than {MAX_DEPTH} levels deep")]
    Deep,
    /// It [would be read as something else](is_plain).
    #[error("a field with a name that cannot be written down and read again")]
    Name,
}

/// Refuses what could not be read again.
pub fn check_json(value: &Value) -> Result<(), Unkept> {
    match value {
        value if is_deeper(value, MAX_DEPTH) => Err(Unkept::Deep),
        value if !is_plain(value) => Err(Unkept::Name),
        _ => Ok(()),
    }
}

/// The same of what is said under names, each by itself.
pub(crate) fn check_fields(fields: &Map<String, Value>) -> Result<(), Unkept> {
    let mut fields = fields.iter();
    fields.try_for_each(|(name, value)| check_field(name, value))
}

/// The same of what is said under one name.
pub fn check_field(name: &str, value: &Value) -> Result<(), Unkept> {
    match is_plain_name(name) {
        true => check_json(value),
        false => Err(Unkept::Name),
    }
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
    /// Refuses what could not be read again.
    pub fn check_json(&self) -> Result<(), Unkept> {
        for media in self.data.values() {
            if let Media::Inline(value) = media {
                check_json(value)?;
            }
        }
        check_fields(&self.metadata)
    }
}

impl Output {
    fn check_json(&self) -> Result<(), Unkept> {
        match self {
            Self::Display { bundle, .. } | Self::Result { bundle, .. } => bundle.check_json(),
            Self::Kept { raw, shown } => {
                check_fields(raw)?;
                shown.as_ref().map_or(Ok(()), |shown| shown.check_json())
            }
            Self::Terminal { .. }
            | Self::Error { .. }
            | Self::Markdown { .. }
            | Self::Dropped { .. } => Ok(()),
        }
    }
}

impl NotebookEvent {
    /// Refuses one that carries what could not be read again.
    pub fn check_json(&self) -> Result<(), Unkept> {
        match self {
            Self::NotebookMade(event) => {
                check_fields(&event.metadata).and_then(|()| check_fields(&event.extra))
            }
            Self::NotebookMetadata(event) => check_fields(&event.set),
            Self::CellCreated(event) => {
                check_fields(&event.metadata).and_then(|()| check_fields(&event.extra))
            }
            Self::CellMetadata(event) => check_fields(&event.set),
            Self::Displayed(event) => event.bundle.check_json(),
            Self::DisplayUpdated(event) => event.bundle.check_json(),
            Self::ResultOutput(event) => event.bundle.check_json(),
            Self::Imported(event) => event.outputs.iter().try_for_each(Output::check_json),
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
            | Self::ArtifactRemoved(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const HIDDEN: &str = "$serde_json::private::RawValue";

    fn nested(levels: usize) -> Value {
        (0..levels).fold(Value::Null, |inner, level| match level % 2 {
            0 => json!([inner]),
            _ => json!({ "a": inner }),
        })
    }

    #[test]
    fn what_is_nested_as_deep_as_it_may_be_is_kept_and_one_level_more_is_not() {
        assert_eq!(check_json(&nested(MAX_DEPTH)), Ok(()));
        assert_eq!(check_json(&nested(MAX_DEPTH + 1)), Err(Unkept::Deep));
    }

    #[test]
    fn every_event_that_carries_free_json_is_looked_into() {
        let events = |free: &Value| {
            let with = json!({"data": {"application/json": {"inline": free["a"]}}});
            let about = json!({"data": {}, "metadata": free});
            json!([
                {"kind": "notebook.made", "metadata": free},
                {"kind": "notebook.made", "extra": free},
                {"kind": "notebook.metadata", "set": free},
                {"kind": "cell.created", "cell_id": "a", "cell_type": "code", "place": "V", "metadata": free},
                {"kind": "cell.created", "cell_id": "a", "cell_type": "code", "place": "V", "extra": free},
                {"kind": "cell.metadata", "cell_id": "a", "set": free},
                {"kind": "output.display", "execution_id": "e", "bundle": with},
                {"kind": "output.display", "execution_id": "e", "bundle": about},
                {"kind": "output.display_updated", "execution_id": "e", "display_id": "d", "bundle": with},
                {"kind": "output.result", "execution_id": "e", "bundle": with},
                {"kind": "output.imported", "cell_id": "a", "outputs": [{"type": "display", "bundle": with}]},
                {"kind": "output.imported", "cell_id": "a", "outputs": [{"type": "kept", "raw": free}]},
            ])
        };
        let looked = |free: Value| {
            let events = serde_json::from_value::<Vec<NotebookEvent>>(events(&free));
            let looked = events.unwrap().into_iter().map(|one| one.check_json());
            looked.collect::<Vec<Result<(), Unkept>>>()
        };
        assert_eq!(looked(json!({"a": nested(MAX_DEPTH)})), vec![Ok(()); 12]);
        let deep = json!({"a": nested(MAX_DEPTH + 1)});
        assert_eq!(looked(deep), vec![Err(Unkept::Deep); 12]);
        // Where the name comes first, not even the event can be read.
        let named = json!({"a": {"!": 1, HIDDEN: 2}});
        assert_eq!(looked(named), vec![Err(Unkept::Name); 12]);
    }

    #[test]
    fn a_name_counts_where_it_is_the_notebooks_or_a_cells_own() {
        let set = json!({"a": 1, HIDDEN: 2});
        assert_eq!(check_fields(set.as_object().unwrap()), Err(Unkept::Name));
    }
}
