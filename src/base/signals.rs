//! Requests of the system that a process stop its arms or end.

use std::io;

/// A request to stop or to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalKind {
    /// Ctrl-C.
    Interrupt,
    /// The end of the process is wanted; on Windows Ctrl-Break.
    Terminate,
    /// The terminal is gone; on Windows its window is closed.
    HangUp,
}

/// Hears one kind of request, which no longer ends the process by itself.
#[derive(Debug)]
pub struct SignalListener {
    #[cfg(unix)]
    heard: tokio::signal::unix::Signal,
    #[cfg(windows)]
    heard: WindowsSignal,
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
    /// When the system does not let it.
    #[cfg(unix)]
    pub fn listen(kind: SignalKind) -> io::Result<Self> {
        use tokio::signal::unix;
        let kind = match kind {
            SignalKind::Interrupt => unix::SignalKind::interrupt(),
            SignalKind::Terminate => unix::SignalKind::terminate(),
            SignalKind::HangUp => unix::SignalKind::hangup(),
        };
        Ok(Self {
            heard: unix::signal(kind)?,
        })
    }

    /// Listens from now on. Must be called on a runtime.
    ///
    /// # Errors
    /// When the system does not let it.
    #[cfg(windows)]
    pub fn listen(kind: SignalKind) -> io::Result<Self> {
        use tokio::signal::windows;
        let heard = match kind {
            SignalKind::Interrupt => WindowsSignal::Interrupt(windows::ctrl_c()?),
            SignalKind::Terminate => WindowsSignal::Terminate(windows::ctrl_break()?),
            SignalKind::HangUp => WindowsSignal::HangUp(windows::ctrl_close()?),
        };
        Ok(Self { heard })
    }

    /// Waits for the next request. It can be cancelled: none is lost.
    pub async fn recv(&mut self) -> Option<()> {
        #[cfg(unix)]
        return self.heard.recv().await;
        #[cfg(windows)]
        match &mut self.heard {
            WindowsSignal::Interrupt(heard) => heard.recv().await,
            WindowsSignal::Terminate(heard) => heard.recv().await,
            WindowsSignal::HangUp(heard) => heard.recv().await,
        }
    }
}

/// Lets a write beyond the size that files may have fail, as one to a full disk does: unheard, the signal for it would end the
/// process in the middle of a motion. Must be called on a runtime.
///
/// # Errors
/// When the system does not let it.
pub fn bear_full_files() -> io::Result<()> {
    #[cfg(unix)]
    {
        let signal = rustix::process::Signal::XFSZ.as_raw();
        // Heard from now on, whether anybody listens or not.
        drop(tokio::signal::unix::signal(
            tokio::signal::unix::SignalKind::from_raw(signal),
        )?);
    }
    Ok(())
}
