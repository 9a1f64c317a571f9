//! Services that the page needs: it verifies tokens, senses arms and carries out verbs and stops through them.

use call::{ArrivalStamp, Refusal, ToolAnswer, VerifiedIdentity};
use futures::future::BoxFuture;
use serde_json::Value;

/// Verifies tokens and carries out operators' verbs for the page.
pub trait PageServices: Send + Sync + 'static {
    /// Verifies a token that a person typed. May take a second.
    fn verify(&self, token: String) -> BoxFuture<'static, Result<VerifiedIdentity, Refusal>>;

    /// Returns the holder of a token that was verified before, unless it has been revoked or has expired. Needs no slow hash.
    fn holder(&self, token: String) -> BoxFuture<'static, Option<VerifiedIdentity>>;

    /// Returns the longest verb that is read; a verb may contain a design.
    fn verb_bytes_max(&self) -> usize;

    /// Carries out an operator's verb, in the format of the control socket, under a caller's name.
    fn operate(
        &self,
        caller: String,
        verb: Vec<u8>,
        arrived: ArrivalStamp,
    ) -> BoxFuture<'static, Result<Value, Refusal>>;

    /// Returns whether a verb is a stop, and if so whether it is an emergency stop.
    fn stop_in(&self, verb: &[u8]) -> Option<bool>;

    /// Senses an arm with its cameras and its bus; if none is named, the only one. Moves nothing.
    fn sense(&self, caller: String, arm: Option<String>) -> BoxFuture<'static, ToolAnswer>;

    /// Stops every arm, as an operator, before anything that waits. A stop that has begun is carried out even if the future is
    /// dropped.
    fn stop(&self, caller: String, emergency: bool) -> BoxFuture<'static, StopAnswer>;
}

/// Outcome of a stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopAnswer {
    /// True if the standstill of every arm was read back.
    pub verified: bool,
    /// First frame, standstill and position of each arm, as text.
    pub words: String,
}
