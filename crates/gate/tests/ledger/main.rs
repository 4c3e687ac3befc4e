//! The ledger on a real database in a real folder, and what is found when somebody was at it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot set itself up has failed"
)]

mod home;
mod reopened;
mod tampered;
mod written;
