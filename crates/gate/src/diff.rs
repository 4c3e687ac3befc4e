//! What changes, as people read it in terminals and pages. Who wrote the content may want to
//! deceive: nothing in it moves a cursor, hides or reorders text.

use std::fmt::Write as _;
use std::ops::Range;
use std::time::Duration;

use similar::{ChangeTag, TextDiff};

/// Lines around each change.
const CONTEXT: usize = 3;

/// The unified diff of a file, with all that is invisible made visible, cut after `most` bytes.
pub(crate) fn unified(path: &str, old: &str, new: &str, most: usize) -> String {
    // Lines end in `\n` and nowhere else, as for the tools that apply a diff.
    let lines = |text| str::split_inclusive(text, '\n').collect::<Vec<&str>>();
    let (old, new) = (lines(old), lines(new));
    let changes = TextDiff::configure()
        // A worse diff in time is better than the best one too late.
        .timeout(Duration::from_millis(500))
        .diff_slices(&old, &new);
    let mut diff = header(path);
    for hunk in changes.grouped_ops(CONTEXT) {
        let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else {
            continue;
        };
        let _ = writeln!(
            diff,
            "@@ -{} +{} @@",
            range(first.old_range().start..last.old_range().end),
            range(first.new_range().start..last.new_range().end)
        );
        for change in hunk.iter().flat_map(|op| changes.iter_changes(op)) {
            diff.push(match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            });
            push_visible(&mut diff, change.value());
            if !change.value().ends_with('\n') {
                diff.push_str("\n\\ No newline at end of file\n");
            }
        }
        if diff.len() > most {
            break;
        }
    }
    cut(diff, most)
}

/// The two lines above the hunks of a file.
pub(crate) fn header(path: &str) -> String {
    let path = name(path.trim_start_matches('/'));
    format!("--- a/{path}\n+++ b/{path}\n")
}

/// A path on one line.
pub(crate) fn name(path: &str) -> String {
    let mut shown = String::with_capacity(path.len());
    push_visible(&mut shown, path);
    shown.replace('\n', "\\u{a}").replace('\t', "\\u{9}")
}

/// The text with all that is invisible made visible, cut after `most` bytes.
pub(crate) fn visible(text: &str, most: usize) -> String {
    let mut shown = String::with_capacity(text.len().min(most) + 8);
    // Escapes only make it longer.
    let end = floor(text, most.saturating_add(1));
    push_visible(&mut shown, text.get(..end).unwrap_or_default());
    cut(shown, most)
}

fn push_visible(out: &mut String, text: &str) {
    for char in text.chars() {
        if is_seen(char) {
            out.push(char);
        } else {
            let _ = write!(out, "\\u{{{:x}}}", u32::from(char));
        }
    }
}

/// Whether a character shows as itself and changes nothing about those beside it.
fn is_seen(char: char) -> bool {
    match char {
        '\n' | '\t' => true,
        // Soft hyphens, joiners, fillers, marks and overrides of direction, separators of lines,
        // variation by tags: what has no width, or changes the order of what has.
        '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'..='\u{1160}'
        | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{3164}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}' => false,
        char => !char.is_control(),
    }
}

/// Cuts behind a line's end, and says so.
fn cut(mut text: String, most: usize) -> String {
    if text.len() > most {
        let start = floor(&text, most);
        let end = text.get(..start).and_then(|text| text.rfind('\n'));
        text.truncate(end.map_or(start, |at| at + 1));
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str("… and more\n");
    }
    text
}

/// The last place up to `at` where a character begins, or the end.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Lines from 1, as a hunk's header writes them; the line before it where there is none.
fn range(lines: Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => format!("{}", lines.start + 1),
        length => format!("{},{length}", lines.start + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_is_one_that_tools_can_read() {
        assert_eq!(
            unified("src/a.rs", "one\ntwo\nthree\n", "one\n2\nthree", 1000),
            "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,3 +1,3 @@\n one\n-two\n-three\n+2\n+three\n\\ No newline at end of file\n"
        );
        assert_eq!(
            unified("a", "", "new\n", 1000),
            "--- a/a\n+++ b/a\n@@ -0,0 +1 @@\n+new\n"
        );
    }

    #[test]
    fn what_is_invisible_is_made_visible() {
        let hostile =
            "a\u{1b}[2Jb\r\u{8}\u{202e}c\u{2066}d\u{200b}\u{9b}31m\u{feff}\u{e0041}\u{7f}";
        let shown = "a\\u{1b}[2Jb\\u{d}\\u{8}\\u{202e}c\\u{2066}d\\u{200b}\\u{9b}31m\\u{feff}\\u{e0041}\\u{7f}";
        assert_eq!(visible(hostile, 1000), shown);
        assert_eq!(
            unified("x\n\u{1b}]0;", "", hostile, 1000),
            format!(
                "--- a/x\\u{{a}}\\u{{1b}}]0;\n+++ b/x\\u{{a}}\\u{{1b}}]0;\n@@ -0,0 +1 @@\n+{shown}\n\\ No newline at end of file\n"
            )
        );
        assert_eq!(visible("für 日本\t🦀\n", 1000), "für 日本\t🦀\n");
    }

    #[test]
    fn a_long_text_is_cut_behind_a_line_and_says_so() {
        assert_eq!(visible("one\ntwo\nthree\n", 9), "one\ntwo\n… and more\n");
        assert_eq!(visible("ääää", 3), "ä\n… and more\n");
        assert_eq!(visible("one\n", 4), "one\n");
        let long = unified("a", "", &"line\n".repeat(10_000), 300);
        assert!(long.len() < 400 && long.ends_with("+line\n… and more\n"));
    }
}
