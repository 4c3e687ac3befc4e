//! What a room will look like, worked out before it is built: by Ward, outside, where everything
//! can still be seen.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use protocol::sandbox::Tier;
use serde::{Deserialize, Serialize};

use super::landlock::{Rules, Tcp};
use super::layers::{Off, on};
use super::toolchains::{self, Part};
use crate::error::SandboxError;
use crate::wall::{Net, Wall};

/// Where the system keeps what every program needs.
const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    // Not all of /nix: its daemon listens there.
    "/nix/store",
    "/nix/var/nix/profiles",
    "/run/current-system",
    "/sys/devices/system/cpu",
];

/// Devices that a command may use where it sees all of them.
const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/pts",
    "/dev/ptmx",
];

/// Folders that cannot be a workspace: the wall around them would be none.
const NEVER_A_WORKSPACE: &[&str] = &[
    "/", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/opt", "/nix", "/proc", "/sys",
    "/dev", "/run", "/var", "/tmp", "/home", "/boot",
];

/// The scratch home's name in the scratch.
pub(crate) const HOME: &str = "home";
/// The name of the folder for what is temporary, where `/tmp` cannot be private.
pub(crate) const TEMPORARY: &str = "tmp";

/// A room to be built. Paths are the same inside and outside, so that what a tool prints is true
/// for the person who reads it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// How strongly it shall hold: a room, or walls alone.
    pub(crate) tier: Tier,
    pub(crate) workspace: PathBuf,
    /// The home folder's path; what appears there is `scratch`.
    pub(crate) home: PathBuf,
    /// Where the scratch home and the session's own layer of caches are kept.
    pub(crate) scratch: Scratch,
    /// What git needs to know for a commit.
    pub(crate) git_identity: Option<String>,
    /// Folders and files to read and execute.
    pub(crate) readable: Vec<PathBuf>,
    /// Symbolic links of the system's, such as `/bin`.
    pub(crate) links: Vec<(PathBuf, PathBuf)>,
    /// Package caches: reads see what the user has, writes stay in the session.
    pub(crate) caches: Vec<PathBuf>,
    /// Covered by nothing: secrets that the user may read and a command may not.
    pub(crate) masked: Vec<PathBuf>,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Size of the private `/tmp`.
    pub(crate) tmp: u64,
    /// Processes and threads that one command may have.
    pub(crate) pids: u32,
    /// Bytes of memory where no cgroup holds it.
    pub(crate) memory: u64,
    /// Whether a control group holds it.
    pub(crate) grouped: bool,
    /// Whether any host may be reached.
    pub(crate) reaches_hosts: bool,
    /// Whether somebody outside talks to what it runs, over sockets that it makes.
    pub(crate) listens: bool,
    /// Whether its commands are held at all.
    pub(crate) trust: Trust,
}

/// Whether the commands of a room are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Trust {
    /// As strongly as the tier says.
    None,
    /// Not at all, and because somebody said so: they can do what their user can.
    Full,
}

/// Where a room keeps what it writes outside the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Scratch {
    /// In a folder on disk, for as long as a session lasts.
    Folder(PathBuf),
    /// In memory: for one command this is much quicker than making and deleting folders.
    Memory,
    /// Nowhere: who is trusted writes where they want.
    None,
}

impl Plan {
    /// Works a room out. `own` are Ward's own folders.
    pub(crate) fn new(
        tier: Tier,
        wall: &Wall,
        own: &[&Path],
        scratch: Scratch,
    ) -> Result<Self, SandboxError> {
        let home = home();
        let workspace = usable_workspace(&wall.workspace, &home, own)?;
        let git_identity = toolchains::git_identity(&home);
        let (mut readable, mut links, mut caches) = (Vec::new(), Vec::new(), Vec::new());
        for path in SYSTEM.iter().map(PathBuf::from) {
            let Ok(metadata) = path.symlink_metadata() else {
                continue;
            };
            if !metadata.is_symlink() {
                readable.push(path);
            } else if let Ok(target) = std::fs::read_link(&path) {
                links.push((path, target));
            }
        }
        for (path, part) in toolchains::found(&home) {
            if path.starts_with(&workspace) || workspace.starts_with(&path) {
                continue;
            }
            match part {
                Part::Cache => caches.push(path),
                Part::Tools | Part::Settings => readable.push(path),
            }
        }
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        let masked = if uid.is_root() {
            owners_only(Path::new("/etc"))
        } else {
            Vec::new()
        };
        Ok(Self {
            tier,
            workspace,
            home,
            scratch,
            git_identity,
            readable,
            links,
            caches,
            masked,
            uid: uid.as_raw(),
            gid: gid.as_raw(),
            // What lies in memory must not be a way around its bound.
            tmp: wall.limits.tmp.min(wall.limits.memory),
            pids: wall.limits.pids,
            memory: wall.limits.memory,
            grouped: false,
            reaches_hosts: match wall.net {
                Net::None | Net::Listening => false,
                Net::Hosts(_) | Net::Judged(_) => true,
            },
            listens: wall.net == Net::Listening,
            trust: Trust::None,
        })
    }

    /// A room for commands that are trusted: it holds nothing.
    pub(crate) fn trusted() -> Self {
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        Self {
            tier: Tier::None,
            workspace: "/".into(),
            home: home(),
            scratch: Scratch::None,
            git_identity: None,
            readable: Vec::new(),
            links: Vec::new(),
            caches: Vec::new(),
            masked: Vec::new(),
            uid: uid.as_raw(),
            gid: gid.as_raw(),
            tmp: 0,
            pids: u32::MAX,
            memory: u64::MAX,
            grouped: false,
            reaches_hosts: true,
            listens: true,
            trust: Trust::Full,
        }
    }

    /// Whether the room is left after one command, so that nothing need be apart for it.
    pub(crate) fn is_for_one_command(&self) -> bool {
        self.scratch == Scratch::Memory
    }

    /// What a command may open, in Landlock's terms.
    pub(crate) fn rules(&self, proxy_port: u16) -> Rules {
        if self.tier == Tier::Room {
            let shared = ["/tmp", "/dev/shm"].map(PathBuf::from);
            return Rules {
                // The root holds only what may be read. A rule on it also covers the /proc that
                // is mounted later.
                readable: vec!["/".into()],
                writable: [self.workspace.clone(), self.home.clone()]
                    .into_iter()
                    .chain(shared)
                    .collect(),
                devices: vec!["/dev".into()],
                granted: Vec::new(),
                tcp: Tcp::Elsewhere,
            };
        }
        let mut readable = self.readable.clone();
        readable.extend(self.links.iter().map(|(link, _)| link.clone()));
        readable.extend(self.caches.iter().cloned());
        readable.push("/proc".into());
        Rules {
            readable,
            writable: vec![self.workspace.clone(), self.scratch_folder().to_owned()],
            devices: DEVICES.iter().map(PathBuf::from).collect(),
            granted: Vec::new(),
            tcp: if self.reaches_hosts {
                Tcp::OnlyTo(proxy_port)
            } else {
                Tcp::Closed
            },
        }
    }

    /// The home folder as a command is told it.
    pub(crate) fn home_inside(&self) -> PathBuf {
        if self.tier == Tier::Room {
            self.home.clone()
        } else {
            self.scratch_folder().join(HOME)
        }
    }

    /// The folder that a room without namespaces keeps its scratch in.
    pub(crate) fn scratch_folder(&self) -> &Path {
        match &self.scratch {
            Scratch::Folder(folder) => folder,
            Scratch::Memory | Scratch::None => Path::new("/tmp"),
        }
    }

    /// The environment of a command, before what its request adds.
    pub(crate) fn environment(&self) -> Vec<(OsString, OsString)> {
        let mut environment: Vec<(OsString, OsString)> = std::env::vars_os()
            .filter(|(name, value)| passed(name) || self.passed_in_trust(name, value))
            .collect();
        let mut set = |name: &str, value: &OsStr| environment.push((name.into(), value.into()));
        if std::env::var_os("PATH").is_none() {
            set("PATH", OsStr::new("/usr/local/bin:/usr/bin:/bin"));
        }
        set("WARD_SANDBOX", OsStr::new(self.tier.as_str()));
        if self.trust == Trust::Full {
            return environment;
        }
        set("HOME", self.home_inside().as_os_str());
        if self.tier == Tier::Room {
            set("TMPDIR", OsStr::new("/tmp"));
        } else {
            set("TMPDIR", self.scratch_folder().join(TEMPORARY).as_os_str());
            // The toolchain stays where it is, though the home folder is elsewhere.
            set("RUSTUP_HOME", self.home.join(".rustup").as_os_str());
        }
        environment
    }

    /// Whether a command that is trusted gets this variable too: where its user's things are, and
    /// how to the network, but for a proxy's password.
    fn passed_in_trust(&self, name: &OsStr, value: &OsStr) -> bool {
        let Some(name) = name.to_str().filter(|_| self.trust == Trust::Full) else {
            return false;
        };
        let proxy = || {
            let plain = !value.as_encoded_bytes().contains(&b'@');
            plain && PROXIES.iter().any(|proxy| name.eq_ignore_ascii_case(proxy))
        };
        PASSED_IN_TRUST.contains(&name) || proxy()
    }
}

/// The user's home folder, or a name for one where there is none.
pub(crate) fn home() -> PathBuf {
    std::env::var_os("HOME")
        .map(PathBuf::from)
        .filter(|home| home.is_absolute() && home.parent().is_some())
        .map_or_else(
            || PathBuf::from("/home/ward"),
            |home| home.canonicalize().unwrap_or(home),
        )
}

/// Whether a command gets this variable from Ward's own environment.
fn passed(name: &OsStr) -> bool {
    !on(Off::Environment)
        || name
            .to_str()
            .is_some_and(|name| PASSED.contains(&name) || name.starts_with("LC_"))
}

pub(crate) fn usable_workspace(
    given: &Path,
    home: &Path,
    own: &[&Path],
) -> Result<PathBuf, SandboxError> {
    let refuse = |why: String| Err(SandboxError::Workspace(why));
    let workspace = match given.canonicalize() {
        Ok(path) => path,
        Err(error) => {
            return refuse(format!(
                "The workspace {} cannot be used: {error}.",
                given.display()
            ));
        }
    };
    let shown = workspace.display();
    if !workspace.is_dir() {
        return refuse(format!("The workspace {shown} is not a folder."));
    }
    if NEVER_A_WORKSPACE
        .iter()
        .any(|never| workspace == Path::new(never))
    {
        return refuse(format!(
            "{shown} belongs to the system and cannot be a workspace. Choose a project's folder with --workspace."
        ));
    }
    if home.starts_with(&workspace) {
        return refuse(format!(
            "{shown} holds your home folder with its keys, so it cannot be a workspace. Choose a project's folder with --workspace."
        ));
    }
    let holds = |own: &&Path| {
        own.canonicalize()
            .is_ok_and(|own| own.starts_with(&workspace))
    };
    if own.iter().any(holds) {
        return refuse(format!(
            "Ward's own files are inside {shown}, so it cannot be a workspace. Choose a project's folder with --workspace."
        ));
    }
    Ok(workspace)
}

/// What below `folder` only its owner may read. For root, whom permissions do not stop.
fn owners_only(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            // The folder itself tells a link from the rest; most of /etc are links, and to ask about
            // each of them is most of the time that this takes.
            if entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
                continue;
            }
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            let world = if metadata.is_dir() { 0o5 } else { 0o4 };
            if metadata.mode() & world != world {
                found.push(entry.path());
            } else if metadata.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    found
}

/// Names that a command gets from Ward's own environment: what tells a program about its place and
/// its user's language, and where toolchains and certificates are. Everything else stays outside.
const PASSED: &[&str] = &[
    "PATH",
    "LANG",
    "LANGUAGE",
    "TERM",
    "COLORTERM",
    "USER",
    "LOGNAME",
    "SHELL",
    "TZ",
    "NO_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "FORCE_COLOR",
    "COLUMNS",
    "LINES",
    "CI",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "CARGO_HOME",
    "PYENV_ROOT",
    "PYENV_VERSION",
    "NVM_DIR",
    "NVM_BIN",
    "VOLTA_HOME",
    "PNPM_HOME",
    "GOROOT",
    "GOPATH",
    "JAVA_HOME",
    "SDKMAN_DIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "GIT_SSL_CAINFO",
    "NIX_SSL_CERT_FILE",
    "PIP_CERT",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONUNBUFFERED",
];

/// What a command gets beside these where it is trusted.
const PASSED_IN_TRUST: &[&str] = &[
    "HOME",
    "TMPDIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    "XDG_RUNTIME_DIR",
    "SSH_AUTH_SOCK",
    "GPG_TTY",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "EDITOR",
    "VISUAL",
    "PAGER",
];

/// Where the network's own proxy is.
const PROXIES: &[&str] = &["http_proxy", "https_proxy", "all_proxy", "no_proxy"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_home_folder_and_what_is_above_it_are_no_workspace() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        let home = real.join("home/user");
        std::fs::create_dir_all(home.join("project")).unwrap();
        let state = real.join("state");
        let refused = |workspace: &Path| usable_workspace(workspace, &home, &[&state]).is_err();
        assert!(refused(&home));
        assert!(refused(home.parent().unwrap()));
        assert!(refused(Path::new("/")));
        assert!(refused(Path::new("/etc")));
        assert!(refused(&real.join("nowhere")));
        assert!(!refused(&home.join("project")));
    }

    #[test]
    fn what_only_its_owner_may_read_is_found_at_any_depth() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let make = |path: &str, mode| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        };
        make("open", 0o644);
        make("shadow", 0o640);
        make("ssh/host_key", 0o600);
        make("ssh/host_key.pub", 0o644);
        std::os::unix::fs::symlink("shadow", folder.path().join("link")).unwrap();
        let mut found = owners_only(folder.path());
        found.sort();
        let expected = ["shadow", "ssh/host_key"].map(|name| folder.path().join(name));
        assert_eq!(found, expected);
    }
}
