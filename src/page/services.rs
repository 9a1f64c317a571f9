//! Services that the page needs: tokens proven, arms sensed, verbs and stops carried out.

use call::{Refusal, ToolAnswer, VerifiedIdentity};
use futures::future::BoxFuture;
use serde_json::Value;

/// The side that proves tokens and does operators' verbs.
pub trait PageServices: Send + Sync + 'static {
    /// Proves a token that somebody typed. May take a second.
    fn verify(&self, token: String) -> BoxFuture<'static, Result<VerifiedIdentity, Refusal>>;

    /// Returns the holder of a token that was proven before, unless it was revoked or has ended meanwhile. Takes no time.
    fn holder(&self, token: &str) -> Option<VerifiedIdentity>;

    /// Returns the longest verb that is read: a design may come in one.
    fn verb_bytes_max(&self) -> usize;

    /// Does an operator's verb, written as on the control socket, under a caller's name.
    fn operate(&self, caller: String, verb: Vec<u8>) -> BoxFuture<'static, Result<Value, Refusal>>;

    /// Has an arm sensed, with its cameras and its bus; the only one where none is named. Moves nothing.
    fn sense(&self, caller: String, arm: Option<String>) -> BoxFuture<'static, ToolAnswer>;

    /// Stops every arm, as an operator, before anything that waits. What began goes on if the future is dropped.
    fn stop(&self, caller: String, emergency: bool) -> BoxFuture<'static, StopAnswer>;
}

/// Outcome of a stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopAnswer {
    /// True if every arm was read back to stand.
    pub verified: bool,
    /// First frame, standstill and place of each arm, in words.
    pub words: String,
}
