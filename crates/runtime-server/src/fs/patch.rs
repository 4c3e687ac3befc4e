//! `fs.patch`: applies a unified diff over several files, all of it or nothing.
//!
//! Every hunk is fitted in memory first, then every new content is written beside its file, and
//! only then the names are switched, each in a way that can be taken back.

mod apply;

use std::collections::HashSet;
use std::path::PathBuf;

use ::patch::{FilePatch, Operation};
use protocol::action::fs::{Change, PatchParams, PatchResult, PatchedFile};
use protocol::facts::{Access, EntryKind, PathFact};
use protocol::{ActionName, Digest, ErrorKind, Facts, Failure};
use rustix::fs::Stat;
use rustix::io::Errno;

use crate::action::{Action, Call};
use crate::context::Context;
use crate::grounds::Grounds;
use crate::workspace::{Like, Place, Ready, Seen, Staged, Undo, read_whole, refusal, unchanged};

use super::MAX_FILE;

/// `fs.patch`
#[derive(Debug)]
pub struct Patch;

impl Action for Patch {
    const NAME: ActionName = ActionName::FsPatch;
    const DESCRIPTION: &'static str = "Applies a unified diff as `git diff` writes it: changes, new, deleted and renamed files. All of it is applied or nothing.";
    type Params = PatchParams;
    type Result = PatchResult;

    fn resolve(context: &Context, params: &PatchParams) -> Result<Facts, Failure> {
        let files = plan(&context.grounds, &params.patch)?;
        Ok(super::touches(
            files.iter().flat_map(Planned::facts).collect(),
        ))
    }

    async fn execute(call: Call, params: PatchParams) -> Result<PatchResult, Failure> {
        call.blocking(move |call| {
            let files = plan(&call.context.grounds, &params.patch)?;
            call.still_wanted()?;
            carry_out(&call.context.grounds, &files)?;
            Ok(PatchResult {
                files: files.iter().map(Planned::told).collect(),
            })
        })
        .await
    }
}

/// One file before and after.
struct Planned {
    place: Place,
    old: Option<Content>,
    new: Option<Vec<u8>>,
    executable: Option<bool>,
    /// The file that this one is a copy of, or the one that it was: whoever could read it here has to
    /// be one who may read it there.
    read: Option<PathFact>,
}

struct Content {
    stat: Stat,
    bytes: Vec<u8>,
}

impl Planned {
    fn facts(&self) -> Vec<PathFact> {
        let own = PathFact {
            path: self.place.real().to_string_lossy().into_owned(),
            access: match self.new {
                Some(_) => Access::Write,
                None => Access::Delete,
            },
            kind: self.old.as_ref().map(|_| EntryKind::File),
            digest: self.old.as_ref().map(|old| Digest::of(&old.bytes)),
        };
        self.read.clone().into_iter().chain([own]).collect()
    }

    fn told(&self) -> PatchedFile {
        PatchedFile {
            path: self.place.relative().to_string_lossy().into_owned(),
            change: match (&self.old, &self.new) {
                (_, None) => Change::Deleted,
                (None, Some(_)) => Change::Created,
                (Some(_), Some(_)) => Change::Changed,
            },
            digest: self.new.as_deref().map(Digest::of),
        }
    }
}

fn plan(grounds: &Grounds, patch: &str) -> Result<Vec<Planned>, Failure> {
    let mut files = Vec::new();
    for file in ::patch::parse(patch)? {
        plan_file(grounds, &file, &mut files)?;
        let held: usize = files.iter().map(size_of_planned).sum();
        if held as u64 > MAX_FILE * 2 {
            return Err(Failure::new(
                ErrorKind::TooLarge,
                "The files of the patch are too large to be patched together. Send it in parts.",
            ));
        }
    }
    let mut named: HashSet<PathBuf> = HashSet::new();
    for file in &files {
        if !named.insert(file.place.real().to_owned()) {
            return Err(Failure::new(
                ErrorKind::PatchFailed,
                format!(
                    "The patch names {} more than once. Put all hunks of a file under one header. Nothing was changed.",
                    refusal::quoted(file.place.asked())
                ),
            )
            .with("path", file.place.asked()));
        }
    }
    Ok(files)
}

fn size_of_planned(file: &Planned) -> usize {
    let old = file.old.as_ref().map_or(0, |old| old.bytes.len());
    old + file.new.as_ref().map_or(0, Vec::len)
}

fn plan_file(
    grounds: &Grounds,
    file: &FilePatch<'_>,
    files: &mut Vec<Planned>,
) -> Result<(), Failure> {
    let executable = file.executable;
    match &file.operation {
        Operation::Change { path } => {
            let (place, old) = existing(grounds, path, Access::Write)?;
            let new = fitted(&old.bytes, file, path)?;
            files.push(Planned {
                place,
                old: Some(old),
                new: Some(new),
                executable,
                read: None,
            });
        }
        Operation::Create { path } => {
            let new = fitted(b"", file, path)?;
            files.push(Planned {
                place: vacant(grounds, path)?,
                old: None,
                new: Some(new),
                executable,
                read: None,
            });
        }
        Operation::Delete { path } => {
            let (place, old) = existing(grounds, path, Access::Delete)?;
            // A diff without hunks deletes an empty file, and only that.
            if !fitted(&old.bytes, file, path)?.is_empty() {
                return Err(Failure::new(
                    ErrorKind::PatchFailed,
                    format!(
                        "The patch deletes {}, but the file has more lines than the patch takes away. Read it again and make the patch anew. Nothing was changed.",
                        refusal::quoted(path)
                    ),
                )
                .with("path", path.as_str()));
            }
            files.push(Planned {
                place,
                old: Some(old),
                new: None,
                executable: None,
                read: None,
            });
        }
        Operation::Rename { from, to } => {
            let (place, old) = existing(grounds, from, Access::Delete)?;
            let new = fitted(&old.bytes, file, from)?;
            let keeps = old.stat.st_mode & 0o111 != 0;
            files.push(Planned {
                read: Some(read_fact(&place, &old)),
                place,
                old: Some(old),
                new: None,
                executable: None,
            });
            files.push(Planned {
                place: vacant(grounds, to)?,
                old: None,
                new: Some(new),
                executable: executable.or(Some(keeps)),
                read: None,
            });
        }
        Operation::Copy { from, to } => {
            let (source, old) = existing(grounds, from, Access::Read)?;
            files.push(Planned {
                place: vacant(grounds, to)?,
                old: None,
                new: Some(fitted(&old.bytes, file, from)?),
                executable: executable.or(Some(old.stat.st_mode & 0o111 != 0)),
                read: Some(read_fact(&source, &old)),
            });
        }
    }
    Ok(())
}

fn read_fact(place: &Place, content: &Content) -> PathFact {
    PathFact {
        path: place.real().to_string_lossy().into_owned(),
        access: Access::Read,
        kind: Some(EntryKind::File),
        digest: Some(Digest::of(&content.bytes)),
    }
}

fn existing(grounds: &Grounds, path: &str, access: Access) -> Result<(Place, Content), Failure> {
    let place = relative_place(grounds, path, access)?;
    if place.entry()?.is_none() {
        return Err(refusal::of(Errno::NOENT, path));
    }
    let (file, stat) = place.open()?;
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    if size > MAX_FILE {
        return Err(refusal::too_large(path, size, MAX_FILE));
    }
    let bytes = read_whole(file, size, MAX_FILE, path)?;
    Ok((place, Content { stat, bytes }))
}

fn vacant(grounds: &Grounds, path: &str) -> Result<Place, Failure> {
    let place = relative_place(grounds, path, Access::Write)?;
    if place.entry()?.is_some() {
        return Err(Failure::new(
            ErrorKind::AlreadyExists,
            format!(
                "The patch makes {} new, but it is there already. Nothing was changed.",
                refusal::quoted(path)
            ),
        )
        .with("path", path));
    }
    Ok(place)
}

/// A patch may come from anywhere, so its names are never absolute.
fn relative_place(grounds: &Grounds, path: &str, access: Access) -> Result<Place, Failure> {
    if path.starts_with('/') {
        return Err(refusal::outside(path, grounds.workspace().real()));
    }
    grounds.place(path, access)
}

fn fitted(old: &[u8], file: &FilePatch<'_>, path: &str) -> Result<Vec<u8>, Failure> {
    apply::apply(old, &file.hunks).map_err(|misfit| {
        let wanted = misfit.wanted.map_or_else(
            || "nothing".to_owned(),
            |line| refusal::quoted(&line),
        );
        let found = misfit.found.map_or_else(
            || "the end of the file".to_owned(),
            |line| refusal::quoted(&line),
        );
        Failure::new(
            ErrorKind::PatchFailed,
            format!(
                "Hunk {} (line {} of the patch) does not fit {}: on line {} it wants {wanted} and there is {found}. Read the file again and make the patch anew. Nothing was changed.",
                misfit.hunk,
                misfit.at,
                refusal::quoted(path),
                misfit.line
            ),
        )
        .with("path", path)
        .with("hunk", misfit.hunk)
        .with("line", misfit.line)
    })
}

fn carry_out(grounds: &Grounds, files: &[Planned]) -> Result<(), Failure> {
    let mut folders: Vec<Ready> = Vec::new();
    let carried_out = stage(files, &mut folders).and_then(|staged| {
        let _one_at_a_time = grounds.change();
        switch(files, &folders, staged)
    });
    match carried_out {
        Ok(()) => folders.into_iter().for_each(Ready::keep),
        // The last made first: a folder can only go when nothing is in it.
        Err(_) => folders.into_iter().rev().for_each(drop),
    }
    carried_out
}

/// Writes every new content beside the name it is meant for.
fn stage(files: &[Planned], folders: &mut Vec<Ready>) -> Result<Vec<Option<Staged>>, Failure> {
    let mut staged = Vec::new();
    for file in files {
        let ready = file.place.make_folders()?;
        let like = match &file.old {
            Some(old) => Like::Old {
                stat: &old.stat,
                executable: file.executable,
            },
            None => Like::New {
                executable: file.executable == Some(true),
            },
        };
        let content = file.new.as_deref();
        let written =
            content.map(|content| Staged::write(ready.folder(), content, like, file.place.asked()));
        folders.push(ready);
        staged.push(written.transpose()?);
    }
    Ok(staged)
}

/// Switches every name to its new content, or none.
fn switch(
    files: &[Planned],
    folders: &[Ready],
    staged: Vec<Option<Staged>>,
) -> Result<(), Failure> {
    for (file, ready) in files.iter().zip(folders) {
        let seen = file.old.as_ref().map(|old| Seen::of(&old.stat));
        unchanged(ready.folder(), file.place.name(), seen, file.place.asked())?;
    }
    let mut undo: Vec<Undo> = Vec::new();
    for ((file, ready), staged) in files.iter().zip(folders).zip(staged) {
        let name = file.place.name();
        let switched = match (staged, &file.old) {
            (Some(staged), Some(_)) => staged.exchange(name),
            (Some(staged), None) => staged.put_new(name),
            (None, _) => Undo::take_away(ready.folder(), name, file.place.asked()),
        };
        match switched {
            Ok(step) => undo.push(step),
            Err(failure) => {
                undo.into_iter().rev().for_each(Undo::undo);
                return Err(failure);
            }
        }
    }
    undo.into_iter().for_each(Undo::keep);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::workspace::Workspace;

    #[test]
    fn a_switch_that_fails_midway_takes_the_earlier_ones_back() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["changed", "deleted", "last"] {
            std::fs::write(folder.path().join(name), "old\n").unwrap();
        }
        let workspace = Workspace::open(folder.path()).unwrap();
        let patch = "\
--- a/changed
+++ b/changed
@@ -1 +1 @@
-old
+new
--- a/deleted
+++ /dev/null
@@ -1 +0,0 @@
-old
--- /dev/null
+++ b/made/new
@@ -0,0 +1 @@
+new
--- a/last
+++ b/last
@@ -1 +1 @@
-old
+new
";
        let grounds = Grounds::workspace_only(Arc::new(workspace));
        let files = plan(&grounds, patch).unwrap();
        let mut folders = Vec::new();
        let mut staged = stage(&files, &mut folders).unwrap();
        // The last new content is lost before it can be switched to.
        let lost = staged.pop().unwrap().unwrap();
        std::fs::remove_file(folder.path().join(lost.temporary_name().unwrap())).unwrap();
        staged.push(Some(lost));

        let failure = switch(&files, &folders, staged).unwrap_err();
        folders.into_iter().rev().for_each(drop);
        assert_eq!(failure.kind, ErrorKind::NotFound);
        let mut left: Vec<(String, String)> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let name = entry.file_name().into_string().unwrap();
                (name, std::fs::read_to_string(entry.path()).unwrap())
            })
            .collect();
        left.sort();
        let old = |name: &str| (name.to_owned(), "old\n".to_owned());
        assert_eq!(left, ["changed", "deleted", "last"].map(old));
    }
}
