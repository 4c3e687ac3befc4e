//! What is written down about every action, as text from the start. Most of it has nothing in it
//! that is to be taken out; then a look is enough, and no tree of values is made.

use std::borrow::Cow;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use store::Json;

use super::names::{is_secret_field, is_secret_name};
use super::shorten::{DEEPEST, EXACT, LONGEST};
use super::{MAPS, Redactor, hide};
use crate::canonical::text;

/// A part that is larger is not written as it is without a closer look.
const SMALL: usize = 16 << 10;

/// Canonical JSON with the secrets taken out, and no longer than it may be. Only a redactor makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clean(String);

impl Clean {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// The text of one value, for more than one draft.
#[derive(Debug, Clone)]
pub(crate) struct Part<'a> {
    value: &'a Value,
    text: String,
    is_clean: bool,
}

/// An object on its way to be written down. Its fields are added in the order of their names.
pub(crate) struct Draft<'a> {
    redactor: &'a Redactor,
    text: String,
    /// What the text was made of. Where something is to be taken out, that is what it is taken out
    /// of: text that is read again may be read otherwise, or not at all.
    fields: Vec<(&'static str, Field<'a>)>,
    /// Whether nothing is to be taken out so far.
    is_clean: bool,
    /// Whether all of it is canonical then.
    is_canonical: bool,
}

enum Field<'a> {
    Text(&'a str),
    Number(u64),
    Value(&'a Value),
    Raw(&'a RawValue),
    Null,
}

impl Field<'_> {
    fn value(&self) -> Value {
        match self {
            Self::Text(text) => (*text).into(),
            Self::Number(number) => (*number).into(),
            Self::Value(value) => (*value).clone(),
            Self::Raw(json) => serde_json::from_str(json.get()).unwrap_or_default(),
            Self::Null => Value::Null,
        }
    }
}

impl Redactor {
    /// A new object.
    pub(crate) fn draft(&self) -> Draft<'_> {
        Draft {
            redactor: self,
            text: String::with_capacity(512),
            fields: Vec::with_capacity(10),
            is_clean: true,
            is_canonical: true,
        }
    }

    /// A value, to be used in drafts.
    pub(crate) fn part<'v>(&self, value: &'v Value) -> Part<'v> {
        let mut text = String::with_capacity(256);
        let is_clean = self.keeps(value);
        if is_clean {
            text::push(&mut text, value);
        }
        Part {
            value,
            text,
            is_clean,
        }
    }

    /// A value as an entry of the ledger has it: without secrets, and no longer than it may be.
    pub(crate) fn entry(&self, mut value: Value) -> Clean {
        if !self.keeps(&value) {
            self.clean(&mut value);
        }
        let mut text = String::with_capacity(512);
        text::push(&mut text, &value);
        Clean(text)
    }

    /// A value as an event has it: all of it but the secrets, and these.
    pub(crate) fn event(&self, mut value: Value, secrets: &[String]) -> Json {
        if !self.keeps(&value) {
            self.redact(&mut value);
        }
        hide(secrets, &mut value);
        value.into()
    }

    /// Whether a string is written as it is.
    fn keeps_str(&self, text: &str) -> bool {
        text.len() <= LONGEST && matches!(self.redact_str(text), Cow::Borrowed(_))
    }

    /// Whether [`Redactor::clean`] would leave a value as it is, and its text is the same in every
    /// way of writing it. Says no where that takes more than a look.
    fn keeps<'de>(&self, value: impl Deserializer<'de>) -> bool {
        let mut left = SMALL;
        let look = Look {
            redactor: self,
            is_secret: is_secret_field,
            // It may be a field of a draft.
            depth: 1,
            left: &mut left,
        };
        look.deserialize(value).is_ok()
    }
}

/// Goes through a value without making one, and fails where it does not keep it.
struct Look<'a> {
    redactor: &'a Redactor,
    /// Whether what is in a field of this name is one.
    is_secret: fn(&str) -> bool,
    depth: usize,
    /// How much there may still be.
    left: &'a mut usize,
}

impl Look<'_> {
    fn keep<E: de::Error>(self, size: usize, is_kept: bool) -> Result<(), E> {
        *self.left = self.left.saturating_sub(size);
        match is_kept && *self.left > 0 {
            true => Ok(()),
            false => Err(E::custom("")),
        }
    }

    fn below(&mut self) -> Look<'_> {
        Look {
            redactor: self.redactor,
            is_secret: is_secret_field,
            depth: self.depth + 1,
            left: self.left,
        }
    }
}

impl<'de> DeserializeSeed<'de> for Look<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Look<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("what is written as it is")
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        self.keep(5, true)
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<(), E> {
        self.keep(5, true)
    }

    fn visit_u64<E: de::Error>(self, whole: u64) -> Result<(), E> {
        let is_kept = whole <= EXACT && !self.redactor.numeric;
        self.keep(20, is_kept)
    }

    fn visit_i64<E: de::Error>(self, whole: i64) -> Result<(), E> {
        match u64::try_from(whole) {
            Ok(whole) => self.visit_u64(whole),
            Err(_) => self.keep(20, false),
        }
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<(), E> {
        self.keep(20, false)
    }

    fn visit_str<E: de::Error>(self, string: &str) -> Result<(), E> {
        // In a list, what comes after such a word would be one.
        let is_kept = !is_flag(string) && self.redactor.keeps_str(string);
        self.keep(string.len() + 3, is_kept)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        let fits = self.depth < DEEPEST;
        while fits && items.next_element_seed(self.below())?.is_some() {}
        self.keep(2, fits)
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<(), A::Error> {
        let fits = self.depth < DEEPEST;
        while fits && let Some(name) = fields.next_key::<Cow<'_, str>>()? {
            let is_secret = (self.is_secret)(&name);
            let is_kept = name.is_ascii() && !is_secret && self.redactor.keeps_str(&name);
            self.below().keep(name.len() + 4, is_kept)?;
            let mut field = self.below();
            if MAPS.contains(&&*name) {
                field.is_secret = is_secret_name;
            }
            fields.next_value_seed(field)?;
        }
        self.keep(2, fits)
    }
}

/// `--token`: what comes after it is one.
pub(super) fn is_flag(text: &str) -> bool {
    text.starts_with("--") && is_secret_field(text)
}

impl<'a> Draft<'a> {
    fn add(&mut self, name: &'static str, field: Field<'a>, is_clean: bool) {
        let in_order = self.fields.last().is_none_or(|(last, _)| *last < name);
        debug_assert!(in_order, "`{name}` is out of order");
        debug_assert!(!is_secret_field(name) && !MAPS.contains(&name), "{name}");
        self.is_clean &= is_clean;
        self.fields.push((name, field));
        self.text.push(if self.text.is_empty() { '{' } else { ',' });
        text::push_word(&mut self.text, name);
        self.text.push(':');
    }

    /// A word of Ward's own, or a digest: nothing that a secret could be in.
    pub(crate) fn word(mut self, name: &'static str, word: &'a str) -> Self {
        self.add(name, Field::Text(word), true);
        text::push_word(&mut self.text, word);
        self
    }

    pub(crate) fn string(mut self, name: &'static str, string: &'a str) -> Self {
        let is_clean = self.redactor.keeps_str(string);
        self.add(name, Field::Text(string), is_clean);
        text::push_string(&mut self.text, string);
        self
    }

    /// `null` where there is none.
    pub(crate) fn maybe(mut self, name: &'static str, string: Option<&'a str>) -> Self {
        if let Some(string) = string {
            return self.string(name, string);
        }
        self.add(name, Field::Null, true);
        self.text.push_str("null");
        self
    }

    pub(crate) fn part(mut self, name: &'static str, part: &Part<'a>) -> Self {
        self.add(name, Field::Value(part.value), part.is_clean);
        self.text.push_str(&part.text);
        self
    }

    /// What somebody else wrote, in one line.
    pub(crate) fn raw(mut self, name: &'static str, json: &'a RawValue) -> Self {
        let mut text = serde_json::Deserializer::from_str(json.get());
        let is_one_line = memchr::memchr2(b'\n', b'\r', json.get().as_bytes()).is_none();
        let is_clean = is_one_line && self.redactor.keeps(&mut text);
        self.add(name, Field::Raw(json), is_clean);
        self.is_canonical = false;
        self.text.push_str(json.get());
        self
    }

    pub(crate) fn number(mut self, name: &'static str, number: u64) -> Self {
        let is_clean = self.redactor.keeps(Value::from(number));
        self.add(name, Field::Number(number), is_clean);
        text::push_whole(&mut self.text, number);
        self
    }

    fn close(mut self) -> Result<String, Value> {
        if self.is_clean {
            self.text.push('}');
            return Ok(self.text);
        }
        let fields = self.fields.iter();
        Err(fields
            .map(|(name, field)| ((*name).to_owned(), field.value()))
            .collect())
    }

    /// As an entry of the ledger has it: without secrets, also these, and no longer than it may be.
    pub(crate) fn entry(mut self, secrets: &[String]) -> Clean {
        let redactor = self.redactor;
        // Many small parts can be much.
        let is_short = self.text.len() <= 2 * SMALL;
        self.is_clean &= self.is_canonical && is_short && secrets.is_empty();
        match self.close() {
            Ok(text) => Clean(text),
            Err(mut value) => {
                // Before it is cut: of a secret that is cut a part would stay.
                hide(secrets, &mut value);
                redactor.entry(value)
            }
        }
    }

    /// As an event has it: all of it but the secrets, and these.
    pub(crate) fn event(mut self, secrets: &[String]) -> Json {
        let redactor = self.redactor;
        self.is_clean &= secrets.is_empty();
        match self.close() {
            Ok(text) => Json::from_text(text),
            Err(value) => redactor.event(value, secrets),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, json};

    use super::*;

    fn redactor(secrets: &[&str]) -> Redactor {
        Redactor::new([], secrets.iter().copied()).unwrap()
    }

    /// The same by way of a tree, as it is defined.
    fn by_tree(redactor: &Redactor, fields: &Map<String, Value>) -> (String, Json) {
        let mut entry = Value::Object(fields.clone());
        hide(&["hidden-one".to_owned()], &mut entry);
        redactor.clean(&mut entry);
        let mut text = String::new();
        text::push(&mut text, &entry);
        let mut event = Value::Object(fields.clone());
        redactor.redact(&mut event);
        hide(&["hidden-one".to_owned()], &mut event);
        (text, event.into())
    }

    fn values() -> impl Strategy<Value = Value> {
        let names = prop_oneof![
            Just("env".to_owned()),
            Just("API_KEY".to_owned()),
            Just("token".to_owned()),
            Just("the-secret-value".to_owned()),
            "[a-zé]{1,3}",
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            (0_u64..100).prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            Just(json!("--token")),
            Just(json!("PASSWORD=hunter22")),
            Just(json!("say the-secret-value and hidden-one")),
            Just(json!("ghp_0123456789abcdefghijklmnopqrstuvwxyz")),
            Just(json!("x".repeat(LONGEST + 1))),
            any::<String>().prop_map(Value::from),
            "[a-z \n\"]{0,9}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map(names.clone(), inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_draft_says_what_the_tree_of_its_values_would(
            value in values(), string in "[a-z =:]{0,12}", number in any::<u64>(), numeric in any::<bool>(),
        ) {
            let mut secrets = vec!["the-secret-value"];
            secrets.extend(numeric.then_some("12345678"));
            let redactor = redactor(&secrets);
            let draft = || {
                let part = redactor.part(&value);
                redactor.draft().string("a", &string).number("b", number).part("c", &part).part("d", &part).word("e", "done").maybe("f", None)
            };
            let fields = json!({
                "a": string, "b": number, "c": value, "d": value, "e": "done", "f": null,
            });
            let fields = fields.as_object().unwrap();
            let (entry, event) = by_tree(&redactor, fields);
            let hidden = ["hidden-one".to_owned()];
            prop_assert_eq!(draft().entry(&hidden), Clean(entry));
            let read = |json: &Json| serde_json::from_str::<Value>(json.as_str()).unwrap();
            prop_assert_eq!(read(&draft().event(&hidden)), read(&event));
            let raw = RawValue::from_string(Value::from(fields.clone()).to_string()).unwrap();
            let (entry, event) = by_tree(&redactor, json!({ "a": fields }).as_object().unwrap());
            prop_assert_eq!(redactor.draft().raw("a", &raw).entry(&hidden), Clean(entry));
            prop_assert_eq!(read(&redactor.draft().raw("a", &raw).event(&hidden)), read(&event));
        }
    }

    #[test]
    fn a_name_that_json_cannot_be_read_again_with_hides_no_secret() {
        let value =
            json!({"$serde_json::private::RawValue": "zzz", "env": {"DB_PASS": "correcthorse"}});
        let redactor = redactor(&[]);
        let draft = || redactor.draft().part("a", &redactor.part(&value));
        for text in [draft().entry(&[]).as_str(), draft().event(&[]).as_str()] {
            assert!(text.contains(r#""DB_PASS":"[redacted]""#), "{text}");
            assert!(!text.contains("correcthorse"), "{text}");
        }
    }

    #[test]
    fn what_somebody_else_wrote_in_several_lines_is_written_in_one() {
        let raw = RawValue::from_string("{\n\"a\": 1}".to_owned()).unwrap();
        let event = redactor(&[]).draft().raw("a", &raw).event(&[]);
        assert_eq!(event.as_str(), r#"{"a":{"a":1}}"#);
    }

    #[test]
    fn what_has_no_secret_is_written_as_it_is_and_what_has_is_not() {
        let redactor = redactor(&["the-secret-value"]);
        let event = |value: Value| {
            redactor
                .draft()
                .part("a", &redactor.part(&value))
                .event(&[])
        };
        let plain = event(json!({"path": "src/lib.rs", "offset": 3, "all": [true, null]}));
        assert_eq!(
            plain.as_str(),
            r#"{"a":{"all":[true,null],"offset":3,"path":"src/lib.rs"}}"#
        );
        let secret = event(json!({"path": "x the-secret-value", "env": {"API_KEY": "abc"}}));
        assert_eq!(
            secret.as_str(),
            r#"{"a":{"env":{"API_KEY":"[redacted]"},"path":"x [redacted]"}}"#
        );
    }
}
