//! Identifies what is on a port where no servo replies: a controller with firmware of its own, which
//! is sent one HELLO, or a device that talks unasked.

use std::time::Duration;

use firmware_protocol::message::LostHost;
use firmware_protocol::{Event, Host};

use super::{OpenPort, ServiceError};
use base::clock::NodeClock;
use link::ByteLink;

/// Longest time for a controller to reply to HELLO.
const HELLO_TIMEOUT: Duration = Duration::from_millis(250);

/// Baud rates at which controllers are tried, the usual one first.
const CONTROLLER_BAUDS: [u32; 2] = [1_000_000, 115_200];

/// Listening time: devices that talk unasked do so once a second.
const LISTEN: Duration = Duration::from_millis(1100);

/// Baud rates of other devices: satellite receivers and consoles of small boards.
const TALKER_BAUDS: [u32; 2] = [115_200, 9_600];

/// Most bytes that are shown.
const SHOWN_BYTES: usize = 64;

/// Least number of bytes that count as talk, not as a disturbance.
const TALK_BYTES_MIN: usize = 8;

/// Finds a controller that replies to HELLO and returns its speed; `first` is the speed that is tried
/// before the usual ones.
///
/// # Errors
/// When the port fails.
pub(super) async fn find_controller(
    open: &mut OpenPort<'_>,
    clock: &NodeClock,
    first: u32,
) -> Result<Option<u32>, ServiceError> {
    let others = CONTROLLER_BAUDS.into_iter().filter(|baud| *baud != first);
    for baud in [first].into_iter().chain(others) {
        let Ok(mut link) = open(baud) else { continue };
        if is_controller(link.as_mut(), clock).await? {
            return Ok(Some(baud));
        }
    }
    Ok(None)
}

async fn is_controller(link: &mut dyn ByteLink, clock: &NodeClock) -> Result<bool, ServiceError> {
    let now_us = || clock.now().as_nanos() / 1_000;
    let mut host = Host::new(LostHost::Hold, now_us());
    host.poll(now_us());
    let mut buffer = [0_u8; 256];
    let count = host.transmit(&mut buffer);
    link.send(buffer.get(..count).unwrap_or_default()).await?;
    let until = clock.now().after(HELLO_TIMEOUT);
    loop {
        let count = link.receive(&mut buffer, until).await?;
        if count == 0 {
            return Ok(false);
        }
        host.receive(buffer.get(..count).unwrap_or_default(), now_us());
        while let Some(event) = host.next_event() {
            // A controller of another version counts too.
            if matches!(event, Event::Paired(_) | Event::Mismatch(_)) {
                return Ok(true);
            }
        }
        if clock.now() >= until {
            return Ok(false);
        }
    }
}

/// Listens for something that talks without being asked, at the speed at which it can be read if there is one.
///
/// # Errors
/// When the port fails.
pub(super) async fn find_talker(
    open: &mut OpenPort<'_>,
    clock: &NodeClock,
) -> Result<Option<ForeignTalk>, ServiceError> {
    let mut noise = None;
    for baud in TALKER_BAUDS {
        let Ok(mut link) = open(baud) else { continue };
        match listen_beside_servos(link.as_mut(), baud, clock).await? {
            Some(talk) if talk.text.is_some() => return Ok(Some(talk)),
            talk => noise = noise.or(talk),
        }
    }
    Ok(noise)
}

/// Bytes that were received unasked.
pub(super) struct ForeignTalk {
    pub(super) baud: u32,
    pub(super) bytes: usize,
    /// The longest line, if it is readable.
    pub(super) text: Option<String>,
}

/// Listens for another device at one speed, such as the servos' own; `None` if all is quiet.
///
/// # Errors
/// When the port fails.
pub(super) async fn listen_beside_servos(
    link: &mut dyn ByteLink,
    baud: u32,
    clock: &NodeClock,
) -> Result<Option<ForeignTalk>, ServiceError> {
    let received = listen(link, clock).await?;
    let talk = ForeignTalk {
        baud,
        bytes: received.len(),
        text: readable_text(&received),
    };
    Ok((talk.bytes >= TALK_BYTES_MIN).then_some(talk))
}

async fn listen(link: &mut dyn ByteLink, clock: &NodeClock) -> Result<Vec<u8>, ServiceError> {
    let until = clock.now().after(LISTEN);
    let (mut received, mut buffer) = (Vec::new(), [0_u8; SHOWN_BYTES]);
    while received.len() < SHOWN_BYTES && clock.now() < until {
        let count = link.receive(&mut buffer, until).await?;
        if count == 0 {
            break;
        }
        received.extend_from_slice(buffer.get(..count).unwrap_or_default());
    }
    received.truncate(SHOWN_BYTES);
    Ok(received)
}

/// Returns the longest line, if nearly all bytes are readable: at a wrong speed they are not.
fn readable_text(received: &[u8]) -> Option<String> {
    let is_readable = |byte: &&u8| matches!(byte, b' '..=b'~' | b'\r' | b'\n' | b'\t');
    let readable = received.iter().filter(is_readable).count();
    if received.len() < TALK_BYTES_MIN || readable * 10 < received.len() * 9 {
        return None;
    }
    let text = String::from_utf8_lossy(received);
    let longest = text.lines().map(str::trim).max_by_key(|line| line.len());
    longest.map(str::to_owned)
}
