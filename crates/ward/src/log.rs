//! Logs: through `tracing` to standard error, at the level that `--log` or WARD_LOG names.

use tracing::Metadata;
use tracing_subscriber::filter::{LevelFilter, Targets, filter_fn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// What is logged.
#[derive(Debug, Clone)]
pub(crate) struct Filter(Targets);

impl Default for Filter {
    fn default() -> Self {
        Self(Targets::new().with_default(LevelFilter::WARN))
    }
}

/// Reads `info`, or `warn,sandbox=debug`.
pub(crate) fn parse(text: &str) -> Result<Filter, String> {
    let help = "use error, warn, info, debug, trace or off, or name parts: `info,sandbox=debug`";
    let targets: Targets = text.parse().map_err(|_| help.to_owned())?;
    // A lone word that is no level is read as the name of a part: most likely a slip.
    for word in text.split(',').filter(|word| !word.contains('=')) {
        word.trim()
            .parse::<LevelFilter>()
            .map_err(|_| format!("`{}` is not a level; {help}", word.trim()))?;
    }
    Ok(Filter(targets))
}

/// Whether nothing secret can stand in it. The broker's libraries, each of several parts, write out
/// whatever they are sent and send, tokens and files too, but where they say which answers they dropped.
fn keeps_secrets(about: &Metadata<'_>) -> bool {
    let says_all = ["socketioxide", "engineioxide"];
    let is_socket = about.target() == "socketioxide::socket" && about.is_event();
    !says_all.iter().any(|name| about.target().starts_with(name)) || is_socket
}

/// Starts logging; further calls change nothing.
pub(crate) fn start(filter: Filter) {
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()));
    let _ = tracing_subscriber::registry()
        .with(lines)
        .with(filter.0)
        .with(filter_fn(keeps_secrets))
        .try_init();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_or_parts_with_levels_are_read_and_a_slip_is_named() {
        assert!(parse("debug").is_ok());
        assert!(parse("warn,sandbox=trace").is_ok());
        assert_eq!(
            parse("debgu").unwrap_err(),
            "`debgu` is not a level; use error, warn, info, debug, trace or off, or name parts: `info,sandbox=debug`"
        );
        assert!(parse("sandbox=loud").is_err());
    }
}
