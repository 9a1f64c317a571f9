//! A simulated person at a terminal, who reads the screen, types and presses Ctrl-C.

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

/// Opens a pseudo-terminal: the screen and keyboard side, and the side of the program.
pub(crate) fn pseudo_terminal() -> (File, File) {
    let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&screen).unwrap();
    unlockpt(&screen).unwrap();
    let name = ptsname(&screen, Vec::new()).unwrap();
    let mut options = std::fs::OpenOptions::new();
    let terminal = options.read(true).write(true).open(name.to_str().unwrap());
    (File::from(screen), terminal.unwrap())
}

/// Makes a command the leader of a session on the terminal of its standard input, as a shell does, so that Ctrl-C interrupts it.
fn as_session_leader(command: &Command) -> Command {
    let mut leader = Command::new("setsid");
    let program = command.get_program();
    leader.arg("--ctty").arg(program).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => leader.env(name, value),
            None => leader.env_remove(name),
        };
    }
    leader
}

/// A running command and the person at its terminal.
pub(crate) struct Person {
    keys: File,
    screen: Arc<Mutex<String>>,
    /// Number of the screen's bytes already read.
    read_len: usize,
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
        let mut command = as_session_leader(&bench.command(args));
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
            read_len: 0,
            program,
        }
    }

    /// Waits for a text on the screen after the last one found.
    pub(crate) fn sees(&mut self, expected: &str) {
        self.reads_until(expected, |new| {
            new.find(expected).map(|at| at + expected.len())
        });
    }

    /// Waits for one of these texts. Returns the index of the first on the screen, and the screen up to it.
    pub(crate) fn sees_one_of(&mut self, expected: &[&str]) -> (usize, String) {
        let from = self.read_len;
        let first = |new: &str| {
            let found = expected.iter().enumerate();
            found
                .filter_map(|(index, expected)| Some((new.find(expected)?, index)))
                .min()
        };
        self.reads_until(&expected.join("\" or \""), |new| {
            first(new).map(|(at, index)| at + expected[index].len())
        });
        let new = self.screen.lock().unwrap()[from..self.read_len].to_owned();
        (first(&new).unwrap().1, new)
    }

    /// Returns everything shown on the screen.
    pub(crate) fn transcript(&self) -> String {
        self.screen.lock().unwrap().clone()
    }

    /// Waits like [`Self::sees`]; returns `false` if the program ends before.
    pub(crate) fn sees_before_the_end(&mut self, expected: &str) -> bool {
        let began = Instant::now();
        while !self.screen.lock().unwrap().contains(expected) {
            if self.program.0.try_wait().unwrap().is_some() {
                return false;
            }
            assert!(began.elapsed() < PATIENCE, "no {expected:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
        self.sees(expected);
        true
    }

    /// Waits until a table has been redrawn `times` times from now on.
    pub(crate) fn sees_redrawn(&mut self, times: usize) {
        const CLEARED: &str = "\u{1b}[H\u{1b}[J";
        self.read_len = self.screen.lock().unwrap().len();
        self.reads_until("a new table", |new| {
            new.match_indices(CLEARED).nth(times).map(|(at, _)| at)
        });
    }

    fn reads_until(&mut self, what: &str, found: impl Fn(&str) -> Option<usize>) {
        let began = Instant::now();
        loop {
            let screen = self.screen.lock().unwrap().clone();
            let new = screen.get(self.read_len..).unwrap_or_default();
            if let Some(end) = found(new) {
                self.read_len += end;
                return;
            }
            assert!(began.elapsed() < PATIENCE, "no {what:?} in {new}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Presses Ctrl-C: a byte that the terminal turns into a signal unless it is raw.
    pub(crate) fn interrupts(&mut self) {
        self.types("\u{3}");
    }

    pub(crate) fn ends_with(&mut self, code: i32) {
        let ended = self.program.exit_code();
        assert_eq!(ended, Some(code), "{}", self.screen.lock().unwrap());
    }
}

/// Serves a device on a pseudo-terminal until it is unplugged. Returns the port.
pub(crate) fn plugged_in(device: impl FarEnd + 'static) -> String {
    let (sender, path) = channel();
    std::thread::spawn(move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        let clock = NodeClock::real();
        let wire = pty::serve(device, &clock, |path| {
            sender.send(path.display().to_string()).unwrap();
        });
        let _ = runtime.block_on(wire);
    });
    path.recv().unwrap()
}
