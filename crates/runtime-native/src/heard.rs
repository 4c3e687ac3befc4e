//! What a kernel says, as it is read. Kernels leave things out, or say them in a way of their own: a
//! reply that something waits for is mended rather than passed over, or nothing would ever come of it.

use jupyter_protocol::messaging::{Header, JupyterMessage, JupyterMessageContent as Content};
use jupyter_zmq_client::RawMessage;
use serde_json::{Map, Value, json};

/// Reads a message whose signature was looked at.
pub(crate) fn read(raw: RawMessage) -> Result<JupyterMessage, String> {
    let part = |index: usize| raw.jparts.get(index).map_or(&[][..], |part| &**part);
    let header: Header =
        serde_json::from_slice(part(0)).map_err(|error| format!("its header: {error}"))?;
    let content: Value =
        serde_json::from_slice(part(3)).map_err(|error| format!("its content: {error}"))?;
    let kind = header.msg_type.as_str();
    let content = Content::from_type_and_content(kind, content.clone()).or_else(|error| {
        let mended = mended(kind, content).ok_or_else(|| format!("{kind}: {error}"))?;
        Content::from_type_and_content(kind, mended).map_err(|error| format!("{kind}: {error}"))
    })?;
    Ok(JupyterMessage {
        // Where there is none, it is an empty object.
        parent_header: serde_json::from_slice(part(1)).ok(),
        metadata: serde_json::from_slice(part(2)).unwrap_or_default(),
        header,
        content,
        buffers: raw.jparts.into_iter().skip(4).collect(),
        zmq_identities: raw.zmq_identities,
        channel: None,
    })
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
        let Content::KernelInfoReply(reply) =
            read(raw("kernel_info_reply", &said)).unwrap().content
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
        let ended = |said: Value| match read(raw("execute_reply", &said)).unwrap().content {
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
}
