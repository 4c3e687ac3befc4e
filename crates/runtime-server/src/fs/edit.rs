//! `fs.edit`: replaces pieces of a file, all of them or none.

use protocol::action::fs::{Edit as Replacement, EditParams, EditResult};
use protocol::facts::Access;
use protocol::{ActionName, Digest, ErrorKind, Facts, Failure};
use rustix::fs::Stat;

use crate::action::{Action, Call};
use crate::context::Context;
use crate::grounds::Grounds;
use crate::workspace::{Like, Place, Seen, Staged, read_whole, refusal, unchanged};

use super::{MAX_FILE, diff};

/// How many places of a match are told.
const MAX_PLACES: usize = 20;

/// `fs.edit`
#[derive(Debug)]
pub struct Edit;

impl Action for Edit {
    const NAME: ActionName = ActionName::FsEdit;
    const DESCRIPTION: &'static str = "Replaces pieces of a text file. Each `old` has to be there exactly once, to the last blank and line end, unless `all`. All edits are done or none; answers the diff.";
    type Params = EditParams;
    type Result = EditResult;

    fn resolve(context: &Context, params: &EditParams) -> Result<Facts, Failure> {
        let (place, stat, text) = current(&context.grounds, params)?;
        edited(&text, params)?;
        Ok(super::touches(vec![
            place.fact(Access::Write, Some(&stat))?,
        ]))
    }

    async fn execute(call: Call, params: EditParams) -> Result<EditResult, Failure> {
        call.blocking(move |call| edit(&call.context.grounds, &params))
            .await
    }
}

fn edit(grounds: &Grounds, params: &EditParams) -> Result<EditResult, Failure> {
    let (place, stat, old) = current(grounds, params)?;
    let new = edited(&old, params)?;
    let ready = place.make_folders()?;
    let like = Like::Old {
        stat: &stat,
        executable: None,
    };
    let staged = Staged::write(ready.folder(), new.as_bytes(), like, &params.path)?;
    {
        let _one_at_a_time = grounds.change();
        let seen = Some(Seen::of(&stat));
        unchanged(ready.folder(), place.name(), seen, &params.path)?;
        staged.put(place.name())?;
    }
    ready.keep();
    Ok(EditResult {
        digest: Digest::of(new.as_bytes()),
        diff: diff::unified(&place.relative().to_string_lossy(), &old, &new),
    })
}

/// The file, and what is in it now.
fn current(grounds: &Grounds, params: &EditParams) -> Result<(Place, Stat, String), Failure> {
    // Who edits through a link means the file that it leads to, and the link stays.
    let found = grounds.file(&params.path)?;
    let place = grounds.place(&found.relative().to_string_lossy(), Access::Write)?;
    // Also the name that was asked for may be protected.
    grounds.refuse_protected_name(&params.path)?;
    let (file, stat) = place.open()?;
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    if size > MAX_FILE {
        return Err(refusal::too_large(&params.path, size, MAX_FILE));
    }
    let bytes = read_whole(file, size, MAX_FILE, &params.path)?;
    super::expected(
        params.expect.as_ref(),
        Some(&Digest::of(&bytes)),
        &params.path,
    )?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok((place, stat, text)),
        Err(_) => Err(Failure::new(
            ErrorKind::BadEncoding,
            format!(
                "{} is not UTF-8 text, so it cannot be edited. Use fs.write with `encoding: \"base64\"`.",
                refusal::quoted(&params.path)
            ),
        )
        .with("path", params.path.as_str())),
    }
}

fn edited(text: &str, params: &EditParams) -> Result<String, Failure> {
    if params.edits.is_empty() {
        return Err(Failure::new(
            ErrorKind::InvalidParams,
            "`edits` of fs.edit is empty. Give at least one {old, new}.",
        )
        .with("field", "edits"));
    }
    let mut new = text.to_owned();
    for (index, edit) in params.edits.iter().enumerate() {
        new = replaced(&new, edit, index, &params.path)?;
    }
    if new == text {
        return Err(Failure::new(
            ErrorKind::InvalidParams,
            format!(
                "The edits leave {} as it is: together they change nothing.",
                refusal::quoted(&params.path)
            ),
        )
        .with("path", params.path.as_str()));
    }
    Ok(new)
}

fn replaced(text: &str, edit: &Replacement, index: usize, path: &str) -> Result<String, Failure> {
    let field = format!("edits[{index}]");
    let invalid = |why: &str| {
        Failure::new(
            ErrorKind::InvalidParams,
            format!("`{field}` of fs.edit {why}."),
        )
        .with("field", field.as_str())
    };
    if edit.old.is_empty() {
        return Err(invalid("has an empty `old`. To make a file, use fs.write"));
    }
    if edit.old == edit.new {
        return Err(invalid(
            "has the same `old` and `new`, which changes nothing",
        ));
    }
    let places = places(text, &edit.old);
    if places.is_empty() {
        return Err(Failure::new(
            ErrorKind::NoMatch,
            format!(
                "`old` of {field} does not occur in {}. {} Nothing was changed.",
                refusal::quoted(path),
                why_not(text, &edit.old)
            ),
        )
        .with("path", path)
        .with("edit", index));
    }
    if places.len() > 1 && !edit.all {
        let lines = lines_of(text, &places);
        let shown: Vec<String> = lines.iter().map(u64::to_string).collect();
        let more = if places.len() > lines.len() {
            " and more"
        } else {
            ""
        };
        return Err(Failure::new(
            ErrorKind::AmbiguousMatch,
            format!(
                "`old` of {field} occurs {} times in {}, on lines {}{more}. Give more of the text around it, or set `all`. Nothing was changed.",
                places.len(),
                refusal::quoted(path),
                shown.join(", ")
            ),
        )
        .with("path", path)
        .with("edit", index)
        .with("matches", places.len())
        .with("lines", lines));
    }
    let grown = edit.new.len().saturating_sub(edit.old.len());
    let size = (grown as u64).saturating_mul(places.len() as u64) + text.len() as u64;
    if size > MAX_FILE {
        return Err(refusal::too_large(path, size, MAX_FILE));
    }
    Ok(text.replace(&edit.old, &edit.new))
}

/// Where `old` begins, also where it overlaps itself: then too it is not clear what is meant.
fn places(text: &str, old: &str) -> Vec<usize> {
    let mut places = Vec::new();
    let mut from = 0;
    let step = old.chars().next().map_or(1, char::len_utf8);
    while let Some(at) = text[from..].find(old) {
        places.push(from + at);
        from += at + step;
    }
    places
}

fn lines_of(text: &str, places: &[usize]) -> Vec<u64> {
    let mut lines = Vec::new();
    let (mut line, mut from) = (1, 0);
    for &place in places.iter().take(MAX_PLACES) {
        line += text[from..place].matches('\n').count() as u64;
        from = place;
        lines.push(line);
    }
    lines
}

/// The usual reasons why text that looks the same is not.
fn why_not(text: &str, old: &str) -> &'static str {
    let has_crlf = text.contains("\r\n");
    if has_crlf && old.contains('\n') && !old.contains("\r\n") {
        let crlf = old.replace('\n', "\r\n");
        if text.contains(&crlf) {
            return "The file ends its lines with \\r\\n: write them so in `old` and `new`.";
        }
    }
    if !has_crlf && old.contains("\r\n") && text.contains(&old.replace("\r\n", "\n")) {
        return "The file ends its lines with \\n, without \\r: write them so in `old` and `new`.";
    }
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    if old.len() < 10_000 && squeezed(text).contains(&squeezed(old)) {
        return "It does with other blanks or line breaks: copy the text exactly, with its indentation.";
    }
    "Read the file again and copy the text exactly."
}
