//! An agent and its store, from arguments.

use runtime_core::{AgentOptions, BadOptions, Capabilities, Level, Log, RuntimeAgent};

use crate::args::RuntimeArgs;
use crate::http::{Http, Remote};
use crate::store::{HttpStore, OpenError};

/// Why there is no agent.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// The notebook cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It cannot be whose it says it is.
    #[error(transparent)]
    Options(#[from] BadOptions),
}

impl CreateError {
    /// The stable word.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Open(error) => error.kind(),
            Self::Options(error) => error.kind(),
        }
    }
}

/// An agent for the notebook that the arguments name, and its store: [`HttpStore::sync`] is to be
/// driven beside it. Refuses a client id that is not who the token authenticates.
pub async fn create_native_runtime_agent(
    args: &RuntimeArgs,
    capabilities: Capabilities,
) -> Result<(RuntimeAgent<HttpStore<Remote>>, HttpStore<Remote>), CreateError> {
    let store = open_store(args).await?;
    let agent = create_agent_on(&store, args, capabilities)?;
    Ok((agent, store))
}

/// The store of the notebook that the arguments name.
pub async fn open_store(args: &RuntimeArgs) -> Result<HttpStore<Remote>, OpenError> {
    let way = match args.found {
        true => Remote::ours_alone,
        false => Remote::new,
    };
    let remote = way(&args.url, &args.token).map_err(OpenError::Away)?;
    HttpStore::open(remote, &args.notebook).await
}

/// An agent on a store that is open. Refuses a client id that is not who the token authenticates.
pub fn create_agent_on<H: Http>(
    store: &HttpStore<H>,
    args: &RuntimeArgs,
    capabilities: Capabilities,
) -> Result<RuntimeAgent<HttpStore<H>>, BadOptions> {
    let runtime_type = runtime_type(&args.kernel);
    let runtime_id = match &args.runtime_id {
        Some(id) => id.clone(),
        None => format!("native-{runtime_type}"),
    };
    let options = AgentOptions {
        runtime_id,
        runtime_type,
        client_id: args.client_id.clone(),
        session_id: None,
    };
    let mut agent = RuntimeAgent::new(store.clone(), capabilities, options)?;
    agent.log_to(log());
    Ok(agent)
}

/// A kernel's name as the type of a runtime: Jupyter's `python3` is `python`.
#[must_use]
pub fn runtime_type(kernel: &str) -> String {
    if matches!(kernel, "python" | "python3") {
        return "python".to_owned();
    }
    let plain = kernel.chars().map(|letter| match letter {
        'a'..='z' | '0'..='9' | '_' | '-' => letter,
        'A'..='Z' => letter.to_ascii_lowercase(),
        _ => '-',
    });
    plain.take(40).collect()
}

/// The log of this process.
pub(crate) fn log() -> Log {
    Log::to(|level, words| match level {
        Level::Debug => tracing::debug!("{words}"),
        Level::Info => tracing::info!("{words}"),
        Level::Warn => tracing::warn!("{words}"),
        Level::Error => tracing::error!("{words}"),
    })
}
