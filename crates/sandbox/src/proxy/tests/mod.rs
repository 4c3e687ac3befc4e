//! The proxy under attack: with values, with random input, with sockets and with curl. All of it
//! stays on loopback.

mod bypass;
mod curl;
mod harness;
mod held;
mod properties;
mod sockets;
