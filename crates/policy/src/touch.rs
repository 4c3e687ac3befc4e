//! An action cut into the things it would touch. Each is decided on its own, and the strictest
//! answer is the action's.

use protocol::ActionName;
use protocol::facts::{Access, EntryKind};

use crate::command::{Command, Doubt, Line, Way};
use crate::decide::{Asked, Verb};
use crate::host::Host;
use crate::place::Spot;

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
        /// The file action; [`None`] for a redirection, which a command does.
        by: Option<ActionName>,
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
    let action = match asked.verb {
        Verb::Action(action) => Some(action),
        Verb::Net => None,
    };
    let mut touches = Vec::new();
    let files = action.filter(|action| action.as_str().starts_with("fs."));
    for fact in &facts.paths {
        let folder = fact.kind == Some(EntryKind::Directory);
        touches.push(Touch::Path {
            access: fact.access,
            path: Some(Spot::new(&fact.path, &asked.place)),
            reach: if folder && action.is_none_or(goes_deep) {
                Reach::Tree
            } else {
                Reach::Itself
            },
            by: files,
            shown: fact.path.clone(),
        });
    }
    if let Some(by) = files.filter(|_| facts.paths.is_empty()) {
        touches.push(Touch::Path {
            access: usual_access(by),
            path: None,
            reach: Reach::Tree,
            by: Some(by),
            shown: "a path that is not known".to_owned(),
        });
    }
    if let Some(action) = action.filter(|_| files.is_none()) {
        touches.push(Touch::Use(action));
        if action == ActionName::TerminalWrite {
            touches.push(Touch::Typed);
        }
        if matches!(action, ActionName::TerminalRun | ActionName::TerminalOpen) {
            add_command(asked, &mut touches);
        }
    }
    for host in &facts.hosts {
        touches.push(Touch::Host {
            host: Host::parse(host).ok(),
            shown: host.clone(),
        });
    }
    if action.is_none() && facts.hosts.is_empty() {
        touches.push(Touch::Host {
            host: None,
            shown: "a host that is not known".to_owned(),
        });
    }
    touches
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
                by: None,
                shown: redirection.shown,
            }),
    );
    touches.extend(line.doubts.into_iter().map(Touch::Unknown));
}

/// Whether an action on a folder touches what is in it.
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
        | ActionName::TerminalStop => Access::Write,
    }
}

impl Touch {
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
