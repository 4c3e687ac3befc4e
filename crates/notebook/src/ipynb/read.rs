//! A file becomes events.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::text::{joined, split};
use super::{LISTED, OURS, numbers, output};
use crate::cell::CellType;
use crate::event::{CellCreated, Imported, NotebookEvent, NotebookMade};
use crate::free::Unkept;
use crate::id::CellId;
use crate::place::Place;

/// Why a file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadFile {
    /// It is no JSON.
    #[error("The file is no JSON: line {line}, column {column}: {why}.")]
    NoJson {
        /// In which line it goes on in another way, counted from 1.
        line: usize,
        /// At which character of the line, counted from 1.
        column: usize,
        /// What is wrong there.
        why: String,
    },
    /// It is JSON, and not an object.
    #[error("The file is JSON, but not an object, which a notebook is.")]
    NoObject,
    /// Another format.
    #[error(
        "This is no notebook of format 4, but {0}. `jupyter nbconvert --to notebook` makes one of it."
    )]
    Format(String),
    /// Something in it is not as the format has it.
    #[error("`{0}` of the notebook is not as format 4 has it.")]
    Shape(String),
    /// Something in it could not be read again.
    #[error("`{place}` of the notebook holds {what}. Take it out of the file, or keep it as text.")]
    Unkept {
        /// Where it is.
        place: String,
        /// What it is.
        what: Unkept,
    },
}

/// The events that make a notebook of a file, the first being that it was made. The file is as
/// [`parse`](super::parse) reads it.
pub fn read(file: &Map<String, Value>) -> Result<Vec<NotebookEvent>, BadFile> {
    match file.get("nbformat").and_then(Value::as_u64) {
        Some(4) => {}
        Some(other) => return Err(BadFile::Format(format!("format {other}"))),
        None => return Err(BadFile::Format("something that names no format".to_owned())),
    }
    let shape = |what: &str| BadFile::Shape(what.to_owned());
    let minor = file.get("nbformat_minor").and_then(Value::as_u64);
    let minor = minor.ok_or_else(|| shape("nbformat_minor"))?;
    let metadata = match file.get("metadata") {
        Some(Value::Object(metadata)) => metadata.clone(),
        _ => return Err(shape("metadata")),
    };
    let cells = file.get("cells").and_then(Value::as_array);
    let cells = cells.ok_or_else(|| shape("cells"))?;
    let title = metadata.get("title").and_then(numbers::text);
    let mut events = vec![NotebookEvent::NotebookMade(NotebookMade {
        title: title.unwrap_or_default().chars().take(200).collect(),
        nbformat_minor: minor,
        extra: without(file, &["nbformat", "nbformat_minor", "metadata", "cells"]),
        metadata,
    })];
    check(&events, || "metadata".to_owned())?;
    let mut taken = HashSet::new();
    for ((number, cell), place) in cells.iter().enumerate().zip(Place::spread(cells.len())) {
        let cell = cell.as_object();
        let cell = cell.ok_or_else(|| BadFile::Shape(format!("cells[{number}]")))?;
        let before = events.len();
        read_cell(number, cell, place, minor, &mut taken, &mut events)?;
        check(events.iter().skip(before), || format!("cells[{number}]"))?;
    }
    Ok(events)
}

fn check<'a>(
    events: impl IntoIterator<Item = &'a NotebookEvent>,
    place: impl FnOnce() -> String,
) -> Result<(), BadFile> {
    let mut events = events.into_iter();
    let checked = events.try_for_each(NotebookEvent::check_json);
    checked.map_err(|what| BadFile::Unkept {
        place: place(),
        what,
    })
}

fn read_cell(
    number: usize,
    cell: &Map<String, Value>,
    place: Place,
    minor: u64,
    taken: &mut HashSet<String>,
    events: &mut Vec<NotebookEvent>,
) -> Result<(), BadFile> {
    let shape = |what: &str| BadFile::Shape(format!("cells[{number}].{what}"));
    let source = cell.get("source").ok_or_else(|| shape("source"))?;
    let text = joined(source).ok_or_else(|| shape("source"))?;
    let metadata = match cell.get("metadata") {
        Some(Value::Object(metadata)) => metadata.clone(),
        Some(_) => return Err(shape("metadata")),
        None => Map::new(),
    };
    let mut extra = without(
        cell,
        &[
            "cell_type",
            "metadata",
            "source",
            "id",
            "outputs",
            "execution_count",
        ],
    );
    // What would go out in another way than it came is kept beside.
    if split(&text) != *source {
        extra.insert("source".to_owned(), source.clone());
    }
    let ours = metadata.get(OURS).and_then(|said| said.get("cell_type"));
    let cell_type = match (
        cell.get("cell_type").and_then(numbers::text),
        ours.and_then(Value::as_str),
    ) {
        (Some("code"), Some("sql")) => CellType::Sql,
        (Some("code"), Some("ai")) => CellType::Ai,
        (Some("code"), _) => CellType::Code,
        (Some("markdown"), _) => CellType::Markdown,
        (Some("raw"), _) => CellType::Raw,
        (Some(other), _) => {
            extra.insert("cell_type".to_owned(), numbers::held(other));
            CellType::Raw
        }
        (None, _) => return Err(shape("cell_type")),
    };
    let given = cell.get("id").and_then(numbers::text);
    let usable = given.filter(|id| !taken.contains(*id));
    let cell_id = match usable.and_then(|id| CellId::new(id).ok()) {
        Some(id) => id,
        None => (number + 1..)
            .filter_map(|number| CellId::new(format!("cell-{number}")).ok())
            .find(|id| !taken.contains(id.as_str()))
            .ok_or_else(|| shape("id"))?,
    };
    if let Some(id) = cell.get("id")
        && (minor < 5 || *id != cell_id.as_str())
    {
        extra.insert("id".to_owned(), id.clone());
    }
    taken.insert(cell_id.to_string());
    let runs = cell_type.runs();
    let outputs = match cell.get("outputs").filter(|_| runs) {
        Some(Value::Array(outputs)) => {
            let outputs = outputs.iter().map(Value::as_object);
            let outputs: Option<Vec<_>> = outputs.collect();
            outputs.ok_or_else(|| shape("outputs"))?
        }
        Some(_) => return Err(shape("outputs")),
        None => Vec::new(),
    };
    let count = cell.get("execution_count").filter(|_| runs);
    let execution_count = count.and_then(Value::as_u64);
    for name in LISTED {
        let came = cell.get(name);
        let goes_out_so = match name {
            "metadata" => came.is_some(),
            "execution_count" if runs => came == Some(&json!(execution_count)),
            _ => came.is_some() == runs,
        };
        if !goes_out_so {
            let came = came.into_iter().cloned();
            extra.insert(name.to_owned(), came.collect());
        }
    }
    events.push(NotebookEvent::CellCreated(CellCreated {
        cell_id: cell_id.clone(),
        cell_type,
        place,
        source: text,
        metadata,
        extra,
    }));
    if !outputs.is_empty() || execution_count.is_some() {
        events.push(NotebookEvent::Imported(Imported {
            cell_id,
            outputs: outputs.into_iter().map(output::read).collect(),
            execution_count,
        }));
    }
    Ok(())
}

fn without(all: &Map<String, Value>, known: &[&str]) -> Map<String, Value> {
    let unknown = all
        .iter()
        .filter(|(name, _)| !known.contains(&name.as_str()));
    unknown
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}
