//! The hosts that are let through, as a person writes them: `--net host[:port],…`.
//!
//! | written | lets through |
//! | --- | --- |
//! | `example.com` | that name, ports 80 and 443 |
//! | `api.example.com:8443` | that name, that port |
//! | `*.pkg.dev:443` | every name below `pkg.dev` at any depth, not `pkg.dev` itself |
//! | `127.0.0.1:8080`, `[::1]:8080` | that address, asked for as an address |
//! | `localhost:8080` | that name; it alone of all names may lead to a loopback address |

use std::fmt;
use std::str::FromStr;

use super::target::{Host, HostError, HostName, Target, parse_port, split_port};

/// The ports of a host that was named without one.
const WEB_PORTS: [u16; 2] = [80, 443];

/// One entry of a [`HostList`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRule {
    hosts: Hosts,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Hosts {
    This(Host),
    Below(HostName),
}

impl HostRule {
    /// Whether this rule lets `target` through.
    #[must_use]
    pub fn allows(&self, target: &Target) -> bool {
        let host = match (&self.hosts, &target.host) {
            (Hosts::This(host), asked) => host == asked,
            (Hosts::Below(parent), Host::Name(name)) => name.is_below(parent),
            (Hosts::Below(_), Host::Ip(_)) => false,
        };
        host && match self.port {
            Some(port) => port == target.port,
            None => WEB_PORTS.contains(&target.port),
        }
    }
}

impl FromStr for HostRule {
    type Err = HostRuleError;

    fn from_str(entry: &str) -> Result<Self, HostRuleError> {
        let wrong = |why: HostRuleProblem| HostRuleError {
            entry: entry.to_owned(),
            why,
        };
        if entry.is_empty() {
            return Err(wrong(HostRuleProblem::Empty));
        }
        if entry == "*" || entry.starts_with("*:") {
            return Err(wrong(HostRuleProblem::Everything));
        }
        if entry.contains('/') {
            return Err(wrong(HostRuleProblem::Url));
        }
        if entry.matches(':').count() > 1 && !entry.contains(']') {
            return Err(wrong(HostError::BadIpv6.into()));
        }
        if entry.contains('@') {
            return Err(wrong(HostError::UserInfo.into()));
        }
        let (host, port) = split_port(entry);
        let port = match port {
            Some(digits) => Some(parse_port(digits).map_err(|why| wrong(why.into()))?),
            None => None,
        };
        let (below, host) = match host.strip_prefix("*.") {
            Some(parent) => (true, parent),
            None => (false, host),
        };
        if host.contains('*') {
            return Err(wrong(HostRuleProblem::Star));
        }
        let hosts = match Host::parse(host).map_err(|why| wrong(why.into()))? {
            host if !below => Hosts::This(host),
            Host::Name(parent) => Hosts::Below(parent),
            Host::Ip(_) => return Err(wrong(HostRuleProblem::Star)),
        };
        Ok(Self { hosts, port })
    }
}

impl fmt::Display for HostRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hosts {
            Hosts::This(host) => write!(f, "{host}")?,
            Hosts::Below(parent) => write!(f, "*.{}", parent.as_str())?,
        }
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

/// The hosts that are let through; what is not in it is refused. Empty, it refuses everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostList {
    rules: Vec<HostRule>,
}

impl HostList {
    /// Reads entries separated by commas. Refuses the whole list if one entry is wrong, for a list
    /// that is shorter than the person thinks would surprise, and a longer one would harm.
    pub fn parse(text: &str) -> Result<Self, HostRuleError> {
        Self::from_entries(text.split(','))
    }

    /// Reads one entry at a time.
    pub fn from_entries<S: AsRef<str>>(
        entries: impl IntoIterator<Item = S>,
    ) -> Result<Self, HostRuleError> {
        let rules = entries
            .into_iter()
            .map(|entry| entry.as_ref().trim().parse())
            .collect::<Result<_, _>>()?;
        Ok(Self { rules })
    }

    /// Whether any rule lets `target` through.
    #[must_use]
    pub fn allows(&self, target: &Target) -> bool {
        self.rules.iter().any(|rule| rule.allows(target))
    }

    /// The rules, in the order they were written.
    #[must_use]
    pub fn rules(&self) -> &[HostRule] {
        &self.rules
    }
}

/// An entry that is not a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{entry:?} does not name a host to let through: {why}.")]
pub struct HostRuleError {
    /// The entry as it was written.
    pub entry: String,
    /// What is wrong with it.
    pub why: HostRuleProblem,
}

/// What is wrong with an entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostRuleProblem {
    /// Nothing between two commas.
    #[error("it is empty; write host or host:port, with a comma between two")]
    Empty,
    /// `*`.
    #[error(
        "there is no rule for every host; name the hosts, or `*.example.com` for all below one"
    )]
    Everything,
    /// A star elsewhere than in front of a name.
    #[error("a star stands only in front of a name, as in `*.example.com`")]
    Star,
    /// A URL or a path.
    #[error("write the host alone, such as `example.com:443`, without `https://` and path")]
    Url,
    /// Not a host.
    #[error(transparent)]
    Host(#[from] HostError),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> Target {
        Target::parse(text, None).unwrap()
    }

    #[test]
    fn a_list_lets_through_what_it_names_and_nothing_else() {
        let list = HostList::parse(
            "example.com, api.Example.com:8443, *.pkg.dev:443, 127.0.0.1:8080,[::1]:9, *.any.test",
        )
        .unwrap();
        let table = [
            ("example.com:80", true),
            ("example.com:443", true),
            ("EXAMPLE.com.:443", true),
            ("example.com:22", false),
            ("www.example.com:443", false),
            ("notexample.com:443", false),
            ("example.com.evil.com:443", false),
            ("api.example.com:8443", true),
            ("api.example.com:443", false),
            ("a.pkg.dev:443", true),
            ("a.b.c.pkg.dev:443", true),
            ("pkg.dev:443", false),
            ("a.pkg.dev:80", false),
            ("apkg.dev:443", false),
            ("127.0.0.1:8080", true),
            ("127.0.0.1:80", false),
            ("127.0.0.2:8080", false),
            ("localhost:8080", false),
            ("[::1]:9", true),
            ("[::1]:8080", false),
            ("x.any.test:80", true),
            ("x.any.test:81", false),
        ];
        for (text, allowed) in table {
            assert_eq!(list.allows(&target(text)), allowed, "{text}");
        }
    }

    #[test]
    fn an_empty_list_refuses_everything() {
        assert!(!HostList::default().allows(&target("example.com:443")));
    }

    #[test]
    fn a_rule_is_shown_as_it_is_written() {
        for text in [
            "example.com",
            "api.example.com:8443",
            "*.pkg.dev:443",
            "127.0.0.1:8080",
            "[::1]",
        ] {
            assert_eq!(text.parse::<HostRule>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_not_a_host_is_refused_with_a_sentence() {
        let table = [
            ("", "it is empty"),
            ("example.com,", "it is empty"),
            ("*", "no rule for every host"),
            ("*:443", "no rule for every host"),
            ("a.*.com", "a star stands only in front"),
            ("*.*.com", "a star stands only in front"),
            ("*example.com", "a star stands only in front"),
            ("*.127.0.0.1", "a star stands only in front"),
            ("*.0.1", "four plain decimal numbers"),
            ("https://example.com", "write the host alone"),
            ("example.com/path", "write the host alone"),
            ("example.com:", "is not a port"),
            ("example.com:0", "is not a port"),
            ("example.com:65536", "is not a port"),
            ("example.com:+80", "is not a port"),
            ("example.com:0443", "is not a port"),
            ("example.com:http", "is not a port"),
            ("::1", "in brackets"),
            ("::1:8080", "in brackets"),
            ("[::1", "in brackets"),
            ("[fe80::1%eth0]:80", "in brackets"),
            ("[::ffff:127.0.0.1]:80", "not the address of one host"),
            ("0.0.0.0:80", "not the address of one host"),
            ("224.0.0.1", "not the address of one host"),
            ("0x7f.1:80", "four plain decimal numbers"),
            ("user@example.com", "a user name"),
            ("bücher.example", "xn--"),
            ("exa mple.com", "cannot be part"),
            ("example..com", "cannot be a part"),
            ("-a.com", "cannot be a part"),
        ];
        for (text, says) in table {
            let error = HostList::parse(text).unwrap_err().to_string();
            assert!(error.contains(says), "{text:?}: {error}");
        }
    }
}
