//! What editors may send before they have said who they are.

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use broker::{Broker, Hello};
use protocol::ErrorKind;
use store::Store;

use crate::failure::HttpFailure;

/// Runs before the broker's layer, which reads a whole message of anybody.
pub(crate) async fn check<S: Store>(
    State(broker): State<Broker<S>>,
    request: Request,
    next: Next,
) -> Response {
    let (mut parts, body) = request.into_parts();
    let hello = match broker.hello(&mut parts).await {
        Ok(hello) => hello,
        Err(failure) => return HttpFailure::from(failure).into_response(),
    };
    let body = match hello {
        Hello::Any => body,
        Hello::Small(limit, time) => {
            match tokio::time::timeout(time, to_bytes(body, limit)).await {
                Ok(Ok(bytes)) => Body::from(bytes),
                Ok(Err(_)) | Err(_) => {
                    return HttpFailure::new(
                    ErrorKind::TooLarge,
                    format!("Say who you are first: until then a request has at most {limit} bytes, sent without delay."),
                )
                .into_response();
                }
            }
        }
    };
    next.run(Request::from_parts(parts, body)).await
}
