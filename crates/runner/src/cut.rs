//! Results as the model is told them: within a budget, with head and tail, and still JSON.

use serde_json::Value;

/// How many bytes of one result the model is told.
pub(crate) const BUDGET: usize = 32 * 1024;
/// No text is cut shorter than this for the sake of others.
const LEAST: usize = 1024;
/// Lists are cut to so many at most while the budget is not kept.
const ITEMS: usize = 200;

/// What the model is told of a result, and whether something was left out.
pub(crate) fn cut(text: &str, rest: &str) -> Option<String> {
    if text.len() <= BUDGET {
        return None;
    }
    let Ok(mut value) = serde_json::from_str::<Value>(text) else {
        return Some(middle(text, BUDGET, rest));
    };
    // Long texts first: they are what makes a result long in nearly all cases.
    let mut most = BUDGET;
    loop {
        most = (most / 2).max(LEAST);
        shorten(&mut value, most, rest);
        let told = value.to_string();
        if told.len() <= BUDGET {
            return Some(told);
        }
        if most == LEAST {
            break;
        }
    }
    thin(&mut value, rest);
    let told = value.to_string();
    Some(match told.len() <= BUDGET {
        true => told,
        false => middle(&told, BUDGET, rest),
    })
}

fn shorten(value: &mut Value, most: usize, rest: &str) {
    match value {
        Value::String(text) if text.len() > most => *text = middle(text, most, rest),
        Value::Array(items) => items.iter_mut().for_each(|item| shorten(item, most, rest)),
        Value::Object(fields) => fields
            .iter_mut()
            .for_each(|(_, field)| shorten(field, most, rest)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn thin(value: &mut Value, rest: &str) {
    match value {
        Value::Array(items) => {
            let more = items.len().saturating_sub(ITEMS);
            if more > 0 {
                items.truncate(ITEMS);
                items.push(Value::String(format!("… {more} more; {}", way(rest))));
            }
            items.iter_mut().for_each(|item| thin(item, rest));
        }
        Value::Object(fields) => fields.iter_mut().for_each(|(_, field)| thin(field, rest)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Head and tail of a text, and between them how much is missing.
fn middle(text: &str, most: usize, rest: &str) -> String {
    let head = text.floor_char_boundary(most * 2 / 3);
    let tail = text.ceil_char_boundary(text.len() - most / 4);
    // Whole lines, where there are any near.
    let head = match text[..head].rfind('\n') {
        Some(line) if line > head / 2 => line + 1,
        _ => head,
    };
    let tail = match text[tail..].find('\n') {
        Some(line) if line < most / 8 => tail + line + 1,
        _ => tail,
    };
    format!(
        "{}\n[… {} bytes left out here; {} …]\n{}",
        &text[..head],
        tail - head,
        way(rest),
        &text[tail..]
    )
}

fn way(rest: &str) -> String {
    format!("read_output with name \"{rest}\" has all of it")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_fits_is_not_cut() {
        assert_eq!(cut("short", "o1"), None);
    }

    #[test]
    fn a_long_output_keeps_its_head_its_tail_and_its_exit_code() {
        let lines: Vec<String> = (0..20_000).map(|number| format!("line {number}")).collect();
        let result = json!({"exit_code": 3, "stdout": lines.join("\n"), "stderr": ""});
        let told = cut(&result.to_string(), "o7").unwrap();
        assert!(told.len() <= BUDGET, "{}", told.len());
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!(told["exit_code"], 3);
        let text = told["stdout"].as_str().unwrap();
        assert!(text.starts_with("line 0\nline 1\n"), "{text:.40}");
        assert!(text.ends_with("\nline 19999"));
        assert!(text.contains("read_output with name \"o7\""));
    }

    #[test]
    fn a_long_list_says_how_many_more_there_are() {
        let entries: Vec<Value> = (0..5_000)
            .map(|n| json!({"path": format!("file-{n}")}))
            .collect();
        let told = cut(&json!({ "entries": entries }).to_string(), "o1").unwrap();
        let told: Value = serde_json::from_str(&told).unwrap();
        let last = told["entries"].as_array().unwrap().last().unwrap();
        assert!(last.as_str().unwrap().starts_with("… 4800 more;"), "{last}");
    }

    proptest! {
        #[test]
        fn any_text_is_cut_within_twice_the_budget(text in "\\PC{0,200}", times in 1_usize..4_000) {
            let long = text.repeat(times);
            if let Some(told) = cut(&long, "o1") {
                prop_assert!(told.len() <= 2 * BUDGET);
            } else {
                prop_assert!(long.len() <= BUDGET);
            }
        }
    }
}
