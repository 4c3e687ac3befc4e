//! Roles: who an agent is. A Markdown file whose front matter says what it may do, and whose body
//! is its instructions.

use protocol::ActionName;
use serde::Serialize;

use crate::front_matter::{FrontMatter, Node};
use crate::mistake::{Mistake, Weight, closest};
use crate::mode::Mode;
use crate::rule::{Origin, Source};
use crate::skill::{Skill, SkillFile, patterns};
use crate::tools;
use crate::touch::Touch;

/// A role's name: letters, digits, `-`, `_` and `.`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct RoleName(String);

/// Why a name cannot be a role's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` cannot be a role's name: use letters, digits, `-`, `_` and `.`, at most 64.")]
pub struct BadName(String);

impl RoleName {
    /// Reads a name.
    pub fn parse(text: &str) -> Result<Self, BadName> {
        let is_fine = |char: char| char.is_alphanumeric() || "-_.".contains(char);
        if text.is_empty() || text.chars().count() > 64 || !text.chars().all(is_fine) {
            return Err(BadName(text.chars().take(64).collect()));
        }
        Ok(Self(text.to_owned()))
    }

    /// As it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for RoleName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A role that has been read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Role {
    /// Its name.
    pub name: RoleName,
    /// What it is for.
    pub description: String,
    /// The model it asks for.
    pub model: Option<String>,
    /// The provider it asks for.
    pub provider: Option<String>,
    /// What it may do.
    pub skills: Vec<Skill>,
    /// The freest mode it may have; [`Mode::Sandbox`] where it does not say.
    pub mode: Mode,
    /// How much it may use.
    pub limits: Limits,
    /// What it is told.
    pub instructions: String,
    /// Where it is written.
    pub origin: Origin,
}

impl Role {
    /// Whether it has any use for this action: a skill that covers it, if not everywhere.
    #[must_use]
    pub fn uses(&self, action: ActionName) -> bool {
        let touch = Touch::usual(action);
        self.skills.iter().any(|skill| skill.pattern.names(&touch))
    }
}

/// How much a role may use; no limit of its own where left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// Turns of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u64>,
    /// Tokens, in and out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Cost in millionths of a dollar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
    /// Time, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
}

const KEYS: &[&str] = &[
    "name",
    "id",
    "description",
    "model",
    "provider",
    "skills",
    "mode",
    "limits",
    "capabilities",
    "models",
    "tools",
];

/// Keys of Claude Code's agent files that say nothing about what may be done.
const IGNORED: &[&str] = &[
    "color",
    "permissionMode",
    "version",
    "tags",
    "author",
    "memory",
];

/// Keys of these files that would do something there and do nothing here, which is told.
const UNUSED: &[&str] = &[
    "background",
    "effort",
    "hooks",
    "initialPrompt",
    "isolation",
    "mcpServers",
];

/// Reads a role. `stem` is the file's name without its ending: the role's name where it has none.
///
/// A file with a mistake that matters is no role: a typing error must not become more freedom.
/// Mistakes that do not matter come with it.
pub fn read(
    text: &str,
    file: &str,
    stem: &str,
    source: Source,
    files: &[SkillFile],
) -> Result<(Role, Vec<Mistake>), Vec<Mistake>> {
    let front = FrontMatter::read(text, file)?;
    let mut reading = Reading {
        file,
        source,
        files,
        mistakes: Vec::new(),
    };
    let (mut name, mut id, mut disallowed) = (None, None, None);
    let mut says_skills = false;
    let mut role = Role {
        name: RoleName(stem.to_owned()),
        description: String::new(),
        model: None,
        provider: None,
        skills: Vec::new(),
        mode: Mode::Sandbox,
        limits: Limits::default(),
        instructions: front.body.clone(),
        origin: reading.origin(1),
    };
    for (key, line, node) in front.entries() {
        says_skills |= matches!(key, "skills" | "tools" | "capabilities");
        if matches!(key, "limits" | "models" | "capabilities") && !node.is_map() {
            let hint = "Write each on a line of its own below it.".to_owned();
            reading.mistake(line, format!("`{key}` has to be a list of keys."), hint);
        }
        match key {
            "name" => name = reading.text(key, node).map(|text| (text, line)),
            "id" => id = reading.text(key, node).map(|text| (text, line)),
            "description" => role.description = reading.text(key, node).unwrap_or_default(),
            "model" if !node.entries().is_empty() => {
                for (key, line, node) in node.entries() {
                    match key.as_str() {
                        "provider" => role.provider = reading.text(key, node),
                        "name" | "id" | "default" => role.model = reading.text(key, node),
                        key => reading.unknown(*line, "model", key, &["provider", "name"]),
                    }
                }
            }
            "model" => role.model = reading.text(key, node),
            "provider" => role.provider = reading.text(key, node),
            "models" => {
                for (key, line, node) in node.entries() {
                    match key.as_str() {
                        "default" => role.model = reading.text(key, node),
                        key => reading.unknown(*line, "models", key, &["default"]),
                    }
                }
            }
            "skills" | "tools" => reading.skills(node, &mut role.skills),
            "capabilities" => {
                for (key, line, node) in node.entries() {
                    match key.as_str() {
                        "skills" => reading.skills(node, &mut role.skills),
                        key => reading.unknown(*line, "capabilities", key, &["skills"]),
                    }
                }
            }
            "mode" => role.mode = reading.mode(line, node),
            "limits" => role.limits = reading.limits(node),
            "disallowedTools" if tools::are_of(file) => disallowed = Some(node),
            "maxTurns" if tools::are_of(file) => role.limits.turns = reading.turns(line, node),
            key if IGNORED.contains(&key) => {}
            key if UNUSED.contains(&key) && tools::are_of(file) => {
                reading.note(line, format!("`{key}` does nothing in Ward."));
            }
            key => reading.unknown(line, "a role", key, KEYS),
        }
    }
    if tools::are_of(file) && !says_skills {
        reading.mistakes.push(Mistake {
            file: file.to_owned(),
            line: 1,
            weight: Weight::Note,
            what: "It names no `tools`: all of them in Claude Code, none in Ward, so that this role may do nothing.".to_owned(),
            hint: "Name what it may use, such as `tools: Read, Grep, Bash`.".to_owned(),
        });
    }
    if let Some(node) = disallowed {
        reading.take_away(node, &mut role.skills);
    }
    let (text, line) = name.or(id).unwrap_or_else(|| (stem.to_owned(), 1));
    match RoleName::parse(&text) {
        Ok(name) => role.name = name,
        Err(error) => reading.mistake(line, error.to_string(), String::new()),
    }
    if reading
        .mistakes
        .iter()
        .any(|mistake| mistake.weight == Weight::Error)
    {
        return Err(reading.mistakes);
    }
    Ok((role, reading.mistakes))
}

/// The names that a file with mistakes may have been meant to have.
pub(crate) fn names(text: &str, file: &str, stem: &str) -> Vec<String> {
    let mut names = vec![stem.to_owned()];
    if let Ok(front) = FrontMatter::read(text, file) {
        let entries = front.entries();
        let named = entries.filter(|(key, ..)| matches!(*key, "name" | "id"));
        names.extend(named.filter_map(|(_, _, node)| node.text().map(str::to_owned)));
    }
    names
}

struct Reading<'a> {
    file: &'a str,
    source: Source,
    files: &'a [SkillFile],
    mistakes: Vec<Mistake>,
}

impl Reading<'_> {
    fn origin(&self, line: usize) -> Origin {
        Origin {
            source: self.source,
            file: self.file.to_owned(),
            line,
        }
    }

    fn mistake(&mut self, line: usize, what: String, hint: String) {
        self.mistakes.push(Mistake {
            file: self.file.to_owned(),
            line,
            weight: Weight::Error,
            what,
            hint,
        });
    }

    fn unknown(&mut self, line: usize, of: &str, key: &str, known: &[&str]) {
        let hint = match closest(key, known.iter().copied()) {
            Some(closest) => format!("Did you mean `{closest}`?"),
            None => format!("The keys are {}.", known.join(", ")),
        };
        self.mistake(line, format!("There is no key `{key}` in {of}."), hint);
    }

    fn text(&mut self, key: &str, node: &Node) -> Option<String> {
        let text = node.text().map(str::to_owned);
        if text.is_none() {
            let hint = "Write it in one line.".to_owned();
            self.mistake(node.line, format!("`{key}` has to be a text."), hint);
        }
        text
    }

    fn skills(&mut self, node: &Node, skills: &mut Vec<Skill>) {
        let (file, source) = (self.file.to_owned(), self.source);
        let origin = |line| Origin {
            source,
            file: file.clone(),
            line,
        };
        let files = self.files;
        let named = |name: &str| files.iter().find(|file| file.name == name);
        patterns(node, &origin, skills, &mut self.mistakes, named);
    }

    fn note(&mut self, line: usize, what: String) {
        self.mistakes.push(Mistake {
            file: self.file.to_owned(),
            line,
            weight: Weight::Note,
            what,
            hint: "It is ignored.".to_owned(),
        });
    }

    /// Takes out what a file of Claude Code disallows. What is disallowed in part goes as a whole:
    /// a skill says what a role may do, and cannot say what it may not.
    fn take_away(&mut self, node: &Node, skills: &mut Vec<Skill>) {
        fn name_of(pattern: &str) -> &str {
            pattern.split('(').next().unwrap_or(pattern).trim_end()
        }
        for (word, line) in node.words() {
            let taken = match tools::patterns(&word) {
                tools::Meaning::Patterns(taken) => taken,
                tools::Meaning::Nothing => continue,
                tools::Meaning::NotATool => {
                    self.note(line, format!("The tool `{word}` is none that Ward knows."));
                    continue;
                }
            };
            // A command may want to reach hosts; so may others, who keep that.
            let names = taken.iter().map(|pattern| name_of(pattern));
            let names: Vec<&str> = names
                .filter(|name| word != "Bash" || *name != "net")
                .collect();
            let wide = skills.iter().map(|skill| skill.pattern.as_str());
            let wide = wide.map(name_of).find(|name| name.ends_with('*'));
            if let Some(wide) = wide {
                let what = format!("`{word}` cannot be taken out of `{wide}`.");
                let hint = "Name the tools that it may use.".to_owned();
                self.mistake(line, what, hint);
                return;
            }
            skills.retain(|skill| !names.contains(&name_of(skill.pattern.as_str())));
        }
    }

    fn turns(&mut self, line: usize, node: &Node) -> Option<u64> {
        let turns = node.text().and_then(|text| text.parse().ok());
        if turns.is_none() {
            let hint = "Write it like `maxTurns: 50`.".to_owned();
            self.mistake(line, "`maxTurns` has to be a number.".to_owned(), hint);
        }
        turns
    }

    fn mode(&mut self, line: usize, node: &Node) -> Mode {
        let mode = node.text().and_then(Mode::parse);
        if mode.is_none() {
            let what = "`mode` has to be `sandbox` or `full`.".to_owned();
            self.mistake(line, what, "Without it, it is `sandbox`.".to_owned());
        }
        mode.unwrap_or(Mode::Sandbox)
    }

    fn limits(&mut self, node: &Node) -> Limits {
        let mut limits = Limits::default();
        for (key, line, node) in node.entries() {
            let text = node.text().unwrap_or_default();
            let (slot, value, example) = match key.as_str() {
                "turns" => (&mut limits.turns, text.parse().ok(), "50"),
                "tokens" => (&mut limits.tokens, text.parse().ok(), "200000"),
                "cost" => (&mut limits.cost_micros, dollars(text), "2.50"),
                "time" => (&mut limits.seconds, seconds(text), "30m"),
                key => {
                    self.unknown(*line, "limits", key, &["turns", "tokens", "cost", "time"]);
                    continue;
                }
            };
            if value.is_none() {
                let hint = format!("Write it like `{key}: {example}`.");
                self.mistake(*line, format!("`{key}` cannot be `{text}`."), hint);
            }
            *slot = value;
        }
        limits
    }
}

/// `2.50` or `$2.50`, in millionths.
fn dollars(text: &str) -> Option<u64> {
    let text = text.trim_start_matches('$');
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    if part.len() > 6 || !part.chars().all(|char| char.is_ascii_digit()) {
        return None;
    }
    let part: u64 = format!("{part:0<6}").parse().ok()?;
    whole
        .parse::<u64>()
        .ok()?
        .checked_mul(1_000_000)?
        .checked_add(part)
}

/// `90`, `90s`, `30m`, `2h`.
fn seconds(text: &str) -> Option<u64> {
    let (number, unit) = match text.strip_suffix(['s', 'm', 'h']) {
        Some(number) => (number, text.chars().last()?),
        None => (text, 's'),
    };
    let factor = match unit {
        'h' => 3600,
        'm' => 60,
        _ => 1,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}
