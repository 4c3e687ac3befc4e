//! A JSON-RPC 2.0 peer over any byte stream, with Content-Length frames.
#![forbid(unsafe_code)]
