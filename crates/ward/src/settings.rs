//! The settings: `~/.config/ward/settings.toml`, and what holds where it says nothing.
//!
//! ```toml
//! [sandbox]
//! minimum = "room"     # the weakest tier that will do: room, walls or none
//!
//! [limits]             # how much a command and all that it starts may use
//! memory = "8G"
//! pids = 4096
//! tmp = "2G"
//!
//! [editors]
//! lease = "60s"        # for how long one that says nothing is taken to be there
//!
//! [approvals]
//! expire_after = "7d"  # how long a question is open before no answer becomes a no
//!
//! [providers]          # who answers for models; keys can also be in the environment
//! model = "claude-sonnet-4-5"
//! [providers.work]
//! base_url = "https://models.example.com/v1"
//! key_variable = "WORK_KEY"
//!
//! [models."claude-*"]  # what they cost, in dollars for a million tokens
//! input = 3.00
//! output = 15.00
//! ```
//!
//! A mistake in the file stops Ward: a typing error must not quietly become a weaker wall.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use protocol::sandbox::Tier;
use sandbox::Limits;
use serde::Deserialize;

use crate::duration::Span;
use crate::folders;
use crate::size::ByteSize;

/// Overrides `sandbox.minimum` of the file.
const MINIMUM_VARIABLE: &str = "WARD_SANDBOX_MINIMUM";

/// How long a question is open: over a weekend, and over days that nobody looks.
pub(crate) const EXPIRE_AFTER: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// What is in force.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// The file that was read, or would be.
    pub(crate) file: PathBuf,
    /// Whether it is there.
    pub(crate) found: bool,
    /// The weakest tier that will do.
    pub(crate) minimum: Tier,
    /// How much a command may use.
    pub(crate) limits: Limits,
    /// For how long an editor that says nothing is taken to be there.
    pub(crate) lease: Duration,
    /// How long a question is open before no answer becomes a no.
    pub(crate) expire_after: Duration,
    /// Who answers for models.
    pub(crate) providers: runner::provider::Settings,
    /// What models cost.
    pub(crate) models: runner::price::Models,
}

/// What is wrong with the settings.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsError {
    #[error("{file}, line {line}: {what}. {KNOWN}", file = file.display())]
    Mistake {
        file: PathBuf,
        line: usize,
        what: String,
    },
    #[error("The settings in {file} could not be read: {why}. Make the file readable, or move it away.", file = file.display())]
    Unreadable { file: PathBuf, why: std::io::Error },
    #[error("{MINIMUM_VARIABLE} is `{0}`; it can be room, walls or none.")]
    Variable(String),
}

const KNOWN: &str = "Ward knows `minimum` in [sandbox], `memory`, `pids` and `tmp` in [limits], `lease` in [editors], `expire_after` in [approvals], [providers] and [models]";

/// The file as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
struct Written {
    sandbox: WrittenSandbox,
    limits: WrittenLimits,
    editors: WrittenEditors,
    approvals: WrittenApprovals,
    providers: runner::provider::Settings,
    models: runner::price::Models,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
struct WrittenSandbox {
    minimum: Option<Tier>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
struct WrittenLimits {
    memory: Option<ByteSize>,
    pids: Option<std::num::NonZeroU32>,
    tmp: Option<ByteSize>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
struct WrittenEditors {
    lease: Option<Span>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
struct WrittenApprovals {
    expire_after: Option<Span>,
}

/// Reads the settings of whoever runs this.
pub(crate) fn read() -> anyhow::Result<Settings> {
    let file = folders::config()?.join("settings.toml");
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => Some(text),
        Err(why) if why.kind() == ErrorKind::NotFound => None,
        Err(why) => return Err(SettingsError::Unreadable { file, why }.into()),
    };
    let minimum = match std::env::var_os(MINIMUM_VARIABLE) {
        Some(word) => Some(tier(&word.to_string_lossy())?),
        None => None,
    };
    Ok(settings(file, text.as_deref(), minimum)?)
}

fn tier(word: &str) -> Result<Tier, SettingsError> {
    [Tier::Room, Tier::Walls, Tier::None]
        .into_iter()
        .find(|tier| tier.as_str() == word)
        .ok_or_else(|| SettingsError::Variable(word.to_owned()))
}

fn settings(
    file: PathBuf,
    text: Option<&str>,
    minimum: Option<Tier>,
) -> Result<Settings, SettingsError> {
    let written: Written = match text {
        Some(text) => toml::from_str(text).map_err(|error| mistake(&file, text, &error))?,
        None => Written::default(),
    };
    let usual = usual_limits();
    Ok(Settings {
        file,
        found: text.is_some(),
        minimum: minimum.or(written.sandbox.minimum).unwrap_or(Tier::Room),
        limits: Limits {
            memory: written.limits.memory.map_or(usual.memory, |size| size.0),
            pids: written.limits.pids.map_or(usual.pids, |pids| pids.get()),
            tmp: written.limits.tmp.map_or(usual.tmp, |size| size.0),
        },
        lease: written.editors.lease.map_or(broker::LEASE, |span| span.0),
        expire_after: written
            .approvals
            .expire_after
            .map_or(EXPIRE_AFTER, |span| span.0),
        providers: written.providers,
        models: written.models,
    })
}

fn mistake(file: &Path, text: &str, error: &toml::de::Error) -> SettingsError {
    let start = error.span().map_or(0, |span| span.start);
    SettingsError::Mistake {
        file: file.to_owned(),
        line: 1 + text
            .bytes()
            .take(start)
            .filter(|byte| *byte == b'\n')
            .count(),
        what: error
            .message()
            .replace('\n', " ")
            .replace("unknown field", "unknown key")
            .replace("unknown variant", "unknown tier"),
    }
}

/// What a large build does not meet and a runaway does, before it takes the machine along.
fn usual_limits() -> Limits {
    let system = rustix::system::sysinfo();
    let memory = (system.totalram as u64).saturating_mul(u64::from(system.mem_unit.max(1)));
    Limits {
        memory: round(memory / 4 * 3),
        pids: 4096,
        tmp: round(memory / 4),
    }
}

/// Down to a number that people can read: whole gigabytes, or megabytes where there are few.
fn round(bytes: u64) -> u64 {
    let unit = if bytes >= 2 << 30 { 1 << 30 } else { 1 << 20 };
    (bytes / unit).max(1) * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Settings, String> {
        settings("s.toml".into(), Some(text), None).map_err(|error| error.to_string())
    }

    #[test]
    fn without_a_file_the_strongest_tier_is_demanded_and_builds_fit_the_limits() {
        let settings = settings("s.toml".into(), None, None).unwrap();
        assert_eq!(
            (settings.found, settings.minimum, settings.limits),
            (false, Tier::Room, usual_limits())
        );
        assert!(settings.limits.memory > 256 << 20);
    }

    #[test]
    fn what_the_file_says_holds_and_the_rest_stays_as_usual() {
        let settings =
            read("[sandbox]\nminimum = \"walls\"\n[limits]\nmemory = \"2G\"\ntmp = 1048576\n")
                .unwrap();
        assert_eq!(settings.minimum, Tier::Walls);
        assert_eq!(
            settings.limits,
            Limits {
                memory: 2 << 30,
                pids: 4096,
                tmp: 1 << 20
            }
        );
    }

    #[test]
    fn a_question_is_open_for_a_week_or_for_as_long_as_the_file_says() {
        let days = |days: u64| Duration::from_secs(days * 24 * 60 * 60);
        assert_eq!(read("").unwrap().expire_after, days(7));
        let settings = read("[approvals]\nexpire_after = \"30d\"\n").unwrap();
        assert_eq!(settings.expire_after, days(30));
        assert!(read("[approvals]\nexpire_after = \"0s\"\n").is_err());
    }

    #[test]
    fn the_variable_beats_the_file() {
        let text = Some("[sandbox]\nminimum = \"walls\"\n");
        let settings = settings("s.toml".into(), text, Some(Tier::None)).unwrap();
        assert_eq!(settings.minimum, Tier::None);
        assert_eq!(
            tier("rooom").unwrap_err().to_string(),
            "WARD_SANDBOX_MINIMUM is `rooom`; it can be room, walls or none."
        );
    }

    #[test]
    fn a_mistake_is_named_with_its_file_and_line() {
        let mistakes = [
            "[sandbox]\nminium = \"room\"\n",
            "[sandbox]\nminimum = \"rooom\"\n",
            "\n\n[limts]\n",
            "[limits]\nmemory = \"lots\"\n",
            "[limits]\npids = 0\n",
            "[limits]\npids = \n",
            "sandbox = 3\n",
            "[providers.work]\nurl = \"x\"\n",
            "[models.\"gpt-5\"]\ninputs = 3\n",
        ]
        .map(|text| read(text).unwrap_err());
        insta::assert_snapshot!(mistakes.join("\n"));
    }
}
