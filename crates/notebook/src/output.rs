//! What a cell shows below itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::bundle::Bundle;
use crate::event::StreamKind;
use crate::id::OutputId;

/// One thing that a cell shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Output {
    /// What was printed.
    Terminal {
        /// Where.
        stream: StreamKind,
        /// All of it.
        text: String,
    },
    /// Something that was shown.
    Display {
        /// What.
        bundle: Bundle,
        /// The id under which it can become another thing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        display_id: Option<OutputId>,
    },
    /// The value of the cell.
    Result {
        /// What.
        bundle: Bundle,
        /// The kernel's number for the run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        execution_count: Option<u64>,
    },
    /// What went wrong.
    Error {
        /// The kind of error.
        name: String,
        /// What it says.
        value: String,
        /// Where it happened, line by line.
        traceback: Vec<String>,
    },
    /// A text in Markdown.
    Markdown {
        /// All of it.
        text: String,
    },
    /// Some output was not kept.
    Dropped {
        /// How many bytes.
        bytes: u64,
    },
    /// What came with a file in a shape that is not written here; it goes out as it came.
    Kept {
        /// As it was in the file.
        raw: Map<String, Value>,
        /// What it is, where that can be told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shown: Option<Box<Output>>,
    },
}

impl Output {
    /// The id it is shown under.
    pub(crate) fn display(&self) -> Option<&OutputId> {
        match self {
            Self::Display { display_id, .. } => display_id.as_ref(),
            Self::Kept { shown, .. } => shown.as_ref().and_then(|shown| shown.display()),
            Self::Terminal { .. }
            | Self::Result { .. }
            | Self::Error { .. }
            | Self::Markdown { .. }
            | Self::Dropped { .. } => None,
        }
    }
}

/// Adds to the last output where it is of the same kind, or begins one.
pub(crate) fn append(outputs: &mut Vec<Output>, new: Output) {
    match (outputs.last_mut(), new) {
        (
            Some(Output::Terminal { stream, text }),
            Output::Terminal {
                stream: same,
                text: more,
            },
        ) if *stream == same => text.push_str(&more),
        (Some(Output::Markdown { text }), Output::Markdown { text: more }) => text.push_str(&more),
        (Some(Output::Dropped { bytes }), Output::Dropped { bytes: more }) => {
            *bytes = bytes.saturating_add(more);
        }
        (_, new) => outputs.push(new),
    }
}
