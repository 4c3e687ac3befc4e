//! docs/add-a-runtime.md: its code is this, and works.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot set itself up has failed"
)]

// begin
use std::error::Error;
use std::path::Path;

use runtime_native::{
    Bundle, Capabilities, Ending, ExecutionContext, Finished, create_native_runtime_agent,
    parse_runtime_args,
};

/// Runs a cell: counts the words of each line, and stops when it is told to.
async fn count_words(context: ExecutionContext) -> Finished {
    let mut words = 0;
    for line in context.cell().source.lines() {
        if context.is_cancelled() {
            return Finished::Cancelled;
        }
        if line.contains('\0') {
            context.error("NotText", "A line holds a NUL.", Vec::new());
            return Finished::failed("NotText: a line holds a NUL.");
        }
        words += line.split_whitespace().count();
        context.stdout(&format!("{words} so far\n"));
    }
    context.result(Bundle::text(format!("{words} words")));
    Finished::Ok
}

/// Is the runtime of the notebook that the arguments name, until it is displaced or lost.
async fn serve(args: &[&str], config: &Path) -> Result<Ending, Box<dyn Error>> {
    let variable = |name: &str| std::env::var(name).ok();
    let args = parse_runtime_args(args, variable, config)?;
    let capabilities = Capabilities {
        can_execute_code: true,
        ..Capabilities::default()
    };
    let (mut agent, store) = create_native_runtime_agent(&args, capabilities).await?;
    agent.on_execution(count_words);
    // `agent.handle().shutdown()` ends it from elsewhere, such as from a signal.
    tokio::select! {
        ending = agent.start() => Ok(ending?),
        why = store.sync() => Ok(Ending::Lost(why)),
    }
}
// end

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use notebook::{CellId, CellType, ExecutionId};
use runtime_native::{Job, Outbox, Said};

#[test]
fn the_page_shows_exactly_the_code_that_is_tested() {
    let here = include_str!("add_a_runtime.rs");
    let code = here.split("// begin\n").nth(1).unwrap();
    let code = code.split("// end\n").next().unwrap();
    let page = include_str!("../../../docs/add-a-runtime.md");
    assert!(
        page.contains(&format!("```rust\n{code}```\n")),
        "docs/add-a-runtime.md has other code"
    );
}

#[test]
fn the_handler_of_the_page_says_what_it_counts() {
    let job = Job {
        execution_id: ExecutionId::new("e").unwrap(),
        cell_id: CellId::new("c").unwrap(),
        cell_type: CellType::Code,
        source: "two words\nand three more".into(),
        requested_by: None,
    };
    let outbox = Outbox::new();
    let run = pin!(count_words(ExecutionContext::new(job, outbox.clone())));
    let ended = run.poll(&mut Context::from_waker(Waker::noop()));
    assert_eq!(ended, Poll::Ready(Finished::Ok));
    let said = outbox.take();
    let value = said.last().unwrap();
    assert!(matches!(value, Said::Result { bundle, .. } if *bundle == Bundle::text("5 words")));
}

#[tokio::test]
async fn an_agent_without_a_server_says_so() {
    let config = tempfile::tempdir().unwrap();
    std::fs::write(config.path().join("token"), "t").unwrap();
    // Nobody listens there.
    let args = [
        "--url",
        "http://127.0.0.1:1",
        "--notebook",
        "n",
        "--client-id",
        "ada",
    ];
    let told = serve(&args, config.path()).await.unwrap_err().to_string();
    assert!(told.contains("ward serve"), "{told}");
}
