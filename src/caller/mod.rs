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
    /// May call tools that read.
    Viewer,
    /// May call tools that read and tools that move, within what is enabled.
    Planner,
    /// A person: has a planner's rights, and may reset what an operator stopped.
    Operator,
}

impl CallerRole {
    /// All roles, the weakest first.
    pub const ALL: [Self; 3] = [Self::Viewer, Self::Planner, Self::Operator];

    /// Returns whether tools that move the arm may be called.
    #[must_use]
    pub fn may_move(self) -> bool {
        self >= Self::Planner
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Planner => "planner",
            Self::Operator => "operator",
        }
    }
}

impl fmt::Display for CallerRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text that names no role.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a role. Valid: viewer (reads), planner (reads and moves), operator (does everything)"
)]
pub struct UnknownRoleError(String);

impl FromStr for CallerRole {
    type Err = UnknownRoleError;

    fn from_str(text: &str) -> Result<Self, UnknownRoleError> {
        Self::ALL
            .into_iter()
            .find(|role| role.name().eq_ignore_ascii_case(text.trim()))
            .ok_or_else(|| UnknownRoleError(text.chars().take(40).collect()))
    }
}

/// A caller that was let in by a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// The token's name, as the operator gave it.
    pub name: String,
    /// Role of the caller.
    pub role: CallerRole,
    /// Calls per minute, not counting stops.
    pub calls_per_minute: u32,
}
