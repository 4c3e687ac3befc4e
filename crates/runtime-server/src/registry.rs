//! The table of actions: from a name and JSON to a typed action, and back to JSON.

use std::pin::Pin;
use std::sync::{Arc, LazyLock};

use protocol::method::ActionInfo;
use protocol::{ActionName, ErrorKind, Facts, Failure};
use rpc::{Answer, answer};
use serde::Deserialize as _;
use serde_json::Value;

use crate::action::{Action, Again, Call, Look, lost_thread};
use crate::context::Context;
use crate::fs;
use crate::permit::other_facts;
use crate::terminal;

/// Every action there is. Adding one is its file and its line here.
static ACTIONS: &[Entry] = &[
    Entry::of::<fs::Read>(),
    Entry::of::<fs::List>(),
    Entry::of::<fs::Stat>(),
    Entry::of::<fs::Glob>(),
    Entry::of::<fs::Search>(),
    Entry::of::<fs::Write>(),
    Entry::of::<fs::Edit>(),
    Entry::of::<fs::Patch>(),
    Entry::of::<fs::Mkdir>(),
    Entry::of::<fs::Move>(),
    Entry::of::<fs::Delete>(),
    Entry::of::<terminal::Run>(),
    Entry::of::<terminal::Open>(),
    Entry::of::<terminal::Write>(),
    Entry::of::<terminal::Resize>(),
    Entry::of::<terminal::Close>(),
    Entry::of::<terminal::List>(),
    Entry::of::<terminal::Read>(),
    Entry::of::<terminal::Stop>(),
];

/// An action whose parameters fit: it can be resolved, as often as needed, and executed, once.
#[derive(Clone)]
pub struct Prepared(Arc<dyn Bound>);

/// Reads the name and the parameters of an action.
///
/// Refuses a name that is not in the table (`unknown_action`) and parameters that do not fit
/// (`invalid_params`), naming the field and what was expected.
pub fn prepare(action: &str, params: Value) -> Result<Prepared, Failure> {
    match ACTIONS.iter().find(|entry| entry.name.as_str() == action) {
        Some(entry) => (entry.bind)(params),
        None => Err(unknown_action(action)),
    }
}

/// Every action with the schema of its parameters, as `initialize` lists them.
#[must_use]
pub fn list() -> &'static [ActionInfo] {
    static LIST: LazyLock<Vec<ActionInfo>> =
        LazyLock::new(|| ACTIONS.iter().map(|entry| (entry.info)()).collect());
    &LIST
}

impl Prepared {
    /// Which action it is.
    #[must_use]
    pub fn name(&self) -> ActionName {
        self.0.name()
    }

    /// What it would touch. Reading digests can take a while, so a thread that may block does that.
    pub async fn resolve(&self, context: Arc<Context>) -> Result<Facts, Failure> {
        match self.0.look() {
            Look::Short => return self.0.resolve(&context),
            Look::Long => {}
        }
        let bound = Arc::clone(&self.0);
        match tokio::task::spawn_blocking(move || bound.resolve(&context)).await {
            Ok(facts) => facts,
            Err(error) => Err(lost_thread(&error)),
        }
    }

    /// Refuses where it would no longer touch what was decided on; an action that is given the permit
    /// may see to that itself. Then it has begun when it is refused, and its id is used: so this is
    /// for who keeps no ids.
    pub(crate) async fn look_again(
        &self,
        context: Arc<Context>,
        expected: &Facts,
    ) -> Result<(), Failure> {
        match self.0.again() {
            Again::Itself => Ok(()),
            Again::Before => self.refuse_other_facts(context, expected).await,
        }
    }

    /// Refuses where it would no longer touch what is expected.
    pub(crate) async fn refuse_other_facts(
        &self,
        context: Arc<Context>,
        expected: &Facts,
    ) -> Result<(), Failure> {
        let found = self.resolve(context).await?;
        if found != *expected {
            return Err(other_facts(expected, &found));
        }
        Ok(())
    }

    /// Does it; the result is JSON as it is sent.
    pub async fn execute(self, call: Call) -> Answer {
        self.0.execute(call).await
    }
}

struct Entry {
    name: ActionName,
    info: fn() -> ActionInfo,
    bind: fn(Value) -> Result<Prepared, Failure>,
}

impl Entry {
    const fn of<A: Action>() -> Self {
        Self {
            name: A::NAME,
            info: || ActionInfo {
                name: A::NAME,
                description: A::DESCRIPTION.to_owned(),
                params: schemars::schema_for!(A::Params).to_value(),
            },
            bind: |params| {
                let params = read_params::<A>(params)?;
                Ok(Prepared(Arc::new(Typed::<A>(params))))
            },
        }
    }
}

/// An action with its parameters, its type forgotten.
trait Bound: Send + Sync {
    fn name(&self) -> ActionName;
    fn look(&self) -> Look;
    fn again(&self) -> Again;
    fn resolve(&self, context: &Context) -> Result<Facts, Failure>;
    fn execute(self: Arc<Self>, call: Call) -> Executing;
}

type Executing = Pin<Box<dyn Future<Output = Answer> + Send>>;

struct Typed<A: Action>(A::Params);

impl<A: Action> Bound for Typed<A> {
    fn name(&self) -> ActionName {
        A::NAME
    }

    fn look(&self) -> Look {
        A::LOOK
    }

    fn again(&self) -> Again {
        A::AGAIN
    }

    fn resolve(&self, context: &Context) -> Result<Facts, Failure> {
        A::resolve(context, &self.0)
    }

    fn execute(self: Arc<Self>, call: Call) -> Executing {
        let params = match Arc::try_unwrap(self) {
            Ok(only) => only.0,
            Err(shared) => shared.0.clone(),
        };
        Box::pin(async move { answer(&A::execute(call, params).await?) })
    }
}

fn read_params<A: Action>(mut params: Value) -> Result<A::Params, Failure> {
    if params.is_null() {
        params = Value::Object(serde_json::Map::new());
    }
    if !params.is_object() {
        return Err(Failure::new(
            ErrorKind::InvalidParams,
            format!(
                "The parameters of {} have to be an object with the fields {}.",
                A::NAME,
                fields::<A>().join(", ")
            ),
        ));
    }
    match A::Params::deserialize(&params) {
        Ok(params) => Ok(params),
        // Read again only where it failed: keeping track of the field costs time.
        Err(_) => {
            serde_path_to_error::deserialize(&params).map_err(|error| bad_params::<A>(&error))
        }
    }
}

fn bad_params<A: Action>(error: &serde_path_to_error::Error<serde_json::Error>) -> Failure {
    let field = error.path().to_string();
    let reason = error.inner().to_string();
    // serde names the field that is missing or unknown only in its sentence, between backquotes.
    let named = reason.split('`').nth(1).unwrap_or_default();
    let sentence = if reason.starts_with("missing field") {
        let place = parent(&field);
        format!("{} needs `{place}{named}`, which is missing.", A::NAME)
    } else if reason.starts_with("unknown field") {
        let known: Vec<&str> = reason.split('`').skip(3).step_by(2).collect();
        let hint = closest(named, known.iter().copied())
            .map(|name| format!(" Did you mean `{name}`?"))
            .unwrap_or_default();
        let known = if known.is_empty() {
            "It takes none there.".to_owned()
        } else {
            format!("The fields there are {}.", known.join(", "))
        };
        format!("{} has no field `{field}`.{hint} {known}", A::NAME)
    } else {
        format!("`{field}` of {} does not fit: {reason}.", A::NAME)
    };
    Failure::new(ErrorKind::InvalidParams, sentence).with("field", field)
}

/// What comes before a field's own name; `serde_path_to_error` writes `.` for the whole.
fn parent(field: &str) -> String {
    if field == "." || field.is_empty() {
        return String::new();
    }
    format!("{field}.")
}

fn fields<A: Action>() -> Vec<String> {
    let schema = schemars::schema_for!(A::Params);
    match schema.get("properties") {
        Some(Value::Object(properties)) => properties.keys().cloned().collect(),
        _ => Vec::new(),
    }
}

fn unknown_action(action: &str) -> Failure {
    let names = || ACTIONS.iter().map(|entry| entry.name.as_str());
    let hint = closest(action, names())
        .map(|name| format!(" Did you mean `{name}`?"))
        .unwrap_or_default();
    let shown: String = action.chars().take(100).collect();
    let all: Vec<&str> = names().collect();
    Failure::new(
        ErrorKind::UnknownAction,
        format!(
            "There is no action `{shown}`.{hint} The actions are {}.",
            all.join(", ")
        ),
    )
}

fn closest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Comparing costs the product of both lengths, and a hint for a long word helps nobody.
    if word.len() > 100 {
        return None;
    }
    known
        .map(|name| (strsim::osa_distance(word, name), name))
        .filter(|(distance, name)| *distance <= word.len().max(name.len()) / 2)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}
