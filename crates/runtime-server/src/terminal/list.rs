//! `terminal.list`: what is open and what runs in the background.

use protocol::action::terminal::{ListParams, ListResult};
use protocol::{ActionName, Facts, Failure};

use crate::action::{Action, Call};
use crate::context::Context;

/// See the module.
pub struct List;

impl Action for List {
    const NAME: ActionName = ActionName::TerminalList;
    const DESCRIPTION: &'static str =
        "List the terminals and background commands of this connection, also those that ended.";
    type Params = ListParams;
    type Result = ListResult;

    fn resolve(_context: &Context, _params: &ListParams) -> Result<Facts, Failure> {
        Ok(Facts::default())
    }

    async fn execute(call: Call, _params: ListParams) -> Result<ListResult, Failure> {
        Ok(ListResult {
            terminals: call.context.terminals.list(&call.context.viewer),
        })
    }
}
