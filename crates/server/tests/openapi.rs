//! The document that describes the interface: that it is one, and that it describes this interface.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up has failed"
)]

mod support;

use std::collections::BTreeSet;

use axum::body::Body;
use serde_json::{Map, Value, json};
use support::{JSON, Ward};

const METHODS: [&str; 6] = ["get", "put", "post", "delete", "patch", "options"];

async fn document(ward: &Ward) -> Value {
    let answer = ward.send("GET", "/openapi.json", &[], Body::empty()).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.headers["content-type"], "application/json");
    answer.json()
}

fn operations(document: &Value) -> Vec<(String, String, Map<String, Value>)> {
    let mut found = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            assert!(METHODS.contains(&method.as_str()));
            let operation = operation.as_object().unwrap().clone();
            found.push((path.clone(), method.clone(), operation));
        }
    }
    found
}

/// Every value of every object and array below.
fn walk(value: &Value, visit: &mut impl FnMut(&Map<String, Value>)) {
    match value {
        Value::Object(members) => {
            visit(members);
            members.values().for_each(|member| walk(member, visit));
        }
        Value::Array(items) => items.iter().for_each(|item| walk(item, visit)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[tokio::test]
async fn it_is_a_document_of_openapi_3_1() {
    let ward = Ward::start().await;
    let document = document(&ward).await;
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["info"]["version"], "1.2.3");
    let mut ids = BTreeSet::new();
    for (path, method, operation) in operations(&document) {
        let at = format!("{method} {path}");
        assert!(ids.insert(operation["operationId"].to_string()), "{at}");
        assert_ne!(operation["summary"], "", "{at}");
        let parameters = operation["parameters"].as_array().unwrap();
        let in_path: Vec<&Value> = parameters
            .iter()
            .filter(|parameter| parameter["in"] == "path")
            .map(|parameter| &parameter["name"])
            .collect();
        let named: Vec<&str> = path
            .split('/')
            .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
            .collect();
        assert_eq!(in_path, named, "{at}");
        for parameter in parameters {
            assert!(parameter["schema"].is_object(), "{at}");
        }
        let responses = operation["responses"].as_object().unwrap();
        for (status, response) in responses {
            assert!(status.parse::<u16>().is_ok(), "{at}");
            assert!(response["description"].is_string(), "{at}");
            let failed = status.starts_with('4') || status.starts_with('5');
            let shape = &response["content"]["application/json"]["schema"];
            assert!(!failed || shape["$ref"].is_string(), "{at} {status}");
        }
        assert!(responses.keys().any(|status| status < &"400".to_owned()));
    }
    walk(&document, &mut |members| {
        if let Some(reference) = members.get("$ref") {
            let pointer = reference.as_str().unwrap().strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
        for misplaced in ["$defs", "definitions", "nullable", "$schema"] {
            assert!(!members.contains_key(misplaced), "{misplaced}");
        }
    });
}

#[tokio::test]
async fn what_it_describes_is_there_and_what_is_there_it_describes() {
    let ward = Ward::start().await;
    let document = document(&ward).await;
    let bearer = format!("Bearer {}", ward.token);
    let headers = [("authorization", &*bearer), JSON];
    let described: BTreeSet<(String, String)> = operations(&document)
        .into_iter()
        .map(|(path, method, _)| (path, method))
        .collect();
    let paths: BTreeSet<&String> = described.iter().map(|(path, _)| path).collect();
    for path in paths {
        for method in METHODS {
            let (method_in_capitals, real) = (method.to_uppercase(), path.replace("{id}", "x"));
            let response = ward.open(&method_in_capitals, &real, &headers, "{}").await;
            let known = described.contains(&(path.clone(), method.to_owned()));
            assert_eq!(response.status() != 405, known, "{method} {path}");
            if known {
                let status = response.status().as_u16().to_string();
                let responses = &document["paths"][path][method]["responses"];
                assert!(responses.get(&status).is_some(), "{method} {path} {status}");
            }
        }
    }
    // The page names nothing that the document does not.
    assert!(described.contains(&("/healthz".into(), "get".into())));
    assert_eq!(
        document["components"]["securitySchemes"]["token"],
        json!({"type": "http", "scheme": "bearer"})
    );
}
