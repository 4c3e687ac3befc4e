//! What is wrong with a file that a person wrote, and what to do about it.

use serde::Serialize;

/// One mistake, where it is, and a hint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mistake {
    /// The file, as the caller named it.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// How much it matters.
    pub weight: Weight,
    /// What is wrong, as a sentence.
    pub what: String,
    /// What to do, as a sentence.
    pub hint: String,
}

/// How much a mistake matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// The file is not used: a typing error must not become more freedom.
    Error,
    /// The file is used; something in it has no effect.
    Note,
}

impl std::fmt::Display for Mistake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, line {}: {}", self.file, self.line, self.what)?;
        if !self.hint.is_empty() {
            write!(f, " {}", self.hint)?;
        }
        Ok(())
    }
}

/// The known word that is closest to a mistyped one.
pub(crate) fn closest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Comparing costs the product of both lengths, and a hint for a long word helps nobody.
    if word.len() > 100 {
        return None;
    }
    known
        .map(|name| (strsim::osa_distance(word, name), name))
        .filter(|(distance, name)| *distance <= word.len().max(name.len()) / 2)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}
