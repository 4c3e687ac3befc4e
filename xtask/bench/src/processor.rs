//! Processor time, as /proc has it.

use anyhow::Context as _;

use crate::memory::tree;

/// Ticks of /proc a second; Linux shows all users the same.
const TICKS: f64 = 100.0;

/// Seconds that all threads of a process have used so far.
pub(crate) fn of_process(pid: u32) -> anyhow::Result<f64> {
    used(pid, 2)
}

/// Seconds that a process and all below it have used so far, with those that have ended and were
/// waited for.
pub(crate) fn of_tree(pid: u32) -> anyhow::Result<f64> {
    // One that ends meanwhile is counted by who waited for it.
    let used = tree(pid)?.into_iter().filter_map(|pid| used(pid, 4).ok());
    Ok(used.sum())
}

/// The first `fields` of user and system time, and the same of children that were waited for.
fn used(pid: u32, fields: usize) -> anyhow::Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name, in brackets, may hold anything; behind it the fields are numbers.
    let (_, rest) = stat.rsplit_once(')').context("/proc/*/stat has no name")?;
    let ticks: u64 = rest
        .split_whitespace()
        .skip(11)
        .take(fields)
        .filter_map(|field| field.parse::<u64>().ok())
        .sum();
    Ok(ticks as f64 / TICKS)
}
