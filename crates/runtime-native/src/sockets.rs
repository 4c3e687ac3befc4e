//! The sockets of a kernel: what is sent over them, and what comes that somebody wants.

use std::sync::{Arc, Mutex, PoisonError};

use jupyter_protocol::messaging::JupyterMessage;
use jupyter_zmq_client::{
    ClientControlConnection, Connection, DealerSendConnection, RawMessage,
    create_client_control_connection, create_client_iopub_connection,
    create_client_shell_connection_with_identity, create_client_stdin_connection_with_identity,
    peer_identity_for_session,
};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::comms::{self, Spoken};
use crate::heard::{self, Heard, Unread};
use crate::kernel::KernelError;
use crate::launch::Meeting;
use crate::relay::Relay;
use crate::store::random;

/// How many of a kernel's messages wait to be read.
const WAITING: usize = 64;

/// The way to a kernel: a run and messages to its widgets share it.
pub(crate) type Shell = Arc<tokio::sync::Mutex<DealerSendConnection>>;

/// Which of a kernel's messages somebody wants. The others are passed over where they come in, so
/// that what nobody asked for never stands before what somebody waits for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted(Arc<Mutex<Want>>);

#[derive(Debug, Default)]
enum Want {
    /// All: it is not known yet whether it hears.
    #[default]
    All,
    /// Those of one run.
    Run(String),
    Nothing,
}

impl Wanted {
    pub(crate) fn run(&self, id: &str) {
        self.set(Want::Run(id.to_owned()));
    }

    pub(crate) fn nothing(&self) {
        self.set(Want::Nothing);
    }

    /// Whether somebody waits for anything.
    pub(crate) fn is_anything(&self) -> bool {
        !matches!(
            &*self.0.lock().unwrap_or_else(PoisonError::into_inner),
            Want::Nothing
        )
    }

    fn set(&self, want: Want) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = want;
    }

    fn has(&self, message: &JupyterMessage) -> bool {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Want::All => true,
            Want::Run(id) => {
                let parent = message.parent_header.as_ref();
                parent.is_some_and(|parent| parent.msg_id == *id)
            }
            Want::Nothing => false,
        }
    }

    /// Whether a run may go without what it waits for because of this.
    fn misses(&self, unread: &Unread) -> bool {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Want::Run(id) => {
                let parent = unread.parent.as_ref();
                unread.is_missed() && parent.is_none_or(|parent| parent == id)
            }
            Want::All | Want::Nothing => false,
        }
    }
}

/// Which socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Socket {
    Shell,
    IoPub,
    Stdin,
    Control,
}

/// What a kernel sent.
pub(crate) enum Came {
    Shell(Heard),
    IoPub(Heard),
    Stdin(Heard),
    /// Something of so many bytes, which was too large to be taken.
    TooLarge(Socket, u64),
    /// Something that cannot be read, and why.
    Unread(Socket, String),
}

/// The sockets of a kernel, and the tasks that read them.
pub(crate) struct Sockets {
    pub(crate) shell: Shell,
    pub(crate) stdin: DealerSendConnection,
    pub(crate) control: ClientControlConnection,
    pub(crate) came: mpsc::Receiver<Came>,
    pub(crate) wanted: Wanted,
    readers: Vec<JoinHandle<()>>,
    _relay: Relay,
}

impl Drop for Sockets {
    fn drop(&mut self) {
        for reader in &self.readers {
            reader.abort();
        }
    }
}

impl Sockets {
    /// Connects to a kernel whose sockets are there. What it says over its comms is put apart.
    pub(crate) async fn connect(meeting: &Meeting, spoken: &Spoken) -> Result<Self, KernelError> {
        let wanted = Wanted::default();
        let (sender, came) = mpsc::channel(WAITING);
        let relay = Relay::open(meeting, &wanted, &sender)?;
        let session = random().map_err(KernelError::Talk)?;
        let talk = |error: jupyter_zmq_client::RuntimeError| KernelError::Talk(error.to_string());
        let info = &relay.info;
        // What the kernel asks on one socket is for who asked on the other.
        let identity = || peer_identity_for_session(&session).map_err(talk);
        let shell = create_client_shell_connection_with_identity(info, &session, identity()?);
        let shell = shell.await.map_err(talk)?;
        let stdin = create_client_stdin_connection_with_identity(info, &session, identity()?);
        let stdin = stdin.await.map_err(talk)?;
        let iopub = create_client_iopub_connection(info, "", &session);
        let mut iopub = iopub.await.map_err(talk)?;
        let control = create_client_control_connection(info, &session);
        let control = control.await.map_err(talk)?;
        let (shell, mut replies) = shell.split();
        let (stdin, mut questions) = stdin.split();
        let to = Passing {
            wanted: wanted.clone(),
            spoken: spoken.clone(),
            to: sender,
        };
        let (to_shell, to_stdin) = (to.clone(), to.clone());
        let readers = vec![
            tokio::spawn(async move {
                to_shell
                    .pass(&mut replies, Socket::Shell, Came::Shell)
                    .await;
            }),
            tokio::spawn(async move {
                to_stdin
                    .pass(&mut questions, Socket::Stdin, Came::Stdin)
                    .await;
            }),
            tokio::spawn(async move { to.pass(&mut iopub, Socket::IoPub, Came::IoPub).await }),
        ];
        Ok(Self {
            shell: Arc::new(tokio::sync::Mutex::new(shell)),
            stdin,
            control,
            came,
            wanted,
            readers,
            _relay: relay,
        })
    }
}

/// Where what comes on a socket goes.
#[derive(Clone)]
struct Passing {
    wanted: Wanted,
    spoken: Spoken,
    to: mpsc::Sender<Came>,
}

impl Passing {
    /// Passes on what comes. A message that is not signed as it should be is passed over, and that is
    /// logged, the more seldom the more there are; of one that cannot be read, that it came is told
    /// where a run may wait for it.
    async fn pass<S: zeromq::SocketRecv>(
        &self,
        socket: &mut Connection<S>,
        which: Socket,
        came: fn(Heard) -> Came,
    ) {
        let mut unsigned = 0_u64;
        loop {
            let came_in = match socket.socket.recv().await {
                Ok(came_in) => came_in,
                Err(error) => {
                    tracing::debug!(%error, "a kernel's socket closed");
                    return;
                }
            };
            let signed = match RawMessage::from_multipart(came_in, &socket.mac) {
                Ok(signed) => signed,
                Err(error) => {
                    unsigned += 1;
                    if unsigned.is_power_of_two() {
                        tracing::warn!(%error, socket = ?which, so_far = unsigned, "a kernel's message is not signed as it should be, and is passed over");
                    }
                    continue;
                }
            };
            let passed = match heard::read(signed) {
                Ok(heard) => {
                    if let Some(comm) = comms::from_kernel(&heard.message) {
                        self.spoken.say(comm);
                        continue;
                    }
                    self.wanted.has(&heard.message).then(|| came(heard))
                }
                Err(unread) => {
                    tracing::debug!(?unread, "a kernel's message cannot be read");
                    let is_missed = self.wanted.misses(&unread);
                    is_missed.then(|| Came::Unread(which, unread.why))
                }
            };
            if let Some(passed) = passed
                && self.to.send(passed).await.is_err()
            {
                return;
            }
        }
    }
}

pub(crate) async fn send<S: zeromq::SocketSend>(
    socket: &mut Connection<S>,
    message: JupyterMessage,
) -> Result<(), KernelError> {
    let sent = socket.send(message).await;
    sent.map_err(|error| KernelError::Talk(error.to_string()))
}
