//! How a kernel is started: in a room of its own, with a folder that both sides reach.

use std::ffi::OsString;
use std::fs::{DirBuilder, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use jupyter_protocol::{ConnectionInfo, Transport};
use sandbox::{Command, OwnFolder, Room, RoomOptions, Running, Stdio, WidenedAccess, Widening};

use crate::kernel::KernelError;
use crate::spec::{CONNECTION_FILE, KernelSpec};
use crate::store::random;

/// The longest path of a socket, with its end, that the kernel takes.
const LONGEST: usize = 107;
/// What a socket's name adds to its folder.
const SOCKET: usize = "/k-5".len();

/// The folder where a kernel's sockets are. It goes with this.
#[derive(Debug)]
pub(crate) struct Meeting {
    own: OwnFolder,
    folder: PathBuf,
    pub(crate) info: ConnectionInfo,
}

impl Meeting {
    /// A folder of this user's alone, with the file that says where the sockets will be.
    fn make(below: &Path, name: &str) -> Result<Self, KernelError> {
        let failed = |error: std::io::Error| {
            let below = below.display();
            KernelError::Folder(format!("{below} has no folder for it: {error}"))
        };
        let own = OwnFolder::make(below).map_err(failed)?;
        let folder = own.path().canonicalize().map_err(failed)?.join("k");
        DirBuilder::new()
            .mode(0o700)
            .create(&folder)
            .map_err(failed)?;
        let meeting = Self {
            info: ConnectionInfo {
                ip: folder.join("k").to_string_lossy().into_owned(),
                transport: Transport::IPC,
                shell_port: 1,
                iopub_port: 2,
                stdin_port: 3,
                control_port: 4,
                hb_port: 5,
                key: random().map_err(KernelError::Folder)?,
                signature_scheme: "hmac-sha256".to_owned(),
                kernel_name: Some(name.to_owned()),
            },
            folder,
            own,
        };
        let length = meeting.folder.as_os_str().len() + SOCKET;
        if length > LONGEST {
            return Err(KernelError::Folder(format!(
                "The path {} is too long for a socket. Set XDG_STATE_HOME to a shorter one.",
                meeting.folder.display()
            )));
        }
        let text = serde_json::to_string(&meeting.info);
        let text = text.map_err(|error| KernelError::Folder(error.to_string()))?;
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(meeting.file())
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|error| KernelError::Folder(error.to_string()))?;
        Ok(meeting)
    }

    /// The folder, which the kernel sees too.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// A folder that there can be beside it, which the kernel does not see. It goes with this too.
    pub(crate) fn beside(&self) -> PathBuf {
        self.own.path().join("r")
    }

    fn file(&self) -> PathBuf {
        self.folder.join("connection.json")
    }

    /// Whether the kernel has made its sockets. What is no socket of its own is none: a link in its
    /// place would lead somewhere that a cell may not reach.
    pub(crate) fn is_ready(&self) -> Result<bool, KernelError> {
        for port in [1, 2, 3, 4] {
            let socket = self.folder.join(format!("k-{port}"));
            match std::fs::symlink_metadata(&socket) {
                Ok(found) if found.file_type().is_socket() => {}
                Ok(_) => {
                    let why = format!("{} is no socket", socket.display());
                    return Err(KernelError::Talk(why));
                }
                Err(_) => return Ok(false),
            }
        }
        Ok(true)
    }
}

/// Starts a kernel. Blocks for some milliseconds.
pub(crate) fn launch(
    spec: &KernelSpec,
    room: &RoomOptions,
) -> Result<(Meeting, Room, Running), KernelError> {
    let meeting = Meeting::make(&room.state.join("kernels"), &spec.name)?;
    let widened = widened(spec, &meeting, room)?;
    let file = meeting.file();
    let argv = spec.argv.iter().map(|word| {
        let word = word.replace(CONNECTION_FILE, &file.to_string_lossy());
        let folder = spec.folder.to_string_lossy();
        OsString::from(word.replace("{resource_dir}", &folder))
    });
    // It has a terminal, by which it is interrupted, and nobody types there: who reads it would wait
    // for ever.
    let silent = ["/bin/sh", "-c", "exec \"$@\" </dev/null", "sh"];
    let argv = silent.map(OsString::from).into_iter().chain(argv);
    let env = spec.env.iter();
    let env = env.map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let command = Command {
        argv: argv.collect(),
        cwd: room.wall.workspace.clone(),
        env: env.collect(),
        stdio: Stdio::Pty {
            cols: 120,
            rows: 40,
        },
        timeout: None,
        widened,
    };
    let room = open(room)?;
    let running = room.spawn(command)?;
    Ok((meeting, room, running))
}

/// Opens a room that can be widened. A process with one thread would be given one that is for a
/// single command and shows nothing beyond the wall, so that there is a second one meanwhile.
fn open(options: &RoomOptions) -> Result<Room, KernelError> {
    let (done, wait) = std::sync::mpsc::channel::<()>();
    std::thread::Builder::new()
        .name("kernel-room".into())
        .spawn(move || {
            let _ = wait.recv();
        })
        .map_err(|error| KernelError::Talk(error.to_string()))?;
    let room = Room::open(options.clone());
    drop(done);
    Ok(room?)
}

/// What the kernel reaches beyond the wall: the folder of its sockets, and to read its own
/// environment, its folder, and the Python that its environment was made of.
fn widened(
    spec: &KernelSpec,
    meeting: &Meeting,
    room: &RoomOptions,
) -> Result<Vec<Widening>, KernelError> {
    let mut widened = vec![Widening {
        path: meeting.folder.clone(),
        access: WidenedAccess::Write,
    }];
    let home = std::env::home_dir().and_then(|home| home.canonicalize().ok());
    let wanted = spec.prefix.iter().cloned().chain([spec.folder.clone()]);
    for folder in wanted.chain(installation(spec)) {
        let Ok(real) = folder.canonicalize() else {
            continue;
        };
        let shown = |other: &Path| real.starts_with(other);
        let workspace = &room.wall.workspace;
        let system = ["/usr", "/opt"]
            .iter()
            .any(|system| shown(Path::new(system)));
        if system || shown(workspace) || widened.iter().any(|wide| shown(&wide.path)) {
            continue;
        }
        // An environment that holds the home folder or Ward's own would open them.
        let mut closed = home.iter().chain(&room.own).chain([&room.state]);
        if closed.any(|closed| closed.starts_with(&real)) {
            return Err(KernelError::Environment(real));
        }
        widened.push(Widening {
            path: real,
            access: WidenedAccess::Read,
        });
    }
    Ok(widened)
}

/// The Python that the kernel's program is a link to, where it is one: its programs and its library.
/// A folder counts as one only where the library is. Not all of it is shown: somebody may have
/// installed Python into a folder that holds other things too.
fn installation(spec: &KernelSpec) -> Vec<PathBuf> {
    let program = spec.argv.first().map(Path::new);
    let real = program.and_then(|program| program.canonicalize().ok());
    let Some(prefix) = real.as_deref().and_then(|real| real.parent()?.parent()) else {
        return Vec::new();
    };
    let libraries = std::fs::read_dir(prefix.join("lib"));
    let mut libraries = libraries.into_iter().flatten().flatten();
    let is_python = libraries.any(|library| {
        let name = library.file_name();
        name.as_encoded_bytes().starts_with(b"python3") && library.path().join("os.py").is_file()
    });
    match is_python {
        true => vec![prefix.join("bin"), prefix.join("lib")],
        false => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn spec(program: &Path) -> KernelSpec {
        KernelSpec {
            name: "k".into(),
            folder: "/nowhere".into(),
            argv: vec![program.display().to_string()],
            env: BTreeMap::new(),
            language: "python".into(),
            display_name: "K".into(),
            interrupted_by_message: false,
            prefix: None,
        }
    }

    #[test]
    fn of_a_linked_python_its_programs_and_its_library_are_shown_and_nothing_beside_them() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        let prefix = real.join("local");
        for made in ["bin", "lib/python3.12", "share/keyrings"] {
            std::fs::create_dir_all(prefix.join(made)).unwrap();
        }
        std::fs::write(prefix.join("bin/python3.12"), "").unwrap();
        let link = real.join("python");
        std::os::unix::fs::symlink(prefix.join("bin/python3.12"), &link).unwrap();
        assert_eq!(installation(&spec(&link)), Vec::<PathBuf>::new());
        std::fs::write(prefix.join("lib/python3.12/os.py"), "").unwrap();
        assert_eq!(
            installation(&spec(&link)),
            [prefix.join("bin"), prefix.join("lib")]
        );
    }

    #[test]
    fn a_link_to_something_else_shows_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let keys = folder.path().join("ssh/keys");
        std::fs::create_dir_all(&keys).unwrap();
        std::fs::write(keys.join("id"), "secret").unwrap();
        let link = folder.path().join("python");
        std::os::unix::fs::symlink(keys.join("id"), &link).unwrap();
        assert_eq!(installation(&spec(&link)), Vec::<PathBuf>::new());
    }
}
