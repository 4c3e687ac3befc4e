//! Runtimes that are gone: whose they were, so that a window that comes back can have its id again.
//! Conversations are bound to it.

use std::collections::VecDeque;

use crate::index::About;

/// How many are remembered for one person.
const MAX: usize = 1024;

/// Those that are gone, the last one last.
#[derive(Debug, Default)]
pub(crate) struct Former(VecDeque<Gone>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gone {
    pub(crate) id: String,
    pub(crate) person: String,
    pub(crate) kind: String,
    pub(crate) workspace: String,
}

impl Gone {
    pub(crate) fn new(id: &str, person: &str, about: &About) -> Self {
        Self {
            id: id.to_owned(),
            person: person.to_owned(),
            kind: about.kind.clone(),
            workspace: about.workspace.clone(),
        }
    }

    /// Whether this is what it was.
    pub(crate) fn is(&self, about: &About) -> bool {
        self.kind == about.kind && self.workspace == about.workspace
    }
}

impl Former {
    /// One more is gone. Of its person's, the one that is gone for longest makes room for it.
    pub(crate) fn add(&mut self, gone: Gone) {
        let theirs = self.0.iter().filter(|one| one.person == gone.person);
        if theirs.count() >= MAX {
            let first = self.0.iter().position(|one| one.person == gone.person);
            first.and_then(|first| self.0.remove(first));
        }
        self.0.push_back(gone);
    }

    /// What had this id, where it was this person's.
    pub(crate) fn get(&self, person: &str, id: &str) -> Option<&Gone> {
        let mut all = self.0.iter();
        all.find(|one| one.id == id && one.person == person)
    }

    /// This one is back.
    pub(crate) fn remove(&mut self, id: &str) {
        self.0.retain(|one| one.id != id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gone(id: usize, person: &str) -> Gone {
        Gone {
            id: id.to_string(),
            person: person.to_owned(),
            kind: "vscode".to_owned(),
            workspace: "/w".to_owned(),
        }
    }

    #[test]
    fn an_id_is_known_to_whom_it_belonged_and_nobody_elses_make_it_forgotten() {
        let mut former = Former::default();
        former.add(gone(0, "ada"));
        for id in 1..=MAX + 1 {
            former.add(gone(id, "grace"));
        }
        assert_eq!(former.get("ada", "0"), Some(&gone(0, "ada")));
        assert_eq!(former.get("grace", "0"), None);
        assert_eq!(former.get("grace", "1"), None);
        assert_eq!(former.get("grace", "2"), Some(&gone(2, "grace")));
        former.remove("2");
        assert_eq!(former.get("grace", "2"), None);
    }
}
