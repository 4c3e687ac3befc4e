//! Text in columns: how wide it is, where it breaks, how it is cut.

use anstyle::Style;
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

use crate::paint::paint;

/// A piece of a line in one style. Its text is fit for a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) style: Style,
    pub(crate) text: String,
}

impl Span {
    pub(crate) fn new(style: Style, text: &str) -> Self {
        let text = text.to_owned();
        Self { style, text }
    }
}

/// How many columns it takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// As much as fits into so many columns, with a mark where something is missing.
pub(crate) fn clip(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut clipped = String::new();
    let mut used = 0;
    for grapheme in text.graphemes(true) {
        used += width(grapheme);
        if used + 1 > columns {
            break;
        }
        clipped.push_str(grapheme);
    }
    clipped.push('…');
    clipped
}

/// Breaks a line between words, or within one that is too long. Every row but the first begins
/// with so many blanks.
pub(crate) fn wrap(spans: &[Span], columns: usize, hanging: usize) -> Vec<String> {
    let columns = columns.max(hanging + 8);
    let mut rows = Rows {
        rows: Vec::new(),
        row: Vec::new(),
        used: 0,
        columns,
        hanging,
    };
    // A word may be made of pieces in several styles.
    let mut word: Vec<Span> = Vec::new();
    for span in spans {
        for piece in span.text.split_inclusive(' ') {
            let (text, blank) = match piece.strip_suffix(' ') {
                Some(text) => (text, true),
                None => (piece, false),
            };
            if !text.is_empty() {
                word.push(Span {
                    style: span.style,
                    text: text.to_owned(),
                });
            }
            if blank {
                rows.word(&mut word);
                rows.blank(span.style);
            }
        }
    }
    rows.word(&mut word);
    rows.end()
}

/// A text of one style, broken between its words.
pub(crate) fn flow(style: Style, text: &str, columns: usize) -> Vec<String> {
    let lines = text.lines();
    lines
        .flat_map(|line| wrap(&[Span::new(style, line)], columns, 0))
        .collect()
}

struct Rows {
    rows: Vec<String>,
    row: Vec<Span>,
    used: usize,
    columns: usize,
    hanging: usize,
}

impl Rows {
    fn word(&mut self, word: &mut Vec<Span>) {
        let wide: usize = word.iter().map(|span| width(&span.text)).sum();
        if self.used + wide > self.columns && self.used > self.hanging {
            self.turn();
        }
        for span in word.drain(..) {
            let mut part = String::new();
            for grapheme in span.text.graphemes(true) {
                if self.used + width(grapheme) > self.columns {
                    self.put(span.style, std::mem::take(&mut part));
                    self.turn();
                }
                self.used += width(grapheme);
                part.push_str(grapheme);
            }
            self.put(span.style, part);
        }
    }

    fn blank(&mut self, style: Style) {
        // None at the end of a row.
        if self.used < self.columns {
            self.put(style, " ".to_owned());
            self.used += 1;
        }
    }

    fn put(&mut self, style: Style, text: String) {
        match self.row.last_mut() {
            Some(last) if last.style == style => last.text.push_str(&text),
            _ if text.is_empty() => {}
            _ => self.row.push(Span { style, text }),
        }
    }

    fn turn(&mut self) {
        self.rows.push(painted(&self.row));
        self.row.clear();
        self.used = self.hanging;
        if self.hanging > 0 {
            self.put(Style::new(), " ".repeat(self.hanging));
        }
    }

    fn end(mut self) -> Vec<String> {
        self.rows.push(painted(&self.row));
        self.rows
    }
}

/// A row as it is written, without blanks at its end.
pub(crate) fn painted(spans: &[Span]) -> String {
    let ended = spans.iter().rposition(|span| !span.text.trim().is_empty());
    let Some(last) = ended else {
        return String::new();
    };
    let mut row = String::new();
    for (at, span) in spans.iter().enumerate().take(last + 1) {
        let text = match at == last {
            true => span.text.trim_end(),
            false => &span.text,
        };
        row.push_str(&paint(span.style, text));
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paint::PLAIN;

    fn plain(text: &str) -> Vec<Span> {
        vec![Span::new(PLAIN, text)]
    }

    #[test]
    fn a_line_breaks_between_words_and_within_those_that_are_too_long() {
        assert_eq!(
            wrap(&plain("one two three four"), 9, 0),
            ["one two", "three", "four"]
        );
        assert_eq!(
            wrap(&plain("• abcdefghijklm no"), 10, 2),
            ["• abcdefgh", "  ijklm no"]
        );
        assert_eq!(wrap(&plain("漢字漢字漢字"), 8, 0), ["漢字漢字", "漢字"]);
    }

    #[test]
    fn what_is_cut_says_so_and_never_takes_more_than_its_columns() {
        assert_eq!(clip("short", 5), "short");
        assert_eq!(clip("longer", 5), "long…");
        assert_eq!(clip("漢字漢字", 5), "漢字…");
    }
}
