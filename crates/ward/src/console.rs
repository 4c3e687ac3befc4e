//! What Ward says to the person in front: short lines on standard error.

use std::io::{Error, ErrorKind, Write as _};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Says one thing, prefixed so that it is not taken for the command's own output.
pub(crate) fn tell(line: &str) {
    // Where standard error is closed there is nobody to tell.
    let _ = writeln!(std::io::stderr().lock(), "ward: {line}");
}

/// Whether a command failed because nobody reads its standard output any more. Other things can be
/// closed too soon as well, so it is looked at.
pub(crate) fn is_unread(error: &anyhow::Error) -> bool {
    let broken = error.chain().any(|cause| {
        let json = cause.downcast_ref::<serde_json::Error>();
        let kind = match cause.downcast_ref::<Error>() {
            Some(error) => Some(error.kind()),
            None => json.and_then(serde_json::Error::io_error_kind),
        };
        kind == Some(ErrorKind::BrokenPipe)
    });
    let stdout = std::io::stdout();
    let mut looked = [PollFd::new(&stdout, PollFlags::OUT)];
    broken
        && poll(&mut looked, Some(&Timespec::default())).is_ok()
        && looked.iter().any(|stdout| {
            let gone = PollFlags::ERR | PollFlags::HUP;
            stdout.revents().intersects(gone)
        })
}

/// A name that a confined command may have chosen, made fit for a terminal: control characters
/// that could move the cursor or forge a line are written out.
pub(crate) fn printable(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for character in name.chars() {
        if character.is_control() || is_bidirectional(character) || is_unseen(character) {
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

/// Characters that take no room, so that two names look like one, and those that end a line.
fn is_unseen(character: char) -> bool {
    matches!(
        character,
        '\u{200b}' | '\u{2028}' | '\u{2029}' | '\u{2060}' | '\u{feff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_move_the_cursor_or_forge_a_line() {
        assert_eq!(printable("a\u{200b}b\u{feff}"), "a\\u{200b}b\\u{feff}");
        assert_eq!(
            printable("a\u{1b}[2Jb\nward: all is well\u{202e}é"),
            "a\\u{1b}[2Jb\\nward: all is well\\u{202e}é"
        );
    }
}
