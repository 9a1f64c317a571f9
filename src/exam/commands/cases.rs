//! `exam cases`: the cases that ship and the operator's own.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use base::wording::{count, cut};
use clap::Subcommand;
use serde_json::{Map, Value};

use super::helpers::model_client_at;
use super::{ExitStatus, NodeOptions, number_in, print_json, show, toolbox, write};
use crate::generate::{self, GenerationRequest};
use crate::word::Word;
use crate::{CaseClass, ExamCase, ExamRecord, ModelClient};

#[derive(Debug, Subcommand)]
pub(super) enum CasesCommand {
    /// List the cases: name, question and right tool
    List {
        /// Only of this class
        #[arg(long)]
        class: Option<String>,
        /// Only your own
        #[arg(long)]
        own: bool,
        /// Your own as JSON, with when each was added and changed
        #[arg(long, requires = "own")]
        json: bool,
    },
    /// Change a case of your own by a JSON object; `null` removes a key
    Edit {
        /// Its name
        name: String,
        /// Changed keys, such as {"query": "Draw it"}
        change: String,
    },
    /// Add a case of your own, a JSON object
    ///
    /// Such as {"query": "Draw!", "expected_tool": "stroke"}.
    Add {
        /// The case
        case: String,
    },
    /// Add the cases of a file: JSON lines, or a BFCL question file
    Import {
        /// The file
        file: PathBuf,
        /// A BFCL file of possible answers
        #[arg(long, value_name = "FILE")]
        answers: Option<PathBuf>,
    },
    /// Write cases as JSON lines
    Export {
        /// File to write [default: standard output]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Only your own
        #[arg(long)]
        own: bool,
    },
    /// Generate cases from this node's tools and scenes, and add them
    Generate {
        /// Number of cases
        #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
        count: u32,
        /// Only of this class
        #[arg(long, conflicts_with = "after")]
        class: Option<String>,
        /// Of the classes that this run leaves least certain
        #[arg(long, value_name = "RUN")]
        after: Option<i64>,
        /// Only with this right tool
        #[arg(long)]
        tool: Option<String>,
        /// Approximate difficulty, 1 to 10
        #[arg(long, value_parser = difficulty)]
        difficulty: Option<f64>,
        /// The same seed makes the same cases
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Let the model of this OpenAI-compatible endpoint paraphrase them; its key comes from STEADYHAND_API_KEY
        #[arg(long, value_name = "URL")]
        paraphrase: Option<String>,
        /// That model's name
        #[arg(long, value_name = "NAME", requires = "paraphrase")]
        paraphrase_model: Option<String>,
        /// Print them as JSON lines instead of adding them
        #[arg(long)]
        dry_run: bool,
    },
    /// Remove a case of your own
    Remove {
        /// Its name
        name: String,
    },
}

/// Parses a difficulty from 1 to 10.
fn difficulty(text: &str) -> anyhow::Result<f64> {
    number_in(text, 1.0..=10.0)
        .ok_or_else(|| anyhow!("{text:?} is not a difficulty. Next: give a number from 1 to 10"))
}

pub(super) async fn run(
    node: &NodeOptions,
    what: CasesCommand,
    record: &mut ExamRecord,
    store: &Path,
) -> anyhow::Result<ExitStatus> {
    match what {
        CasesCommand::List { class, own, json } => {
            let class = class.as_deref().map(CaseClass::named).transpose()?;
            if json {
                list_own_as_json(record, class)?;
            } else {
                list(node, record, class, own)?;
            }
        }
        CasesCommand::Edit { name, change } => {
            let case = edit(record, &name, &change)?;
            add(node, record, vec![case])?;
        }
        CasesCommand::Add { case } => add_one(node, record, &case)?,
        CasesCommand::Import { file, answers } => {
            let cases = super::case_selection::cases_of(&file, answers.as_deref())?;
            add(node, record, cases)?;
        }
        CasesCommand::Export { out, own } => export(record, out, own)?,
        CasesCommand::Generate {
            count,
            class,
            after,
            tool,
            difficulty,
            seed,
            paraphrase,
            paraphrase_model,
            dry_run,
        } => {
            let classes = match (class, after) {
                (Some(word), _) => vec![CaseClass::named(&word)?],
                (None, Some(run)) => generate::weakest(record, Some(run))?,
                (None, None) => Vec::new(),
            };
            let request = GenerationRequest {
                classes,
                tool,
                difficulty,
                count: usize::try_from(count)?,
                seed,
            };
            let model = paraphrase_model.as_deref();
            let client = paraphrase
                .map(|url| model_client_at(&url, model))
                .transpose()?;
            let made = generate_cases(node, record, &request, client.as_ref()).await?;
            let queue_notice = if dry_run {
                made.cases.iter().for_each(|case| show::line(&case.line()));
                None
            } else {
                save_or_queue(record, store, &made.cases)?
            };
            show::note(&made.summary);
            if let Some(notice) = queue_notice {
                bail!("the cases were not saved: {notice}");
            }
        }
        CasesCommand::Remove { name } => record.remove_case(&name)?,
    }
    Ok(ExitStatus::Done)
}

fn list_own_as_json(record: &ExamRecord, class: Option<CaseClass>) -> anyhow::Result<()> {
    let mut own = record.own_cases()?;
    own.retain(|own| class.is_none_or(|class| own.case.class == class));
    print_json(&own)
}

/// Adds a case that is written as one JSON object, if it is worth asking.
fn add_one(node: &NodeOptions, record: &mut ExamRecord, case: &str) -> anyhow::Result<()> {
    let cases = ExamCase::read_lines(case)?;
    if cases.len() != 1 {
        bail!(
            "this must be one JSON object. Next: for several cases, `steadyhand exam cases import`"
        );
    }
    check_worth(node, record, &cases)?;
    add(node, record, cases)
}

/// Returns a case of the operator's own with a change applied.
fn edit(record: &ExamRecord, name: &str, change: &str) -> anyhow::Result<ExamCase> {
    let own = record.cases()?;
    let case = own.iter().find(|case| case.name == name);
    let case = case.with_context(|| format!("you have no case of your own named {name:?}"))?;
    let change: Value = serde_json::from_str(change).context("the change is not JSON")?;
    let Some(change) = change.as_object() else {
        bail!("the change must be a JSON object such as {{\"query\": \"Draw it\"}}");
    };
    if change.get("name").is_some_and(|new| new != name) {
        bail!("the name of a case cannot change. Next: add a new case and remove this one");
    }
    let mut fields: Map<String, Value> = serde_json::from_str(&case.line())?;
    fields.extend(change.clone());
    // A case without a right tool has `null` there; every other key may be absent.
    fields.retain(|key, value| !value.is_null() || key == "expected_tool");
    let mut cases = ExamCase::read_lines(&Value::Object(fields).to_string())?;
    cases.pop().context("the change leaves nothing of the case")
}

/// Refuses a question that is not worth asking, and prints the findings about a doubtful one.
fn check_worth(node: &NodeOptions, record: &ExamRecord, cases: &[ExamCase]) -> anyhow::Result<()> {
    let (tools, _) = toolbox(node)?;
    let known = all(record, false)?;
    for case in cases {
        let others = known.iter().filter(|other| other.name != case.name);
        let finding = generate::check(case, others, &tools);
        let findings = finding.why.join("; ");
        // Wrong tools and calls are refused with advice when the case is added.
        if !finding.may_be_saved() && tools.knows_all(case).is_ok() && finding.score > 0.0 {
            bail!("case {} was rejected: {findings}", case.name);
        }
        if !finding.passes() && finding.score > 0.0 {
            show::note(&format!("case {}: {findings}", case.name));
        }
    }
    Ok(())
}

fn all(record: &ExamRecord, own: bool) -> anyhow::Result<Vec<ExamCase>> {
    let mut cases = if own {
        Vec::new()
    } else {
        ExamCase::shipped()?
    };
    cases.extend(record.cases()?);
    Ok(cases)
}

fn list(
    node: &NodeOptions,
    record: &ExamRecord,
    class: Option<CaseClass>,
    own: bool,
) -> anyhow::Result<()> {
    let (tools, _) = toolbox(node)?;
    let mut cases = all(record, own)?;
    cases.retain(|case| class.is_none_or(|class| class == case.class));
    for case in &cases {
        show::line(&format!(
            "{:<20} {:<8} {:<12} {}",
            case.name,
            case.hazard(&tools).word(),
            case.expected_tool.as_deref().unwrap_or("(none)"),
            case.query.replace('\n', " ")
        ));
    }
    show::note(&format!("{} cases", cases.len()));
    Ok(())
}

/// Adds cases, provided that the node would carry out the right call of each.
fn add(node: &NodeOptions, record: &mut ExamRecord, cases: Vec<ExamCase>) -> anyhow::Result<()> {
    let (tools, _) = toolbox(node)?;
    let shipped = ExamCase::shipped()?;
    let cases: Vec<ExamCase> = cases.into_iter().map(with_content_name).collect();
    for case in &cases {
        if shipped.iter().any(|other| other.name == case.name) {
            bail!(
                "case {}: a shipped case has this name. Next: choose a different name",
                case.name
            );
        }
        if case.query.trim().is_empty() {
            bail!("case {}: the query is empty", case.name);
        }
        tools.knows_all(case)?;
        let own = tools.for_case(case)?;
        if !case.fits(&own) {
            bail!(
                "case {}: the node would refuse its correct call {} {}. Next: correct `expected_tool` or `expected_params`",
                case.name,
                case.expected_tool.as_deref().unwrap_or_default(),
                case.right_arguments()
            );
        }
    }
    record.check_servers_known(&cases)?;
    record.add_cases(&cases)?;
    show::note(&format!("{} added", count(cases.len(), "case")));
    Ok(())
}

/// Replaces a name that was made from a line number by one derived from the content, so that the case replaces no other.
fn with_content_name(mut case: ExamCase) -> ExamCase {
    let number = case.name.strip_prefix("case_");
    if number.is_some_and(|number| number.parse::<usize>().is_ok()) {
        case.name.clear();
        let digits = blake3::hash(case.line().as_bytes()).to_hex();
        case.name = format!("own_{}", cut(&digits, 8));
    }
    case
}

/// Cases that were made, and how.
struct MadeCases {
    cases: Vec<ExamCase>,
    summary: String,
}

/// Generates cases, and describes how they were made.
async fn generate_cases(
    node: &NodeOptions,
    record: &ExamRecord,
    request: &GenerationRequest,
    client: Option<&ModelClient>,
) -> anyhow::Result<MadeCases> {
    let (tools, _) = toolbox(node)?;
    let known = all(record, false)?;
    let made = generate::generate(request, &known, &tools)?;
    let (count, revised, rejected) = (made.cases.len(), made.revised, made.rejected);
    let (cases, method) = match client {
        None => (
            made.cases,
            "checked by rules only; no model was asked".to_owned(),
        ),
        Some(client) => {
            let paraphrased = generate::paraphrase(client, made.cases, &known, &tools).await;
            let changed = paraphrased.changed;
            let mut method = format!("a model reworded {changed} of {count}");
            if let Some(reason) = paraphrased.first_failure {
                method += &format!("; first failure: {reason}");
            }
            (paraphrased.cases, method)
        }
    };
    let summary = format!(
        "{count} cases made ({revised} of them reworded) and {rejected} rejected ({method})"
    );
    Ok(MadeCases { cases, summary })
}

/// Saves cases, or queues them; returns a notice if they are queued.
fn save_or_queue(
    record: &mut ExamRecord,
    store: &Path,
    cases: &[ExamCase],
) -> anyhow::Result<Option<String>> {
    match generate::save_pending(record, store)? {
        0 => {}
        count => show::note(&format!("{count} waiting cases are saved")),
    }
    Ok(generate::keep(record, store, cases)?)
}

fn export(record: &ExamRecord, out: Option<PathBuf>, own: bool) -> anyhow::Result<()> {
    let lines: Vec<String> = all(record, own)?.iter().map(ExamCase::line).collect();
    match out {
        Some(out) => write(&out, &(lines.join("\n") + "\n")).context("the cases were not exported"),
        None => {
            lines.iter().for_each(|line| show::line(line));
            Ok(())
        }
    }
}
