//! The core's helpers for media types and bundles, for the page.

use notebook::Bundle;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::failure::{failure, unreadable};

/// Whether it is text that people read.
#[wasm_bindgen(js_name = isText)]
#[must_use]
pub fn is_text(media_type: &str) -> bool {
    runtime_core::is_text(media_type)
}

/// Whether it is HTML, which can run scripts: it is never shown in the page's own origin.
#[wasm_bindgen(js_name = isHtml)]
#[must_use]
pub fn is_html(media_type: &str) -> bool {
    runtime_core::is_html(media_type)
}

/// Whether it is an image.
#[wasm_bindgen(js_name = isImage)]
#[must_use]
pub fn is_image(media_type: &str) -> bool {
    runtime_core::is_image(media_type)
}

/// Whether it is JSON.
#[wasm_bindgen(js_name = isJson)]
#[must_use]
pub fn is_json(media_type: &str) -> bool {
    runtime_core::is_json(media_type)
}

/// Whether its content is base64.
#[wasm_bindgen(js_name = isBinary)]
#[must_use]
pub fn is_binary(media_type: &str) -> bool {
    runtime_core::is_binary(media_type)
}

/// How many bytes a bundle, given as JSON, has.
#[wasm_bindgen(js_name = mediaSize)]
pub fn media_size(bundle: &str) -> Result<usize, JsValue> {
    Ok(runtime_core::size(&read(bundle)?))
}

/// Refuses a bundle, given as JSON, whose media types or contents cannot be.
#[wasm_bindgen(js_name = validateMediaBundle)]
pub fn validate_media_bundle(bundle: &str) -> Result<(), JsValue> {
    runtime_core::validate_media_bundle(&read(bundle)?)
        .map_err(|bad| failure(bad.kind(), &bad.to_string()))
}

pub(crate) fn read(bundle: &str) -> Result<Bundle, JsValue> {
    serde_json::from_str(bundle).map_err(|error| unreadable("The bundle", &error))
}
