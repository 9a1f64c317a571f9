//! `exam run`: what is examined, how, and what is shown of it.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};

use super::ask_args::PlannerAskArgs;
use super::case_selection::CaseSelection;
use super::certificate::{self, CertificateOutcome};
use super::endpoint::HttpModelEndpoint;
use super::{ExitStatus, NodeOptions, foreign_servers, read, show, toolbox};
use crate::{
    AddressKind, AnswerReplay, ExamProgress, ExamRecord, ExamReport, ExamToolbox, ExamVerdict,
    Level, PlannerExam, PlannerSettings, RunComparison, ToolListing,
};

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// An OpenAI-compatible endpoint, such as http://127.0.0.1:8080/v1; its key, where it wants one,
    /// comes from STEADYHAND_API_KEY
    #[arg(long, value_name = "URL", required_unless_present_any = ["replay", "resume"], conflicts_with = "replay")]
    planner: Option<String>,
    /// Recorded answers to score without a model: lines of {"query": …, "output": …}
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
    /// Other cases: JSON lines, or a BFCL question file; instead of those that ship and your own
    #[arg(long, value_name = "FILE")]
    cases: Option<PathBuf>,
    /// The file of possible answers of a BFCL question file
    #[arg(long, value_name = "FILE", requires = "cases")]
    answers: Option<PathBuf>,
    /// Other MCP servers whose tools are shown beside the node's own: addresses, or names of `exam servers`; one that cannot
    /// be listed fails the run
    #[arg(long, value_name = "URL", num_args = 1..)]
    servers: Vec<String>,
    /// Show the tools of --servers alone
    #[arg(long, requires = "servers")]
    only_servers: bool,
    /// The level that is asked for: observe, home, align or stroke; without one, the highest that is reached is told
    #[arg(long)]
    level: Option<Level>,
    /// Go on with a run that was interrupted
    #[arg(long, value_name = "RUN", conflicts_with_all = ["planner", "replay", "cases", "model"])]
    resume: Option<i64>,
    /// Show the tools by plain names, by their aliases, or by both; with `plain,both` two runs, and whether aliases confuse
    /// [default: as the node lists them]
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        num_args = 1,
        conflicts_with = "replay"
    )]
    names: Vec<ToolListing>,
    #[command(flatten)]
    asking: PlannerAskArgs,
    /// Print the verdict as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(
    node: &NodeOptions,
    args: RunArgs,
    record: &mut ExamRecord,
) -> anyhow::Result<ExitStatus> {
    let mut args = args;
    let listings = std::mem::take(&mut args.names);
    if listings.len() < 2 {
        args.names = listings;
        let told = one_run(node, &args, record).await?;
        let files = report_files(node, record, &told)?;
        if args.json {
            super::print_json(&result_json(&told, &files)?)?;
        } else {
            in_words(&told, &files);
        }
        return Ok(exit_of(&told.verdict));
    }
    runs_by_names(node, args, &listings, record).await
}

/// Examines once with each of these listings of names, and compares the first with the last.
async fn runs_by_names(
    node: &NodeOptions,
    mut args: RunArgs,
    listings: &[ToolListing],
    record: &mut ExamRecord,
) -> anyhow::Result<ExitStatus> {
    let (mut runs, mut told_runs, mut exit) = (Vec::new(), Vec::new(), ExitStatus::Done);
    for listing in listings {
        args.names = vec![*listing];
        let told = one_run(node, &args, record).await?;
        let files = report_files(node, record, &told)?;
        runs.push(told.run);
        if exit == ExitStatus::Done {
            exit = exit_of(&told.verdict);
        }
        if args.json {
            told_runs.push(result_json(&told, &files)?);
        } else {
            in_words(&told, &files);
        }
    }
    let [first, .., last] = runs[..] else {
        return Ok(exit);
    };
    let found = RunComparison::of(record, first, last)?;
    let names = match listings {
        [ToolListing::Plain, ..] => "aliases",
        _ => "the later names",
    };
    let line = confusion_by_names(&found, names);
    if args.json {
        super::print_json(&json!({"runs": told_runs, "comparison": found, "told": line}))?;
    } else {
        show::line(&line);
    }
    Ok(exit)
}

/// Tells whether the planner did worse with the later names, by more than chance.
fn confusion_by_names(found: &RunComparison, names: &str) -> String {
    let (better, worse) = (found.better.len(), found.worse.len());
    let told = match (found.is_change, worse > better) {
        (true, true) => format!("{names} confuse this planner"),
        (true, false) => format!("{names} help this planner"),
        (false, _) => format!("{names} make no difference beyond chance"),
    };
    format!(
        "{told}: {worse} worse and {better} better with the later names (p = {:.3}, n = {})",
        found.chance, found.common
    )
}

async fn one_run(
    node: &NodeOptions,
    args: &RunArgs,
    record: &mut ExamRecord,
) -> anyhow::Result<ExamRunResult> {
    let (run, verdict, certificate) = match (&args.replay, args.resume) {
        (Some(file), _) => {
            let text = read(file)?;
            let replay =
                AnswerReplay::read_lines(&text).with_context(|| file.display().to_string())?;
            let model = args.asking.model.clone().unwrap_or_else(|| file_name(file));
            let exam = begin_exam(node, args, &PlannerSettings::of_replay(&model), record).await?;
            let (run, verdict) = exam.replay(&replay, &model, record)?;
            (run, verdict, None)
        }
        (None, resumed) => {
            let (exam, run, verdict) = examined(node, args, resumed, record).await?;
            let certificate = certificate::issue(node, &exam, record, run, &verdict)?;
            (run, verdict, certificate)
        }
    };
    Ok(ExamRunResult {
        run,
        verdict,
        certificate,
    })
}

/// Note about an endpoint on this machine whose model's file was not named.
const NAME_ALONE: &str = "the model's file was not named (--model-file), so a certificate is bound to the model's name alone";

/// Asks an endpoint.
async fn examined(
    node: &NodeOptions,
    args: &RunArgs,
    resumed: Option<i64>,
    record: &mut ExamRecord,
) -> anyhow::Result<(PlannerExam, i64, ExamVerdict)> {
    if let Some(run) = resumed {
        let tools = snapshot(node, args, record).await?;
        let mut exam = exam(node, args, tools, record)?;
        let (run, verdict) = resume(&mut exam, args, run, record).await?;
        return Ok((exam, run, verdict));
    }
    let address = args.planner.as_deref().unwrap_or_default();
    AddressKind::Endpoint.check(address)?;
    let endpoint = HttpModelEndpoint::at(address);
    let settings = args.asking.settings(&endpoint).await?;
    let mut exam = begin_exam(node, args, &settings, record).await?;
    exam.check()?;
    if crate::is_local(address) && settings.model_file.is_none() {
        exam.notes.push(NAME_ALONE.to_owned());
    }
    let (run, verdict) = ask(&exam, &endpoint, &settings, record, None, args.json).await?;
    Ok((exam, run, verdict))
}

/// An exam with the tools as they are now. Where one list of them cannot be had, that is a run that failed.
async fn begin_exam(
    node: &NodeOptions,
    args: &RunArgs,
    settings: &PlannerSettings,
    record: &mut ExamRecord,
) -> anyhow::Result<PlannerExam> {
    match snapshot(node, args, record).await {
        Ok(tools) => exam(node, args, tools, record),
        Err(error) => {
            let (tools, preamble) = toolbox(node)?;
            let exam = PlannerExam {
                cases: Vec::new(),
                tools,
                preamble,
                asked: args.level,
                notes: Vec::new(),
            };
            let run = exam.refuse(settings, &format!("{error:#}"), record)?;
            bail!("run {run} failed: {error:#}")
        }
    }
}

/// The node's tools and those of the servers that are named.
async fn snapshot(
    node: &NodeOptions,
    args: &RunArgs,
    record: &ExamRecord,
) -> anyhow::Result<ExamToolbox> {
    let servers = foreign_servers::resolve_servers(&args.servers, record)?;
    let others = foreign_servers::tools(&servers).await?;
    let own = if args.only_servers {
        ExamToolbox::default()
    } else {
        toolbox(node)?.0
    };
    let shown = own.beside(others);
    Ok(match args.names.first() {
        Some(names) => shown.listed(*names),
        None => shown,
    })
}

/// The cases, the tools and the words of an exam.
fn exam(
    node: &NodeOptions,
    args: &RunArgs,
    tools: ExamToolbox,
    record: &ExamRecord,
) -> anyhow::Result<PlannerExam> {
    let (_, preamble) = toolbox(node)?;
    let servers = foreign_servers::resolve_servers(&args.servers, record)?;
    let servers: Vec<String> = servers.into_iter().map(|server| server.name).collect();
    let asked = match &args.cases {
        Some(file) => CaseSelection::of_file(file, args.answers.as_deref(), &tools, &servers)?,
        None => CaseSelection::shipped_and_own(&tools, &servers, record)?,
    };
    Ok(PlannerExam {
        cases: asked.cases,
        tools,
        preamble,
        asked: args.level,
        notes: asked.notes,
    })
}

fn file_name(path: &Path) -> String {
    let name = path.file_stem().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

async fn resume(
    exam: &mut PlannerExam,
    args: &RunArgs,
    run: i64,
    record: &mut ExamRecord,
) -> anyhow::Result<(i64, ExamVerdict)> {
    let row = record.run(Some(run))?;
    let lacks = record.failed_answers(run)?;
    if row.settings.is_replay() || (row.status != "failed" && lacks == 0) {
        bail!(
            "run {run} is {}; only a run of an endpoint that was interrupted or lacks answers goes on",
            row.status
        );
    }
    exam.cases = record.cases_of(run)?;
    exam.asked = match row.level {
        Some(level) => Some(level.parse().map_err(anyhow::Error::msg)?),
        None => None,
    };
    if (row.prompt_hash, row.tools_hash) != (exam.prompt_hash(), exam.tools_hash()) {
        bail!("the tools or their words have changed since run {run} began; begin another");
    }
    let endpoint = HttpModelEndpoint::at(&row.settings.provider);
    ask(exam, &endpoint, &row.settings, record, Some(run), args.json).await
}

async fn ask(
    exam: &PlannerExam,
    endpoint: &HttpModelEndpoint,
    settings: &PlannerSettings,
    record: &mut ExamRecord,
    resume: Option<i64>,
    quiet: bool,
) -> anyhow::Result<(i64, ExamVerdict)> {
    let bar = bar(quiet);
    let progress = |now: ExamProgress| show_progress(&bar, now);
    let examined = exam
        .ask(endpoint, settings, record, resume, &progress)
        .await;
    bar.finish_and_clear();
    Ok(examined?)
}

fn bar(quiet: bool) -> ProgressBar {
    let target = if quiet {
        ProgressDrawTarget::hidden()
    } else {
        ProgressDrawTarget::stderr()
    };
    let bar = ProgressBar::with_draw_target(None, target);
    if let Ok(style) = ProgressStyle::with_template("[{bar:24}] {pos}/{len} {msg}, {eta} left") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

fn show_progress(bar: &ProgressBar, now: ExamProgress) {
    let count = |value: usize| u64::try_from(value).unwrap_or(u64::MAX);
    bar.set_length(count(now.of));
    bar.set_position(count(now.done));
    let came = now.done - now.failed;
    bar.set_message(format!(
        "right {} of {came}, hazards {}, no answer {}",
        now.right, now.hazards, now.failed
    ));
}

/// Result of a run.
struct ExamRunResult {
    run: i64,
    verdict: ExamVerdict,
    certificate: Option<CertificateOutcome>,
}

/// Writes the report of a run, and returns where it is.
fn report_files(
    node: &NodeOptions,
    record: &ExamRecord,
    told: &ExamRunResult,
) -> anyhow::Result<Vec<String>> {
    super::report_cmd::files(node, &ExamReport::of(record, Some(told.run))?)
}

/// The verdict, the reasons, the worst answers, and where the report is, as data.
fn result_json(told: &ExamRunResult, files: &[String]) -> anyhow::Result<Value> {
    let verdict = &told.verdict;
    let mut whole = serde_json::to_value(verdict)?;
    if let Some(whole) = whole.as_object_mut() {
        whole.insert("run".to_owned(), told.run.into());
        let status = verdict.failed.as_ref().map_or("completed", |_| "failed");
        whole.insert("status".to_owned(), status.into());
        whole.insert("verdict".to_owned(), verdict.line().into());
        whole.insert("bound".to_owned(), verdict.bound_line().into());
        whole.insert("report".to_owned(), files.into());
        let issued = match &told.certificate {
            Some(CertificateOutcome::Issued(id)) => Some(id.clone()),
            _ => None,
        };
        whole.insert("certificate".to_owned(), issued.into());
    }
    Ok(whole)
}

/// Without a level there is nothing to fall short of.
fn exit_of(verdict: &ExamVerdict) -> ExitStatus {
    let is_short = verdict.asked.is_some() && !verdict.passed;
    ExitStatus::of(verdict.failed.is_none() && !is_short)
}

/// The same in words.
fn in_words(told: &ExamRunResult, files: &[String]) {
    verdict_in_words(told.run, &told.verdict);
    match &told.certificate {
        Some(CertificateOutcome::Issued(id)) => show::line(&format!(
            "certificate: {id}; give it to a token with `steadyhand exam certificate attach {id} --token NAME`"
        )),
        Some(CertificateOutcome::Refused(why)) => show::line(&format!("  note: {why}")),
        None => {}
    }
    for file in files {
        show::line(&format!("report: {file}"));
    }
}

fn verdict_in_words(run: i64, verdict: &ExamVerdict) {
    let tally = &verdict.tally;
    show::line(&format!("run {run}: {}", verdict.line()));
    for reason in &verdict.reasons {
        show::line(&format!("  because {reason}"));
    }
    for change in &verdict.changes {
        show::line(&format!("  change: {change}"));
    }
    if let Some(tables) = &verdict.descriptions {
        show::line(
            "  words for the node file; examine again with them, and `exam compare` says whether they helped:",
        );
        tables.lines().for_each(show::line);
    }
    for failure in &verdict.endpoint_failures {
        show::line(&format!(
            "  endpoint: {} of {} missing answers: {}",
            failure.answers, tally.failed, failure.why
        ));
    }
    if tally.failed > 0 {
        show::line(&format!(
            "  `steadyhand exam run --resume {run}` asks again for what is missing"
        ));
    }
    show::line(&format!("  {}", verdict.bound_line()));
    show::line(&format!(
        "  right tool {}; F1 {}; right in everything {}; router {}",
        tally.all.right, tally.f1, tally.all.exact, verdict.router
    ));
    for note in &verdict.notes {
        show::line(&format!("  note: {note}"));
    }
    for worst in &verdict.worst {
        show::line(&format!(
            "worst: {} {:?}",
            worst.classification, worst.query
        ));
        show::line(&format!(
            "  expected {}, got {:?}",
            worst.expected, worst.answer
        ));
        for why in worst.why.iter().chain(&worst.advice) {
            show::line(&format!("  {why}"));
        }
    }
}
