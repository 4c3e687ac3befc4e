//! Google Gemini.

pub(super) mod reader;
pub(super) mod request;
