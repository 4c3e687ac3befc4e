//! What file actions can touch: the workspace and, behind a gate, what lies beyond it.
//!
//! Standalone, the workspace is all there is. Behind a gate a path may lead out of it, and is then
//! walked from `/` in the same way, by descriptor: to be looked at, so that the gate can decide; and
//! to be touched, where a permit says so and names this very path. A name that leads elsewhere when
//! the action is done is refused as `changed`, inside the workspace too.
//!
//! Whatever the permit, no file action touches Ward's own folders, or `/proc` and `/sys`, through
//! which they could be reached. Where the workspace is none that a command could be confined to, as
//! the home folder with its keys, a file action in sandbox mode touches nothing in it either.

mod real;

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard};

use protocol::facts::{Access, BEYOND, EntryKind};
use protocol::mode::Mode;
use protocol::{ErrorKind, Facts, Failure};
use rustix::fs::Stat;
use rustix::io::Errno;
use serde_json::Value;

use self::real::real;
use crate::permit::Permitted;
use crate::workspace::{Final, HostPath, PROTECTED, Place, Workspace, kind_of, refusal};

/// Folders of the kernel's, in which a path is a way to a process or a switch.
const KERNEL: [&str; 2] = ["/proc", "/sys"];

/// What the file actions of one request can touch.
#[derive(Debug, Clone)]
pub struct Grounds {
    workspace: Arc<Workspace>,
    gated: Option<Gated>,
}

/// What a gate adds.
#[derive(Debug, Clone)]
struct Gated {
    beyond: Arc<Beyond>,
    /// Why no command could be confined to the workspace, where none could.
    unconfinable: Option<Arc<str>>,
    /// Nothing is done without one; looking is free.
    permit: Option<Arc<Permitted>>,
}

/// The rest of the machine.
#[derive(Debug)]
pub(crate) struct Beyond {
    everything: Workspace,
    /// Ward's own folders, by their real paths.
    own: Vec<PathBuf>,
}

impl Beyond {
    pub(crate) fn open(own: &[PathBuf]) -> Result<Self, Failure> {
        Ok(Self {
            everything: Workspace::everything()?,
            own: own.iter().map(|path| real(path)).collect(),
        })
    }

    fn refuse_own(&self, path: &Path) -> Result<(), Failure> {
        let within = |folder: &&Path| is_within(path, folder);
        let refuse = |why: &str| {
            Err(Failure::new(
                ErrorKind::Protected,
                format!("{} {why}.", refusal::quoted(&path.to_string_lossy())),
            )
            .with("path", path.to_string_lossy().as_ref())
            .with(PROTECTED, path.to_string_lossy().as_ref()))
        };
        if self
            .own
            .iter()
            .map(PathBuf::as_path)
            .any(|own| within(&own))
        {
            return refuse(
                "is Ward's own, so no file action reads or changes it. A person can, outside Ward",
            );
        }
        if KERNEL.iter().map(Path::new).any(|folder| within(&folder)) {
            return refuse(
                "is the kernel's, which file actions do not touch. Use terminal.run for it",
            );
        }
        Ok(())
    }

    /// Also the folder that holds one of Ward's own cannot be changed itself: with it that would go.
    fn refuse_to_change(&self, path: &Path) -> Result<(), Failure> {
        if self.own.iter().any(|own| is_within(own, path)) {
            return Err(Failure::new(
                ErrorKind::Protected,
                format!(
                    "{} holds Ward's own files, so no file action changes it. A person can, outside Ward.",
                    refusal::quoted(&path.to_string_lossy())
                ),
            )
            .with("path", path.to_string_lossy().as_ref())
            .with(PROTECTED, path.to_string_lossy().as_ref()));
        }
        self.refuse_own(path)
    }
}

impl Grounds {
    /// The workspace and nothing else.
    #[must_use]
    pub fn workspace_only(workspace: Arc<Workspace>) -> Self {
        Self {
            workspace,
            gated: None,
        }
    }

    /// Behind a gate: to look at.
    pub(crate) fn to_look_at(workspace: Arc<Workspace>, beyond: Arc<Beyond>) -> Self {
        let usable = sandbox::usable_workspace(workspace.real(), &beyond.own);
        Self {
            workspace,
            gated: Some(Gated {
                beyond,
                unconfinable: usable.err().map(|error| error.to_string().into()),
                permit: None,
            }),
        }
    }

    /// The same, for what was permitted.
    pub(crate) fn permitted(&self, permit: Arc<Permitted>) -> Self {
        let mut grounds = self.clone();
        if let Some(gated) = &mut grounds.gated {
            gated.permit = Some(permit);
        }
        grounds
    }

    /// The workspace.
    #[must_use]
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    pub(crate) fn permit(&self) -> Option<&Permitted> {
        self.gated.as_ref()?.permit.as_deref()
    }

    /// What is at `path`. Refuses what [`Workspace::find`] refuses; behind a gate, what leads out
    /// of the workspace is refused only where it was not permitted, and Ward's own always.
    pub fn find(&self, path: &str, last: Final) -> Result<HostPath, Failure> {
        let found = self.look(path, last)?;
        self.admit(found.real(), Access::Read, path)?;
        Ok(found)
    }

    /// What is at `path`, where a look is enough; see [`Workspace::glance`]. None in every other
    /// case, which [`find`](Self::find) knows how to tell.
    pub(crate) fn glance<'a>(&self, path: &'a str) -> Option<(&'a Path, Stat)> {
        let (name, stat) = self.workspace.glance(path)?;
        let real = self.workspace.real().join(name);
        self.admit(&real, Access::Read, path).ok()?;
        Some((name, stat))
    }

    /// The regular file at `path`.
    pub fn file(&self, path: &str) -> Result<HostPath, Failure> {
        a_file(self.find(path, Final::Followed)?, path)
    }

    /// The regular file at `path`, to be used now that it was decided on: where its facts are other
    /// ones by now, it is `changed`. What is compared is what is held, so no name can lead elsewhere
    /// in between.
    pub(crate) fn file_as_decided(
        &self,
        path: &str,
        facts: impl Fn(&HostPath) -> Facts,
    ) -> Result<HostPath, Failure> {
        let found = self.look(path, Final::Followed)?;
        if let Some(permit) = self.permit() {
            let same = permit.refuse_other_facts(&facts(&found));
            same.inspect_err(|_| self.workspace.no_more_glances())?;
        }
        self.admit(found.real(), Access::Read, path)?;
        a_file(found, path)
    }

    /// The folder at `path`.
    pub fn folder(&self, path: &str) -> Result<HostPath, Failure> {
        let found = self.find(path, Final::Followed)?;
        a_folder(found, path)
    }

    /// The folder that a command would run in. Outside the workspace only a trusted command can
    /// run, which no folder is closed to; whether a folder is there is told to nobody else.
    pub(crate) fn working_folder(&self, path: &str) -> Result<PathBuf, Failure> {
        let found = self.look(path, Final::Followed);
        let found = found.and_then(|found| a_folder(found, path));
        let leads_to = match &found {
            Ok(found) => found.real().to_owned(),
            Err(failure) if failure.kind == ErrorKind::InvalidParams => return Err(failure.clone()),
            Err(_) => real(&self.workspace.real().join(path)),
        };
        let mode = self.permit().map(Permitted::mode);
        match (self.is_inside(&leads_to), &self.gated, mode) {
            (false, Some(_), None) => Ok(leads_to),
            (false, Some(_), Some(Mode::Sandbox)) => {
                Err(refusal::outside(path, self.workspace.real()))
            }
            (_, _, _) => found.map(|_| leads_to),
        }
    }

    /// The place at `path`, to be changed there in this way.
    pub(crate) fn place(&self, path: &str, access: Access) -> Result<Place, Failure> {
        let place = self.look_for_place(path)?;
        self.admit(place.real(), access, path)?;
        Ok(place)
    }

    /// Where a write to `path` lands, and what it replaces: nothing, a regular file, or a link that
    /// stays inside. Behind a gate, a link that leads out stands for what it leads to.
    pub(crate) fn target(&self, path: &str) -> Result<(Place, Option<Stat>), Failure> {
        let mut place = self.look_for_place(path)?;
        let mut old = place.entry()?;
        if old.as_ref().is_some_and(is_link)
            && self.is_inside(place.real())
            && self.gated.is_some()
            && let Some(outside) = self.where_it_leads_out(path)?
        {
            place = self.look_for_place(&text(outside.real(), path)?)?;
            old = place.entry()?;
        }
        self.admit(place.real(), Access::Write, path)?;
        let old = self.replaceable(&place, old)?;
        Ok((place, old))
    }

    /// What a write or a move would replace at a place, of what is there: nothing, a regular file,
    /// or a link that does not lead out of the workspace.
    pub(crate) fn replaceable(
        &self,
        place: &Place,
        there: Option<Stat>,
    ) -> Result<Option<Stat>, Failure> {
        let Some(stat) = there else {
            return Ok(None);
        };
        match kind_of(&stat) {
            EntryKind::File => Ok(Some(stat)),
            EntryKind::Symlink if !self.is_inside(place.real()) => Ok(Some(stat)),
            EntryKind::Symlink => match self.workspace.find(place.asked(), Final::Followed) {
                Ok(_) => Ok(Some(stat)),
                Err(failure) if failure.kind == ErrorKind::NotFound => Ok(Some(stat)),
                Err(failure) => Err(failure),
            },
            EntryKind::Directory | EntryKind::Other => {
                Err(refusal::not_a_file(&stat, place.asked()))
            }
        }
    }

    /// Refuses a name that is protected, whatever it leads to.
    pub(crate) fn refuse_protected_name(&self, path: &str) -> Result<(), Failure> {
        self.look_for_place(path).map(drop)
    }

    /// Refuses to open the wall of a command around Ward's own folders.
    pub(crate) fn refuse_to_widen(&self, path: &Path) -> Result<(), Failure> {
        match &self.gated {
            Some(gated) => gated.beyond.refuse_to_change(path),
            None => Err(refusal::outside(
                &path.to_string_lossy(),
                self.workspace.real(),
            )),
        }
    }

    /// Whether a folder that a walk came by, named as [`HostPath::relative`] names it, is closed to
    /// file actions.
    pub(crate) fn is_closed(&self, relative: &Path) -> bool {
        self.gated.as_ref().is_some_and(|gated| {
            let path = self.workspace.real().join(relative);
            gated.beyond.refuse_own(&path).is_err()
        })
    }

    /// A look that failed, with the places outside the workspace that it was at, and what is protected:
    /// whether something is there is for the gate to tell, once it has decided whether that may be known.
    pub(crate) fn beyond(&self, mut failure: Failure, params: &Value) -> Failure {
        let named = |name: &&str| params.get(*name)?.as_str();
        let paths = ["path", "from", "to"].iter().filter_map(named);
        let paths = paths.map(|path| real(&self.workspace.real().join(path)));
        let mut outside: Vec<Value> = paths
            .filter(|path| !self.is_inside(path))
            .map(|path| path.to_string_lossy().into())
            .collect();
        // That it is protected is for the gate to say too, by its rule.
        let protected = failure.details.remove(PROTECTED);
        outside.extend(protected.filter(|path| !outside.contains(path)));
        match failure.kind {
            ErrorKind::InvalidParams | ErrorKind::UnknownAction => failure,
            _ if outside.is_empty() => failure,
            _ => failure.with(BEYOND, outside),
        }
    }

    /// One change at a time; see [`Workspace::change`].
    pub(crate) fn change(&self) -> MutexGuard<'_, ()> {
        self.workspace.change()
    }

    /// Whether a real path is inside the workspace.
    pub(crate) fn is_inside(&self, real: &Path) -> bool {
        is_within(real, self.workspace.real())
    }

    fn look(&self, path: &str, last: Final) -> Result<HostPath, Failure> {
        let (failure, gated) = match (self.workspace.find(path, last), &self.gated) {
            (Err(failure), Some(gated)) if leads_out(&failure) => (failure, gated),
            (found, _) => return found,
        };
        let absolute = self.absolute(path, failure)?;
        let found = gated.beyond.everything.find(&absolute, last)?;
        match self.inside_workspace(found.real(), path)? {
            Some(inside) => self.workspace.find(&inside, last),
            None => Ok(found),
        }
    }

    fn look_for_place(&self, path: &str) -> Result<Place, Failure> {
        let (failure, gated) = match (self.workspace.place(path), &self.gated) {
            (Err(failure), Some(gated)) if leads_out(&failure) => (failure, gated),
            (place, _) => return place,
        };
        let absolute = self.absolute(path, failure)?;
        let place = gated.beyond.everything.place(&absolute)?;
        match self.inside_workspace(place.real(), path)? {
            Some(inside) => self.workspace.place(&inside),
            None => Ok(place),
        }
    }

    /// What a link in the workspace leads to, where that is outside and there.
    fn where_it_leads_out(&self, path: &str) -> Result<Option<HostPath>, Failure> {
        match self.workspace.find(path, Final::Followed) {
            Err(failure) if leads_out(&failure) => {}
            Err(failure) if failure.kind != ErrorKind::NotFound => return Err(failure),
            Ok(_) | Err(_) => return Ok(None),
        }
        let found = self.look(path, Final::Followed)?;
        Ok((!self.is_inside(found.real())).then_some(found))
    }

    /// Refuses what was found but may not be touched.
    fn admit(&self, real: &Path, access: Access, asked: &str) -> Result<(), Failure> {
        let Some(gated) = &self.gated else {
            return Ok(());
        };
        match access {
            Access::Read => gated.beyond.refuse_own(real)?,
            Access::Write | Access::Delete => gated.beyond.refuse_to_change(real)?,
        }
        let Some(permit) = &gated.permit else {
            return Ok(());
        };
        permit.refuse_other_path(real, access)?;
        if !self.is_inside(real) && !permit.wall().beyond {
            return Err(refusal::outside(asked, self.workspace.real()));
        }
        // What a confined command could not touch, a confined file action may not.
        match (&gated.unconfinable, permit.mode()) {
            (Some(why), Mode::Sandbox) if self.is_inside(real) => {
                Err(Failure::new(ErrorKind::SandboxFailed, &**why))
            }
            (Some(_) | None, Mode::Sandbox | Mode::Full) => Ok(()),
        }
    }

    /// A path that leads out of the workspace, from `/` down.
    fn absolute(&self, path: &str, otherwise: Failure) -> Result<String, Failure> {
        let absolute = self.workspace.real().join(path);
        // A workspace whose own name is no text can be left by absolute paths alone.
        absolute
            .into_os_string()
            .into_string()
            .map_err(|_| otherwise)
    }

    /// A real path as one from the workspace down, where it is inside after all.
    fn inside_workspace(&self, real: &Path, asked: &str) -> Result<Option<String>, Failure> {
        match real.strip_prefix(self.workspace.real()) {
            Ok(inside) if inside.as_os_str().is_empty() => Ok(Some(".".to_owned())),
            Ok(inside) => text(inside, asked).map(Some),
            Err(_) => Ok(None),
        }
    }
}

/// Whether a real path is this folder's or of something in it: as [`Path::starts_with`], for paths
/// that have one way to be written.
fn is_within(path: &Path, folder: &Path) -> bool {
    let (path, folder) = (path.as_os_str().as_bytes(), folder.as_os_str().as_bytes());
    let below = path.strip_prefix(folder);
    below.is_some_and(|below| below.is_empty() || below.starts_with(b"/") || folder.ends_with(b"/"))
}

fn a_file(found: HostPath, path: &str) -> Result<HostPath, Failure> {
    if found.kind() != EntryKind::File {
        return Err(refusal::not_a_file(found.stat(), path));
    }
    Ok(found)
}

fn a_folder(found: HostPath, path: &str) -> Result<HostPath, Failure> {
    if found.kind() != EntryKind::Directory {
        return Err(refusal::of(Errno::NOTDIR, path));
    }
    Ok(found)
}

fn is_link(stat: &Stat) -> bool {
    kind_of(stat) == EntryKind::Symlink
}

fn leads_out(failure: &Failure) -> bool {
    failure.kind == ErrorKind::OutsideWorkspace
}

fn text(path: &Path, asked: &str) -> Result<String, Failure> {
    path.to_str().map(ToOwned::to_owned).ok_or_else(|| {
        refusal::bad_path(
            asked,
            "leads to a name that is not UTF-8. Use terminal.run for it",
        )
    })
}

#[cfg(test)]
mod tests;
