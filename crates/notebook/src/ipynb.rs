//! Jupyter's files, format 4: into events, and out of a notebook.
//!
//! Nothing is lost on the way: what nobody knows is kept where it was, and what is written in
//! another way than here goes out as it came, for as long as it is not changed. A file's text is read
//! by [`parse`] and written by [`to_text`]: with serde alone, numbers would lose digits.

mod numbers;
mod output;
mod read;
mod scan;
mod text;
mod write;

pub use numbers::{parse, parse_value, to_lines, to_text, value_to_text};
pub use read::{BadFile, read};
pub use text::joined;
pub use write::write;

/// What is said about a cell of a type that Jupyter does not have: it is code with this.
const OURS: &str = "ward";
/// What of a cell is kept in a list where it would not go out as it came: the list is empty where the
/// cell had no such thing.
const LISTED: [&str; 3] = ["outputs", "execution_count", "metadata"];
