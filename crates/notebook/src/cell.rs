//! A cell as it is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::id::{CellId, ExecutionId};
use crate::output::Output;
use crate::place::Place;

/// What a cell is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CellType {
    /// Code for the runtime.
    Code,
    /// Text.
    Markdown,
    /// A query.
    Sql,
    /// Words for a model.
    Ai,
    /// Neither, for whoever the notebook is converted for.
    Raw,
}

impl CellType {
    /// Whether such a cell can run at all.
    #[must_use]
    pub fn runs(self) -> bool {
        match self {
            Self::Code | Self::Sql | Self::Ai => true,
            Self::Markdown | Self::Raw => false,
        }
    }

    /// As it is written.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Markdown => "markdown",
            Self::Sql => "sql",
            Self::Ai => "ai",
            Self::Raw => "raw",
        }
    }
}

/// A cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// Its id.
    pub cell_id: CellId,
    /// What it is.
    pub cell_type: CellType,
    /// Where it is.
    pub place: Place,
    /// What it says.
    pub source: String,
    /// What is said about it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// What else was in the file.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
    /// What its last run showed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<Output>,
    /// The kernel's number for its last run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_count: Option<u64>,
    /// Its last run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<ExecutionId>,
    /// Its outputs go once the next comes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub clear_waits: bool,
}

impl Cell {
    /// Whether its source is folded away.
    #[must_use]
    pub fn source_hidden(&self) -> bool {
        self.hidden("source_hidden")
    }

    /// Whether its outputs are folded away.
    #[must_use]
    pub fn outputs_hidden(&self) -> bool {
        self.hidden("outputs_hidden")
    }

    fn hidden(&self, name: &str) -> bool {
        let said = self.metadata.get("jupyter").and_then(|said| said.get(name));
        said.and_then(Value::as_bool).unwrap_or(false)
    }

    /// Says so where Jupyter looks for it.
    pub(crate) fn hide(&mut self, name: &str, hidden: bool) {
        let said = self.metadata.get("jupyter").and_then(Value::as_object);
        let mut said = said.cloned().unwrap_or_default();
        match hidden {
            true => drop(said.insert(name.to_owned(), Value::Bool(true))),
            false => drop(said.remove(name)),
        }
        match said.is_empty() {
            true => drop(self.metadata.remove("jupyter")),
            false => drop(
                self.metadata
                    .insert("jupyter".to_owned(), Value::Object(said)),
            ),
        }
    }
}
