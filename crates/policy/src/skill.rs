//! Skills: what a role may do. A skill is a pattern, or the name of a skill file that lists some.

use crate::front_matter::{FrontMatter, Node};
use crate::mistake::{Mistake, Weight};
use crate::pattern::{BadPattern, Pattern};
use crate::rule::{Origin, Source};
use crate::tools;

/// A pattern that a role may use, and where it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// What it covers.
    pub pattern: Pattern,
    /// Where it is written: in the role, or in the skill file that the role names.
    pub origin: Origin,
}

/// A `SKILL.md`: a name for some skills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFile {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// What it covers.
    pub skills: Vec<Skill>,
    /// Where it is.
    pub origin: Origin,
}

/// Keys that skill files of others carry and that say nothing about what may be done.
const IGNORED: &[&str] = &["license", "compatibility", "metadata", "version", "model"];

impl SkillFile {
    /// Reads a skill file; `folder` is the name of the folder it is in, its name where it has none.
    pub fn read(
        text: &str,
        file: &str,
        folder: &str,
        source: Source,
    ) -> Result<(Self, Vec<Mistake>), Vec<Mistake>> {
        let front = FrontMatter::read(text, file)?;
        let origin = |line| Origin {
            source,
            file: file.to_owned(),
            line,
        };
        let (mut name, mut description, mut skills) =
            (folder.to_owned(), String::new(), Vec::new());
        let mut mistakes = Vec::new();
        for (key, line, node) in front.entries() {
            match key {
                "name" | "id" => name = node.text().unwrap_or(folder).to_owned(),
                "description" => description = node.text().unwrap_or_default().to_owned(),
                "skills" | "allowed-tools" => {
                    patterns(node, &origin, &mut skills, &mut mistakes, |_| None);
                }
                key if IGNORED.contains(&key) => {}
                key => mistakes.push(Mistake {
                    file: file.to_owned(),
                    line,
                    weight: Weight::Note,
                    what: format!("A skill file has no key `{key}`."),
                    hint:
                        "It is ignored. What it may do is written in `skills` or `allowed-tools`."
                            .to_owned(),
                }),
            }
        }
        if mistakes
            .iter()
            .any(|mistake| mistake.weight == Weight::Error)
        {
            return Err(mistakes);
        }
        let file = Self {
            name,
            description,
            skills,
            origin: origin(1),
        };
        Ok((file, mistakes))
    }
}

/// Whether a skill file could be called so.
fn is_a_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    !text.is_empty() && text.bytes().all(plain)
}

/// Reads a list of skills: patterns, names of skill files, and tools of Claude Code.
pub(crate) fn patterns<'s>(
    node: &Node,
    origin: &impl Fn(usize) -> Origin,
    skills: &mut Vec<Skill>,
    mistakes: &mut Vec<Mistake>,
    named: impl Fn(&str) -> Option<&'s SkillFile>,
) {
    for (text, line) in node.words() {
        if let Some(file) = named(&text) {
            skills.extend(file.skills.iter().cloned());
            continue;
        }
        let mut mistake = |weight, what: String, hint: String| {
            mistakes.push(Mistake {
                file: origin(line).file,
                line,
                weight,
                what,
                hint,
            });
        };
        match tools::patterns(&text) {
            tools::Meaning::Patterns(texts) => {
                for text in texts {
                    match Pattern::parse(&text) {
                        Ok(pattern) => skills.push(Skill {
                            pattern,
                            origin: origin(line),
                        }),
                        Err(error) => mistake(Weight::Error, error.to_string(), error.hint()),
                    }
                }
            }
            tools::Meaning::Nothing => mistake(
                Weight::Note,
                format!("The tool `{text}` is none of Ward's actions."),
                "It is ignored.".to_owned(),
            ),
            tools::Meaning::NotATool => match Pattern::parse(&text) {
                Ok(pattern) => skills.push(Skill {
                    pattern,
                    origin: origin(line),
                }),
                Err(_) if tools::are_of(&origin(line).file) => mistake(
                    Weight::Note,
                    format!("The tool `{text}` is none that Ward knows."),
                    "It is ignored.".to_owned(),
                ),
                Err(error @ BadPattern::Unknown { closest: None, .. }) if is_a_name(&text) => {
                    mistake(
                        Weight::Error,
                        format!("There is neither an action nor a skill file `{text}`."),
                        format!(
                            "A skill file would be `.ward/skills/{text}/SKILL.md`. {}",
                            error.hint()
                        ),
                    );
                }
                Err(error) => mistake(Weight::Error, error.to_string(), error.hint()),
            },
        }
    }
}
