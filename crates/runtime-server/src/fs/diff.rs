//! What changed, as people read it.

use std::time::Duration;

use similar::TextDiff;

use super::MAX_TEXT;

/// The unified diff of a file, cut where it is very long.
pub(super) fn unified(path: &str, old: &str, new: &str) -> String {
    let mut diff = TextDiff::configure()
        // A worse diff in time is better than the best one too late.
        .timeout(Duration::from_millis(500))
        .diff_lines(old, new)
        .unified_diff()
        .header(&format!("a/{path}"), &format!("b/{path}"))
        .to_string();
    if diff.len() > MAX_TEXT {
        let end = diff[..floor(&diff, MAX_TEXT)]
            .rfind('\n')
            .map_or(0, |at| at + 1);
        diff.truncate(end);
        diff.push_str("… the diff is longer; read the file for the rest\n");
    }
    diff
}

/// The last place up to `at` where a character begins.
fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
