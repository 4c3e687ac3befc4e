//! What a grant for one command changes: which protected paths it may write after all, and which
//! paths outside the wall are shown to it.

use std::path::{Component, Path};

use super::message::Protected;
use crate::error::SandboxError;
use crate::wall::{WidenedAccess, Widening};

/// What is held of one command, and what is shown to it.
#[derive(Debug, Default)]
pub(crate) struct Widened {
    pub(crate) protected: Vec<Protected>,
    /// To be mounted, or named to Landlock.
    pub(crate) shown: Vec<Widening>,
}

/// Works out what `granted` changes for a command in this workspace.
///
/// Refuses a path that is not a real one, and one that holds the workspace: shown as it is outside,
/// nothing in it would be protected.
pub(crate) fn widen(
    workspace: &Path,
    protected: Vec<Protected>,
    granted: &[Widening],
) -> Result<Widened, SandboxError> {
    let mut widened = Widened {
        protected,
        shown: Vec::new(),
    };
    for widening in granted {
        let path = &widening.path;
        let refuse = |why: &str| {
            Err(SandboxError::Command(format!(
                "The wall cannot be opened for {}: {why}.",
                path.display()
            )))
        };
        let plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
        if !path.is_absolute() || !path.components().all(plain) {
            return refuse("only a real, absolute path can be named");
        }
        if workspace.starts_with(path) {
            return refuse("it holds the workspace. Name what is needed in it");
        }
        if !path.starts_with(workspace) {
            widened.shown.push(widening.clone());
            continue;
        }
        // Inside the workspace everything can be read.
        if widening.access == WidenedAccess::Read {
            continue;
        }
        // Not held at all instead of shown anew: most programs write a file by moving another over
        // it, and nothing can be moved over what is mounted.
        widened
            .protected
            .retain(|held| !held.path.starts_with(path));
        let is_above = |held: &Protected| !held.place_only && path.starts_with(&held.path);
        if widened.protected.iter().any(is_above) {
            widened.shown.push(widening.clone());
        }
    }
    Ok(widened)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn widened(granted: &[(&str, WidenedAccess)]) -> Option<(Vec<String>, Vec<String>)> {
        let held = |path: &str, place_only| Protected {
            path: path.into(),
            place_only,
        };
        let protected = vec![
            held("/ws/.git", true),
            held("/ws/.git/config", false),
            held("/ws/.git/hooks", false),
            held("/ws/AGENTS.md", false),
        ];
        let granted: Vec<Widening> = granted
            .iter()
            .map(|(path, access)| Widening {
                path: path.into(),
                access: *access,
            })
            .collect();
        let Widened { protected, shown } = widen(Path::new("/ws"), protected, &granted).ok()?;
        let text = |path: &Path| path.display().to_string();
        Some((
            protected.iter().map(|held| text(&held.path)).collect(),
            shown.iter().map(|widening| text(&widening.path)).collect(),
        ))
    }

    fn strings(words: &[&str]) -> Vec<String> {
        words.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_protected_path_that_was_granted_is_not_held() {
        let left = strings(&["/ws/.git", "/ws/.git/hooks", "/ws/AGENTS.md"]);
        let granted = [("/ws/.git/config", WidenedAccess::Write)];
        assert_eq!(widened(&granted), Some((left, Vec::new())));
        let left = strings(&["/ws/AGENTS.md"]);
        let granted = [("/ws/.git", WidenedAccess::Write)];
        assert_eq!(widened(&granted), Some((left, Vec::new())));
    }

    #[test]
    fn a_part_of_what_is_held_and_what_is_outside_are_shown() {
        let all = strings(&[
            "/ws/.git",
            "/ws/.git/config",
            "/ws/.git/hooks",
            "/ws/AGENTS.md",
        ]);
        let granted = [
            ("/ws/.git/hooks/pre-commit", WidenedAccess::Write),
            ("/ws/AGENTS.md", WidenedAccess::Read),
            ("/ws-2", WidenedAccess::Read),
        ];
        let shown = strings(&["/ws/.git/hooks/pre-commit", "/ws-2"]);
        assert_eq!(widened(&granted), Some((all, shown)));
    }

    #[test]
    fn what_holds_the_workspace_or_is_no_real_path_is_refused() {
        for path in ["/", "/ws", "ws", "", "/x/../ws", "/ws/../x"] {
            assert_eq!(widened(&[(path, WidenedAccess::Write)]), None, "{path}");
        }
    }
}
