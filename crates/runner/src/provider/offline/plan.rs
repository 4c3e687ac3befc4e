//! What a plain request asks for: steps, of which those joined by "and" are taken together, and
//! those joined by "then" one after the other.

use super::phrase;
use super::step::Step;

/// What `offline` takes a request to mean. Nothing in it: it was not understood.
pub(super) type Plan = Vec<Vec<Step>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Joint {
    And,
    Then,
}

/// A place where one step may end and the next begin.
struct Cut {
    at: usize,
    next: usize,
    joint: Joint,
}

/// Understands a request, or the first words of it that make no sense.
pub(super) fn plan(text: &str) -> Result<Plan, String> {
    let mut plan: Plan = Vec::new();
    let mut together: Vec<Step> = Vec::new();
    let mut it: Option<String> = None;
    let mut rest = text.trim();
    loop {
        let (step, cut) = first(rest, it.as_deref()).ok_or_else(|| rest.to_owned())?;
        it = step.path().map(str::to_owned).or(it);
        together.push(step);
        let Some(cut) = cut else {
            plan.push(together);
            return Ok(plan);
        };
        if cut.joint == Joint::Then {
            plan.push(std::mem::take(&mut together));
        }
        rest = rest[cut.next..].trim();
    }
}

/// The first step, and where it ends if something comes after it.
fn first(text: &str, it: Option<&str>) -> Option<(Step, Option<Cut>)> {
    for cut in cuts(text) {
        if !phrase::begins(&text[cut.next..]) {
            continue;
        }
        let Some(read) = phrase::read(&text[..cut.at], it) else {
            continue;
        };
        // "write a.txt: bread and butter" is one file; only "then" ends what was not quoted.
        if read.open && cut.joint == Joint::And {
            continue;
        }
        return Some((read.step, Some(cut)));
    }
    Some((phrase::read(text, it)?.step, None))
}

/// Every place outside quotes where two steps may be joined.
fn cuts(text: &str) -> Vec<Cut> {
    const JOINTS: &[(&str, Joint)] = &[
        (", and then ", Joint::Then),
        (" and then ", Joint::Then),
        (". then ", Joint::Then),
        (", then ", Joint::Then),
        ("; then ", Joint::Then),
        (" then ", Joint::Then),
        ("\nthen ", Joint::Then),
        (", and ", Joint::And),
        (" and ", Joint::And),
        ("; ", Joint::And),
        ("\n", Joint::And),
    ];
    let mut found = Vec::new();
    let mut quote: Option<char> = None;
    let mut before = ' ';
    let mut skip = 0;
    for (at, c) in text.char_indices() {
        if at < skip {
            before = c;
            continue;
        }
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            // An apostrophe in a word opens nothing.
            None if matches!(c, '"' | '`') || (c == '\'' && !before.is_alphanumeric()) => {
                quote = Some(c);
            }
            None => {
                let tail = &text[at..];
                let joint = JOINTS.iter().find(|(words, _)| {
                    tail.get(..words.len())
                        .is_some_and(|start| start.eq_ignore_ascii_case(words))
                });
                if let Some((words, joint)) = joint {
                    skip = at + words.len();
                    found.push(Cut {
                        at,
                        next: skip,
                        joint: *joint,
                    });
                }
            }
        }
        before = c;
    }
    found
}
