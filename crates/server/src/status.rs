//! Which status answers which kind of failure: the one table.

use axum::http::StatusCode;
use protocol::ErrorKind;

/// The status of a failure.
pub(crate) fn status(kind: ErrorKind) -> StatusCode {
    use ErrorKind as Kind;
    match kind {
        Kind::ParseError
        | Kind::InvalidRequest
        | Kind::InvalidParams
        | Kind::BadEncoding
        | Kind::BadPattern
        | Kind::Standalone => StatusCode::BAD_REQUEST,
        Kind::Unauthorized => StatusCode::UNAUTHORIZED,
        Kind::Denied
        | Kind::Forbidden
        | Kind::WrongHost
        | Kind::WrongOrigin
        | Kind::OutsideWorkspace
        | Kind::Protected
        | Kind::PermissionDenied => StatusCode::FORBIDDEN,
        Kind::NotFound
        | Kind::Unknown
        | Kind::UnknownAction
        | Kind::UnknownRole
        | Kind::UnknownTerminal
        | Kind::MethodNotFound
        | Kind::CommandNotFound
        | Kind::NotADirectory => StatusCode::NOT_FOUND,
        Kind::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        Kind::TimedOut => StatusCode::REQUEST_TIMEOUT,
        Kind::Conflict
        | Kind::Closed
        | Kind::Changed
        | Kind::AlreadyExists
        | Kind::NotAFile
        | Kind::NotEmpty
        | Kind::NoMatch
        | Kind::AmbiguousMatch
        | Kind::PatchFailed
        | Kind::NotInitialized
        | Kind::Cancelled
        | Kind::BadPolicy => StatusCode::CONFLICT,
        Kind::TooLarge | Kind::FrameTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Kind::WrongContentType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        Kind::UpgradeRequired => StatusCode::UPGRADE_REQUIRED,
        Kind::TooManyAttempts => StatusCode::TOO_MANY_REQUESTS,
        Kind::Internal | Kind::Io | Kind::SandboxFailed => StatusCode::INTERNAL_SERVER_ERROR,
        Kind::Busy
        | Kind::ShuttingDown
        | Kind::Disconnected
        | Kind::RuntimeLost
        | Kind::RuntimeUnavailable
        | Kind::SandboxUnavailable => StatusCode::SERVICE_UNAVAILABLE,
    }
}
