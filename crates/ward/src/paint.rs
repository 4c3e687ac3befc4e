//! Colours, for what is written through a stream that leaves them out where nobody can see them.

use anstyle::{AnsiColor, Style};

use crate::console::printable;

pub(crate) const PLAIN: Style = Style::new();
pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const ITALIC: Style = Style::new().italic();
pub(crate) const RED: Style = AnsiColor::Red.on_default();
pub(crate) const GREEN: Style = AnsiColor::Green.on_default();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();
pub(crate) const CYAN: Style = AnsiColor::Cyan.on_default();

/// Text in a style. The text is written as it is: whoever did not write it makes it printable
/// first.
pub(crate) fn paint(style: Style, text: &str) -> String {
    if text.is_empty() || style == PLAIN {
        return text.to_owned();
    }
    format!("{}{text}{}", style.render(), style.render_reset())
}

/// A line of a diff, fit for a terminal.
pub(crate) fn diff(line: &str) -> String {
    let style = match line.as_bytes().first() {
        Some(b'+') => GREEN,
        Some(b'-') => RED,
        Some(b'@') => CYAN,
        _ => PLAIN,
    };
    paint(style, &printable(line))
}
