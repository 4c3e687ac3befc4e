//! Jupyter's files go in and out without a loss.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot set itself up has failed"
)]

use notebook::ipynb::{BadFile, parse, read, to_text, write};
use notebook::{ArtifactRef, CellId, CellType, Notebook, NotebookEvent, Output};
use serde_json::{Map, Value, json};

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn opened(file: &Value) -> Notebook {
    let mut notebook = Notebook::default();
    for event in read(file.as_object().unwrap()).unwrap() {
        // Through JSON, as it is in the store.
        let text = serde_json::to_string(&event).unwrap();
        notebook.take(&serde_json::from_str(&text).unwrap(), None);
    }
    notebook
}

fn round_trip(file: &Value) -> Value {
    Value::Object(write(&opened(file), &|_| None))
}

fn file(cells: Value) -> Value {
    json!({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells})
}

#[test]
fn files_of_jupyters_own_programs_go_out_as_they_came_in() {
    let mut seen = 0;
    // Tests run in their crate's folder.
    for entry in std::fs::read_dir("tests/files").unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let file: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(round_trip(&file), file, "{}", path.display());
        seen += 1;
    }
    assert!(seen >= 3);
}

#[test]
fn what_nobody_knows_is_kept_where_it_was() {
    let file = json!({
        "nbformat": 4, "nbformat_minor": 5, "metadata": {"a": {"b": [1, 2.5, null]}}, "signature": "x",
        "cells": [
            {"cell_type": "code", "id": "one", "metadata": {"collapsed": true}, "source": ["x"], "execution_count": null, "outputs": [
                {"output_type": "display_data", "data": {"image/png": "iVBO\n", "application/vnd.x+json": {"k": [1]}}, "metadata": {"image/png": {"width": 2}}, "transient": {"display_id": "d"}},
                {"output_type": "pyout", "odd": true},
            ], "prompt": 7},
            {"cell_type": "markdown", "id": "two", "metadata": {}, "source": "in one piece\nof two lines", "attachments": {"a.png": {"image/png": "AA=="}}},
            {"cell_type": "heading", "id": "three", "metadata": {}, "source": ["x"], "level": 2},
        ],
    });
    assert_eq!(round_trip(&file), file);
}

#[test]
fn what_jupyter_would_not_have_written_goes_out_as_it_came() {
    let text = r#"{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [
        {"cell_type": "code", "id": "a", "metadata": {}, "source": [], "outputs": [], "execution_count": -1},
        {"cell_type": "code", "id": "b", "metadata": {}, "source": [], "outputs": [], "execution_count": 1.0},
        {"cell_type": "code", "id": "c", "metadata": {}, "source": [], "outputs": [], "execution_count": 123456789012345678901234567890},
        {"cell_type": "code", "id": "d", "source": []},
        {"cell_type": "raw", "id": "e", "metadata": {"ward": {"cell_type": "sql"}}, "source": []},
        {"cell_type": "markdown", "id": "f", "metadata": {}, "source": [], "execution_count": null, "outputs": [{"output_type": "stream", "name": "stdout", "text": ["x"]}]},
        {"cell_type": "markdown", "id": "g", "source": []},
        {"cell_type": "heading", "id": "h", "metadata": {}, "source": [], "outputs": "none"}
    ]}"#;
    let (before, after) = text_round_trip(text);
    assert_eq!(after, before);
}

#[test]
fn a_cell_that_ran_goes_out_as_jupyter_writes_it_however_it_came() {
    let mut notebook = opened(&file(json!([
        {"cell_type": "code", "id": "a", "source": [], "execution_count": -1},
    ])));
    for event in [
        json!({"kind": "execution.requested", "execution_id": "e", "cell_id": "a"}),
        json!({"kind": "execution.assigned", "execution_id": "e", "session_id": "s"}),
        json!({"kind": "execution.started", "execution_id": "e"}),
        json!({"kind": "output.terminal", "execution_id": "e", "stream": "stdout", "text": "x"}),
        json!({"kind": "execution.completed", "execution_id": "e", "outcome": "ok"}),
    ] {
        notebook.take(&serde_json::from_value(event).unwrap(), None);
    }
    let out = Value::Object(write(&notebook, &|_| None));
    assert_eq!(
        out["cells"][0],
        json!({"cell_type": "code", "id": "a", "source": [], "execution_count": null, "outputs": [
            {"output_type": "stream", "name": "stdout", "text": ["x"]},
        ]})
    );
}

#[test]
fn cells_without_ids_with_the_same_and_with_impossible_ones_get_usable_ones_and_keep_theirs() {
    let cell = |id: &str| json!({"cell_type": "raw", "id": id, "metadata": {}, "source": []});
    let twice = file(json!([
        cell("a"),
        cell("a"),
        cell("not possible"),
        cell("cell-2")
    ]));
    let notebook = opened(&twice);
    assert_eq!(notebook.cells().len(), 4);
    assert_eq!(round_trip(&twice), twice);
    let old = json!({"nbformat": 4, "nbformat_minor": 2, "metadata": {}, "cells": [
        {"cell_type": "raw", "metadata": {}, "source": ["x"]},
    ]});
    assert_eq!(round_trip(&old), old, "format 4.2 has no ids");
}

#[test]
fn what_is_changed_is_written_anew_and_the_rest_is_as_it_came() {
    let before = file(json!([
        {"cell_type": "markdown", "id": "a", "metadata": {}, "source": "one piece"},
        {"cell_type": "markdown", "id": "b", "metadata": {}, "source": "one piece"},
    ]));
    let mut notebook = opened(&before);
    let edit = json!({"kind": "cell.source", "cell_id": "a", "source": "two\nlines"});
    let edit: NotebookEvent = serde_json::from_value(edit).unwrap();
    notebook.take(&edit, None);
    let after = Value::Object(write(&notebook, &|_| None));
    assert_eq!(after["cells"][0]["source"], json!(["two\n", "lines"]));
    assert_eq!(after["cells"][1], before["cells"][1]);
}

#[test]
fn types_that_jupyter_does_not_have_are_code_there_and_come_back() {
    let mut notebook = opened(&file(json!([])));
    let created = json!({"kind": "cell.created", "cell_id": "q", "cell_type": "sql", "place": "V", "source": "select 1"});
    let created: NotebookEvent = serde_json::from_value(created).unwrap();
    notebook.take(&created, None);
    let out = Value::Object(write(&notebook, &|_| None));
    assert_eq!(out["cells"][0]["cell_type"], "code");
    let back = opened(&out);
    let cell = back.cell(&CellId::new("q").unwrap()).unwrap();
    assert_eq!(cell.cell_type, CellType::Sql);
    let typed = json!({"kind": "cell.type", "cell_id": "q", "cell_type": "code"});
    let mut back = back;
    back.take(&serde_json::from_value(typed).unwrap(), None);
    let out = Value::Object(write(&back, &|_| None));
    assert_eq!(out["cells"][0]["metadata"], json!({}));
}

#[test]
fn an_artifact_is_in_the_file_itself() {
    let artifact = json!({"digest": format!("sha256:{}", "ab".repeat(32)), "size": 3, "media_type": "image/png"});
    let mut notebook = opened(&file(json!([
        {"cell_type": "code", "id": "a", "metadata": {}, "source": [], "execution_count": null, "outputs": []},
    ])));
    let shown = json!({"kind": "output.imported", "cell_id": "a", "outputs": [
        {"type": "display", "bundle": {"data": {"image/png": {"artifact": artifact}}}},
    ]});
    notebook.take(&serde_json::from_value(shown).unwrap(), None);
    let resolve = |_: &ArtifactRef| Some(vec![0xff, 0, 1]);
    let out = Value::Object(write(&notebook, &resolve));
    assert_eq!(
        out["cells"][0]["outputs"][0]["data"],
        json!({"image/png": "/wAB"})
    );
}

#[test]
fn other_formats_and_other_shapes_are_refused_with_what_is_wrong() {
    let refused = |value: Value| read(&object(value)).unwrap_err();
    assert_eq!(
        refused(json!({"nbformat": 3})),
        BadFile::Format("format 3".to_owned())
    );
    assert!(matches!(refused(json!({})), BadFile::Format(_)));
    let shape = |value: Value| refused(value).to_string();
    assert!(shape(json!({"nbformat": 4, "nbformat_minor": 5, "metadata": {}})).contains("cells"));
    assert!(shape(file(json!([1]))).contains("cells[0]"));
    assert!(shape(file(json!([{"cell_type": "code", "source": 1}]))).contains("cells[0].source"));
}

/// A file whose text says so, and the same after it was a notebook.
fn text_round_trip(text: &str) -> (String, String) {
    let file = parse(text).unwrap();
    let after = round_trip(&Value::Object(file.clone()));
    (to_text(&file), to_text(after.as_object().unwrap()))
}

#[test]
fn numbers_that_python_writes_are_where_they_were() {
    let number = "123456789012345678901234567890";
    let text = format!(
        r#"{{"nbformat": 4, "nbformat_minor": 5, "metadata": {{"title": NaN, "low": -Infinity}}, "more": [{number}], "cells": [
            {{"cell_type": "code", "id": "a", "metadata": {{"big": {number}}}, "source": ["x"], "execution_count": 1, "outputs": [
                {{"output_type": "display_data", "data": {{"application/json": {{"y": [1, NaN, 1e400]}}, "text/plain": ["x"]}}, "metadata": {{"n": Infinity}}}},
                {{"output_type": "execute_result", "execution_count": {number}, "data": {{"application/vnd.plotly.v1+json": NaN}}, "metadata": {{}}}},
                {{"output_type": "stream", "name": "stdout", "text": NaN}},
                {{"output_type": "error", "ename": "E", "evalue": NaN, "traceback": [-0]}}
            ]}},
            {{"cell_type": "markdown", "id": NaN, "metadata": {{}}, "source": [], "attachments": {{"a": {number}}}}}
        ]}}"#
    );
    let (before, after) = text_round_trip(&text);
    assert_eq!(before.matches("NaN").count(), 6);
    assert_eq!(after, before);
    let notebook = opened(&Value::Object(parse(&text).unwrap()));
    assert_eq!(notebook.title, "", "a number is no title");
    for (part, told) in [
        (r#""cell_type": NaN, "source": """#, "cells[0].cell_type"),
        (r#""cell_type": "code", "source": NaN"#, "cells[0].source"),
        (
            r#""cell_type": "code", "source": ["a", NaN]"#,
            "cells[0].source",
        ),
    ] {
        let text = format!(
            r#"{{"nbformat": 4, "nbformat_minor": 5, "metadata": {{}}, "cells": [{{{part}}}]}}"#
        );
        let refused = read(&parse(&text).unwrap());
        assert_eq!(refused, Err(BadFile::Shape(told.to_owned())));
    }
}

#[test]
fn text_that_looks_like_a_held_number_is_text_wherever_ward_reads_or_writes_it() {
    let odd = "\u{2063}\u{2062}NaN";
    let line = format!("{odd}\n");
    let file = json!({"nbformat": 4, "nbformat_minor": 5, "metadata": {"title": odd}, "cells": [
        {"cell_type": "code", "id": "a", "metadata": {"m": odd}, "source": [line, odd], "execution_count": 1, "outputs": [
            {"output_type": "stream", "name": "stdout", "text": [line, odd]},
            {"output_type": "display_data", "data": {"text/plain": [odd], "x/y": odd, "application/json": [odd]}, "metadata": {"m": odd}},
            {"output_type": "error", "ename": odd, "evalue": odd, "traceback": [odd]},
        ]},
        {"cell_type": odd, "id": "b", "metadata": {}, "source": odd},
    ]});
    let (before, after) = text_round_trip(&file.to_string());
    assert_eq!(before, file.to_string());
    assert_eq!(after, before);
    let notebook = opened(&Value::Object(parse(&before).unwrap()));
    assert_eq!(notebook.title, odd);
    let both = format!("{line}{odd}");
    let cells = notebook.cells();
    assert_eq!([&*cells[0].source, &*cells[1].source], [&*both, odd]);
    let terminal = |text: &str| {
        serde_json::from_value::<Output>(
            json!({"type": "terminal", "stream": "stdout", "text": text}),
        )
    };
    assert_eq!(cells[0].outputs[0], terminal(&both).unwrap());

    // What is written and printed here is no more a number than what came with a file.
    let mut notebook = opened(&self::file(json!([
        {"cell_type": "code", "id": "a", "metadata": {}, "source": [], "execution_count": null, "outputs": []},
    ])));
    let bundle = json!({"data": {"text/html": {"inline": odd}, "image/png": {"inline": odd}}});
    for event in [
        json!({"kind": "cell.source", "cell_id": "a", "source": both}),
        json!({"kind": "output.imported", "cell_id": "a", "outputs": [
            {"type": "terminal", "stream": "stdout", "text": both},
            {"type": "display", "bundle": bundle},
            {"type": "error", "name": odd, "value": odd, "traceback": [odd]},
            {"type": "markdown", "text": odd},
        ]}),
    ] {
        notebook.take(&serde_json::from_value(event).unwrap(), None);
    }
    let out = serde_json::from_str::<Value>(&to_text(&write(&notebook, &|_| None))).unwrap();
    let cell = &out["cells"][0];
    assert_eq!(cell["source"], json!([line, odd]));
    assert_eq!(
        cell["outputs"],
        json!([
            {"output_type": "stream", "name": "stdout", "text": [line, odd]},
            {"output_type": "display_data", "data": {"text/html": [odd], "image/png": odd}, "metadata": {}},
            {"output_type": "error", "ename": odd, "evalue": odd, "traceback": [odd]},
            {"output_type": "display_data", "data": {"text/markdown": [odd]}, "metadata": {}},
        ])
    );
}

#[test]
fn an_artifact_of_json_keeps_its_numbers() {
    let artifact = json!({"digest": format!("sha256:{}", "ab".repeat(32)), "size": 3, "media_type": "application/json"});
    let mut notebook = opened(&file(json!([
        {"cell_type": "code", "id": "a", "metadata": {}, "source": [], "execution_count": null, "outputs": []},
    ])));
    let shown = json!({"kind": "output.imported", "cell_id": "a", "outputs": [
        {"type": "display", "bundle": {"data": {"application/json": {"artifact": artifact}}}},
    ]});
    notebook.take(&serde_json::from_value(shown).unwrap(), None);
    let text = |bytes: &str| {
        let resolve = |_: &ArtifactRef| Some(bytes.as_bytes().to_vec());
        to_text(&write(&notebook, &resolve))
    };
    assert!(text("[NaN, 1e400]").contains(r#"{"application/json":[NaN,1e400]}"#));
    let no_json = text("\u{2063}\u{2062}NaN, 1").replace(['\u{2063}', '\u{2062}'], "_");
    assert!(no_json.contains(r#"{"application/json":"__NaN, 1"}"#));
}

#[test]
fn outputs_can_be_shown_whichever_way_they_are_written() {
    let notebook = opened(&file(json!([
        {"cell_type": "code", "id": "a", "metadata": {}, "source": [], "execution_count": 1, "outputs": [
            {"output_type": "stream", "name": "stdout", "text": "in one piece\nof two"},
        ]},
    ])));
    let outputs = &notebook.cells()[0].outputs;
    assert!(
        matches!(&outputs[0], Output::Kept { shown: Some(shown), .. } if matches!(&**shown, Output::Terminal { text, .. } if text == "in one piece\nof two"))
    );
}
