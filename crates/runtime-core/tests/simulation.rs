//! Agents under random schedules: two at once, displaced in mid-run, crashed, restarted, resumed;
//! messages lost, doubled and reordered; cancels that race with everything. Nothing runs twice or
//! unassigned, order is kept, one stays, and nobody is stuck.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot set itself up has failed"
)]

mod world;

use world::World;

/// How many schedules are tried; more in the long run.
fn schedules() -> u64 {
    let cases = std::env::var("PROPTEST_CASES").ok();
    let cases = cases.and_then(|cases| cases.parse::<u64>().ok());
    // They are cheap beside the cases of a property.
    cases.map_or(3000, |cases| cases * 10)
}

#[test]
fn nothing_runs_twice_or_unassigned_and_nobody_is_stuck_in_thousands_of_schedules() {
    let mut seen = world::Seen::default();
    for seed in 1..=schedules() {
        // The seed of a schedule that fails stands before its assertion.
        let outcome = std::panic::catch_unwind(|| {
            let mut world = World::new(seed);
            world.run(180);
            world.settle();
            world.seen
        });
        match outcome {
            Ok(one) => seen.add(&one),
            Err(panic) => {
                println!("seed {seed}");
                std::panic::resume_unwind(panic);
            }
        }
    }
    println!("{seen:?}");
    // A simulation in which nothing happens proves nothing.
    let counts = [
        seen.runs,
        seen.displaced,
        seen.displaced_while_running,
        seen.crashed_while_running,
        seen.resumed,
        seen.cancelled,
        seen.cancelled_while_running,
        seen.refused_pushes,
        seen.timed_out,
        seen.not_capable,
        seen.shut_down,
        seen.restarted,
    ];
    assert!(counts.iter().all(|count| *count > 20), "{seen:?}");
}
