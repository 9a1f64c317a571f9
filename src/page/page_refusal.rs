//! Refusals of requests to the page's addresses.

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde_json::json;

use base::wording::with_statement;

/// Reason why a request of the page is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum PageRefusal {
    /// The request does not state that this node's own page sent it.
    #[error(
        "only this node's own page may ask this (`Sec-Fetch-Site` must be `same-origin`). Next: open the address that `steadyhand page` prints"
    )]
    OtherSite,
    /// A command from another page, or from none.
    #[error("only this node's own page may do this. Next: open {0}")]
    OtherOrigin(String),
    /// A plain form could have sent the command.
    #[error("a command needs `Content-Type: application/json` and the header `Steadyhand-Page`")]
    NotByScript,
    /// The browser is not logged in, or its session has ended.
    #[error(
        "you are not logged in. Stopping needs no login. Next: type a token, or the code that `steadyhand page` prints"
    )]
    NoSession,
    /// The role of the session's holder does not permit it.
    #[error(
        "{name} is a {role}, but only an operator may do this. Stopping needs no role. Next: log in with the code that `steadyhand page` prints"
    )]
    Role {
        /// The session's holder.
        name: String,
        /// Its role.
        role: String,
    },
    /// A refused verb was a stop, which was carried out all the same.
    #[error("{}", with_statement(refusal, &format!("it contains a stop, so all arms of this node were stopped: {outcome}")))]
    Stopped {
        /// Reason why the verb is refused.
        refusal: Box<Self>,
        /// Outcome of the stop, as text.
        outcome: String,
    },
    /// The token or code is not valid.
    #[error("{0}")]
    Login(String),
    /// A token would go over the network in plain text.
    #[error(
        "a token typed here would cross the network unencrypted. Next: give the node TLS in its node file, or open the page on its own machine or through `ssh -L`"
    )]
    PlainText,
    /// The command of this number was carried out before.
    #[error(
        "this command was already sent, so it is not carried out again. Next: load the page again"
    )]
    Twice,
    /// The body cannot be read.
    #[error("the request cannot be read: {0}. Next: load the page again")]
    Body(String),
    /// There is no such thing.
    #[error("there is no {0}")]
    Missing(String),
    /// No more pages can follow the arms at once.
    #[error("{0} pages already follow this node, which is the limit. Next: close one")]
    Full(usize),
    /// The node cannot do it now.
    #[error("{0}")]
    Broken(String),
}

impl PageRefusal {
    fn status(&self) -> StatusCode {
        match self {
            Self::OtherSite | Self::OtherOrigin(_) | Self::NotByScript => StatusCode::FORBIDDEN,
            Self::Role { .. } | Self::PlainText => StatusCode::FORBIDDEN,
            Self::Stopped { refusal, .. } => refusal.status(),
            Self::NoSession | Self::Login(_) => StatusCode::UNAUTHORIZED,
            Self::Twice => StatusCode::CONFLICT,
            Self::Body(_) => StatusCode::BAD_REQUEST,
            Self::Missing(_) => StatusCode::NOT_FOUND,
            Self::Full(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Broken(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl IntoResponse for PageRefusal {
    fn into_response(self) -> Response {
        let body = json!({"error": self.to_string()}).to_string();
        let kind = [(http::header::CONTENT_TYPE, "application/json")];
        (self.status(), kind, body).into_response()
    }
}
