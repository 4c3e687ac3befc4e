//! A double of Chat Completions for everyone who is measured with a model. It does as little as it
//! can: what it says depends only on the model's name and on how often tools have answered.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::MissedTickBehavior;

const HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const END: &str = "0\r\n\r\n";

/// What a model does.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Script {
    /// It has a file read so many times, one turn each, and then says that it is done. A turn is
    /// there at once: a few words, the call in pieces, each an event and a chunk of its own.
    Tools(usize),
    /// It says so many words, each in a chunk of its own that is sent by itself, this far apart.
    Words(usize, Duration),
}

impl Script {
    /// The model that does it.
    pub(crate) fn model(self) -> String {
        match self {
            Self::Tools(turns) => format!("tools-{turns}"),
            Self::Words(words, pause) => format!("words-{words}-{}", pause.as_micros()),
        }
    }

    fn of(model: &str) -> Option<Self> {
        let mut parts = model.split('-');
        let name = parts.next()?;
        let mut number = || parts.next()?.parse::<u64>().ok();
        match name {
            "tools" => Some(Self::Tools(number()? as usize)),
            "words" => {
                let words = number()? as usize;
                Some(Self::Words(words, Duration::from_micros(number()?)))
            }
            _ => None,
        }
    }

    /// All the text of a conversation.
    pub(crate) fn text(self) -> String {
        match self {
            Self::Tools(turns) => [LOOK.concat().repeat(turns), DONE.concat()].concat(),
            Self::Words(words, _) => (0..words).map(word).collect(),
        }
    }
}

/// How many turns a conversation can have.
const MOST_TURNS: usize = 8;
const LOOK: [&str; 4] = ["I", " look", " at", " it."];
const DONE: [&str; 2] = ["Done", "."];

fn word(number: usize) -> &'static str {
    const WORDS: [&str; 8] = [
        " the", " file", " says", " little", " but", " it", " is", " there",
    ];
    WORDS[number % WORDS.len()]
}

/// What is said, as it is sent. Made once.
struct Said {
    /// One for each turn: a call has an id of its own.
    look: [Vec<u8>; MOST_TURNS],
    done: Vec<u8>,
    words: Vec<Vec<u8>>,
    begin: Vec<u8>,
    end: Vec<u8>,
}

/// Listens from now on, for as long as the runtime that this is called in lives; `file` is what it
/// has read.
pub(crate) async fn start(file: &str) -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let said = Arc::new(Said::new(file));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let said = Arc::clone(&said);
            tokio::spawn(async move {
                if let Err(error) = serve(stream, &said).await {
                    eprintln!("bench: the double of the model: {error:#}");
                }
            });
        }
    });
    Ok(address)
}

async fn serve(mut stream: TcpStream, said: &Said) -> anyhow::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(64 * 1024);
    while let Some(body) = request(&mut stream, &mut buffer).await? {
        match script(&body)? {
            Script::Tools(turns) => {
                let made = body.matches(r#""role":"tool""#).count();
                let look = said.look.get(made).filter(|_| made < turns);
                stream.write_all(look.unwrap_or(&said.done)).await?;
            }
            Script::Words(words, pause) => {
                stream.write_all(&said.begin).await?;
                let mut clock = (!pause.is_zero()).then(|| tokio::time::interval(pause));
                for number in 0..words {
                    if let Some(clock) = &mut clock {
                        // One that is late is not made up for: they stay apart.
                        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
                        clock.tick().await;
                    }
                    let word = &said.words[number % said.words.len()];
                    stream.write_all(word).await?;
                }
                stream.write_all(&said.end).await?;
            }
        }
    }
    Ok(())
}

/// The body of the next request; none where nobody asks any more.
async fn request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> anyhow::Result<Option<String>> {
    let (head, length) = loop {
        if let Some(head) = find(buffer, b"\r\n\r\n") {
            break (head + 4, length(&buffer[..head])?);
        }
        if more(stream, buffer).await? == 0 {
            return Ok(None);
        }
    };
    while buffer.len() < head + length {
        if more(stream, buffer).await? == 0 {
            return Ok(None);
        }
    }
    let body = String::from_utf8(buffer[head..head + length].to_vec())?;
    buffer.drain(..head + length);
    Ok(Some(body))
}

/// Whoever has heard enough may also just go.
async fn more(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> anyhow::Result<usize> {
    match stream.read_buf(buffer).await {
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => Ok(0),
        read => Ok(read?),
    }
}

fn length(head: &[u8]) -> anyhow::Result<usize> {
    let head = std::str::from_utf8(head)?;
    for line in head.lines() {
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            return value.trim().parse().context("no length");
        }
    }
    bail!("a request says nothing of its length: {head}")
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|part| part == wanted)
}

fn script(body: &str) -> anyhow::Result<Script> {
    let model = body.split_once(r#""model":""#);
    let model = model.and_then(|(_, rest)| rest.split('"').next());
    model.and_then(Script::of).context("a model that nobody is")
}

impl Said {
    fn new(file: &str) -> Self {
        let arguments = json!({"path": file}).to_string();
        let (first, second) = arguments.split_at(arguments.len() / 2);
        let look = |number: usize| {
            let words = LOOK.iter().map(|word| json!({"content": word}));
            let call = [
                json!({
                    "index": 0, "id": format!("call_{number}"), "type": "function",
                    "function": {"name": "fs_read", "arguments": ""},
                }),
                json!({"index": 0, "function": {"arguments": first}}),
                json!({"index": 0, "function": {"arguments": second}}),
            ];
            let call = call.map(|fragment| json!({"tool_calls": [fragment]}));
            turn(words.chain(call), "tool_calls")
        };
        let word = |number| chunk(json!({"content": word(number)}), Value::Null).into_bytes();
        Self {
            look: std::array::from_fn(look),
            done: turn(DONE.iter().map(|word| json!({"content": word})), "stop"),
            words: (0..8).map(word).collect(),
            begin: begin().into_bytes(),
            end: end("stop").into_bytes(),
        }
    }
}

fn turn(deltas: impl Iterator<Item = Value>, finish: &str) -> Vec<u8> {
    let deltas: String = deltas.map(|delta| chunk(delta, Value::Null)).collect();
    [begin(), deltas, end(finish)].concat().into_bytes()
}

fn begin() -> String {
    let role = json!({"role": "assistant", "content": ""});
    [HEAD, &chunk(role, Value::Null)].concat()
}

fn end(finish: &str) -> String {
    let mut usage = event(json!({}), Value::Null);
    usage["choices"] = json!([]);
    usage["usage"] = json!({"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110});
    let last = [chunk(json!({}), finish.into()), framed(&usage.to_string())];
    [last.concat(), framed("[DONE]"), END.to_owned()].concat()
}

fn event(delta: Value, finish: Value) -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "double",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    })
}

fn chunk(delta: Value, finish: Value) -> String {
    framed(&event(delta, finish).to_string())
}

fn framed(data: &str) -> String {
    let event = format!("data: {data}\n\n");
    format!("{:x}\r\n{event}\r\n", event.len())
}
