//! Requires a caller's certificate before it moves the arm, if the node or the token demands one.

use super::Node;
use super::dispatch::ToolRequest;
use super::reply::{Reply, refused};
use base::wording::with_next;
use caller::CallerRole;
use catalogue::{KnownNames, ToolDefinition, ToolEffect};
use permit::ActorRank;

/// Checks the certificates of tokens.
pub trait CertificateChecker: Send + Sync {
    /// Checks that the holder of this token has a certificate valid for the names that this node shows now.
    ///
    /// # Errors
    /// The required level, and the reason why it is not proven.
    fn check_certificate(
        &self,
        token: Option<&str>,
        here: &KnownNames,
    ) -> Result<(), (String, String)>;
}

impl Node {
    /// Refuses motion, here or on another node, to a caller that needs a certificate and has no valid one. Operators and dry
    /// runs need none, nor do the steps of a declared tool, which was checked for all of them.
    pub(super) fn check_certificate(
        &self,
        tool: &ToolDefinition,
        request: &ToolRequest,
        is_dry_run: bool,
    ) -> Result<(), Box<Reply>> {
        let principal = request.principal.as_ref();
        let role = principal.map(|principal| principal.role);
        let is_operator = request.who == ActorRank::Operator || role == Some(CallerRole::Operator);
        // `dry_run` means that only for built-in tools.
        let is_preview = is_dry_run && !self.is_declared(tool);
        if tool.effect != ToolEffect::Moves || is_operator || is_preview || request.is_step {
            return Ok(());
        }
        let token = principal.map(|principal| principal.name.as_str());
        let (level, reason) = match (&self.examiner, self.file.qualified) {
            (Some(examiner), _) => match examiner.check_certificate(token, &self.all_names()) {
                Ok(()) => return Ok(()),
                Err(missing) => missing,
            },
            (None, None) => return Ok(()),
            (None, Some(level)) => {
                let reason = "this program cannot check certificates";
                (level.word().to_owned(), reason.to_owned())
            }
        };
        let denied = format!(
            "{} moves the arm, but this caller has not proven level {level}: {reason}",
            tool.name
        );
        let next = format!(
            "the operator runs `steadyhand exam run --planner URL --level {level}` and attaches the certificate to a token"
        );
        Err(refused("needs_qualification", with_next(denied, &next))
            .with("level", level)
            .boxed())
    }
}
