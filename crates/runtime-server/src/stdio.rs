//! The runtime on standard input and output, for whoever started it.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::sync::Arc;

use protocol::method::Authority;
use rpc::End;
use rustix::fs::FileType;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio_util::sync::CancellationToken;

use crate::runtime::{Entrance, Runtime};

/// Standard input, as bytes that the event loop waits for.
pub type Reader = Box<dyn AsyncRead + Send + Unpin>;
/// Standard output.
pub type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// Serves the one client on standard input and output, a gate or not, until it says `exit`, closes
/// its end, or `stop` is cancelled. When this returns nothing is left running.
///
/// Nothing else may write to standard output.
pub async fn serve_stdio(
    runtime: Arc<Runtime>,
    authority: Authority,
    stop: CancellationToken,
) -> io::Result<End> {
    let (reader, writer) = standard_streams()?;
    let entrance = match authority {
        Authority::Standalone => Entrance::Pipe,
        Authority::Gated => Entrance::Gate,
    };
    Ok(runtime.serve(reader, writer, entrance, stop).await)
}

/// Standard input and output. Nothing else may use them from now on.
pub fn standard_streams() -> io::Result<(Reader, Writer)> {
    Ok((reader(io::stdin().as_fd())?, writer(io::stdout().as_fd())?))
}

/// Pipes and sockets are watched by the event loop. Opening a pipe anew makes the end non-blocking
/// for this process alone; it may be shared with others.
fn reader(fd: BorrowedFd<'_>) -> io::Result<Reader> {
    match kind(fd)? {
        FileType::Fifo => match pipe::OpenOptions::new().open_receiver("/proc/self/fd/0") {
            Ok(pipe) => Ok(Box::new(pipe)),
            Err(_) => thread_reader(fd),
        },
        FileType::Socket => Ok(Box::new(socket(fd)?)),
        _ => thread_reader(fd),
    }
}

fn writer(fd: BorrowedFd<'_>) -> io::Result<Writer> {
    match kind(fd)? {
        FileType::Fifo => match pipe::OpenOptions::new().open_sender("/proc/self/fd/1") {
            Ok(pipe) => Ok(Box::new(pipe)),
            Err(_) => Ok(Box::new(tokio::io::stdout())),
        },
        FileType::Socket => Ok(Box::new(socket(fd)?)),
        _ => Ok(Box::new(tokio::io::stdout())),
    }
}

fn kind(fd: BorrowedFd<'_>) -> io::Result<FileType> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode))
}

/// Node gives its children sockets instead of pipes, one for each direction.
fn socket(fd: BorrowedFd<'_>) -> io::Result<UnixStream> {
    let socket = StdUnixStream::from(fd.try_clone_to_owned()?);
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}

/// Files and terminals cannot be watched. A thread reads them; being detached, it keeps nobody
/// from ending, unlike one of the event loop's own.
fn thread_reader(fd: BorrowedFd<'_>) -> io::Result<Reader> {
    let mut file = File::from(fd.try_clone_to_owned()?);
    let (here, there) = StdUnixStream::pair()?;
    std::thread::Builder::new()
        .name("stdin".into())
        .spawn(move || {
            let mut to = there;
            let mut buffer = vec![0; 64 * 1024];
            while let Ok(count @ 1..) = file.read(&mut buffer) {
                if to.write_all(&buffer[..count]).is_err() {
                    break;
                }
            }
        })?;
    here.set_nonblocking(true)?;
    Ok(Box::new(UnixStream::from_std(here)?))
}
