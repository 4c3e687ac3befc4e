//! The terminal: finished lines go up into the scrollback, below them stands what still changes.
//!
//! No alternate screen, so that it works in tmux and over ssh and stays to be read afterwards. Where
//! there is no terminal, lines are all there is.

use std::io::{IsTerminal as _, Write as _};

use anyhow::Context as _;
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use rustix::process::{Signal, getpid, kill_process};
use rustix::termios::{OptionalActions, OutputModes, tcgetattr, tcsetattr};

use super::text::width;

const PASTE_ON: &str = "\u{1b}[?2004h";
const PASTE_OFF: &str = "\u{1b}[?2004l";
/// Terminals that know it show all between the two at once.
const FRAME_BEGINS: &str = "\u{1b}[?2026h";
const FRAME_ENDS: &str = "\u{1b}[?2026l";

/// What stands below the finished lines.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Each no wider than the terminal.
    pub(crate) rows: Vec<String>,
    /// Where the cursor is: row and column.
    pub(crate) cursor: (usize, usize),
}

/// Where everything is shown.
pub(crate) struct Screen {
    /// Whether keys can be read and rows be drawn again.
    terminal: bool,
    colour: bool,
    /// Finished lines that are not written yet.
    lines: String,
    drawn: Frame,
    columns: usize,
    rows: usize,
}

impl Screen {
    /// The terminal, if there is one at both ends; keys come one by one from now on.
    pub(crate) fn open() -> anyhow::Result<Self> {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        let stdout = std::io::stdout();
        let terminal = !dumb && std::io::stdin().is_terminal() && stdout.is_terminal();
        let colour = anstream::AutoStream::choice(&stdout) != anstream::ColorChoice::Never;
        let mut screen = Self {
            terminal,
            colour,
            lines: String::new(),
            drawn: Frame::default(),
            columns: 80,
            rows: 24,
        };
        screen.resume()?;
        Ok(screen)
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.terminal
    }

    pub(crate) fn columns(&self) -> usize {
        self.columns
    }

    /// How many rows of a text under way are shown at most.
    pub(crate) fn room(&self) -> usize {
        (self.rows / 2).max(3)
    }

    /// Takes the terminal.
    pub(crate) fn resume(&mut self) -> anyhow::Result<()> {
        if !self.terminal {
            return Ok(());
        }
        enable_raw_mode().context("The terminal cannot be used")?;
        // Only keys are wanted raw: what others write here, such as the log, keeps its line ends.
        let stdin = std::io::stdin();
        let mut modes = tcgetattr(&stdin).context("The terminal cannot be used")?;
        modes.output_modes |= OutputModes::OPOST | OutputModes::ONLCR;
        tcsetattr(&stdin, OptionalActions::Now, &modes).context("The terminal cannot be used")?;
        self.measure();
        self.write(PASTE_ON)
    }

    /// Gives the terminal back as it was; what was drawn last stays unless it is cleared first.
    pub(crate) fn suspend(&mut self) -> anyhow::Result<()> {
        if !self.terminal {
            return Ok(());
        }
        let end = format!("{}{PASTE_OFF}", self.erase());
        self.drawn = Frame::default();
        let lines = std::mem::take(&mut self.lines);
        self.write(&format!("{end}{lines}"))?;
        disable_raw_mode().context("The terminal cannot be given back")
    }

    /// Ctrl-Z: the shell has the terminal until it gives it back.
    pub(crate) fn pause(&mut self) -> anyhow::Result<()> {
        self.suspend()?;
        kill_process(getpid(), Signal::TSTP)?;
        self.resume()
    }

    /// The terminal has another size.
    pub(crate) fn measure(&mut self) {
        if let Ok((columns, rows)) = crossterm::terminal::size()
            && columns > 0
            && rows > 0
        {
            self.columns = usize::from(columns);
            self.rows = usize::from(rows);
        }
    }

    /// A finished line. It is seen with the next frame.
    pub(crate) fn print(&mut self, line: &str) {
        if self.colour {
            self.lines.push_str(line);
        } else {
            self.lines
                .push_str(&anstream::adapter::strip_str(line).to_string());
        }
        self.lines.push('\n');
    }

    /// Writes what is finished, and below it what is not.
    pub(crate) fn draw(&mut self, frame: Frame) -> anyhow::Result<()> {
        if !self.terminal {
            let lines = std::mem::take(&mut self.lines);
            return self.write(&lines);
        }
        if self.lines.is_empty() && frame == self.drawn {
            return Ok(());
        }
        let mut text = format!("{FRAME_BEGINS}{}", self.erase());
        text.push_str(&std::mem::take(&mut self.lines));
        for (at, row) in frame.rows.iter().enumerate() {
            if at > 0 {
                text.push('\n');
            }
            match self.colour {
                true => text.push_str(row),
                false => text.push_str(&anstream::adapter::strip_str(row).to_string()),
            }
        }
        let below = frame.rows.len().saturating_sub(frame.cursor.0 + 1);
        if below > 0 {
            text.push_str(&format!("\u{1b}[{below}A"));
        }
        text.push('\r');
        if frame.cursor.1 > 0 {
            text.push_str(&format!("\u{1b}[{}C", frame.cursor.1));
        }
        text.push_str(FRAME_ENDS);
        self.drawn = frame;
        self.write(&text)
    }

    /// What takes the last frame away, and leaves the cursor where it began.
    fn erase(&self) -> String {
        // In a terminal that became narrower, a row may take several.
        let taken = |row: &String| {
            let plain = anstream::adapter::strip_str(row).to_string();
            width(&plain).div_ceil(self.columns).max(1)
        };
        let above = self.drawn.rows.iter().take(self.drawn.cursor.0);
        let above: usize = above.map(taken).sum();
        match above {
            0 => "\r\u{1b}[J".to_owned(),
            above => format!("\r\u{1b}[{above}A\u{1b}[J"),
        }
    }

    fn write(&self, text: &str) -> anyhow::Result<()> {
        let mut out = std::io::stdout().lock();
        out.write_all(text.as_bytes())
            .and_then(|()| out.flush())
            .context("Standard output is closed")
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // However the conversation ended, the shell finds its terminal as it was.
        let _ = self.suspend();
    }
}
