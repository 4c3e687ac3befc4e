//! Rules: lines of policy, written in TOML.
//!
//! ```toml
//! [[rules]]
//! deny = "fs.write(migrations/**)"
//! reason = "Migrations are made by the release job."
//!
//! [[rules]]
//! allow = "net(crates.io:443)"
//! ```

use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::decision::Verdict;
use crate::mistake::{Mistake, Weight};
use crate::pattern::Pattern;

/// Whose word something is. The order is that of weight: of two roles with one name, the larger
/// wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A workspace that nobody has trusted: only its deny and ask count, and none of its roles.
    Untrusted,
    /// Ward's own.
    Builtin,
    /// A workspace whose present content the person has trusted.
    Trusted,
    /// The person's config folder.
    Person,
}

impl Source {
    /// As people read it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Untrusted => "the workspace, untrusted",
            Self::Builtin => "built in",
            Self::Trusted => "the workspace, trusted",
            Self::Person => "your own",
        }
    }
}

/// Where something is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Origin {
    /// Whose word it is.
    pub source: Source,
    /// The file, as the caller named it.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A line of policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// What it says.
    pub verdict: Verdict,
    /// About what.
    pub pattern: Pattern,
    /// Why; empty where nobody said.
    pub reason: String,
    /// Where it is written.
    pub origin: Origin,
}

/// All rules that count. Their order means nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules(Vec<Rule>);

/// The file as it is written. `ward.toml` may hold more than rules, but nothing else is known yet.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct Written {
    #[serde(default)]
    rules: Vec<Spanned<WrittenRule>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct WrittenRule {
    allow: Option<Spanned<String>>,
    ask: Option<Spanned<String>>,
    deny: Option<Spanned<String>>,
    #[serde(default)]
    reason: String,
}

impl Rules {
    /// Reads a file of rules. One mistake refuses the whole file: a typing error must not quietly
    /// become a weaker policy.
    pub fn read(text: &str, file: &str, source: Source) -> Result<Self, Vec<Mistake>> {
        let line = |at: usize| line_of(text, at);
        let mistake = |line, what: String, hint: String| Mistake {
            file: file.to_owned(),
            line,
            weight: Weight::Error,
            what,
            hint,
        };
        let written: Written = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            let what = error
                .message()
                .replace('\n', " ")
                .replace("unknown field", "unknown key");
            let hint =
                "A rule is `[[rules]]` with one of `allow`, `ask` or `deny`, and a `reason`.";
            vec![mistake(line(start), format!("{what}."), hint.to_owned())]
        })?;
        let (mut rules, mut mistakes) = (Vec::new(), Vec::new());
        for rule in written.rules {
            let start = rule.span().start;
            let WrittenRule {
                allow,
                ask,
                deny,
                reason,
            } = rule.into_inner();
            let mut said = [
                (Verdict::Allow, allow),
                (Verdict::Ask, ask),
                (Verdict::Deny, deny),
            ]
            .into_iter()
            .filter_map(|(verdict, pattern)| Some((verdict, pattern?)));
            let (Some((verdict, pattern)), None) = (said.next(), said.next()) else {
                mistakes.push(mistake(
                    line(start),
                    "A rule says exactly one of `allow`, `ask` and `deny`.".to_owned(),
                    "Write one `[[rules]]` for each.".to_owned(),
                ));
                continue;
            };
            let at = line(pattern.span().start);
            match Pattern::parse(pattern.get_ref()) {
                Ok(pattern) => rules.push(Rule {
                    verdict,
                    pattern,
                    reason,
                    origin: Origin {
                        source,
                        file: file.to_owned(),
                        line: at,
                    },
                }),
                Err(error) => mistakes.push(mistake(at, error.to_string(), error.hint())),
            }
        }
        if mistakes.is_empty() {
            Ok(Self(rules))
        } else {
            Err(mistakes)
        }
    }

    /// Adds the rules of another file.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Adds one rule.
    pub fn push(&mut self, rule: Rule) {
        self.0.push(rule);
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.0.iter()
    }
}

/// The line, from 1, at this byte.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}
