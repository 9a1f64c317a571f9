//! `exam certificate`, and what a serving node asks of it: what was earned, whose it is, and whether it still holds.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Subcommand;
use serde_json::{Value, json};

use super::case_selection::CaseSelection;
use super::model_file::ModelFileHashes;
use super::{ExitStatus, NodeOptions, cards, instructions, print_json, show};
use crate::{
    ExamConditions, ExamRecord, ExamVerdict, Level, PlannerCertificate, PlannerExam,
    StoredCertificate,
};
use base::clock::calendar_ms;
use caller::{TokenCard, TokenStore};
use catalogue::KnownNames;
use node::{CertificateCheck, open, state_folder};
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
            let Some(folder) = lasting(node)? else {
                bail!("{NOTHING_KEPT}");
            };
            let held = record.certificate(&id)?;
            let now = conditions_at(node, record)?;
            let void = objections(
                &folder,
                record,
                &held,
                &now,
                &ModelFileHashes::default(),
                Level::Observe,
            )?;
            if !void.is_empty() {
                bail!("certificate {id} does not hold: {}", void.join("; "));
            }
            TokenStore::at(&folder).attach(&token, Some(&id))?;
        }
        CertificateCommand::Detach { token } => {
            let Some(folder) = lasting(node)? else {
                bail!("{NOTHING_KEPT}");
            };
            TokenStore::at(&folder).attach(&token, None)?;
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

/// The node's state folder, where it keeps one.
fn lasting(node: &NodeOptions) -> anyhow::Result<Option<PathBuf>> {
    let file = open::file(node)?;
    if state_folder::is_practice(node, &file) {
        return Ok(None);
    }
    Ok(Some(state_folder::folder(node, &file)?))
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
    let here = here(node)?;
    let tools = cards(&here, args::ForgivenessProfile::Guarded);
    let asked = CaseSelection::shipped_and_own(&tools, &[], record)?.cases;
    if !exam.covers(&asked) {
        let why = "no certificate: it is given for all the cases that ship and your own, not for others alone";
        return Ok(Some(CertificateOutcome::Refused(why.to_owned())));
    }
    if exam.tools_hash() != crate::tools_hash(&tools) {
        let why = "no certificate: it is given for this node's own tools, not for them with others";
        return Ok(Some(CertificateOutcome::Refused(why.to_owned())));
    }
    let Some(folder) = lasting(node)? else {
        let why = format!("no certificate: {NOTHING_KEPT}");
        return Ok(Some(CertificateOutcome::Refused(why)));
    };
    let settings = record.run(Some(run))?.settings;
    let now = ExamConditions {
        prompt_hash: exam.prompt_hash(),
        tools_hash: exam.tools_hash(),
        cases_hash: crate::cases_hash(&asked),
    };
    let one = PlannerCertificate::of(run, &now, &settings, level, calendar_ms());
    let signature = job::sign(&folder, &one.text()).context("the certificate is not signed")?;
    let id = record.certify(&one, &signature)?;
    Ok(Some(CertificateOutcome::Issued(id)))
}

/// Returns the objections to a certificate at a node with these conditions.
fn objections(
    folder: &Path,
    record: &ExamRecord,
    held: &StoredCertificate,
    now: &ExamConditions,
    files: &ModelFileHashes,
    wanted: Level,
) -> anyhow::Result<Vec<String>> {
    let is_ours = job::has_signed(folder, &held.text, &held.signature)
        .context("the node's key cannot be used")?;
    let is_its = PlannerCertificate::id_of(&held.text) == held.id;
    let Some(one) = PlannerCertificate::read(&held.text).filter(|_| is_ours && is_its) else {
        return Ok(vec!["its signature is not of this node's key".to_owned()]);
    };
    let place = one.settings.model_path.as_deref().map(Path::new);
    let file = place.and_then(|place| files.of(place));
    let mut found = one.objections(now, file.as_deref(), wanted);
    found.extend(record.against_run(one.run, one.level)?);
    if let Some(ms) = held.revoked_ms {
        found.push(format!(
            "it was revoked on {} UTC",
            base::calendar::minute(ms)
        ));
    }
    Ok(found)
}

/// The node's tools as it would show them.
fn here(node: &NodeOptions) -> anyhow::Result<KnownNames> {
    let file = open::file(node)?;
    let library = open::library(node, &file)?;
    let declared = open::declared(&file, &library)?;
    Ok(tools::here(&file, &library, &declared))
}

fn conditions_at(node: &NodeOptions, record: &ExamRecord) -> anyhow::Result<ExamConditions> {
    conditions(&here(node)?, record)
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
    let shown = conditions_at(node, record)?;
    let tokens = folder
        .as_deref()
        .map_or(Ok(Vec::new()), |folder| TokenStore::at(folder).list())?;
    let mut all = Vec::new();
    for one in &held {
        all.push(certificate_line(
            folder.as_deref(),
            record,
            one,
            &shown,
            &tokens,
        )?);
    }
    if json {
        print_json(&all)?;
    } else if all.is_empty() {
        show::note(
            "there are no certificates; `exam run` gives one to a planner that reaches a level",
        );
    } else {
        all.iter().for_each(|one| line(one, id.is_some()));
    }
    Ok(ExitStatus::Done)
}

fn certificate_line(
    folder: Option<&Path>,
    record: &ExamRecord,
    held: &StoredCertificate,
    shown: &ExamConditions,
    tokens: &[TokenCard],
) -> anyhow::Result<Value> {
    let void = match folder {
        Some(folder) => objections(
            folder,
            record,
            held,
            shown,
            &ModelFileHashes::default(),
            Level::Observe,
        )?,
        None => vec![NOTHING_KEPT.to_owned()],
    };
    let has = |card: &&TokenCard| card.certificate.as_deref() == Some(held.id.as_str());
    let tokens: Vec<&str> = tokens
        .iter()
        .filter(has)
        .map(|card| card.name.as_str())
        .collect();
    Ok(json!({
        "id": held.id, "holds": void.is_empty(), "void_because": void, "tokens": tokens,
        "certificate": PlannerCertificate::read(&held.text), "signature": held.signature,
    }))
}

fn line(one: &Value, is_whole: bool) {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or("–").to_owned();
    let certificate = one.get("certificate");
    let of = |key: &str| certificate.and_then(|one| one.get(key));
    let model = text(of("settings").and_then(|settings| settings.get("model")));
    let list = |key: &str| {
        let all = one.get(key).and_then(Value::as_array);
        let all = all.into_iter().flatten().filter_map(Value::as_str);
        all.collect::<Vec<_>>().join("; ")
    };
    let holds = match list("void_because") {
        void if void.is_empty() => "holds".to_owned(),
        void => format!("void: {void}"),
    };
    let tokens = match list("tokens") {
        tokens if tokens.is_empty() => "no token has it".to_owned(),
        tokens => format!("tokens: {tokens}"),
    };
    show::line(&format!(
        "{}  {:<8} {model:<25} {tokens}; {holds}",
        text(one.get("id")),
        text(of("level"))
    ));
    for (key, value) in certificate
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter(|_| is_whole)
    {
        show::line(&format!("  {key}: {value}"));
    }
}

/// Returns hashes of what a node shows and asks a planner.
fn conditions(here: &KnownNames, record: &ExamRecord) -> anyhow::Result<ExamConditions> {
    // How leniently arguments are read is no part of what is shown.
    let tools = cards(here, args::ForgivenessProfile::Guarded);
    Ok(ExamConditions {
        prompt_hash: crate::prompt_hash(&instructions(here)),
        tools_hash: crate::tools_hash(&tools),
        cases_hash: crate::cases_hash(&CaseSelection::shipped_and_own(&tools, &[], record)?.cases),
    })
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
}

impl CertificateCheck for RecordedCertificates {
    fn proves(&self, card: &TokenCard, level: Level, here: &KnownNames) -> Result<(), Refusal> {
        let id = card.certificate.as_deref().ok_or_else(|| {
            Refusal::new(format!(
                "no certificate is attached to the token `{}`",
                card.name
            ))
        })?;
        let store = self.state.join(STORE);
        if !store.is_file() {
            let why = format!("the record of exams {} is gone", store.display());
            return Err(Refusal::new(why));
        }
        let record = ExamRecord::open(&store)?;
        let held = record.certificate(id)?;
        let void = conditions(here, &record)
            .and_then(|now| objections(&self.state, &record, &held, &now, &self.files, level))
            .map_err(|error| Refusal::new(format!("{error:#}")))?;
        if void.is_empty() {
            Ok(())
        } else {
            let why = void.join("; ");
            Err(Refusal::new(format!(
                "its certificate {id} does not hold: {why}"
            )))
        }
    }
}
