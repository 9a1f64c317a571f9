//! `exam run`: what is examined, how, and what is shown of it.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::ask_args::PlannerAskArgs;
use super::case_selection::CaseSelection;
use super::certificate;
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
    /// Show the tools by plain names, or by both plain names and aliases; with `plain,both` two runs, and whether aliases confuse
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "plain",
        conflicts_with = "replay"
    )]
    names: Vec<ListedNamesArg>,
    #[command(flatten)]
    asking: PlannerAskArgs,
    /// Print the verdict as JSON
    #[arg(long)]
    json: bool,
}

/// Which names of the tools are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ListedNamesArg {
    /// One name each
    Plain,
    /// Every name, each a whole tool
    Both,
}

impl From<ListedNamesArg> for ToolListing {
    fn from(names: ListedNamesArg) -> Self {
        match names {
            ListedNamesArg::Plain => Self::Plain,
            ListedNamesArg::Both => Self::Both,
        }
    }
}

pub(super) async fn run(
    node: &NodeOptions,
    args: RunArgs,
    record: &mut ExamRecord,
) -> anyhow::Result<ExitStatus> {
    let mut args = args;
    let listings = std::mem::take(&mut args.names);
    let (mut runs, mut exit) = (Vec::new(), ExitStatus::Done);
    for listing in &listings {
        args.names = vec![*listing];
        let told = one_run(node, &args, record).await?;
        runs.push(told.run);
        let ended = print_result(node, &args, record, &told)?;
        exit = if exit == ExitStatus::Done {
            ended
        } else {
            exit
        };
    }
    if let [first, .., last] = runs[..] {
        confusion_by_names(record, first, last, args.json)?;
    }
    Ok(exit)
}

/// Tells whether the planner did worse where aliases were listed, by more than chance.
fn confusion_by_names(
    record: &ExamRecord,
    first: i64,
    last: i64,
    json: bool,
) -> anyhow::Result<()> {
    let found = RunComparison::of(record, first, last)?;
    if json {
        return super::print_json(&found);
    }
    let (better, worse) = (found.better.len(), found.worse.len());
    let told = match (found.is_change, worse > better) {
        (true, true) => "aliases confuse this planner",
        (true, false) => "aliases help this planner",
        (false, _) => "aliases make no difference beyond chance",
    };
    show::line(&format!(
        "{told}: {worse} worse and {better} better with the later names (p = {:.3}, n = {})",
        found.chance, found.common
    ));
    Ok(())
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
    let listing = args
        .names
        .first()
        .map_or(ToolListing::Plain, |names| ToolListing::from(*names));
    Ok(own.beside(others).listed(listing))
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
    certificate: Option<Result<String, String>>,
}

/// The verdict, the reasons, the worst answers, and where the report is.
fn print_result(
    node: &NodeOptions,
    args: &RunArgs,
    record: &ExamRecord,
    told: &ExamRunResult,
) -> anyhow::Result<ExitStatus> {
    let ExamRunResult {
        run,
        verdict,
        certificate,
    } = told;
    let run = *run;
    let files = super::report_cmd::files(node, &ExamReport::of(record, Some(run))?)?;
    if args.json {
        let mut told = serde_json::to_value(verdict)?;
        if let Some(told) = told.as_object_mut() {
            told.insert("run".to_owned(), run.into());
            let status = verdict.failed.as_ref().map_or("completed", |_| "failed");
            told.insert("status".to_owned(), status.into());
            told.insert("verdict".to_owned(), verdict.line().into());
            told.insert("bound".to_owned(), verdict.bound_line().into());
            told.insert("report".to_owned(), files.into());
            let given = certificate.as_ref().and_then(|one| one.as_ref().ok());
            told.insert("certificate".to_owned(), given.cloned().into());
        }
        super::print_json(&told)?;
    } else {
        in_words(run, verdict);
        match certificate {
            Some(Ok(id)) => show::line(&format!(
                "certificate: {id}; give it to a token with `steadyhand exam certificate attach {id} --token NAME`"
            )),
            Some(Err(why)) => show::line(&format!("  note: {why}")),
            None => {}
        }
        for file in files {
            show::line(&format!("report: {file}"));
        }
    }
    // Without a level there is nothing to fall short of.
    let is_short = verdict.asked.is_some() && !verdict.passed;
    Ok(if verdict.failed.is_none() && !is_short {
        ExitStatus::Done
    } else {
        ExitStatus::Refused
    })
}

fn in_words(run: i64, verdict: &ExamVerdict) {
    let tally = &verdict.tally;
    show::line(&format!("run {run}: {}", verdict.line()));
    for reason in &verdict.reasons {
        show::line(&format!("  because {reason}"));
    }
    for change in &verdict.changes {
        show::line(&format!("  change: {change}"));
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
