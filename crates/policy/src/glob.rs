//! Globs over names and paths: `*` and `?` within a name, `**` for any number of names, `[a-z]`
//! and `{a,b}`; `\\` takes the meaning from what follows. Matching takes time in proportion to
//! pattern times text, whatever is in them.

/// What is wrong with a glob.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadGlob {
    /// `[` without `]`.
    #[error("`[` is never closed")]
    Bracket,
    /// `{` without `}`, or one inside another.
    #[error("`{{` is never closed, or holds another `{{`")]
    Brace,
    /// Too many `{a,b}`.
    #[error("the `{{…}}` stand for more than {MOST} patterns")]
    Many,
    /// `..` in it.
    #[error("`..` is not understood in a pattern")]
    Parent,
    /// `\\` at the end of a name.
    #[error("`\\` has nothing behind it")]
    Escape,
}

/// How many patterns the braces of one may stand for.
const MOST: usize = 64;

/// A glob for one name or word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NameGlob {
    Literal(String),
    Wild(Vec<Piece>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    One(char),
    Any,
    Class {
        not: bool,
        ranges: Vec<(char, char)>,
    },
    Star,
}

impl NameGlob {
    pub(crate) fn parse(text: &str) -> Result<Self, BadGlob> {
        let mut pieces = Vec::new();
        let mut chars = text.chars();
        while let Some(char) = chars.next() {
            pieces.push(match char {
                '*' => Piece::Star,
                '?' => Piece::Any,
                '[' => class(&mut chars)?,
                '\\' => Piece::One(chars.next().ok_or(BadGlob::Escape)?),
                char => Piece::One(char),
            });
        }
        let literal: Option<String> = pieces
            .iter()
            .map(|piece| match piece {
                Piece::One(char) => Some(*char),
                Piece::Any | Piece::Class { .. } | Piece::Star => None,
            })
            .collect();
        Ok(literal.map_or(Self::Wild(pieces), Self::Literal))
    }

    /// Whether it names a path from some folder: `./deploy.sh`.
    pub(crate) fn is_relative_path(&self) -> bool {
        match self {
            Self::Literal(literal) => literal.contains('/') && !literal.starts_with('/'),
            Self::Wild(pieces) => {
                let slash = Piece::One('/');
                pieces.contains(&slash) && pieces.first() != Some(&slash)
            }
        }
    }

    pub(crate) fn fits(&self, text: &str) -> bool {
        match self {
            Self::Literal(literal) => literal == text,
            Self::Wild(pieces) => fits_pieces(pieces, text),
        }
    }
}

impl Piece {
    fn fits(&self, char: char) -> bool {
        match self {
            Self::One(one) => *one == char,
            Self::Any => true,
            Self::Class { not, ranges } => {
                ranges
                    .iter()
                    .any(|(low, high)| (*low..=*high).contains(&char))
                    != *not
            }
            Self::Star => false,
        }
    }
}

/// The same walk as [`wild`], over characters where they are.
fn fits_pieces(pieces: &[Piece], text: &str) -> bool {
    let (mut at, mut rest) = (0, text);
    let mut back: Option<(usize, &str)> = None;
    loop {
        let mut chars = rest.chars();
        match (pieces.get(at), chars.next()) {
            (Some(Piece::Star), _) => {
                at += 1;
                back = Some((at, rest));
            }
            (None, None) => return true,
            (Some(_), None) => return false,
            (Some(piece), Some(char)) if piece.fits(char) => {
                at += 1;
                rest = chars.as_str();
            }
            (Some(_) | None, Some(_)) => {
                let Some((star, taken)) = back else {
                    return false;
                };
                let mut chars = taken.chars();
                chars.next();
                (at, rest) = (star, chars.as_str());
                back = Some((star, rest));
            }
        }
    }
}

fn class(chars: &mut std::str::Chars<'_>) -> Result<Piece, BadGlob> {
    let (body, rest) = chars.as_str().split_once(']').ok_or(BadGlob::Bracket)?;
    *chars = rest.chars();
    let (not, body) = match body.strip_prefix(['!', '^']) {
        Some(body) => (true, body),
        None => (false, body),
    };
    if body.is_empty() {
        return Err(BadGlob::Bracket);
    }
    let body: Vec<char> = body.chars().collect();
    let mut ranges = Vec::new();
    let mut rest = body.as_slice();
    while let Some((&low, after)) = rest.split_first() {
        if let ['-', high, after @ ..] = after {
            ranges.push((low, *high));
            rest = after;
        } else {
            ranges.push((low, low));
            rest = after;
        }
    }
    Ok(Piece::Class { not, ranges })
}

/// A glob for a path, as names below some folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathGlob(Vec<Vec<Part>>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Name(NameGlob),
    Deep,
}

impl PathGlob {
    pub(crate) fn parse(text: &str) -> Result<Self, BadGlob> {
        let mut alternatives = Vec::new();
        for text in braces(text)? {
            let mut parts = Vec::new();
            for name in text.split('/') {
                match name {
                    "" | "." => {}
                    ".." => return Err(BadGlob::Parent),
                    "**" => parts.push(Part::Deep),
                    name => parts.push(Part::Name(NameGlob::parse(name)?)),
                }
            }
            alternatives.push(parts);
        }
        Ok(Self(alternatives))
    }

    /// The name that everything it fits begins with, where there is one.
    pub(crate) fn first_name(&self) -> Option<&str> {
        match self.0.as_slice() {
            [parts] => match parts.first() {
                Some(Part::Name(NameGlob::Literal(name))) => Some(name),
                Some(Part::Name(NameGlob::Wild(_)) | Part::Deep) | None => None,
            },
            _ => None,
        }
    }

    /// Whether it fits exactly these names.
    pub(crate) fn fits(&self, names: &[impl AsRef<str>]) -> bool {
        self.0.iter().any(|parts| fits_names(parts, names))
    }

    /// Whether it fits these names alone, or these and all below.
    pub(crate) fn is_exactly(&self, names: &[impl AsRef<str>]) -> bool {
        let [parts] = self.0.as_slice() else {
            return false;
        };
        let parts = match parts.split_last() {
            Some((Part::Deep, parts)) => parts,
            Some((Part::Name(_), _)) | None => parts,
        };
        parts.len() == names.len()
            && parts.iter().zip(names).all(|(part, name)| match part {
                Part::Name(NameGlob::Literal(literal)) => literal == name.as_ref(),
                Part::Name(NameGlob::Wild(_)) | Part::Deep => false,
            })
    }

    /// Whether it fits these names or a folder above them.
    pub(crate) fn fits_or_holds(&self, names: &[impl AsRef<str>]) -> bool {
        let Some(first) = names.first() else {
            return self.fits(names);
        };
        self.0.iter().any(|parts| {
            // Most patterns part ways at the first name.
            let begins = match parts.first() {
                Some(Part::Name(glob)) => glob.fits(first.as_ref()),
                Some(Part::Deep) => true,
                None => false,
            };
            begins && (1..=names.len()).any(|end| fits_names(parts, &names[..end]))
        })
    }

    /// Whether something below these names could fit.
    pub(crate) fn reaches_below(&self, names: &[impl AsRef<str>]) -> bool {
        self.0.iter().any(|parts| {
            for (index, name) in names.iter().enumerate() {
                match parts.get(index) {
                    None => return false,
                    Some(Part::Deep) => return true,
                    Some(Part::Name(glob)) if glob.fits(name.as_ref()) => {}
                    Some(Part::Name(_)) => return false,
                }
            }
            true
        })
    }
}

fn fits_names(parts: &[Part], names: &[impl AsRef<str>]) -> bool {
    wild(
        parts,
        names,
        |part| *part == Part::Deep,
        |part, name| match part {
            Part::Deep => false,
            Part::Name(glob) => glob.fits(name.as_ref()),
        },
    )
}

/// A text with every character escaped that would mean something in a glob.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        if "*?[{}\\".contains(char) {
            escaped.push('\\');
        }
        escaped.push(char);
    }
    escaped
}

/// Where the first of these characters stands without a `\\` before it.
fn plain(text: &str, wanted: &[char]) -> Option<usize> {
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        if char == '\\' {
            chars.next();
        } else if wanted.contains(&char) {
            return Some(at);
        }
    }
    None
}

fn braces(text: &str) -> Result<Vec<String>, BadGlob> {
    let Some(open) = plain(text, &['{', '}']) else {
        return Ok(vec![text.to_owned()]);
    };
    let (before, rest) = (&text[..open], &text[open + 1..]);
    let close = plain(rest, &['{', '}']).ok_or(BadGlob::Brace)?;
    let (mut inside, after) = (&rest[..close], &rest[close + 1..]);
    if !text[open..].starts_with('{') || !rest[close..].starts_with('}') {
        return Err(BadGlob::Brace);
    }
    let mut choices = Vec::new();
    while let Some(comma) = plain(inside, &[',']) {
        choices.push(&inside[..comma]);
        inside = &inside[comma + 1..];
    }
    choices.push(inside);
    let after = braces(after)?;
    let mut all = Vec::new();
    for choice in choices {
        for after in &after {
            all.push(format!("{before}{choice}{after}"));
            if all.len() > MOST {
                return Err(BadGlob::Many);
            }
        }
    }
    Ok(all)
}

/// The usual walk with one way back: only the last star can still take more.
fn wild<P, T>(
    pattern: &[P],
    text: &[T],
    is_star: impl Fn(&P) -> bool,
    fits: impl Fn(&P, &T) -> bool,
) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(piece) if is_star(piece) => {
                p += 1;
                back = Some((p, t));
            }
            Some(piece) if fits(piece, &text[t]) => {
                p += 1;
                t += 1;
            }
            Some(_) | None => match back {
                Some((star, taken)) => {
                    p = star;
                    t = taken + 1;
                    back = Some((star, t));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(is_star)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(glob: &str, path: &str) -> bool {
        PathGlob::parse(glob)
            .unwrap()
            .fits(&crate::place::names(path))
    }

    #[test]
    fn stars_stay_within_a_name_and_double_stars_do_not() {
        for (glob, path) in [
            ("src/**", "src/a/b.rs"),
            ("src/**", "src"),
            ("**/*.pem", "a/b/key.pem"),
            ("**/*.pem", "key.pem"),
            ("**", ""),
            ("a/**/z", "a/z"),
            ("a/**/z", "a/b/z/c/z"),
            ("*.{rs,toml}", "x.toml"),
            ("[a-c]?[!x]", "bzz"),
            ("*a*b*", "xaxbx"),
        ] {
            assert!(fits(glob, path), "{glob} {path}");
        }
        for (glob, path) in [
            ("src/*", "src/a/b"),
            ("src/**", "srcs/a"),
            ("*.rs", "a/b.rs"),
            ("a/**/z", "a/b"),
            ("[a-c]", "d"),
            ("*a*b", "ba"),
            ("a", ""),
        ] {
            assert!(!fits(glob, path), "{glob} {path}");
        }
    }

    #[test]
    fn an_escaped_text_fits_itself_alone() {
        for name in [
            "a*b", "?", "[x]", "{a,b}", "a\\b", "**", "\\*", "a}", "(x)", "é ü",
        ] {
            assert!(fits(&escaped(name), name), "{name}");
            assert!(!fits(&escaped(name), "ab"), "{name}");
            assert!(!fits(&escaped(name), "x"), "{name}");
        }
        assert!(fits("{a\\,b,c}", "a,b"));
        assert!(!fits("{a\\,b,c}", "b"));
    }

    #[test]
    fn a_tree_is_reached_where_something_in_it_could_fit() {
        let reaches = |glob: &str, tree: &str| {
            PathGlob::parse(glob)
                .unwrap()
                .reaches_below(&crate::place::names(tree))
        };
        assert!(reaches("secrets/**", ""));
        assert!(reaches("a/b/c", "a/b"));
        assert!(reaches("**/.env", "src/deep"));
        assert!(!reaches("secrets/**", "src"));
        assert!(!reaches("a", "a/b"));
    }

    #[test]
    fn many_stars_do_not_take_long() {
        let glob = format!("{}b", "*a".repeat(2_000));
        assert!(!fits(&glob, &"a".repeat(4_000)));
    }

    #[test]
    fn what_is_not_closed_is_told() {
        for glob in ["[a", "a{b", "a}b", "{a{b}}", "[]", "../a", "a\\", "a\\/b"] {
            assert!(PathGlob::parse(glob).is_err(), "{glob}");
        }
        assert_eq!(PathGlob::parse(&"{a,b}".repeat(9)), Err(BadGlob::Many));
    }
}
