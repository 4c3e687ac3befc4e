//! The runtime agent on the page's replica.

use std::cell::RefCell;

use js_sys::{Function, Promise, Reflect};
use notebook::{Capabilities, SessionId};
use runtime_core::{
    AgentHandle, AgentOptions, BadOptions, Ending, ExecutionContext, Failed, Finished, Level, Log,
    RuntimeAgent, echo,
};
use serde::Deserialize;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen_futures::JsFuture;

use crate::context::Context;
use crate::failure::{failure, sentence, unreadable};
use crate::replica::{PageStore, Replica};

/// Who an agent is, as the page says it.
#[derive(Deserialize)]
struct Options {
    runtime_id: String,
    runtime_type: String,
    client_id: String,
    #[serde(default)]
    session_id: Option<SessionId>,
}

/// A notebook's agent in a page. It is made on a replica, given a handler, and started.
#[wasm_bindgen]
pub struct Agent {
    agent: RefCell<Option<RuntimeAgent<PageStore>>>,
    handle: AgentHandle,
}

#[wasm_bindgen]
impl Agent {
    /// An agent on this replica; capabilities and options are given as JSON. Refuses a client id that
    /// is not who authenticated.
    #[wasm_bindgen(constructor)]
    pub fn new(replica: &Replica, capabilities: &str, options: &str) -> Result<Agent, JsValue> {
        let capabilities: Capabilities = serde_json::from_str(capabilities)
            .map_err(|error| unreadable("What the runtime can do", &error))?;
        let options: Options =
            serde_json::from_str(options).map_err(|error| unreadable("The options", &error))?;
        let options = AgentOptions {
            runtime_id: options.runtime_id,
            runtime_type: options.runtime_type,
            client_id: options.client_id,
            session_id: options.session_id,
        };
        let agent = RuntimeAgent::new(PageStore(replica.shared()), capabilities, options);
        let agent = agent.map_err(bad)?;
        Ok(Self {
            handle: agent.handle(),
            agent: RefCell::new(Some(agent)),
        })
    }

    /// Says what runs a cell: a function that gets a [`Context`] and answers, or promises,
    /// `{success, error?}`. What it throws is the cell's failure.
    #[wasm_bindgen(js_name = onExecution)]
    pub fn on_execution(&self, handler: Function) -> Result<(), JsValue> {
        self.change(|agent| {
            agent.on_execution(move |context| handled(handler.clone(), context));
        })
    }

    /// Lets it answer `Echo: <source>`, as it does on every platform.
    #[wasm_bindgen(js_name = onExecutionEcho)]
    pub fn on_execution_echo(&self) -> Result<(), JsValue> {
        self.change(|agent| agent.on_execution(echo))
    }

    /// Says where the agent's own words go: a function that gets a level and a sentence.
    #[wasm_bindgen(js_name = logTo)]
    pub fn log_to(&self, sink: Function) -> Result<(), JsValue> {
        let log = Log::to(move |level, words| {
            let level = match level {
                Level::Debug => "debug",
                Level::Info => "info",
                Level::Warn => "warn",
                Level::Error => "error",
            };
            // A sink that throws is one that does not hear.
            let _ = sink.call2(&JsValue::NULL, &level.into(), &words.into());
        });
        self.change(|agent| agent.log_to(log))
    }

    fn change(&self, change: impl FnOnce(&mut RuntimeAgent<PageStore>)) -> Result<(), JsValue> {
        match self.agent.borrow_mut().as_mut() {
            Some(agent) => {
                change(agent);
                Ok(())
            }
            None => Err(begun()),
        }
    }

    /// Announces the agent and runs what is assigned to it, to its end. Answers how it ended, as
    /// JSON: `{ending, message}`.
    pub async fn start(&self) -> Result<String, JsValue> {
        let agent = self.agent.borrow_mut().take().ok_or_else(begun)?;
        let ending = agent.start().await.map_err(bad)?;
        let word = match &ending {
            Ending::Shutdown => "shutdown",
            Ending::Displaced => "displaced",
            Ending::Terminated(_) => "terminated",
            Ending::Lost(_) => "lost",
            Ending::Refused(_) => "refused",
        };
        let message = ending.to_string();
        Ok(serde_json::json!({ "ending": word, "message": message }).to_string())
    }

    /// Tells the agent to end.
    pub fn shutdown(&self) {
        self.handle.shutdown();
    }

    /// Its session, once it has one.
    #[wasm_bindgen(getter)]
    pub fn session(&self) -> Option<String> {
        self.handle.session().map(String::from)
    }
}

/// Lets the page's function run a cell.
async fn handled(handler: Function, context: ExecutionContext) -> Finished {
    let given = JsValue::from(Context::new(context));
    let answered = match handler.call1(&JsValue::NULL, &given) {
        Ok(answered) => JsFuture::from(Promise::resolve(&answered)).await,
        Err(thrown) => Err(thrown),
    };
    let answered = match answered {
        Ok(answered) => answered,
        Err(thrown) => return Finished::failed(sentence(&thrown)),
    };
    let get = |name: &str| Reflect::get(&answered, &name.into()).ok();
    if get("cancelled").is_some_and(|cancelled| cancelled.is_truthy()) {
        return Finished::Cancelled;
    }
    match get("success").is_some_and(|success| success.is_truthy()) {
        true => Finished::Ok,
        false => {
            let said = get("error").and_then(|error| error.as_string());
            Finished::Failed(Failed {
                kind: "error".to_owned(),
                message: said.unwrap_or_else(|| "The cell failed.".to_owned()),
            })
        }
    }
}

fn begun() -> JsValue {
    failure(
        "invalid_params",
        "The agent was started already. Make another one.",
    )
}

fn bad(options: BadOptions) -> JsValue {
    failure(options.kind(), &options.to_string())
}
