//! Who is talking: tokens, the links that sign a browser in, and what happens to wrong guesses.
//!
//! Invariants:
//! - No secret is on the disk but the first person's own, in a file for that person alone; of all
//!   others there is only a hash.
//! - A file of tokens that cannot be read lets nobody in.
//! - A runtime that Ward started does in its own notebook what a runtime has to, and nothing else.
//! - What was revoked is refused from then on, also where it is in use: see [`Tokens::holds`].

mod admit;
mod attempts;
mod browsers;
mod file;
mod lent;
mod login;
mod secret;
mod tokens;

pub(crate) use admit::{Caller, Person, Runtimes, Who, admit, cookies, for_editors, wrong_from};
pub(crate) use attempts::{Attempts, Peer};
pub(crate) use browsers::SESSION;
pub use file::TokensError;
pub use lent::Lent;
pub(crate) use login::{LIFETIME as LOGIN_LIFETIME, Logins};
pub(crate) use tokens::now;
pub use tokens::{FirstPerson, Identity, NewAgent, Pass, Passed, TokenInfo, TokenKind, Tokens};
