//! Whatever text is asked for as a path, what is opened is inside the workspace, and nothing
//! outside changes.

#![no_main]

use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use runtime_server::workspace::{Final, Workspace};

/// A workspace with links of every kind, beside what must not be reached.
struct Tree {
    inside: PathBuf,
    workspace: Workspace,
}

static TREE: LazyLock<Tree> = LazyLock::new(|| {
    let outer = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/path-tree");
    // An earlier run's.
    let _ = std::fs::remove_dir_all(&outer);
    let inside = outer.join("inside");
    std::fs::create_dir_all(inside.join("a/b")).expect("a folder for the tree");
    let inside = inside.canonicalize().expect("the folder was just made");
    std::fs::write(inside.join("a/b/file"), "inside").expect("a file inside");
    std::fs::write(outer.join("secret"), "outside").expect("a file outside");
    for (name, target) in [
        ("up", Path::new("..")),
        ("a/up", Path::new("../..")),
        ("a/link", Path::new("b/../b")),
        ("out", &outer.join("secret")),
        ("root", Path::new("/")),
        ("proc", Path::new("/proc/self/root")),
        ("fd", Path::new("/proc/self/fd")),
        ("absolute", &inside.join("a")),
        ("round", Path::new("round")),
        ("nowhere", Path::new("missing")),
    ] {
        symlink(target, inside.join(name)).expect("a link");
    }
    Tree {
        workspace: Workspace::open(&inside).expect("the workspace"),
        inside,
    }
});

fuzz_target!(|input: &[u8]| {
    let path = String::from_utf8_lossy(input);
    let tree = &*TREE;
    for last in [Final::Followed, Final::Itself] {
        if let Ok(found) = tree.workspace.find(&path, last) {
            // Asked of the kernel, not of the resolver.
            let fd = found.as_fd().as_raw_fd();
            let real = std::fs::read_link(format!("/proc/self/fd/{fd}")).expect("an open file");
            assert!(real.starts_with(&tree.inside), "{path:?} leads to {real:?}");
            assert_eq!(real, found.real());
        }
    }
    if let Ok(place) = tree.workspace.place(&path) {
        assert!(
            place.real().starts_with(&tree.inside),
            "{path:?} is {place:?}"
        );
        assert_ne!(place.real(), tree.inside);
    }
});
