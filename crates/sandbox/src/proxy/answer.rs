//! What an HTTP client is told by the proxy itself.

use std::io;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::http::HttpError;
use super::reach::NoConnection;
use super::relay;

/// What a client is told instead of an answer from its target.
pub(super) struct Answer {
    status: u16,
    says: String,
}

impl Answer {
    pub(super) fn new(status: u16, says: &str) -> Self {
        Self {
            status,
            says: format!("{says}\n"),
        }
    }

    /// Says it, and closes the connection.
    pub(super) async fn send(self, mut client: TcpStream) -> io::Result<()> {
        let reason = match self.status {
            403 => "Forbidden",
            408 => "Request Timeout",
            431 => "Request Header Fields Too Large",
            502 => "Bad Gateway",
            504 => "Gateway Timeout",
            _ => "Bad Request",
        };
        let Self { status, says } = self;
        let length = says.len();
        let answer = format!(
            "HTTP/1.1 {status} {reason}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\nServer: ward\r\nConnection: close\r\n\r\n{says}"
        );
        client.write_all(answer.as_bytes()).await?;
        relay::close(client).await;
        Ok(())
    }
}

impl From<HttpError> for Answer {
    fn from(error: HttpError) -> Self {
        Self::new(400, &error.to_string())
    }
}

impl From<NoConnection> for Answer {
    fn from(failed: NoConnection) -> Self {
        let status = match failed {
            NoConnection::Refused(_) => 403,
            NoConnection::Unresolved(..) | NoConnection::Unreachable(..) => 502,
            NoConnection::TimedOut(_) => 504,
        };
        Self::new(status, &failed.to_string())
    }
}
