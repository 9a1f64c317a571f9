//! `exam certificate`, and what a serving node asks of it: what was earned, whose it is, and whether it still holds.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Subcommand;
use serde::Serialize;

use super::case_selection::CaseSelection;
use super::model_file::ModelFileHashes;
use super::{ExitStatus, NodeOptions, cards, here, lasting, print_json, show};
use crate::{
    ExamConditions, ExamRecord, ExamVerdict, Level, PlannerCertificate, PlannerExam,
    StoredCertificate,
};
use args::ForgivenessProfile;
use base::clock::calendar_ms;
use caller::{TokenCard, TokenStore};
use catalogue::KnownNames;
use node::CertificateCheck;
use tools::Refusal;

/// The record of exams in a node's state folder.
pub(super) const STORE: &str = "exam.db";

#[derive(Debug, Subcommand)]
pub(super) enum CertificateCommand {
    /// Show what was earned, by which token, and whether it is still valid: all, or one with everything that it is bound to
    Show {
        /// Its name
        id: Option<String>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Give it to a token, in the place of another
    Attach {
        /// Its name
        id: String,
        /// The token's name
        #[arg(long)]
        token: String,
    },
    /// Take it off a token
    Detach {
        /// The token's name
        #[arg(long)]
        token: String,
    },
    /// End it for good
    Revoke {
        /// Its name
        id: String,
    },
}

pub(super) fn run(
    node: &NodeOptions,
    what: CertificateCommand,
    record: &mut ExamRecord,
) -> anyhow::Result<ExitStatus> {
    match what {
        CertificateCommand::Show { id, json } => return list(node, record, id.as_deref(), json),
        CertificateCommand::Attach { id, token } => {
            let folder = kept(node)?;
            let held = record.certificate(&id)?;
            let now = conditions(&here(node)?.1, record)?;
            let check = RecordedCertificates::at(&folder);
            let void = check.objections(record, &held, &now, Level::Observe)?;
            if !void.is_empty() {
                bail!("certificate {id} does not hold: {}", void.join("; "));
            }
            TokenStore::at(&folder).attach(&token, Some(&id))?;
        }
        CertificateCommand::Detach { token } => {
            TokenStore::at(&kept(node)?).attach(&token, None)?;
        }
        CertificateCommand::Revoke { id } => {
            record.revoke(&id)?;
            show::note(&format!("{id} is revoked, on a node that runs too"));
        }
    }
    Ok(ExitStatus::Done)
}

/// Reason for having neither keys nor tokens.
const NOTHING_KEPT: &str = "a node without a node file keeps no key, so it signs no certificate: say --config FILE, or --state DIR";

/// The node's state folder.
fn kept(node: &NodeOptions) -> anyhow::Result<PathBuf> {
    lasting(node)?.context(NOTHING_KEPT)
}

/// Outcome of issuing a certificate for the level that a run has reached.
pub(super) enum CertificateOutcome {
    /// It has this id.
    Issued(String),
    /// There is none: why.
    Refused(String),
}

/// Issues a certificate for the level that a run has reached, or returns the reason for refusing one; `None` if no
/// level was reached.
pub(super) fn issue(
    node: &NodeOptions,
    exam: &PlannerExam,
    record: &mut ExamRecord,
    run: i64,
    verdict: &ExamVerdict,
) -> anyhow::Result<Option<CertificateOutcome>> {
    let Some(level) = verdict.reached else {
        return Ok(None);
    };
    let (_, here) = here(node)?;
    let tools = cards(&here, ForgivenessProfile::Guarded);
    let asked = CaseSelection::shipped_and_own(&tools, &[], record)?.cases;
    let refused = |why: &str| {
        let why = format!("no certificate: {why}");
        Ok(Some(CertificateOutcome::Refused(why)))
    };
    if !exam.covers(&asked) {
        return refused(
            "it is given for all the cases that ship and your own, not for others alone",
        );
    }
    let now = ExamConditions::of(&exam.preamble, &exam.tools, &asked);
    if now.tools_hash != crate::tools_hash(&tools) {
        return refused("it is given for this node's own tools, not for them with others");
    }
    let Some(folder) = lasting(node)? else {
        return refused(NOTHING_KEPT);
    };
    let settings = record.run(Some(run))?.settings;
    let one = PlannerCertificate::of(run, &now, &settings, level, calendar_ms());
    let signature = job::sign(&folder, &one.text()).context("the certificate is not signed")?;
    let id = record.certify(&one, &signature)?;
    Ok(Some(CertificateOutcome::Issued(id)))
}

/// A certificate as it is shown.
#[derive(Serialize)]
struct ShownCertificate {
    id: String,
    holds: bool,
    void_because: Vec<String>,
    /// Tokens that have it.
    tokens: Vec<String>,
    certificate: Option<PlannerCertificate>,
    signature: String,
}

fn list(
    node: &NodeOptions,
    record: &ExamRecord,
    id: Option<&str>,
    json: bool,
) -> anyhow::Result<ExitStatus> {
    let held = match id {
        Some(id) => vec![record.certificate(id)?],
        None => record.certificates()?,
    };
    let folder = lasting(node)?;
    let now = conditions(&here(node)?.1, record)?;
    let tokens = folder
        .as_deref()
        .map(|folder| TokenStore::at(folder).list());
    let tokens = tokens.transpose()?.unwrap_or_default();
    let check = folder.as_deref().map(RecordedCertificates::at);
    let shown = held.into_iter().map(|one| {
        let void = match &check {
            Some(check) => check.objections(record, &one, &now, Level::Observe)?,
            None => vec![NOTHING_KEPT.to_owned()],
        };
        let has = |card: &&TokenCard| card.certificate.as_ref() == Some(&one.id);
        let tokens = tokens.iter().filter(has).map(|card| card.name.clone());
        Ok(ShownCertificate {
            holds: void.is_empty(),
            void_because: void,
            tokens: tokens.collect(),
            certificate: PlannerCertificate::read(&one.text),
            id: one.id,
            signature: one.signature,
        })
    });
    let all = shown.collect::<anyhow::Result<Vec<ShownCertificate>>>()?;
    if json {
        print_json(&all)?;
    } else if all.is_empty() {
        show::note(
            "there are no certificates; `exam run` gives one to a planner that reaches a level",
        );
    } else {
        all.iter().try_for_each(|one| print(one, id.is_some()))?;
    }
    Ok(ExitStatus::Done)
}

fn print(one: &ShownCertificate, is_whole: bool) -> anyhow::Result<()> {
    let certificate = one.certificate.as_ref();
    let level = certificate.map_or("–", |certificate| certificate.level.word());
    let model = certificate.map_or("–", |certificate| &certificate.settings.model);
    let holds = match one.holds {
        true => "holds".to_owned(),
        false => format!("void: {}", one.void_because.join("; ")),
    };
    let tokens = match one.tokens.is_empty() {
        true => "no token has it".to_owned(),
        false => format!("tokens: {}", one.tokens.join("; ")),
    };
    show::line(&format!(
        "{}  {level:<8} {model:<25} {tokens}; {holds}",
        one.id
    ));
    let Some(certificate) = certificate.filter(|_| is_whole) else {
        return Ok(());
    };
    let whole = serde_json::to_value(certificate)?;
    for (key, value) in whole.as_object().into_iter().flatten() {
        show::line(&format!("  {key}: {value}"));
    }
    Ok(())
}

/// Returns hashes of what a node shows and asks a planner.
fn conditions(here: &KnownNames, record: &ExamRecord) -> anyhow::Result<ExamConditions> {
    // How leniently arguments are read is no part of what is shown.
    let tools = cards(here, ForgivenessProfile::Guarded);
    let asked = CaseSelection::shipped_and_own(&tools, &[], record)?.cases;
    let preamble = catalogue::instructions(here);
    Ok(ExamConditions::of(&preamble, &tools, &asked))
}

/// The check of certificates in the record of a serving node.
pub(super) struct RecordedCertificates {
    state: PathBuf,
    files: ModelFileHashes,
}

impl RecordedCertificates {
    pub(super) fn at(state: &Path) -> Self {
        Self {
            state: state.to_owned(),
            files: ModelFileHashes::default(),
        }
    }

    /// Returns the objections to a certificate at a node with these conditions.
    fn objections(
        &self,
        record: &ExamRecord,
        held: &StoredCertificate,
        now: &ExamConditions,
        wanted: Level,
    ) -> anyhow::Result<Vec<String>> {
        let is_ours = job::has_signed(&self.state, &held.text, &held.signature)
            .context("the node's key cannot be used")?;
        let is_its = PlannerCertificate::id_of(&held.text) == held.id;
        let Some(one) = PlannerCertificate::read(&held.text).filter(|_| is_ours && is_its) else {
            return Ok(vec!["its signature is not of this node's key".to_owned()]);
        };
        let place = one.settings.model_path.as_deref().map(Path::new);
        let file = place.and_then(|place| self.files.of(place));
        let mut found = one.objections(now, file.as_deref(), wanted);
        found.extend(record.against_run(one.run, one.level)?);
        found.extend(
            held.revoked_ms
                .map(|ms| format!("it was revoked on {} UTC", base::calendar::minute(ms))),
        );
        Ok(found)
    }
}

impl CertificateCheck for RecordedCertificates {
    fn proves(&self, card: &TokenCard, level: Level, here: &KnownNames) -> Result<(), Refusal> {
        let Some(id) = card.certificate.as_deref() else {
            let why = format!("no certificate is attached to the token `{}`", card.name);
            return Err(Refusal::new(why));
        };
        let store = self.state.join(STORE);
        if !store.is_file() {
            let why = format!("the record of exams {} is gone", store.display());
            return Err(Refusal::new(why));
        }
        let record = ExamRecord::open(&store)?;
        let held = record.certificate(id)?;
        let void = conditions(here, &record)
            .and_then(|now| self.objections(&record, &held, &now, level))
            .map_err(|error| Refusal::new(format!("{error:#}")))?;
        if void.is_empty() {
            return Ok(());
        }
        let why = void.join("; ");
        Err(Refusal::new(format!(
            "its certificate {id} does not hold: {why}"
        )))
    }
}
