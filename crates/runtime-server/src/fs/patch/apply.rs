//! Putting the hunks of a patch into the content of one file, in memory.

use ::patch::{Hunk, Line, text_of};

/// Why a hunk does not fit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Misfit {
    /// Which hunk, from 1.
    pub(super) hunk: usize,
    /// The line of the patch that it begins on.
    pub(super) at: usize,
    /// The line of the file where it was expected, from 1.
    pub(super) line: usize,
    /// The line that the patch has there and the file has not.
    pub(super) wanted: Option<String>,
    /// The line that the file has there.
    pub(super) found: Option<String>,
}

/// The content with every hunk applied. A hunk may sit some lines away from where it says, as
/// long as all its lines are there.
pub(super) fn apply(old: &[u8], hunks: &[Hunk<'_>]) -> Result<Vec<u8>, Misfit> {
    let file: Vec<&[u8]> = old.split_inclusive(|byte| *byte == b'\n').collect();
    let crlf = file.first().is_some_and(|line| line.ends_with(b"\r\n"));
    let mut new: Vec<u8> = Vec::with_capacity(old.len());
    let mut done = 0;
    let mut shift: isize = 0;

    for (index, hunk) in hunks.iter().enumerate() {
        let exact = Sides::of(hunk, |line| line.as_bytes().to_vec());
        // The first line is `start`, but a hunk that only adds names the line before it.
        let says = if exact.old.is_empty() {
            hunk.start
        } else {
            hunk.start.saturating_sub(1)
        };
        let expected = says.saturating_add_signed(shift).max(done);

        let fits = position(&file, done, expected, &exact.old).map(|place| (place, exact));
        let (place, sides) = match fits {
            Some(fits) => fits,
            None => {
                // The same lines with the line ends that this file has.
                let adapted = Sides::of(hunk, |line| with_line_end(line, crlf));
                match position(&file, done, expected, &adapted.old) {
                    Some(place) => (place, adapted),
                    None => return Err(misfit(index, hunk, &file, expected, &adapted.old)),
                }
            }
        };
        new.extend(file[done..place].concat());
        new.extend(sides.new.concat());
        done = place + sides.old.len();
        shift = place.cast_signed() - says.cast_signed();
    }
    new.extend(file[done..].concat());
    Ok(new)
}

/// The lines of a hunk before and after.
struct Sides {
    old: Vec<Vec<u8>>,
    new: Vec<Vec<u8>>,
}

impl Sides {
    fn of(hunk: &Hunk<'_>, bytes: impl Fn(&str) -> Vec<u8>) -> Self {
        let (mut old, mut new) = (Vec::new(), Vec::new());
        for line in &hunk.lines {
            match line {
                Line::Kept(line) => {
                    old.push(bytes(line));
                    new.push(bytes(line));
                }
                Line::Removed(line) => old.push(bytes(line)),
                Line::Added(line) => new.push(bytes(line)),
            }
        }
        Self { old, new }
    }
}

fn with_line_end(line: &str, crlf: bool) -> Vec<u8> {
    let mut bytes = text_of(line).as_bytes().to_vec();
    match (line.ends_with('\n'), crlf) {
        (true, true) => bytes.extend(b"\r\n"),
        (true, false) => bytes.push(b'\n'),
        (false, _) => {}
    }
    bytes
}

/// Where `wanted` is in the file, from line `done` on, nearest to `expected`.
fn position(file: &[&[u8]], done: usize, expected: usize, wanted: &[Vec<u8>]) -> Option<usize> {
    if wanted.is_empty() {
        // Without any line to find it by, only the place it names will do.
        return (expected <= file.len()).then_some(expected);
    }
    let last = file.len().checked_sub(wanted.len())?;
    let fits = |place: &usize| file[*place..].iter().zip(wanted).all(|(a, b)| a == b);
    let below = (done..expected.min(last + 1)).rev().find(fits);
    let above = (expected..=last).find(fits);
    match (below, above) {
        (Some(below), Some(above)) if expected - below < above - expected => Some(below),
        (below, above) => above.or(below),
    }
}

fn misfit(
    index: usize,
    hunk: &Hunk<'_>,
    file: &[&[u8]],
    expected: usize,
    wanted: &[Vec<u8>],
) -> Misfit {
    let shown = |line: &[u8]| {
        let line = String::from_utf8_lossy(line);
        text_of(&line).chars().take(120).collect::<String>()
    };
    let there = |nth: usize| file.get(expected + nth).copied();
    let nth = wanted
        .iter()
        .enumerate()
        .position(|(nth, line)| there(nth) != Some(line))
        .unwrap_or(0);
    Misfit {
        hunk: index + 1,
        at: hunk.at,
        line: expected + nth + 1,
        wanted: wanted.get(nth).map(|line| shown(line)),
        found: there(nth).map(shown),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use ::patch::parse;

    /// Few different lines, so that hunks have many places where they nearly fit.
    fn text() -> impl Strategy<Value = String> {
        let line = prop::sample::select(vec!["a", "b", "", " ", "-x", "+x", "@@", "c\r"]);
        (prop::collection::vec(line, 0..30), any::<bool>()).prop_map(|(lines, ended)| {
            let text = lines.join("\n");
            if ended && !text.is_empty() {
                text + "\n"
            } else {
                text
            }
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_diff_of_two_texts_makes_the_second_of_the_first(old in text(), new in text()) {
            let patch = crate::fs::diff::unified("f", &old, &new);
            prop_assume!(old != new);
            let files = parse(&patch).map_err(|failure| TestCaseError::fail(format!("{failure}\n{patch}")))?;
            let applied = apply(old.as_bytes(), &files[0].hunks)
                .map_err(|misfit| TestCaseError::fail(format!("{misfit:?}\n{patch}")))?;
            prop_assert_eq!(String::from_utf8(applied).unwrap(), new, "{}", patch);
        }
    }
}
