//! Chat Completions, and whatever is compatible with it, more or less.

pub(super) mod reader;
pub(super) mod request;
