//! Agents: who answers for a model, and what an answer is made of.
//!
//! [`provider`] turns a conversation into a request that a model's maker understands, and the bytes
//! that come back into one kind of [`Delta`](provider::Delta) for all of them.
//!
//! It is not a way to act: a tool call is only data here. Whoever runs it sends it through the gate.
//!
//! What always holds:
//! - A turn ends with [`Delta::Done`](provider::Delta::Done) or with an error, and nothing comes
//!   after either. An answer that was cut off is an error, never a shorter answer.
//! - What a provider said in a turn goes back to it verbatim and in order, known or not; to any
//!   other provider goes the normalised view.
//! - Once a delta was passed on, nothing is tried again.
//! - No key is in an error, a delta or a `Debug` output.

#![forbid(unsafe_code)]

pub mod provider;
