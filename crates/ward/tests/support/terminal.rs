//! `ward` in a terminal of its own: what is typed goes in, what a person would see comes out.

#![allow(dead_code, reason = "each test uses its part")]

use std::io::{Read as _, Write as _};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use crate::support::Home;

/// How long something may take that must come. Only a test that fails waits for so long.
const PATIENCE: Duration = Duration::from_secs(60);
const ROWS: u16 = 120;
const COLUMNS: u16 = 100;

/// A terminal that is high enough to see the whole conversation.
pub(crate) struct Terminal {
    parser: vt100::Parser,
    printed: Receiver<Vec<u8>>,
    raw: Vec<u8>,
    writer: Box<dyn std::io::Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    // The other end stays open for as long as somebody looks.
    _master: Box<dyn MasterPty + Send>,
}

impl Terminal {
    /// `ward chat` with these arguments, at its prompt.
    pub(crate) fn chat(home: &Home, arguments: &[&str]) -> Self {
        Self::chat_with(home, arguments, &[])
    }

    pub(crate) fn chat_with(home: &Home, arguments: &[&str], env: &[(&str, &str)]) -> Self {
        let mut terminal = Self::start(home, &[&["chat"], arguments].concat(), env);
        terminal.sees("›");
        terminal
    }

    /// `ward` with these arguments.
    pub(crate) fn start(home: &Home, arguments: &[&str], env: &[(&str, &str)]) -> Self {
        let pair = native_pty_system()
            .openpty(PtySize {
                rows: ROWS,
                cols: COLUMNS,
                pixel_width: 0,
                pixel_height: 0,
            })
            .unwrap();
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_ward"));
        command.env_clear();
        for (name, value) in home.environment() {
            command.env(name, value);
        }
        command.env("TERM", "xterm-256color");
        for (name, value) in env {
            command.env(name, value);
        }
        command.cwd(home.workspace());
        command.args(arguments);
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().unwrap();
        let (sender, printed) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                if sender.send(bytes[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self {
            parser: vt100::Parser::new(ROWS.try_into().unwrap(), COLUMNS.try_into().unwrap(), 1000),
            printed,
            raw: Vec::new(),
            writer: pair.master.take_writer().unwrap(),
            child,
            _master: pair.master,
        }
    }

    /// Types, as fast as it can.
    pub(crate) fn types(&mut self, keys: &str) {
        self.writer.write_all(keys.as_bytes()).unwrap();
        self.writer.flush().unwrap();
    }

    /// Types a line, once all of the last one is seen.
    pub(crate) fn says(&mut self, line: &str) {
        self.types(line);
        self.sees(&format!("› {line}"));
        self.types("\r");
    }

    /// Waits until this is on the screen.
    #[track_caller]
    pub(crate) fn sees(&mut self, text: &str) {
        self.waits(text, |screen| screen.contains(text));
    }

    /// Waits until this is on the screen no longer.
    #[track_caller]
    pub(crate) fn sees_no_more(&mut self, text: &str) {
        self.waits(text, |screen| !screen.contains(text));
    }

    /// Waits until nothing runs: then the line below says who one talks with.
    #[track_caller]
    pub(crate) fn settles(&mut self) {
        self.waits("an idle prompt", |screen| {
            let lines: Vec<&str> = screen.trim_end().lines().collect();
            let [.., status, prompt] = lines.as_slice() else {
                return false;
            };
            status.contains(" · sandbox") && prompt.trim_end() == "›"
        });
    }

    #[track_caller]
    fn waits(&mut self, what: &str, until: impl Fn(&str) -> bool) {
        // For all of it: a terminal that counts seconds is never silent.
        let end = Instant::now() + PATIENCE;
        while !until(&self.screen()) {
            match self.printed.recv_timeout(end - Instant::now()) {
                Ok(bytes) => self.takes(&bytes),
                Err(error) => panic!("waited for {what:?} ({error}), saw:\n{}", self.screen()),
            }
        }
    }

    fn takes(&mut self, bytes: &[u8]) {
        self.raw.extend(bytes);
        self.parser.process(bytes);
    }

    /// What a person sees.
    pub(crate) fn screen(&self) -> String {
        self.parser.screen().contents()
    }

    /// Every byte so far.
    pub(crate) fn raw(&self) -> String {
        String::from_utf8_lossy(&self.raw).into_owned()
    }

    /// Waits for its end, and returns whether it went well and what was seen last.
    #[track_caller]
    pub(crate) fn ends(mut self) -> (bool, String) {
        let end = Instant::now() + PATIENCE;
        while let Ok(bytes) = self.printed.recv_timeout(end - Instant::now()) {
            self.takes(&bytes);
        }
        let status = self.child.wait().unwrap();
        (status.success(), self.screen())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A test that failed leaves nothing behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
