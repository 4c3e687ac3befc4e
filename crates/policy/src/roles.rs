//! All roles there are, by name; and of two with one name, which wins and why.

use std::collections::BTreeMap;

use crate::mistake::{Mistake, Weight};
use crate::role::{self, Role, RoleName};
use crate::rule::Source;
use crate::skill::SkillFile;

/// The roles that were found.
#[derive(Debug, Clone, Default)]
pub struct Roles {
    by_name: BTreeMap<RoleName, Role>,
    mistakes: Vec<Mistake>,
    /// Files with mistakes that are no roles, by every name that they may have been meant to have.
    refused: BTreeMap<String, String>,
}

/// Why a role cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoRole {
    /// There is none of that name.
    #[error("There is no role `{name}`. The roles are {known}.")]
    Unknown {
        /// As asked for.
        name: String,
        /// Those there are.
        known: String,
    },
    /// Its file has mistakes.
    #[error(
        "The role `{name}` cannot be used, because its file {file} has mistakes. `ward roles check` tells them."
    )]
    Mistaken {
        /// The role.
        name: String,
        /// Its file.
        file: String,
    },
    /// It is from a workspace that nobody has trusted.
    #[error(
        "The role `{name}` is from {file}, which is not trusted. Look at it, then run `ward trust`."
    )]
    Untrusted {
        /// The role.
        name: String,
        /// Its file.
        file: String,
    },
}

impl Roles {
    /// Reads one file and adds its role. Mistakes are kept.
    pub fn read(
        &mut self,
        text: &str,
        file: &str,
        stem: &str,
        source: Source,
        files: &[SkillFile],
    ) {
        match role::read(text, file, stem, source, files) {
            Ok((role, mistakes)) => {
                self.mistakes.extend(mistakes);
                self.add(role);
            }
            Err(mistakes) => {
                for name in role::names(text, file, stem) {
                    self.refused.entry(name).or_insert_with(|| file.to_owned());
                }
                self.mistakes.extend(mistakes);
            }
        }
    }

    /// Adds a role. Of two with one name, the weightier source wins: the person's own, then a
    /// trusted workspace's, then the built-in; an untrusted one never. Of one source, the first.
    pub fn add(&mut self, role: Role) {
        let Some(known) = self.by_name.get(&role.name) else {
            self.by_name.insert(role.name.clone(), role);
            return;
        };
        let replaces = role.origin.source > known.origin.source;
        let (winner, loser) = if replaces {
            (&role, known)
        } else {
            (known, &role)
        };
        // That a person's role stands in for a built-in is what it is there for.
        if loser.origin.source != Source::Builtin {
            let why = if winner.origin.source == loser.origin.source {
                "it came first".to_owned()
            } else {
                format!("it is {}", winner.origin.source.as_str())
            };
            self.mistakes.push(Mistake {
                file: loser.origin.file.clone(),
                line: loser.origin.line,
                weight: Weight::Note,
                what: format!("There are two roles `{}`.", loser.name),
                hint: format!(
                    "The one in {} wins: {why}. Rename one of them.",
                    winner.origin.file
                ),
            });
        }
        if replaces {
            self.by_name.insert(role.name.clone(), role);
        }
    }

    /// The role of this name, if it may be used.
    pub fn get(&self, name: &str) -> Result<&Role, NoRole> {
        match self
            .by_name
            .values()
            .find(|role| role.name.as_str() == name)
        {
            Some(role) if role.origin.source == Source::Untrusted => Err(NoRole::Untrusted {
                name: name.to_owned(),
                file: role.origin.file.clone(),
            }),
            Some(role) => Ok(role),
            None => match self.refused.get(name) {
                Some(file) => Err(NoRole::Mistaken {
                    name: name.to_owned(),
                    file: file.clone(),
                }),
                None => Err(NoRole::Unknown {
                    name: name.chars().take(100).collect(),
                    known: self
                        .by_name
                        .keys()
                        .map(RoleName::as_str)
                        .collect::<Vec<_>>()
                        .join(", "),
                }),
            },
        }
    }

    /// All of them, by name, also those that are not trusted.
    pub fn iter(&self) -> impl Iterator<Item = &Role> {
        self.by_name.values()
    }

    /// Every mistake that was found.
    #[must_use]
    pub fn mistakes(&self) -> &[Mistake] {
        &self.mistakes
    }
}
