//! The parts of docs/benchmarks.md that are measured and not written: one for each subject.

use std::fmt::Write as _;

use anyhow::{Context as _, bail};

use super::Subject;
use crate::cache::Places;

const END: &str = "<!-- measured: end -->";

fn begin(subject: Subject) -> String {
    format!(
        "<!-- measured: written by `cargo xtask bench {}` -->",
        subject.word()
    )
}

/// The figures of one user.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) heading: &'static str,
    pub(crate) table: String,
}

/// Puts the figures in the place of the last ones.
pub(crate) fn write(
    places: &Places,
    subject: Subject,
    machine: &str,
    sections: &[Section],
) -> anyhow::Result<()> {
    let path = places.root.join("docs/benchmarks.md");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let measured = measured(machine, sections);
    let begin = begin(subject);
    let Some(text) = replaced(&text, &begin, &measured) else {
        bail!("{} has lost the line `{begin}` or `{END}`", path.display());
    };
    std::fs::write(&path, text)?;
    println!("Written to docs/benchmarks.md");
    Ok(())
}

fn measured(machine: &str, sections: &[Section]) -> String {
    let mut text = format!("{machine}\n");
    for Section { heading, table } in sections {
        let mut heading = (*heading).to_owned();
        heading[..1].make_ascii_uppercase();
        let _ = write!(text, "\n### {heading}\n\n{table}");
    }
    let missed: Vec<&str> = sections
        .iter()
        .take(1)
        .flat_map(|section| section.table.lines())
        .filter(|line| line.contains("not met") || line.contains("not measured"))
        .collect();
    text.push_str("\n### What is not met\n\n");
    if missed.is_empty() {
        text.push_str("Every target is met.\n");
    }
    for line in missed {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if let [_, what, _, peer, _, ratio, target, met, ..] = cells[..] {
            let beside = if peer.is_empty() {
                String::new()
            } else {
                format!(" beside {peer}")
            };
            let _ = writeln!(text, "- {what}{beside}: {ratio}, wanted {target}: {met}");
        }
    }
    text
}

fn replaced(text: &str, begin: &str, measured: &str) -> Option<String> {
    let (before, rest) = text.split_once(begin)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{begin}\n\n{measured}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_between_the_marks_is_replaced() {
        let [runtime, gate] = [Subject::Runtime, Subject::Gate].map(begin);
        let text = format!("head\n{runtime}\nold\n{END}\nmiddle\n{gate}\nold\n{END}\ntail\n");
        let first = format!("head\n{runtime}\n\nnew\n\n{END}\nmiddle\n{gate}\nold\n{END}\ntail\n");
        let second = format!("head\n{runtime}\nold\n{END}\nmiddle\n{gate}\n\nnew\n\n{END}\ntail\n");
        assert_eq!(replaced(&text, &runtime, "new\n"), Some(first));
        assert_eq!(replaced(&text, &gate, "new\n"), Some(second));
        assert_eq!(replaced("no marks", &gate, "new"), None);
    }

    #[test]
    fn what_is_not_met_is_said_again() {
        let table = "| a | 1 | b | 2 | 1.5× | ≤ 1× | **not met, by 50 %** |\n| c | 1 | d | 2 | 1× | ≤ 2× | met |\n";
        let section = Section {
            heading: "as someone",
            table: table.into(),
        };
        let text = measured("- Kernel: x", &[section]);
        assert!(text.ends_with(
            "### What is not met\n\n- a beside b: 1.5×, wanted ≤ 1×: **not met, by 50 %**\n"
        ));
    }
}
