//! The conversation without a terminal: a line is a message, and the next is read when the agent has
//! answered.

use protocol::session::SessionEvent;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::screen::Frame;
use super::{Chat, next, slash};

impl Chat {
    pub(super) async fn read_lines(&mut self) -> anyhow::Result<()> {
        self.screen.draw(Frame::default())?;
        let mut lines = BufReader::new(tokio::io::stdin()).lines();
        let mut number = 0;
        while let Some(line) = lines.next_line().await? {
            if line.trim().is_empty() {
                continue;
            }
            if slash::read(&line).is_some() {
                self.submit(&line).await?;
            } else {
                number += 1;
                let id = format!("pipe-{}-{number}", std::process::id());
                match self.send(line.trim(), Some(id.clone())).await {
                    Ok(()) => self.settle(number, &id).await?,
                    Err(error) => self.sorry(&error),
                }
            }
            self.screen.draw(Frame::default())?;
            if self.leaving {
                break;
            }
        }
        self.farewell();
        self.screen.draw(Frame::default())
    }

    /// Shows what happens until the agent has answered this message.
    async fn settle(&mut self, number: usize, id: &str) -> anyhow::Result<()> {
        let mut heard = false;
        while let Some(event) = next(&mut self.events).await? {
            self.told(&event).await?;
            self.screen.draw(Frame::default())?;
            match SessionEvent::read(&event.kind, event.data) {
                Some(SessionEvent::Received(said)) => {
                    // A session's first message has an id of Ward's own.
                    heard |= said.message_id.ends_with(id) || number == 1;
                }
                Some(SessionEvent::Completed(_) | SessionEvent::Failed(_)) if heard => {
                    return Ok(());
                }
                _ => {}
            }
        }
        self.lost().await
    }
}
