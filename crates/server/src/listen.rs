//! Listening: on an address, and on Ward's own socket. Slow and many clients have their limits.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::Router;
use axum::serve::{Listener, ListenerExt as _};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with,
};
use tokio::net::unix::UCred;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service as _;

use crate::auth::Peer;
use crate::beside;
use crate::connection::Connection;
use crate::places::Places;
use crate::user::User;

/// How long answers that are under way have when it is told to stop.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long a client has to send the head of a request, and may be idle between two.
const HEAD: Duration = Duration::from_secs(20);
/// How large the head of a request can be.
const MAX_HEAD: usize = 64 * 1024;
const MAX_HEADERS: usize = 64;
/// Connections at once, for each listener.
const MAX_CONNECTIONS: usize = 512;
/// Connections that wait to be taken.
const BACKLOG: i32 = 128;

/// Answers on an address until `stop` is ready; what is under way then has a few seconds to end.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    stop: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    // An answer is small, and waited for.
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    let about = |stream: &TcpStream, address: &SocketAddr| About {
        peer: Peer::of(address.ip()),
        beside: false,
        user: User::between(*address, stream.local_addr().ok()),
    };
    answer(listener, about, router, stop).await;
    Ok(())
}

/// Ward's own socket. Its file is gone when this is dropped.
#[derive(Debug)]
pub struct Socket {
    listener: UnixListener,
    file: SocketFile,
}

#[derive(Debug)]
struct SocketFile(PathBuf);

impl Socket {
    /// Makes the socket, for this user alone. One that nobody listens on any more is replaced; the
    /// caller owns the folder.
    pub fn bind(path: &Path) -> io::Result<Self> {
        let failed = |what: String| io::Error::new(io::ErrorKind::AddrNotAvailable, what);
        let address = SocketAddrUnix::new(path).map_err(|error| {
            failed(format!(
                "{} is too long for a socket's name ({error}). Use a data folder with a shorter path.",
                path.display()
            ))
        })?;
        match std::fs::symlink_metadata(path) {
            Ok(found) if found.file_type().is_socket() => {
                if std::os::unix::net::UnixStream::connect(path).is_ok() {
                    return Err(io::Error::new(
                        io::ErrorKind::AddrInUse,
                        format!("{} is in use by another Ward.", path.display()),
                    ));
                }
                std::fs::remove_file(path)?;
            }
            Ok(_) => {
                return Err(failed(format!(
                    "{} is there already and is no socket. Move it away.",
                    path.display()
                )));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        bind(&socket, &address)?;
        let file = SocketFile(path.to_owned());
        // Nobody can connect before it listens.
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        listen(&socket, BACKLOG)?;
        let listener = UnixListener::from_std(socket.into())?;
        Ok(Self { listener, file })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Answers on Ward's own socket until `stop` is ready, as [`serve`] does.
pub async fn serve_unix(socket: Socket, router: Router, stop: impl Future<Output = ()> + Send) {
    let Socket { listener, file } = socket;
    let about = |_: &UnixStream, other: &Option<UCred>| About {
        peer: Peer::Local,
        beside: other.as_ref().is_some_and(beside::is),
        user: User::default(),
    };
    answer(Near(listener), about, router, stop).await;
    drop(file);
}

/// A listener whose addresses are the processes at the other end.
struct Near(UnixListener);

impl Listener for Near {
    type Io = UnixStream;
    type Addr = Option<UCred>;

    async fn accept(&mut self) -> (UnixStream, Option<UCred>) {
        let (stream, _) = Listener::accept(&mut self.0).await;
        let other = stream.peer_cred().ok();
        (stream, other)
    }

    fn local_addr(&self) -> io::Result<Option<UCred>> {
        Ok(None)
    }
}

/// Who is at the other end.
struct About {
    peer: Peer,
    beside: bool,
    user: User,
}

async fn answer<L: Listener>(
    mut listener: L,
    about: impl Fn(&L::Io, &L::Addr) -> About,
    router: Router,
    stop: impl Future<Output = ()>,
) {
    let stopping = CancellationToken::new();
    let late = CancellationToken::new();
    let tasks = TaskTracker::new();
    let places = Places::new(MAX_CONNECTIONS);
    tokio::pin!(stop);
    loop {
        let next = async {
            let accepted = listener.accept().await;
            (places.take().await, accepted)
        };
        let (place, (stream, address)) = tokio::select! {
            () = &mut stop => break,
            next = next => next,
        };
        let About { peer, beside, user } = about(&stream, &address);
        let connection = Connection {
            peer,
            beside,
            user,
            introduced: place.introduced(),
            stop: stopping.clone(),
        };
        let (router, late) = (router.clone(), late.clone());
        tasks.spawn(async move {
            tokio::select! {
                () = converse(stream, router, connection) => {}
                () = late.cancelled() => {}
                () = place.gone() => tracing::debug!("a connection that said nothing made room"),
            }
        });
    }
    drop(listener);
    stopping.cancel();
    tasks.close();
    if tokio::time::timeout(PATIENCE, tasks.wait()).await.is_err() {
        late.cancel();
    }
}

/// One connection to its end.
async fn converse<I>(stream: I, router: Router, connection: Connection)
where
    I: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin + 'static,
{
    let stop = connection.stop.clone();
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        let mut request = request.map(axum::body::Body::new);
        request.extensions_mut().insert(connection.clone());
        router.clone().call(request)
    });
    let answered = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    tokio::pin!(answered);
    let ended = tokio::select! {
        ended = answered.as_mut() => ended,
        () = stop.cancelled() => {
            answered.as_mut().graceful_shutdown();
            answered.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}
