//! OpenAI Responses.

pub(super) mod reader;
pub(super) mod request;
