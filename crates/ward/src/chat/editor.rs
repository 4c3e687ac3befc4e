//! The line that a person types: of several rows if need be, with those that were typed before.
//!
//! It is our own because a question takes single keys in the middle of a line, and the agent's words
//! come above it as they are said; the line editors at hand do one or the other.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation as _;

use super::history::History;
use super::text::width;

/// A line under way.
#[derive(Debug, Default)]
pub(crate) struct Editor {
    text: String,
    /// In bytes, between two characters as people count them.
    cursor: usize,
    /// What was cut last.
    cut: String,
    /// Which of the earlier lines is shown, counted from the last, and what was typed before.
    earlier: Option<(usize, String)>,
}

/// What came of a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    /// The line is complete.
    Line(String),
    /// It is another, or the cursor is elsewhere.
    Edited,
    /// The key means nothing here.
    Nothing,
}

impl Editor {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.set(String::new());
        self.earlier = None;
    }

    pub(crate) fn set(&mut self, text: String) {
        self.cursor = text.len();
        self.text = text;
    }

    /// Puts text where the cursor is, as a paste does. What a terminal would act on is left out.
    pub(crate) fn insert(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let text: String = text
            .replace('\t', "    ")
            .chars()
            .filter(|character| *character == '\n' || !character.is_control())
            .collect();
        self.text.insert_str(self.cursor, &text);
        self.cursor += text.len();
    }

    pub(crate) fn key(&mut self, key: KeyEvent, history: &History) -> Typed {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let shift = key.modifiers.contains(KeyModifiers::SHIFT);
        match key.code {
            KeyCode::Enter if alt || shift || control => self.insert("\n"),
            KeyCode::Enter if self.text[..self.cursor].ends_with('\\') => {
                self.erase(self.before());
                self.insert("\n");
            }
            KeyCode::Enter => {
                self.earlier = None;
                self.cursor = 0;
                return Typed::Line(std::mem::take(&mut self.text));
            }
            KeyCode::Backspace if alt || control => self.cut(self.word_before()..self.cursor),
            KeyCode::Backspace => self.erase(self.before()),
            KeyCode::Delete => self.erase(self.cursor..self.after()),
            KeyCode::Left if control || alt => self.cursor = self.word_before(),
            KeyCode::Right if control || alt => self.cursor = self.word_after(),
            KeyCode::Left => self.cursor = self.before().start,
            KeyCode::Right => self.cursor = self.after(),
            KeyCode::Home => self.cursor = self.line_start(),
            KeyCode::End => self.cursor = self.line_end(),
            KeyCode::Up => self.up(history),
            KeyCode::Down => self.down(history),
            KeyCode::Char(letter) if control => match letter {
                'j' => self.insert("\n"),
                'a' => self.cursor = self.line_start(),
                'e' => self.cursor = self.line_end(),
                'b' => self.cursor = self.before().start,
                'f' => self.cursor = self.after(),
                'd' => self.erase(self.cursor..self.after()),
                'h' => self.erase(self.before()),
                'k' => self.cut(self.cursor..self.line_end()),
                'u' => self.cut(self.line_start()..self.cursor),
                'w' => self.cut(self.word_before()..self.cursor),
                'y' => self.insert(&self.cut.clone()),
                'p' => self.up(history),
                'n' => self.down(history),
                _ => return Typed::Nothing,
            },
            KeyCode::Char(letter) if alt => match letter {
                'b' => self.cursor = self.word_before(),
                'f' => self.cursor = self.word_after(),
                'd' => self.cut(self.cursor..self.word_after()),
                _ => return Typed::Nothing,
            },
            KeyCode::Char(letter) => self.insert(letter.encode_utf8(&mut [0; 4])),
            _ => return Typed::Nothing,
        }
        Typed::Edited
    }

    /// Its rows, and where the cursor is in them, behind a prompt of so many columns.
    pub(crate) fn rows(&self, prompt: usize, columns: usize) -> (Vec<String>, (usize, usize)) {
        // The last column stays free: a cursor behind it would be on the next row.
        let columns = columns.saturating_sub(1).max(prompt + 4);
        let mut rows = vec![String::new()];
        let mut used = prompt;
        let mut cursor = (0, prompt);
        for (at, grapheme) in self.text.grapheme_indices(true) {
            let breaks = grapheme == "\n";
            if !breaks && used + width(grapheme) > columns {
                rows.push(String::new());
                used = prompt;
            }
            if at == self.cursor {
                cursor = (rows.len() - 1, used);
            }
            if breaks {
                rows.push(String::new());
                used = prompt;
            } else if let Some(row) = rows.last_mut() {
                row.push_str(grapheme);
                used += width(grapheme);
            }
        }
        if self.cursor >= self.text.len() {
            cursor = (rows.len() - 1, used);
        }
        (rows, cursor)
    }

    /// Up a row, or to the line that was typed before.
    fn up(&mut self, history: &History) {
        let start = self.line_start();
        if start > 0 {
            return self.go_to_row(start - 1);
        }
        let next = self.earlier.as_ref().map_or(0, |(number, _)| number + 1);
        let Some(line) = history.earlier(next) else {
            return;
        };
        let typed = match self.earlier.take() {
            Some((_, typed)) => typed,
            None => self.text.clone(),
        };
        self.set(line.to_owned());
        self.earlier = Some((next, typed));
    }

    fn down(&mut self, history: &History) {
        let end = self.line_end();
        if end < self.text.len() {
            return self.go_to_row(end + 1);
        }
        match self.earlier.take() {
            None => {}
            Some((0, typed)) => self.set(typed),
            Some((number, typed)) => {
                let line = history.earlier(number - 1).unwrap_or_default().to_owned();
                self.set(line);
                self.earlier = Some((number - 1, typed));
            }
        }
    }

    /// To the row that this place is in, as far from its beginning as now.
    fn go_to_row(&mut self, place: usize) {
        let far = self.text[self.line_start()..self.cursor]
            .graphemes(true)
            .count();
        let start = self.text[..place].rfind('\n').map_or(0, |at| at + 1);
        let end = self.text[start..]
            .find('\n')
            .map_or(self.text.len(), |at| start + at);
        let row = &self.text[start..end];
        self.cursor = row
            .grapheme_indices(true)
            .nth(far)
            .map_or(end, |(at, _)| start + at);
    }

    fn before(&self) -> std::ops::Range<usize> {
        let last = self.text[..self.cursor].grapheme_indices(true).next_back();
        last.map_or(self.cursor, |(at, _)| at)..self.cursor
    }

    fn after(&self) -> usize {
        let next = self.text[self.cursor..].graphemes(true).next();
        self.cursor + next.map_or(0, str::len)
    }

    fn word_before(&self) -> usize {
        let text = self.text[..self.cursor].trim_end();
        text.rfind(char::is_whitespace).map_or(0, |at| {
            at + text[at..].chars().next().map_or(1, char::len_utf8)
        })
    }

    fn word_after(&self) -> usize {
        let rest = &self.text[self.cursor..];
        let blanks = rest.len() - rest.trim_start().len();
        let word = rest.trim_start();
        self.cursor + blanks + word.find(char::is_whitespace).unwrap_or(word.len())
    }

    fn line_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.cursor..]
            .find('\n')
            .map_or(self.text.len(), |at| self.cursor + at)
    }

    fn cut(&mut self, range: std::ops::Range<usize>) {
        self.cut = self.text[range.clone()].to_owned();
        self.erase(range);
    }

    fn erase(&mut self, range: std::ops::Range<usize>) {
        self.cursor = range.start;
        self.text.drain(range);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &[(KeyCode, KeyModifiers)], history: &History) -> Editor {
        let mut editor = Editor::default();
        for (code, modifiers) in keys {
            editor.key(KeyEvent::new(*code, *modifiers), history);
        }
        editor
    }

    fn letters(text: &str) -> Vec<(KeyCode, KeyModifiers)> {
        text.chars()
            .map(|letter| (KeyCode::Char(letter), KeyModifiers::NONE))
            .collect()
    }

    #[test]
    fn words_are_cut_and_put_back_and_characters_are_those_that_people_see() {
        let history = History::default();
        let mut keys = letters("read e\u{301}a.txt now");
        keys.extend([
            (KeyCode::Char('w'), KeyModifiers::CONTROL),
            (KeyCode::Home, KeyModifiers::NONE),
            (KeyCode::Char('y'), KeyModifiers::CONTROL),
            (KeyCode::Char(' '), KeyModifiers::NONE),
            (KeyCode::End, KeyModifiers::NONE),
            (KeyCode::Backspace, KeyModifiers::NONE),
            (KeyCode::Left, KeyModifiers::ALT),
            (KeyCode::Delete, KeyModifiers::NONE),
        ]);
        assert_eq!(typed(&keys, &history).text(), "now read a.txt");
    }

    #[test]
    fn a_line_can_have_several_rows_and_the_cursor_moves_between_them() {
        let history = History::default();
        let mut keys = letters("first\\");
        keys.push((KeyCode::Enter, KeyModifiers::NONE));
        keys.extend(letters("second"));
        keys.push((KeyCode::Enter, KeyModifiers::ALT));
        keys.push((KeyCode::Up, KeyModifiers::NONE));
        keys.extend(letters("the "));
        let editor = typed(&keys, &history);
        assert_eq!(editor.text(), "first\nthe second\n");
        let (rows, cursor) = editor.rows(2, 40);
        assert_eq!(rows, ["first", "the second", ""]);
        assert_eq!(cursor, (1, 6));
    }

    #[test]
    fn a_row_that_is_too_long_goes_on_below() {
        let editor = typed(&letters("abcdefgh漢字"), &History::default());
        let (rows, cursor) = editor.rows(2, 9);
        assert_eq!(rows, ["abcdef", "gh漢字"]);
        assert_eq!(cursor, (1, 8));
    }

    #[test]
    fn earlier_lines_come_back_and_what_was_typed_is_not_lost() {
        let mut history = History::default();
        history.add("one");
        history.add("two");
        let mut keys = letters("draft");
        let up = (KeyCode::Up, KeyModifiers::NONE);
        let down = (KeyCode::Down, KeyModifiers::NONE);
        keys.extend([up, up, up]);
        assert_eq!(typed(&keys, &history).text(), "one");
        keys.extend([down]);
        assert_eq!(typed(&keys, &history).text(), "two");
        keys.extend([down]);
        assert_eq!(typed(&keys, &history).text(), "draft");
    }

    #[test]
    fn a_paste_is_one_line_of_several_rows_and_has_no_commands_for_the_terminal() {
        let mut editor = Editor::default();
        editor.insert("a\r\nb\u{1b}[2J\tc");
        assert_eq!(editor.text(), "a\nb[2J    c");
    }
}
