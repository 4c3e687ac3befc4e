//! Reads a file of rules, and tells every mistake in it with its line.

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::decision::Verdict;
use crate::mistake::{Mistake, Weight, closest};
use crate::pattern::Pattern;
use crate::rule::{Origin, Rule, Source, line_of};

const HOW: &str = "A rule is `[[rules]]` with one of `allow`, `ask` or `deny`, and a `reason`.";
const KEYS: [&str; 4] = ["allow", "ask", "deny", "reason"];

/// The rules of a file, or all of its mistakes. `ward.toml` may hold more than rules, but nothing
/// else is known yet.
pub(crate) fn read(text: &str, file: &str, source: Source) -> Result<Vec<Rule>, Vec<Mistake>> {
    let mut reading = Reading {
        text,
        file,
        source,
        rules: Vec::new(),
        mistakes: Vec::new(),
    };
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let at = error.span().map_or(0, |span| span.start);
        let what = error.message().replace('\n', " ");
        reading.mistake(at, format!("{what}."), HOW);
    }
    // What could be made of the rest would only add what follows from these.
    if errors.is_empty() {
        reading.file(table.get_ref());
    }
    let Reading {
        rules,
        mut mistakes,
        ..
    } = reading;
    if mistakes.is_empty() {
        return Ok(rules);
    }
    mistakes.sort_by_key(|mistake| mistake.line);
    Err(mistakes)
}

struct Reading<'t> {
    text: &'t str,
    file: &'t str,
    source: Source,
    rules: Vec<Rule>,
    mistakes: Vec<Mistake>,
}

impl Reading<'_> {
    fn mistake(&mut self, at: usize, what: impl Into<String>, hint: impl Into<String>) {
        self.mistakes.push(Mistake {
            file: self.file.to_owned(),
            line: line_of(self.text, at),
            weight: Weight::Error,
            what: what.into(),
            hint: hint.into(),
        });
    }

    fn file(&mut self, table: &DeTable<'_>) {
        for (key, value) in table {
            if key.get_ref() != "rules" {
                let what = format!("unknown key `{}`, expected `rules`.", shown(key));
                self.mistake(key.span().start, what, HOW);
                continue;
            }
            let DeValue::Array(rules) = value.get_ref() else {
                self.mistake(key.span().start, "`rules` is no list of rules.", HOW);
                continue;
            };
            for rule in rules {
                match rule.get_ref() {
                    DeValue::Table(table) => self.rule(rule.span().start, table),
                    _ => self.mistake(rule.span().start, "This is no rule.", HOW),
                }
            }
        }
    }

    fn rule(&mut self, start: usize, table: &DeTable<'_>) {
        let mut said = Vec::new();
        let mut reason = "";
        let before = self.mistakes.len();
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            let verdict = match name {
                "allow" => Some(Verdict::Allow),
                "ask" => Some(Verdict::Ask),
                "deny" => Some(Verdict::Deny),
                "reason" => None,
                _ => {
                    let meant = closest(name, KEYS.into_iter());
                    let hint = match meant {
                        Some(meant) => format!("Did you mean `{meant}`? {HOW}"),
                        None => HOW.to_owned(),
                    };
                    let what = format!("unknown key `{}`.", shown(key));
                    self.mistake(key.span().start, what, hint);
                    continue;
                }
            };
            match (value.get_ref(), verdict) {
                (DeValue::String(pattern), Some(verdict)) => {
                    said.push((verdict, pattern, value.span().start));
                }
                (DeValue::String(text), None) => reason = text,
                (_, _) => {
                    let what = format!("`{name}` is no text.");
                    let hint = "Write it in quotes: `deny = \"fs.write\"`.";
                    self.mistake(value.span().start, what, hint);
                }
            }
        }
        // A key with a mistake in it may be the one that is missing.
        let is_odd = self.mistakes.len() > before;
        if said.len() > 1 || (said.is_empty() && !is_odd) {
            self.mistake(
                start,
                "A rule says exactly one of `allow`, `ask` and `deny`.",
                "Write one `[[rules]]` for each.",
            );
        }
        for (verdict, pattern, at) in said {
            match Pattern::parse(pattern) {
                Ok(pattern) => self.rules.push(Rule {
                    verdict,
                    pattern,
                    reason: reason.to_owned(),
                    origin: Origin {
                        source: self.source,
                        file: self.file.to_owned(),
                        line: line_of(self.text, at),
                    },
                }),
                Err(error) => self.mistake(at, error.to_string(), error.hint()),
            }
        }
    }
}

/// A key as it is told: not more of it than a person reads.
fn shown(key: &Spanned<DeString<'_>>) -> String {
    key.get_ref().chars().take(100).collect()
}
