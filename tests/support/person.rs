//! Somebody at a terminal: sees what the program shows, types, and presses Ctrl-C.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use steadyhand::clock::NodeClock;
use steadyhand::link::memory::FarEnd;
use steadyhand::link::pty;

use super::{Bench, PATIENCE, Running};

/// A screen with its keyboard, and the terminal that programs see.
pub(crate) fn pseudo_terminal() -> (File, File) {
    let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&screen).unwrap();
    unlockpt(&screen).unwrap();
    let name = ptsname(&screen, Vec::new()).unwrap();
    let mut options = std::fs::OpenOptions::new();
    let terminal = options.read(true).write(true).open(name.to_str().unwrap());
    (File::from(screen), terminal.unwrap())
}

/// The same command at the head of a session whose terminal is its standard input, as a shell starts it: what is typed there can
/// interrupt it.
fn leading(command: &Command) -> Command {
    let mut at_head = Command::new("setsid");
    let program = command.get_program();
    at_head.arg("--ctty").arg(program).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => at_head.env(name, value),
            None => at_head.env_remove(name),
        };
    }
    at_head
}

/// A command of the program, with somebody before it.
pub(crate) struct Person {
    keys: File,
    screen: Arc<Mutex<String>>,
    /// Bytes of the screen that were looked at.
    seen: usize,
    pub(crate) program: Running,
}

impl Person {
    pub(crate) fn at(bench: &Bench, args: &[&str]) -> Self {
        let (mut screen, terminal) = pseudo_terminal();
        let size = Winsize {
            ws_row: 30,
            ws_col: 120,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&terminal, size).unwrap();
        let mut command = leading(&bench.command(args));
        command.stdin(Stdio::from(terminal.try_clone().unwrap()));
        command.stdout(Stdio::from(terminal.try_clone().unwrap()));
        let program = Running(command.stderr(Stdio::from(terminal)).spawn().unwrap());
        let keys = screen.try_clone().unwrap();
        let shown = Arc::new(Mutex::new(String::new()));
        let into = Arc::clone(&shown);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = screen.read(&mut bytes) {
                into.lock()
                    .unwrap()
                    .push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        Self {
            keys,
            screen: shown,
            seen: 0,
            program,
        }
    }

    /// Waits for these words among what came on the screen since the last ones.
    pub(crate) fn sees(&mut self, words: &str) {
        self.looks_until(words, |new| new.find(words).map(|at| at + words.len()));
    }

    /// Waits for one of these words: returns which came first on the screen, and what came up to it.
    pub(crate) fn sees_one_of(&mut self, words: &[&str]) -> (usize, String) {
        let from = self.seen;
        let first = |new: &str| {
            let found = words.iter().enumerate();
            found
                .filter_map(|(index, words)| Some((new.find(words)?, index)))
                .min()
        };
        self.looks_until(&words.join("\" or \""), |new| {
            first(new).map(|(at, index)| at + words[index].len())
        });
        let new = self.screen.lock().unwrap()[from..self.seen].to_owned();
        (first(&new).unwrap().1, new)
    }

    /// All that was on the screen.
    pub(crate) fn transcript(&self) -> String {
        self.screen.lock().unwrap().clone()
    }

    /// As [`Self::sees`], unless the program ends before.
    pub(crate) fn sees_before_the_end(&mut self, words: &str) -> bool {
        let began = Instant::now();
        while !self.screen.lock().unwrap().contains(words) {
            if self.program.0.try_wait().unwrap().is_some() {
                return false;
            }
            assert!(began.elapsed() < PATIENCE, "no {words:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
        self.sees(words);
        true
    }

    /// Waits until a table was drawn anew so many times from now on.
    pub(crate) fn sees_redrawn(&mut self, times: usize) {
        const CLEARED: &str = "\u{1b}[H\u{1b}[J";
        self.seen = self.screen.lock().unwrap().len();
        self.looks_until("a new table", |new| {
            new.match_indices(CLEARED).nth(times).map(|(at, _)| at)
        });
    }

    fn looks_until(&mut self, what: &str, found: impl Fn(&str) -> Option<usize>) {
        let began = Instant::now();
        loop {
            let screen = self.screen.lock().unwrap().clone();
            let new = screen.get(self.seen..).unwrap_or_default();
            if let Some(end) = found(new) {
                self.seen += end;
                return;
            }
            assert!(began.elapsed() < PATIENCE, "no {what:?} in {new}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Presses Ctrl-C: a byte, of which the terminal makes a signal where it is not raw.
    pub(crate) fn interrupts(&mut self) {
        self.types("\u{3}");
    }

    pub(crate) fn ends_with(&mut self, code: i32) {
        let ended = self.program.exit_code();
        assert_eq!(ended, Some(code), "{}", self.screen.lock().unwrap());
    }
}

/// The port behind which something is from now on. It ends with its plug, or with the test.
pub(crate) fn plugged_in(device: impl FarEnd + 'static) -> String {
    let (tell, path) = channel();
    std::thread::spawn(move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        let clock = NodeClock::real();
        let wire = pty::serve(device, &clock, |path| {
            tell.send(path.display().to_string()).unwrap();
        });
        let _ = runtime.block_on(wire);
    });
    path.recv().unwrap()
}
