//! Notebooks over HTTP, where they are in trouble.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up has failed"
)]

mod support;

use axum::body::Body;
use serde_json::json;
use support::{JSON, Ward};

#[tokio::test]
async fn a_notebook_that_cannot_be_opened_can_still_be_deleted() {
    let ward = Ward::start().await;
    let made = ward.post("/notebooks", &ward.token, &json!({})).await;
    let made = made.json();
    let path = format!("/notebooks/{}", made["id"].as_str().unwrap());
    let log = format!("notebook/{}/0", made["id"].as_str().unwrap());
    ward.write(&log, vec![("notebook.unheard_of", json!("?"))])
        .await;
    let answer = ward.get(&path, &ward.token).await;
    assert_eq!(answer.failure(), (500, "internal".into()));

    let bearer = format!("Bearer {}", ward.token);
    let headers = [("authorization", &*bearer)];
    let deleted = ward.send("DELETE", &path, &headers, Body::empty()).await;
    assert_eq!((deleted.status, deleted.json()), (200, made));
    let answer = ward.get(&path, &ward.token).await;
    assert_eq!(answer.failure(), (404, "unknown".into()));
    let list = ward.get("/notebooks", &ward.token).await;
    assert_eq!(list.json(), json!({"notebooks": []}));
}

#[tokio::test]
async fn a_file_with_json_nested_too_deep_is_refused_and_says_where_it_is() {
    let ward = Ward::start().await;
    let nested = (0..80).fold(json!(1), |inner, _| json!([inner]));
    let shown = json!({"output_type": "display_data", "metadata": {}, "data": {"application/json": nested}});
    let cell = json!({"id": "a", "cell_type": "code", "metadata": {}, "source": "", "execution_count": null, "outputs": [shown]});
    let file = json!({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell]});
    let answer = ward
        .post("/notebooks", &ward.token, &json!({"ipynb": file}))
        .await;
    assert_eq!(answer.failure(), (400, "invalid_params".into()));
    assert_eq!(
        answer.json()["error"],
        "`cells[0]` of the notebook holds JSON that is nested more than 64 levels deep. Take it out of the file, or keep it as text."
    );
}

#[tokio::test]
async fn a_file_with_a_number_that_json_does_not_have_says_where_it_is_and_what_to_do() {
    let ward = Ward::start().await;
    let bearer = format!("Bearer {}", ward.token);
    let headers = [("authorization", &*bearer), JSON];
    for (number, column) in [("NaN", 7), ("Infinity", 7), ("-Infinity", 8)] {
        let file = format!("{{\"ipynb\": {{\"nbformat\": 4,\n \"x\": {number}}}}}");
        let answer = ward.send("POST", "/notebooks", &headers, file).await;
        assert_eq!(answer.failure(), (400, "parse_error".into()));
        let told = answer.json()["error"].as_str().unwrap().to_owned();
        assert!(
            told.contains(&format!("at line 2 column {column}.")),
            "{told}"
        );
        assert!(
            told.ends_with("put null or a text in their place."),
            "{told}"
        );
    }
    let other = "{\"ipynb\": {\"nbformat\": 4,\n \"x\": None}}";
    let answer = ward.send("POST", "/notebooks", &headers, other).await;
    assert!(!answer.body.contains("NaN"), "{}", answer.body);
}
