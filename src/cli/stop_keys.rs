//! Keys pressed while a person watches an arm move: space, q and Escape stop it, y says that an awaited pen is in.

use std::io::{IsTerminal, Read};

#[cfg(unix)]
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::sync::mpsc;

/// The keys that stop. Ctrl-C is a signal, and stops as well.
const STOPS: [u8; 3] = [b' ', b'q', 0x1b];

/// The key that says yes.
const YES: u8 = b'y';

/// The terminal as it is while keys are heard; it is itself again when this goes.
pub(super) struct StopKeyListener {
    before: Option<Termios>,
    pressed: mpsc::Receiver<()>,
    agreed: mpsc::Receiver<()>,
    /// Keep the receivers open where there is no terminal.
    _open: [mpsc::Sender<()>; 2],
}

impl StopKeyListener {
    /// Hears keys where standard input is a terminal and `watched` says that a person sees it.
    pub(super) fn listen(watched: bool) -> Self {
        let (tell, pressed) = mpsc::channel(1);
        let (agree, agreed) = mpsc::channel(1);
        let before = (watched && std::io::stdin().is_terminal())
            .then(set_raw_mode)
            .flatten();
        if before.is_some() {
            let (tell, agree) = (tell.clone(), agree.clone());
            // It ends with the process: nothing else reads a terminal's keys meanwhile.
            let _ = std::thread::Builder::new()
                .name("keys".to_owned())
                .spawn(move || read_keys(&tell, &agree));
        }
        Self {
            before,
            pressed,
            agreed,
            _open: [tell, agree],
        }
    }

    /// Returns whether keys are heard.
    pub(super) fn is_heard(&self) -> bool {
        self.before.is_some()
    }

    /// Returns when a key that stops or agrees was pressed, and whether it agrees.
    pub(super) async fn any(&mut self) -> bool {
        tokio::select! {
            biased;
            _ = self.pressed.recv() => false,
            _ = self.agreed.recv() => true,
        }
    }
}

impl Drop for StopKeyListener {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            restore(before);
        }
    }
}

/// A terminal whose keys do not come one by one: Ctrl-C alone stops.
#[cfg(not(unix))]
enum Termios {}

#[cfg(not(unix))]
const fn set_raw_mode() -> Option<Termios> {
    None
}

#[cfg(not(unix))]
const fn restore(before: &Termios) {
    match *before {}
}

#[cfg(unix)]
fn restore(before: &Termios) {
    // A terminal that is gone needs no settings.
    let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, before);
}

/// Keys come one by one and are not shown; what the terminal was before.
#[cfg(unix)]
fn set_raw_mode() -> Option<Termios> {
    let before = tcgetattr(std::io::stdin()).ok()?;
    let mut keys = before.clone();
    keys.local_modes
        .remove(LocalModes::ICANON | LocalModes::ECHO);
    tcsetattr(std::io::stdin(), OptionalActions::Now, &keys).ok()?;
    Some(before)
}

fn read_keys(tell: &mpsc::Sender<()>, agree: &mpsc::Sender<()>) {
    let mut key = [0_u8; 1];
    while let Ok(1) = std::io::stdin().lock().read(&mut key) {
        if key[0].eq_ignore_ascii_case(&YES) {
            // One that nobody waits for is lost with the next: it agrees to nothing.
            let _ = agree.try_send(());
        }
        if STOPS.contains(&key[0]) && tell.blocking_send(()).is_err() {
            return;
        }
    }
}
