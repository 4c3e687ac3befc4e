//! The gate: the one way from a client to a runtime. It decides, asks, records and passes on.

#![forbid(unsafe_code)]

pub mod canonical;
