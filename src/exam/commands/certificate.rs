//! `exam certificate`, and the check of certificates for a serving node: level, token, and whether it is still valid.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Subcommand;
use serde::Serialize;

use super::case_selection::CaseSelection;
use super::model_file::ModelFileHashes;
use super::{ExitStatus, NodeOptions, cards, here, lasting_folder, print_json, show};
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
    /// Show certificates, their tokens and if they are valid
    Show {
        /// Its name
        id: Option<String>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Attach a certificate to a token, replacing any other
    Attach {
        /// Its name
        id: String,
        /// The token's name
        #[arg(long)]
        token: String,
    },
    /// Detach the certificate of a token
    Detach {
        /// The token's name
        #[arg(long)]
        token: String,
    },
    /// Revoke a certificate for good
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
            let folder = kept_folder(node)?;
            let stored = record.certificate(&id)?;
            let conditions = conditions(&here(node)?.1, record)?;
            let check = RecordedCertificates::at(&folder);
            let objections = check.objections(record, &stored, &conditions, Level::Observe)?;
            if !objections.is_empty() {
                bail!("certificate {id} is not valid: {}", objections.join("; "));
            }
            TokenStore::at(&folder).attach(&token, Some(&id))?;
        }
        CertificateCommand::Detach { token } => {
            TokenStore::at(&kept_folder(node)?).attach(&token, None)?;
        }
        CertificateCommand::Revoke { id } => {
            record.revoke(&id)?;
            show::note(&format!("{id} is revoked; a running node refuses it too"));
        }
    }
    Ok(ExitStatus::Done)
}

/// Why a node has neither keys nor tokens.
const NO_STATE_FOLDER: &str = "a node without a node file has no key, so it cannot sign a certificate. Next: add --config FILE or --state DIR";

/// Returns the node's state folder, or fails if it has none.
fn kept_folder(node: &NodeOptions) -> anyhow::Result<PathBuf> {
    lasting_folder(node)?.context(NO_STATE_FOLDER)
}

/// Outcome of issuing a certificate for the level that a run has reached.
pub(super) enum CertificateOutcome {
    /// The certificate was issued with this id.
    Issued(String),
    /// No certificate was issued, for this reason.
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
    let cases = CaseSelection::shipped_and_own(&tools, &[], record)?.cases;
    let refuse = |reason: &str| {
        let reason = format!("no certificate: {reason}");
        Ok(Some(CertificateOutcome::Refused(reason)))
    };
    if !exam.covers(&cases) {
        return refuse("a certificate needs all shipped cases and all of your own");
    }
    let conditions = ExamConditions::of(&exam.preamble, &exam.tools, &cases);
    if conditions.tools_hash != crate::tools_hash(&tools) {
        return refuse("a certificate needs an exam with only this node's own tools");
    }
    let Some(folder) = lasting_folder(node)? else {
        return refuse(NO_STATE_FOLDER);
    };
    let settings = record.run(Some(run))?.settings;
    let certificate = PlannerCertificate::of(run, &conditions, &settings, level, calendar_ms());
    let signature =
        job::sign(&folder, &certificate.text()).context("the certificate could not be signed")?;
    let id = record.certify(&certificate, &signature)?;
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
    let stored = match id {
        Some(id) => vec![record.certificate(id)?],
        None => record.certificates()?,
    };
    let folder = lasting_folder(node)?;
    let current = conditions(&here(node)?.1, record)?;
    let tokens = folder
        .as_deref()
        .map(|folder| TokenStore::at(folder).list());
    let tokens = tokens.transpose()?.unwrap_or_default();
    let check = folder.as_deref().map(RecordedCertificates::at);
    let rows = stored.into_iter().map(|stored| {
        let objections = match &check {
            Some(check) => check.objections(record, &stored, &current, Level::Observe)?,
            None => vec![NO_STATE_FOLDER.to_owned()],
        };
        let holds_it = |card: &&TokenCard| card.certificate.as_ref() == Some(&stored.id);
        let tokens = tokens.iter().filter(holds_it).map(|card| card.name.clone());
        Ok(ShownCertificate {
            holds: objections.is_empty(),
            void_because: objections,
            tokens: tokens.collect(),
            certificate: PlannerCertificate::read(&stored.text),
            id: stored.id,
            signature: stored.signature,
        })
    });
    let all = rows.collect::<anyhow::Result<Vec<ShownCertificate>>>()?;
    if json {
        print_json(&all)?;
    } else if all.is_empty() {
        show::note(
            "there are no certificates. Next: `steadyhand exam run` (a planner that reaches a level gets one)",
        );
    } else {
        all.iter()
            .try_for_each(|stored| print_certificate(stored, id.is_some()))?;
    }
    Ok(ExitStatus::Done)
}

fn print_certificate(row: &ShownCertificate, has_details: bool) -> anyhow::Result<()> {
    let certificate = row.certificate.as_ref();
    let level = certificate.map_or("–", |certificate| certificate.level.word());
    let model = certificate.map_or("–", |certificate| &certificate.settings.model);
    let holds = match row.holds {
        true => "holds".to_owned(),
        false => format!("void: {}", row.void_because.join("; ")),
    };
    let tokens = match row.tokens.is_empty() {
        true => "attached to no token".to_owned(),
        false => format!("tokens: {}", row.tokens.join("; ")),
    };
    show::line(&format!(
        "{}  {level:<8} {model:<25} {tokens}; {holds}",
        row.id
    ));
    let Some(certificate) = certificate.filter(|_| has_details) else {
        return Ok(());
    };
    let fields = serde_json::to_value(certificate)?;
    for (key, value) in fields.as_object().into_iter().flatten() {
        show::line(&format!("  {key}: {value}"));
    }
    Ok(())
}

/// Returns the conditions of an exam at this node: hashes of its tools, preamble and cases.
fn conditions(here: &KnownNames, record: &ExamRecord) -> anyhow::Result<ExamConditions> {
    // The profile for reading arguments does not affect what the planner sees.
    let tools = cards(here, ForgivenessProfile::Guarded);
    let cases = CaseSelection::shipped_and_own(&tools, &[], record)?.cases;
    let preamble = catalogue::instructions(here);
    Ok(ExamConditions::of(&preamble, &tools, &cases))
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
        stored: &StoredCertificate,
        conditions: &ExamConditions,
        level: Level,
    ) -> anyhow::Result<Vec<String>> {
        let is_ours = job::has_signed(&self.state, &stored.text, &stored.signature)
            .context("the node's key cannot be used")?;
        let is_named_by_text = PlannerCertificate::id_of(&stored.text) == stored.id;
        let Some(certificate) =
            PlannerCertificate::read(&stored.text).filter(|_| is_ours && is_named_by_text)
        else {
            return Ok(vec!["it is not signed with this node's key".to_owned()]);
        };
        let path = certificate.settings.model_path.as_deref().map(Path::new);
        let file_hash = path.and_then(|path| self.files.of(path));
        let mut objections = certificate.objections(conditions, file_hash.as_deref(), level);
        objections.extend(record.against_run(certificate.run, certificate.level)?);
        objections.extend(
            stored
                .revoked_ms
                .map(|ms| format!("it was revoked on {} UTC", base::calendar::minute(ms))),
        );
        Ok(objections)
    }
}

impl CertificateCheck for RecordedCertificates {
    fn proves(&self, card: &TokenCard, level: Level, here: &KnownNames) -> Result<(), Refusal> {
        let Some(id) = card.certificate.as_deref() else {
            let reason = format!("no certificate is attached to the token `{}`", card.name);
            return Err(Refusal::new(reason));
        };
        let store = self.state.join(STORE);
        if !store.is_file() {
            let reason = format!("the exam record {} is missing", store.display());
            return Err(Refusal::new(reason));
        }
        let record = ExamRecord::open(&store)?;
        let stored = record.certificate(id)?;
        let objections = conditions(here, &record)
            .and_then(|now| self.objections(&record, &stored, &now, level))
            .map_err(|error| Refusal::new(format!("{error:#}")))?;
        if objections.is_empty() {
            return Ok(());
        }
        let reason = objections.join("; ");
        Err(Refusal::new(format!(
            "its certificate {id} is not valid: {reason}"
        )))
    }
}
