//! The files that a shell puts in a word's place, or may: wider than a shell where the two could
//! differ, since a file too many does no harm.

use std::path::{Path, PathBuf};

/// How many entries of folders are looked at for all words of a command.
const MOST_ENTRIES: usize = 64 * 1024;
/// How many words braces may become.
const MOST_BRACES: usize = 64;

/// How many entries may still be looked at.
#[derive(Debug)]
pub(super) struct Budget(usize);

impl Budget {
    pub(super) fn new() -> Self {
        Self(MOST_ENTRIES)
    }

    pub(super) fn is_spent(&self) -> bool {
        self.0 == 0
    }

    fn spend(&mut self) {
        self.0 = self.0.saturating_sub(1);
    }
}

/// Whether a shell looks for files that fit this.
pub(super) fn is_one(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// The words that braces make of one: `{a,b}.sh`. As it is where there are none, or too many.
pub(super) fn braces(text: &str, expands: bool) -> Vec<String> {
    let mut done = Vec::new();
    let mut open = vec![text.to_owned()];
    while let Some(word) = open.pop() {
        let found = match expands {
            true => innermost(&word),
            false => None,
        };
        let Some((before, choices, after)) = found else {
            done.push(word);
            continue;
        };
        if done.len() + open.len() > MOST_BRACES {
            return vec![text.to_owned()];
        }
        let made = choices.split(',');
        let made: Vec<String> = made
            .map(|choice| format!("{before}{choice}{after}"))
            .collect();
        open.extend(made);
    }
    done
}

/// Whether a shell may make words of this that are not made here: `{1..9}`.
pub(super) fn keeps_braces(text: &str) -> bool {
    let expands = |text: &String| text.contains('{') && (text.contains(',') || text.contains(".."));
    braces(text, true).iter().any(expands)
}

/// The first pair of braces with a comma and no other pair in it.
fn innermost(text: &str) -> Option<(&str, &str, &str)> {
    let mut start = None;
    for (at, char) in text.char_indices() {
        match (char, start) {
            ('{', _) => start = Some(at),
            ('}', Some(from)) if text[from..at].contains(',') => {
                return Some((&text[..from], &text[from + 1..at], &text[at + 1..]));
            }
            ('}', _) => start = None,
            (_, _) => {}
        }
    }
    None
}

/// What is there, seen from a folder, that fits the pattern; nothing where that is too much to look
/// at, so that it does not hang on the order in which a disk tells its entries.
pub(super) fn found(folder: &Path, pattern: &str, budget: &mut Budget) -> Vec<PathBuf> {
    let mut found = match pattern.starts_with('/') {
        true => vec![PathBuf::from("/")],
        false => vec![folder.to_owned()],
    };
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        if !is_one(part) {
            found.iter_mut().for_each(|path| path.push(part));
            continue;
        }
        let pattern: Vec<Piece> = pieces(part);
        let folders = std::mem::take(&mut found);
        for folder in folders {
            budget.spend();
            let Ok(entries) = std::fs::read_dir(&folder) else {
                continue;
            };
            for entry in entries.flatten() {
                if budget.is_spent() {
                    return Vec::new();
                }
                budget.spend();
                let name = entry.file_name();
                let name = name.to_string_lossy();
                // A hidden one only where the pattern says so.
                let may = part.starts_with(['.', '[']) || !name.starts_with('.');
                let chars: Vec<char> = name.chars().collect();
                if may && fits(&pattern, &chars) {
                    found.push(entry.path());
                }
            }
        }
    }
    found
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    Char(char),
    One,
    Any,
}

/// A class stands for anything here.
fn pieces(part: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut chars = part.chars();
    while let Some(char) = chars.next() {
        match char {
            '*' => pieces.push(Piece::Any),
            '?' => pieces.push(Piece::One),
            // Where a class ends is not easily told: `[]a]`, `[[:alpha:]]`.
            '[' => match chars.as_str().rfind(']') {
                Some(end) => {
                    chars = chars.as_str()[end + 1..].chars();
                    pieces.push(Piece::Any);
                }
                None => pieces.push(Piece::Char('[')),
            },
            char => pieces.push(Piece::Char(char)),
        }
    }
    pieces
}

/// Whether a name fits, without going back further than to the last star.
fn fits(pattern: &[Piece], name: &[char]) -> bool {
    let (mut at, mut from) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while from < name.len() {
        match pattern.get(at) {
            Some(Piece::Any) => {
                star = Some((at + 1, from));
                at += 1;
            }
            Some(Piece::One) => (at, from) = (at + 1, from + 1),
            Some(Piece::Char(char)) if *char == name[from] => (at, from) = (at + 1, from + 1),
            Some(Piece::Char(_)) | None => match star {
                Some((after, begun)) => {
                    star = Some((after, begun + 1));
                    (at, from) = (after, begun + 1);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|piece| *piece == Piece::Any)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_fits_at_least_what_it_fits_for_a_shell() {
        let fit = |pattern: &str, name: &str| {
            let name: Vec<char> = name.chars().collect();
            fits(&pieces(pattern), &name)
        };
        for (pattern, name) in [
            ("*", "a"),
            ("d*.sh", "d.sh"),
            ("d*.sh", "deploy.sh.sh"),
            ("?.sh", "é.sh"),
            ("[de].sh", "d.sh"),
            ("[]a].sh", "].sh"),
            ("[!a]*", "bc"),
            ("[^]]x", "ax"),
            ("[[:alpha:]]x", "ax"),
            ("[a", "[a"),
        ] {
            assert!(fit(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("d*.sh", "e.sh"), ("?", "ab"), ("a", "b"), ("*a", "ab")] {
            assert!(!fit(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn more_than_may_be_looked_at_is_nothing() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let look = |budget: &mut Budget| found(folder.path(), "*", budget).len();
        let mut enough = Budget(5);
        assert_eq!((look(&mut enough), enough.is_spent()), (3, false));
        let mut few = Budget(3);
        assert_eq!((look(&mut few), few.is_spent()), (0, true));
    }

    #[test]
    fn braces_become_words_and_too_many_stay_as_they_are() {
        let mut made = braces("./{d,{e,f}g}.sh", true);
        made.sort_unstable();
        made.dedup();
        assert_eq!(made, ["./d.sh", "./eg.sh", "./fg.sh"]);
        for plain in ["a", "{a}", "{a", "a}", "{}"] {
            assert_eq!(braces(plain, true), [plain]);
            assert!(!keeps_braces(plain), "{plain}");
        }
        assert!(keeps_braces("{1..9}.sh"));
        let many = "{a,b}".repeat(20);
        assert_eq!(braces(&many, true), [many.as_str()]);
        assert!(keeps_braces(&many));
    }
}
