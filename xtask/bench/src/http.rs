//! A client that keeps its connection: one request after the other to a server on this machine.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, bail};

/// A request that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection.
#[derive(Debug)]
pub(crate) struct Http {
    stream: BufReader<TcpStream>,
    address: SocketAddr,
    token: Option<String>,
}

impl Http {
    pub(crate) fn connect(address: SocketAddr, token: Option<String>) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self {
            stream: BufReader::new(stream),
            address,
            token,
        })
    }

    /// What is answered, where that is a success.
    pub(crate) fn ask(&mut self, method: &str, path: &str, body: &str) -> anyhow::Result<String> {
        let mut request = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", self.address);
        if let Some(token) = &self.token {
            request.push_str(&format!("Authorization: Bearer {token}\r\n"));
        }
        if !body.is_empty() {
            let length = body.len();
            request.push_str(&format!(
                "Content-Type: application/json\r\nContent-Length: {length}\r\n"
            ));
        }
        request.push_str("\r\n");
        request.push_str(body);
        self.stream.get_mut().write_all(request.as_bytes())?;
        let (status, answer) = self.answer()?;
        if !(200..300).contains(&status) {
            bail!("`{method} {path}` was answered with {status}: {answer}");
        }
        Ok(answer)
    }

    fn answer(&mut self) -> anyhow::Result<(u16, String)> {
        let status = self.line()?;
        let code = status.split(' ').nth(1).and_then(|code| code.parse().ok());
        let code = code.with_context(|| format!("`{status}` is no answer"))?;
        let mut length = 0;
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().context("no length")?;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok((code, String::from_utf8(body)?))
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            bail!("the connection was closed");
        }
        Ok(line.trim_end().to_owned())
    }
}
