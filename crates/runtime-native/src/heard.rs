//! What a kernel says, as it is read. Kernels leave things out, or say them in a way of their own: a
//! reply that something waits for is mended rather than passed over, or nothing would ever come of it.
//! Text that is not Unicode is read as far as it is: Python's strings hold lone surrogates.

use jupyter_protocol::messaging::{Header, JupyterMessage, JupyterMessageContent as Content};
use jupyter_zmq_client::RawMessage;
use runtime_core::Parts;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// A message that cannot be read.
#[derive(Debug)]
pub(crate) struct Unread {
    /// Why.
    pub(crate) why: String,
    /// What kind of message it is, where it says.
    kind: Option<String>,
    /// The message that it follows from, where it says.
    pub(crate) parent: Option<String>,
}

impl Unread {
    /// Whether a run goes without something that it needs or that would have been shown, as far as
    /// can be told.
    pub(crate) fn is_missed(&self) -> bool {
        let kinds = [
            "clear_output",
            "display_data",
            "error",
            "execute_reply",
            "execute_result",
            "input_request",
            "stream",
            "update_display_data",
        ];
        let kind = self.kind.as_deref();
        kind.is_none_or(|kind| kinds.contains(&kind))
    }
}

/// A message.
#[derive(Debug)]
pub(crate) struct Heard {
    /// All of it but what it shows.
    pub(crate) message: JupyterMessage,
    pub(crate) shown: Shown,
}

/// What is shown, and what is said about that.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Shown {
    pub(crate) data: Parts,
    #[serde(default)]
    pub(crate) metadata: Parts,
}

/// Reads a message whose signature was looked at.
pub(crate) fn read(raw: RawMessage) -> Result<Heard, Unread> {
    let part = |index: usize| raw.jparts.get(index).map_or(&[][..], |part| &**part);
    let header: serde_json::Result<Header> = parsed(part(0));
    // Where there is none, it is an empty object.
    let parent: Option<Header> = parsed(part(1)).ok();
    let content = match &header {
        Ok(header) => content(&header.msg_type, part(3)),
        Err(error) => Err(format!("its header: {error}")),
    };
    let (header, (content, shown)) = match (header, content) {
        (Ok(header), Ok(content)) => (header, content),
        (header, content) => {
            return Err(Unread {
                why: content.err().unwrap_or_default(),
                kind: header.ok().map(|header| header.msg_type),
                parent: parent.map(|parent| parent.msg_id),
            });
        }
    };
    let message = JupyterMessage {
        parent_header: parent,
        metadata: parsed(part(2)).unwrap_or_default(),
        header,
        content,
        buffers: raw.jparts.into_iter().skip(4).collect(),
        zmq_identities: raw.zmq_identities,
        channel: None,
    };
    Ok(Heard { message, shown })
}

fn content(kind: &str, part: &[u8]) -> Result<(Content, Shown), String> {
    let unread = |error: serde_json::Error| format!("its content: {error}");
    let mut shown = Shown::default();
    let content: Value = match kind {
        "display_data" | "execute_result" | "update_display_data" => {
            let text = as_unicode(part);
            shown = serde_json::from_str(&text).map_err(unread)?;
            let mut rest: Parts = serde_json::from_str(&text).map_err(unread)?;
            rest.retain(|name, _| !matches!(name.as_str(), "data" | "metadata"));
            let mut rest = serde_json::to_value(rest).map_err(unread)?;
            rest["data"] = json!({});
            rest["metadata"] = json!({});
            rest
        }
        _ => parsed(part).map_err(unread)?,
    };
    let content = Content::from_type_and_content(kind, content.clone()).or_else(|error| {
        let mended = mended(kind, content).ok_or_else(|| format!("{kind}: {error}"))?;
        Content::from_type_and_content(kind, mended).map_err(|error| format!("{kind}: {error}"))
    });
    Ok((content?, shown))
}

/// Reads JSON; what of its text is not Unicode becomes U+FFFD.
fn parsed<T: DeserializeOwned>(part: &[u8]) -> serde_json::Result<T> {
    serde_json::from_slice(part).or_else(|error| match error.is_syntax() {
        true => serde_json::from_str(&as_unicode(part)),
        false => Err(error),
    })
}

/// JSON without bytes that are no UTF-8, and without escapes of surrogates that are no pair.
fn as_unicode(part: &[u8]) -> String {
    const ESCAPE: usize = r"\uXXXX".len();
    let text = String::from_utf8_lossy(part);
    let mut rest = &*text;
    let mut mended = String::with_capacity(rest.len());
    while let Some(start) = rest.find('\\') {
        let (before, escape) = rest.split_at(start);
        mended.push_str(before);
        let taken = match (unit(escape), escape.get(ESCAPE..).and_then(unit)) {
            (Some(0xD800..0xDC00), Some(0xDC00..0xE000)) => 2 * ESCAPE,
            (Some(0xD800..0xE000), _) => {
                mended.push(char::REPLACEMENT_CHARACTER);
                rest = &escape[ESCAPE..];
                continue;
            }
            (Some(_), _) => ESCAPE,
            // The backslash, and what it stands before: that may be another one.
            (None, _) => 1 + escape[1..].chars().next().map_or(0, char::len_utf8),
        };
        mended.push_str(&escape[..taken]);
        rest = &escape[taken..];
    }
    mended.push_str(rest);
    mended
}

/// The code unit that is escaped at the beginning of this.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix(r"\u")?.get(..4)?;
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_hex.then(|| u16::from_str_radix(digits, 16).ok())?
}

/// What can be made of a reply that does not have what it should: what a run needs of it.
fn mended(kind: &str, content: Value) -> Option<Value> {
    let Value::Object(content) = content else {
        return None;
    };
    let text = |from: &Map<String, Value>, name: &str| match from.get(name) {
        Some(Value::String(text)) => text.clone(),
        _ => String::new(),
    };
    match kind {
        "kernel_info_reply" => {
            let language = content.get("language_info").and_then(Value::as_object);
            let language = language.cloned().unwrap_or_default();
            let mut kept = Map::new();
            for name in ["name", "version"] {
                kept.insert(name.to_owned(), text(&language, name).into());
            }
            for name in ["mimetype", "file_extension", "pygments_lexer"] {
                if let Some(Value::String(text)) = language.get(name) {
                    kept.insert(name.to_owned(), text.clone().into());
                }
            }
            Some(json!({
                "protocol_version": text(&content, "protocol_version"),
                "language_info": kept,
            }))
        }
        "execute_reply" => {
            let status = match content.get("status").and_then(Value::as_str) {
                Some(status @ ("error" | "aborted")) => status,
                Some("abort") => "aborted",
                _ => "ok",
            };
            let mut kept = json!({"status": status});
            if let Some(count) = content.get("execution_count").and_then(Value::as_u64) {
                kept["execution_count"] = count.into();
            }
            let payload = content.get("payload").and_then(Value::as_array);
            if payload.into_iter().flatten().any(asks_exit) {
                kept["payload"] = json!([{"source": "ask_exit", "keepkernel": false}]);
            }
            if status == "error" {
                kept["ename"] = text(&content, "ename").into();
                kept["evalue"] = text(&content, "evalue").into();
                kept["traceback"] = json!([]);
            }
            Some(kept)
        }
        _ => None,
    }
}

/// Whether the kernel ends after this reply. Not every one says whether it is to be kept.
fn asks_exit(payload: &Value) -> bool {
    payload["source"] == "ask_exit" && payload["keepkernel"] != true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(kind: &str, content: &Value) -> RawMessage {
        let header = json!({"msg_id": "m", "username": "", "session": "s", "date": "2026-01-01T00:00:00Z", "msg_type": kind, "version": "5.3"});
        let parts = [&header, &json!({}), &json!({}), content];
        RawMessage {
            zmq_identities: Vec::new(),
            jparts: parts.map(|part| part.to_string().into()).to_vec(),
        }
    }

    #[test]
    fn a_kernel_that_does_not_say_which_version_its_language_has_is_heard() {
        let said = json!({"protocol_version": "5.3", "language_info": {"name": "bash", "mimetype": "text/x-sh", "codemirror_mode": 7}});
        let Content::KernelInfoReply(reply) = read(raw("kernel_info_reply", &said))
            .unwrap()
            .message
            .content
        else {
            panic!("no reply");
        };
        let language = reply.language_info;
        assert_eq!(
            (language.name.as_str(), language.version.as_str()),
            ("bash", "")
        );
        assert_eq!(language.mimetype.as_deref(), Some("text/x-sh"));
    }

    #[test]
    fn an_end_of_a_run_is_heard_however_a_kernel_says_it() {
        let ended = |said: Value| match read(raw("execute_reply", &said)).unwrap().message.content {
            Content::ExecuteReply(reply) => {
                let error = reply.error.map(|error| error.ename.clone());
                (serde_json::to_value(reply.status).unwrap(), error)
            }
            other => panic!("{other:?}"),
        };
        let odd = json!([{"source": "of its own", "text": 1}]);
        assert_eq!(
            ended(json!({"status": "ok", "execution_count": 3, "payload": odd})),
            (json!("ok"), None)
        );
        assert_eq!(ended(json!({"status": "abort"})), (json!("aborted"), None));
        assert_eq!(
            ended(json!({"status": "error", "ename": "E", "payload": odd})),
            (json!("error"), Some("E".to_owned()))
        );
        assert!(read(raw("stream", &json!({"name": 1}))).is_err());
        assert!(read(raw("execute_reply", &json!("ok"))).is_err());
    }

    /// A message whose content is these bytes.
    fn bytes(kind: &str, content: &[u8]) -> RawMessage {
        let mut raw = raw(kind, &json!({}));
        raw.jparts[3] = content.to_vec().into();
        raw
    }

    #[test]
    fn text_that_is_not_unicode_is_read_as_far_as_it_is() {
        let shown = |text: &[u8]| {
            let content = [br#"{"name": "stdout", "text": ""#, text, br#""}"#].concat();
            match read(bytes("stream", &content)).unwrap().message.content {
                Content::StreamContent(stream) => stream.text,
                other => panic!("{other:?}"),
            }
        };
        for (said, text) in [
            (&b"a\xffb"[..], "a\u{fffd}b"),
            (b"\xed\xb3\xbf", "\u{fffd}\u{fffd}\u{fffd}"),
            (br"\udcff", "\u{fffd}"),
            (br"\uD800\n", "\u{fffd}\n"),
            (br"\ud800\ud83d\ude00\udcff", "\u{fffd}\u{1f600}\u{fffd}"),
            (br"\\udcff \u00e9 \udcff", "\\udcff \u{e9} \u{fffd}"),
            (b"\\ud83d\xff\\ude00", "\u{fffd}\u{fffd}\u{fffd}"),
            (
                "\u{e9}\\\"\\udcff\u{1f600}".as_bytes(),
                "\u{e9}\"\u{fffd}\u{1f600}",
            ),
        ] {
            assert_eq!(shown(said), text);
        }
    }

    #[test]
    fn json_that_is_cut_off_is_no_message_and_no_panic() {
        for text in [
            &b"\\"[..],
            b"\\u",
            b"\\ud8",
            b"\\udcf\xff",
            b"\\u+123",
            b"\"\\ud800\\u",
            b"\xff\\\xc3\xa9",
        ] {
            assert!(read(bytes("stream", text)).is_err());
        }
    }

    #[test]
    fn an_error_and_the_end_of_its_run_are_heard_though_their_text_is_not_unicode() {
        let error = b"{\"ename\": \"ValueError\", \"evalue\": \"\xff\", \"traceback\": [\"\xff\"]}";
        let Content::ErrorOutput(error) = read(bytes("error", error)).unwrap().message.content
        else {
            panic!("no error");
        };
        assert_eq!(
            (error.evalue.as_str(), error.traceback),
            ("\u{fffd}", vec!["\u{fffd}".to_owned()])
        );
        let reply = br#"{"status": "error", "ename": "ValueError", "evalue": "\udcff", "traceback": [], "execution_count": 1}"#;
        let Content::ExecuteReply(reply) =
            read(bytes("execute_reply", reply)).unwrap().message.content
        else {
            panic!("no reply");
        };
        assert_eq!(reply.error.unwrap().evalue, "\u{fffd}");
    }

    #[test]
    fn a_message_that_cannot_be_read_is_missed_where_a_run_needs_it() {
        let missed = |raw: RawMessage| read(raw).unwrap_err().is_missed();
        assert!(missed(bytes("stream", b"{")));
        assert!(missed(bytes("execute_reply", b"[]")));
        assert!(!missed(bytes("execute_input", b"{")));
        let mut nameless = bytes("stream", b"{}");
        nameless.jparts[0] = b"{".to_vec().into();
        nameless.jparts[1] = nameless.jparts[2].clone();
        assert!(missed(nameless));
        let mut following = bytes("stream", b"{");
        following.jparts[1] = following.jparts[0].clone();
        assert_eq!(read(following).unwrap_err().parent.as_deref(), Some("m"));
    }
}
