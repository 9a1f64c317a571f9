//! `token`: makes, lists and revokes the tokens of callers from other machines.

use anyhow::ensure;
use clap::Subcommand;

use super::{ExitStatus, NodeOptions, terminal_output};
use base::clock::calendar_ms;
use base::wording::count;
use caller::{CallerRole, TokenStore};
use config::RequiredQualification;
use node::{open, state_folder};

#[derive(Debug, Subcommand)]
pub(super) enum TokenCommand {
    /// Make a token and print it; it cannot be shown again
    Add {
        /// Name of its holder, such as claude-desktop
        name: String,
        /// viewer, planner or operator
        #[arg(long, default_value = "planner")]
        role: CallerRole,
        /// Calls a minute; stops are not counted
        #[arg(long, default_value_t = 120, value_parser = clap::value_parser!(u32).range(1..=60_000))]
        calls_per_minute: u32,
        /// Days after which it expires; without this it is valid until it is revoked
        #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=3_650))]
        expires: Option<u32>,
        /// Level of certificate that its holder needs to move the arm, regardless of the node file
        #[arg(long, value_name = "LEVEL")]
        qualified: Option<RequiredQualification>,
    },
    /// Show names, roles, expiry and certificates
    List,
    /// Revoke a token at once
    Revoke {
        /// Name of its holder
        name: String,
    },
}

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// Makes, lists or revokes tokens.
pub(super) fn run(args: &NodeOptions, command: TokenCommand) -> anyhow::Result<ExitStatus> {
    let args = &state_folder::with_service_defaults(args);
    let file = open::file(args)?;
    ensure!(
        !state_folder::is_practice(args, &file),
        "a node without a node file keeps no tokens. Next: add --config FILE, or --state DIR here and for `serve`"
    );
    let token_store = TokenStore::at(&state_folder::folder(args, &file)?);
    match command {
        TokenCommand::Add {
            name,
            role,
            calls_per_minute,
            expires,
            qualified,
        } => {
            let lifetime_ms = expires.map(|lifetime_ms| u64::from(lifetime_ms) * DAY_MS);
            let ends_ms = lifetime_ms.map(|ms| calendar_ms().saturating_add(ms));
            let token = token_store.add(&name, role, calls_per_minute, ends_ms)?;
            if let Some(level) = qualified {
                token_store.require_level(&name, Some(level.word()))?;
            }
            terminal_output::note("this is shown only once. Send it as `Authorization: Bearer …`");
            terminal_output::line(&token);
            if terminal_output::lost_output().is_some() {
                token_store.revoke(&name)?;
                terminal_output::note(&format!(
                    "the token could not be printed, so {name} is revoked"
                ));
            }
        }
        TokenCommand::List => list(&token_store)?,
        TokenCommand::Revoke { name } => {
            token_store.revoke(&name)?;
            terminal_output::note(&format!(
                "{name} is revoked; a running node refuses it too. A motion that this token began continues until `steadyhand stop`"
            ));
        }
    }
    Ok(ExitStatus::Done)
}

fn list(token_store: &TokenStore) -> anyhow::Result<()> {
    let cards = token_store.list()?;
    if cards.is_empty() {
        terminal_output::note("there are no tokens");
    }
    for card in cards {
        let remaining_ms = card.ends_ms.map(|ends| ends.saturating_sub(calendar_ms()));
        let ends = match remaining_ms {
            None => String::new(),
            Some(0) => ", ended".to_owned(),
            Some(remaining_ms) => {
                let days = usize::try_from(remaining_ms.div_ceil(DAY_MS))?;
                format!(", expires within {}", count(days, "day"))
            }
        };
        terminal_output::line(&format!(
            "{:24} {:10} {:6} calls a minute{ends}{}{}",
            card.name,
            card.role.to_string(),
            card.calls_per_minute,
            labelled(", its planner needs level", card.qualified.as_deref()),
            labelled(", certificate", card.certificate.as_deref()),
        ));
    }
    Ok(())
}

fn labelled(label: &str, value: Option<&str>) -> String {
    value.map_or_else(String::new, |value| format!("{label} {value}"))
}
