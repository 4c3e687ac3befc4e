//! Rich outputs: what a bundle of media types may be, and what kind of thing a media type is.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use notebook::ipynb::{self, BadFile};
use notebook::{Bundle, Media, Unkept, check_field, is_media_type};
use serde_json::Value;
use serde_json::value::RawValue;

/// The most media types of one thing.
const MOST: usize = 32;

/// Base64 as kernels write it: with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Why a bundle cannot be shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadBundle {
    /// There is nothing in it.
    #[error("There is nothing to show: a bundle has at least one media type.")]
    Empty,
    /// There is too much in it.
    #[error("A bundle has at most {MOST} media types.")]
    TooMany,
    /// A media type cannot be one.
    #[error("`{0}` is no media type, such as text/plain.")]
    Type(String),
    /// The content is not what its type says.
    #[error("What is shown as {media_type} must be {wanted}.")]
    Content {
        /// The type.
        media_type: String,
        /// What its content has to be.
        wanted: &'static str,
    },
    /// It could not be read again.
    #[error("What is shown, or said about it, holds {0}. Show it as text.")]
    Unkept(Unkept),
}

impl BadBundle {
    /// The stable word.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        "invalid_params"
    }
}

/// Whether it is text that people read, such as `text/plain` or `image/svg+xml`.
#[must_use]
pub fn is_text(media_type: &str) -> bool {
    let essence = essence(media_type);
    essence.starts_with("text/")
        || essence.ends_with("+xml")
        || matches!(
            essence,
            "application/javascript" | "application/xml" | "application/x-tex"
        )
}

/// Whether it is HTML, which can run scripts: it is never shown in a page's own origin.
#[must_use]
pub fn is_html(media_type: &str) -> bool {
    matches!(essence(media_type), "text/html" | "application/xhtml+xml")
}

/// Whether it is an image.
#[must_use]
pub fn is_image(media_type: &str) -> bool {
    essence(media_type).starts_with("image/")
}

/// Whether it is JSON, also of a kind of its own, such as `application/vnd.vegalite.v5+json`.
#[must_use]
pub fn is_json(media_type: &str) -> bool {
    let essence = essence(media_type);
    essence == "application/json" || essence.ends_with("+json")
}

/// Whether it is neither text nor JSON, so that it is inline as base64.
#[must_use]
pub fn is_binary(media_type: &str) -> bool {
    let essence = essence(media_type);
    let family = essence.split('/').next().unwrap_or("");
    match family {
        "image" | "audio" | "video" | "font" => !is_text(media_type),
        _ => matches!(
            essence,
            "application/pdf" | "application/octet-stream" | "application/zip"
        ),
    }
}

/// The type without its parameters.
fn essence(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or("").trim()
}

/// Checks that a bundle can be shown: its types are types, and its contents are what they say.
pub fn validate_media_bundle(bundle: &Bundle) -> Result<(), BadBundle> {
    if bundle.data.is_empty() {
        return Err(BadBundle::Empty);
    }
    if bundle.data.len() > MOST {
        return Err(BadBundle::TooMany);
    }
    for (media_type, media) in &bundle.data {
        check(media_type, media)?;
    }
    bundle.check_json().map_err(BadBundle::Unkept)
}

fn check(media_type: &str, media: &Media) -> Result<(), BadBundle> {
    if !is_media_type(media_type) {
        let shown = media_type.escape_debug().take(80).collect();
        return Err(BadBundle::Type(shown));
    }
    match wrong(media_type, media) {
        Some(wanted) => Err(BadBundle::Content {
            media_type: media_type.to_owned(),
            wanted,
        }),
        None => Ok(()),
    }
}

/// What the content should be, where it is not.
fn wrong(media_type: &str, media: &Media) -> Option<&'static str> {
    let value = match media {
        Media::Inline(value) => value,
        Media::Artifact(artifact) => {
            let good = notebook::ArtifactRef::is_digest(&artifact.digest);
            return (!good).then_some("an artifact with a sha256 digest");
        }
    };
    if is_json(media_type) {
        return None;
    }
    match value {
        Value::String(text) if is_binary(media_type) => {
            decode(text).is_none().then_some("base64 text")
        }
        Value::String(_) => None,
        _ if is_binary(media_type) => Some("base64 text"),
        _ if is_text(media_type) => Some("text"),
        // What nobody knows may be anything.
        _ => None,
    }
}

/// The bytes of base64 text; line breaks in it are passed over, as kernels write them.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let plain: String = text
        .chars()
        .filter(|letter| !letter.is_ascii_whitespace())
        .collect();
    BASE64.decode(plain).ok()
}

/// How many bytes a bundle holds inline.
#[must_use]
pub fn size(bundle: &Bundle) -> usize {
    let inline = bundle.data.values().map(|media| match media {
        Media::Inline(value) => length(value),
        Media::Artifact(_) => 0,
    });
    inline.sum::<usize>() + bundle.metadata.values().map(length).sum::<usize>()
}

pub(crate) fn length(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(length).sum::<usize>() + 2,
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(name, value)| name.len() + length(value));
            fields.sum::<usize>() + 2
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
    }
}

/// What a kernel shows, part by part, as it is written: one that cannot be read takes no other along.
pub type Parts = BTreeMap<String, Box<RawValue>>;

/// A bundle as a kernel sent it, and what of it cannot be shown and is left out. Text in pieces is put
/// together. Where nothing is left, that is said in its place.
#[must_use]
pub fn bundle_from_jupyter(data: &Parts, metadata: &Parts) -> (Bundle, Vec<BadBundle>) {
    let mut bundle = Bundle::default();
    let mut left_out = Vec::new();
    for (media_type, part) in data {
        match media(media_type, part) {
            Ok(_) if bundle.data.len() == MOST => {
                left_out.push(BadBundle::TooMany);
                break;
            }
            Ok(media) => drop(bundle.data.insert(media_type.clone(), media)),
            Err(bad) => left_out.push(bad),
        }
    }
    for (name, part) in metadata {
        match read(name, part) {
            Ok(value) => drop(bundle.metadata.insert(name.clone(), value)),
            Err(unkept) => left_out.push(BadBundle::Unkept(unkept)),
        }
    }
    left_out.dedup();
    if bundle.data.is_empty() {
        bundle = Bundle::text("The kernel showed something that cannot be shown.");
    }
    (bundle, left_out)
}

fn media(media_type: &str, part: &RawValue) -> Result<Media, BadBundle> {
    let value = read(media_type, part).map_err(BadBundle::Unkept)?;
    let text = match is_json(media_type) {
        true => None,
        false => ipynb::joined(&value),
    };
    let media = Media::Inline(text.map_or(value, Value::String));
    check(media_type, &media)?;
    Ok(media)
}

/// What can be read again under a name. Numbers have all their digits, as in files.
fn read(name: &str, part: &RawValue) -> Result<Value, Unkept> {
    let value = ipynb::parse_value(part.get()).map_err(|bad| match bad {
        BadFile::Unkept { what, .. } => what,
        // It was read before, as what it is made of: only a name can be in the way.
        _ => Unkept::Name,
    })?;
    check_field(name, &value).map(|()| value)
}

#[cfg(test)]
mod tests {
    use notebook::MAX_DEPTH;
    use serde_json::{Map, json};

    use super::*;

    fn parts(data: Value) -> Parts {
        serde_json::from_str(&data.to_string()).unwrap()
    }

    fn bundle(data: Value) -> Bundle {
        let data: Map<String, Value> = serde_json::from_value(data).unwrap();
        let inline = data
            .into_iter()
            .map(|(name, value)| (name, Media::Inline(value)));
        Bundle {
            data: inline.collect(),
            metadata: Map::new(),
        }
    }

    #[test]
    fn a_bundle_is_what_its_types_say() {
        let good = [
            json!({"text/plain": "a"}),
            json!({"text/html": "<b>a</b>", "text/plain": "a"}),
            json!({"image/png": "iVBORw0KGgo=\n"}),
            json!({"image/svg+xml": "<svg/>"}),
            json!({"application/json": {"a": [1]}}),
            json!({"application/vnd.vegalite.v5+json": {"mark": "bar"}}),
            json!({"text/plain; charset=utf-8": "a"}),
        ];
        for data in good {
            assert_eq!(
                validate_media_bundle(&bundle(data.clone())),
                Ok(()),
                "{data}"
            );
        }
        let bad = [
            json!({}),
            json!({"text": "a"}),
            json!({"text/": "a"}),
            json!({"text/pl ain": "a"}),
            json!({"text/plain\n": "a"}),
            json!({"text/html": {"a": 1}}),
            json!({"image/png": "not base64!"}),
            json!({"image/png": 7}),
        ];
        for data in bad {
            assert!(
                validate_media_bundle(&bundle(data.clone())).is_err(),
                "{data}"
            );
        }
    }

    #[test]
    fn what_is_nested_too_deep_to_be_kept_is_refused_and_left_out_of_what_a_kernel_shows() {
        let nested = |levels| (0..levels).fold(json!(1), |inner, _| json!([inner]));
        let json = |levels| json!({"application/json": nested(levels)});
        assert_eq!(validate_media_bundle(&bundle(json(MAX_DEPTH))), Ok(()));
        let deep = bundle(json(MAX_DEPTH + 1));
        assert_eq!(
            validate_media_bundle(&deep),
            Err(BadBundle::Unkept(Unkept::Deep))
        );
        let about = Bundle {
            metadata: json(MAX_DEPTH + 1).as_object().cloned().unwrap(),
            ..Bundle::text("a")
        };
        assert_eq!(
            validate_media_bundle(&about),
            Err(BadBundle::Unkept(Unkept::Deep))
        );

        // The second is too deep to be read at all.
        for levels in [MAX_DEPTH + 1, 1000] {
            let text = format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
            let deep = RawValue::from_string(text).unwrap();
            let mut data = Parts::from([("application/json".to_owned(), deep)]);
            let nothing = Bundle::text("The kernel showed something that cannot be shown.");
            assert_eq!(
                bundle_from_jupyter(&data, &Parts::new()),
                (nothing, vec![BadBundle::Unkept(Unkept::Deep)])
            );
            data.extend(parts(json!({"text/plain": "a"})));
            let kept = Bundle {
                metadata: json!({"text/plain": "a"}).as_object().cloned().unwrap(),
                ..Bundle::text("a")
            };
            assert_eq!(
                bundle_from_jupyter(&data, &data),
                (kept, vec![BadBundle::Unkept(Unkept::Deep)])
            );
        }
    }

    #[test]
    fn a_name_that_could_not_be_read_again_is_left_out_of_what_a_kernel_shows() {
        let hidden = "$serde_json::private::RawValue";
        let part = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        let data = parts(json!({"text/plain": "a"}));
        let about = Parts::from([
            ("a".to_owned(), part(&format!("[{{\"{hidden}\": 1}}]"))),
            ("b".to_owned(), part("2")),
            (hidden.to_owned(), part("3")),
        ]);
        let kept = Bundle {
            metadata: json!({"b": 2}).as_object().cloned().unwrap(),
            ..Bundle::text("a")
        };
        let left_out = vec![BadBundle::Unkept(Unkept::Name)];
        assert_eq!(bundle_from_jupyter(&data, &about), (kept, left_out));
    }

    #[test]
    fn no_number_of_what_a_kernel_shows_loses_digits() {
        let written = "{\"n\":123456789012345678901234567890,\"t\":\"\u{2063}\u{2062}1\"}";
        let part = RawValue::from_string(written.to_owned()).unwrap();
        let data = Parts::from([("application/json".to_owned(), part)]);
        let (bundle, left_out) = bundle_from_jupyter(&data, &data);
        assert_eq!(left_out, []);
        let Some(Media::Inline(value)) = bundle.data.get("application/json") else {
            panic!("{bundle:?}");
        };
        assert_eq!(ipynb::value_to_text(value), written);
        assert_eq!(bundle.metadata.get("application/json"), Some(value));
        // What is text is text.
        let text = "\u{2063}\u{2062}1e400";
        let (bundle, _) = bundle_from_jupyter(&parts(json!({"text/plain": text})), &Parts::new());
        assert_eq!(bundle, Bundle::text(text));
    }

    #[test]
    fn the_guards_tell_the_kinds_apart() {
        assert!(is_text("text/csv") && is_text("image/svg+xml") && !is_text("image/png"));
        assert!(is_html("text/html; charset=utf-8") && !is_html("text/plain"));
        assert!(is_image("image/svg+xml") && !is_binary("image/svg+xml"));
        assert!(is_binary("image/png") && is_binary("application/pdf"));
        assert!(is_json("application/geo+json") && !is_json("text/json-like"));
    }

    #[test]
    fn what_a_kernel_sends_is_put_together_and_the_bad_of_it_left_out_and_named() {
        let wanted = |media_type: &str, wanted| BadBundle::Content {
            media_type: media_type.to_owned(),
            wanted,
        };
        let data = json!({
            "application/vnd.own": [1, "a"],
            "image/png": 1,
            "image/svg+xml": ["<svg>", "</svg>"],
            "no type": "x",
            "text/html": ["a", 1],
            "text/plain": ["a\n", "b"],
        });
        let kept = json!({"application/vnd.own": [1, "a"], "image/svg+xml": "<svg></svg>", "text/plain": "a\nb"});
        assert_eq!(
            bundle_from_jupyter(&parts(data), &Parts::new()),
            (
                bundle(kept),
                vec![
                    wanted("image/png", "base64 text"),
                    BadBundle::Type("no type".to_owned()),
                    wanted("text/html", "text"),
                ]
            )
        );
        let many = (0..=MOST).map(|number| (format!("text/{number}"), json!("a")));
        let (most, left_out) = bundle_from_jupyter(&parts(many.collect()), &Parts::new());
        assert_eq!(validate_media_bundle(&most), Ok(()));
        assert_eq!(left_out, [BadBundle::TooMany]);
        let (nothing, _) = bundle_from_jupyter(&Parts::new(), &Parts::new());
        assert_eq!(validate_media_bundle(&nothing), Ok(()));
    }
}
