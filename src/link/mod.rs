//! Bytes to and from the far end of a wire, without their meaning.
//!
//! [`serial`] is a real port, [`memory`] a device in this process; [`byte_trace`] records the bytes of either,
//! [`tap`] only while a job moves; holders of one [`shared_port`] take turns. Every wait has a moment as its bound, so
//! that the same loop runs on a real and on a simulated clock.

use std::future::{self, Future};
use std::io;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;

use base::units::ClockInstant;

pub mod byte_trace;
pub mod memory;
#[cfg_attr(windows, path = "windows_port_errors.rs")]
mod port_errors;
#[cfg(target_os = "linux")]
mod port_holder;
#[cfg_attr(not(unix), path = "no_pty.rs")]
pub mod pty;
pub mod serial;
pub mod shared_port;
pub mod tap;

/// The future of a link's operation. It borrows the link, so one is under way at a time.
pub type LinkFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, LinkError>> + Send + 'a>>;

/// Errors of byte links, by phase.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// There is no such port.
    #[error(
        "there is no serial port at {path} (the simulator never takes its place). Next: plug the arm in, or correct `port` in the node file"
    )]
    Missing {
        /// The path that was tried.
        path: String,
    },
    /// Another program holds the port.
    #[error(
        "the serial port {path} is in use by {holder}; only one program may drive an arm. Next: close that program, then try again"
    )]
    Busy {
        /// The path that was tried.
        path: String,
        /// Description of the program that has it open.
        holder: String,
    },
    /// The port exists but this user may not open it.
    #[error(
        "no permission to open {path}. Next: add this user to the group that owns it (usually `dialout`)"
    )]
    Permission {
        /// The path that was tried.
        path: String,
    },
    /// Opening failed for another reason.
    #[error("cannot open {path}: {source}")]
    Open {
        /// The path that was tried.
        path: String,
        /// The system's error.
        source: io::Error,
    },
    /// The device went away: a read returned nothing, or a system error says so.
    #[error("the arm's cable was unplugged or the adapter lost power")]
    Unplugged,
    /// A write failed.
    #[error("cannot write to the arm: {0}")]
    Write(#[source] io::Error),
    /// A read failed.
    #[error("cannot read from the arm: {0}")]
    Read(#[source] io::Error),
}

/// A link that nobody else uses until this is dropped: for one request and its replies.
pub struct ClaimedLink<'a>(&'a mut dyn ByteLink);

impl<'a> ClaimedLink<'a> {
    /// Waits until no other holder uses the link. May be dropped while it waits.
    ///
    /// # Errors
    /// When the device is gone.
    pub async fn claim(link: &'a mut dyn ByteLink) -> Result<Self, LinkError> {
        let claimed = Self(link);
        claimed.0.claim().await?;
        Ok(claimed)
    }
}

impl<'a> Deref for ClaimedLink<'a> {
    type Target = dyn ByteLink + 'a;

    fn deref(&self) -> &Self::Target {
        self.0
    }
}

impl DerefMut for ClaimedLink<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.0
    }
}

impl Drop for ClaimedLink<'_> {
    fn drop(&mut self) {
        self.0.release();
    }
}

impl ByteLink for Box<dyn ByteLink> {
    fn claim(&mut self) -> LinkFuture<'_, ()> {
        self.as_mut().claim()
    }

    fn release(&mut self) {
        self.as_mut().release();
    }

    fn send<'a>(&'a mut self, bytes: &'a [u8]) -> LinkFuture<'a, ()> {
        self.as_mut().send(bytes)
    }

    fn receive<'a>(&'a mut self, into: &'a mut [u8], until: ClockInstant) -> LinkFuture<'a, usize> {
        self.as_mut().receive(into, until)
    }

    fn discard_input(&mut self) -> Result<(), LinkError> {
        self.as_mut().discard_input()
    }

    fn name(&self) -> &str {
        self.as_ref().name()
    }
}

/// A two-way stream of bytes.
pub trait ByteLink: Send {
    /// Waits until no other holder uses the link; use [`ClaimedLink`], which releases it. A link with one owner is
    /// always its own.
    fn claim(&mut self) -> LinkFuture<'_, ()> {
        Box::pin(future::ready(Ok(())))
    }

    /// Lets other holders use the link.
    fn release(&mut self) {}

    /// Hands every byte to the wire, or fails. Never waits for the wire to be empty: that can
    /// block for ever on some adapters. Must not be dropped half-way: a frame would be cut.
    fn send<'a>(&'a mut self, bytes: &'a [u8]) -> LinkFuture<'a, ()>;

    /// Waits for at least one byte until `until`; returns 0 if none has arrived by then.
    fn receive<'a>(&'a mut self, into: &'a mut [u8], until: ClockInstant) -> LinkFuture<'a, usize>;

    /// Discards bytes that have arrived but were not received.
    ///
    /// # Errors
    /// When the device is gone.
    fn discard_input(&mut self) -> Result<(), LinkError>;

    /// Returns the link's name for messages.
    fn name(&self) -> &str;
}
