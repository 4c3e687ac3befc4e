//! What Ward says to the person in front: short lines on standard error.

use std::io::Write as _;

/// Says one thing, prefixed so that it is not taken for the command's own output.
pub(crate) fn tell(line: &str) {
    // Where standard error is closed there is nobody to tell.
    let _ = writeln!(std::io::stderr().lock(), "ward: {line}");
}

/// A name that a confined command may have chosen, made fit for a terminal: control characters
/// that could move the cursor or forge a line are written out.
pub(crate) fn printable(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for character in name.chars() {
        if character.is_control() || is_bidirectional(character) {
            text.extend(character.escape_default());
        } else {
            text.push(character);
        }
    }
    text
}

/// Characters that reorder the text around them, so that it reads as something else.
fn is_bidirectional(character: char) -> bool {
    matches!(character, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_move_the_cursor_or_forge_a_line() {
        assert_eq!(
            printable("a\u{1b}[2Jb\nward: all is well\u{202e}é"),
            "a\\u{1b}[2Jb\\nward: all is well\\u{202e}é"
        );
    }
}
