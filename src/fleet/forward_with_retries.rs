//! One call to one node: within its time, and sent again only where that does nothing twice.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::{
    Fleet, FleetPeer, FleetPolicy, OutgoingCall, PeerPresence, RemoteCallError, RemoteCallWatch,
    ToolAnswer, ToolEffect,
};

/// A stop is sent again at once, as often as this, while there is time.
const STOP_RETRIES: u32 = 10;

impl FleetPolicy {
    fn limit(&self, deed: ToolEffect) -> Duration {
        match deed {
            ToolEffect::Reads => self.read_within,
            ToolEffect::Moves => self.move_within,
            ToolEffect::Stops => self.stop_within,
        }
    }

    /// Returns the number of retries for a call that did not get through.
    fn retries(&self, deed: ToolEffect) -> u32 {
        match deed {
            ToolEffect::Reads => self.read_retries,
            ToolEffect::Moves => 0,
            ToolEffect::Stops => STOP_RETRIES,
        }
    }
}

impl Fleet {
    /// Forwards a call and waits for its answer.
    ///
    /// # Errors
    /// The reason for having no answer. A call that moves is sent only once, regardless of the outcome. Where several nodes go
    /// by one name, only a stop is sent.
    pub async fn forward(
        &self,
        peer: &FleetPeer,
        letter: OutgoingCall,
        deed: ToolEffect,
        watch: &RemoteCallWatch,
    ) -> Result<ToolAnswer, RemoteCallError> {
        if let (PeerPresence::Duplicate { count }, ToolEffect::Reads | ToolEffect::Moves) =
            (self.presence.of(&peer.name), deed)
        {
            return Err(RemoteCallError::Ambiguous(count));
        }
        let limit = self.rules.limit(deed);
        let until = Instant::now() + limit;
        let sent = self.send_with_retries(peer, letter, deed, watch, until);
        tokio::select! {
            answered = timeout_at(until, sent) => answered.unwrap_or(Err(RemoteCallError::Silent(limit))),
            // Dropping what is under way gives it up at the other end.
            () = watch.cancelled.cancelled() => Err(RemoteCallError::Cancelled),
        }
    }

    async fn send_with_retries(
        &self,
        peer: &FleetPeer,
        letter: OutgoingCall,
        deed: ToolEffect,
        watch: &RemoteCallWatch,
        until: Instant,
    ) -> Result<ToolAnswer, RemoteCallError> {
        let mut pause = self.rules.retry_after;
        for _ in 0..self.rules.retries(deed) {
            match self.reach.send(peer, letter.clone(), watch.clone()).await {
                // What cannot be done in time is told with its reason, not as a silence.
                Err(failure) if failure.is_retryable() && Instant::now() + pause < until => {
                    tracing::debug!(peer = peer.name, %failure, "asked again");
                }
                done => return done,
            }
            base::task::pause(pause).await;
            pause = pause.saturating_mul(2);
        }
        self.reach.send(peer, letter, watch.clone()).await
    }
}
