//! A wire that no other program's time is needed for, to an arm that runs whatever the machine does.
//!
//! The kernel passes a pseudo-terminal's bytes on by a worker of ordinary priority. Where others take the machine's time, that worker
//! was found to wait 130 ms for its turn, and both ends with it: real servos wait for no processor. Over a pair of sockets bytes
//! are there as soon as they are written.

use std::io;
use std::os::unix::net::UnixStream as Pair;
use std::time::Duration;

use steadyhand::clock::{ClockAlarm, NodeClock};
use steadyhand::link::memory::FarEnd;
use steadyhand::link::{ByteLink, LinkError, LinkFuture};
use steadyhand::motion::set_realtime_priority;
use steadyhand::units::ClockInstant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

/// Interval at which a device that is silent is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// The near end.
pub(super) struct WireLink {
    stream: UnixStream,
    alarm: ClockAlarm,
}

impl WireLink {
    /// A wire to a device with a thread of its own, which ends with the near end.
    pub(super) fn to(device: impl FarEnd + 'static, clock: &NodeClock) -> io::Result<Self> {
        let (near, far) = Pair::pair()?;
        let own = clock.clone();
        std::thread::spawn(move || {
            // Where the machine gives no leave for that, it is as late as the machine.
            let _ = set_realtime_priority();
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_io()
                .build();
            runtime.unwrap().block_on(serve(device, far, &own)).unwrap();
        });
        Ok(Self {
            stream: stream(near)?,
            alarm: clock.alarm()?,
        })
    }

    async fn receive_some(
        &mut self,
        into: &mut [u8],
        until: ClockInstant,
    ) -> Result<usize, LinkError> {
        tokio::select! {
            biased;
            read = self.stream.read(into) => match read {
                Ok(0) => Err(LinkError::Unplugged),
                read => read.map_err(LinkError::Read),
            },
            waited = self.alarm.until(until) => waited.map(|()| 0).map_err(LinkError::Read),
        }
    }
}

impl ByteLink for WireLink {
    fn send<'a>(&'a mut self, bytes: &'a [u8]) -> LinkFuture<'a, ()> {
        Box::pin(async move { self.stream.write_all(bytes).await.map_err(LinkError::Write) })
    }

    fn receive<'a>(&'a mut self, into: &'a mut [u8], until: ClockInstant) -> LinkFuture<'a, usize> {
        Box::pin(self.receive_some(into, until))
    }

    fn discard_input(&mut self) -> Result<(), LinkError> {
        let mut old = [0_u8; 1024];
        loop {
            match self.stream.try_read(&mut old) {
                Ok(0) => return Err(LinkError::Unplugged),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(LinkError::Read(error)),
            }
        }
    }

    fn name(&self) -> &'static str {
        "bounds"
    }
}

fn stream(pair: Pair) -> io::Result<UnixStream> {
    pair.set_nonblocking(true)?;
    UnixStream::from_std(pair)
}

/// Runs the device until the near end is gone.
async fn serve(mut device: impl FarEnd, far: Pair, clock: &NodeClock) -> io::Result<()> {
    let (mut far, mut alarm) = (stream(far)?, clock.alarm()?);
    let (mut received, mut printed) = ([0_u8; 1024], Vec::new());
    loop {
        let now = clock.now();
        printed.clear();
        device.speak(now, &mut printed);
        if far.write_all(&printed).await.is_err() {
            return Ok(());
        }
        let again = now.after(LOOK_AGAIN);
        let wake = device.next_due().map_or(again, |due| due.min(again));
        tokio::select! {
            biased;
            read = far.read(&mut received) => match read {
                Ok(0) | Err(_) => return Ok(()),
                Ok(count) => device.hear(clock.now(), &received[..count]),
            },
            waited = alarm.until(wake) => waited?,
        }
    }
}
