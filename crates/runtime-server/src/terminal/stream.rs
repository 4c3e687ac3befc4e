//! The ends of pipes and terminals, read and written without blocking.

use std::fs::File;
use std::io;

use rustix::buffer::spare_capacity;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use sandbox::Outcome;
use tokio::net::unix::pipe;
use tokio::sync::SetOnce;

/// Where a command's output comes from: a pipe's reading end, or a terminal.
#[derive(Debug)]
pub(crate) struct Source(pipe::Receiver);

/// Where a command's input goes: a pipe's writing end, or a terminal.
#[derive(Debug)]
pub(crate) struct Sink(pipe::Sender);

impl Source {
    pub(crate) fn new(file: File) -> io::Result<Self> {
        // Unchecked, because a terminal is no pipe; the event loop does not mind.
        Ok(Self(pipe::Receiver::from_file_unchecked(unblocked(file)?)?))
    }

    /// Waits for bytes and takes all that are there, as far as the buffer has room; none at the
    /// end. Once the command has ended, what is there is all that comes, whoever may still hold
    /// the other end.
    pub(crate) async fn read(
        &self,
        buffer: &mut Vec<u8>,
        end: &SetOnce<Outcome>,
    ) -> io::Result<()> {
        buffer.clear();
        let count = loop {
            let ended = tokio::select! {
                ready = self.0.readable() => ready.map(|()| false)?,
                _ = end.wait() => true,
            };
            if ended {
                // The event loop may not have heard of the last bytes yet, so it is not asked.
                break self.take(buffer)?;
            }
            if let Some(count) = self.now(buffer)? {
                break count;
            }
        };
        // A program that prints line by line has often printed more by now.
        while count > 0 && buffer.len() < buffer.capacity() {
            match self.now(buffer)? {
                Some(0) | None => break,
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// What the kernel has; 0 where there is nothing, now or any more.
    fn take(&self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        match rustix::io::read(&self.0, spare_capacity(buffer)) {
            Ok(count) => Ok(count),
            Err(Errno::AGAIN | Errno::IO) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// What is there right now; nothing where that is to come, 0 at the end.
    fn now(&self, buffer: &mut Vec<u8>) -> io::Result<Option<usize>> {
        match self.0.try_read_buf(buffer) {
            Ok(count) => Ok(Some(count)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            // How Linux says that nobody holds the other end of a terminal any more.
            Err(error) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => Ok(Some(0)),
            Err(error) => Err(error),
        }
    }
}

impl Sink {
    pub(crate) fn new(file: File) -> io::Result<Self> {
        Ok(Self(pipe::Sender::from_file_unchecked(unblocked(file)?)?))
    }

    /// Writes everything, waiting while the other end does not read.
    pub(crate) async fn write(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.0.writable().await?;
            match self.0.try_write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl std::os::fd::AsFd for Sink {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Only this process holds this end, so that making it non-blocking touches nobody else.
fn unblocked(file: File) -> io::Result<File> {
    fcntl_setfl(&file, fcntl_getfl(&file)? | OFlags::NONBLOCK)?;
    Ok(file)
}
