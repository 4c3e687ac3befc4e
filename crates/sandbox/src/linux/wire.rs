//! Messages with descriptors between Ward, a room's holder and a command's init.
//!
//! Each is one JSON value in one datagram of a SEQPACKET pair: whole or not at all, in order, and
//! the end of either side is seen by the other.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read as _, Seek as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt as _;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What goes through the socket itself; more goes through a file in memory.
const INLINE: usize = 16 * 1024;
/// Stands for a message that is in a file.
const IN_A_FILE: &[u8] = b"\0";

/// One end of a pair.
#[derive(Debug)]
pub(crate) struct Wire(OwnedFd);

impl Wire {
    /// Both ends, closed on exec.
    pub(crate) fn pair() -> io::Result<(Self, Self)> {
        let (one, other) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        Ok((Self(one), Self(other)))
    }

    /// Takes an end that came from elsewhere.
    pub(crate) fn from_fd(fd: OwnedFd) -> Self {
        Self(fd)
    }

    /// Sends one message and copies of the descriptors.
    pub(crate) fn send(&self, message: &impl Serialize, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        let bytes = serde_json::to_vec(message)?;
        if bytes.len() > INLINE {
            let file = File::from(memfd_create(c"message", MemfdFlags::CLOEXEC)?);
            file.write_all_at(&bytes, 0)?;
            let with_file: Vec<_> = [file.as_fd()]
                .into_iter()
                .chain(fds.iter().copied())
                .collect();
            return self.send_bytes(IN_A_FILE, &with_file);
        }
        self.send_bytes(&bytes, fds)
    }

    fn send_bytes(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        loop {
            match sendmsg(
                &self.0,
                &[IoSlice::new(bytes)],
                &mut control,
                SendFlags::NOSIGNAL,
            ) {
                Ok(_) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits for one message; none where the other side has ended.
    pub(crate) fn receive<T: DeserializeOwned>(&self) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
        self.receive_with(|| ())
    }

    /// Likewise, and does something whenever a signal interrupts the wait.
    pub(crate) fn receive_with<T: DeserializeOwned>(
        &self,
        mut on_signal: impl FnMut(),
    ) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
        let mut bytes = [0_u8; INLINE];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let length = loop {
            let mut into = [IoSliceMut::new(&mut bytes)];
            match recvmsg(&self.0, &mut into, &mut control, RecvFlags::CMSG_CLOEXEC) {
                Ok(message) => break message.bytes,
                Err(rustix::io::Errno::INTR) => on_signal(),
                Err(error) => return Err(error.into()),
            }
        };
        let mut fds = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                fds.extend(rights);
            }
        }
        if length == 0 {
            return Ok(None);
        }
        if &bytes[..length] != IN_A_FILE {
            return Ok(Some((serde_json::from_slice(&bytes[..length])?, fds)));
        }
        if fds.is_empty() {
            return Err(io::Error::from(io::ErrorKind::InvalidData));
        }
        let mut file = File::from(fds.remove(0));
        let mut bytes = Vec::new();
        file.rewind()?;
        file.read_to_end(&mut bytes)?;
        Ok(Some((serde_json::from_slice(&bytes)?, fds)))
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
