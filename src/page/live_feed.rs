//! The stream of events that open pages follow. What is sent is made once for all of them, and only while one listens.

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
use tools::Node;

use super::live_sheet::{LiveSheet, SheetKey};
use super::live_state::LiveNode;
use super::page_refusal::PageRefusal;

/// Interval at which the arms are looked at, and at which pages hear of arms that move.
const LOOK: Duration = Duration::from_millis(100);

/// Looks after which pages hear again though nothing has changed.
const QUIET_LOOKS: u32 = 4;

/// Pages that follow at the same time.
pub(super) const FOLLOWERS_MAX: usize = 64;

/// Begins each stream: a browser that loses it tries again after this many milliseconds.
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

/// A page that follows, while this lives.
struct Follower(Arc<AtomicUsize>);

impl Drop for Follower {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl LiveFeed {
    /// Begins to publish. Must be called on a runtime.
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
        let following = Following {
            frames,
            sent: None,
            stop: self.stop.clone(),
            _follower: follower,
        };
        let events = stream::unfold(following, |mut following| async move {
            let events = following.next().await?;
            Some((Ok::<_, Infallible>(events), following))
        });
        Ok(Body::from_stream(events))
    }
}

/// One page's place in the feed.
struct Following {
    frames: watch::Receiver<LiveFrame>,
    /// The sheets that it has; `None` before anything was sent.
    sent: Option<Vec<Arc<Bytes>>>,
    stop: CancellationToken,
    _follower: Follower,
}

impl Following {
    /// Waits for news. A page that reads slowly gets the newest and misses what was between.
    async fn next(&mut self) -> Option<Bytes> {
        if self.sent.is_some() {
            tokio::select! {
                changed = self.frames.changed() => changed.ok()?,
                () = self.stop.cancelled() => return None,
            }
        }
        let frame = self.frames.borrow_and_update().clone();
        let sent = self.sent.replace(frame.sheets.clone());
        let is_news = |sheet: &&Arc<Bytes>| {
            let mut sent = sent.iter().flatten();
            !sent.any(|known| Arc::ptr_eq(known, sheet))
        };
        let news: Vec<&Arc<Bytes>> = frame.sheets.iter().filter(is_news).collect();
        if news.is_empty() && sent.is_some() {
            return Some(frame.state);
        }
        let mut events = RETRY.as_bytes().to_vec();
        news.iter()
            .for_each(|sheet| events.extend_from_slice(sheet));
        events.extend_from_slice(&frame.state);
        Some(events.into())
    }
}

fn event(kind: &str, data: &impl Serialize) -> Bytes {
    // JSON has no line break of its own.
    let data = serde_json::to_string(data).unwrap_or_default();
    format!("event: {kind}\ndata: {data}\n\n").into()
}

/// Publishes while pages follow, until the node ends.
async fn publish(node: Arc<Node>, feed: LiveFeed) {
    let mut looks = tokio::time::interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut publisher = LivePublisher::new(&node);
    loop {
        if feed.frames.receiver_count() == 0 {
            publisher.quiet = QUIET_LOOKS;
            tokio::select! {
                () = feed.wake.notified() => {}
                () = feed.stop.cancelled() => return,
            }
        }
        tokio::select! {
            _ = looks.tick() => {}
            () = feed.stop.cancelled() => return,
        }
        if let Some(frame) = publisher.look().await {
            feed.frames.send_replace(frame);
        }
    }
}

struct LivePublisher {
    node: Arc<Node>,
    sheets: Vec<FollowedSheet>,
    headline: String,
    /// Looks since pages heard last.
    quiet: u32,
}

/// An arm's sheet, and the newer one that is being read.
#[derive(Default)]
struct FollowedSheet {
    sheet: LiveSheet,
    /// `None` where no scene is for the arm.
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
            quiet: QUIET_LOOKS,
        }
    }

    /// Looks at the arms. Returns what is to be sent, if anything is.
    async fn look(&mut self) -> Option<LiveFrame> {
        let mut state = LiveNode::of(&self.node);
        let mut is_news = state.is_busy();
        for (at, followed) in self.sheets.iter_mut().enumerate() {
            if let (Some(seat), Some(arm)) = (self.node.arms.get(at), state.arms.get_mut(at)) {
                let key = SheetKey::of(seat.last_scene().as_deref(), arm.job.as_ref());
                is_news |= followed.keep_up(&self.node, at, key).await;
                arm.ink_mm = Some(followed.sheet.ink_mm(seat));
            }
        }
        let headline = state.headline();
        is_news |= headline != self.headline;
        self.headline = headline;
        self.quiet = self.quiet.saturating_add(1);
        if !is_news && self.quiet < QUIET_LOOKS {
            return None;
        }
        self.quiet = 0;
        let sheets = self.sheets.iter().filter_map(|sheet| sheet.event.clone());
        Some(LiveFrame {
            state: event("state", &state),
            sheets: sheets.collect(),
        })
    }
}

impl FollowedSheet {
    /// Reads a changed sheet, on a thread for that. Returns whether there is a newer one now.
    async fn keep_up(&mut self, node: &Arc<Node>, at: usize, key: SheetKey) -> bool {
        if let Some(reading) = self.reading.take_if(|reading| reading.is_finished())
            && let Ok(sheet) = reading.await
        {
            let message = sheet.message.as_ref();
            self.event = message.map(|message| Arc::new(event("sheet", message)));
            (self.sheet, self.is_read) = (sheet, true);
            return true;
        }
        let is_known = self.is_read && self.sheet.key == key;
        if !is_known && self.reading.is_none() {
            let node = Arc::clone(node);
            self.reading = Some(tokio::task::spawn_blocking(move || {
                match node.arms.get(at) {
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
