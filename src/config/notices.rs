//! The node file's settings for notices: their receivers and their kinds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SecretText;
use super::config_problem::ProblemList;
use super::peers::is_port_possible;

/// Receivers of a node's notices; none by default.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NoticesEntry {
    /// Address to which each notice is posted as JSON; never shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<SecretText>,
    /// Program that is run for each notice, and its arguments, without a shell; its input is the notice as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// Kinds of notices that are sent; absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<Vec<NoticeKind>>,
}

/// Kind of a notice.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum NoticeKind {
    /// A job has reached its end.
    Done,
    /// Something waits for a person: a pen to change, a plan to approve, an arm to reset.
    NeedsYou,
    /// An arm has a fault.
    Fault,
}

impl NoticesEntry {
    /// Returns whether notices are sent anywhere.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.webhook.is_some() || self.command.is_some()
    }

    /// Returns whether notices of a kind are sent.
    #[must_use]
    pub fn sends(&self, kind: NoticeKind) -> bool {
        self.on.as_ref().is_none_or(|on| on.contains(&kind))
    }

    pub(super) fn check(&self, problems: &mut ProblemList) {
        let is_address = |url: &SecretText| {
            let rest = url.reveal().strip_prefix("http://");
            let rest = rest.or_else(|| url.reveal().strip_prefix("https://"));
            rest.is_some_and(|rest| {
                !rest.is_empty() && !rest.contains(char::is_whitespace) && is_port_possible(rest)
            })
        };
        problems.check(
            self.webhook.as_ref().is_none_or(is_address),
            "notices.webhook",
            || "`notices.webhook` is not of the form http://HOST/PATH, https://HOST/PATH or https://HOST:PORT/PATH (PORT up to 65535)",
        );
        let has_program =
            |command: &Vec<String>| command.first().is_some_and(|name| !name.is_empty());
        problems.check(
            self.command.as_ref().is_none_or(has_program),
            "notices.command",
            || "`notices.command` is empty; write `[\"PROGRAM\", \"ARGUMENT\"]`, without shell syntax",
        );
        problems.check(
            self.on.is_none() || self.is_on(),
            "notices.on",
            || "`notices.on` needs `webhook` or `command`, which receive the notices",
        );
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use crate::{NodeFile, NoticeKind};

    #[test]
    fn a_node_file_says_where_notices_go_and_the_address_is_never_shown() {
        let text = "[notices]\nwebhook = \"https://hooks.example/T0-secret\"\non = [\"fault\"]\n";
        let node = NodeFile::read("node.toml", text).unwrap();
        assert!(node.notices.sends(NoticeKind::Fault) && !node.notices.sends(NoticeKind::Done));
        let shown = serde_json::to_string(&node).unwrap();
        assert!(
            !shown.contains("T0-secret") && shown.contains("(secret)"),
            "{shown}"
        );
        assert!(!format!("{node:?}").contains("T0-secret"));
        for (keys, expected) in [
            (
                "webhook = \"ftp://x\"",
                "`notices.webhook` is not of the form",
            ),
            (
                "webhook = \"http://\"",
                "`notices.webhook` is not of the form",
            ),
            ("webhook = \"http://host:99999/x\"", "PORT up to 65535"),
            ("webhook = \"https://host:http/x\"", "PORT up to 65535"),
            ("command = []", "`notices.command` is empty"),
            ("on = [\"done\"]", "needs `webhook`"),
            ("command = [\"x\"]\non = [\"soon\"]", "soon"),
        ] {
            let result = NodeFile::read("node.toml", &format!("[notices]\n{keys}\n"));
            let error = result.unwrap_err().to_string();
            assert!(error.contains(expected), "{keys}: {error}");
        }
    }
}
