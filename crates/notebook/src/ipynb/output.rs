//! Outputs as files have them.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::numbers::{self, held};
use super::text::{is_json, is_lines, joined, split};
use crate::bundle::{ArtifactRef, Bundle, Media};
use crate::event::StreamKind;
use crate::output::Output;

/// The bytes of an artifact, where they are to be had.
pub(super) type Resolve<'a> = &'a dyn Fn(&ArtifactRef) -> Option<Vec<u8>>;

/// An output of a file. What would not go out as it came is kept as it was.
pub(super) fn read(raw: &Map<String, Value>) -> Output {
    let shown = shown(raw);
    let nothing: Resolve<'_> = &|_| None;
    match shown {
        Some(shown) if write(&shown, nothing) == Value::Object(raw.clone()) => shown,
        shown => Output::Kept {
            raw: raw.clone(),
            shown: shown.map(Box::new),
        },
    }
}

fn shown(raw: &Map<String, Value>) -> Option<Output> {
    let text = |name: &str| raw.get(name).and_then(joined);
    match raw.get("output_type")?.as_str()? {
        "stream" => Some(Output::Terminal {
            stream: match text("name")?.as_str() {
                "stdout" => StreamKind::Stdout,
                "stderr" => StreamKind::Stderr,
                _ => return None,
            },
            text: text("text")?,
        }),
        "display_data" => Some(Output::Display {
            bundle: bundle(raw)?,
            display_id: None,
        }),
        "execute_result" => Some(Output::Result {
            bundle: bundle(raw)?,
            execution_count: raw.get("execution_count").and_then(Value::as_u64),
        }),
        "error" => {
            let lines = raw.get("traceback")?.as_array()?.iter();
            let lines: Option<Vec<&str>> = lines.map(numbers::text).collect();
            Some(Output::Error {
                name: text("ename")?,
                value: text("evalue")?,
                traceback: lines?.into_iter().map(ToOwned::to_owned).collect(),
            })
        }
        _ => None,
    }
}

fn bundle(raw: &Map<String, Value>) -> Option<Bundle> {
    let mut data = BTreeMap::new();
    for (media_type, value) in raw.get("data")?.as_object()? {
        let value = match is_json(media_type) {
            true => value.clone(),
            false => Value::String(joined(value)?),
        };
        data.insert(media_type.clone(), Media::Inline(value));
    }
    let metadata = raw.get("metadata").and_then(Value::as_object);
    Some(Bundle {
        data,
        metadata: metadata.cloned().unwrap_or_default(),
    })
}

/// An output for a file.
pub(super) fn write(output: &Output, resolve: Resolve<'_>) -> Value {
    match output {
        Output::Terminal { stream, text } => json!({
            "output_type": "stream",
            "name": match stream {
                StreamKind::Stdout => "stdout",
                StreamKind::Stderr => "stderr",
            },
            "text": split(text),
        }),
        Output::Display { bundle, .. } => json!({
            "output_type": "display_data",
            "data": data(bundle, resolve),
            "metadata": bundle.metadata,
        }),
        Output::Result {
            bundle,
            execution_count,
        } => json!({
            "output_type": "execute_result",
            "data": data(bundle, resolve),
            "metadata": bundle.metadata,
            "execution_count": execution_count,
        }),
        Output::Error {
            name,
            value,
            traceback,
        } => json!({
            "output_type": "error",
            "ename": held(name),
            "evalue": held(value),
            "traceback": traceback.iter().map(|line| held(line)).collect::<Value>(),
        }),
        Output::Markdown { text } => json!({
            "output_type": "display_data",
            "data": {"text/markdown": split(text)},
            "metadata": {},
        }),
        Output::Dropped { bytes } => json!({
            "output_type": "stream",
            "name": "stderr",
            "text": split(&format!("{bytes} bytes of output were not kept.\n")),
        }),
        Output::Kept { raw, .. } => Value::Object(raw.clone()),
    }
}

fn data(bundle: &Bundle, resolve: Resolve<'_>) -> Value {
    let mut data = Map::new();
    for (media_type, media) in &bundle.data {
        let value = match media {
            Media::Inline(Value::String(text)) if is_lines(media_type) => split(text),
            Media::Inline(Value::String(text)) if !is_json(media_type) => held(text),
            Media::Inline(value) => value.clone(),
            Media::Artifact(artifact) => match resolve(artifact) {
                Some(bytes) => inlined(media_type, bytes),
                None => split(&format!("{} is not here any more.", artifact.digest)),
            },
        };
        data.insert(media_type.clone(), value);
    }
    Value::Object(data)
}

fn inlined(media_type: &str, bytes: Vec<u8>) -> Value {
    let is_text = is_lines(media_type) || is_json(media_type);
    match String::from_utf8(bytes) {
        Ok(text) if is_json(media_type) => {
            numbers::parse_value(&text).unwrap_or_else(|_| held(&text))
        }
        Ok(text) if is_text => split(&text),
        Ok(text) => Value::String(STANDARD.encode(text)),
        Err(error) => Value::String(STANDARD.encode(error.into_bytes())),
    }
}
