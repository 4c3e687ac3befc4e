//! Old events, read as new ones.
//!
//! A kind whose shape changes gets a new tag: `cell.moved` becomes `cell.moved@2`. A step says how
//! one of the old tag becomes one of the new; steps are taken until none fits, so that each tag needs
//! one step only, to the next. Logs are never rewritten for this.

use serde_json::{Map, Value};

/// From one tag to the next.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// The old tag.
    pub from: &'static str,
    /// The new one.
    pub to: &'static str,
    /// What changes besides.
    pub change: fn(&mut Map<String, Value>),
}

/// All steps there are.
pub const STEPS: &[Step] = &[];

/// Makes the newest of an event, by these steps.
pub fn upcast(event: &mut Map<String, Value>, steps: &[Step]) {
    // No tag is met twice: steps lead on, or nowhere.
    for _ in 0..=steps.len() {
        let kind = event.get("kind").and_then(Value::as_str);
        let Some(step) = steps.iter().find(|step| Some(step.from) == kind) else {
            return;
        };
        event.insert("kind".to_owned(), Value::from(step.to));
        (step.change)(event);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_of_the_first_version_goes_through_every_step_to_the_last() {
        let steps = [
            Step {
                from: "x@2",
                to: "x@3",
                change: |event| drop(event.insert("third".to_owned(), json!(true))),
            },
            Step {
                from: "x",
                to: "x@2",
                change: |event| drop(event.remove("old")),
            },
        ];
        let mut event = json!({"kind": "x", "old": 1}).as_object().unwrap().clone();
        upcast(&mut event, &steps);
        assert_eq!(Value::Object(event), json!({"kind": "x@3", "third": true}));
    }

    #[test]
    fn steps_that_lead_in_a_circle_end() {
        let step = |from, to| Step {
            from,
            to,
            change: |_| {},
        };
        let mut event = json!({"kind": "a"}).as_object().unwrap().clone();
        upcast(&mut event, &[step("a", "b"), step("b", "a")]);
        assert!(event.contains_key("kind"));
    }
}
