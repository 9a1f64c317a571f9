//! Keys that stop, pressed while a person watches an arm move: space, q and Escape.

use std::io::{IsTerminal, Read};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::sync::mpsc;

/// Which keys stop. Ctrl-C is a signal, and stops as well.
const STOPS: [u8; 3] = [b' ', b'q', 0x1b];

/// The terminal as it is while keys are heard; it is itself again when this goes.
pub(super) struct StopKeyListener {
    before: Option<Termios>,
    pressed: mpsc::Receiver<()>,
    /// Keeps the receiver open where there is no terminal.
    _open: mpsc::Sender<()>,
}

impl StopKeyListener {
    /// Hears keys where standard input is a terminal and `watched` says that a person sees it.
    pub(super) fn listen(watched: bool) -> Self {
        let (tell, pressed) = mpsc::channel(1);
        let before = (watched && std::io::stdin().is_terminal())
            .then(set_raw_mode)
            .flatten();
        if before.is_some() {
            let tell = tell.clone();
            // It ends with the process: nothing else reads a terminal's keys meanwhile.
            let _ = std::thread::Builder::new()
                .name("keys".to_owned())
                .spawn(move || read_keys(&tell));
        }
        Self {
            before,
            pressed,
            _open: tell,
        }
    }

    /// Returns when a key that stops was pressed.
    pub(super) async fn stop(&mut self) {
        // It cannot close: the other end is kept here.
        let _ = self.pressed.recv().await;
    }
}

impl Drop for StopKeyListener {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // A terminal that is gone needs no settings.
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, before);
        }
    }
}

/// Keys come one by one and are not shown; what the terminal was before.
fn set_raw_mode() -> Option<Termios> {
    let before = tcgetattr(std::io::stdin()).ok()?;
    let mut keys = before.clone();
    keys.local_modes
        .remove(LocalModes::ICANON | LocalModes::ECHO);
    tcsetattr(std::io::stdin(), OptionalActions::Now, &keys).ok()?;
    Some(before)
}

fn read_keys(tell: &mpsc::Sender<()>) {
    let mut key = [0_u8; 1];
    while let Ok(1) = std::io::stdin().lock().read(&mut key) {
        if STOPS.contains(&key[0]) && tell.blocking_send(()).is_err() {
            return;
        }
    }
}
