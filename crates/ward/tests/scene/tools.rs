//! The programs that scenes use: the built `ward`, its test-only build, and the attack program.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// `ward`, where every user can execute it.
pub(crate) fn ward() -> PathBuf {
    let built = std::env::var_os("WARD_BIN")
        .map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_ward")), PathBuf::from);
    for_everyone(&built)
}

/// The build whose sandbox can be told to leave layers out.
pub(crate) fn ward_layers_off() -> PathBuf {
    let beside = || Path::new(env!("CARGO_BIN_EXE_ward")).with_file_name("ward-layers-off");
    let built = std::env::var_os("WARD_BIN_LAYERS_OFF").map_or_else(beside, PathBuf::from);
    assert!(
        built.exists(),
        "{} is missing: `cargo build -p ward --bin ward-layers-off --features test-layers-off` makes it",
        built.display()
    );
    for_everyone(&built)
}

/// The attack program, compiled once for its sources.
pub(crate) fn attack() -> PathBuf {
    // Tests run in their crate's folder.
    let mut files: Vec<PathBuf> = std::fs::read_dir("tests/attack")
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let texts: Vec<Vec<u8>> = files
        .iter()
        .map(|file| std::fs::read(file).unwrap())
        .collect();
    let programs = files
        .iter()
        .filter(|file| file.extension().is_some_and(|e| e == "c"));
    made_once(&format!("attack-{:x}", digest(&texts)), |place| {
        let status = Command::new("cc")
            .args([
                "-O1",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-D_GNU_SOURCE",
                "-pthread",
                "-o",
            ])
            .arg(place)
            .args(programs)
            .status();
        assert!(
            status.is_ok_and(|status| status.success()),
            "the attack program needs a C compiler, `cc`"
        );
    })
}

/// Copies a program, in a process of its own: were it open for writing here, a process that another
/// thread starts at that moment would hold it open, and nobody could execute it.
pub(crate) fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg(from).arg(to).status().unwrap();
    assert!(copied.success());
}

/// Why a program cannot be used; none where it is there.
pub(crate) fn missing(program: &str) -> Option<String> {
    let there = Command::new(program).arg("--version").output().is_ok();
    (!there).then(|| format!("`{program}` is missing"))
}

/// The program itself where everyone can reach it, else a copy.
fn for_everyone(program: &Path) -> PathBuf {
    let program = program.canonicalize().unwrap();
    let open = |path: &Path| {
        path.metadata()
            .is_ok_and(|m| m.permissions().mode() & 0o5 == 0o5)
    };
    if program.ancestors().all(open) {
        return program;
    }
    let metadata = program.metadata().unwrap();
    let key = digest(&[format!(
        "{:?}{}",
        metadata.modified().unwrap(),
        metadata.len()
    )]);
    let name = program.file_name().unwrap().to_str().unwrap();
    made_once(&format!("{name}-{key:x}"), |place| {
        copy(&program, place);
    })
}

/// A file below the system's temporary folder that is made at most once, however many tests run.
fn made_once(name: &str, make: impl FnOnce(&Path)) -> PathBuf {
    let uid = rustix::process::getuid().as_raw();
    let folder = std::env::temp_dir().join(format!("ward-tests-{uid}"));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o755)).unwrap();
    let place = folder.join(name);
    if !place.exists() {
        let thread = std::thread::current().id();
        let new = folder.join(format!("{name}.{}.{thread:?}", std::process::id()));
        make(&new);
        std::fs::set_permissions(&new, PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::rename(new, &place).unwrap();
        forget_older(&folder, name);
    }
    place
}

/// Takes away what was made from older sources, an hour after.
fn forget_older(folder: &Path, name: &str) {
    let kind = name.rsplit_once('-').map_or(name, |(kind, _)| kind);
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let other = entry.file_name().to_string_lossy().into_owned();
        let old = entry
            .metadata()
            .and_then(|m| m.modified())
            .is_ok_and(|at| at.elapsed().is_ok_and(|age| age.as_secs() > 3600));
        if old && other != name && other.starts_with(kind) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn digest(parts: &[impl std::hash::Hash]) -> u64 {
    let mut hasher = DefaultHasher::new();
    parts.hash(&mut hasher);
    hasher.finish()
}
