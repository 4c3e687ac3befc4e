//! Reads a line of shell into simple commands.
//!
//! All commands of a line count alike, whether they stand in a pipeline, a loop or a group. So the
//! reader only has to find where words begin and end, and whether a shell would take the line at
//! all (`structure`). What it understands is common to sh and bash; whatever else it meets becomes a doubt, and it reads on as
//! well as it can, so that a rule that denies still sees what follows.

use super::structure::Structure;
use super::unwrap::{self, Inside};
use super::variables::{assigned, is_name, steering, steering_in_shell};
use super::word::Reading;
use super::{About, DEEPEST, Input, LONGEST, Line, Redirection, Way, Word, is_own_output};
use crate::place;

/// Reads a script and adds what it would run.
pub(super) fn read(script: &str, inside: Inside<'_>, line: &mut Line) {
    if inside.depth > DEEPEST {
        line.doubt(About::Commands, "it nests too deep to be looked into");
        return;
    }
    if script.len() > LONGEST {
        line.doubt(About::Commands, "it is too long to be looked into");
        return;
    }
    if !inside.spends(script.len()) {
        line.doubt(About::Commands, "it has too many commands to look at");
        return;
    }
    let mut reader = Reader {
        chars: script.chars().collect(),
        at: 0,
        inside,
        given: line.input,
        input: line.input,
        line,
        documents: Vec::new(),
    };
    let result = reader.list(End::OfText);
    if !reader.documents.is_empty() {
        reader.doubt(ENDLESS);
    }
    if result.is_err() {
        line.doubt(About::Commands, UNREADABLE);
    }
}

const ENDLESS: &str = "its here-document does not end";

const UNREADABLE: &str = "a shell could not read it, or reads it otherwise";

/// Where a list of commands ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    OfText,
    AtParenthesis,
}

/// How far the head of a loop was read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Loop {
    /// Its variable and its words.
    Named,
    /// `do` as well.
    Begun,
}

/// The line cannot be read on from here.
pub(super) struct Unreadable;

pub(super) struct Reader<'a, 'l> {
    pub(super) chars: Vec<char>,
    pub(super) at: usize,
    pub(super) inside: Inside<'a>,
    pub(super) line: &'l mut Line,
    /// What the whole text is given to read.
    given: Input,
    /// What commands are given from here on.
    input: Input,
    /// Here-documents whose bodies begin after this line: the end, tabs stripped, expanded.
    documents: Vec<(String, bool, bool)>,
}

/// A variable that is set.
struct Variable {
    name: String,
    /// Where it is known.
    value: Option<String>,
}

/// A command while it is read.
#[derive(Default)]
struct Simple {
    variables: Vec<Variable>,
    words: Vec<Word>,
    redirects: bool,
    input: Input,
    /// After `&>`, which to sh is the end of a command and a redirection of the next.
    parted: bool,
    /// After `time`, which is a program to sh.
    timed: bool,
}

impl Reader<'_, '_> {
    pub(super) fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn list(&mut self, end: End) -> Result<(), Unreadable> {
        if self.inside.depth > DEEPEST {
            return Err(Unreadable);
        }
        let mut simple = Simple::default();
        let mut structure = Structure::default();
        while let Some(char) = self.peek(0) {
            if self.joins_operators() {
                self.doubt("a line that goes on parts an operator");
            }
            match (char, self.peek(1)) {
                (' ' | '\t', _) => self.at += 1,
                ('\\', Some('\n')) => self.at += 2,
                ('#', _) => {
                    while self.peek(0).is_some_and(|char| char != '\n') {
                        self.at += 1;
                    }
                }
                ('\n', _) => {
                    self.at += 1;
                    self.finish(&mut simple);
                    structure.line();
                    self.ends_pipeline(&structure, end);
                    self.here_documents();
                }
                (';', Some(';')) => {
                    self.at += 2;
                    self.finish(&mut simple);
                    structure.misplaced();
                }
                ('&', Some('>')) => {
                    self.at += 1;
                    self.redirection(&mut simple)?;
                    structure.redirection();
                    simple.parted = true;
                }
                ('&', Some('&')) | ('|', Some('|')) => {
                    self.at += 2;
                    self.finish(&mut simple);
                    structure.joined();
                    self.ends_pipeline(&structure, end);
                }
                ('|', next) => {
                    self.at += if next == Some('&') { 2 } else { 1 };
                    self.finish(&mut simple);
                    structure.piped();
                    self.input = Input::Given;
                }
                ('&' | ';', _) => {
                    self.at += 1;
                    self.finish(&mut simple);
                    structure.ended();
                    self.ends_pipeline(&structure, end);
                }
                ('(', next) => {
                    if !simple.words.is_empty() || !simple.variables.is_empty() {
                        self.doubt("it defines a function or an array");
                        structure.loosen();
                    } else if next == Some('(') {
                        self.doubt("it computes with `((`");
                        structure.loosen();
                    }
                    self.at += 1;
                    self.finish(&mut simple);
                    structure.opened();
                }
                (')', _) => {
                    self.at += 1;
                    self.finish(&mut simple);
                    match (structure.closed(), end) {
                        (true, _) => {}
                        (false, End::AtParenthesis) => {
                            self.look_at(&structure);
                            return Ok(());
                        }
                        (false, End::OfText) => {
                            self.doubt("a parenthesis is closed that was not open");
                        }
                    }
                }
                ('<' | '>', Some('(')) => {
                    self.at += 2;
                    self.doubt("it has a process substitution");
                    self.nested()?;
                    structure.command();
                    simple.words.push(Word::One("<(…)".to_owned()));
                }
                ('<' | '>', _) => {
                    self.opened(&mut simple, &mut structure)?;
                }
                (char, _) if char.is_ascii_digit() && self.is_descriptor() => {
                    while self.peek(0).is_some_and(|char| char.is_ascii_digit()) {
                        self.at += 1;
                    }
                    self.opened(&mut simple, &mut structure)?;
                }
                (_, _) => {
                    let word = self.word()?;
                    let descriptor = word.braces || word.is_unquoted_number();
                    if descriptor && matches!(self.peek(0), Some('<' | '>')) {
                        // `{name}>file` opens a file and is no word; nor is `2\⏎>file`.
                        self.doubt("it may name a descriptor");
                        continue;
                    }
                    self.take(word, &mut simple, &mut structure)?;
                }
            }
        }
        self.finish(&mut simple);
        match end {
            End::OfText => {
                self.look_at(&structure);
                Ok(())
            }
            End::AtParenthesis => Err(Unreadable),
        }
    }

    /// What was written into a pipe is read by its end; what follows has the input of the whole, if
    /// it is not inside something that reads from the pipe.
    fn ends_pipeline(&mut self, structure: &Structure, end: End) {
        if end == End::OfText && structure.is_between() {
            self.input = self.given;
        }
    }

    /// A redirection of a command, or of all in the group, the loop or the condition before it.
    fn opened(&mut self, simple: &mut Simple, structure: &mut Structure) -> Result<(), Unreadable> {
        if structure.is_closed() && self.peek(0) == Some('<') {
            for command in &mut self.line.commands {
                command.input = Input::Given;
            }
        }
        self.redirection(simple)?;
        structure.redirection();
        Ok(())
    }

    /// A line that is none is a doubt, but what is in it is seen.
    fn look_at(&mut self, structure: &Structure) {
        if !structure.is_whole() {
            self.doubt(UNREADABLE);
        }
    }

    /// A list inside `$(…)` or `<(…)`, whose opening has been read.
    pub(super) fn nested(&mut self) -> Result<(), Unreadable> {
        self.inside.depth += 1;
        let result = self.list(End::AtParenthesis);
        self.inside.depth -= 1;
        result
    }

    pub(super) fn doubt(&mut self, reason: &str) {
        self.line.doubt(About::Commands, reason);
    }

    /// Whether an operator is followed by a line that goes on with another: a shell joins the lines
    /// first, and may read both as one, `((` for `(⏎(`.
    fn joins_operators(&self) -> bool {
        let longer = match self.peek(0) {
            Some('(') => "(",
            Some('&') => "&>",
            Some('|') => "|&",
            Some(';') => ";&",
            Some(_) | None => return false,
        };
        let mut ahead = 1;
        while (self.peek(ahead), self.peek(ahead + 1)) == (Some('\\'), Some('\n')) {
            ahead += 2;
        }
        ahead > 1 && self.peek(ahead).is_some_and(|next| longer.contains(next))
    }

    /// Whether digits stand right before `<` or `>`.
    fn is_descriptor(&self) -> bool {
        let mut rest = self.chars[self.at..].iter();
        matches!(rest.find(|char| !char.is_ascii_digit()), Some('<' | '>'))
    }

    /// A word in its place: an assignment, a keyword of the shell, or a word of the command.
    fn take(
        &mut self,
        word: Reading,
        simple: &mut Simple,
        structure: &mut Structure,
    ) -> Result<(), Unreadable> {
        if simple.parted {
            self.doubt("sh and bash disagree on what follows `&>`");
        }
        if !simple.words.is_empty() {
            simple.words.push(word.into_word());
            return Ok(());
        }
        // Only an unquoted name and `=` assign: `"A=b/c"` is a program in the folder `A=b`.
        let unquoted = &word.text[..word.quoted.unwrap_or(word.text.len())];
        if let Some(name) = assigned(unquoted) {
            let appends = unquoted[name.len()..].starts_with('+');
            if appends || simple.timed {
                self.doubt("what is an assignment to bash is a program to sh");
            }
            let value = word.text[unquoted.find('=').map_or(0, |at| at + 1)..].to_owned();
            simple.variables.push(Variable {
                name: name.to_owned(),
                value: (!word.unknown && !appends).then_some(value),
            });
            structure.command();
            return Ok(());
        }
        if word.quoted.is_some() || !simple.variables.is_empty() || simple.redirects {
            structure.command();
            simple.words.push(word.into_word());
            return Ok(());
        }
        match word.text.as_str() {
            "if" | "then" | "else" | "elif" | "fi" | "do" | "done" | "while" | "until" | "{"
            | "}" | "!" => structure.keyword(&word.text),
            "esac" => structure.loosen(),
            "for" => {
                structure.keyword("for");
                if self.loop_variable()? == Loop::Begun {
                    structure.line();
                    structure.keyword("do");
                }
            }
            // With an option it is the program, which is unwrapped like others of its kind.
            "time" => {
                simple.timed = true;
                self.blanks_and_breaks();
                if self.peek(0) == Some('-') {
                    structure.command();
                    simple.words.push(word.into_word());
                }
            }
            "[[" => {
                self.doubt("it has a test with `[[`");
                structure.loosen();
                self.skip_test();
            }
            "case" | "select" | "coproc" => {
                self.doubt(&format!("it uses `{}`", word.text));
                structure.loosen();
            }
            "function" => {
                self.doubt("it defines a function or an array");
                structure.loosen();
                self.blanks();
                self.word()?;
            }
            _ => {
                structure.command();
                simple.words.push(word.into_word());
            }
        }
        Ok(())
    }

    /// `for NAME`, and `in WORDS` where they follow.
    fn loop_variable(&mut self) -> Result<Loop, Unreadable> {
        self.blanks();
        let name = self.word()?;
        if name.unknown || !is_name(&name.text) {
            self.doubt("its loop has no plain variable");
        } else {
            let how = steering_in_shell(&name.text, None);
            self.line.doubt_variable(&name.text, how);
        }
        self.blanks();
        // Where a word would begin, `#` begins a comment.
        let ends =
            |char: Option<char>| matches!(char, None | Some('\n' | ';' | '&' | '|' | ')' | '#'));
        if ends(self.peek(0)) {
            return Ok(Loop::Named);
        }
        match self.word()?.text.as_str() {
            "in" => self.blanks(),
            "do" => return Ok(Loop::Begun),
            _ => return Err(Unreadable),
        }
        while !ends(self.peek(0)) {
            if matches!(self.peek(0), Some('<' | '>' | '(')) {
                return Err(Unreadable);
            }
            self.word()?;
            self.blanks();
        }
        Ok(Loop::Named)
    }

    fn blanks(&mut self) {
        while matches!(self.peek(0), Some(' ' | '\t')) {
            self.at += 1;
        }
    }

    /// Blanks, also where the line goes on below.
    fn blanks_and_breaks(&mut self) {
        self.blanks();
        while (self.peek(0), self.peek(1)) == (Some('\\'), Some('\n')) {
            self.at += 2;
            self.blanks();
        }
    }

    fn skip_test(&mut self) {
        while let Some(char) = self.peek(0) {
            if char == ']' && self.peek(1) == Some(']') {
                self.at += 2;
                return;
            }
            self.at += 1;
        }
    }

    /// The end of one command: it is unwrapped and added.
    fn finish(&mut self, simple: &mut Simple) {
        let Simple {
            variables,
            words,
            input,
            timed,
            ..
        } = std::mem::take(simple);
        for Variable { name, value } in &variables {
            let how = if words.is_empty() {
                steering_in_shell(name, value.as_deref())
            } else {
                steering(name, value.as_deref())
            };
            self.line.doubt_variable(name, how);
        }
        let program = words.first().and_then(Word::known);
        if input == Input::Given && matches!(program, Some("exec" | "command" | "builtin")) {
            // `exec <file` is where all that follows reads from.
            (self.given, self.input) = (Input::Given, Input::Given);
        }
        if !words.is_empty() {
            let before = std::mem::replace(&mut self.line.input, self.input.max(input));
            let first = words.first().and_then(Word::known);
            if timed && first.is_some_and(|first| first.starts_with('-')) {
                self.doubt("what is a program to bash is an option of `time` to sh");
                let as_program = std::iter::once(Word::Known("time".to_owned()));
                let as_program = as_program.chain(words.iter().cloned()).collect();
                unwrap::command(as_program, self.inside, self.line);
            }
            unwrap::command(words, self.inside, self.line);
            self.line.input = before;
        }
    }

    fn redirection(&mut self, simple: &mut Simple) -> Result<(), Unreadable> {
        simple.redirects = true;
        let mut operator = String::new();
        while let Some(char @ ('<' | '>' | '&' | '|')) = self.peek(0) {
            let longer = format!("{operator}{char}");
            if !["<", ">", "<<", "<<<", ">>", ">|", "<>", ">&", "<&"].contains(&longer.as_str()) {
                break;
            }
            operator = longer;
            self.at += 1;
        }
        if operator.starts_with('<') {
            simple.input = Input::Given;
        }
        // A shell joins the lines first, and may then read another operator, or a comment.
        if matches!(
            (self.peek(0), self.peek(1)),
            (Some('\\'), Some('\n')) | (Some('#'), _)
        ) {
            return Err(Unreadable);
        }
        if operator == "<<" {
            let tabs = self.peek(0) == Some('-');
            self.at += usize::from(tabs);
            self.blanks();
            if self.peek(0) == Some('#') {
                return Err(Unreadable);
            }
            let start = self.at;
            let end = self.word()?;
            if end.unknown {
                return Err(Unreadable);
            }
            let is_plain = is_plain_delimiter(&end.text);
            if is_plain && !self.chars[start..self.at].contains(&'\n') {
                self.documents.push((end.text, tabs, end.quoted.is_none()));
            } else {
                // What may be in the document is read on as what may follow it.
                self.doubt("shells may differ about where its here-document ends");
            }
            return Ok(());
        }
        self.blanks();
        if matches!(
            self.peek(0),
            None | Some('\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' | '#')
        ) {
            return Err(Unreadable);
        }
        let target = self.word()?;
        // To bash `<&-` ends there: what follows is a word of the command.
        if operator.ends_with('&') && target.text.starts_with('-') && target.text != "-" {
            return Err(Unreadable);
        }
        let copies = matches!(operator.as_str(), ">&" | "<&")
            && target
                .text
                .trim_end_matches('-')
                .chars()
                .all(|char| char.is_ascii_digit());
        if operator == "<<<" || (copies && !target.unknown) {
            return Ok(());
        }
        let way = match operator.as_str() {
            "<" | "<&" => Way::Read,
            _ => Way::Write,
        };
        let shown = target.text.clone();
        let path = (!target.is_unknown()).then(|| place::absolute(self.inside.cwd, &shown));
        if path
            .as_deref()
            .is_some_and(|path| is_plain_device(way, path))
        {
            return Ok(());
        }
        let written = place::from_root(self.inside.cwd, &shown);
        let path = path.filter(|path| is_own_output(path) || !place::is_through_process(&written));
        let redirection = Redirection { way, path, shown };
        self.line.redirections.push(redirection);
        Ok(())
    }

    fn here_documents(&mut self) {
        for (end, tabs, expands) in std::mem::take(&mut self.documents) {
            let mut ended = false;
            while !ended && self.at < self.chars.len() {
                let rest = &self.chars[self.at..];
                let length = rest
                    .iter()
                    .position(|char| *char == '\n')
                    .unwrap_or(rest.len());
                let text: String = rest[..length].iter().collect();
                self.at = (self.at + length + 1).min(self.chars.len());
                let line = if tabs {
                    text.trim_start_matches('\t')
                } else {
                    &text
                };
                ended = line == end;
                if expands && line.ends_with('\\') {
                    // The next line belongs to this one, and both may be the end.
                    self.doubt("its here-document joins lines");
                }
                let substitutes = ["$(", "${", "$[", "`"];
                if expands && substitutes.iter().any(|start| line.contains(start)) {
                    self.doubt("its here-document has a substitution");
                }
            }
            if !ended {
                self.doubt(ENDLESS);
            }
        }
    }
}

/// Whether all shells compare this with the lines of a here-document in the same way: bash takes
/// tabs from its front as well, and dash ends at what stands behind a newline in it.
fn is_plain_delimiter(end: &str) -> bool {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "_-.+=:,@%/!".contains(char);
    !end.is_empty() && end.chars().all(is_plain)
}

/// Files that hold nothing, and what a command is handed open for this anyway. To write to its
/// input opens the file behind that anew.
fn is_plain_device(way: Way, path: &str) -> bool {
    match way {
        Way::Read => is_own_output(path) || matches!(path, "/dev/null" | "/dev/stdin" | "/dev/tty"),
        Way::Write => matches!(path, "/dev/null" | "/dev/tty"),
    }
}
