//! Requires a caller's certificate before it moves the arm, if the node or the token demands one.

use super::answer::Reply;
use super::dispatch::Order;
use caller::Role;
use catalogue::{Effect, Here, Tool};
use permit::Who;

/// Knows tokens' certificates.
pub trait Examiner: Send + Sync {
    /// Checks that the holder of this token has a certificate valid for the names that this node shows now.
    ///
    /// # Errors
    /// The required level, and the reason why it is not proven.
    fn is_qualified(&self, token: Option<&str>, here: &Here) -> Result<(), (String, String)>;
}

impl Order<'_> {
    /// Returns whether the call is a dry run. The parameter has that meaning only for the node's own tools.
    fn only_shows(&self, tool: &Tool) -> bool {
        self.is("dry_run") && self.node.declared.deed(&tool.name).is_none()
    }

    /// Refuses motion to a caller that needs a certificate and has no valid one. Operators and previews need none.
    pub(super) fn is_qualified(&self, tool: &Tool) -> Result<(), Box<Reply>> {
        let is_operator = self.who == Who::Operator
            || self
                .standing
                .is_some_and(|standing| standing.role == Role::Operator);
        if tool.effect != Effect::Moves || is_operator || self.only_shows(tool) {
            return Ok(());
        }
        let token = self.standing.map(|standing| standing.name.as_str());
        let (level, why) = match (&self.node.examiner, self.node.file.qualified) {
            (Some(examiner), _) => match examiner.is_qualified(token, &self.node.shown()) {
                Ok(()) => return Ok(()),
                Err(missing) => missing,
            },
            (None, None) => return Ok(()),
            (None, Some(level)) => (
                level.word().to_owned(),
                "this process cannot look at certificates".to_owned(),
            ),
        };
        Err(Reply::failed(format!(
            "{} moves the arm, and this caller has not proven level {level}: {why}; ask the operator, who examines a planner with \
             `steadyhand exam run --planner URL --level {level}` and attaches its certificate to a token; nothing moved",
            tool.name
        ))
        .with("code", "needs_qualification")
        .with("level", level)
        .boxed())
    }
}
