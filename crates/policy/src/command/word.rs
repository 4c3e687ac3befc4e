//! Reads one word of a shell line: quotes, escapes, and what a shell would put in its place.

use super::Word;
use super::line::{Reader, Unreadable, read};
use super::variables::is_name;

/// A word while it is read.
#[derive(Default)]
pub(super) struct Reading {
    pub(super) text: String,
    /// Where the first quoted piece begins.
    pub(super) quoted: Option<usize>,
    pub(super) unknown: bool,
    splits: bool,
    pub(super) braces: bool,
    globs: bool,
}

impl Reader<'_, '_> {
    pub(super) fn word(&mut self) -> Result<Reading, Unreadable> {
        let mut word = Reading::default();
        while let Some(char) = self.peek(0) {
            match char {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => break,
                '\'' => self.single_quoted(&mut word)?,
                '"' => self.double_quoted(&mut word)?,
                '\\' => {
                    match self.peek(1).ok_or(Unreadable)? {
                        '\n' => {}
                        escaped => {
                            word.quote();
                            word.text.push(escaped);
                        }
                    }
                    self.at += 2;
                }
                '$' => self.dollar(&mut word, Quotes::None)?,
                '`' => self.backquoted(&mut word)?,
                char if char.is_control() || char.is_whitespace() => return Err(Unreadable),
                char => {
                    word.globs |= matches!(char, '*' | '?' | '[');
                    word.braces |= char == '{';
                    // `~` at the start becomes a folder; so does one after `=` or `:`.
                    word.unknown |=
                        char == '~' && !word.text.ends_with(|c: char| c.is_alphanumeric());
                    word.text.push(char);
                    self.at += 1;
                }
            }
        }
        Ok(word)
    }

    fn single_quoted(&mut self, word: &mut Reading) -> Result<(), Unreadable> {
        self.at += 1;
        word.quote();
        loop {
            let char = self.peek(0).ok_or(Unreadable)?;
            self.at += 1;
            if char == '\'' {
                return Ok(());
            }
            word.text.push(char);
        }
    }

    fn double_quoted(&mut self, word: &mut Reading) -> Result<(), Unreadable> {
        self.at += 1;
        word.quote();
        loop {
            match self.peek(0).ok_or(Unreadable)? {
                '"' => {
                    self.at += 1;
                    return Ok(());
                }
                '\\' => {
                    match self.peek(1).ok_or(Unreadable)? {
                        '\n' => {}
                        char @ ('$' | '`' | '"' | '\\') => word.text.push(char),
                        char => word.text.extend(['\\', char]),
                    }
                    self.at += 2;
                }
                '$' => self.dollar(word, Quotes::Double)?,
                '`' => self.backquoted(word)?,
                char => {
                    word.text.push(char);
                    self.at += 1;
                }
            }
        }
    }

    /// `$` and what follows. A variable's value is unknown; everything else is a doubt as well.
    fn dollar(&mut self, word: &mut Reading, quotes: Quotes) -> Result<(), Unreadable> {
        let start = self.at;
        match self.peek(1) {
            Some('(') if self.skip_arithmetic() => self.doubt("it computes with `$((`"),
            Some('(') => {
                self.at += 2;
                self.doubt("it has a substitution");
                self.nested()?;
            }
            Some('{') => {
                self.at += 2;
                while self.peek(0).ok_or(Unreadable)? != '}' {
                    self.at += 1;
                }
                let name: String = self.chars[start + 2..self.at].iter().collect();
                self.at += 1;
                if !is_name(name.strip_prefix('#').unwrap_or(&name)) {
                    self.doubt("it has a substitution");
                }
            }
            Some('\'' | '"') if quotes == Quotes::None => {
                // Escapes that sh and bash read differently.
                self.doubt("it quotes with `$'` or `$\"`");
                self.at += 1;
            }
            Some('[') => {
                self.doubt("it computes with `$[`");
                self.at += 2;
            }
            Some(char) if char.is_ascii_alphabetic() || char == '_' => {
                self.at += 1;
                while self
                    .peek(0)
                    .is_some_and(|char| char.is_ascii_alphanumeric() || char == '_')
                {
                    self.at += 1;
                }
            }
            Some('0'..='9' | '@' | '*' | '#' | '?' | '-' | '$' | '!') => self.at += 2,
            // A shell joins the lines first: `$` may begin anything.
            Some('\\') if self.peek(2) == Some('\n') => {
                self.doubt("it breaks a line behind `$`");
                word.unknown = true;
                word.text.push('$');
                self.at += 1;
                return Ok(());
            }
            Some(_) | None => {
                word.text.push('$');
                self.at += 1;
                return Ok(());
            }
        }
        let written: String = self.chars[start..self.at.min(self.chars.len())]
            .iter()
            .collect();
        word.splits |= quotes == Quotes::None || written.contains('@');
        word.unknown = true;
        word.text.push_str(&written);
        Ok(())
    }

    /// `$((…))` without anything in it that could run.
    fn skip_arithmetic(&mut self) -> bool {
        let rest = &self.chars[self.at..];
        if !matches!(rest, ['$', '(', '(', ..]) {
            return false;
        }
        let is_plain =
            |char: &char| char.is_ascii_alphanumeric() || " \t_+-*/%<>=!&|^?:,$~".contains(*char);
        let length = rest[3..].iter().take_while(|char| is_plain(char)).count();
        let ends = matches!(rest[3 + length..], [')', ')', ..]);
        if ends {
            self.at += 3 + length + 2;
        }
        ends
    }

    fn backquoted(&mut self, word: &mut Reading) -> Result<(), Unreadable> {
        self.at += 1;
        self.doubt("it has a substitution");
        let mut script = String::new();
        loop {
            match (self.peek(0).ok_or(Unreadable)?, self.peek(1)) {
                ('`', _) => break,
                ('\\', Some(char @ ('`' | '\\' | '$'))) => {
                    script.push(char);
                    self.at += 2;
                }
                (char, _) => {
                    script.push(char);
                    self.at += 1;
                }
            }
        }
        self.at += 1;
        read(&script, self.inside.deeper(), self.line);
        word.unknown = true;
        word.splits = true;
        word.text.push_str(&format!("`{script}`"));
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    None,
    Double,
}

impl Reading {
    fn quote(&mut self) {
        self.quoted.get_or_insert(self.text.len());
    }

    /// `[` alone means itself, and braces expand only around a comma or two dots.
    fn becomes_several(&self) -> bool {
        (self.globs && self.text != "[")
            || (self.braces && (self.text.contains(',') || self.text.contains("..")))
    }

    pub(super) fn is_unquoted_number(&self) -> bool {
        self.quoted.is_none() && self.text.chars().all(|char| char.is_ascii_digit())
    }

    pub(super) fn is_unknown(&self) -> bool {
        self.unknown || self.becomes_several()
    }

    pub(super) fn into_word(self) -> Word {
        if self.splits || self.becomes_several() {
            Word::Some(self.text)
        } else if self.unknown {
            Word::One(self.text)
        } else {
            Word::Known(self.text)
        }
    }
}
