//! What a handler in the page has: the cell, and words for what happens in it.

use notebook::OutputId;
use runtime_core::{BadBundle, ExecutionContext};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::failure::{failure, unreadable};
use crate::media::read;

/// What a handler has. All of its words return at once.
#[wasm_bindgen]
pub struct Context(ExecutionContext);

impl Context {
    pub(crate) fn new(context: ExecutionContext) -> Self {
        Self(context)
    }
}

#[wasm_bindgen]
impl Context {
    /// The cell as it was when somebody wanted it to run, as JSON.
    #[wasm_bindgen(getter)]
    pub fn cell(&self) -> String {
        let job = self.0.cell();
        serde_json::json!({
            "execution_id": job.execution_id,
            "cell_id": job.cell_id,
            "cell_type": job.cell_type,
            "source": job.source,
            "requested_by": job.requested_by,
        })
        .to_string()
    }

    /// Prints.
    pub fn stdout(&self, text: &str) {
        self.0.stdout(text);
    }

    /// Prints to standard error.
    pub fn stderr(&self, text: &str) {
        self.0.stderr(text);
    }

    /// Shows a bundle, given as JSON; under an id it can become another thing later.
    pub fn display(&self, bundle: &str, id: Option<String>) -> Result<(), JsValue> {
        let id = id.map(output).transpose()?;
        self.0.display(read(bundle)?, id).map_err(thrown)
    }

    /// Makes what is shown under an id another thing.
    #[wasm_bindgen(js_name = updateDisplay)]
    pub fn update_display(&self, id: String, bundle: &str) -> Result<(), JsValue> {
        let shown = self.0.update_display(output(id)?, read(bundle)?);
        shown.map_err(thrown)
    }

    /// Says the value of the cell: a bundle, given as JSON.
    pub fn result(&self, bundle: &str) -> Result<(), JsValue> {
        let bundle = read(bundle)?;
        runtime_core::validate_media_bundle(&bundle).map_err(thrown)?;
        self.0.result(bundle);
        Ok(())
    }

    /// Says what went wrong in the cell; the traceback is a list of lines, as JSON.
    pub fn error(&self, name: &str, value: &str, traceback: &str) -> Result<(), JsValue> {
        let lines = serde_json::from_str(traceback);
        let lines = lines.map_err(|error| unreadable("The traceback", &error))?;
        self.0.error(name, value, lines);
        Ok(())
    }

    /// Adds to a text in Markdown.
    pub fn markdown(&self, text: &str) {
        self.0.markdown(text);
    }

    /// Takes away what the cell shows: now, or once it shows the next thing.
    pub fn clear(&self, wait: bool) {
        self.0.clear(wait);
    }

    /// Whether somebody wants it to stop.
    #[wasm_bindgen(getter, js_name = isCancelled)]
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Waits until somebody wants it to stop.
    pub async fn cancelled(&self) {
        let context = self.0.clone();
        context.cancelled().await;
    }
}

fn output(id: String) -> Result<OutputId, JsValue> {
    OutputId::new(id).map_err(|error| failure("invalid_params", &error.to_string()))
}

fn thrown(bad: BadBundle) -> JsValue {
    failure(bad.kind(), &bad.to_string())
}
