//! A proxy on loopback, a small web server behind it, and a resolver that knows a few names.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::super::judge::Pending;
use super::super::target::HostName;
use super::super::{Bounds, HostList, Judge, Proxy, ProxyHandle, Resolve};

/// How long a test waits for what must come.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// A running proxy, and where it listens.
pub(super) struct TestProxy {
    pub(super) handle: ProxyHandle,
    pub(super) address: SocketAddr,
    pub(super) names: Arc<Names>,
}

impl TestProxy {
    /// One that lets `list` through and knows `names`.
    pub(super) fn start(list: &str, names: &[(&str, &[&str])]) -> Self {
        let list = HostList::parse(list).unwrap();
        Self::with(Arc::new(list), names, Bounds::default())
    }

    pub(super) fn with(judge: Arc<dyn Judge>, names: &[(&str, &[&str])], bounds: Bounds) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let names = Arc::new(Names::new(names));
        let handle = Proxy::new(judge)
            .resolver(names.clone())
            .bounds(bounds)
            .run(listener)
            .unwrap();
        Self {
            handle,
            address,
            names,
        }
    }

    /// A client that has connected.
    pub(super) fn client(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Says `request` and answers all that comes back until the proxy closes.
    pub(super) fn say(&self, request: impl AsRef<[u8]>) -> String {
        let mut client = self.client();
        client.write_all(request.as_ref()).unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).unwrap();
        String::from_utf8(answer).unwrap()
    }

    /// What was stopped since the last call.
    pub(super) fn stopped(&self) -> Vec<String> {
        let stopped = self.handle.take_stopped();
        stopped.into_iter().map(|stopped| stopped.target).collect()
    }
}

/// Knows the names it was given, and which it was asked for.
pub(super) struct Names {
    known: HashMap<String, Vec<IpAddr>>,
    asked: Mutex<Vec<String>>,
}

impl Names {
    fn new(names: &[(&str, &[&str])]) -> Self {
        let addresses = |list: &[&str]| list.iter().map(|text| text.parse().unwrap()).collect();
        Self {
            known: names
                .iter()
                .map(|(name, list)| ((*name).to_owned(), addresses(list)))
                .collect(),
            asked: Mutex::default(),
        }
    }

    /// The names that were looked up, each time they were.
    pub(super) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl Resolve for Names {
    fn resolve<'a>(&'a self, name: &'a HostName) -> Pending<'a, io::Result<Vec<IpAddr>>> {
        self.asked.lock().unwrap().push(name.as_str().to_owned());
        let found = self.known.get(name.as_str()).cloned();
        let found = found.ok_or_else(|| io::Error::other("no such name"));
        Box::pin(std::future::ready(found))
    }
}

/// A web server on loopback that tells what it was asked.
pub(super) struct Web {
    pub(super) port: u16,
    heard: Receiver<String>,
}

impl Web {
    /// Answers `hello` to each request, once its body has come. `/redirect?to` sends elsewhere,
    /// `/silent` closes without an answer.
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (tell, heard) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let tell = tell.clone();
                std::thread::spawn(move || answer(stream?, &tell));
            }
            io::Result::Ok(())
        });
        Self { port, heard }
    }

    /// The next thing that it was asked: a request with its body.
    pub(super) fn heard(&self) -> String {
        self.heard.recv_timeout(PATIENCE).unwrap()
    }

    /// That it was asked nothing more. To be called when the client has its answer.
    pub(super) fn heard_nothing(&self) -> bool {
        self.heard.try_recv().is_err()
    }
}

/// Answers one connection, as long as it lasts.
fn answer(stream: TcpStream, tell: &Sender<String>) -> io::Result<()> {
    let mut reader = BufReader::new(&stream);
    loop {
        let mut request = String::new();
        let mut body = 0;
        let mut chunked = false;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let lower = line.to_ascii_lowercase();
            if let Some(length) = lower.strip_prefix("content-length: ") {
                body = length.trim().parse().unwrap();
            }
            chunked |= lower.starts_with("transfer-encoding: chunked");
            request += &line;
            if line == "\r\n" {
                break;
            }
        }
        let mut said = vec![0; body];
        reader.read_exact(&mut said)?;
        request += str::from_utf8(&said).unwrap();
        while chunked && !request.ends_with("\r\n0\r\n\r\n") {
            reader.read_line(&mut request)?;
        }
        let path = request.split(' ').nth(1).unwrap().to_owned();
        let closes = request.contains("Connection: close");
        tell.send(request).unwrap();
        let head = match path.split_once('?') {
            Some(("/redirect", to)) => format!("302 Found\r\nLocation: {to}"),
            _ if path == "/silent" => return Ok(()),
            _ => "200 OK".to_owned(),
        };
        write!(&stream, "HTTP/1.1 {head}\r\nContent-Length: 5\r\n\r\nhello")?;
        if closes {
            return Ok(());
        }
    }
}
