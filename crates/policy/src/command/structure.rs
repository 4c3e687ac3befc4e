//! Whether the commands of a line stand where a shell takes them: `&& ls`, `ls | | ls` and `ls; fi`
//! are no lines, and what a shell cannot read is not known.

/// What has been read so far, as far as it says what may come next.
#[derive(Debug, Default)]
pub(super) struct Structure {
    last: Last,
    open: Vec<Open>,
    /// How many of these are parentheses.
    parentheses: usize,
    /// Something was met that is not followed here, and is a doubt anyway.
    loose: bool,
    wrong: bool,
}

/// What stands before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Last {
    /// Nothing, or what ends a command: another may follow, or none.
    #[default]
    Nothing,
    /// What has to be followed by a command.
    Wants,
    /// `|`, which has to be as well, but not by `!`.
    Piped,
    /// A command.
    Command,
    /// The end of a group, a loop or a condition.
    Closed,
}

/// What is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Parenthesis,
    Brace,
    If,
    Then,
    Else,
    Loop,
    Do,
}

impl Structure {
    /// A word, an assignment or a redirection of a command.
    pub(super) fn command(&mut self) {
        self.expect(self.last != Last::Closed);
        self.last = Last::Command;
    }

    /// A redirection, which may follow a group as well.
    pub(super) fn redirection(&mut self) {
        if self.last != Last::Closed {
            self.last = Last::Command;
        }
    }

    /// `&&` and `||`, between two commands.
    pub(super) fn joined(&mut self) {
        self.ended();
        self.last = Last::Wants;
    }

    /// `|` and `|&`, between two commands.
    pub(super) fn piped(&mut self) {
        self.ended();
        self.last = Last::Piped;
    }

    /// `;` and `&`, behind a command.
    pub(super) fn ended(&mut self) {
        self.expect(matches!(self.last, Last::Command | Last::Closed));
        self.last = Last::Nothing;
    }

    /// A new line, which ends a command where there is one.
    pub(super) fn line(&mut self) {
        if !matches!(self.last, Last::Wants | Last::Piped) {
            self.last = Last::Nothing;
        }
    }

    /// `(`, where a command would begin.
    pub(super) fn opened(&mut self) {
        self.begin(Open::Parenthesis);
        self.parentheses += 1;
    }

    /// `)` of such a one; no where none is open.
    pub(super) fn closed(&mut self) -> bool {
        if self.parentheses == 0 {
            return false;
        }
        if self.last == Last::Command {
            self.last = Last::Nothing;
        }
        self.end(&[Open::Parenthesis]);
        true
    }

    /// A word that means something to the shell where a command would begin.
    pub(super) fn keyword(&mut self, word: &str) {
        match word {
            "!" => {
                self.expect(matches!(self.last, Last::Nothing | Last::Wants));
                self.last = Last::Wants;
            }
            "{" => self.begin(Open::Brace),
            "}" => self.end(&[Open::Brace]),
            "if" => self.begin(Open::If),
            "then" => self.turn(&[Open::If], Open::Then),
            "elif" => self.turn(&[Open::Then], Open::If),
            "else" => self.turn(&[Open::Then], Open::Else),
            "fi" => self.end(&[Open::Then, Open::Else]),
            "while" | "until" => self.begin(Open::Loop),
            "for" => {
                self.begin(Open::Loop);
                // Its variable and words are read with it.
                self.last = Last::Command;
            }
            "do" => self.turn(&[Open::Loop], Open::Do),
            "done" => self.end(&[Open::Do]),
            _ => self.loosen(),
        }
    }

    /// Whether a group, a loop or a condition has just ended.
    pub(super) fn is_closed(&self) -> bool {
        self.last == Last::Closed
    }

    /// Whether this stands between two commands, and in nothing.
    pub(super) fn is_between(&self) -> bool {
        self.open.is_empty() && !self.loose && self.last != Last::Piped
    }

    /// What stands nowhere but in what is not followed here: `;;`.
    pub(super) fn misplaced(&mut self) {
        self.wrong = true;
    }

    /// From here on nothing is expected any more.
    pub(super) fn loosen(&mut self) {
        self.loose = true;
    }

    /// Whether the line is one, now that it ends.
    pub(super) fn is_whole(&self) -> bool {
        if self.loose {
            return self.parentheses == 0;
        }
        let wants = matches!(self.last, Last::Wants | Last::Piped);
        !self.wrong && self.open.is_empty() && !wants
    }

    fn begin(&mut self, what: Open) {
        self.expect(!matches!(self.last, Last::Command | Last::Closed));
        self.open.push(what);
        self.last = Last::Wants;
    }

    /// The next part of what is open.
    fn turn(&mut self, from: &[Open], to: Open) {
        self.end(from);
        self.open.push(to);
        self.last = Last::Wants;
    }

    /// The end of what is open.
    fn end(&mut self, from: &[Open]) {
        self.expect(matches!(self.last, Last::Nothing | Last::Closed));
        let open = self.open.pop();
        if open == Some(Open::Parenthesis) {
            self.parentheses -= 1;
        }
        self.expect(open.is_some_and(|open| from.contains(&open)));
        self.last = Last::Closed;
    }

    fn expect(&mut self, holds: bool) {
        self.wrong |= !holds;
    }
}
