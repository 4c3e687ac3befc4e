//! Steps under headings, each with its time, and a total at the end.

use std::time::{Duration, Instant};

/// What has been done so far.
#[derive(Debug)]
pub(crate) struct Steps {
    started: Instant,
    done: Vec<(String, Duration, End)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Passed,
    Failed,
}

impl Steps {
    pub(crate) fn new() -> Self {
        Self {
            started: Instant::now(),
            done: Vec::new(),
        }
    }

    /// Does one step. After the first that fails nothing more is done.
    pub(crate) fn step<T>(
        &mut self,
        name: &str,
        work: impl FnOnce() -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        println!("\n── {name} ──");
        let started = Instant::now();
        let result = work();
        let end = if result.is_ok() {
            End::Passed
        } else {
            End::Failed
        };
        self.done.push((name.to_owned(), started.elapsed(), end));
        println!(
            "── {name}: {} in {} ──",
            end.word(),
            seconds(started.elapsed())
        );
        result
    }

    /// The table of all steps, and the total.
    pub(crate) fn total(&self) {
        println!("\n── Total ──");
        for (name, time, end) in &self.done {
            println!("  {:>8}  {}  {name}", seconds(*time), end.word());
        }
        let failed = self.done.iter().any(|(_, _, end)| *end == End::Failed);
        println!(
            "  {:>8}  {} ({} steps)",
            seconds(self.started.elapsed()),
            if failed { "FAILED" } else { "all passed" },
            self.done.len()
        );
    }
}

impl End {
    fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "FAILED",
        }
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
