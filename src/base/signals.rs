//! Signals by which the system asks a process to stop its arms or to end.

use std::io;

/// A request to stop or to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalKind {
    /// Ctrl-C.
    Interrupt,
    /// A request to end the process; on Windows Ctrl-Break.
    Terminate,
    /// The terminal is gone; on Windows its window is closed.
    HangUp,
}

/// Receives one kind of request, which then no longer ends the process by itself.
#[derive(Debug)]
pub struct SignalListener {
    #[cfg(unix)]
    signal: tokio::signal::unix::Signal,
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

impl SignalListener {
    /// Listens from now on. Must be called on a runtime.
    ///
    /// # Errors
    /// When the system refuses.
    #[cfg(unix)]
    pub fn listen(kind: SignalKind) -> io::Result<Self> {
        use tokio::signal::unix;
        let kind = match kind {
            SignalKind::Interrupt => unix::SignalKind::interrupt(),
            SignalKind::Terminate => unix::SignalKind::terminate(),
            SignalKind::HangUp => unix::SignalKind::hangup(),
        };
        Ok(Self {
            signal: unix::signal(kind)?,
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
        return self.signal.recv().await;
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
