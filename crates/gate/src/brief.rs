//! What an agent in a role is told and may use, for whoever runs it.

use std::path::{Path, PathBuf};

use policy::Role;
use policy::role::Limits;
use protocol::action::editor;
use protocol::method::ActionInfo;
use protocol::runtime::RuntimeInfo;
use protocol::{ActionName, Failure};
use serde_json::Value;
use store::Store;

use crate::actor::Actor;
use crate::files;
use crate::gate::Gate;
use crate::path::unknown_role;
use crate::request::Request;

/// What an agent in a role is told and may use.
#[derive(Debug, Clone)]
pub struct Brief {
    /// The role.
    pub role: Role,
    /// How much each of the roles that it acts for may use, in their order.
    pub above: Vec<Limits>,
    /// The actions that the role, and every role it acts for, has any use for.
    pub actions: Vec<ActionInfo>,
    /// The workspace's real path.
    pub workspace: PathBuf,
    /// What the workspace's `AGENTS.md` says. It is the word of the workspace, not of a person.
    pub guide: Option<String>,
    /// The other roles that may be used, with what they are for.
    pub others: Vec<(String, String)>,
}

impl<S: Store> Gate<S> {
    /// The role of this name in a workspace, for an actor who may choose it; what it may use is what
    /// the runtime can do.
    ///
    /// Refuses a role that there is not, or that is not trusted (`unknown_role`), and an agent that
    /// names another than its own (`forbidden`).
    pub async fn brief(
        &self,
        actor: &Actor,
        role: &str,
        parents: &[String],
        workspace: Option<&Path>,
        runtime: Option<&RuntimeInfo>,
    ) -> Result<Brief, Failure> {
        let mut asked = Request::new("fs.read", Value::Null);
        asked.workspace = workspace.map(Path::to_owned);
        // A sub-agent's role is its parent's choice; what it may do is bounded by the parent's.
        asked.role = parents.is_empty().then(|| role.to_owned());
        let asked = asked.bound_to(actor)?;
        let workspace = self.0.workspace(asked.workspace.as_deref())?;
        let book = workspace.policy(&self.0.options.config)?;
        let found = book.roles.get(role).map_err(unknown_role)?;
        let mut all = vec![found];
        for parent in parents {
            all.push(book.roles.get(parent).map_err(unknown_role)?);
        }
        let about = workspace.runtime.about().await?;
        let usable = |name: ActionName| all.iter().all(|role| role.uses(name));
        let actions = match runtime {
            None => {
                let local = about.actions.iter();
                local.filter(|info| usable(info.name)).cloned().collect()
            }
            Some(runtime) => capable(runtime, &about.actions, usable),
        };
        let others = book.roles.iter().filter(|other| {
            other.name != found.name && book.roles.get(other.name.as_str()).is_ok()
        });
        Ok(Brief {
            role: found.clone(),
            above: all.iter().skip(1).map(|role| role.limits.clone()).collect(),
            actions,
            guide: files::guide(&workspace.real),
            others: others
                .map(|other| (other.name.to_string(), other.description.clone()))
                .collect(),
            workspace: workspace.real.clone(),
        })
    }
}

/// What a runtime elsewhere can do, as far as it is known here and of use. What the local runtime can
/// do too is described as there.
fn capable(
    runtime: &RuntimeInfo,
    local: &[ActionInfo],
    usable: impl Fn(ActionName) -> bool,
) -> Vec<ActionInfo> {
    let names = runtime.capabilities.iter();
    let names = names.filter_map(|name| ActionName::parse(name));
    names
        .filter(|name| usable(*name))
        .filter_map(|name| {
            if let Some(info) = local.iter().find(|info| info.name == name) {
                return Some(info.clone());
            }
            let (description, params) = editor::about(name)?;
            Some(ActionInfo {
                name,
                description: description.to_owned(),
                params,
            })
        })
        .collect()
}
