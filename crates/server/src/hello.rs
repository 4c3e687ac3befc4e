//! What editors may send before they have said who they are.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use broker::{Broker, Hello};
use protocol::ErrorKind;
use store::Store;

use crate::connection::Connection;
use crate::failure::HttpFailure;

/// Lets a request through to the broker's layer, which reads a whole message of anybody: with no
/// more than it may have before somebody has said who they are.
pub(crate) async fn check<S: Store>(
    broker: &Broker<S>,
    request: Request,
) -> Result<Request, HttpFailure> {
    if !broker::is_for(request.uri().path()) {
        return Ok(request);
    }
    let (mut parts, body) = request.into_parts();
    let body = match broker.hello(&mut parts).await? {
        Hello::Known => {
            if let Some(connection) = parts.extensions.get::<Connection>() {
                connection.introduced.note();
            }
            body
        }
        Hello::Websocket => body,
        Hello::Small(limit, time) => {
            match tokio::time::timeout(time, to_bytes(body, limit)).await {
                Ok(Ok(bytes)) => Body::from(bytes),
                Ok(Err(_)) | Err(_) => {
                    return Err(HttpFailure::new(
                        ErrorKind::TooLarge,
                        format!(
                            "Say who you are first: until then a request has at most {limit} bytes, sent without delay."
                        ),
                    ));
                }
            }
        }
    };
    Ok(Request::from_parts(parts, body))
}
