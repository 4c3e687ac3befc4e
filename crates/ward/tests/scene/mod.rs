//! A scene for a test of the sandbox: a user with a home folder, a workspace and things outside
//! that a command must not reach, and the built `ward` to run commands in it.

#![allow(dead_code, reason = "each test uses its part")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test that cannot set itself up has failed"
)]

pub(crate) mod held;
pub(crate) mod tools;

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Who runs `ward exec`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum User {
    /// Whoever runs the tests.
    Current,
    /// Somebody without any rights; only root can become one.
    Unprivileged,
}

impl User {
    /// Why nobody can be this user here; none where it can be done.
    pub(crate) fn missing(self) -> Option<String> {
        if self == Self::Current {
            return None;
        }
        if !is_root() {
            return Some("only root can become another user".into());
        }
        tools::missing("setpriv")
    }
}

/// What stands between the command and the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    /// `ward exec` as it is.
    Room,
    /// `ward exec` where the kernel refuses namespaces.
    Walls,
    /// `ward exec` of the test-only build, without these layers.
    Without(&'static str),
    /// Nothing: to know whether the machine would let it happen at all.
    Nothing,
}

/// A user's folders, and a way to run commands.
#[derive(Debug)]
pub(crate) struct Scene {
    folder: tempfile::TempDir,
    pub(crate) user: User,
    pub(crate) held: Held,
    uid: u32,
    gid: u32,
}

/// A secret that no file on this machine holds by chance.
pub(crate) const SECRET: &str = "the-secret-of-this-scene-5b1d9c";

impl Scene {
    pub(crate) fn new(user: User, held: Held) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("ward-scene-")
            .tempdir()
            .unwrap();
        let (uid, gid) = match user {
            User::Current => (
                rustix::process::getuid().as_raw(),
                rustix::process::getgid().as_raw(),
            ),
            // One of its own, so that scenes side by side cannot touch each other.
            User::Unprivileged => {
                let id = 1_000_000 + std::process::id();
                (id, id)
            }
        };
        let scene = Self {
            folder,
            user,
            held,
            uid,
            gid,
        };
        std::os::unix::fs::chown(scene.path(""), Some(uid), Some(gid)).unwrap();
        for name in ["home", "work", "outside"] {
            scene.folder(name);
        }
        scene.file("outside/secret", SECRET);
        tools::copy(&tools::attack(), &scene.path("work/attack"));
        scene.own("work/attack", 0o755);
        scene
    }

    /// A name that no other scene has.
    pub(crate) fn name(&self) -> String {
        let name = self.folder.path().file_name().unwrap();
        name.to_str().unwrap().to_owned()
    }

    /// A path of the scene: `home/…`, `work/…` or `outside/…`.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The same, as a word of a command line.
    pub(crate) fn word(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Makes a folder of the user's, and those above it.
    pub(crate) fn folder(&self, name: &str) {
        let mut made = PathBuf::new();
        for part in Path::new(name) {
            made.push(part);
            if !self.folder.path().join(&made).exists() {
                std::fs::create_dir(self.folder.path().join(&made)).unwrap();
                self.own(made.to_str().unwrap(), 0o755);
            }
        }
    }

    /// Makes a file of the user's, and the folders above it.
    pub(crate) fn file(&self, name: &str, text: &str) {
        if let Some(parent) = Path::new(name).parent() {
            self.folder(parent.to_str().unwrap());
        }
        std::fs::write(self.path(name), text).unwrap();
        self.own(name, 0o644);
    }

    /// What is in a file; nothing where it is not there.
    pub(crate) fn read(&self, name: &str) -> String {
        let bytes = std::fs::read(self.path(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn own(&self, name: &str, mode: u32) {
        let path = self.path(name);
        std::os::unix::fs::chown(&path, Some(self.uid), Some(self.gid)).unwrap();
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }

    /// A program on the host, run by the scene's user.
    pub(crate) fn on_host(&self, argv: &[&str]) -> Command {
        let mut words: Vec<String> = Vec::new();
        if self.user == User::Unprivileged {
            let (uid, gid) = (
                format!("--reuid={}", self.uid),
                format!("--regid={}", self.gid),
            );
            words.extend([
                "setpriv".into(),
                uid,
                gid,
                "--clear-groups".into(),
                "--".into(),
            ]);
        }
        words.extend(argv.iter().map(|word| (*word).to_owned()));
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.path("home"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .current_dir(self.path("work"));
        command
    }

    /// A command as it is held in this scene; `flags` are those of `ward exec`.
    pub(crate) fn command(&self, flags: &[&str], argv: &[&str]) -> Command {
        let ward = match self.held {
            Held::Nothing => return self.on_host(argv),
            Held::Room | Held::Walls => tools::ward(),
            Held::Without(_) => tools::ward_layers_off(),
        };
        let mut words: Vec<&str> = Vec::new();
        if self.held == Held::Walls {
            words.extend(WITHOUT_NAMESPACES);
        }
        words.extend([ward.to_str().unwrap(), "exec"]);
        words.extend(flags);
        words.push("--");
        words.extend(argv);
        let mut command = self.on_host(&words);
        match self.held {
            Held::Walls => command.env("WARD_SANDBOX_MINIMUM", "walls"),
            Held::Without(layers) => command.env("WARD_TEST_LAYERS_OFF", layers),
            Held::Room | Held::Nothing => &mut command,
        };
        command
    }

    /// Runs a shell line to its end.
    pub(crate) fn sh(&self, line: &str) -> Output {
        self.run(&[], &["sh", "-c", line])
    }

    /// Runs the attack program to its end.
    pub(crate) fn attack(&self, words: &[&str]) -> Output {
        self.run(&[], &[&["./attack"], words].concat())
    }

    /// Runs a command to its end, and sees that it was not Ward that failed.
    pub(crate) fn run(&self, flags: &[&str], argv: &[&str]) -> Output {
        ran(self.command(flags, argv))
    }
}

/// Runs a command that was made by [`Scene::command`], and sees that it was not Ward that failed.
pub(crate) fn ran(mut command: Command) -> Output {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(
        !matches!(output.status.code(), Some(125..=127)),
        "the command itself did not run: {output:?}"
    );
    output
}

/// Runs what follows where no user namespace can be made: in one whose own limit is none.
pub(crate) const WITHOUT_NAMESPACES: &[&str] = &[
    "unshare",
    "--user",
    "--map-root-user",
    "sh",
    "-c",
    "echo 0 >/proc/sys/user/max_user_namespaces && exec \"$@\"",
    "sh",
];

/// A process that is ended with the test.
#[derive(Debug)]
pub(crate) struct Guard(pub(crate) std::process::Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether the tests are run by root.
pub(crate) fn is_root() -> bool {
    rustix::process::getuid().is_root()
}

/// Says why a test proves nothing here.
pub(crate) fn skip(why: impl AsRef<str>) {
    eprintln!("skipped: {}", why.as_ref());
}

/// Whether a file holds these bytes anywhere.
pub(crate) fn holds(path: impl AsRef<Path>, text: impl AsRef<OsStr>) -> bool {
    let bytes = std::fs::read(path).unwrap_or_default();
    let text = text.as_ref().as_encoded_bytes();
    bytes.windows(text.len()).any(|window| window == text)
}
