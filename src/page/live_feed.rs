//! The stream of events that open pages follow. Each event is built once for all pages, and only while a page follows.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures::stream;
use serde::Serialize;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tools::{LiveSheet, Node, SheetKey};

use super::live_state::LiveNode;
use super::page_refusal::PageRefusal;

/// Interval at which the arms are checked, and at which pages are updated while an arm moves.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Number of checks after which pages are updated even if nothing has changed.
const QUIET_CHECKS_MAX: u32 = 4;

/// Largest number of pages that follow at the same time.
pub(super) const FOLLOWERS_MAX: usize = 64;

/// First line of each stream: a browser that loses the stream reconnects after this many milliseconds.
const RETRY: &str = "retry: 1000\n\n";

/// Feed that open pages follow.
#[derive(Clone)]
pub(super) struct LiveFeed {
    frames: watch::Sender<LiveFrame>,
    followers: Arc<AtomicUsize>,
    wake: Arc<Notify>,
    /// Ends every stream.
    stop: CancellationToken,
}

/// The newest events.
#[derive(Clone, Default)]
struct LiveFrame {
    state: Bytes,
    /// An event for each arm, shared with the frames before and after.
    sheets: Vec<Arc<Bytes>>,
}

/// Counts a page that follows for as long as it exists.
struct Follower(Arc<AtomicUsize>);

impl Drop for Follower {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl LiveFeed {
    /// Creates the feed and starts publishing. Must be called on a runtime.
    pub(super) fn of(node: &Arc<Node>, stop: CancellationToken) -> Self {
        let feed = Self {
            frames: watch::Sender::default(),
            followers: Arc::default(),
            wake: Arc::default(),
            stop,
        };
        base::task::spawn(publish(Arc::clone(node), feed.clone()));
        feed
    }

    /// Returns a stream of events for one page.
    ///
    /// # Errors
    /// Too many pages follow already.
    pub(super) fn follow(&self) -> Result<Body, PageRefusal> {
        let follower = Follower(Arc::clone(&self.followers));
        if self.followers.fetch_add(1, Ordering::AcqRel) >= FOLLOWERS_MAX {
            return Err(PageRefusal::Full(FOLLOWERS_MAX));
        }
        let frames = self.frames.subscribe();
        self.wake.notify_one();
        let subscription = FeedSubscription {
            frames,
            sent: None,
            stop: self.stop.clone(),
            _follower: follower,
        };
        let events = stream::unfold(subscription, |mut subscription| async move {
            let events = subscription.next().await?;
            Some((Ok::<_, Infallible>(events), subscription))
        });
        Ok(Body::from_stream(events))
    }
}

/// One page's subscription to the feed.
struct FeedSubscription {
    frames: watch::Receiver<LiveFrame>,
    /// The sheets that were sent; `None` before anything was sent.
    sent: Option<Vec<Arc<Bytes>>>,
    stop: CancellationToken,
    _follower: Follower,
}

impl FeedSubscription {
    /// Waits for new events. A page that reads slowly gets the newest and misses those before.
    async fn next(&mut self) -> Option<Bytes> {
        if self.sent.is_some() {
            tokio::select! {
                changed = self.frames.changed() => changed.ok()?,
                () = self.stop.cancelled() => return None,
            }
        }
        let frame = self.frames.borrow_and_update().clone();
        let sent = self.sent.replace(frame.sheets.clone());
        let is_new = |sheet: &&Arc<Bytes>| {
            let mut sent = sent.iter().flatten();
            !sent.any(|old| Arc::ptr_eq(old, sheet))
        };
        let fresh: Vec<&Arc<Bytes>> = frame.sheets.iter().filter(is_new).collect();
        if fresh.is_empty() && sent.is_some() {
            return Some(frame.state);
        }
        let mut events = RETRY.as_bytes().to_vec();
        fresh
            .iter()
            .for_each(|sheet| events.extend_from_slice(sheet));
        events.extend_from_slice(&frame.state);
        Some(events.into())
    }
}

fn event(kind: &str, data: &impl Serialize) -> Bytes {
    // Compact JSON contains no line breaks.
    let data = serde_json::to_string(data).unwrap_or_default();
    format!("event: {kind}\ndata: {data}\n\n").into()
}

/// Publishes while pages follow, until the node ends.
async fn publish(node: Arc<Node>, feed: LiveFeed) {
    let mut interval = tokio::time::interval(CHECK_INTERVAL);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut publisher = LivePublisher::new(&node);
    loop {
        if feed.frames.receiver_count() == 0 {
            publisher.quiet_checks = QUIET_CHECKS_MAX;
            tokio::select! {
                () = feed.wake.notified() => {}
                () = feed.stop.cancelled() => return,
            }
        }
        tokio::select! {
            _ = interval.tick() => {}
            () = feed.stop.cancelled() => return,
        }
        if let Some(frame) = publisher.next_frame().await {
            feed.frames.send_replace(frame);
        }
    }
}

struct LivePublisher {
    node: Arc<Node>,
    sheets: Vec<FollowedSheet>,
    headline: String,
    /// Number of checks since the last frame.
    quiet_checks: u32,
}

/// An arm's sheet, and the newer one that is being read.
#[derive(Default)]
struct FollowedSheet {
    sheet: LiveSheet,
    /// `None` if no scene is for the arm.
    event: Option<Arc<Bytes>>,
    is_read: bool,
    reading: Option<JoinHandle<LiveSheet>>,
}

impl LivePublisher {
    fn new(node: &Arc<Node>) -> Self {
        Self {
            node: Arc::clone(node),
            sheets: node.arms.iter().map(|_| FollowedSheet::default()).collect(),
            headline: String::new(),
            quiet_checks: QUIET_CHECKS_MAX,
        }
    }

    /// Checks the arms. Returns the frame to send, if there is one.
    async fn next_frame(&mut self) -> Option<LiveFrame> {
        let mut state = LiveNode::of(&self.node);
        let mut has_changed = state.is_busy();
        for (index, followed) in self.sheets.iter_mut().enumerate() {
            if let (Some(seat), Some(arm)) = (self.node.arms.get(index), state.arms.get_mut(index))
            {
                let key = SheetKey::of(seat, arm.job.as_ref());
                has_changed |= followed.refresh(&self.node, index, key).await;
                arm.ink_mm = Some(followed.sheet.ink_mm(seat));
            }
        }
        let headline = state.headline();
        has_changed |= headline != self.headline;
        self.headline = headline;
        self.quiet_checks = self.quiet_checks.saturating_add(1);
        if !has_changed && self.quiet_checks < QUIET_CHECKS_MAX {
            return None;
        }
        self.quiet_checks = 0;
        let sheets = self.sheets.iter().filter_map(|sheet| sheet.event.clone());
        Some(LiveFrame {
            state: event("state", &state),
            sheets: sheets.collect(),
        })
    }
}

impl FollowedSheet {
    /// Reads a changed sheet on a blocking thread. Returns whether there is a newer one now.
    async fn refresh(&mut self, node: &Arc<Node>, index: usize, key: SheetKey) -> bool {
        if let Some(reading) = self.reading.take_if(|reading| reading.is_finished())
            && let Ok(sheet) = reading.await
        {
            let message = sheet.message.as_ref();
            self.event = message.map(|message| Arc::new(event("sheet", message)));
            (self.sheet, self.is_read) = (sheet, true);
            return true;
        }
        let is_current = self.is_read && self.sheet.key == key;
        if !is_current && self.reading.is_none() {
            let node = Arc::clone(node);
            self.reading = Some(tokio::task::spawn_blocking(move || {
                match node.arms.get(index) {
                    Some(seat) => LiveSheet::read(&node, seat, key),
                    None => LiveSheet::default(),
                }
            }));
        }
        false
    }
}

/// Returns the state of a node's arms once, for a page that cannot follow a stream.
pub(super) fn state_json(node: &Node) -> String {
    serde_json::to_string(&LiveNode::of(node)).unwrap_or_default()
}
