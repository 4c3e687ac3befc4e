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
            told.ends_with("A notebook's file with them can be sent as a string, which is its text; elsewhere put null or a text in their place."),
            "{told}"
        );
    }
    let other = "{\"ipynb\": {\"nbformat\": 4,\n \"x\": None}}";
    let answer = ward.send("POST", "/notebooks", &headers, other).await;
    assert!(!answer.body.contains("NaN"), "{}", answer.body);
}

const NUMBERS: &str =
    "[123456789012345678901234567890,-123456789012345678901234567890,1e400,18446744073709551615]";

/// Text that begins as a number does that is held as a string.
const TEXT: &str = "\u{2063}\u{2062}NaN";

#[tokio::test]
async fn a_file_goes_out_with_the_numbers_it_came_with_as_an_object_and_as_text() {
    let ward = Ward::start().await;
    let bearer = format!("Bearer {}", ward.token);
    let headers = [("authorization", &*bearer), JSON];
    let python = NUMBERS.replace(']', ",NaN,Infinity,-Infinity]");
    let file = |numbers: &str| {
        let shown = format!(
            r#"{{"data":{{"application/json":{numbers}}},"metadata":{{}},"output_type":"display_data"}}"#
        );
        let cell = format!(
            r#"{{"cell_type":"code","execution_count":null,"id":"a","metadata":{{"n":{numbers}}},"outputs":[{shown}],"source":["{TEXT}"]}}"#
        );
        format!(
            r#"{{"cells":[{cell}],"metadata":{{"n":{numbers}}},"nbformat":4,"nbformat_minor":5}}"#
        )
    };
    let bodies = [
        (NUMBERS, format!("{{\"ipynb\": {}}}", file(NUMBERS))),
        (&*python, json!({"ipynb": file(&python)}).to_string()),
    ];
    for (numbers, body) in bodies {
        let made = ward.send("POST", "/notebooks", &headers, body).await;
        assert_eq!(made.status, 201, "{}", made.body);
        let path = format!("/notebooks/{}/ipynb", made.json()["id"].as_str().unwrap());
        let out = ward.get(&path, &ward.token).await;
        assert_eq!((out.status, out.body), (200, file(numbers)));
    }
}

#[tokio::test]
async fn what_is_no_file_is_refused_with_the_place_where_it_is_none() {
    let ward = Ward::start().await;
    for (file, told) in [
        (
            json!(""),
            "The file is no JSON: line 1, column 1: EOF while parsing a value.",
        ),
        (
            json!("{\"a\": NaN,\n \"b\": None}"),
            "The file is no JSON: line 2, column 7: expected value.",
        ),
        (
            json!("[NaN]"),
            "The file is JSON, but not an object, which a notebook is.",
        ),
        (
            json!(7),
            "The file is JSON, but not an object, which a notebook is.",
        ),
    ] {
        let answer = ward
            .post("/notebooks", &ward.token, &json!({"ipynb": file}))
            .await;
        assert_eq!(answer.failure(), (400, "invalid_params".into()));
        let answer = answer.json();
        assert_eq!(
            (&answer["error"], &answer["field"]),
            (&json!(told), &json!("ipynb"))
        );
    }
    let deep = format!("{{\"a\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    for body in [
        json!({"ipynb": deep}).to_string(),
        format!("{{\"ipynb\": {deep}}}"),
    ] {
        let bearer = format!("Bearer {}", ward.token);
        let headers = [("authorization", &*bearer), JSON];
        let answer = ward.send("POST", "/notebooks", &headers, body).await;
        assert_eq!(
            answer.failure(),
            (400, "invalid_params".into()),
            "{}",
            answer.body
        );
    }
    // An empty one needs no file.
    let nothing = json!({"ipynb": null});
    let answer = ward.post("/notebooks", &ward.token, &nothing).await;
    assert_eq!(answer.status, 201);
}

#[tokio::test]
async fn a_file_of_8_mib_is_taken_however_much_of_it_is_escaped_and_a_larger_one_is_not() {
    let ward = Ward::start().await;
    let file = |bytes: usize| {
        let around = r#"{"nbformat":4,"nbformat_minor":5,"cells":[],"metadata":{}}"#;
        let lines = "\n".repeat(bytes - around.len());
        json!({"ipynb": format!("{around}{lines}")})
    };
    let most = 8 << 20;
    let answer = ward.post("/notebooks", &ward.token, &file(most)).await;
    assert_eq!(answer.status, 201, "{}", answer.body);
    let answer = ward.post("/notebooks", &ward.token, &file(most + 1)).await;
    assert_eq!(answer.failure(), (413, "too_large".into()));
    assert_eq!(
        answer.json()["error"],
        "A notebook's file has at most 8 MiB."
    );
    let answer = ward.post("/notebooks", &ward.token, &file(2 * most)).await;
    assert_eq!(answer.failure(), (413, "too_large".into()));
}
