//! Keys while a person watches an arm move: space, q and Escape stop it, y confirms an awaited pen.

use std::io::{IsTerminal, Read};

#[cfg(unix)]
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::sync::mpsc;

/// Keys that stop the arm. Ctrl-C, which is a signal, stops it as well.
const STOP_KEYS: [u8; 3] = [b' ', b'q', 0x1b];

/// Key that confirms.
const CONFIRM_KEY: u8 = b'y';

/// A terminal whose keys are read one by one; dropping it restores the terminal.
pub(super) struct StopKeyListener {
    original_settings: Option<Termios>,
    stopped: mpsc::Receiver<()>,
    confirmed: mpsc::Receiver<()>,
    /// Keep the receivers open without a terminal.
    _open: [mpsc::Sender<()>; 2],
}

impl StopKeyListener {
    /// Listens for keys if standard input is a terminal and a person watches.
    pub(super) fn listen(is_watched: bool) -> Self {
        let (stop_sender, stopped) = mpsc::channel(1);
        let (confirm_sender, confirmed) = mpsc::channel(1);
        let original_settings = (is_watched && std::io::stdin().is_terminal())
            .then(set_raw_mode)
            .flatten();
        if original_settings.is_some() {
            let (stop_sender, confirm_sender) = (stop_sender.clone(), confirm_sender.clone());
            // The thread ends with the process: nothing else reads the terminal's keys meanwhile.
            let _ = std::thread::Builder::new()
                .name("keys".to_owned())
                .spawn(move || read_keys(&stop_sender, &confirm_sender));
        }
        Self {
            original_settings,
            stopped,
            confirmed,
            _open: [stop_sender, confirm_sender],
        }
    }

    /// Returns whether it listens for keys.
    pub(super) fn is_heard(&self) -> bool {
        self.original_settings.is_some()
    }

    /// Forgets a confirmation that came before what it would confirm.
    pub(super) fn forget_confirmation(&mut self) {
        while self.confirmed.try_recv().is_ok() {}
    }

    /// Waits for a key that stops or confirms, and returns whether it confirms.
    pub(super) async fn any(&mut self) -> bool {
        tokio::select! {
            biased;
            _ = self.stopped.recv() => false,
            _ = self.confirmed.recv() => true,
        }
    }
}

impl Drop for StopKeyListener {
    fn drop(&mut self) {
        if let Some(original_settings) = &self.original_settings {
            restore(original_settings);
        }
    }
}

/// A terminal whose keys are read one by one and not shown; dropping it restores the terminal.
pub(super) struct RawTerminal(Termios);

impl RawTerminal {
    /// Reads keys of the terminal at standard input one by one; `None` where that is not possible.
    pub(super) fn open() -> Option<Self> {
        set_raw_mode().map(Self)
    }

    /// Returns whether this process may read its terminal.
    #[cfg(unix)]
    pub(super) fn is_in_foreground() -> bool {
        let foreground = rustix::termios::tcgetpgrp(std::io::stdin()).ok();
        foreground == Some(rustix::process::getpgrp())
    }

    #[cfg(not(unix))]
    pub(super) const fn is_in_foreground() -> bool {
        true
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        restore(&self.0);
    }
}

/// Placeholder for systems without single keys, where only Ctrl-C stops.
#[cfg(not(unix))]
enum Termios {}

#[cfg(not(unix))]
const fn set_raw_mode() -> Option<Termios> {
    None
}

#[cfg(not(unix))]
const fn restore(original_settings: &Termios) {
    match *original_settings {}
}

#[cfg(unix)]
fn restore(original_settings: &Termios) {
    // A terminal that is gone needs no settings.
    let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, original_settings);
}

/// Makes the terminal deliver keys one by one without echo. Returns the original settings.
#[cfg(unix)]
fn set_raw_mode() -> Option<Termios> {
    let original_settings = tcgetattr(std::io::stdin()).ok()?;
    let mut keys = original_settings.clone();
    keys.local_modes
        .remove(LocalModes::ICANON | LocalModes::ECHO);
    tcsetattr(std::io::stdin(), OptionalActions::Now, &keys).ok()?;
    Some(original_settings)
}

fn read_keys(stop_sender: &mpsc::Sender<()>, confirm_sender: &mpsc::Sender<()>) {
    let mut key = [0_u8; 1];
    while let Ok(1) = std::io::stdin().lock().read(&mut key) {
        if key[0].eq_ignore_ascii_case(&CONFIRM_KEY) {
            // A confirmation that nobody waits for is dropped.
            let _ = confirm_sender.try_send(());
        }
        if STOP_KEYS.contains(&key[0]) && stop_sender.blocking_send(()).is_err() {
            return;
        }
    }
}
