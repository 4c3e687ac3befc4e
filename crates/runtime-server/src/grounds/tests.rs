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

#[test]
fn once_a_name_was_not_what_was_decided_on_nothing_is_told_at_a_glance_any_more() {
    let scene = Scene::new();
    assert!(scene.grounds.glance("file").is_some());
    let decided = scene.permitted("inside/FILE", Access::Read, false);
    let refused = kind(decided.file_as_decided("file", |_| Facts::default()));
    assert_eq!(refused, Some(ErrorKind::Changed));
    assert!(scene.grounds.glance("file").is_none());
    assert_eq!(kind(scene.grounds.file("file")), None);
}
