//! What Ward brings along: four roles and a few rules, as the files that they are.

use crate::mistake::Mistake;
use crate::roles::Roles;
use crate::rule::{Rules, Source};

/// The role where none is named.
pub const DEFAULT_ROLE: &str = "system_agent";

const ROLES: &[(&str, &str)] = &[
    ("architect", include_str!("builtin/roles/architect.md")),
    ("backend", include_str!("builtin/roles/backend.md")),
    (
        "system_agent",
        include_str!("builtin/roles/system_agent.md"),
    ),
    ("watcher", include_str!("builtin/roles/watcher.md")),
];

/// The built-in roles.
#[must_use]
pub fn roles() -> Roles {
    let mut roles = Roles::default();
    for (name, text) in ROLES {
        roles.read(
            text,
            &format!("built-in:{name}.md"),
            name,
            Source::Builtin,
            &[],
        );
    }
    roles
}

/// The built-in rules. That they can be read is tested; a caller that has none has no allow either.
pub fn rules() -> Result<Rules, Vec<Mistake>> {
    Rules::read(
        include_str!("builtin/rules.toml"),
        "built-in:rules.toml",
        Source::Builtin,
    )
}
