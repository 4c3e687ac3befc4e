//! `GET /openapi.json`: the table of operations as an OpenAPI 3.1 document.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use protocol::http::COOKIE;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform as _};
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};
use store::Store;

use crate::answer::ok;
use crate::app::App;
use crate::auth::Who;
use crate::operations::{Answer, Content, Operation, all};

pub(crate) async fn show<S: Store>(State(app): State<Arc<App<S>>>) -> Response {
    ok(&document(&app.about.version, all::<S>()))
}

/// The whole document.
pub(crate) fn document<S: Store>(version: &str, operations: Vec<Operation<S>>) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let mut paths = Map::new();
    for operation in operations {
        let method = operation.method.as_str().to_lowercase();
        let described = describe(&operation, &mut generator);
        let at = paths.entry(operation.path).or_insert_with(|| json!({}));
        at[method] = described;
    }
    let mut schemas = generator.take_definitions(true);
    for schema in schemas.values_mut() {
        if let Ok(schema) = <&mut Schema>::try_from(schema) {
            RecursiveTransform(bound).transform(schema);
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Ward",
            "version": version,
            "description": "The gate between AI agents and the places where they act.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "browser": {"type": "apiKey", "in": "cookie", "name": COOKIE},
            },
        },
    })
}

fn describe<S: Store>(operation: &Operation<S>, generator: &mut SchemaGenerator) -> Value {
    let mut parameters = Vec::new();
    for name in names(operation.path) {
        parameters.push(json!({
            "name": name, "in": "path", "required": true,
            "schema": {"type": "string", "minLength": 1},
        }));
    }
    if let Some(query) = operation.query {
        parameters.extend(query_parameters(query(generator)));
    }
    if operation.events {
        parameters.push(json!({
            "name": "Last-Event-ID", "in": "header", "required": false,
            "description": "The number of the last event that is known; it comes before `from`.",
            "schema": {"type": "integer", "minimum": 0, "maximum": u64::MAX},
        }));
    }
    let mut answers = Map::new();
    for (status, answer) in &operation.answers {
        answers.insert(
            status.to_string(),
            describe_answer(*status, answer, generator),
        );
    }
    let mut security = vec![json!({"token": []}), json!({"browser": []})];
    if operation.who == Who::Everybody {
        security.push(json!({}));
    }
    let mut described = json!({
        "operationId": operation.id,
        "summary": operation.summary,
        "parameters": parameters,
        "responses": answers,
        "security": security,
    });
    if let Some(body) = operation.body {
        described["requestBody"] = json!({
            "required": true,
            "content": {"application/json": {"schema": body(generator)}},
        });
    }
    described
}

fn describe_answer(status: u16, answer: &Answer, generator: &mut SchemaGenerator) -> Value {
    let text = || json!({"schema": {"type": "string"}});
    let content = match answer.content {
        Content::Json(shape) => json!({"application/json": {"schema": shape(generator)}}),
        Content::Either(whole, told) => json!({
            "application/json": {"schema": whole(generator)},
            "text/event-stream": {"schema": event_of(&told(generator).to_value())},
        }),
        Content::Events => json!({"text/event-stream": {"schema": event()}}),
        Content::Page => json!({"text/html": text(), "text/plain": text()}),
        Content::Asset => {
            json!({"text/javascript": text(), "text/css": text(), "image/svg+xml": text()})
        }
        Content::Bytes => json!({"*/*": {}}),
        Content::Nothing => Value::Null,
    };
    let mut described = json!({"description": answer.what});
    if !content.is_null() {
        described["content"] = content;
    }
    let header = |what: &str, kind: &str| json!({"description": what, "schema": {"type": kind}});
    if status == StatusCode::TOO_MANY_REQUESTS {
        let seconds = header("How many seconds to wait", "integer");
        described["headers"] = json!({"Retry-After": seconds});
    }
    if status == StatusCode::UNAUTHORIZED {
        let scheme = header("How to say who you are", "string");
        described["headers"] = json!({"WWW-Authenticate": scheme});
    }
    described
}

/// One event, as whoever reads such a stream is handed it.
fn event() -> Value {
    json!({
        "type": "object",
        "properties": {
            "id": {"type": "string", "description": "Its number; what is true only now has none."},
            "event": {"type": "string", "description": "What happened."},
            "data": {"type": "string", "description": "More about it, as JSON."},
        },
        "required": ["event", "data"],
    })
}

/// The same, where its kind and its data are of a known shape.
fn event_of(shape: &Value) -> Value {
    let mut event = event();
    event["x-event"] = shape.clone();
    event
}

/// The names in a path.
fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

/// One parameter for each property of the query's schema.
fn query_parameters(mut schema: Schema) -> Vec<Value> {
    RecursiveTransform(bound).transform(&mut schema);
    let schema = schema.to_value();
    let required = |name: &String| {
        let all = schema.get("required").and_then(Value::as_array);
        all.is_some_and(|all| all.iter().any(|required| required == name))
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    let parameter = |(name, property): (&String, &Value)| {
        let mut property = property.clone();
        let description = property
            .as_object_mut()
            .and_then(|property| property.remove("description"))
            .unwrap_or_default();
        json!({
            "name": name, "in": "query", "required": required(name),
            "description": description, "schema": present(property),
        })
    };
    properties.into_iter().flatten().map(parameter).collect()
}

/// A parameter is left out, never null.
fn present(mut schema: Value) -> Value {
    let Some(members) = schema.as_object_mut() else {
        return schema;
    };
    if let Some(Value::Array(types)) = members.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            members.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(choices)) = members.get_mut("anyOf") {
        choices.retain(|choice| choice.get("type") != Some(&json!("null")));
        if let [only] = choices.as_slice() {
            return only.clone();
        }
    }
    schema
}

/// Says how large numbers can be: a format alone says it to nobody.
fn bound(schema: &mut Schema) {
    let maximum = match schema.get("format").and_then(Value::as_str) {
        Some("uint16") => u64::from(u16::MAX),
        Some("uint32") => u64::from(u32::MAX),
        Some("uint64" | "uint") => u64::MAX,
        Some(_) | None => return,
    };
    if schema.get("maximum").is_none() {
        schema.insert("maximum".to_owned(), json!(maximum));
    }
}
