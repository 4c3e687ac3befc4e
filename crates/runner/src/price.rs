//! What models cost, and how much they can read: what the settings say.

use std::collections::BTreeMap;

use protocol::session::Usage;
use serde::Deserialize;

/// `[models]` of the settings: by a model's name, with or without its provider. A name that ends in
/// `*` stands for all that begin so.
///
/// ```toml
/// [models."claude-sonnet-*"]
/// input = 3.00              # dollars for a million tokens
/// output = 15.00
/// cache_read = 0.30         # as `input` where left out
/// cache_write = 3.75        # as `input` where left out
/// context = 200000          # how many tokens it can read
/// ```
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(transparent)]
pub struct Models(BTreeMap<String, Model>);

/// One model of the settings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Model {
    /// Dollars for a million tokens that are read.
    pub input: Option<f64>,
    /// Dollars for a million tokens that are written.
    pub output: Option<f64>,
    /// The same, of those that come from the cache.
    pub cache_read: Option<f64>,
    /// The same, of those that go into it.
    pub cache_write: Option<f64>,
    /// How many tokens it can read.
    pub context: Option<u64>,
}

impl Models {
    /// What is known of a model: by its whole name before a pattern, by the longer pattern first.
    #[must_use]
    pub fn of(&self, provider: &str, model: &str) -> Model {
        let full = format!("{provider}/{model}");
        let exact = self.0.get(&full).or_else(|| self.0.get(model));
        let fits = |pattern: &&String| {
            let begins = |begin: &str| full.starts_with(begin) || model.starts_with(begin);
            pattern.strip_suffix('*').is_some_and(begins)
        };
        let pattern = || self.0.keys().filter(fits).max_by_key(|key| key.len());
        let found = exact.or_else(|| self.0.get(pattern()?));
        found.copied().unwrap_or_default()
    }
}

impl Model {
    /// Whether it is known what this much or that costs.
    #[must_use]
    pub fn has_price(&self) -> bool {
        self.cost(&Usage::default()).is_some()
    }

    /// What this much costs, in millionths of a dollar; nothing where the price is not known.
    #[must_use]
    pub fn cost(&self, usage: &Usage) -> Option<u64> {
        let (input, output) = (self.input?, self.output?);
        // Dollars for a million tokens are millionths of a dollar for one.
        let micros = usage.input as f64 * input
            + usage.output as f64 * output
            + usage.cache_read as f64 * self.cache_read.unwrap_or(input)
            + usage.cache_write as f64 * self.cache_write.unwrap_or(input);
        Some(micros.max(0.0).round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn models(pairs: &[(&str, Model)]) -> Models {
        let pairs = pairs
            .iter()
            .map(|(name, model)| ((*name).to_owned(), *model));
        Models(pairs.collect())
    }

    fn costing(input: f64) -> Model {
        Model {
            input: Some(input),
            output: Some(10.0),
            ..Model::default()
        }
    }

    #[test]
    fn the_most_exact_name_wins() {
        let table = models(&[
            ("claude-*", costing(1.0)),
            ("claude-big-*", costing(2.0)),
            ("claude-big-5", costing(3.0)),
            ("work/claude-big-5", costing(4.0)),
        ]);
        for (provider, model, input) in [
            ("anthropic", "claude-small", Some(1.0)),
            ("anthropic", "claude-big-4", Some(2.0)),
            ("anthropic", "claude-big-5", Some(3.0)),
            ("work", "claude-big-5", Some(4.0)),
            ("openai", "gpt-5", None),
        ] {
            assert_eq!(table.of(provider, model).input, input, "{provider}/{model}");
        }
    }

    #[test]
    fn every_part_has_its_price_and_no_price_is_not_nothing() {
        let usage = Usage {
            input: 1_000,
            output: 100,
            cache_read: 10_000,
            cache_write: 0,
            reasoning: 50,
        };
        let model = Model {
            cache_read: Some(0.1),
            ..costing(2.0)
        };
        assert_eq!(model.cost(&usage), Some(2_000 + 1_000 + 1_000));
        assert_eq!(Model::default().cost(&usage), None);
    }
}
