//! A notebook becomes a file.

use serde_json::{Map, Value, json};

use super::text::{joined, split};
use super::{LISTED, OURS, output};
use crate::bundle::ArtifactRef;
use crate::cell::{Cell, CellType};
use crate::notebook::Notebook;

/// A notebook as a file, for [`to_text`](super::to_text). `resolve` has the bytes of artifacts, which
/// a file carries itself.
#[must_use]
pub fn write(
    notebook: &Notebook,
    resolve: &dyn Fn(&ArtifactRef) -> Option<Vec<u8>>,
) -> Map<String, Value> {
    let cells = notebook.cells().into_iter();
    let cells = cells.map(|cell| write_cell(cell, notebook.nbformat_minor, resolve));
    let mut file = notebook.extra.clone();
    file.insert("nbformat".to_owned(), json!(4));
    file.insert("nbformat_minor".to_owned(), json!(notebook.nbformat_minor));
    file.insert("metadata".to_owned(), json!(notebook.metadata));
    file.insert("cells".to_owned(), cells.collect());
    file
}

fn write_cell(cell: &Cell, minor: u64, resolve: &dyn Fn(&ArtifactRef) -> Option<Vec<u8>>) -> Value {
    let mut file = cell.extra.clone();
    let as_it_came = file.remove("source");
    let same = |came: &Value| joined(came).as_ref() == Some(&cell.source);
    let source = as_it_came.filter(same);
    let source = source.unwrap_or_else(|| split(&cell.source));
    let unknown_type = file.remove("cell_type");
    let cell_type = match cell.cell_type {
        CellType::Code | CellType::Sql | CellType::Ai => json!("code"),
        CellType::Markdown => json!("markdown"),
        CellType::Raw => unknown_type.unwrap_or_else(|| json!("raw")),
    };
    if minor >= 5 && !file.contains_key("id") {
        file.insert("id".to_owned(), json!(cell.cell_id));
    }
    let is_code = cell_type == "code";
    let outputs = cell.outputs.iter();
    let outputs = outputs.map(|one| output::write(one, resolve));
    let metadata = metadata(cell);
    for name in LISTED {
        let (is_untouched, own) = match name {
            "metadata" => (metadata.is_empty(), Some(json!(metadata))),
            "outputs" => (
                cell.outputs.is_empty(),
                is_code.then(|| outputs.clone().collect()),
            ),
            _ => (
                cell.execution_id.is_none(),
                is_code.then(|| json!(cell.execution_count)),
            ),
        };
        let value = match file.remove(name) {
            Some(Value::Array(came)) if is_untouched => came.into_iter().next(),
            _ => own,
        };
        if let Some(value) = value {
            file.insert(name.to_owned(), value);
        }
    }
    file.insert("cell_type".to_owned(), cell_type);
    file.insert("source".to_owned(), source);
    Value::Object(file)
}

/// What is said about a cell, with its type where Jupyter has no such.
fn metadata(cell: &Cell) -> Map<String, Value> {
    let mut metadata = cell.metadata.clone();
    let ours = match cell.cell_type {
        CellType::Sql | CellType::Ai => Some(cell.cell_type.as_str()),
        CellType::Code | CellType::Markdown | CellType::Raw => None,
    };
    let said = metadata.get(OURS).and_then(Value::as_object);
    let mut said = said.cloned().unwrap_or_default();
    let before = said.get("cell_type").and_then(Value::as_str);
    match ours {
        Some(ours) => {
            said.insert("cell_type".to_owned(), ours.into());
            metadata.insert(OURS.to_owned(), Value::Object(said));
        }
        // Only of code it would be taken for its type.
        None if cell.cell_type == CellType::Code && matches!(before, Some("sql" | "ai")) => {
            said.remove("cell_type");
            match said.is_empty() {
                true => drop(metadata.remove(OURS)),
                false => drop(metadata.insert(OURS.to_owned(), Value::Object(said))),
            }
        }
        None => {}
    }
    metadata
}
