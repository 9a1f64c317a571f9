//! One transaction on a half-duplex bus: discard, send a request, collect its replies. The link is claimed for no longer,
//! so that other arms on the bus have their turns in between.
//!
//! Only requested replies are ever used: a reply must have the right id and length, and come in
//! order. The meaning of the bytes is up to the families.

use std::time::Duration;

use crate::counts::BusCounts;
use crate::dialect::{Dialect, ServoRequest};
use crate::error::BusError;
use crate::framing::{RawReply, ReplyFraming};
use crate::wire::BROADCAST;
use base::clock::NodeClock;
use base::units::ClockInstant;
use link::{ByteLink, ClaimedLink};

/// Bits on the wire for one byte: start, eight, stop.
const BITS_PER_BYTE: u64 = 10;

/// Most bytes in reply to one request: more are endless noise.
const BYTES_MAX: usize = 4096;

/// Longest time for an adapter to pass a reply on; used before its latency was measured.
pub const SLACK_UNKNOWN: Duration = Duration::from_millis(34);

/// Shortest time for an adapter to pass a reply on, however quick it was.
const SLACK_MIN: Duration = Duration::from_millis(2);

/// A requested reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusReply {
    pub error: u8,
    pub data: Vec<u8>,
}

impl StatusReply {
    /// Returns a byte of the reply.
    ///
    /// # Panics
    /// Beyond its end, which is where its register ends: the length was checked when the reply was
    /// accepted.
    #[expect(
        clippy::indexing_slicing,
        reason = "an index within the register that was read"
    )]
    pub fn byte(&self, at: usize) -> u8 {
        self.data[at]
    }

    /// Returns the whole reply as one little-endian number.
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
        for (target, byte) in bytes.iter_mut().zip(&self.data) {
            *target = *byte;
        }
        i32::from_le_bytes(bytes)
    }

    /// Returns four bytes of the reply as a little-endian number.
    pub fn long(&self, at: usize) -> i32 {
        let bytes = [at, at + 1, at + 2, at + 3].map(|at| self.byte(at));
        i32::from_le_bytes(bytes)
    }

    /// Returns a little-endian word of the reply.
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
    /// Time at which waiting ends at the latest.
    until: ClockInstant,
}

/// The near end of a servo bus.
pub struct ServoBus {
    framing: Box<dyn ReplyFraming>,
    pub clock: NodeClock,
    pub baud: u32,
    pub return_delay: Duration,
    pub slack: Duration,
    /// Present additional time to wait for replies.
    pub extra_wait: Duration,
    /// `true` if the adapter was found to echo what it is sent.
    pub echoes: bool,
    /// Moment at which the last request that has replies could go out.
    pub sent_at: ClockInstant,
    /// Arrival of the last bytes in reply to the last request.
    pub received_at: ClockInstant,
    pub counts: BusCounts,
    /// Number of requests after which only bytes came that are no frame and no echo.
    pub unreadable: u64,
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
            extra_wait: Duration::ZERO,
            echoes: false,
            sent_at: ClockInstant::ZERO,
            received_at: ClockInstant::ZERO,
            counts,
            unreadable: 0,
        }
    }

    /// Adapts the slack to the slowest measured round trip.
    pub fn learn_latency(&mut self, worst: Duration) {
        self.slack = (2 * worst + Duration::from_millis(1)).clamp(SLACK_MIN, SLACK_UNKNOWN);
    }

    /// Sends a request of a family after the bytes of `first`, and returns the reply of each requested
    /// servo, in their order.
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
            ServoRequest::Read(id, reg) => (std::slice::from_ref(id), usize::from(reg.length)),
            ServoRequest::SyncRead(reg, ids) => (*ids, usize::from(reg.length)),
            ServoRequest::FastSyncRead(reg, ids) => {
                (&[BROADCAST][..], D::fast_length(*reg, ids.len()))
            }
            _ => (&[][..], 0),
        };
        let expected = ExpectedReplies {
            ids,
            parameters,
            until,
        };
        let mut replies = self.transact(link, &bytes, expected).await?;
        let ServoRequest::FastSyncRead(reg, ids) = request else {
            return Ok(replies);
        };
        let combined = replies.pop().flatten();
        let split = combined.and_then(|combined| D::split_fast(&combined, reg, ids));
        Ok(split.unwrap_or_else(|| vec![None; ids.len()]))
    }

    /// Sends `request` and collects the replies; `None` where one did not come.
    async fn transact(
        &mut self,
        link: &mut dyn ByteLink,
        request: &[u8],
        expected: ExpectedReplies<'_>,
    ) -> Result<Vec<Option<StatusReply>>, BusError> {
        let collector = self.exchange(link, request, &expected).await?;
        let (is_echo, replies) = (collector.echoed, collector.replies);
        let probe = self.framing.distinct(request);
        let Some(probe) = probe.filter(|_| is_echo && !self.echoes) else {
            self.note_echo(is_echo);
            return Ok(replies);
        };
        // The received bytes are either the echo of the request or a reply with the same bytes.
        let Some(echoes) = self.probe_echo(link, &probe, &expected).await? else {
            return Ok(replies);
        };
        self.note_echo(echoes);
        match (echoes, expected.ids) {
            (false, [_]) => Ok(self.replies_in(request, &expected)),
            _ => Ok(replies),
        }
    }

    /// Notes whether a transaction had an echo. An adapter that has echoed once always does.
    fn note_echo(&mut self, is_echo: bool) {
        self.counts.echoes += u64::from(is_echo);
        self.echoes |= is_echo;
    }

    /// Finds out whether the adapter echoes, by a request that no reply equals. `None` where there is no
    /// time for that before the deadline, or where the received bytes are neither echo nor reply.
    async fn probe_echo(
        &mut self,
        link: &mut dyn ByteLink,
        request: &[u8],
        expected: &ExpectedReplies<'_>,
    ) -> Result<Option<bool>, BusError> {
        let expected = ExpectedReplies {
            parameters: 1,
            ..*expected
        };
        if self.reply_deadline(request.len(), &expected) > expected.until {
            return Ok(None);
        }
        let reply = self.framing.overhead() + expected.parameters;
        let times = (self.sent_at, self.received_at);
        let collector = self.exchange(link, request, &expected).await?;
        (self.sent_at, self.received_at) = times;
        let is_reply_only = collector.is_complete() && collector.received == reply;
        Ok(match collector.echoed {
            true => Some(true),
            false if collector.received == 0 || is_reply_only => Some(false),
            false => None,
        })
    }

    /// Decodes bytes that were taken for an echo as replies.
    fn replies_in(
        &mut self,
        bytes: &[u8],
        expected: &ExpectedReplies<'_>,
    ) -> Vec<Option<StatusReply>> {
        self.framing.clear();
        let mut collector = ReplyCollector::new(&[], expected, false);
        collector.take(bytes, self.framing.as_mut(), &mut self.counts);
        collector.replies
    }

    async fn exchange<'a>(
        &mut self,
        link: &mut dyn ByteLink,
        request: &'a [u8],
        expected: &ExpectedReplies<'a>,
    ) -> Result<ReplyCollector<'a>, BusError> {
        let asked_at = self.clock.now();
        let mut link = ClaimedLink::claim(link).await.map_err(BusError::Write)?;
        self.sent_at = self.clock.now();
        // The time for which another arm had the bus is not the servos'.
        let latest = expected.until.after(self.sent_at.since(asked_at));
        self.send(&mut *link, request).await?;
        let until = self.reply_deadline(request.len(), expected);
        let until = until.min(latest);
        let corrupt_before = self.framing.corrupt();
        let foreign_before = self.counts.foreign;
        let mut collector = ReplyCollector::new(request, expected, self.echoes);
        let mut buffer = [0_u8; 256];
        while !collector.is_complete() && collector.received < BYTES_MAX {
            let count = link
                .receive(&mut buffer, until)
                .await
                .map_err(BusError::Read)?;
            if count == 0 {
                break;
            }
            self.received_at = self.clock.now();
            let (received, _) = buffer.split_at(count);
            collector.take(received, self.framing.as_mut(), &mut self.counts);
        }
        let corrupt = self.framing.corrupt() - corrupt_before;
        self.counts.corrupt += corrupt;
        let is_readable = collector.echoed
            || collector.replies.iter().any(Option::is_some)
            || corrupt > 0
            || self.counts.foreign > foreign_before;
        self.unreadable += u64::from(collector.received > 0 && !is_readable);
        Ok(collector)
    }

    /// Sends a request that has no reply.
    pub async fn send_unanswered(
        &mut self,
        link: &mut dyn ByteLink,
        request: &[u8],
    ) -> Result<(), BusError> {
        let mut link = ClaimedLink::claim(link).await.map_err(BusError::Write)?;
        self.send(&mut *link, request).await
    }

    async fn send(&mut self, link: &mut dyn ByteLink, request: &[u8]) -> Result<(), BusError> {
        link.discard_input().map_err(BusError::Read)?;
        self.framing.clear();
        self.counts.transactions += 1;
        link.send(request).await.map_err(BusError::Write)
    }

    /// Returns the time by which a transaction that starts now has certainly ended.
    fn reply_deadline(&self, request: usize, expected: &ExpectedReplies<'_>) -> ClockInstant {
        let replies = expected.ids.len() * (expected.parameters + self.framing.overhead());
        let waiting: Duration = expected.ids.iter().map(|_| self.return_delay).sum();
        self.clock
            .now()
            .after(self.wire_time(request + replies) + waiting + self.slack + self.extra_wait)
    }

    /// Returns the time that so many bytes take on the wire.
    pub fn wire_time(&self, bytes: usize) -> Duration {
        let bits = bytes as u64 * BITS_PER_BYTE;
        Duration::from_nanos(bits * 1_000_000_000 / u64::from(self.baud))
    }
}

/// The replies of one transaction as they come in.
struct ReplyCollector<'a> {
    ids: &'a [u8],
    parameters: usize,
    echo: EchoFilter<'a>,
    echoed: bool,
    next_index: usize,
    received: usize,
    replies: Vec<Option<StatusReply>>,
}

impl<'a> ReplyCollector<'a> {
    fn new(request: &'a [u8], expected: &ExpectedReplies<'a>, echoes: bool) -> Self {
        Self {
            ids: expected.ids,
            parameters: expected.parameters,
            echo: EchoFilter::new(request, echoes),
            echoed: false,
            next_index: 0,
            received: 0,
            replies: vec![None; expected.ids.len()],
        }
    }

    /// Returns whether the last servo in order has replied: the earlier ones will not reply any more.
    fn is_complete(&self) -> bool {
        self.next_index >= self.ids.len()
    }

    fn take(&mut self, bytes: &[u8], framing: &mut dyn ReplyFraming, counts: &mut BusCounts) {
        self.received += bytes.len();
        let ended = self.echo.filter(bytes, |forward| framing.push(forward));
        self.echoed |= ended;
        while let Some(reply) = framing.next(self.parameters) {
            match self.index_of(&reply) {
                Some(index) => {
                    self.next_index = index + 1;
                    if let Some(slot) = self.replies.get_mut(index) {
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

    fn index_of(&self, reply: &RawReply<'_>) -> Option<usize> {
        let remaining = self.ids.get(self.next_index..)?;
        let offset = remaining.iter().position(|id| *id == reply.id)?;
        (reply.parameters.len() == self.parameters).then_some(self.next_index + offset)
    }
}

/// Drops the request's own bytes where a half-duplex adapter echoes them.
///
/// Whether it does is found out on a quiet line, from the first replies. From then on everything up
/// to the end of the request is echo: the rest of an earlier request may come before it.
struct EchoFilter<'a> {
    request: &'a [u8],
    pending: Vec<u8>,
    state: EchoState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EchoState {
    /// It is unknown whether the adapter echoes: the first bytes may be the echo.
    Comparing,
    /// The echo will come.
    Searching,
    /// The echo is over.
    Done,
}

impl<'a> EchoFilter<'a> {
    fn new(request: &'a [u8], echoes: bool) -> Self {
        Self {
            request,
            pending: Vec::new(),
            state: if echoes {
                EchoState::Searching
            } else {
                EchoState::Comparing
            },
        }
    }

    /// Forwards what is no echo; returns whether the echo has just ended.
    fn filter(&mut self, bytes: &[u8], mut forward: impl FnMut(&[u8])) -> bool {
        if self.state == EchoState::Done {
            forward(bytes);
            return false;
        }
        self.pending.extend(bytes);
        let end = match self.state {
            EchoState::Searching => find_end(&self.pending, self.request),
            _ => self
                .pending
                .starts_with(self.request)
                .then_some(self.request.len()),
        };
        if let Some(end) = end {
            let (_, rest) = self.pending.split_at(end);
            forward(rest);
        } else if self.state == EchoState::Searching || self.request.starts_with(&self.pending) {
            return false;
        } else {
            // It was no echo: the bytes belong to a reply.
            forward(&self.pending);
        }
        self.state = EchoState::Done;
        end.is_some()
    }
}

/// Returns the position just after `needle` in `bytes`.
fn find_end(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    let windows = bytes.windows(needle.len().max(1));
    let begin = windows.into_iter().position(|window| window == needle)?;
    Some(begin + needle.len())
}
