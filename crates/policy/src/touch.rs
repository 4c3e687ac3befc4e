//! An action cut into the things it would touch. Each is decided on its own, and the strictest
//! answer is the action's.

use protocol::ActionName;
use protocol::facts::{Access, EntryKind};

use crate::command::{Command, Doubt, Line, Way};
use crate::decide::{Asked, Verb};
use crate::host::Host;
use crate::place::{self, Spot};

/// One thing that an action would touch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Touch {
    /// A path.
    Path {
        /// What happens to it.
        access: Access,
        /// Where it is; [`None`] where that cannot be known.
        path: Option<Spot>,
        /// Whether all below it is touched as well.
        reach: Reach,
        /// What touches it.
        by: By,
        /// As written.
        shown: String,
    },
    /// A command.
    Command(Command),
    /// Something about a command that cannot be known.
    Unknown(Doubt),
    /// What is typed into a terminal: nobody can tell what that runs.
    Typed,
    /// The action as such.
    Use(ActionName),
    /// A host.
    Host {
        /// Which; [`None`] where its name cannot be read.
        host: Option<Host>,
        /// As written.
        shown: String,
    },
}

/// What touches a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// A file action.
    Action(ActionName),
    /// A redirection, which a command's shell does.
    Redirection,
    /// A running command, which the wall stopped there.
    Stopped,
}

/// How much of a path is touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// It alone.
    Itself,
    /// It and everything in it.
    Tree,
}

/// Everything that this would touch.
pub(crate) fn all(asked: &Asked<'_>) -> Vec<Touch> {
    let facts = asked.facts;
    let mut touches = Vec::new();
    let (by, goes_deep) = match asked.verb {
        Verb::Deep(action) => (By::Action(action), true),
        Verb::Action(action) if is_files(action) => (By::Action(action), goes_deep(action)),
        // What an editor changes, it changes itself.
        Verb::Action(action) if action.is_editors() => (By::Action(action), true),
        // Paths among a command's facts are those that its shell opens.
        Verb::Action(_) | Verb::Net => (By::Redirection, true),
        Verb::Wall => (By::Stopped, true),
    };
    for fact in &facts.paths {
        let folder = fact.kind == Some(EntryKind::Directory);
        let path = |access| Touch::Path {
            access,
            path: is_place(&fact.path, by).then(|| Spot::new(&fact.path, &asked.place)),
            reach: if folder && goes_deep {
                Reach::Tree
            } else {
                Reach::Itself
            },
            by,
            shown: fact.path.clone(),
        };
        // What is moved can be read where it comes to, whatever is said about where it was.
        if by == By::Action(ActionName::FsMove) && fact.access == Access::Delete {
            touches.push(path(Access::Read));
        }
        touches.push(path(fact.access));
    }
    let nowhere = |access| Touch::Path {
        access,
        path: None,
        reach: Reach::Tree,
        by,
        shown: "a path that is not known".to_owned(),
    };
    match asked.verb {
        Verb::Action(action) | Verb::Deep(action) if is_files(action) => {
            if facts.paths.is_empty() {
                touches.push(nowhere(usual_access(action)));
            }
        }
        Verb::Action(action) | Verb::Deep(action) => {
            touches.push(Touch::Use(action));
            if action == ActionName::TerminalWrite {
                touches.push(Touch::Typed);
            }
            if matches!(action, ActionName::TerminalRun | ActionName::TerminalOpen) {
                add_command(asked, &mut touches);
            }
        }
        Verb::Wall => {
            if facts.paths.is_empty() {
                touches.push(nowhere(Access::Write));
            }
        }
        Verb::Net => {
            if facts.hosts.is_empty() {
                touches.push(Touch::Host {
                    host: None,
                    shown: "a host that is not known".to_owned(),
                });
            }
        }
    }
    for host in &facts.hosts {
        touches.push(Touch::Host {
            host: Host::named(host),
            shown: host.clone(),
        });
    }
    touches
}

/// Whether this is a place. What a shell opens was followed there, and where that could not be
/// done, or who opens it decides where it leads, nobody knows.
fn is_place(path: &str, by: By) -> bool {
    match by {
        By::Redirection => place::is_resolved(path) && !place::is_through_process(path),
        By::Action(_) | By::Stopped => true,
    }
}

fn is_files(action: ActionName) -> bool {
    action.as_str().starts_with("fs.")
}

fn add_command(asked: &Asked<'_>, touches: &mut Vec<Touch>) {
    let Some(fact) = &asked.facts.command else {
        touches.push(Touch::Unknown(Doubt {
            about: crate::command::About::Commands,
            reason: "the runtime did not say what would run".to_owned(),
        }));
        return;
    };
    let line = Line::of(fact, asked.place.workspace);
    touches.extend(line.commands.into_iter().map(Touch::Command));
    touches.extend(
        line.redirections
            .into_iter()
            .map(|redirection| Touch::Path {
                access: match redirection.way {
                    Way::Read => Access::Read,
                    Way::Write => Access::Write,
                },
                path: redirection.path.map(|path| Spot::new(&path, &asked.place)),
                reach: Reach::Itself,
                by: By::Redirection,
                shown: redirection.shown,
            }),
    );
    touches.extend(line.doubts.into_iter().map(Touch::Unknown));
}

/// Whether an action on a folder touches what is in it, where it is not said to go deeper.
fn goes_deep(action: ActionName) -> bool {
    !matches!(
        action,
        ActionName::FsList | ActionName::FsStat | ActionName::FsMkdir
    )
}

fn usual_access(action: ActionName) -> Access {
    match action {
        ActionName::FsRead
        | ActionName::FsList
        | ActionName::FsStat
        | ActionName::FsGlob
        | ActionName::FsSearch => Access::Read,
        ActionName::FsDelete => Access::Delete,
        ActionName::FsWrite
        | ActionName::FsEdit
        | ActionName::FsPatch
        | ActionName::FsMkdir
        | ActionName::FsMove
        | ActionName::TerminalRun
        | ActionName::TerminalOpen
        | ActionName::TerminalWrite
        | ActionName::TerminalResize
        | ActionName::TerminalClose
        | ActionName::TerminalList
        | ActionName::TerminalRead
        | ActionName::TerminalStop
        | ActionName::EditorOpen
        | ActionName::EditorSelection
        | ActionName::EditorDiagnostics
        | ActionName::EditorDiff
        | ActionName::EditorSymbols
        | ActionName::EditorFormat
        | ActionName::EditorRename
        | ActionName::EditorCommand
        | ActionName::EditorTask
        | ActionName::CellExecute => Access::Write,
    }
}

impl Touch {
    /// What an action touches in any case, wherever that is.
    pub(crate) fn usual(action: ActionName) -> Self {
        if !is_files(action) {
            return Self::Use(action);
        }
        Self::Path {
            access: usual_access(action),
            path: None,
            reach: Reach::Tree,
            by: By::Action(action),
            shown: String::new(),
        }
    }

    /// The skill that would cover exactly this.
    #[must_use]
    pub fn skill(&self) -> String {
        match self {
            Self::Path { access, .. } => match access {
                Access::Read => "fs.read".to_owned(),
                Access::Write => "fs.write".to_owned(),
                Access::Delete => "fs.delete".to_owned(),
            },
            Self::Command(command) => match command.words.first().and_then(|word| word.known()) {
                Some(program) => format!("terminal.run({} *)", crate::command::base_name(program)),
                None => "terminal.run".to_owned(),
            },
            Self::Unknown(_) => "terminal.run".to_owned(),
            Self::Typed => "terminal.write".to_owned(),
            Self::Use(action) => action.as_str().to_owned(),
            Self::Host {
                host: Some(host), ..
            } => format!("net({host})"),
            Self::Host { host: None, .. } => "net".to_owned(),
        }
    }
}

impl std::fmt::Display for Touch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Path {
                access,
                path,
                reach,
                shown,
                ..
            } => {
                let verb = match access {
                    Access::Read => "read",
                    Access::Write => "write",
                    Access::Delete => "delete",
                };
                let all = match reach {
                    Reach::Itself => "",
                    Reach::Tree => " and all in it",
                };
                match path {
                    Some(path) => write!(f, "{verb} {path}{all}"),
                    None => write!(f, "{verb} {shown}, wherever that is"),
                }
            }
            Self::Command(command) => write!(f, "run {command}"),
            Self::Unknown(doubt) => write!(f, "cannot be known: {}", doubt.reason),
            Self::Typed => f.write_str("type into a terminal"),
            Self::Use(action) => write!(f, "use {action}"),
            Self::Host { shown, .. } => write!(f, "reach {shown}"),
        }
    }
}
