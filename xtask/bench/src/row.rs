//! What came out: Ward's figures beside a peer's, the ratio, the target, and whether it is met.

use std::fmt::Write as _;

use crate::samples::Samples;

/// What the figures are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Requests a second; more is better.
    PerSecond,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
}

/// What is wanted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Target {
    /// Ward's median is at least this many times the peer's.
    AtLeast(f64),
    /// Ward's median is at most this many times the peer's.
    AtMost(f64),
    /// Ward's median is at most this, in the row's unit.
    Below(f64),
    /// For information.
    None,
}

/// One comparison.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    what: String,
    unit: Unit,
    ward: Samples,
    beside: Beside,
    target: Target,
}

#[derive(Debug, Clone)]
enum Beside {
    Peer(String, Samples),
    Nobody,
    /// The peer could not be had; why.
    Missing(String, String),
}

impl Row {
    pub(crate) fn against(
        what: &str,
        unit: Unit,
        ward: &Samples,
        peer: &str,
        theirs: &Samples,
        target: Target,
    ) -> Self {
        Self {
            what: what.to_owned(),
            unit,
            ward: ward.clone(),
            beside: Beside::Peer(peer.to_owned(), theirs.clone()),
            target,
        }
    }

    pub(crate) fn alone(what: &str, unit: Unit, ward: &Samples, target: Target) -> Self {
        Self {
            what: what.to_owned(),
            unit,
            ward: ward.clone(),
            beside: Beside::Nobody,
            target,
        }
    }

    pub(crate) fn without(
        what: &str,
        unit: Unit,
        ward: &Samples,
        peer: &str,
        why: &str,
        target: Target,
    ) -> Self {
        Self {
            what: what.to_owned(),
            unit,
            ward: ward.clone(),
            beside: Beside::Missing(peer.to_owned(), why.to_owned()),
            target,
        }
    }

    fn cells(&self) -> [String; HEADINGS.len()] {
        let figures = |samples: &Samples| {
            [samples.median(), self.best(samples)].map(|value| told(value, self.unit))
        };
        let [median, best] = figures(&self.ward);
        let (peer, [peer_median, peer_best], ratios) = match &self.beside {
            Beside::Peer(name, theirs) => {
                let of_medians = self.ward.median() / theirs.median();
                let of_best = self.best(&self.ward) / self.best(theirs);
                let ratios = format!("{} ({})", times(of_medians), times(of_best));
                (name.clone(), figures(theirs), ratios)
            }
            Beside::Nobody => Default::default(),
            Beside::Missing(name, why) => {
                (format!("{name}: {why}"), Default::default(), String::new())
            }
        };
        let join = |median: String, best: String| {
            if median.is_empty() {
                median
            } else {
                format!("{median} ({best})")
            }
        };
        [
            self.what.clone(),
            join(median, best),
            peer,
            join(peer_median, peer_best),
            ratios,
            self.wanted(),
            self.verdict(),
        ]
    }

    fn best(&self, samples: &Samples) -> f64 {
        match self.unit {
            Unit::PerSecond => samples.most(),
            Unit::Seconds | Unit::Bytes => samples.least(),
        }
    }

    fn wanted(&self) -> String {
        match self.target {
            Target::AtLeast(ratio) => format!("≥ {}", times(ratio)),
            Target::AtMost(ratio) => format!("≤ {}", times(ratio)),
            Target::Below(most) => format!("≤ {}", told(most, self.unit)),
            Target::None => String::new(),
        }
    }

    fn verdict(&self) -> String {
        let ratio = match &self.beside {
            Beside::Peer(_, theirs) => self.ward.median() / theirs.median(),
            Beside::Nobody | Beside::Missing(..) => f64::NAN,
        };
        // How far off, in percent of the target.
        let over = match self.target {
            Target::AtLeast(least) => (least / ratio - 1.0) * 100.0,
            Target::AtMost(most) => (ratio / most - 1.0) * 100.0,
            Target::Below(most) => (self.ward.median() / most - 1.0) * 100.0,
            Target::None => return String::new(),
        };
        if over.is_nan() {
            "not measured".to_owned()
        } else if over <= 0.0 {
            "met".to_owned()
        } else {
            format!("**not met, by {over:.0} %**")
        }
    }
}

/// A figure with three digits and a unit.
fn told(value: f64, unit: Unit) -> String {
    match unit {
        Unit::PerSecond => format!("{value:.0}/s"),
        Unit::Bytes => format!("{:.1} MB", value / 1e6),
        Unit::Seconds if value < 1e-3 => format!("{} µs", digits(value * 1e6)),
        Unit::Seconds if value < 1.0 => format!("{} ms", digits(value * 1e3)),
        Unit::Seconds => format!("{} s", digits(value)),
    }
}

fn times(ratio: f64) -> String {
    if ratio < 1.0 {
        return format!("{ratio:.3}×");
    }
    format!("{}×", digits(ratio))
}

fn digits(value: f64) -> String {
    match value {
        value if value < 10.0 => format!("{value:.2}"),
        value if value < 100.0 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

const HEADINGS: [&str; 7] = [
    "what",
    "Ward: median (best)",
    "beside",
    "its median (best)",
    "ratio of medians (of best)",
    "target",
    "",
];

/// The rows as Markdown whose columns stand below each other.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut lines = vec![HEADINGS.map(str::to_owned)];
    lines.extend(rows.iter().map(Row::cells));
    let width = |column: usize| {
        let widths = lines.iter().map(|line| line[column].chars().count());
        widths.max().unwrap_or(0).max(3)
    };
    let widths: Vec<usize> = (0..HEADINGS.len()).map(width).collect();
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        for (cell, width) in line.iter().zip(&widths) {
            let _ = write!(text, "| {cell:width$} ");
        }
        text.push_str("|\n");
        if number == 0 {
            for width in &widths {
                let _ = write!(text, "| {:-<width$} ", "");
            }
            text.push_str("|\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(values: &[f64]) -> Samples {
        let mut samples = Samples::default();
        values.iter().for_each(|value| samples.add(*value));
        samples
    }

    #[test]
    fn a_target_is_met_or_missed_by_so_much() {
        let ours = samples(&[2.0, 3.0, 4.0]);
        let row = |theirs, unit, target| {
            Row::against("x", unit, &ours, "peer", &samples(&[theirs]), target).verdict()
        };
        assert_eq!(row(1.0, Unit::Seconds, Target::AtMost(3.0)), "met");
        assert_eq!(
            row(1.0, Unit::Seconds, Target::AtMost(2.0)),
            "**not met, by 50 %**"
        );
        assert_eq!(row(1.0, Unit::PerSecond, Target::AtLeast(3.0)), "met");
        assert_eq!(
            row(1.0, Unit::PerSecond, Target::AtLeast(6.0)),
            "**not met, by 100 %**"
        );
        let alone = Row::alone("x", Unit::Bytes, &ours, Target::Below(2.0));
        assert_eq!(alone.verdict(), "**not met, by 50 %**");
        let missing = Row::without("x", Unit::Bytes, &ours, "p", "gone", Target::AtMost(1.0));
        assert_eq!(missing.verdict(), "not measured");
    }

    #[test]
    fn figures_have_three_digits_and_a_unit() {
        let seconds = [2.5e-6, 1.25e-3, 0.0455, 1.5].map(|value| told(value, Unit::Seconds));
        assert_eq!(seconds, ["2.50 µs", "1.25 ms", "45.5 ms", "1.50 s"]);
        assert_eq!(told(12_345.6, Unit::PerSecond), "12346/s");
        assert_eq!(told(9.96e6, Unit::Bytes), "10.0 MB");
    }
}
