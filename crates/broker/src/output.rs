//! What editors print, on its way to the gate: in order, each piece once, and no more than fits.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gate::runtime::{Output, Piece};
use protocol::Encoding;
use protocol::method::OutputStream;
use serde::Deserialize;
use tokio::sync::{mpsc, oneshot};

/// Pieces of one action that may wait; what comes then is dropped, and that is said.
const WAITING: usize = 1024;

/// Data of `action:output`.
#[derive(Debug, Deserialize)]
pub(crate) struct OutputEvent {
    id: String,
    seq: u64,
    stream: OutputStream,
    data: String,
    #[serde(default)]
    encoding: Encoding,
}

/// The actions of one connection that may print. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Outputs(Arc<Mutex<HashMap<String, Taking>>>);

/// One action that may print. Most do not, so the way is made for the first piece.
struct Taking {
    next: u64,
    output: Option<Output>,
    way: Option<Way>,
    dropped: usize,
}

/// The way of what an action prints.
struct Way {
    pieces: mpsc::Sender<Piece>,
    /// Ready when all of it was passed on.
    done: oneshot::Receiver<()>,
}

impl Way {
    fn to(output: Output) -> Self {
        let (pieces, mut coming) = mpsc::channel(WAITING);
        let (told, done) = oneshot::channel();
        tokio::spawn(async move {
            while let Some(piece) = coming.recv().await {
                output.send(piece).await;
            }
            let _ = told.send(());
        });
        Self { pieces, done }
    }
}

/// An action's output is taken until this is dropped.
pub(crate) struct Taken {
    outputs: Outputs,
    id: String,
}

impl Outputs {
    /// Takes what is printed under this id from now on.
    pub(crate) fn open(&self, id: &str, output: Output) -> Taken {
        self.all().insert(
            id.to_owned(),
            Taking {
                next: 0,
                output: Some(output),
                way: None,
                dropped: 0,
            },
        );
        Taken {
            outputs: self.clone(),
            id: id.to_owned(),
        }
    }

    /// A piece that came. One of an action that does not run here, or out of its turn, is dropped.
    pub(crate) fn take(&self, event: OutputEvent) {
        let mut all = self.all();
        let Some(taking) = all.get_mut(&event.id) else {
            tracing::debug!(
                id = event.id,
                "output of an action that does not run there was dropped"
            );
            return;
        };
        if event.seq != taking.next {
            tracing::debug!(
                id = event.id,
                seq = event.seq,
                expected = taking.next,
                "output out of turn was dropped"
            );
            return;
        }
        taking.next += 1;
        let size = event.data.len();
        let piece = Piece::Printed {
            stream: event.stream,
            data: event.data,
            encoding: event.encoding,
        };
        if let Some(output) = taking.output.take() {
            taking.way = Some(Way::to(output));
        }
        let Some(way) = &taking.way else {
            return;
        };
        // Once something is dropped everything is, so that there is one gap and not many.
        if taking.dropped > 0 || way.pieces.try_send(piece).is_err() {
            taking.dropped += size;
        }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Taking>> {
        // Nothing panics while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    /// Waits until all that came was passed on.
    pub(crate) async fn finish(self) {
        let taking = self.outputs.all().remove(&self.id);
        let Some((way, dropped)) = taking.and_then(|taking| Some((taking.way?, taking.dropped)))
        else {
            return;
        };
        let Way { pieces, done } = way;
        if dropped > 0 {
            let dropped = Piece::Printed {
                stream: OutputStream::Dropped,
                data: dropped.to_string(),
                encoding: Encoding::Utf8,
            };
            let _ = pieces.send(dropped).await;
        }
        drop(pieces);
        let _ = done.await;
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.outputs.all().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: &str, seq: u64, data: &str) -> OutputEvent {
        OutputEvent {
            id: id.to_owned(),
            seq,
            stream: OutputStream::Stdout,
            data: data.to_owned(),
            encoding: Encoding::Utf8,
        }
    }

    #[tokio::test]
    async fn output_is_passed_on_in_order_once_and_only_of_what_runs_there() {
        let (send, mut got) = mpsc::channel(16);
        let send = Mutex::new(Some(send));
        let output = Output::new(move |mut pieces| {
            let send = send.lock().unwrap().take().unwrap();
            tokio::spawn(async move {
                while let Some(piece) = pieces.recv().await {
                    let _ = send.send(piece).await;
                }
            });
        });
        let outputs = Outputs::default();
        let taken = outputs.open("mine", output);
        for (id, seq, data) in [
            ("mine", 0, "a"),
            ("other", 0, "x"),
            ("mine", 0, "again"),
            ("mine", 2, "too early"),
            ("mine", 1, "b"),
        ] {
            outputs.take(event(id, seq, data));
        }
        taken.finish().await;
        outputs.take(event("mine", 2, "too late"));
        let mut all = String::new();
        while let Some(Piece::Printed { data, .. }) = got.recv().await {
            all.push_str(&data);
        }
        assert_eq!(all, "ab");
    }
}
