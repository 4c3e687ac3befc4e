//! Agents that Ward starts itself for a notebook, for people who are in front of a page.

use std::path::PathBuf;
use std::sync::Arc;

use gate::Actor;
use gate::runtime::Waiting;
use protocol::{ErrorKind, Failure};
use store::Store;

use crate::notebooks::Notebooks;
use crate::wire::{AgentInfo, AgentList, KernelInfo, PostNotebookAgent};

/// Whoever starts agents, and ends them.
pub trait Agents: Send + Sync + 'static {
    /// What can run cells here.
    fn kernels(&self) -> Vec<KernelInfo>;

    /// Starts one, and waits until it runs or has failed.
    fn start(&self, wanted: NewAgent) -> Waiting<'_, Result<AgentInfo, Failure>>;

    /// Those of a notebook that go on.
    fn list(&self, notebook: &str) -> Vec<AgentInfo>;

    /// Ends one, and waits for its end; whether there was one.
    fn end<'a>(&'a self, notebook: &'a str, agent: &'a str) -> Waiting<'a, bool>;
}

/// An agent that is to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAgent {
    /// For which notebook.
    pub notebook: String,
    /// Whose it is.
    pub person: String,
    /// What cells may read and write.
    pub workspace: PathBuf,
    /// What runs them.
    pub kernel: String,
}

impl<S: Store> Notebooks<S> {
    /// Says who starts agents. Without it nobody does.
    pub fn start_agents_with(&self, agents: Arc<dyn Agents>) {
        // Whoever was first stays.
        let _ = self.starter().set(agents);
    }

    /// The agents that Ward started for a notebook, and what it could start.
    pub async fn agents(&self, actor: &Actor, id: &str) -> Result<AgentList, Failure> {
        let book = self.book(actor, id).await?;
        let Some(agents) = self.starter().get() else {
            return Ok(AgentList::default());
        };
        Ok(AgentList {
            agents: agents.list(&book.id),
            kernels: agents.kernels(),
        })
    }

    /// Starts one.
    pub async fn start_agent(
        &self,
        actor: &Actor,
        id: &str,
        asked: PostNotebookAgent,
    ) -> Result<AgentInfo, Failure> {
        let book = self.book(actor, id).await?;
        let person = actor.must_be_person("start a notebook's runtime")?;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+".contains(&byte);
        let kernel = asked.kernel;
        let first = kernel.bytes().next();
        if kernel.len() > 100
            || !first.is_some_and(|byte| byte.is_ascii_alphanumeric())
            || !kernel.bytes().all(plain)
        {
            return Err(Failure::new(
                ErrorKind::InvalidParams,
                "`kernel` is `echo`, `python`, or the name of a Jupyter kernel.",
            )
            .with("field", "kernel"));
        }
        let agents = self.starter().get().ok_or_else(|| {
            Failure::new(
                ErrorKind::NotCapable,
                "This Ward starts no runtimes; `ward serve` does. Start one with `ward notebook agent`.",
            )
        })?;
        agents
            .start(NewAgent {
                notebook: book.id.clone(),
                person: person.to_owned(),
                workspace: book.info().workspace.into(),
                kernel,
            })
            .await
    }

    /// Ends one.
    pub async fn end_agent(&self, actor: &Actor, id: &str, agent: &str) -> Result<bool, Failure> {
        let book = self.book(actor, id).await?;
        actor.must_be_person("end a notebook's runtime")?;
        match self.starter().get() {
            Some(agents) => Ok(agents.end(&book.id, agent).await),
            None => Ok(false),
        }
    }
}
