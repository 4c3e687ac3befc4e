//! Numbers that no [`Value`] holds go through files without a loss, and nothing else goes with them.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up has failed"
)]

use notebook::Unkept;
use notebook::ipynb::{BadFile, parse, to_lines, to_text};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const MARK: &str = "\u{2063}\u{2062}";

/// Numbers that are held as strings.
const HELD: [&str; 16] = [
    "NaN",
    "Infinity",
    "-Infinity",
    "123456789012345678901234567890",
    "-123456789012345678901234567890",
    "18446744073709551616",
    "-9223372036854775809",
    "-0",
    "1e400",
    "-1E+400",
    "1.5e309",
    "1.7976931348623159e308",
    "9e99999999999999999999",
    "1e308000000",
    "0.1e310",
    "12345678901234567890e300",
];

/// Numbers that are numbers, and written as here.
const PLAIN: [&str; 12] = [
    "0",
    "7",
    "-7",
    "18446744073709551615",
    "9223372036854775808",
    "-9223372036854775808",
    "0.5",
    "-0.0",
    "2.5e-8",
    "1.7976931348623157e+308",
    "0.1",
    "1e+300",
];

/// What might be taken for one of them, and is none.
const NEITHER: [&str; 22] = [
    "",
    "nan",
    "-NaN",
    "+Infinity",
    "Inf",
    "NaN ",
    " NaN",
    "NaN,1",
    "NaN}",
    "1",
    "1.5",
    "true",
    "null",
    "01234567890123456789012",
    "1e",
    "1e400.5",
    "1.e400",
    ".1e400",
    "--1e400",
    "1e400,\"a\":1",
    "0x123456789012345678901",
    "١٢٣٤٥٦٧٨٩٠١٢٣٤٥٦٧٨٩٠١٢٣",
];

fn file(number: &str) -> String {
    format!("{{\"a\":[{number}],\"b\":{number}}}")
}

#[test]
fn a_number_that_would_lose_something_is_held_as_it_is_written_and_goes_out_bare() {
    for number in HELD {
        let text = file(number);
        let held = parse(&text).unwrap();
        let string = format!("{MARK}{number}");
        assert_eq!(
            Value::Object(held.clone()),
            json!({"a": [string], "b": string})
        );
        assert_eq!(to_text(&held), text);
    }
    let long = format!("{}.5", "9".repeat(400));
    assert_eq!(to_text(&parse(&file(&long)).unwrap()), file(&long));
}

#[test]
fn all_other_numbers_are_numbers() {
    for number in PLAIN {
        let text = file(number);
        let held = parse(&text).unwrap();
        assert!(held["b"].is_number(), "{number}");
        assert_eq!(to_text(&held), text);
    }
    let long = format!("{}.5", "9".repeat(304));
    assert!(parse(&file(&long)).unwrap()["b"].is_f64());
    assert_eq!(parse(&file("0e99999999999")).unwrap()["b"], json!(0.0));
    assert_eq!(parse(&file("1e-400")).unwrap()["b"], json!(0.0));
}

#[test]
fn a_string_that_looks_like_a_held_number_is_a_string_whichever_way_it_is_written() {
    for word in HELD
        .iter()
        .chain(&PLAIN)
        .chain(&NEITHER)
        .chain(&["\"", "\"\u{2063}\u{2062}1"])
    {
        let string = format!("{MARK}{word}");
        let written = json!({"a": [string, {"b": string}], string.as_str(): 1}).to_string();
        for (first, second) in [
            ("\u{2063}", "\u{2062}"),
            ("\\u2063", "\\u2062"),
            ("\u{2063}", "\\u2062"),
            ("\\u2063", "\u{2062}"),
        ] {
            let text = written.replace(MARK, &format!("{first}{second}"));
            assert_eq!(to_text(&parse(&text).unwrap()), written, "{text}");
        }
    }
}

#[test]
fn what_somebody_wrote_behind_the_mark_is_a_string_unless_it_is_a_number_to_the_letter() {
    for word in PLAIN.iter().chain(&NEITHER) {
        let file = json!({"a": format!("{MARK}{word}")});
        let text = to_text(file.as_object().unwrap());
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), file);
    }
    let words = [
        "NaN, \"b\": 1",
        "NaN\"",
        "1e400\n",
        "\",\"b\":\"",
        "\\\"",
        "]",
        "NaN/**/",
    ];
    for word in words {
        let file = json!({"a": format!("{MARK}{word}"), "b": format!("{MARK}\"{word}")});
        let text = to_text(file.as_object().unwrap());
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), file);
    }
}

#[test]
fn names_of_fields_are_left_alone_and_numbers_are_none() {
    let text = format!("{{\"{MARK}NaN\":1}}");
    assert_eq!(to_text(&parse(&text).unwrap()), text);
    for name in ["NaN", "123456789012345678901234567890", "-Infinity"] {
        for text in [format!("{{{name}:1}}"), format!("{{{name} \n :1}}")] {
            assert!(
                matches!(parse(&text), Err(BadFile::NoJson { .. })),
                "{text}"
            );
        }
    }
}

#[test]
fn what_stands_in_strings_is_no_number() {
    let text = r#"{"NaN":"NaN, Infinity","a":"\" 1e400 \\","b":["\\",NaN,"\\\""]}"#;
    assert_eq!(to_text(&parse(text).unwrap()), text);
}

#[test]
fn text_that_is_no_json_object_says_what_it_is_and_where() {
    let told = |text: &str| parse(text).unwrap_err().to_string();
    let at = |text: &str| match parse(text) {
        Err(BadFile::NoJson { line, column, .. }) => (line, column),
        other => panic!("{text}: {other:?}"),
    };
    assert_eq!(
        told("{\"a\": 1,\n \"é\": None}"),
        "The file is no JSON: line 2, column 7: expected value."
    );
    for text in ["[]", "NaN", "1", "\"x\"", "null", " 1e400 "] {
        assert_eq!(parse(text), Err(BadFile::NoObject), "{text}");
    }
    // The place is the one in the text, whatever was held before it.
    assert_eq!(
        at("{\"a\": [NaN, NaN, 1e400],\n \"b\": [NaN, NaN x]}"),
        (2, 17)
    );
    assert_eq!(at("{\"a\": NaN NaN}"), (1, 11));
    assert_eq!(at("{\"a\": [NaN, \"\u{2063}\u{2062}\\x\"]}"), (1, 17));
    assert_eq!(at("{\"a\": -NaN}"), (1, 8));
    assert_eq!(at("{\"a\": [NaN"), (1, 10));
    for text in [
        "",
        "{",
        "{\"a\": \"",
        "{\"a\": \"\\",
        "{\"a\": 01}",
        "{\"a\": 1e}",
        "{\"a\": NaNa}",
        "{\"a\": NaN.}",
        "{\"a\": +Infinity}",
        "{\"a\": 1e400e}",
        "{} x",
        "{}NaN",
        "\u{feff}{}",
        "{\"a\"NaN}",
        "{NaN}",
        "{\"a\": -}",
        "{\"a\": NaNNaN}",
        "{\"a\": 1NaN}",
    ] {
        at(text);
    }
}

#[test]
fn text_that_is_nested_too_deep_is_refused_with_its_line() {
    let nested = |open: &str, close: &str, levels: usize| {
        format!(
            "{{\"a\":\n{}1{}}}",
            open.repeat(levels),
            close.repeat(levels)
        )
    };
    assert!(parse(&nested("[", "]", 126)).is_ok());
    for levels in [127, 100_000] {
        assert_eq!(
            parse(&nested("[", "]", levels)),
            Err(BadFile::Unkept {
                place: "line 2".to_owned(),
                what: Unkept::Deep,
            })
        );
        assert!(parse(&nested("{\"a\":", "}", levels)).is_err());
    }
}

#[test]
fn line_by_line_a_file_is_indented_as_jupyter_does() {
    let text = r#"{"a":[1,NaN,[],{}],"b":{"c":[{}]},"d":"x\n"}"#;
    let lines = "{\n \"a\": [\n  1,\n  NaN,\n  [],\n  {}\n ],\n \"b\": {\n  \"c\": [\n   {}\n  ]\n },\n \"d\": \"x\\n\"\n}\n";
    assert_eq!(to_lines(&parse(text).unwrap()), lines);
    assert_eq!(to_text(&parse(lines).unwrap()), text);
    assert_eq!(to_lines(&Map::new()), "{}\n");
}

/// JSON as Python has it.
#[derive(Debug, Clone)]
enum Json {
    /// A number or a word, as it is written.
    Word(String),
    Text(String),
    List(Vec<Json>),
    Fields(Vec<(String, Json)>),
}

impl Json {
    /// As text: in one way, or with blanks and escapes as they come.
    fn write(&self, loose: &mut dyn FnMut() -> u8, out: &mut String) {
        let string = |text: &str, loose: &mut dyn FnMut() -> u8, out: &mut String| {
            out.push('"');
            let plain = serde_json::to_string(text).unwrap();
            for character in plain[1..plain.len() - 1].chars() {
                match loose() % 3 {
                    1 if !character.is_ascii() => {
                        for unit in character.encode_utf16(&mut [0; 2]) {
                            out.push_str(&format!("\\u{unit:04X}"));
                        }
                    }
                    _ => out.push(character),
                }
            }
            out.push('"');
        };
        let blank = |loose: &mut dyn FnMut() -> u8, out: &mut String| {
            out.push_str(["", "", " ", "\n\t", "\r\n"][usize::from(loose() % 5)]);
        };
        match self {
            Self::Word(word) => out.push_str(word),
            Self::Text(text) => string(text, loose, out),
            Self::List(values) => {
                out.push('[');
                for (number, value) in values.iter().enumerate() {
                    out.push_str(if number > 0 { "," } else { "" });
                    blank(loose, out);
                    value.write(loose, out);
                    blank(loose, out);
                }
                out.push(']');
            }
            Self::Fields(fields) => {
                out.push('{');
                for (number, (name, value)) in fields.iter().enumerate() {
                    out.push_str(if number > 0 { "," } else { "" });
                    blank(loose, out);
                    string(name, loose, out);
                    blank(loose, out);
                    out.push(':');
                    blank(loose, out);
                    value.write(loose, out);
                    blank(loose, out);
                }
                out.push('}');
            }
        }
    }
}

fn words() -> impl Strategy<Value = String> {
    let known = HELD.iter().chain(&PLAIN).chain(&["true", "false", "null"]);
    let known: Vec<&str> = known.copied().collect();
    prop_oneof![
        prop::sample::select(known).prop_map(ToOwned::to_owned),
        "-?[1-9][0-9]{0,30}",
        "[1-9]e3[1-9][0-9]{1,4}",
    ]
}

fn texts() -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        Just(MARK.to_owned()),
        Just("\"".to_owned()),
        Just("\\".to_owned()),
        Just("\u{2063}".to_owned()),
        words(),
        any::<String>(),
    ];
    prop::collection::vec(pieces, 0..4).prop_map(|pieces| pieces.concat())
}

fn fields() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![words().prop_map(Json::Word), texts().prop_map(Json::Text)];
    let fields = |inner: BoxedStrategy<Json>| {
        // In the order in which they are written.
        prop::collection::btree_map(texts(), inner, 0..5)
            .prop_map(|fields| Json::Fields(fields.into_iter().collect()))
    };
    let value = leaf.prop_recursive(4, 32, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Json::List),
            fields(inner),
        ]
    });
    fields(value.boxed())
}

fn values() -> impl Strategy<Value = Map<String, Value>> {
    let leaf = prop_oneof![
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        texts().prop_map(Value::from),
        texts().prop_map(|text| Value::from(format!("{MARK}{text}"))),
    ];
    let value = leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(texts(), inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    });
    prop::collection::btree_map(texts(), value, 0..4)
        .prop_map(|fields| fields.into_iter().collect())
}

/// Whether two files are one, where strings behind the mark are as they like.
fn is_like(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::String(a), Value::String(b)) => {
            a == b || a.starts_with(MARK) && b.starts_with(MARK)
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_like(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(name, a)| b.get(name).is_some_and(|b| is_like(a, b)))
        }
        (a, b) => a == b,
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_text_goes_out_as_it_came(file in fields(), ways in prop::collection::vec(any::<u8>(), 1..50)) {
        let (mut strict, mut loose) = (String::new(), String::new());
        file.write(&mut || 0, &mut strict);
        let mut ways = ways.iter().copied().cycle();
        file.write(&mut || ways.next().unwrap(), &mut loose);
        let read = parse(&loose).unwrap();
        prop_assert_eq!(to_text(&read), strict.as_str());
        prop_assert_eq!(parse(&to_lines(&read)).unwrap(), read);
    }

    #[test]
    fn whatever_is_in_a_file_its_text_has_the_same_shape(file in values()) {
        let text = to_text(&file);
        let read = parse(&text).unwrap();
        prop_assert!(is_like(&Value::Object(file), &Value::Object(read.clone())), "{}", text);
        prop_assert_eq!(to_text(&read), text);
    }

    #[test]
    fn no_text_is_too_much(text in any::<String>(), json in "[\\[\\]{}:,\"\\\\ naNIfity0-9eE+.\u{2062}\u{2063}u-]{0,40}") {
        for text in [text, json] {
            if let Ok(file) = parse(&text) {
                prop_assert_eq!(parse(&to_text(&file)), Ok(file));
            }
        }
    }
}
