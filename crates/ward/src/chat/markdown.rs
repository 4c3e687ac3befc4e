//! Markdown as it comes: every line is rendered when it is complete, the one under way as far as it
//! is there.
//!
//! What the words are is read by `pulldown-cmark`, a line at a time; what goes on over several
//! lines, code blocks and tables, is remembered here. Everything is made printable after it was
//! read: a character that is written as an entity is only then there.

use anstyle::Style;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::text::{Span, painted, width, wrap};
use crate::console::printable;
use crate::paint::{BOLD, CYAN, DIM, PLAIN, diff, paint};

/// The widest that text is set, however wide the terminal.
const WIDEST: usize = 100;

/// A text that is still being said.
#[derive(Debug, Default)]
pub(crate) struct Markdown {
    /// The line under way.
    line: String,
    fence: Option<Fence>,
    table: Vec<String>,
}

#[derive(Debug)]
struct Fence {
    mark: char,
    length: usize,
    diff: bool,
}

impl Markdown {
    /// More of it. The rows that are complete by that.
    pub(crate) fn push(&mut self, text: &str, columns: usize) -> Vec<String> {
        let mut rows = Vec::new();
        for piece in text.split_inclusive('\n') {
            match piece.strip_suffix('\n') {
                Some(end) => {
                    self.line.push_str(end);
                    let line = std::mem::take(&mut self.line);
                    self.complete(&line, columns, &mut rows);
                }
                None => self.line.push_str(piece),
            }
        }
        rows
    }

    /// The rows of the line under way.
    pub(crate) fn partial(&self, columns: usize) -> Vec<String> {
        let line = self.line.trim_end_matches('\r');
        if line.trim().is_empty() {
            return Vec::new();
        }
        match &self.fence {
            Some(fence) => code(line, fence.diff, columns),
            None => prose(line, columns),
        }
    }

    /// It ends here, complete or not.
    pub(crate) fn finish(&mut self, columns: usize) -> Vec<String> {
        let mut rows = Vec::new();
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.complete(&line, columns, &mut rows);
        }
        self.end_table(columns, &mut rows);
        if self.fence.take().is_some() {
            rows.push(paint(DIM, "  ╰──"));
        }
        rows
    }

    fn complete(&mut self, line: &str, columns: usize, rows: &mut Vec<String>) {
        let line = line.trim_end_matches('\r');
        if let Some(fence) = &self.fence {
            if closes(line, fence) {
                self.fence = None;
                rows.push(paint(DIM, "  ╰──"));
            } else {
                rows.extend(code(line, fence.diff, columns));
            }
            return;
        }
        if line.trim_start().starts_with('|') {
            self.table.push(line.to_owned());
            return;
        }
        self.end_table(columns, rows);
        if let Some((fence, language)) = opens(line) {
            let head = format!("  ╭── {}", printable(&language));
            rows.push(paint(DIM, head.trim_end()));
            self.fence = Some(fence);
        } else if line.trim().is_empty() {
            rows.push(String::new());
        } else {
            rows.extend(prose(line, columns));
        }
    }

    fn end_table(&mut self, columns: usize, rows: &mut Vec<String>) {
        let lines = std::mem::take(&mut self.table);
        if lines.get(1).is_some_and(|line| is_divider(line)) {
            rows.extend(table(&lines));
        } else {
            rows.extend(lines.iter().flat_map(|line| prose(line, columns)));
        }
    }
}

fn opens(line: &str) -> Option<(Fence, String)> {
    let line = line.trim_start();
    let mark = line
        .chars()
        .next()
        .filter(|mark| matches!(mark, '`' | '~'))?;
    let rest = line.trim_start_matches(mark);
    let length = line.len() - rest.len();
    if length < 3 || (mark == '`' && rest.contains('`')) {
        return None;
    }
    let language = rest
        .split_whitespace()
        .next()
        .unwrap_or_default()
        .to_owned();
    let diff = matches!(language.as_str(), "diff" | "patch");
    Some((Fence { mark, length, diff }, language))
}

fn closes(line: &str, fence: &Fence) -> bool {
    let line = line.trim();
    line.len() >= fence.length && line.chars().all(|character| character == fence.mark)
}

/// A line of code: as it is, broken only where the terminal would break it.
fn code(line: &str, is_diff: bool, columns: usize) -> Vec<String> {
    let line = line.replace('\t', "    ");
    if is_diff {
        return vec![format!("  {}", diff(&line))];
    }
    let spans = [
        Span::new(PLAIN, "  "),
        Span::new(CYAN, &printable(&line).replace(' ', "\u{a0}")),
    ];
    // Blanks that do not break keep the code's own; they are plain ones again when it is written.
    let rows = wrap(&spans, columns, 2).into_iter();
    rows.map(|row| row.replace('\u{a0}', " ")).collect()
}

/// A line of text.
fn prose(line: &str, columns: usize) -> Vec<String> {
    let line = line.replace('\t', "    ");
    let text = line.trim_start();
    let indent = line.len() - text.len();
    let mut read = Read::new(indent);
    for event in Parser::new_ext(text, options()) {
        read.event(event);
    }
    if read.is_rule {
        return vec![paint(DIM, &"─".repeat(columns.min(WIDEST).min(40)))];
    }
    if !read.has_words {
        // What means something to Markdown, and nothing to see, is shown as it was written.
        read = Read::new(indent);
        read.put(PLAIN, text);
    }
    wrap(&read.spans, columns.min(WIDEST), read.hanging)
}

fn options() -> Options {
    Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

/// A line as it is read.
struct Read {
    spans: Vec<Span>,
    hanging: usize,
    styles: Vec<Style>,
    /// The numbers of the lists that it is in.
    lists: Vec<Option<u64>>,
    /// Where the links lead, and how their words began.
    links: Vec<(String, usize)>,
    has_words: bool,
    is_rule: bool,
}

impl Read {
    fn new(indent: usize) -> Self {
        let mut read = Self {
            spans: Vec::new(),
            hanging: 0,
            styles: vec![PLAIN],
            lists: Vec::new(),
            links: Vec::new(),
            has_words: false,
            is_rule: false,
        };
        read.prefix(PLAIN, &" ".repeat(indent));
        read
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => {
                self.put(self.style(), text.trim_end_matches('\n'));
            }
            Event::Code(text) => self.put(self.style().fg_color(CYAN.get_fg_color()), &text),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.put(self.style(), &text),
            Event::FootnoteReference(name) => self.put(DIM, &format!("[{name}]")),
            Event::SoftBreak | Event::HardBreak => self.put(self.style(), " "),
            Event::Rule => self.is_rule = true,
            Event::TaskListMarker(true) => self.prefix(PLAIN, "☑ "),
            Event::TaskListMarker(false) => self.prefix(PLAIN, "☐ "),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        let style = self.style();
        let style = match tag {
            Tag::Heading { level, .. } => match level as usize {
                1 => style.bold().underline(),
                _ => style.bold(),
            },
            Tag::Emphasis => style.italic(),
            Tag::Strong => style.bold(),
            Tag::Strikethrough => style.strikethrough(),
            Tag::List(number) => {
                self.lists.push(number);
                return;
            }
            Tag::Item => {
                let mark = match self.lists.last() {
                    Some(Some(number)) => format!("{number}. "),
                    _ => "• ".to_owned(),
                };
                self.prefix(DIM, &mark);
                return;
            }
            Tag::BlockQuote(_) => {
                self.prefix(DIM, "│ ");
                DIM
            }
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push((dest_url.into_string(), self.spans.len()));
                style.underline()
            }
            _ => return,
        };
        self.styles.push(style);
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_)
            | TagEnd::Emphasis
            | TagEnd::Strong
            | TagEnd::Strikethrough
            | TagEnd::BlockQuote(_) => drop(self.styles.pop()),
            TagEnd::List(_) => drop(self.lists.pop()),
            TagEnd::Link | TagEnd::Image => {
                self.styles.pop();
                // Where a link leads is always seen: its words are whatever the agent chose.
                if let Some((leads, from)) = self.links.pop() {
                    let words = self.spans.get(from..).unwrap_or_default();
                    let words: String = words.iter().map(|span| span.text.as_str()).collect();
                    if !leads.is_empty() && words != leads {
                        self.put(DIM, &format!(" ({leads})"));
                    }
                }
            }
            _ => {}
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or(PLAIN)
    }

    fn put(&mut self, style: Style, text: &str) {
        self.has_words |= !text.is_empty();
        self.spans.push(Span::new(style, &printable(text)));
    }

    /// What stands before the words; rows after the first begin below them.
    fn prefix(&mut self, style: Style, text: &str) {
        if text.is_empty() {
            return;
        }
        self.hanging += width(text);
        self.spans.push(Span::new(style, text));
    }
}

fn is_divider(line: &str) -> bool {
    let of_it = |character: char| matches!(character, '|' | '-' | ':' | ' ');
    line.contains('-') && line.chars().all(of_it)
}

fn cells(line: &str) -> Vec<Vec<Span>> {
    let line = line.trim().trim_start_matches('|');
    let line = line.strip_suffix('|').unwrap_or(line);
    let mut cells = vec![String::new()];
    let mut escaped = false;
    for character in line.chars() {
        match (character, escaped, cells.last_mut()) {
            ('|', false, _) => cells.push(String::new()),
            ('|', true, Some(cell)) => {
                cell.pop();
                cell.push('|');
            }
            (_, _, Some(cell)) => cell.push(character),
            (_, _, None) => {}
        }
        escaped = character == '\\' && !escaped;
    }
    let read = |cell: String| {
        let mut read = Read::new(0);
        for event in Parser::new_ext(cell.trim(), options()) {
            read.event(event);
        }
        read.spans
    };
    cells.into_iter().map(read).collect()
}

fn table(lines: &[String]) -> Vec<String> {
    let wide = |cell: &Vec<Span>| -> usize { cell.iter().map(|span| width(&span.text)).sum() };
    let lines = lines.iter().enumerate().filter(|(at, _)| *at != 1);
    let rows: Vec<Vec<Vec<Span>>> = lines.map(|(_, line)| cells(line)).collect();
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count)
        .map(|at| rows.iter().filter_map(|row| row.get(at)).map(wide).max())
        .map(|widest| widest.unwrap_or(0))
        .collect();
    let mut drawn = Vec::new();
    for (number, row) in rows.into_iter().enumerate() {
        let mut spans = Vec::new();
        for (at, columns) in widths.iter().enumerate() {
            let cell = row.get(at).cloned().unwrap_or_default();
            let blanks = columns.saturating_sub(wide(&cell)) + 2;
            spans.extend(cell.into_iter().map(|span| Span {
                style: if number == 0 { BOLD } else { span.style },
                ..span
            }));
            spans.push(Span::new(PLAIN, &" ".repeat(blanks)));
        }
        drawn.push(painted(&spans));
        if number == 0 {
            let rules: Vec<String> = widths.iter().map(|columns| "─".repeat(*columns)).collect();
            drawn.push(paint(DIM, &rules.join("  ")));
        }
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Styles by their name, so that a snapshot can be read.
    fn seen(rows: &[String]) -> String {
        let named = [
            ("\u{1b}[0m", "⟧"),
            ("\u{1b}[1m", "⟦b:"),
            ("\u{1b}[2m", "⟦dim:"),
            ("\u{1b}[3m", "⟦i:"),
            ("\u{1b}[4m", "⟦u:"),
            ("\u{1b}[9m", "⟦s:"),
            ("\u{1b}[31m", "⟦red:"),
            ("\u{1b}[32m", "⟦green:"),
            ("\u{1b}[36m", "⟦cyan:"),
        ];
        let mut text = rows.join("\n");
        for (code, name) in named {
            text = text.replace(code, name);
        }
        assert!(!text.contains('\u{1b}'), "{text:?}");
        text
    }

    fn rendered(text: &str, columns: usize) -> String {
        let mut markdown = Markdown::default();
        let mut rows = markdown.push(text, columns);
        rows.extend(markdown.finish(columns));
        seen(&rows)
    }

    const PAGE: &str = "# Title with *stress*\n\nA paragraph with **bold**, *italic*, ~~gone~~ and `code` that is long enough to be broken.\n\n## Lists\n- one\n  - nested item that is long enough to be broken below itself\n1. first\n2. second\n- [x] done\n- [ ] open\n\n> quoted **words**\n\n---\n```rust\nfn main() {\n\tprintln!(\"*not italic*\");\n}\n```\n~~~diff\n-old\n+new\n~~~\n| name | what |\n|------|:----:|\n| `a`  | x \\| y |\n| longer |  |\n\n[Ward](https://ward.example/) <https://b.example>\n[ref]: https://hidden.example\n<b>html</b> & &amp; done";

    #[test]
    fn a_page_is_set_for_a_terminal() {
        insta::assert_snapshot!(rendered(PAGE, 48));
    }

    #[test]
    fn it_is_the_same_however_it_is_cut_into_pieces() {
        let whole = rendered(PAGE, 48);
        let mut markdown = Markdown::default();
        let mut rows = Vec::new();
        for character in PAGE.chars() {
            rows.extend(markdown.push(&character.to_string(), 48));
            // Whatever is there of a line can be shown.
            seen(&markdown.partial(48));
        }
        rows.extend(markdown.finish(48));
        assert_eq!(seen(&rows), whole);
    }

    #[test]
    fn nothing_that_an_agent_writes_reaches_the_terminal_as_a_command() {
        let hostile = "plain \u{1b}[2J\u{1b}]0;title\u{7} text\r and \u{9b}31m\n\
            entity &#27;[2J &#x202e; &#8; &#10;forged\n\
            `code \u{1b}[31m`\n\
            ```\u{1b}[1m\n\u{1b}[H code \u{202e}\u{8}\n```\n\
            | \u{1b}[5m | b |\n|---|---|\n| c | &#27;c |\n\
            [words\u{1b}[0m](https://x.example/\u{1b}]8;;evil)\n\
            ```diff\n+\u{1b}[2Jadded\n```";
        insta::assert_snapshot!(rendered(hostile, 60));
    }
}
