//! Anthropic Messages.

pub(super) mod reader;
pub(super) mod request;
