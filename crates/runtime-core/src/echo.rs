//! The smallest handler: it says what the cell says. One for every platform.

use notebook::Bundle;

use crate::context::{ExecutionContext, Finished};

/// Answers `Echo: <source>` as the value of the cell.
pub async fn echo(context: ExecutionContext) -> Finished {
    let source = &context.cell().source;
    context.result(Bundle::text(format!("Echo: {source}")));
    Finished::Ok
}
