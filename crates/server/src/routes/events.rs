//! `GET /events`: a websocket over which a client follows as much as it likes. To a host a browser
//! has six connections, for all tabs together, and each answer that goes on takes one; websockets
//! are not counted among them.
//!
//! What is followed is asked for by its address and told as a `GET` of it would: who may, from
//! where and until when is the operation's own matter, and is looked at each time.

use std::collections::HashMap;
use std::future::ready;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    AUTHORIZATION, COOKIE, HeaderMap, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
};
use axum::http::{HeaderValue, Uri};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream::{self, AbortHandle, SelectAll, Stream, abortable};
use futures_util::{SinkExt as _, StreamExt as _};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use protocol::ErrorKind;
use protocol::http::{Told, Wish};
use store::Store;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tower::ServiceExt as _;

use crate::app::App;
use crate::auth::Caller;
use crate::connection::Connection;
use crate::failure::HttpFailure;
use crate::sse::{KEEP_ALIVE, LAST};
use crate::{streams, upgrade};

const PROTOCOL: &str = "websocket";
/// What a client may say at once, in bytes, and follow at once.
const MAX_WISH: usize = 16 * 1024;
const MAX_FOLLOWED: usize = 64;

pub(crate) async fn open<S: Store>(
    State(app): State<Arc<App<S>>>,
    caller: Caller,
    connection: Connection,
    mut request: Request,
) -> Result<Response, HttpFailure> {
    let key = request.headers().get(SEC_WEBSOCKET_KEY).cloned();
    let (Some(key), Some(upgrade)) = (key, upgrade::asked(&mut request, PROTOCOL)) else {
        return Ok(upgrade::required(
            PROTOCOL,
            "This is followed over a websocket. Each of the operations that tell events can also be asked by itself.",
        ));
    };
    let hold = app.hold(&caller)?;
    let stop = connection.stop.clone();
    let desk = Desk {
        streams: streams(&app),
        credentials: credentials(request.headers()),
        connection,
    };
    tokio::spawn(async move {
        let Some(stream) = upgrade::made(upgrade).await else {
            return;
        };
        let limits = WebSocketConfig::default()
            .max_message_size(Some(MAX_WISH))
            .max_frame_size(Some(MAX_WISH));
        let socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(limits)).await;
        tokio::select! {
            biased;
            () = caller.gone(&app.tokens) => {}
            () = stop.cancelled() => {}
            // The connection ends in any case.
            _ = desk.serve(socket) => {}
        }
        drop(hold);
    });
    let mut response = upgrade::switching(PROTOCOL);
    if let Ok(accept) = HeaderValue::from_str(&derive_accept_key(key.as_bytes())) {
        response.headers_mut().insert(SEC_WEBSOCKET_ACCEPT, accept);
    }
    Ok(response)
}

/// What shows who asks.
fn credentials(headers: &HeaderMap) -> HeaderMap {
    let mut kept = HeaderMap::new();
    for name in [AUTHORIZATION, COOKIE] {
        for value in headers.get_all(&name) {
            kept.append(name.clone(), value.clone());
        }
    }
    kept
}

/// Where one client's wishes are answered.
struct Desk {
    streams: Router,
    credentials: HeaderMap,
    connection: Connection,
}

impl Desk {
    /// Until the client has gone, follows nothing for a while or says what cannot be read.
    async fn serve(
        self,
        mut socket: WebSocketStream<TokioIo<Upgraded>>,
    ) -> Result<(), tokio_tungstenite::tungstenite::Error> {
        let mut told = SelectAll::new();
        let mut followed: HashMap<u64, AbortHandle> = HashMap::new();
        loop {
            tokio::select! {
                said = socket.next() => {
                    let text = match said {
                        Some(Ok(Message::Text(text))) => text,
                        Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
                        Some(Ok(_) | Err(_)) | None => return Ok(()),
                    };
                    match serde_json::from_str(&text) {
                        Ok(Wish::Follow { id, path, after }) => {
                            let asked = if followed.len() < MAX_FOLLOWED {
                                self.request(&path, after)
                            } else {
                                Err(busy())
                            };
                            let (pieces, stop) = abortable(self.answer(id, asked));
                            if let Some(other) = followed.insert(id, stop) {
                                other.abort();
                            }
                            told.push(Box::pin(pieces));
                        }
                        Ok(Wish::Stop { id }) => {
                            if let Some(stop) = followed.remove(&id) {
                                stop.abort();
                            }
                        }
                        Err(_) => return socket.close(Some(unreadable())).await,
                    }
                }
                Some(piece) = told.next() => {
                    if let Told::Ended { id } = &piece {
                        followed.remove(id);
                    }
                    // Only what is not JSON could fail.
                    let text = serde_json::to_string(&piece).unwrap_or_default();
                    socket.send(text.into()).await?;
                }
                // Where nothing is told, nobody would notice that the client has gone.
                () = tokio::time::sleep(KEEP_ALIVE), if told.is_empty() => return Ok(()),
            }
        }
    }

    /// What the client would have sent for this alone.
    fn request(&self, path: &str, after: Option<u64>) -> Result<Request, HttpFailure> {
        let uri: Uri = path.parse().map_err(|_| {
            HttpFailure::new(
                ErrorKind::InvalidParams,
                "`path` is that of an operation that tells events.",
            )
        })?;
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = uri;
        *request.headers_mut() = self.credentials.clone();
        if let Some(after) = after {
            request.headers_mut().insert(LAST, after.into());
        }
        request.extensions_mut().insert(self.connection.clone());
        Ok(request)
    }

    /// The answer to it, piece by piece.
    fn answer(
        &self,
        id: u64,
        asked: Result<Request, HttpFailure>,
    ) -> impl Stream<Item = Told> + Send + use<> {
        let streams = self.streams.clone();
        let answered = async move {
            match asked {
                Ok(request) => streams.oneshot(request).await.into_response(),
                Err(failure) => failure.into_response(),
            }
        };
        stream::once(answered).flat_map(move |response| {
            let status = response.status().as_u16();
            let pieces = response.into_body().into_data_stream();
            let pieces = pieces.filter_map(|piece| ready(piece.ok()));
            let pieces = pieces.map(move |piece| Told::Piece {
                id,
                data: String::from_utf8_lossy(&piece).into_owned(),
            });
            stream::iter([Told::Answered { id, status }])
                .chain(pieces)
                .chain(stream::iter([Told::Ended { id }]))
        })
    }
}

fn busy() -> HttpFailure {
    HttpFailure::new(
        ErrorKind::Busy,
        format!(
            "{MAX_FOLLOWED} things are followed over this connection already. Stop one of them."
        ),
    )
}

fn unreadable() -> CloseFrame {
    CloseFrame {
        code: CloseCode::Policy,
        reason: r#"Say {"follow": {"id", "path", "after"?}} or {"stop": {"id"}}."#.into(),
    }
}
