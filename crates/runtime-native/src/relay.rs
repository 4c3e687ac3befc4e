//! What stands between a kernel's sockets and whoever reads them: a message of a kernel's that is
//! larger than a limit does not come through, and that is told. The sockets' own code would make room
//! for whatever length a kernel names.
//!
//! It reads of ZMTP, which the sockets speak, no more than how long a frame is and whether it is the
//! last of its message.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

use jupyter_protocol::ConnectionInfo;
use rustix::fs::OFlags;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::kernel::KernelError;
use crate::launch::Meeting;
use crate::sockets::{Came, Socket, Wanted};

/// The largest message that is taken.
pub(crate) const LARGEST: u64 = 64 << 20;
/// What a frame counts for beside its bytes, so that there are not too many of them either.
const FRAME: u64 = 64;
/// How long the greeting is, before the first frame.
const GREETING: u64 = 64;
/// How much is read at a time.
const READ: usize = 64 << 10;

/// The bits of a frame's first byte.
const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;

/// The other ends of a kernel's sockets, in a folder that the kernel does not see.
#[derive(Debug)]
pub(crate) struct Relay {
    /// Where they are.
    pub(crate) info: ConnectionInfo,
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for Relay {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Relay {
    /// Stands before the sockets of a kernel. What is not let through is told there, where anything
    /// is wanted.
    pub(crate) fn open(
        meeting: &Meeting,
        wanted: &Wanted,
        told: &mpsc::Sender<Came>,
    ) -> Result<Self, KernelError> {
        let failed = |error: io::Error| KernelError::Folder(error.to_string());
        let folder = meeting.beside();
        DirBuilder::new()
            .mode(0o700)
            .create(&folder)
            .map_err(failed)?;
        let mut relay = Self {
            info: ConnectionInfo {
                ip: folder.join("k").to_string_lossy().into_owned(),
                ..meeting.info.clone()
            },
            tasks: Vec::new(),
        };
        for (port, socket) in [
            (relay.info.shell_port, Socket::Shell),
            (relay.info.iopub_port, Socket::IoPub),
            (relay.info.stdin_port, Socket::Stdin),
            (relay.info.control_port, Socket::Control),
        ] {
            let name = format!("k-{port}");
            let here = UnixListener::bind(folder.join(&name)).map_err(failed)?;
            let there = meeting.folder().join(&name);
            let (wanted, told) = (wanted.clone(), told.clone());
            relay.tasks.push(tokio::spawn(async move {
                let ended = relayed(here, &there, socket, &wanted, &told).await;
                if let Err(error) = ended {
                    tracing::debug!(%error, ?socket, "a kernel's socket closed");
                }
            }));
        }
        Ok(relay)
    }
}

async fn relayed(
    here: UnixListener,
    there: &Path,
    socket: Socket,
    wanted: &Wanted,
    told: &mpsc::Sender<Came>,
) -> io::Result<()> {
    let (mut ours, _) = here.accept().await?;
    // Nobody comes a second time.
    drop(here);
    let mut theirs = connect(there).await?;
    let (from_us, mut to_us) = ours.split();
    let (from_them, mut to_them) = theirs.split();
    let mut from_us = BufReader::with_capacity(READ, from_us);
    let up = async {
        tokio::io::copy_buf(&mut from_us, &mut to_them)
            .await
            .map(drop)
    };
    let down = async {
        let mut from = BufReader::with_capacity(READ, from_them);
        // As it comes: each side waits for a part of the other's.
        tokio::io::copy(&mut (&mut from).take(GREETING), &mut to_us).await?;
        loop {
            match next(&mut from, LARGEST).await? {
                Message::Whole(message) => to_us.write_all(&message).await?,
                Message::TooLarge(bytes) => {
                    tracing::warn!(bytes, ?socket, "a message of a kernel's was too large");
                    if wanted.is_anything() {
                        // Whoever would be told is gone together with this.
                        let _ = told.send(Came::TooLarge(socket, bytes)).await;
                    }
                }
            }
        }
    };
    tokio::select! {
        ended = up => ended,
        ended = down => ended,
    }
}

/// Connects to a kernel's socket: to what is a socket in the kernel's own folder, and is not a link
/// that leads elsewhere by the time it is opened.
async fn connect(there: &Path) -> io::Result<UnixStream> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW;
    #[expect(clippy::cast_possible_wrap, reason = "flags, as the system has them")]
    let held = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits() as i32)
        .open(there)?;
    if !held.metadata()?.file_type().is_socket() {
        return Err(io::Error::other("it is no socket"));
    }
    UnixStream::connect(format!("/proc/self/fd/{}", held.as_raw_fd())).await
}

/// What a kernel sent.
#[derive(Debug, PartialEq)]
enum Message {
    /// All of it, as it came.
    Whole(Vec<u8>),
    /// It was beyond the limit, with so many bytes, and is gone.
    TooLarge(u64),
}

/// Reads the next message to its end; one beyond the limit takes no room.
async fn next(from: &mut (impl AsyncRead + Unpin), limit: u64) -> io::Result<Message> {
    let mut message = Vec::new();
    let mut size: u64 = 0;
    loop {
        let flags = from.read_u8().await?;
        let length = match flags & LONG {
            0 => u64::from(from.read_u8().await?),
            _ => from.read_u64().await?,
        };
        size = size.saturating_add(length).saturating_add(FRAME);
        let read = if size <= limit {
            message.push(flags);
            let written = length.to_be_bytes();
            match flags & LONG {
                // It was read as one byte.
                0 => message.extend_from_slice(&written[7..]),
                _ => message.extend_from_slice(&written),
            }
            // The room is made as the bytes come, not as their number is named.
            let read = from.take(length).read_to_end(&mut message).await?;
            read as u64
        } else {
            message = Vec::new();
            tokio::io::copy(&mut from.take(length), &mut tokio::io::sink()).await?
        };
        if read < length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if flags & MORE == 0 || flags & COMMAND != 0 {
            break;
        }
    }
    Ok(match size <= limit {
        true => Message::Whole(message),
        false => Message::TooLarge(size),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: u64 = 1_000;

    fn frame(flags: u8, bytes: &[u8]) -> Vec<u8> {
        let long = bytes.len() > 255;
        let mut frame = vec![flags | if long { LONG } else { 0 }];
        match long {
            true => frame.extend((bytes.len() as u64).to_be_bytes()),
            false => frame.push(u8::try_from(bytes.len()).unwrap()),
        }
        frame.extend(bytes);
        frame
    }

    /// What comes of these frames.
    async fn passed(frames: &[Vec<u8>]) -> Vec<Message> {
        let sent = frames.concat();
        let mut from = sent.as_slice();
        let mut all = Vec::new();
        loop {
            match next(&mut from, LIMIT).await {
                Ok(message) => all.push(message),
                Err(error) => {
                    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
                    return all;
                }
            }
        }
    }

    #[tokio::test]
    async fn a_message_beyond_the_limit_is_dropped_whole_and_the_next_one_comes() {
        let ready = frame(COMMAND, b"READY");
        let small = [frame(MORE, b"topic"), frame(0, &[7; 500])].concat();
        let large = [
            frame(MORE, b"t"),
            frame(MORE, &[8; 400]),
            frame(0, &[9; 600]),
        ]
        .concat();
        assert_eq!(
            passed(&[ready.clone(), small.clone(), large, small.clone()]).await,
            [
                Message::Whole(ready),
                Message::Whole(small.clone()),
                Message::TooLarge(1 + 400 + 600 + 3 * FRAME),
                Message::Whole(small),
            ]
        );
    }

    #[tokio::test]
    async fn many_empty_frames_are_a_large_message_too() {
        let mut frames = vec![frame(MORE, b""); 100];
        frames.push(frame(0, b""));
        frames.push(frame(0, b"after"));
        let after = Message::Whole(frame(0, b"after"));
        assert_eq!(
            passed(&frames).await,
            [Message::TooLarge(101 * FRAME), after]
        );
    }

    #[tokio::test]
    async fn no_room_is_made_for_a_length_that_is_only_named() {
        for length in [u64::MAX, i64::MAX as u64, LIMIT] {
            let mut named = vec![LONG];
            named.extend(length.to_be_bytes());
            named.extend([1; 100]);
            assert_eq!(passed(&[named]).await, []);
        }
    }
}
