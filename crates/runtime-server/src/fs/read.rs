//! `fs.read`: a file, or some of its lines.

use protocol::action::fs::{ReadParams, ReadResult};
use protocol::facts::EntryKind;
use protocol::{ActionName, Data, Digest, Encoding, ErrorKind, Facts, Failure};

use crate::action::{Action, Again, Call, Look};
use crate::context::Context;
use crate::workspace::{HostPath, kind_of, refusal};

use super::{MAX_FILE, MAX_TEXT};

/// Bytes that are no text have no lines to go on from, so that more of them fits an answer.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// Up to this size a file is read at once, without a thread of its own.
const QUICK: i64 = 128 * 1024;

/// `fs.read`
#[derive(Debug)]
pub struct Read;

impl Action for Read {
    const NAME: ActionName = ActionName::FsRead;
    const DESCRIPTION: &'static str = "Reads a file, or `limit` of its lines from line `offset` on. Answers at most 1 MiB of text; `next_offset` says where to go on.";
    type Params = ReadParams;
    type Result = ReadResult;
    const LOOK: Look = Look::Short;
    const AGAIN: Again = Again::Itself;

    fn resolve(context: &Context, params: &ReadParams) -> Result<Facts, Failure> {
        check(params)?;
        let grounds = &context.grounds;
        // It is looked at well, and held, when it is read.
        if let Some((name, stat)) = grounds.glance(&params.path)
            && kind_of(&stat) == EntryKind::File
        {
            let real = grounds.workspace().real().join(name);
            return Ok(super::reads_at(&real, EntryKind::File));
        }
        Ok(super::reads(&grounds.file(&params.path)?))
    }

    async fn execute(call: Call, params: ReadParams) -> Result<ReadResult, Failure> {
        check(&params)?;
        let grounds = &call.context.grounds;
        let found = grounds.file_as_decided(&params.path, super::reads)?;
        if found.stat().st_size <= QUICK {
            return read(&found, &params);
        }
        call.blocking(move |_| read(&found, &params)).await
    }
}

fn check(params: &ReadParams) -> Result<(), Failure> {
    for (field, value) in [("offset", params.offset), ("limit", params.limit)] {
        if value == Some(0) {
            return Err(Failure::new(
                ErrorKind::InvalidParams,
                format!("`{field}` of fs.read is 0. Lines count from 1; leave it out for the whole file."),
            )
            .with("field", field));
        }
    }
    Ok(())
}

fn read(found: &HostPath, params: &ReadParams) -> Result<ReadResult, Failure> {
    let whole = found.read(MAX_FILE, &params.path)?;
    let first = params.offset.unwrap_or(1);
    let start = after_lines(&whole, first - 1);
    let wanted = match params.limit {
        Some(limit) => &whole[start..start + after_lines(&whole[start..], limit)],
        None => &whole[start..],
    };

    let encoding = match params.encoding {
        Some(Encoding::Base64) => Encoding::Base64,
        None if std::str::from_utf8(wanted).is_err() => Encoding::Base64,
        None | Some(Encoding::Utf8) => Encoding::Utf8,
    };
    let answer = match encoding {
        Encoding::Utf8 => cut(wanted, MAX_TEXT),
        Encoding::Base64 => cut(wanted, MAX_BYTES),
    };
    let data = match encoding {
        Encoding::Utf8 => Data::from_bytes(answer.to_vec()),
        Encoding::Base64 => Data::base64(answer),
    };
    if data.encoding != encoding {
        return Err(Failure::new(
            ErrorKind::BadEncoding,
            format!(
                "{} is not UTF-8 text. Ask with `encoding: \"base64\"`, or without `encoding`.",
                refusal::quoted(&params.path)
            ),
        )
        .with("path", params.path.as_str()));
    }

    let rest = &whole[start + answer.len()..];
    let stopped_in_a_line = !answer.is_empty() && !answer.ends_with(b"\n");
    let left_of_line = if stopped_in_a_line {
        after_lines(rest, 1)
    } else {
        0
    };
    let answered = answer.iter().filter(|byte| **byte == b'\n').count() as u64;
    let more_lines = rest.len() > left_of_line;
    Ok(ReadResult {
        content: data.text,
        encoding,
        size: whole.len() as u64,
        digest: Digest::of(&whole),
        truncated: !rest.is_empty(),
        next_offset: more_lines.then(|| first + answered + u64::from(stopped_in_a_line)),
        cut: left_of_line as u64,
    })
}

/// Where the line after the first `count` lines begins.
fn after_lines(bytes: &[u8], count: u64) -> usize {
    if count == 0 {
        return 0;
    }
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    match usize::try_from(count - 1)
        .ok()
        .and_then(|nth| ends.map(|(at, _)| at).nth(nth))
    {
        Some(end) => end + 1,
        None => bytes.len(),
    }
}

/// As many whole lines as fit; the first one is cut itself where it alone does not.
fn cut(wanted: &[u8], limit: usize) -> &[u8] {
    if wanted.len() <= limit {
        return wanted;
    }
    let head = &wanted[..limit];
    if let Some(end) = head.iter().rposition(|byte| *byte == b'\n') {
        return &head[..=end];
    }
    // Never in the middle of a character: step back over its bytes, which are four at most.
    match std::str::from_utf8(head) {
        Err(error) if error.error_len().is_none() => &head[..error.valid_up_to()],
        _ => head,
    }
}
