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

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, MutexGuard};

use protocol::facts::{Access, BEYOND, EntryKind};
use protocol::mode::Mode;
use protocol::{ErrorKind, Facts, Failure};
use rustix::fs::Stat;
use rustix::io::Errno;
use serde_json::Value;

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
        let within = |folder: &&Path| path.starts_with(folder);
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
        if self.own.iter().any(|own| own.starts_with(path)) {
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
            permit.refuse_other_facts(&facts(&found))?;
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
        real.starts_with(self.workspace.real())
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

/// So many links lead on from each other at most, as for the kernel.
const MOST_LINKS: usize = 40;

/// The real path of what need not be there. A link leads on also where nothing is at its end: where
/// that is, and not that nothing is there, is what a path is judged by.
fn real(path: &Path) -> PathBuf {
    let mut links = 0;
    let mut real = PathBuf::from("/");
    let mut left: Vec<OsString> = Vec::new();
    add(&mut left, path);
    while let Some(name) = left.pop() {
        match Path::new(&name).components().next() {
            Some(Component::Normal(_)) => {}
            Some(Component::ParentDir) => {
                real.pop();
                continue;
            }
            Some(Component::RootDir | Component::CurDir | Component::Prefix(_)) | None => continue,
        }
        let next = real.join(&name);
        match next.read_link() {
            Ok(target) if links < MOST_LINKS => {
                links += 1;
                if target.is_absolute() {
                    real = PathBuf::from("/");
                }
                add(&mut left, &target);
            }
            Ok(_) | Err(_) => real = next,
        }
    }
    real
}

/// Adds the parts of a path, the first of them on top.
fn add(left: &mut Vec<OsString>, path: &Path) {
    let parts = path.components().rev();
    left.extend(parts.map(|part| part.as_os_str().to_owned()));
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use protocol::Facts;
    use protocol::facts::PathFact;
    use protocol::wall::WallParams;

    use super::*;

    /// A workspace beside a file `secret` and Ward's own folder, with what was permitted in it.
    struct Scene {
        outer: tempfile::TempDir,
        grounds: Grounds,
    }

    impl Scene {
        fn new() -> Self {
            let outer = tempfile::tempdir().unwrap();
            std::fs::create_dir_all(outer.path().join("inside")).unwrap();
            std::fs::create_dir_all(outer.path().join("ward")).unwrap();
            std::fs::write(outer.path().join("secret"), "").unwrap();
            std::fs::write(outer.path().join("file"), "").unwrap();
            std::fs::write(outer.path().join("inside/file"), "").unwrap();
            std::fs::write(outer.path().join("inside/other"), "").unwrap();
            symlink("../file", outer.path().join("inside/out")).unwrap();
            let workspace = Workspace::open(&outer.path().join("inside")).unwrap();
            let beyond = Beyond::open(&[outer.path().join("ward")]).unwrap();
            Self {
                grounds: Grounds::to_look_at(Arc::new(workspace), Arc::new(beyond)),
                outer,
            }
        }

        /// The same with the folder above as its workspace, in which Ward's own is.
        fn above(&self, mode: Mode) -> Grounds {
            let workspace = Workspace::open(self.outer.path()).unwrap();
            let beyond = Beyond::open(&[self.outer.path().join("ward")]).unwrap();
            let facts = Facts {
                paths: vec![PathFact {
                    path: self.path("secret"),
                    access: Access::Write,
                    kind: None,
                    digest: None,
                }],
                ..Facts::default()
            };
            let permit = Permitted::new(mode, WallParams::default(), facts);
            Grounds::to_look_at(Arc::new(workspace), Arc::new(beyond)).permitted(Arc::new(permit))
        }

        fn path(&self, name: &str) -> String {
            let outer = self.outer.path().canonicalize().unwrap();
            outer.join(name).to_str().unwrap().to_owned()
        }

        /// The grounds of an action that was decided to touch this, in this way.
        fn permitted(&self, name: &str, access: Access, beyond: bool) -> Grounds {
            let facts = Facts {
                paths: vec![PathFact {
                    path: self.path(name),
                    access,
                    kind: None,
                    digest: None,
                }],
                ..Facts::default()
            };
            let wall = WallParams {
                beyond,
                ..WallParams::default()
            };
            let permit = Permitted::new(Mode::Sandbox, wall, facts);
            self.grounds.permitted(Arc::new(permit))
        }
    }

    fn kind<T>(result: Result<T, Failure>) -> Option<ErrorKind> {
        result.err().map(|failure| failure.kind)
    }

    #[test]
    fn only_what_was_decided_on_is_found_when_it_is_done() {
        let scene = Scene::new();
        let inside = scene.permitted("inside/file", Access::Read, false);
        assert_eq!(kind(inside.file("file")), None);
        assert_eq!(kind(inside.file("other")), Some(ErrorKind::Changed));
        assert!(inside.glance("file").is_some());
        assert!(inside.glance("other").is_none());
        let outside = scene.permitted("file", Access::Read, true);
        assert_eq!(kind(outside.file("out")), None);
        let secret = kind(outside.file(&scene.path("secret")));
        assert_eq!(secret, Some(ErrorKind::Changed));
        let without = scene.permitted("file", Access::Read, false);
        let refused = kind(without.file("out"));
        assert_eq!(refused, Some(ErrorKind::OutsideWorkspace));
    }

    #[test]
    fn what_may_be_read_may_not_be_changed_for_that() {
        let scene = Scene::new();
        let read = scene.permitted("inside/file", Access::Read, true);
        for access in [Access::Write, Access::Delete] {
            let refused = kind(read.place("file", access));
            assert_eq!(refused, Some(ErrorKind::Changed));
        }
        let write = scene.permitted("inside/file", Access::Write, true);
        assert_eq!(kind(write.place("file", Access::Write)), None);
        assert_eq!(kind(write.file("file")), None);
        let delete = kind(write.place("file", Access::Delete));
        assert_eq!(delete, Some(ErrorKind::Changed));
    }

    #[test]
    fn the_folders_of_ward_are_closed_whatever_was_decided() {
        let scene = Scene::new();
        std::fs::write(scene.path("ward/token"), "").unwrap();
        let decided = scene.permitted("ward/token", Access::Write, true);
        let token = scene.path("ward/token");
        assert_eq!(kind(decided.file(&token)), Some(ErrorKind::Protected));
        assert_eq!(kind(decided.target(&token)), Some(ErrorKind::Protected));
        let above = scene.path("");
        let above = above.trim_end_matches('/');
        let moved = kind(scene.grounds.place(above, Access::Delete));
        assert_eq!(moved, Some(ErrorKind::Protected));
    }

    #[test]
    fn where_no_command_could_be_confined_no_file_is_touched_but_in_full_mode() {
        let scene = Scene::new();
        let confined = scene.above(Mode::Sandbox);
        assert_eq!(
            kind(confined.file("secret")),
            Some(ErrorKind::SandboxFailed)
        );
        assert!(confined.glance("secret").is_none());
        assert_eq!(
            kind(confined.target("secret")),
            Some(ErrorKind::SandboxFailed)
        );
        let trusted = scene.above(Mode::Full);
        assert_eq!(kind(trusted.file("secret")), None);
        assert_eq!(kind(trusted.target("secret")), None);
    }

    #[test]
    fn a_folder_that_is_not_there_yet_has_the_real_path_of_what_is_above_it() {
        let scene = Scene::new();
        symlink("ward", scene.path("link")).unwrap();
        let path = PathBuf::from(scene.path("link/deep/er"));
        assert_eq!(real(&path), PathBuf::from(scene.path("ward/deep/er")));
    }

    #[test]
    fn a_link_leads_on_where_nothing_is_at_its_end() {
        let scene = Scene::new();
        symlink("../gone/..", scene.path("inside/one")).unwrap();
        symlink(scene.path("inside/one/two"), scene.path("inside/two")).unwrap();
        symlink("round", scene.path("inside/round")).unwrap();
        for (path, expected) in [
            ("inside/one/x", "x"),
            ("inside/two/x", "two/x"),
            ("inside/round/x", "inside/round/x"),
            ("inside/gone/../../x", "x"),
            ("inside/out", "file"),
        ] {
            let path = PathBuf::from(scene.path(path));
            assert_eq!(real(&path), PathBuf::from(scene.path(expected)));
        }
    }
}
