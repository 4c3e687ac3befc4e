//! The lines that were typed before, kept in a file of the person's own.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// How many are kept.
const MOST: usize = 1000;

/// Lines, the latest last.
#[derive(Debug, Default)]
pub(crate) struct History {
    lines: Vec<String>,
    file: Option<PathBuf>,
}

impl History {
    /// Those in this file. Without one that can be used, they are remembered until the end.
    pub(crate) fn open(file: &Path) -> Self {
        let mut text = String::new();
        let read = File::open(file).and_then(|mut opened| opened.read_to_string(&mut text));
        let mut lines: Vec<String> = match read {
            Ok(_) => text.lines().map(unescaped).collect(),
            Err(_) => Vec::new(),
        };
        if lines.len() > 2 * MOST {
            lines.drain(..lines.len() - MOST);
            let kept: String = lines.iter().map(|line| escaped(line) + "\n").collect();
            let aside = file.with_extension("new");
            // What cannot be made shorter stays long.
            let _ = private(&aside, true)
                .and_then(|mut opened| opened.write_all(kept.as_bytes()))
                .and_then(|()| std::fs::rename(&aside, file));
        }
        Self {
            lines,
            file: Some(file.to_owned()),
        }
    }

    /// The line that was typed so many before the last.
    pub(crate) fn earlier(&self, number: usize) -> Option<&str> {
        self.lines.iter().rev().nth(number).map(String::as_str)
    }

    /// One more.
    pub(crate) fn add(&mut self, line: &str) {
        if line.trim().is_empty() || self.lines.last().is_some_and(|last| last == line) {
            return;
        }
        self.lines.push(line.to_owned());
        if let Some(file) = &self.file {
            // Not worth a word where it cannot be kept: the conversation itself is.
            let _ = private(file, false)
                .and_then(|mut opened| opened.write_all((escaped(line) + "\n").as_bytes()));
        }
    }
}

/// A file that nobody else can read.
fn private(path: &Path, anew: bool) -> std::io::Result<File> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    OpenOptions::new()
        .create(true)
        .append(!anew)
        .write(true)
        .truncate(anew)
        .mode(0o600)
        .open(path)
}

fn escaped(line: &str) -> String {
    line.replace('\\', "\\\\").replace('\n', "\\n")
}

fn unescaped(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => text.extend(characters.next().map(|next| match next {
                'n' => '\n',
                other => other,
            })),
            other => text.push(other),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn lines_are_found_again_and_nobody_else_can_read_them() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state/history");
        let mut history = History::open(&file);
        history.add("one");
        history.add("two\nrows \\n and a \\");
        history.add("two\nrows \\n and a \\");
        history.add("  ");
        let again = History::open(&file);
        assert_eq!(again.lines, ["one", "two\nrows \\n and a \\"]);
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_long_history_is_made_shorter() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history");
        let long: String = (0..=2 * MOST).map(|number| format!("{number}\n")).collect();
        std::fs::write(&file, long).unwrap();
        assert_eq!(History::open(&file).lines.len(), MOST);
        let kept = std::fs::read_to_string(&file).unwrap();
        assert_eq!(kept.lines().count(), MOST);
        assert_eq!(kept.lines().last(), Some("2000"));
    }
}
