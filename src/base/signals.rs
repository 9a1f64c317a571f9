//! Signals by which the system asks a process to stop its arms or to end.

use std::io;
#[cfg(unix)]
use std::task::Poll;

#[cfg(unix)]
use rustix::process::Signal;

/// A request to stop or to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalKind {
    /// Ctrl-C.
    Interrupt,
    /// A request to end the process; on Windows Ctrl-Break.
    Terminate,
    /// The terminal is gone, or a signal without a meaning here that would end the process; on Windows its window is closed.
    HangUp,
}

/// Receives one kind of request, which then no longer ends the process by itself.
#[derive(Debug)]
pub struct SignalListener {
    #[cfg(unix)]
    signals: Vec<tokio::signal::unix::Signal>,
    #[cfg(windows)]
    signal: WindowsSignal,
}

#[cfg(windows)]
#[derive(Debug)]
enum WindowsSignal {
    Interrupt(tokio::signal::windows::CtrlC),
    Terminate(tokio::signal::windows::CtrlBreak),
    HangUp(tokio::signal::windows::CtrlClose),
}

/// Returns the signals that are a kind of request. Unheard, each would end the process in the middle of a motion, without a stop.
#[cfg(unix)]
const fn signals_of(kind: SignalKind) -> &'static [Signal] {
    match kind {
        SignalKind::Interrupt => &[Signal::INT],
        SignalKind::Terminate => &[Signal::TERM],
        SignalKind::HangUp => &[
            Signal::HUP,
            Signal::QUIT,
            Signal::USR1,
            Signal::USR2,
            Signal::ALARM,
            Signal::XCPU,
        ],
    }
}

impl SignalListener {
    /// Listens from now on. Must be called on a runtime.
    ///
    /// # Errors
    /// When the system refuses.
    #[cfg(unix)]
    pub fn listen(kind: SignalKind) -> io::Result<Self> {
        use tokio::signal::unix;
        let listen = |signal: &Signal| unix::signal(unix::SignalKind::from_raw(signal.as_raw()));
        let signals = signals_of(kind).iter().map(listen);
        Ok(Self {
            signals: signals.collect::<io::Result<_>>()?,
        })
    }

    /// Listens from now on. Must be called on a runtime.
    ///
    /// # Errors
    /// When the system refuses.
    #[cfg(windows)]
    pub fn listen(kind: SignalKind) -> io::Result<Self> {
        use tokio::signal::windows;
        let signal = match kind {
            SignalKind::Interrupt => WindowsSignal::Interrupt(windows::ctrl_c()?),
            SignalKind::Terminate => WindowsSignal::Terminate(windows::ctrl_break()?),
            SignalKind::HangUp => WindowsSignal::HangUp(windows::ctrl_close()?),
        };
        Ok(Self { signal })
    }

    /// Waits for the next request. It can be cancelled without losing one.
    pub async fn recv(&mut self) -> Option<()> {
        #[cfg(unix)]
        return std::future::poll_fn(|context| {
            let mut received = self.signals.iter_mut().map(|one| one.poll_recv(context));
            received.find(Poll::is_ready).unwrap_or(Poll::Pending)
        })
        .await;
        #[cfg(windows)]
        match &mut self.signal {
            WindowsSignal::Interrupt(signal) => signal.recv().await,
            WindowsSignal::Terminate(signal) => signal.recv().await,
            WindowsSignal::HangUp(signal) => signal.recv().await,
        }
    }
}

/// Makes a write beyond the file size limit fail as one to a full disk does: unhandled, its signal would end the process in
/// the middle of a motion. Must be called on a runtime.
///
/// # Errors
/// When the system refuses.
pub fn bear_full_files() -> io::Result<()> {
    #[cfg(unix)]
    {
        let signal = rustix::process::Signal::XFSZ.as_raw();
        // The handler stays installed without a listener.
        drop(tokio::signal::unix::signal(
            tokio::signal::unix::SignalKind::from_raw(signal),
        )?);
    }
    Ok(())
}

#[cfg(all(test, unix))]
#[expect(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_signal_of_a_request_is_received() {
        for kind in [
            SignalKind::Interrupt,
            SignalKind::Terminate,
            SignalKind::HangUp,
        ] {
            for signal in signals_of(kind) {
                let mut listener = SignalListener::listen(kind).unwrap();
                rustix::process::kill_process(rustix::process::getpid(), *signal).unwrap();
                assert_eq!(listener.recv().await, Some(()), "{signal:?}");
            }
        }
    }
}
