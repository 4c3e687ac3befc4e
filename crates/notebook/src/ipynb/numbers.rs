//! Files as text, with the numbers in them that a [`Value`] cannot hold.
//!
//! Python's integers have as many digits as they need, and its `json` writes and reads `NaN`,
//! `Infinity` and `-Infinity`, which are no JSON. So that such a file goes out as it came, a number
//! that would not is held as a string: [`MARK`], two characters that nobody sees, and the number as
//! it is written. A string that begins so itself is held behind the mark and a quote. What is text
//! to Ward, such as what a cell says, is text and never held: [`text`] and [`held`] are the way out
//! and in.
//!
//! Anybody may write such a string into what is said about a cell. That is why nothing goes out bare
//! that is not one of these numbers to the letter.

use std::borrow::Cow;

use serde_json::{Map, Number, Value};

use super::BadFile;
use super::scan::{Found, found, is_number};
use crate::free::Unkept;

/// What a string begins with that is a number: an invisible separator, and an invisible times.
const MARK: &str = "\u{2063}\u{2062}";

/// What a text says that is a file of Jupyter's. No number in it loses anything.
pub fn parse(text: &str) -> Result<Map<String, Value>, BadFile> {
    match parse_value(text)? {
        Value::Object(file) => Ok(file),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(BadFile::NoObject)
        }
    }
}

/// The same for any JSON.
pub fn parse_value(text: &str) -> Result<Value, BadFile> {
    let readable = readable(text)?;
    serde_json::from_str(&readable).map_err(|error| {
        let place = format!(" at line {} column {}", error.line(), error.column());
        let why = error.to_string();
        BadFile::NoJson {
            line: error.line(),
            column: column(text, &error),
            why: why.strip_suffix(&place).unwrap_or(&why).to_owned(),
        }
    })
}

/// A file as text, in one line.
#[must_use]
pub fn to_text(file: &Map<String, Value>) -> String {
    let mut out = String::new();
    write_object(file, None, &mut out);
    out
}

/// A value of a file as text, in one line.
#[must_use]
pub fn value_to_text(value: &Value) -> String {
    let mut out = String::new();
    write_value(value, None, &mut out);
    out
}

/// A file as text, line by line and indented as Jupyter does.
#[must_use]
pub fn to_lines(file: &Map<String, Value>) -> String {
    let mut out = String::new();
    write_object(file, Some(0), &mut out);
    out.push('\n');
    out
}

/// What a string is.
enum Held<'a> {
    /// Itself.
    Text(&'a str),
    /// A number, as it is written.
    Number(&'a str),
}

impl<'a> Held<'a> {
    fn of(string: &'a str) -> Self {
        let Some(rest) = string.strip_prefix(MARK) else {
            return Self::Text(string);
        };
        match rest.strip_prefix('"') {
            Some(text) if text.starts_with(MARK) => Self::Text(text),
            _ if is_beyond(rest) => Self::Number(rest),
            _ => Self::Text(string),
        }
    }
}

/// The text that a value of a file is, where it is one.
pub(super) fn text(value: &Value) -> Option<&str> {
    match Held::of(value.as_str()?) {
        Held::Text(text) => Some(text),
        Held::Number(_) => None,
    }
}

/// Text as a value of a file.
pub(super) fn held(text: &str) -> Value {
    Value::String(match text.starts_with(MARK) {
        true => format!("{MARK}\"{text}"),
        false => text.to_owned(),
    })
}

/// Whether this is a number, as it is written, that a [`Value`] would not give back.
fn is_beyond(written: &str) -> bool {
    if matches!(written, "NaN" | "Infinity" | "-Infinity") {
        return true;
    }
    if !is_number(written) {
        return false;
    }
    match written.contains(['.', 'e', 'E']) {
        // Without an exponent it takes more than 300 digits to be too large.
        true if written.len() <= 300 && !written.contains(['e', 'E']) => false,
        true => serde_json::from_str::<Number>(written).is_err(),
        // Read as a floating-point number, because of its sign.
        false if written == "-0" => true,
        // All of so few digits fit.
        false if written.len() <= 18 => false,
        false => written.parse::<i64>().is_err() && written.parse::<u64>().is_err(),
    }
}

/// The text with each number that is to be held as the string that holds it.
fn readable(text: &str) -> Result<Cow<'_, str>, BadFile> {
    let mut out = String::new();
    let mut done = 0;
    for found in found(text) {
        let until = |at: usize| text.get(done..at).unwrap_or_default();
        match found {
            Found::Word { at, written } if is_beyond(written) => {
                out.extend([until(at), "\"", MARK, written, "\""]);
                done = at + written.len();
            }
            Found::Word { .. } => {}
            Found::Marked { at } => {
                out.extend([until(at), MARK, "\\\""]);
                done = at;
            }
            Found::Deep { line } => {
                return Err(BadFile::Unkept {
                    place: format!("line {line}"),
                    what: Unkept::Deep,
                });
            }
        }
    }
    if done == 0 {
        return Ok(Cow::Borrowed(text));
    }
    out.push_str(text.get(done..).unwrap_or_default());
    Ok(Cow::Owned(out))
}

/// Where in its line the text could not be read on, in characters: [`readable`] is longer, and the
/// error counts its bytes.
fn column(text: &str, error: &serde_json::Error) -> usize {
    let lines = text.split_inclusive('\n');
    let before: usize = lines
        .take(error.line().saturating_sub(1))
        .map(str::len)
        .sum();
    let mut end = error.column();
    for found in found(text) {
        let (at, more) = match found {
            Found::Word { at, written } if is_beyond(written) => (at, MARK.len() + 2),
            Found::Marked { at } => (at, MARK.len() + 2),
            Found::Word { .. } | Found::Deep { .. } => continue,
        };
        // All before the end is as in the text by now, so that the two can be compared.
        match at.checked_sub(before) {
            None => {}
            Some(at) if at + 1 < end => end = end.saturating_sub(more).max(at + 1),
            Some(_) => break,
        }
    }
    let read = text.as_bytes().get(before..).unwrap_or_default();
    let is_first = |byte: &&u8| **byte & 0xc0 != 0x80;
    read.iter().take(end).filter(is_first).count().max(1)
}

/// How far what is inside is indented, where it is on lines of its own.
fn inside(indent: Option<usize>) -> Option<usize> {
    indent.map(|indent| indent + 1)
}

fn write_object(fields: &Map<String, Value>, indent: Option<usize>, out: &mut String) {
    out.push('{');
    for (number, (name, value)) in fields.iter().enumerate() {
        begin(number > 0, inside(indent), out);
        write_string(name, out);
        out.push_str(if indent.is_some() { ": " } else { ":" });
        write_value(value, inside(indent), out);
    }
    end(fields.is_empty(), indent, out);
    out.push('}');
}

fn write_value(value: &Value, indent: Option<usize>, out: &mut String) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => out.push_str(&value.to_string()),
        Value::String(string) => match Held::of(string) {
            Held::Text(text) => write_string(text, out),
            Held::Number(written) => out.push_str(written),
        },
        Value::Array(values) => {
            out.push('[');
            for (number, value) in values.iter().enumerate() {
                begin(number > 0, inside(indent), out);
                write_value(value, inside(indent), out);
            }
            end(values.is_empty(), indent, out);
            out.push(']');
        }
        Value::Object(fields) => write_object(fields, indent, out),
    }
}

/// Before each thing that is inside of another.
fn begin(follows: bool, indent: Option<usize>, out: &mut String) {
    if follows {
        out.push(',');
    }
    new_line(indent, out);
}

/// After the last of them.
fn end(is_empty: bool, indent: Option<usize>, out: &mut String) {
    if !is_empty {
        new_line(indent, out);
    }
}

fn new_line(indent: Option<usize>, out: &mut String) {
    if let Some(indent) = indent {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', indent));
    }
}

fn write_string(text: &str, out: &mut String) {
    // Text can always be written.
    out.push_str(&serde_json::to_string(text).unwrap_or_default());
}
