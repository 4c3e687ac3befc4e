//! What goes wrong, as JavaScript has it: an `Error` with a sentence and a stable `kind`.

use wasm_bindgen::JsValue;

/// An error for the page.
pub(crate) fn failure(kind: &str, sentence: &str) -> JsValue {
    let error = js_sys::Error::new(sentence);
    // An error object takes any property.
    let _ = js_sys::Reflect::set(&error, &"kind".into(), &kind.into());
    error.into()
}

/// What the page gave cannot be read.
pub(crate) fn unreadable(what: &str, error: &serde_json::Error) -> JsValue {
    failure(
        "invalid_params",
        &format!("{what} cannot be read: {error}."),
    )
}

/// The sentence of something that JavaScript threw.
pub(crate) fn sentence(thrown: &JsValue) -> String {
    let message = js_sys::Reflect::get(thrown, &"message".into());
    let message = message.ok().and_then(|message| message.as_string());
    message
        .or_else(|| thrown.as_string())
        .unwrap_or_else(|| "It failed without a reason.".to_owned())
}
