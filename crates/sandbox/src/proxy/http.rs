//! Reads the head of an HTTP request to a proxy, without doing any I/O.
//!
//! Strict on purpose: what two programs could read differently is refused, not repaired. Lines end
//! in CRLF and are never folded; there is at most one `Host`, one `Content-Length` or one
//! `Transfer-Encoding: chunked`; the target is `host:port` for CONNECT and `http://…` for the rest.
//! A plain request is written anew from what was understood: origin form, `Host` from the target,
//! nothing that concerns only the hop to the proxy.

use super::target::{Host, HostError, Target, split_port};

/// How many header fields a request may have.
const MAX_FIELDS: usize = 100;

/// A request that was understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Request {
    /// A tunnel to the target.
    Connect(Target),
    /// One plain request.
    Forward(Forward),
}

/// A plain request, ready to be sent on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Forward {
    /// Where it goes.
    pub(super) target: Target,
    /// Its head as the target is to see it, with the empty line at the end.
    pub(super) head: Vec<u8>,
    /// What follows the head.
    pub(super) body: Body,
}

/// What follows a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    /// This many bytes.
    Length(u64),
    /// Chunks, each with its length in front.
    Chunked,
}

/// Why a request was not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum HttpError {
    #[error("The request is malformed: {0}.")]
    Malformed(&'static str),
    #[error("The request is malformed: {0}.")]
    Syntax(#[from] httparse::Error),
    #[error(
        "This is a proxy. It takes `CONNECT host:port` and requests for `http://…`; for https, use CONNECT."
    )]
    NotForAProxy,
    #[error("{asked:?} is not a host and port that a connection can be made to: {why}.")]
    Target { asked: String, why: HostError },
}

/// Where the head ends, if all of it is there. Refuses bytes that no head has as soon as they come,
/// so that nobody waits for the end of a head that will never be understood.
pub(super) fn head_end(bytes: &[u8]) -> Result<Option<usize>, HttpError> {
    let mut line = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        match byte {
            b'\n' if at == 0 || bytes[at - 1] != b'\r' => {
                return Err(HttpError::Malformed(
                    "a line ends without a carriage return",
                ));
            }
            b'\n' if at == line + 1 => return Ok(Some(at + 1)),
            b'\n' => line = at + 1,
            b'\r' if bytes.get(at + 1).is_some_and(|&next| next != b'\n') => {
                return Err(HttpError::Malformed("a carriage return stands alone"));
            }
            b' ' | b'\t' if at == line => {
                return Err(HttpError::Malformed("a line begins with a space"));
            }
            b'\r' | b'\t' => {}
            0..=0x1f | 0x7f => return Err(HttpError::Malformed("it has a control character")),
            _ => {}
        }
    }
    Ok(None)
}

/// Reads a whole head, as [`head_end`] found it.
pub(super) fn parse(head: &[u8]) -> Result<Request, HttpError> {
    if head_end(head)? != Some(head.len()) {
        return Err(HttpError::Malformed("it is not one whole head"));
    }
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    let parsed = request.parse(head)?;
    let (Some(method), Some(uri), Some(version)) = (request.method, request.path, request.version)
    else {
        return Err(HttpError::Malformed("it is not one whole head"));
    };
    if parsed != httparse::Status::Complete(head.len()) {
        return Err(HttpError::Malformed("it is not one whole head"));
    }
    if !uri.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(HttpError::Malformed("its target is not plain ASCII"));
    }
    let fields = Fields(request.headers);
    let body = fields.body(version)?;
    let host = fields.host()?;

    if method == "CONNECT" {
        let target = target(uri, None)?;
        if body != Body::Length(0) {
            return Err(HttpError::Malformed("a CONNECT request has no body"));
        }
        if host.is_some_and(|host| !names(host, &target)) {
            return Err(HttpError::Malformed(
                "its Host field names another host than its target",
            ));
        }
        return Ok(Request::Connect(target));
    }
    if method.eq_ignore_ascii_case("CONNECT") {
        return Err(HttpError::Malformed("CONNECT is written in upper case"));
    }

    let (target, path) = absolute(uri)?;
    let head = fields.rewritten(method, &target, &path, version, body);
    Ok(Request::Forward(Forward { target, head, body }))
}

fn target(authority: &str, default: Option<u16>) -> Result<Target, HttpError> {
    Target::parse(authority, default).map_err(|why| HttpError::Target {
        asked: authority.to_owned(),
        why,
    })
}

/// Whether a Host field names the host of `target`; the port may be left out.
fn names(host: &str, target: &Target) -> bool {
    let (name, port) = split_port(host);
    Host::parse(name).as_ref() == Ok(&target.host)
        && port.is_none_or(|port| port == target.port.to_string())
}

/// Cuts `http://authority/path` into the target and the path in origin form.
fn absolute(uri: &str) -> Result<(Target, String), HttpError> {
    let rest = match uri.split_at_checked("http://".len()) {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http://") => rest,
        _ => return Err(HttpError::NotForAProxy),
    };
    if uri.contains('#') {
        return Err(HttpError::Malformed("its target has a fragment"));
    }
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let path = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("/{path}")
    };
    Ok((target(authority, Some(80))?, path))
}

/// The header fields of one request.
struct Fields<'h>(&'h [httparse::Header<'h>]);

impl Fields<'_> {
    /// The value of a field that may stand there once at most.
    fn once(&self, name: &str, twice: &'static str) -> Result<Option<&str>, HttpError> {
        let mut values = self
            .0
            .iter()
            .filter(|field| field.name.eq_ignore_ascii_case(name));
        let Some(field) = values.next() else {
            return Ok(None);
        };
        if values.next().is_some() {
            return Err(HttpError::Malformed(twice));
        }
        match str::from_utf8(field.value) {
            Ok(value) => Ok(Some(value.trim_matches([' ', '\t']))),
            Err(_) => Err(HttpError::Malformed("a field is not plain ASCII")),
        }
    }

    fn host(&self) -> Result<Option<&str>, HttpError> {
        self.once("host", "it has two Host fields")
    }

    fn body(&self, version: u8) -> Result<Body, HttpError> {
        let length = self.once("content-length", "it has two Content-Length fields")?;
        let coding = self.once("transfer-encoding", "it has two Transfer-Encoding fields")?;
        match (length, coding) {
            (None, None) => Ok(Body::Length(0)),
            (Some(digits), None) => parse_length(digits)
                .map(Body::Length)
                .ok_or(HttpError::Malformed("its Content-Length is not a number")),
            (None, Some(coding)) if version == 1 && coding.eq_ignore_ascii_case("chunked") => {
                Ok(Body::Chunked)
            }
            (None, Some(_)) => Err(HttpError::Malformed(
                "its Transfer-Encoding is not `chunked`",
            )),
            (Some(_), Some(_)) => Err(HttpError::Malformed(
                "it has both Content-Length and Transfer-Encoding",
            )),
        }
    }

    /// Whether a field is for the proxy, or is written anew, rather than passed on.
    fn stays_here(&self, name: &str) -> bool {
        const OURS: [&str; 8] = [
            "connection",
            "content-length",
            "host",
            "keep-alive",
            "te",
            "trailer",
            "transfer-encoding",
            "upgrade",
        ];
        let name = name.to_ascii_lowercase();
        OURS.contains(&name.as_str()) || name.starts_with("proxy-") || self.is_of_connection(&name)
    }

    /// Whether a `Connection` field says that this one is for the next hop only.
    fn is_of_connection(&self, name: &str) -> bool {
        self.0
            .iter()
            .filter(|field| field.name.eq_ignore_ascii_case("connection"))
            .flat_map(|field| field.value.split(|&byte| byte == b','))
            .any(|named| named.trim_ascii().eq_ignore_ascii_case(name.as_bytes()))
    }

    fn rewritten(
        &self,
        method: &str,
        target: &Target,
        path: &str,
        version: u8,
        body: Body,
    ) -> Vec<u8> {
        let host = match target.port {
            80 => target.host.to_string(),
            _ => target.to_string(),
        };
        let mut head = format!("{method} {path} HTTP/1.{version}\r\nHost: {host}\r\n").into_bytes();
        for field in self.0 {
            if !self.stays_here(field.name) {
                head.extend_from_slice(field.name.as_bytes());
                head.extend_from_slice(b": ");
                head.extend_from_slice(field.value);
                head.extend_from_slice(b"\r\n");
            }
        }
        match body {
            // Absent and zero differ for a request that may have a body, so what was said is said.
            Body::Length(length) if self.has("content-length") => {
                head.extend_from_slice(format!("Content-Length: {length}\r\n").as_bytes());
            }
            Body::Length(_) => {}
            Body::Chunked => head.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        }
        head.extend_from_slice(b"Connection: close\r\n\r\n");
        head
    }

    fn has(&self, name: &str) -> bool {
        self.0
            .iter()
            .any(|field| field.name.eq_ignore_ascii_case(name))
    }
}

/// Plain decimal digits, few enough not to overflow anyone's counter.
fn parse_length(digits: &str) -> Option<u64> {
    let plain = (1..=18).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    digits.parse().ok().filter(|_| plain)
}

/// The size in a chunk's first line (without its CRLF); what follows a `;` is ignored.
pub(super) fn chunk_size(line: &[u8]) -> Option<u64> {
    let line = str::from_utf8(line).ok()?;
    let digits = line
        .split_once(';')
        .map_or(line, |(digits, _)| digits)
        .trim_end_matches([' ', '\t']);
    let plain = (1..=15).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit());
    u64::from_str_radix(digits, 16).ok().filter(|_| plain)
}
