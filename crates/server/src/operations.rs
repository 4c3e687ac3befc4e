//! Everything that can be asked over HTTP: the one table that the service is made of, and that
//! `/openapi.json` describes.

use std::sync::Arc;

use ::notebook::{ArtifactRef, Presence};
use ::notebooks::{
    AgentInfo, AgentList, Announced, Appended, Compacted, FetchInput, Input, NotebookInfo,
    NotebookList, NotebookState, PostComms, PostEvents, PostInput, PostNotebook, PostNotebookAgent,
    PostNotebookRuntime, TakenComms,
};
use axum::handler::Handler;
use axum::http::Method;
use axum::routing::{self, MethodRouter};
use gate::ledger::Verdict;
use protocol::approval::{Approval, GrantInfo, Resolved};
use protocol::gate::Failed;
use protocol::http::{
    ActionEnded, ActionState, Approvals, DeniedBody, Grants, Health, LoginLink, PostAction,
    PostAnswer, PostAttention, Roles,
};
use protocol::runtime::{self, PostRuntime, Registered, RuntimeInfo};
use protocol::session::{
    Models, PatchSession, PostFork, PostMessage, PostSession, SessionAnswer, SessionEvent,
    SessionInfo, Sessions,
};
use protocol::undo::{Changes, UndoParams, Undone};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use store::Store;

use crate::app::App;
use crate::assets;
use crate::auth::{Runtimes, Who};
use crate::openapi;
use crate::routes::{
    actions, approvals, door, events, frame, grants, health, inbox, ledger, login, notebooks, page,
    roles, runtimes, sessions, undo,
};
use crate::sse;

/// A schema, once there is somewhere to put what it refers to.
pub(crate) type Shape = fn(&mut SchemaGenerator) -> Schema;

/// One thing that can be asked.
pub(crate) struct Operation<S: Store> {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) who: Who,
    pub(crate) runtimes: Runtimes,
    /// Its name for programs that are generated.
    pub(crate) id: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) query: Option<Shape>,
    pub(crate) body: Option<Shape>,
    /// Whether it tells events, which can be resumed.
    pub(crate) events: bool,
    pub(crate) answers: Vec<(u16, Answer)>,
    pub(crate) handler: MethodRouter<Arc<App<S>>>,
}

/// What is answered.
#[derive(Clone, Copy)]
pub(crate) struct Answer {
    pub(crate) what: &'static str,
    pub(crate) content: Content,
}

#[derive(Clone, Copy)]
pub(crate) enum Content {
    Json(Shape),
    /// JSON, or events of the second shape.
    Either(Shape, Shape),
    Events,
    Page,
    Asset,
    Bytes,
    Nothing,
}

/// All of them.
pub(crate) fn all<S: Store>() -> Vec<Operation<S>> {
    use Who::{Actors, Everybody, Persons};
    vec![
        get("/", "getPage", Everybody, page::show::<S>)
            .summary("What is there, as a page or as text")
            .answer(200, "The page", Content::Page),
        get("/notebook", "getNotebookPage", Everybody, page::notebook::<S>)
            .summary("The same page, in a document that may show a notebook: `/notebook#/notebook/ID`")
            .answer(200, "The page", Content::Page),
        get("/frames/output", "getOutputFrame", Everybody, frame::output)
            .summary("Where a notebook's page shows HTML that a cell made, apart from itself")
            .answer(200, "The frame", Content::Page),
        get("/assets/{id}", "getAsset", Everybody, assets::show)
            .summary("A part of the page; its name says its content, so it may be kept")
            .answer(200, "The part", Content::Asset)
            .answer(304, "It is the one that is known", Content::Nothing),
        get("/healthz", "getHealth", Everybody, health::show::<S>)
            .for_runtimes()
            .summary("Whether Ward is well; for who says who they are, more about it")
            .json::<Health>(200, "It is well"),
        get("/openapi.json", "getOpenApi", Everybody, openapi::show::<S>)
            .summary("This document")
            .json::<serde_json::Map<String, serde_json::Value>>(200, "The document"),
        get("/login", "signIn", Everybody, login::enter::<S>)
            .summary("Sign a browser in, by a link that works once")
            .query::<login::Query>()
            .answer(303, "Signed in; to the page", Content::Nothing),
        post("/login", "makeLoginLink", Persons, login::link::<S>)
            .summary("A link that signs a browser in as you")
            .json::<LoginLink>(200, "The link")
            .fails(&[404, 415]),
        post("/logout", "signOut", Persons, login::leave::<S>)
            .summary("Sign this browser out")
            .answer(204, "Signed out", Content::Nothing)
            .fails(&[415]),
        post("/sessions", "postSession", Actors, sessions::post::<S>)
            .summary("Begin a session, and be told what the agent does while it does it, or what it said in the end. Hanging up cancels nothing")
            .body::<PostSession>()
            .json::<SessionAnswer>(200, "It has stopped")
            .tells::<SessionEvent>()
            .json::<SessionAnswer>(202, "It is still going")
            .fails(&[404, 409, 422, 502, 503]),
        get("/sessions", "getSessions", Actors, sessions::list::<S>)
            .summary("Your sessions, the latest first")
            .query::<sessions::Query>()
            .json::<Sessions>(200, "The sessions"),
        get("/sessions/{id}", "getSession", Actors, sessions::get::<S>)
            .summary("How far a session is")
            .json::<SessionAnswer>(200, "The session"),
        patch("/sessions/{id}", "changeSession", Actors, sessions::change::<S>)
            .summary("Another title, or another role, model or mode from the next turn on")
            .body::<PatchSession>()
            .json::<SessionInfo>(200, "As it is now")
            .fails(&[409, 422, 502, 503]),
        delete("/sessions/{id}", "deleteSession", Actors, sessions::delete::<S>)
            .summary("Delete a conversation. What it did stays in the ledger")
            .json::<SessionInfo>(200, "It is gone"),
        post("/sessions/{id}/messages", "postMessage", Actors, sessions::say::<S>)
            .summary("Say something, also while the agent works or waits; nothing at all goes on where it failed")
            .body::<PostMessage>()
            .json::<SessionAnswer>(200, "It has stopped")
            .tells::<SessionEvent>()
            .json::<SessionAnswer>(202, "It is still going")
            .fails(&[409, 422, 502, 503]),
        get("/sessions/{id}/events", "getSessionEvents", Actors, sessions::events::<S>)
            .summary("All that happens in a session, from its beginning or from where you were")
            .query::<sse::From>()
            .events()
            .fails(&[503]),
        post("/sessions/{id}/cancel", "cancelSession", Actors, sessions::cancel::<S>)
            .summary("End what runs of a session; a message goes on")
            .json::<SessionInfo>(200, "How far it was")
            .fails(&[415]),
        post("/sessions/{id}/fork", "forkSession", Actors, sessions::fork::<S>)
            .summary("A new session that knows this one's conversation up to an event")
            .body::<PostFork>()
            .json::<SessionInfo>(201, "The new session")
            .fails(&[409]),
        get("/models", "getModels", Persons, sessions::models::<S>)
            .summary("Who can answer here, and why the others cannot")
            .json::<Models>(200, "The providers and their models"),
        post("/actions", "postAction", Actors, actions::post::<S>)
            .summary("Ask for an action, and wait for its outcome. Hanging up cancels nothing")
            .body::<PostAction>()
            .json::<ActionEnded>(200, "It has ended, done or failed")
            .json::<ActionState>(202, "It is still going")
            .json::<DeniedBody>(403, "The policy or a person said no")
            .fails(&[404, 409, 503]),
        get("/actions/{id}", "getAction", Actors, actions::get::<S>)
            .summary("How far an action is, or how it ended")
            .json::<ActionState>(200, "How far it is"),
        get("/actions/{id}/events", "getActionEvents", Actors, actions::events::<S>)
            .summary("All that happens to an action, until nothing more can come")
            .query::<sse::From>()
            .events()
            .answer(204, "Nothing more comes", Content::Nothing)
            .fails(&[503]),
        get("/actions/{id}/changes", "getActionChanges", Persons, actions::changes::<S>)
            .summary("What an action did to files, as diffs")
            .json::<Changes>(200, "What changed"),
        post("/actions/{id}/cancel", "cancelAction", Actors, actions::cancel::<S>)
            .summary("End an action, wherever it is")
            .json::<ActionState>(200, "How far it was")
            .fails(&[415]),
        get("/approvals", "getApprovals", Persons, approvals::list::<S>)
            .summary("What waits for your answer")
            .json::<Approvals>(200, "What is open, the oldest first"),
        get("/approvals/events", "getApprovalEvents", Persons, inbox::events::<S>)
            .summary("Questions and answers as they come. Whoever follows is a client that can be asked first")
            .query::<inbox::Query>()
            .events()
            .fails(&[503]),
        get("/approvals/{id}", "getApproval", Persons, approvals::get::<S>)
            .summary("One question, whole")
            .json::<Approval>(200, "The question")
            .fails(&[409]),
        post("/approvals/{id}", "answerApproval", Persons, approvals::answer::<S>)
            .summary("Answer a question. The first valid answer wins")
            .body::<PostAnswer>()
            .json::<Resolved>(200, "It is answered")
            .fails(&[409]),
        post("/clients/{id}", "turnClient", Persons, inbox::turn::<S>)
            .summary("Say whether a client is in front, and what it shows")
            .body::<PostAttention>()
            .json::<PostAttention>(200, "As it is now"),
        get("/grants", "getGrants", Persons, grants::list::<S>)
            .summary("Remembered answers that hold")
            .json::<Grants>(200, "Those that hold"),
        delete("/grants/{id}", "revokeGrant", Persons, grants::revoke::<S>)
            .summary("Take a remembered answer back")
            .json::<GrantInfo>(200, "It holds no longer"),
        post("/undo", "undo", Persons, undo::post::<S>)
            .summary("Put back what an action, or a session, did to files")
            .body::<UndoParams>()
            .json::<Undone>(200, "It is as it was before")
            .fails(&[404, 409, 503]),
        get("/ledger", "getLedger", Persons, ledger::list::<S>)
            .summary("Entries of the record")
            .query::<ledger::Query>()
            .json::<ledger::Page>(200, "The entries, in order"),
        get("/ledger/verify", "verifyLedger", Persons, ledger::verify::<S>)
            .summary("Whether everything is as it was written")
            .json::<Verdict>(200, "What was found"),
        get("/ledger/events", "getLedgerEvents", Persons, ledger::events::<S>)
            .summary("Entries as they are written")
            .query::<sse::From>()
            .events()
            .fails(&[503]),
        get("/roles", "getRoles", Persons, roles::list::<S>)
            .summary("Who agents can be in a workspace")
            .query::<roles::Query>()
            .json::<Roles>(200, "The roles, by name")
            .fails(&[404, 409]),
        get("/runtimes", "getRuntimes", Persons, runtimes::list::<S>)
            .summary("Where actions run")
            .query::<runtimes::Query>()
            .json::<runtime::Runtimes>(200, "The runtimes"),
        post("/runtimes", "postRuntime", Persons, runtimes::register::<S>)
            .summary("Register a Socket.IO connection of yours as a runtime")
            .body::<PostRuntime>()
            .json::<Registered>(201, "It is registered")
            .fails(&[503]),
        post("/runtimes/{id}/heartbeat", "keepRuntime", Persons, runtimes::heartbeat::<S>)
            .summary("Say that a runtime is still there")
            .json::<Registered>(200, "Its lease is renewed")
            .fails(&[415, 503]),
        post("/runtimes/{id}/here", "confineRuntime", Persons, runtimes::here::<S>)
            .summary("Show, over Ward's own socket, that a runtime is on Ward's machine: the commands that it runs are then confined")
            .json::<RuntimeInfo>(200, "They are confined")
            .fails(&[415, 422, 503]),
        delete("/runtimes/{id}", "deleteRuntime", Persons, runtimes::unregister::<S>)
            .summary("Take a runtime off the list")
            .json::<RuntimeInfo>(200, "It is a runtime no longer"),
        get("/notebooks", "getNotebooks", Actors, notebooks::list::<S>)
            .summary("Your notebooks, the latest first")
            .json::<NotebookList>(200, "The notebooks"),
        post("/notebooks", "postNotebook", Persons, notebooks::make::<S>)
            .summary("Make a notebook, empty or from an `.ipynb` file")
            .body::<PostNotebook>()
            .json::<NotebookInfo>(201, "The new notebook")
            .fails(&[404, 503]),
        get("/notebooks/{id}", "getNotebook", Actors, notebooks::get::<S>)
            .for_runtimes()
            .summary("What the events of a notebook amount to, and up to which")
            .json::<NotebookState>(200, "The notebook"),
        delete("/notebooks/{id}", "deleteNotebook", Persons, notebooks::delete::<S>)
            .summary("Delete a notebook, with all that is kept beside it. What ran stays in the ledger")
            .json::<NotebookInfo>(200, "It is gone"),
        get("/notebooks/{id}/events", "getNotebookEvents", Actors, notebooks::events::<S>)
            .for_runtimes()
            .summary("All that happens in a notebook, from its beginning or from where you were; `presence`, `comm` and `comm.dropped` have no number")
            .query::<sse::From>()
            .events()
            .fails(&[410, 503]),
        post("/notebooks/{id}/events", "postNotebookEvents", Actors, notebooks::append::<S>)
            .for_runtimes()
            .summary("Append events. Sent again, entries are appended once; `X-Ward-Runtime` shows that a runtime says them")
            .body::<PostEvents>()
            .json::<Appended>(200, "They are there")
            .fails(&[409, 422, 503]),
        get("/notebooks/{id}/ipynb", "getNotebookFile", Actors, notebooks::file::<S>)
            .summary("A notebook as an `.ipynb` file of format 4. It may have `NaN` and `Infinity` where the file had that it came from")
            .json::<serde_json::Map<String, serde_json::Value>>(200, "The file"),
        post("/notebooks/{id}/compact", "compactNotebook", Persons, notebooks::compact::<S>)
            .summary("Drop the events of a notebook so far; what they amount to is kept")
            .json::<Compacted>(200, "What was dropped")
            .fails(&[415]),
        post("/notebooks/{id}/presence", "postPresence", Actors, notebooks::present::<S>)
            .summary("Say where you are in a notebook. It is told to the others and never kept")
            .body::<Presence>()
            .answer(204, "It was told", Content::Nothing),
        post("/notebooks/{id}/input", "postInput", Persons, notebooks::answer::<S>)
            .summary("Answer a cell that asks for a line. The runtime has the answer once, and nobody keeps it")
            .body::<PostInput>()
            .answer(204, "It was the first answer", Content::Nothing)
            .fails(&[409, 503]),
        post("/notebooks/{id}/runtimes", "announceRuntime", Persons, notebooks::announce::<S>)
            .for_runtimes()
            .summary("Announce a runtime of yours for a notebook. The newest has it")
            .body::<PostNotebookRuntime>()
            .json::<Announced>(201, "Its session, token and lease"),
        post("/notebooks/{id}/runtimes/{session}/renew", "renewRuntime", Persons, notebooks::renew::<S>)
            .for_runtimes()
            .summary("Say that a runtime session is still there")
            .json::<Announced>(200, "Its lease is renewed")
            .fails(&[415]),
        post("/notebooks/{id}/runtimes/{session}/input", "fetchInput", Persons, notebooks::answered::<S>)
            .for_runtimes()
            .summary("Fetch, as a runtime session, what somebody answered to a run of its own")
            .body::<FetchInput>()
            .json::<Input>(200, "The answer; it is gone here"),
        post("/notebooks/{id}/runtimes/{session}/comms", "tellComms", Persons, notebooks::tell_comms::<S>)
            .for_runtimes()
            .summary("Say something, as a runtime session, to whoever shows its widgets. It is told to those who follow and never kept")
            .body::<PostComms>()
            .answer(204, "It was told", Content::Nothing),
        get("/notebooks/{id}/runtimes/{session}/comms", "takeComms", Persons, notebooks::take_comms::<S>)
            .for_runtimes()
            .summary("Fetch, as a runtime session, what is said to its widgets: waits a while for the first. Such messages are sent by `cell.execute` with `comm`")
            .query::<notebooks::Has>()
            .json::<TakenComms>(200, "The messages, or none"),
        delete("/notebooks/{id}/runtimes/{session}", "endRuntime", Persons, notebooks::end::<S>)
            .summary("End a runtime session of a notebook: now, or soon, unless it is heard of again")
            .query::<notebooks::After>()
            .json::<notebooks::Ended>(200, "It is over"),
        get("/notebooks/{id}/agents", "getNotebookAgents", Persons, notebooks::agents::<S>)
            .summary("The runtimes that Ward started for a notebook, and the kernels that it could start")
            .json::<AgentList>(200, "The runtimes and kernels"),
        post("/notebooks/{id}/agents", "startNotebookAgent", Persons, notebooks::start_agent::<S>)
            .summary("Let Ward start a runtime for a notebook, in the notebook's workspace. It ends with Ward")
            .body::<PostNotebookAgent>()
            .json::<AgentInfo>(201, "It runs")
            .fails(&[404, 422, 503]),
        delete("/notebooks/{id}/agents/{agent}", "endNotebookAgent", Persons, notebooks::end_agent::<S>)
            .summary("End a runtime that Ward started, with its kernel")
            .json::<notebooks::Ended>(200, "It is over"),
        get("/notebooks/{id}/artifacts", "getArtifacts", Actors, notebooks::artifacts::<S>)
            .summary("What is kept beside a notebook")
            .json::<notebooks::ArtifactList>(200, "The artifacts"),
        post("/notebooks/{id}/artifacts", "postArtifact", Persons, notebooks::keep::<S>)
            .for_runtimes()
            .summary("Keep the bytes of the body beside a notebook, by their content")
            .query::<notebooks::Name>()
            .json::<ArtifactRef>(201, "What they are called")
            .fails(&[408, 413, 415]),
        get("/notebooks/{id}/artifacts/{digest}", "getArtifact", Actors, notebooks::artifact::<S>)
            .for_runtimes()
            .summary("The bytes of an artifact, as a download")
            .answer(200, "The bytes", Content::Bytes),
        delete("/notebooks/{id}/artifacts/{digest}", "deleteArtifact", Persons, notebooks::drop_artifact::<S>)
            .summary("Keep an artifact no longer")
            .json::<ArtifactRef>(200, "It is gone"),
        get("/events", "followEvents", Actors, events::open::<S>)
            .summary("A websocket over which any of the operations that tell events are followed together: `{\"follow\": {id, path, after?}}` and `{\"stop\": {id}}` are said, `{\"answered\": {id, status}}`, `{\"piece\": {id, data}}` and `{\"ended\": {id}}` are told")
            .answer(101, "From here on, a websocket", Content::Nothing)
            .fails(&[426, 503]),
        get("/gate", "openGate", Actors, door::open::<S>)
            .summary("JSON-RPC with the gate, over a connection that is upgraded to `ward-gate`")
            .query::<door::Query>()
            .answer(101, "From here on, JSON-RPC in Content-Length frames", Content::Nothing)
            .fails(&[426, 503]),
    ]
}

fn get<S: Store, H: Handler<T, Arc<App<S>>>, T: 'static>(
    path: &'static str,
    id: &'static str,
    who: Who,
    handler: H,
) -> Operation<S> {
    Operation::new(Method::GET, routing::get(handler), path, id, who)
}

fn post<S: Store, H: Handler<T, Arc<App<S>>>, T: 'static>(
    path: &'static str,
    id: &'static str,
    who: Who,
    handler: H,
) -> Operation<S> {
    Operation::new(Method::POST, routing::post(handler), path, id, who)
}

fn patch<S: Store, H: Handler<T, Arc<App<S>>>, T: 'static>(
    path: &'static str,
    id: &'static str,
    who: Who,
    handler: H,
) -> Operation<S> {
    Operation::new(Method::PATCH, routing::patch(handler), path, id, who)
}

fn delete<S: Store, H: Handler<T, Arc<App<S>>>, T: 'static>(
    path: &'static str,
    id: &'static str,
    who: Who,
    handler: H,
) -> Operation<S> {
    Operation::new(Method::DELETE, routing::delete(handler), path, id, who)
}

impl<S: Store> Operation<S> {
    /// What every operation can be refused with is known already.
    fn new(
        method: Method,
        handler: MethodRouter<Arc<App<S>>>,
        path: &'static str,
        id: &'static str,
        who: Who,
    ) -> Self {
        let operation = Self {
            method,
            path,
            who,
            runtimes: Runtimes::Refused,
            id,
            summary: "",
            query: None,
            body: None,
            events: false,
            answers: Vec::new(),
            handler,
        };
        let operation = operation.fails(&[401, 403, 429, 500]);
        if path.contains('{') {
            operation.fails(&[400, 404])
        } else {
            operation
        }
    }

    /// Runtimes that Ward started may use it too, for their own notebooks.
    fn for_runtimes(mut self) -> Self {
        self.runtimes = Runtimes::Admitted;
        self
    }

    fn summary(mut self, summary: &'static str) -> Self {
        self.summary = summary;
        self
    }

    fn query<T: JsonSchema>(mut self) -> Self {
        self.query = Some(|generator| T::json_schema(generator));
        self.fails(&[400])
    }

    fn body<T: JsonSchema>(mut self) -> Self {
        self.body = Some(SchemaGenerator::subschema_for::<T>);
        self.fails(&[400, 408, 413, 415])
    }

    fn json<T: JsonSchema>(self, status: u16, what: &'static str) -> Self {
        self.answer(
            status,
            what,
            Content::Json(SchemaGenerator::subschema_for::<T>),
        )
    }

    /// The answer of status 200 can also be told as events of this shape.
    fn tells<T: JsonSchema>(mut self) -> Self {
        if let Some((_, answer)) = self.answers.iter_mut().find(|(status, _)| *status == 200)
            && let Content::Json(whole) = answer.content
        {
            answer.content = Content::Either(whole, SchemaGenerator::subschema_for::<T>);
        }
        self
    }

    fn events(mut self) -> Self {
        self.events = true;
        self.answer(200, "Events, each with its number as `id`", Content::Events)
    }

    fn fails(mut self, statuses: &[u16]) -> Self {
        for status in statuses {
            if self.answers.iter().all(|(known, _)| known != status) {
                self = self.json::<Failed>(*status, failure(*status));
            }
        }
        self
    }

    fn answer(mut self, status: u16, what: &'static str, content: Content) -> Self {
        self.answers.retain(|(known, _)| *known != status);
        self.answers.push((status, Answer { what, content }));
        self.answers.sort_by_key(|(status, _)| *status);
        self
    }
}

/// What a failure of this status means.
fn failure(status: u16) -> &'static str {
    match status {
        400 => "The request does not fit",
        401 => "Nobody, or nobody whom Ward knows, asks",
        403 => "Whoever asks may not, or the request came from another site",
        404 => "There is no such thing, or it is not yours",
        408 => "The body did not arrive in time",
        409 => "It is no longer as the request assumes",
        410 => "What is asked for is gone; what it amounted to is kept",
        413 => "The body is too large",
        415 => "The body is not JSON",
        422 => "With this model nothing can come of it here",
        426 => "The connection has to be upgraded",
        429 => "Too many wrong tokens, or the model's provider takes no more for now",
        502 => "The model's provider failed, in its own words",
        503 => "Not at the moment",
        _ => "Ward failed",
    }
}
