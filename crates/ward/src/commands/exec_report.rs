//! What `ward exec` has to say after its command: what was stopped, set aside or kept apart.

use protocol::sandbox::{Limit, StoppedAccess, Tier};
use sandbox::Outcome;

use crate::console::printable;
use crate::duration::Span;

/// How many of a kind are named one by one.
const NAMED: usize = 8;

/// The lines, without their prefix; none where there is nothing to say.
pub(crate) fn lines(outcome: &Outcome, timeout: Option<Span>) -> Vec<String> {
    let report = &outcome.report;
    let mut lines = Vec::new();
    match report.tier {
        Tier::Room => {}
        Tier::Walls => lines.push(
            "held by the tier `walls` only, as your settings allow; `ward doctor` says what is missing".into(),
        ),
        Tier::None => lines.push(
            "not held by any sandbox, as your settings allow; `ward doctor` says what is missing".into(),
        ),
    }
    match (report.limit, outcome.timed_out, timeout) {
        (Some(Limit::Memory), _, _) => {
            lines.push("ended: it used more memory than its limit; --memory allows more".into());
        }
        (_, true, Some(span)) => {
            lines.push(format!("ended after {span}; --timeout allows more"));
        }
        (Some(Limit::Time), _, _) | (None, _, _) => {}
    }
    named(
        &mut lines,
        report.stopped.iter().map(|stopped| {
            let target = printable(&stopped.target);
            match stopped.access {
                StoppedAccess::Write => format!("stopped: write to {target}"),
                StoppedAccess::Connect => {
                    format!("stopped: connection to {target}; --net allows hosts by name")
                }
            }
        }),
    );
    named(
        &mut lines,
        report.set_aside.iter().map(|aside| {
            format!(
                "set aside: {} ({}); `ward aside restore {}` puts it back",
                printable(&aside.path),
                printable(&aside.reason),
                aside.id
            )
        }),
    );
    if !report.scratch.is_empty() {
        let shown: Vec<String> = report
            .scratch
            .iter()
            .take(NAMED)
            .map(|path| printable(path))
            .collect();
        let more = report.scratch.len() - shown.len();
        lines.push(format!(
            "written to the scratch home folder, which is gone now: {}{}",
            shown.join(", "),
            if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            }
        ));
    }
    lines
}

fn named(lines: &mut Vec<String>, each: impl ExactSizeIterator<Item = String>) {
    let more = each.len().saturating_sub(NAMED);
    lines.extend(each.take(NAMED));
    if more > 0 {
        lines.push(format!("… and {more} more of these"));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use protocol::sandbox::{SandboxReport, SetAside, Stopped};
    use sandbox::End;

    use super::*;

    fn outcome(report: SandboxReport) -> Outcome {
        Outcome {
            end: End::Exited(0),
            timed_out: false,
            duration: Duration::from_secs(1),
            report,
        }
    }

    #[test]
    fn a_quiet_command_in_a_room_says_nothing() {
        let outcome = outcome(SandboxReport::quiet(Tier::Room));
        assert_eq!(lines(&outcome, None), Vec::<String>::new());
    }

    #[test]
    fn what_was_stopped_set_aside_or_kept_apart_is_named_up_to_a_number() {
        let mut report = SandboxReport::quiet(Tier::Walls);
        report.stopped = (0..10)
            .map(|n| Stopped {
                access: StoppedAccess::Write,
                target: format!("/etc/{n}"),
            })
            .collect();
        report.stopped[1] = Stopped {
            access: StoppedAccess::Connect,
            target: "example.org:443".into(),
        };
        report.set_aside = vec![SetAside {
            id: "a1".into(),
            path: ".git/hooks/post-commit\n".into(),
            reason: "git would run it".into(),
        }];
        report.scratch = vec!["~/.npmrc".into(), "~/.cache/x".into()];
        report.limit = Some(Limit::Memory);
        insta::assert_snapshot!(lines(&outcome(report), None).join("\n"));
    }

    #[test]
    fn a_timeout_names_the_time() {
        let mut outcome = outcome(SandboxReport::quiet(Tier::Room));
        outcome.report.limit = Some(Limit::Time);
        outcome.timed_out = true;
        assert_eq!(
            lines(&outcome, "90s".parse().ok()),
            ["ended after 90s; --timeout allows more"]
        );
    }
}
