//! A device on a pseudo-terminal, so that any program can open it as a serial port.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::pty::OpenptFlags;
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use tokio::io::unix::AsyncFd;

use crate::memory::FarEnd;
use base::clock::{ClockAlarm, NodeClock};
use base::units::ClockInstant;

/// Interval at which a silent device is checked, because it may have been unplugged.
const PLUG_CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// Time before a due byte, and after bytes in either direction, during which the line is polled without
/// sleeping: waking up takes about as long, and a wire is never late.
const AWAKE: Duration = Duration::from_micros(60);

/// The far side of a pseudo-terminal. Dropping it unplugs the device.
#[derive(Debug)]
pub struct PseudoTerminal {
    master: AsyncFd<OwnedFd>,
    /// Kept open so that programs may open and close the port.
    _slave: OwnedFd,
    path: PathBuf,
}

impl PseudoTerminal {
    /// Opens a new pseudo-terminal that passes every byte unchanged. Must be called within a runtime.
    ///
    /// # Errors
    /// When the system has none left.
    pub fn open() -> io::Result<Self> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        #[cfg(target_os = "linux")]
        let flags = flags | OpenptFlags::CLOEXEC;
        let master = rustix::pty::openpt(flags)?;
        rustix::pty::grantpt(&master)?;
        rustix::pty::unlockpt(&master)?;
        let name = rustix::pty::ptsname(&master, Vec::new())?;
        let path = PathBuf::from(OsStr::from_bytes(name.as_bytes()));
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let slave = rustix::fs::open(&path, flags, Mode::empty())?;
        let mut settings = tcgetattr(&slave)?;
        settings.make_raw();
        tcsetattr(&slave, OptionalActions::Now, &settings)?;
        rustix::fs::fcntl_setfl(&master, OFlags::RDWR | OFlags::NONBLOCK)?;
        Ok(Self {
            master: register(master)?,
            _slave: slave,
            path,
        })
    }

    /// Returns the path to open as a serial port.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the speed that the program at the near side has set.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn baud(&self) -> io::Result<u32> {
        Ok(tcgetattr(self.master.get_ref())?.output_speed())
    }

    /// Waits for bytes from the near side. May be dropped while it waits.
    ///
    /// # Errors
    /// When the system takes the pseudo-terminal away.
    pub async fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut ready = self.master.readable().await?;
            let read = ready.try_io(|fd| Ok(rustix::io::read(fd.get_ref(), &mut *into)?));
            if let Ok(result) = read {
                return result;
            }
        }
    }

    /// Reads bytes that have already arrived from the near side.
    fn try_read(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        match rustix::io::read(self.master.get_ref(), into) {
            Ok(count) => Ok(Some(count)),
            Err(rustix::io::Errno::AGAIN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes bytes to the near side. Bytes that do not fit, because nobody reads them, are lost, as in an adapter.
    ///
    /// # Errors
    /// When the system takes the pseudo-terminal away.
    pub fn write(&self, bytes: &[u8]) -> io::Result<()> {
        match rustix::io::write(self.master.get_ref(), bytes) {
            Ok(_) | Err(rustix::io::Errno::AGAIN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

#[expect(
    deprecated,
    reason = "sound for a descriptor that is owned here; its successor is unsafe"
)]
fn register(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::new(fd)
}

/// Waits for bytes until `wake`.
async fn read_until(
    pty: &PseudoTerminal,
    alarm: &mut ClockAlarm,
    wake: ClockInstant,
    buffer: &mut [u8],
) -> io::Result<Option<usize>> {
    tokio::select! {
        biased;
        count = pty.read(buffer) => count.map(Some),
        waited = alarm.until(wake) => waited.map(|()| None),
    }
}

/// Runs `device` on a new pseudo-terminal, whose path is passed to `on_open`, until the device is
/// unplugged. Dropping the future unplugs it too.
///
/// # Errors
/// When the system gives no pseudo-terminal or takes it away.
pub async fn serve(
    mut device: impl FarEnd,
    clock: &NodeClock,
    on_open: impl FnOnce(&Path),
) -> io::Result<()> {
    let pty = PseudoTerminal::open()?;
    let mut alarm = clock.alarm()?;
    on_open(pty.path());
    let mut received = [0_u8; 1024];
    let mut outgoing = Vec::new();
    let mut awake_until = clock.now();
    while device.is_plugged() {
        outgoing.clear();
        let now = clock.now();
        device.speak(now, &mut outgoing);
        if !outgoing.is_empty() {
            pty.write(&outgoing)?;
            awake_until = now.after(AWAKE);
        }
        let due = device.next_due();
        let is_awake = now < awake_until || due.is_some_and(|due| due < now.after(AWAKE));
        let mut count = pty.try_read(&mut received)?;
        if count.is_none() && !is_awake {
            let next_check = now.after(PLUG_CHECK_INTERVAL);
            let wake = due.map_or(next_check, |due| due.min(next_check));
            count = read_until(&pty, &mut alarm, wake.before(AWAKE), &mut received).await?;
        }
        if let Some(count) = count {
            device.tune(pty.baud()?);
            device.hear(clock.now(), received.get(..count).unwrap_or_default());
            awake_until = clock.now().after(AWAKE);
        }
        // The future can only be dropped once it yields.
        tokio::task::coop::consume_budget().await;
    }
    Ok(())
}
