//! Candidates take turns; what they took is told as a median and the best.

/// The samples of one candidate, in one unit.
#[derive(Debug, Clone, Default)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    pub(crate) fn add(&mut self, sample: f64) {
        self.0.push(sample);
    }

    pub(crate) fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        match sorted.len() {
            0 => f64::NAN,
            count if count % 2 == 1 => sorted[middle],
            _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
        }
    }

    pub(crate) fn least(&self) -> f64 {
        self.0.iter().copied().fold(f64::NAN, f64::min)
    }

    pub(crate) fn most(&self) -> f64 {
        self.0.iter().copied().fold(f64::NAN, f64::max)
    }
}

/// One who takes turns: gives a sample, or several.
pub(crate) type Turn<'a> = Box<dyn FnMut() -> anyhow::Result<Vec<f64>> + 'a>;

/// Has every candidate take its turn, round by round, every other round in the opposite order. The
/// first round warms up and does not count.
pub(crate) fn interleave(rounds: usize, turns: &mut [Turn<'_>]) -> anyhow::Result<Vec<Samples>> {
    let mut samples = vec![Samples::default(); turns.len()];
    for round in 0..=rounds {
        for at in order(round, turns.len()) {
            let taken = turns[at]()?;
            if round > 0 {
                taken.into_iter().for_each(|sample| samples[at].add(sample));
            }
        }
    }
    Ok(samples)
}

/// Forwards and backwards in turn, so that nobody is always the one after the slowest.
pub(crate) fn order(round: usize, count: usize) -> Vec<usize> {
    let forwards = 0..count;
    if round.is_multiple_of(2) {
        forwards.collect()
    } else {
        forwards.rev().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_lies_in_the_middle() {
        let of = |samples: &[f64]| Samples(samples.to_vec()).median();
        assert_eq!(
            (of(&[3.0, 1.0, 2.0]), of(&[4.0, 1.0, 2.0, 3.0])),
            (2.0, 2.5)
        );
        assert!(of(&[]).is_nan());
    }

    #[test]
    fn everyone_has_a_turn_each_round_and_the_first_does_not_count() {
        let log = std::cell::RefCell::new(String::new());
        let turn = |name: char| -> Turn<'_> {
            let log = &log;
            Box::new(move || {
                log.borrow_mut().push(name);
                Ok(vec![log.borrow().len() as f64])
            })
        };
        let samples = interleave(2, &mut [turn('a'), turn('b')]).unwrap();
        assert_eq!(*log.borrow(), "abbaab");
        assert_eq!((samples[0].least(), samples[0].most()), (4.0, 5.0));
        assert_eq!((samples[1].least(), samples[1].most()), (3.0, 6.0));
    }
}
