//! What changed, as people read it.

use std::fmt::Write as _;
use std::ops::Range;
use std::time::Duration;

use similar::{ChangeTag, TextDiff};

use super::MAX_TEXT;

/// Lines around each change.
const CONTEXT: usize = 3;

/// The unified diff of a file, cut where it is very long.
pub(in crate::fs) fn unified(path: &str, old: &str, new: &str) -> String {
    // Lines end in `\n` and nowhere else, or other tools could not apply the diff. `similar`
    // counts a lone `\r` as a line's end, so that both the cutting and the writing are done here.
    let lines = |text| str::split_inclusive(text, '\n').collect::<Vec<&str>>();
    let (old, new) = (lines(old), lines(new));
    let changes = TextDiff::configure()
        // A worse diff in time is better than the best one too late.
        .timeout(Duration::from_millis(500))
        .diff_slices(&old, &new);

    // What lies beyond the workspace has its whole path, which no prefix may hide.
    let mut diff = if path.starts_with('/') {
        format!("--- {path}\n+++ {path}\n")
    } else {
        format!("--- a/{path}\n+++ b/{path}\n")
    };
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
            diff.push_str(change.value());
            if !change.value().ends_with('\n') {
                diff.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
    if diff.len() > MAX_TEXT {
        let end = diff[..floor(&diff, MAX_TEXT)]
            .rfind('\n')
            .map_or(0, |at| at + 1);
        diff.truncate(end);
        diff.push_str("… the diff is longer; read the file for the rest\n");
    }
    diff
}

/// Lines from 1, as a hunk's header writes them; the line before it where there is none.
fn range(lines: Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => format!("{}", lines.start + 1),
        length => format!("{},{length}", lines.start + 1),
    }
}

/// The last place up to `at` where a character begins.
fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
