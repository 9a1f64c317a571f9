//! One transaction on a half-duplex bus: discard, ask, gather the replies that were asked for.
//!
//! Nothing that was not asked for is ever used: a reply must have the right id, the right length
//! and come in its place. What the bytes mean is the families' business.

use std::time::Duration;

use crate::counts::BusCounts;
use crate::dialect::{Dialect, ServoRequest};
use crate::error::BusError;
use crate::framing::{RawReply, ReplyFraming};
use crate::wire::BROADCAST;
use base::clock::NodeClock;
use base::units::ClockInstant;
use link::ByteLink;

/// Bits on the wire for one byte: start, eight, stop.
const BITS_A_BYTE: u64 = 10;

/// More bytes than this in answer to one request are noise without end.
const BYTES_MAX: usize = 4096;

/// The longest that an adapter is given to pass a reply on, before it has been measured.
pub const SLACK_UNKNOWN: Duration = Duration::from_millis(34);

/// The shortest that an adapter is given, however quick it was.
const SLACK_MIN: Duration = Duration::from_millis(2);

/// A reply that was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusReply {
    pub error: u8,
    pub data: Vec<u8>,
}

impl StatusReply {
    /// A byte of the reply.
    ///
    /// # Panics
    /// Beyond its end, which is where its register ends: the length was checked when the reply was
    /// taken.
    #[expect(
        clippy::indexing_slicing,
        reason = "a place within the register that was asked for"
    )]
    pub fn byte(&self, at: usize) -> u8 {
        self.data[at]
    }

    /// The whole reply as one little-endian number.
    ///
    /// # Panics
    /// When it has more than four bytes.
    pub fn number(&self) -> i32 {
        assert!(
            self.data.len() <= 4,
            "{} bytes of a number",
            self.data.len()
        );
        let mut bytes = [0; 4];
        for (to, from) in bytes.iter_mut().zip(&self.data) {
            *to = *from;
        }
        i32::from_le_bytes(bytes)
    }

    /// Four bytes of the reply as a little-endian number.
    pub fn long(&self, at: usize) -> i32 {
        let bytes = [at, at + 1, at + 2, at + 3].map(|at| self.byte(at));
        i32::from_le_bytes(bytes)
    }

    /// A little-endian word of the reply.
    pub fn word(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.byte(at), self.byte(at + 1)])
    }
}

/// Replies expected to one request.
#[derive(Clone, Copy, Debug)]
struct ExpectedReplies<'a> {
    /// Servos that reply, in this order.
    ids: &'a [u8],
    /// Parameter bytes of each reply.
    parameters: usize,
    /// Latest time to stop waiting.
    until: ClockInstant,
}

/// The near end of a servo bus.
pub struct ServoBus {
    framing: Box<dyn ReplyFraming>,
    pub clock: NodeClock,
    pub baud: u32,
    pub return_delay: Duration,
    pub slack: Duration,
    /// Time beyond that for which replies are waited for now.
    pub longer: Duration,
    /// `true` if the adapter was found to echo what it is sent.
    pub echoes: bool,
    /// Arrival of the last bytes in reply to the last request.
    pub heard_at: ClockInstant,
    pub counts: BusCounts,
}

impl ServoBus {
    pub fn new(
        framing: Box<dyn ReplyFraming>,
        clock: &NodeClock,
        baud: u32,
        counts: BusCounts,
    ) -> Self {
        Self {
            framing,
            clock: clock.clone(),
            baud,
            return_delay: Duration::from_micros(500),
            slack: SLACK_UNKNOWN,
            longer: Duration::ZERO,
            echoes: false,
            heard_at: ClockInstant::ZERO,
            counts,
        }
    }

    /// Adapts the waiting to the slowest turn-round seen so far.
    pub fn learn_latency(&mut self, worst: Duration) {
        self.slack = (2 * worst + Duration::from_millis(1)).clamp(SLACK_MIN, SLACK_UNKNOWN);
    }

    /// Sends a request of a family behind the bytes of `first`, and returns what each servo that it asks
    /// answers, in their order.
    ///
    /// # Errors
    /// When the line itself fails.
    pub async fn request<D: Dialect>(
        &mut self,
        link: &mut dyn ByteLink,
        first: Vec<u8>,
        request: ServoRequest<'_>,
        until: ClockInstant,
    ) -> Result<Vec<Option<StatusReply>>, BusError> {
        let mut bytes = first;
        D::encode(&mut bytes, request);
        let (ids, parameters) = match &request {
            ServoRequest::Ping(id) => (std::slice::from_ref(id), D::PING_LENGTH),
            ServoRequest::Read(id, of) => (std::slice::from_ref(id), usize::from(of.length)),
            ServoRequest::SyncRead(of, ids) => (*ids, usize::from(of.length)),
            ServoRequest::FastSyncRead(of, ids) => {
                (&[BROADCAST][..], D::fast_length(*of, ids.len()))
            }
            _ => (&[][..], 0),
        };
        let expect = ExpectedReplies {
            ids,
            parameters,
            until,
        };
        let mut replies = self.ask(link, &bytes, expect).await?;
        let ServoRequest::FastSyncRead(register, ids) = request else {
            return Ok(replies);
        };
        let whole = replies.pop().flatten();
        let split = whole.and_then(|whole| D::split_fast(&whole, register, ids));
        Ok(split.unwrap_or_else(|| vec![None; ids.len()]))
    }

    /// Sends `request` and gathers the replies; `None` where one did not come.
    async fn ask(
        &mut self,
        link: &mut dyn ByteLink,
        request: &[u8],
        expect: ExpectedReplies<'_>,
    ) -> Result<Vec<Option<StatusReply>>, BusError> {
        let gather = self.exchange(link, request, &expect).await?;
        let (is_echo, replies) = (gather.echoed, gather.replies);
        let other = self.framing.distinct(request);
        let Some(other) = other.filter(|_| is_echo && !self.echoes) else {
            self.found_echo(is_echo);
            return Ok(replies);
        };
        // What came back is our own request, or a reply with the same bytes.
        let Some(echoes) = self.learns_echo(link, &other, &expect).await? else {
            return Ok(replies);
        };
        self.found_echo(echoes);
        match (echoes, expect.ids) {
            (false, [_]) => Ok(self.replies_in(request, &expect)),
            _ => Ok(replies),
        }
    }

    /// Counts an echo. An adapter that was heard to return what it is sent always does.
    fn found_echo(&mut self, is_echo: bool) {
        self.counts.echoes += u64::from(is_echo);
        self.echoes |= is_echo;
    }

    /// Finds out whether the adapter returns what it is sent, by a request that no reply equals. `None` where there is no
    /// time for that before the awaited moment, or where what is heard is neither.
    async fn learns_echo(
        &mut self,
        link: &mut dyn ByteLink,
        request: &[u8],
        expect: &ExpectedReplies<'_>,
    ) -> Result<Option<bool>, BusError> {
        let expect = ExpectedReplies {
            parameters: 1,
            ..*expect
        };
        if self.reply_deadline(request.len(), &expect) > expect.until {
            return Ok(None);
        }
        let reply = self.framing.overhead() + expect.parameters;
        let heard_at = self.heard_at;
        let gather = self.exchange(link, request, &expect).await?;
        self.heard_at = heard_at;
        let is_reply_alone = gather.is_complete() && gather.heard == reply;
        Ok(match gather.echoed {
            true => Some(true),
            false if gather.heard == 0 || is_reply_alone => Some(false),
            false => None,
        })
    }

    /// Takes bytes that were held for an echo as what they are.
    fn replies_in(
        &mut self,
        bytes: &[u8],
        expect: &ExpectedReplies<'_>,
    ) -> Vec<Option<StatusReply>> {
        self.framing.clear();
        let mut gather = ReplyCollector::new(&[], expect, false);
        gather.take(bytes, self.framing.as_mut(), &mut self.counts);
        gather.replies
    }

    async fn exchange<'a>(
        &mut self,
        link: &mut dyn ByteLink,
        request: &'a [u8],
        expect: &ExpectedReplies<'a>,
    ) -> Result<ReplyCollector<'a>, BusError> {
        self.send_unanswered(link, request).await?;
        let until = expect.until.min(self.reply_deadline(request.len(), expect));
        let corrupt_before = self.framing.corrupt();
        let mut gather = ReplyCollector::new(request, expect, self.echoes);
        let mut buffer = [0_u8; 256];
        while !gather.is_complete() && gather.heard < BYTES_MAX {
            let count = link
                .receive(&mut buffer, until)
                .await
                .map_err(BusError::Read)?;
            if count == 0 {
                break;
            }
            self.heard_at = self.clock.now();
            let (heard, _) = buffer.split_at(count);
            gather.take(heard, self.framing.as_mut(), &mut self.counts);
        }
        self.counts.corrupt += self.framing.corrupt() - corrupt_before;
        Ok(gather)
    }

    /// Sends a request that has no reply.
    pub async fn send_unanswered(
        &mut self,
        link: &mut dyn ByteLink,
        request: &[u8],
    ) -> Result<(), BusError> {
        link.discard_input().map_err(BusError::Read)?;
        self.framing.clear();
        self.counts.transactions += 1;
        link.send(request).await.map_err(BusError::Write)
    }

    /// Returns the time by which a transaction that starts now has certainly ended.
    fn reply_deadline(&self, request: usize, expect: &ExpectedReplies<'_>) -> ClockInstant {
        let replies = expect.ids.len() * (expect.parameters + self.framing.overhead());
        let waiting: Duration = expect.ids.iter().map(|_| self.return_delay).sum();
        self.clock
            .now()
            .after(self.wire_time(request + replies) + waiting + self.slack + self.longer)
    }

    /// Returns the time that N bytes take on the wire.
    pub fn wire_time(&self, bytes: usize) -> Duration {
        let bits = bytes as u64 * BITS_A_BYTE;
        Duration::from_nanos(bits * 1_000_000_000 / u64::from(self.baud))
    }
}

/// The replies of one transaction as they come in.
struct ReplyCollector<'a> {
    ids: &'a [u8],
    parameters: usize,
    echo: EchoFilter<'a>,
    echoed: bool,
    next_place: usize,
    heard: usize,
    replies: Vec<Option<StatusReply>>,
}

impl<'a> ReplyCollector<'a> {
    fn new(request: &'a [u8], expect: &ExpectedReplies<'a>, echoes: bool) -> Self {
        Self {
            ids: expect.ids,
            parameters: expect.parameters,
            echo: EchoFilter::new(request, echoes),
            echoed: false,
            next_place: 0,
            heard: 0,
            replies: vec![None; expect.ids.len()],
        }
    }

    /// Once the last servo in the row has spoken the ones before it will not.
    fn is_complete(&self) -> bool {
        self.next_place >= self.ids.len()
    }

    fn take(&mut self, bytes: &[u8], framing: &mut dyn ReplyFraming, counts: &mut BusCounts) {
        self.heard += bytes.len();
        let ended = self.echo.pass(bytes, |fresh| framing.push(fresh));
        self.echoed |= ended;
        while let Some(reply) = framing.next(self.parameters) {
            match self.place_of(&reply) {
                Some(place) => {
                    self.next_place = place + 1;
                    if let Some(slot) = self.replies.get_mut(place) {
                        *slot = Some(StatusReply {
                            error: reply.error,
                            data: reply.parameters.to_vec(),
                        });
                    }
                }
                None => counts.foreign += 1,
            }
        }
    }

    fn place_of(&self, reply: &RawReply<'_>) -> Option<usize> {
        let later = self.ids.get(self.next_place..)?;
        let offset = later.iter().position(|id| *id == reply.id)?;
        (reply.parameters.len() == self.parameters).then_some(self.next_place + offset)
    }
}

/// Drops our own bytes where a half-duplex adapter returns them.
///
/// Whether it does is found out on a quiet line, from the first replies. From then on everything up
/// to the end of our request is ours: the rest of an earlier request may come before it.
struct EchoFilter<'a> {
    awaited: &'a [u8],
    held: Vec<u8>,
    state: EchoState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EchoState {
    /// Nothing is known yet: what comes may be our own bytes from the first one on.
    Comparing,
    /// Our own bytes will come.
    Searching,
    /// The next bytes are not our own.
    Past,
}

impl<'a> EchoFilter<'a> {
    fn new(awaited: &'a [u8], known: bool) -> Self {
        Self {
            awaited,
            held: Vec::new(),
            state: if known {
                EchoState::Searching
            } else {
                EchoState::Comparing
            },
        }
    }

    /// Hands on what is not ours; whether our own bytes have just ended.
    fn pass(&mut self, bytes: &[u8], mut fresh: impl FnMut(&[u8])) -> bool {
        if self.state == EchoState::Past {
            fresh(bytes);
            return false;
        }
        self.held.extend(bytes);
        let end = match self.state {
            EchoState::Searching => end_of(&self.held, self.awaited),
            _ => self
                .held
                .starts_with(self.awaited)
                .then_some(self.awaited.len()),
        };
        if let Some(end) = end {
            let (_, behind) = self.held.split_at(end);
            fresh(behind);
        } else if self.state == EchoState::Searching || self.awaited.starts_with(&self.held) {
            return false;
        } else {
            // It was no echo: what looked like one belongs to a reply.
            fresh(&self.held);
        }
        self.state = EchoState::Past;
        end.is_some()
    }
}

/// Returns the position just behind `wanted` in `bytes`.
fn end_of(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    let places = bytes.windows(wanted.len().max(1));
    let begin = places.into_iter().position(|window| window == wanted)?;
    Some(begin + wanted.len())
}
