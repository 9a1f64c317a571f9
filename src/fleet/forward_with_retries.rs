//! Sends one call to one node, within its time limit. It is sent again only if that cannot do anything twice.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::{
    Fleet, FleetPeer, FleetPolicy, OutgoingCall, PeerPresence, RemoteCallError, RemoteCallWatch,
    ToolAnswer, ToolEffect,
};

/// Longest pause before a stop is sent again: a node that is back is told within that time.
const STOP_PAUSE_MAX: Duration = Duration::from_millis(250);

impl FleetPolicy {
    fn limit(&self, effect: ToolEffect) -> Duration {
        match effect {
            ToolEffect::Reads => self.read_within,
            ToolEffect::Moves => self.move_within,
            ToolEffect::Stops => self.stop_within,
        }
    }

    /// Returns the number of retries for a call that did not get through, within its time limit.
    fn retries(&self, effect: ToolEffect) -> u32 {
        match effect {
            ToolEffect::Reads => self.read_retries,
            ToolEffect::Moves => 0,
            ToolEffect::Stops => u32::MAX,
        }
    }

    /// Returns the pause before a retry, after so many.
    fn pause(&self, effect: ToolEffect, retries: u32) -> Duration {
        let doubled = self
            .retry_after
            .saturating_mul(2_u32.saturating_pow(retries));
        match effect {
            ToolEffect::Stops => doubled.min(STOP_PAUSE_MAX),
            ToolEffect::Reads | ToolEffect::Moves => doubled,
        }
    }
}

impl Fleet {
    /// Forwards a call and waits for its answer. A stop is carried on even if the caller gives up.
    ///
    /// # Errors
    /// The reason why there is no answer. A call that moves is sent only once, regardless of the outcome. If several nodes have
    /// the same name, only a stop is sent.
    pub async fn forward(
        &self,
        peer: &FleetPeer,
        call: OutgoingCall,
        effect: ToolEffect,
        watch: &RemoteCallWatch,
    ) -> Result<ToolAnswer, RemoteCallError> {
        if let (PeerPresence::Duplicate { count }, ToolEffect::Reads | ToolEffect::Moves) =
            (self.presence.of(&peer.name), effect)
        {
            return Err(RemoteCallError::Ambiguous(count));
        }
        let is_stop = effect == ToolEffect::Stops;
        let _under_way = is_stop.then(|| self.stops_under_way.token());
        let given_up = self.given_up(is_stop, watch);
        let watch = match is_stop {
            true => &watch.without_cancellation(),
            false => watch,
        };
        let limit = self.policy.limit(effect);
        let deadline = Instant::now() + limit;
        let sending = self.send_with_retries(peer, call, effect, watch, deadline);
        tokio::select! {
            answer = timeout_at(deadline, sending) => answer.unwrap_or(Err(RemoteCallError::Silent(limit))),
            // Dropping the call under way gives it up at the other end.
            () = given_up => Err(RemoteCallError::Cancelled),
        }
    }

    /// Waits until a call is to be given up: when its caller goes; a stop only where as many others are carried on for callers
    /// that have gone as this node has connections to spare.
    async fn given_up(&self, is_stop: bool, watch: &RemoteCallWatch) {
        watch.cancelled.cancelled().await;
        if is_stop && let Ok(_carried_on) = self.abandoned_stops.try_acquire() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until every stop that is being forwarded has been answered, or its time is over.
    pub async fn wait_for_stops(&self) {
        self.stops_under_way.close();
        // Each ends within its own limit.
        self.stops_under_way.wait().await;
    }

    async fn send_with_retries(
        &self,
        peer: &FleetPeer,
        call: OutgoingCall,
        effect: ToolEffect,
        watch: &RemoteCallWatch,
        deadline: Instant,
    ) -> Result<ToolAnswer, RemoteCallError> {
        for retries in 0..self.policy.retries(effect) {
            let pause = self.policy.pause(effect, retries);
            match self.transport.send(peer, call.clone(), watch.clone()).await {
                // If there is no time for a retry, the failure itself is returned, not a timeout.
                Err(failure) if failure.is_retryable() && Instant::now() + pause < deadline => {
                    tracing::debug!(peer = peer.name, %failure, "sent again");
                }
                result => return result,
            }
            base::task::pause(pause).await;
        }
        self.transport.send(peer, call, watch.clone()).await
    }
}
