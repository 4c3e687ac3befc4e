//! The local runtime: a registry of file and terminal actions behind JSON-RPC.
#![forbid(unsafe_code)]
