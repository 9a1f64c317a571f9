//! Identifies what is on a port where no servo answers: a controller with firmware of its own, which
//! is greeted once, or something that talks without being asked.

use std::time::Duration;

use firmware_protocol::message::LostHost;
use firmware_protocol::{Event, Host};

use super::{OpenPort, ServiceError};
use base::clock::NodeClock;
use link::ByteLink;

/// A controller answers HELLO well within this.
const GREETING: Duration = Duration::from_millis(250);

/// The speeds at which controllers are greeted, the usual one first.
const GREETED_BAUDS: [u32; 2] = [1_000_000, 115_200];

/// Listening time: what talks by itself does so once a second.
const LISTEN: Duration = Duration::from_millis(1100);

/// The speeds at which others talk: receivers of satellites and consoles of small boards.
const TALKED_BAUDS: [u32; 2] = [115_200, 9_600];

/// Number of bytes that are enough to show.
const SHOWN_BYTES: usize = 64;

/// Fewer bytes than this are a disturbance.
const TALK_BYTES_MIN: usize = 8;

/// A controller that answered HELLO, and its speed; `first` is the speed that is tried before the
/// usual ones.
///
/// # Errors
/// When the port fails.
pub(super) async fn find_controller(
    open: &mut OpenPort<'_>,
    clock: &NodeClock,
    first: u32,
) -> Result<Option<u32>, ServiceError> {
    let others = GREETED_BAUDS.into_iter().filter(|baud| *baud != first);
    for baud in [first].into_iter().chain(others) {
        let Ok(mut link) = open(baud) else { continue };
        if answers_hello(link.as_mut(), clock).await? {
            return Ok(Some(baud));
        }
    }
    Ok(None)
}

async fn answers_hello(link: &mut dyn ByteLink, clock: &NodeClock) -> Result<bool, ServiceError> {
    let now_us = || clock.now().as_nanos() / 1_000;
    let mut host = Host::new(LostHost::Hold, now_us());
    host.poll(now_us());
    let mut buffer = [0_u8; 256];
    let count = host.transmit(&mut buffer);
    link.send(buffer.get(..count).unwrap_or_default()).await?;
    let until = clock.now().after(GREETING);
    loop {
        let count = link.receive(&mut buffer, until).await?;
        if count == 0 {
            return Ok(false);
        }
        host.receive(buffer.get(..count).unwrap_or_default(), now_us());
        while let Some(event) = host.next_event() {
            // One of another version is a controller as well.
            if matches!(event, Event::Paired(_) | Event::Mismatch(_)) {
                return Ok(true);
            }
        }
        if clock.now() >= until {
            return Ok(false);
        }
    }
}

/// Listens for something that talks without being asked; returns the speed and the text.
///
/// # Errors
/// When the port fails.
pub(super) async fn find_talker(
    open: &mut OpenPort<'_>,
    clock: &NodeClock,
) -> Result<Option<(u32, String)>, ServiceError> {
    for baud in TALKED_BAUDS {
        let Ok(mut link) = open(baud) else { continue };
        let heard = overhear(link.as_mut(), clock).await?;
        if let Some(text) = as_text(&heard) {
            return Ok(Some((baud, text)));
        }
    }
    Ok(None)
}

/// Bytes that came without being asked for.
pub(super) struct ForeignTalk {
    pub(super) bytes: usize,
    /// The first line, where it can be read.
    pub(super) text: Option<String>,
}

/// Listens for somebody else at the speed at which servos were asked; `None` if all is quiet.
///
/// # Errors
/// When the port fails.
pub(super) async fn overhear_beside(
    link: &mut dyn ByteLink,
    clock: &NodeClock,
) -> Result<Option<ForeignTalk>, ServiceError> {
    let heard = overhear(link, clock).await?;
    let talk = ForeignTalk {
        bytes: heard.len(),
        text: as_text(&heard),
    };
    Ok((talk.bytes >= TALK_BYTES_MIN).then_some(talk))
}

async fn overhear(link: &mut dyn ByteLink, clock: &NodeClock) -> Result<Vec<u8>, ServiceError> {
    let until = clock.now().after(LISTEN);
    let (mut heard, mut buffer) = (Vec::new(), [0_u8; SHOWN_BYTES]);
    while heard.len() < SHOWN_BYTES && clock.now() < until {
        let count = link.receive(&mut buffer, until).await?;
        if count == 0 {
            break;
        }
        heard.extend_from_slice(buffer.get(..count).unwrap_or_default());
    }
    heard.truncate(SHOWN_BYTES);
    Ok(heard)
}

/// The first line, where nearly all of it can be read: at a wrong speed nothing can.
fn as_text(heard: &[u8]) -> Option<String> {
    let is_read = |byte: &&u8| matches!(byte, b' '..=b'~' | b'\r' | b'\n' | b'\t');
    let read = heard.iter().filter(is_read).count();
    if heard.len() < TALK_BYTES_MIN || read * 10 < heard.len() * 9 {
        return None;
    }
    let text = String::from_utf8_lossy(heard);
    let longest = text.lines().map(str::trim).max_by_key(|line| line.len());
    longest.map(str::to_owned)
}
