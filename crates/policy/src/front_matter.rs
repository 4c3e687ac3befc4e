//! The YAML between `---` lines at the head of a Markdown file, with the line of every key.
//!
//! Read from saphyr's events into a small tree of our own: it keeps the lines, refuses anchors and
//! deep nesting, and does not recurse.

use saphyr_parser::{Event, Parser};

use crate::mistake::{Mistake, Weight};
use crate::tools;

/// How deep a front matter may nest.
const DEEPEST: usize = 8;

/// The head of a file, and its body.
#[derive(Debug)]
pub(crate) struct FrontMatter {
    root: Vec<Entry>,
    pub(crate) body: String,
}

/// A key, its line, its value.
pub(crate) type Entry = (String, usize, Node);

/// A value and the line it is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) line: usize,
    pub(crate) value: Value,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

impl FrontMatter {
    pub(crate) fn read(text: &str, file: &str) -> Result<Self, Vec<Mistake>> {
        let mistake = |line, what: String, hint: &str| {
            vec![Mistake {
                file: file.to_owned(),
                line,
                weight: Weight::Error,
                what,
                hint: hint.to_owned(),
            }]
        };
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut lines = text.split_inclusive('\n');
        if lines.next().map(str::trim_end) != Some("---") {
            let hint =
                "Begin with `---`, then `name:` and `skills:`, then `---` and the instructions.";
            return Err(mistake(1, "The file has no front matter.".to_owned(), hint));
        }
        // The first line stays blank, so that the parser's lines are the file's.
        let mut yaml = "\n".to_owned();
        let mut closed = false;
        for line in lines.by_ref() {
            if line.trim_end() == "---" {
                closed = true;
                break;
            }
            yaml.push_str(line);
        }
        if !closed {
            let hint = "Close it with a line `---`.";
            return Err(mistake(
                1,
                "The front matter does not end.".to_owned(),
                hint,
            ));
        }
        let root = tree(&yaml).or_else(|wrong| match quoted_description(&yaml) {
            Some(yaml) if tools::are_of(file) => tree(&yaml).map_err(|_| wrong),
            Some(_) | None => Err(wrong),
        });
        let root = root.map_err(|(line, what)| mistake(line, what, "Write it as plain YAML."))?;
        Ok(Self {
            root,
            body: lines.collect::<String>().trim().to_owned(),
        })
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (&str, usize, &Node)> {
        self.root
            .iter()
            .map(|(key, line, node)| (key.as_str(), *line, node))
    }
}

impl Node {
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            Value::List(_) | Value::Map(_) => None,
        }
    }

    /// Its keys; none where it has no keys, or is no map.
    pub(crate) fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Map(entries) => entries,
            Value::Text(_) | Value::List(_) => &[],
        }
    }

    pub(crate) fn is_map(&self) -> bool {
        matches!(self.value, Value::Map(_))
    }

    /// The words of a list, or of a text that lists them with commas or blanks; what is in
    /// parentheses stays together.
    pub(crate) fn words(&self) -> Vec<(String, usize)> {
        match &self.value {
            // An empty value is written `~`.
            Value::Text(text) if text == "~" => Vec::new(),
            Value::Text(text) => split(text)
                .into_iter()
                .map(|word| (word, self.line))
                .collect(),
            Value::List(nodes) => nodes.iter().map(|node| (node.shown(), node.line)).collect(),
            Value::Map(_) => vec![(self.shown(), self.line)],
        }
    }

    /// A word of a list. `- net: x` is a map by accident, and is told as it is written: as an unknown
    /// action.
    fn shown(&self) -> String {
        match &self.value {
            Value::Text(text) => text.trim().to_owned(),
            Value::Map(entries) => match entries.first() {
                Some((key, _, value)) => format!("{key}: {}", value.text().unwrap_or("…")),
                None => "{}".to_owned(),
            },
            Value::List(_) => "…".to_owned(),
        }
    }
}

/// The same with the rest of the line as the text of `description`: files of Claude Code write whole
/// dialogues there without quoting them.
fn quoted_description(yaml: &str) -> Option<String> {
    let quote = |line: &str| {
        let text = line.strip_prefix("description:")?.trim();
        let text = text.replace('\'', "''");
        Some(format!("description: '{text}'"))
    };
    let lines: Vec<String> = yaml
        .split('\n')
        .map(|line| quote(line).unwrap_or_else(|| line.to_owned()))
        .collect();
    let quoted = lines.join("\n");
    (quoted != yaml).then_some(quoted)
}

fn split(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut open = 0_usize;
    for char in text.chars() {
        match char {
            '(' => open += 1,
            ')' => open = open.saturating_sub(1),
            _ => {}
        }
        match words.last_mut() {
            Some(word) if open > 0 || !(char == ',' || char.is_whitespace()) => word.push(char),
            Some(_) | None => words.push(String::new()),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// A list or map that is not complete yet.
enum Open {
    List(usize, Vec<Node>),
    Map(usize, Vec<Entry>, Option<(String, usize)>),
}

fn tree(yaml: &str) -> Result<Vec<Entry>, (usize, String)> {
    let mut open: Vec<Open> = Vec::new();
    let mut root = None;
    for event in Parser::new_from_str(yaml) {
        let (event, span) = event.map_err(|error| {
            (
                error.marker().line(),
                format!("The front matter is not YAML: {}.", error.info()),
            )
        })?;
        let line = span.start.line();
        let done = match event {
            Event::SequenceStart(..) | Event::MappingStart(..) if open.len() >= DEEPEST => {
                return Err((line, "The front matter nests too deep.".to_owned()));
            }
            Event::SequenceStart(..) => {
                open.push(Open::List(line, Vec::new()));
                continue;
            }
            Event::MappingStart(..) => {
                open.push(Open::Map(line, Vec::new(), None));
                continue;
            }
            Event::Alias(_) => {
                return Err((
                    line,
                    "The front matter uses an alias, which is not understood.".to_owned(),
                ));
            }
            Event::Scalar(text, ..) => Node {
                line,
                value: Value::Text(text.into_owned()),
            },
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(Open::List(line, nodes)) => Node {
                    line,
                    value: Value::List(nodes),
                },
                Some(Open::Map(line, entries, _)) => Node {
                    line,
                    value: Value::Map(entries),
                },
                None => continue,
            },
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => continue,
        };
        match open.last_mut() {
            None if root.is_some() => {
                return Err((done.line, "The front matter has a second part.".to_owned()));
            }
            None => match done.value {
                Value::Map(entries) => root = Some(entries),
                Value::Text(_) | Value::List(_) => {
                    return Err((
                        done.line,
                        "The front matter is not a list of keys.".to_owned(),
                    ));
                }
            },
            Some(Open::List(_, nodes)) => nodes.push(done),
            Some(Open::Map(_, entries, key)) => match key.take() {
                Some((name, line)) => {
                    if entries.iter().any(|(known, ..)| *known == name) {
                        return Err((line, format!("The key `{name}` is there twice.")));
                    }
                    entries.push((name, line, done));
                }
                None => match done.value {
                    Value::Text(name) => *key = Some((name, done.line)),
                    Value::List(_) | Value::Map(_) => {
                        return Err((done.line, "A key has to be a word.".to_owned()));
                    }
                },
            },
        }
    }
    Ok(root.unwrap_or_default())
}
