//! Requires a caller's certificate before it moves the arm, if the node or the token demands one.

use super::dispatch::ToolContext;
use super::reply::{Reply, refused};
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

impl ToolContext<'_> {
    /// Returns whether the call is a dry run. The parameter means that only for built-in tools.
    fn is_preview(&self, tool: &ToolDefinition) -> bool {
        self.is("dry_run") && self.node.declared.action(&tool.name).is_none()
    }

    /// Refuses motion to a caller that needs a certificate and has no valid one. Operators and previews need none.
    pub(super) fn check_certificate(&self, tool: &ToolDefinition) -> Result<(), Box<Reply>> {
        let principal = self.request.principal.as_ref();
        let role = principal.map(|principal| principal.role);
        let is_operator =
            self.request.who == ActorRank::Operator || role == Some(CallerRole::Operator);
        if tool.effect != ToolEffect::Moves || is_operator || self.is_preview(tool) {
            return Ok(());
        }
        let token = principal.map(|principal| principal.name.as_str());
        let (level, reason) = match (&self.node.examiner, self.node.file.qualified) {
            (Some(examiner), _) => {
                match examiner.check_certificate(token, &self.node.all_names()) {
                    Ok(()) => return Ok(()),
                    Err(missing) => missing,
                }
            }
            (None, None) => return Ok(()),
            (None, Some(level)) => {
                let reason = "this process cannot look at certificates";
                (level.word().to_owned(), reason.to_owned())
            }
        };
        Err(refused("needs_qualification", format!(
            "{} moves the arm, and this caller has not proven level {level}: {reason}; ask the operator, who examines a planner with \
             `steadyhand exam run --planner URL --level {level}` and attaches its certificate to a token",
            tool.name
        ))
        .with("level", level)
        .boxed())
    }
}
