//! Callers and their permissions: roles, tokens, login codes, rates and the lease of the arm.

mod auth_backoff;
mod lease;
mod login_codes;
mod rate_limit;
mod token;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use lease::{ArmLease, LeaseHeldError};
pub use login_codes::{CODE_VALID, LoginCodeError, LoginCodes, is_login_code};
pub use rate_limit::RateLimiter;
pub use token::{AccessDenied, TokenCard, TokenError, TokenStore};

/// Role of a caller. Every caller that is let in may call `stop`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallerRole {
    /// Looks: tools that read.
    Viewer,
    /// Draws within what is enabled: tools that read and tools that move.
    Planner,
    /// A person: as a planner, and may reset what an operator stopped.
    Operator,
}

impl CallerRole {
    /// All, the weakest first.
    pub const ALL: [Self; 3] = [Self::Viewer, Self::Planner, Self::Operator];

    /// Returns whether tools that move the arm may be called.
    #[must_use]
    pub fn may_move(self) -> bool {
        self >= Self::Planner
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Planner => "planner",
            Self::Operator => "operator",
        }
    }
}

impl fmt::Display for CallerRole {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.word())
    }
}

/// A word that is no role.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no role; the roles are viewer (reads), planner (reads, moves) and operator")]
pub struct UnknownRoleError(String);

impl FromStr for CallerRole {
    type Err = UnknownRoleError;

    fn from_str(word: &str) -> Result<Self, UnknownRoleError> {
        Self::ALL
            .into_iter()
            .find(|role| role.word().eq_ignore_ascii_case(word.trim()))
            .ok_or_else(|| UnknownRoleError(word.chars().take(40).collect()))
    }
}

/// Caller that came in with a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// The token's name, as the operator gave it.
    pub name: String,
    /// Role of the caller.
    pub role: CallerRole,
    /// Calls a minute, stops aside.
    pub calls_per_minute: u32,
}
