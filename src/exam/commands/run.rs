//! `exam run`: runs an exam and shows its verdict.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};

use super::ask_args::PlannerAskArgs;
use super::case_selection::CaseSelection;
use super::certificate::{self, CertificateOutcome};
use super::endpoint::HttpModelEndpoint;
use super::{ExitStatus, NodeOptions, foreign_servers, read, show, toolbox};
use crate::settings::check_model;
use crate::{
    AddressKind, AnswerReplay, ExamProgress, ExamRecord, ExamReport, ExamToolbox, ExamVerdict,
    Level, PlannerExam, PlannerSettings, RunComparison, ToolListing,
};

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// An OpenAI-compatible endpoint, such as http://127.0.0.1:8080/v1; its key, if it needs one,
    /// comes from STEADYHAND_API_KEY
    #[arg(long, value_name = "URL", required_unless_present_any = ["replay", "resume"], conflicts_with = "replay")]
    planner: Option<String>,
    /// Recorded answers to score without a model: lines of {"query": …, "output": …}
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
    /// Cases to use instead of those that ship and your own: JSON lines, or a BFCL question file
    #[arg(long, value_name = "FILE")]
    cases: Option<PathBuf>,
    /// The file of possible answers of a BFCL question file
    #[arg(long, value_name = "FILE", requires = "cases")]
    answers: Option<PathBuf>,
    /// Other MCP servers whose tools are shown with the node's own: addresses, or names from `exam servers`; the run fails
    /// if one of them cannot be listed
    #[arg(long, value_name = "URL", num_args = 1..)]
    servers: Vec<String>,
    /// Show the tools of --servers alone
    #[arg(long, requires = "servers")]
    only_servers: bool,
    /// The level to test for: observe, home, align or stroke; without one, the highest level reached is reported
    #[arg(long)]
    level: Option<Level>,
    /// Continue a run that was interrupted
    #[arg(long, value_name = "RUN", conflicts_with_all = ["planner", "replay", "cases", "model"])]
    resume: Option<i64>,
    /// Show the tools by plain names, by their aliases, or by both; `plain,both` makes two runs and tells whether aliases confuse
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

/// Runs the exam once, or once for each listing of names, and then compares the first run with the last.
pub(super) async fn run(
    node: &NodeOptions,
    args: RunArgs,
    record: &mut ExamRecord,
) -> anyhow::Result<ExitStatus> {
    let mut command = RunCommand {
        node,
        args: &args,
        listing: None,
        record,
    };
    let (mut runs, mut run_results, mut exit) = (Vec::new(), Vec::new(), ExitStatus::Done);
    for index in 0..args.names.len().max(1) {
        command.listing = args.names.get(index).copied();
        let result = command.one_run().await?;
        let report = ExamReport::of(command.record, Some(result.run))?;
        let files = super::report_cmd::write_files(node, &report)?;
        runs.push(result.run);
        if exit == ExitStatus::Done {
            exit = exit_of(&result.verdict);
        }
        if args.json {
            run_results.push(result_json(&result, &files)?);
        } else {
            print_result(&result, &files);
        }
    }
    let [first, .., last] = runs[..] else {
        run_results.iter().try_for_each(super::print_json)?;
        return Ok(exit);
    };
    let comparison = RunComparison::of(command.record, first, last)?;
    let names = match args.names[..] {
        [ToolListing::Plain, ..] => "aliases",
        _ => "the names of the last run",
    };
    let line = confusion_by_names(&comparison, names);
    if args.json {
        super::print_json(&json!({"runs": run_results, "comparison": comparison, "told": line}))?;
    } else {
        show::line(&line);
    }
    Ok(exit)
}

/// Tells whether the planner did worse with the names of the last run, by more than chance.
fn confusion_by_names(comparison: &RunComparison, names: &str) -> String {
    let (better, worse) = (comparison.better.len(), comparison.worse.len());
    let effect = match (comparison.is_change, worse > better) {
        (true, true) => format!("{names} make this planner worse"),
        (true, false) => format!("{names} make this planner better"),
        (false, _) => format!("{names} make no clear difference"),
    };
    format!(
        "{effect}: with the tool names of the last run, {worse} cases are worse and {better} are better (p = {:.3}, n = {})",
        comparison.chance, comparison.common
    )
}

/// Note about an endpoint on this machine whose model's file was not named.
const NAME_ALONE: &str = "without --model-file, a certificate is bound only to the model's name";

/// What one run needs: the node, the options and the record.
struct RunCommand<'a> {
    node: &'a NodeOptions,
    args: &'a RunArgs,
    /// Names that the tools are shown by; `None`: as the node lists them.
    listing: Option<ToolListing>,
    record: &'a mut ExamRecord,
}

impl RunCommand<'_> {
    async fn one_run(&mut self) -> anyhow::Result<ExamRunResult> {
        let Some(file) = &self.args.replay else {
            let (exam, run, verdict) = match self.args.resume {
                Some(run) => self.resume(run).await?,
                None => self.examine().await?,
            };
            return Ok(ExamRunResult {
                run,
                certificate: certificate::issue(self.node, &exam, self.record, run, &verdict)?,
                verdict,
            });
        };
        let replay = AnswerReplay::read_lines(&read(file)?);
        let replay = replay.with_context(|| file.display().to_string())?;
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        let model = self.args.asking.model.as_deref().unwrap_or(&name);
        check_model(model)?;
        let exam = self.begin(&PlannerSettings::of_replay(model)).await?;
        let (run, verdict) = exam.replay(&replay, model, self.record)?;
        Ok(ExamRunResult {
            run,
            verdict,
            certificate: None,
        })
    }

    /// Examines the model behind an endpoint.
    async fn examine(&mut self) -> anyhow::Result<(PlannerExam, i64, ExamVerdict)> {
        let address = self.args.planner.as_deref().unwrap_or_default();
        AddressKind::Endpoint.check(address)?;
        let endpoint = HttpModelEndpoint::at(address);
        let settings = self.args.asking.settings(&endpoint).await?;
        let mut exam = self.begin(&settings).await?;
        for case in &exam.cases {
            exam.tools.knows(case)?;
        }
        if crate::is_local(address) && settings.model_file.is_none() {
            exam.notes.push(NAME_ALONE.to_owned());
        }
        self.ask(exam, &settings, None).await
    }

    /// Prepares an exam with the tools as they are now. A list of tools that cannot be fetched is recorded as a failed run.
    async fn begin(&mut self, settings: &PlannerSettings) -> anyhow::Result<PlannerExam> {
        let error = match self.snapshot().await {
            Ok(tools) => return self.exam(tools),
            Err(error) => error,
        };
        let (tools, preamble) = toolbox(self.node)?;
        let exam = PlannerExam {
            cases: Vec::new(),
            tools,
            preamble,
            requested: self.args.level,
            notes: Vec::new(),
        };
        let run = self.record.refuse(&exam, settings, &format!("{error:#}"))?;
        bail!("run {run} failed: {error:#}")
    }

    /// Lists the node's tools and those of the named servers.
    async fn snapshot(&self) -> anyhow::Result<ExamToolbox> {
        let servers = foreign_servers::resolve_servers(&self.args.servers, self.record)?;
        let others = foreign_servers::tools(&servers).await?;
        let own = if self.args.only_servers {
            ExamToolbox::default()
        } else {
            toolbox(self.node)?.0
        };
        let tools = own.with_others(others);
        Ok(match self.listing {
            Some(names) => tools.listed(names),
            None => tools,
        })
    }

    /// Collects the cases, the tools and the preamble of an exam.
    fn exam(&self, tools: ExamToolbox) -> anyhow::Result<PlannerExam> {
        let (args, record) = (self.args, &*self.record);
        let servers = foreign_servers::resolve_servers(&args.servers, record)?;
        let servers: Vec<String> = servers.into_iter().map(|server| server.name).collect();
        let selection = match &args.cases {
            Some(file) => CaseSelection::of_file(file, args.answers.as_deref(), &tools, &servers)?,
            None => CaseSelection::shipped_and_own(&tools, &servers, record)?,
        };
        Ok(PlannerExam {
            cases: selection.cases,
            tools,
            preamble: toolbox(self.node)?.1,
            requested: args.level,
            notes: selection.notes,
        })
    }

    /// Continues a run.
    async fn resume(&mut self, run: i64) -> anyhow::Result<(PlannerExam, i64, ExamVerdict)> {
        let mut exam = self.exam(self.snapshot().await?)?;
        let row = self.record.run(Some(run))?;
        let missing = self.record.failed_answers(run)?;
        if row.settings.is_replay() || (row.status != "failed" && missing == 0) {
            bail!(
                "run {run} is {}. Only an endpoint's run that was interrupted or has missing answers can be resumed",
                row.status
            );
        }
        exam.cases = self.record.cases_of(run)?;
        exam.requested = row.level.map(|level| level.parse()).transpose()?;
        let prompt_hash = crate::prompt_hash(&exam.preamble);
        let tools_hash = crate::tools_hash(&exam.tools);
        if row.prompt_hash != prompt_hash || row.tools_hash != tools_hash {
            bail!(
                "the tools or their descriptions have changed since run {run} began. Next: start a new run"
            );
        }
        self.ask(exam, &row.settings, Some(run)).await
    }

    async fn ask(
        &mut self,
        exam: PlannerExam,
        settings: &PlannerSettings,
        resume: Option<i64>,
    ) -> anyhow::Result<(PlannerExam, i64, ExamVerdict)> {
        let endpoint = HttpModelEndpoint::at(&settings.provider);
        let bar = bar(self.args.json);
        let progress = |now: ExamProgress| show_progress(&bar, now);
        let result = exam
            .ask(&endpoint, settings, self.record, resume, &progress)
            .await;
        bar.finish_and_clear();
        let (run, verdict) = result?;
        Ok((exam, run, verdict))
    }
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

fn show_progress(bar: &ProgressBar, progress: ExamProgress) {
    let count = |value: usize| u64::try_from(value).unwrap_or(u64::MAX);
    bar.set_length(count(progress.of));
    bar.set_position(count(progress.done));
    let answered = progress.done - progress.failed;
    bar.set_message(format!(
        "{} of {answered} right, {} hazards, {} without an answer",
        progress.right, progress.hazards, progress.failed
    ));
}

/// Result of a run.
struct ExamRunResult {
    run: i64,
    verdict: ExamVerdict,
    certificate: Option<CertificateOutcome>,
}

/// Returns the verdict, its reasons, the worst answers and the paths of the report, as JSON.
fn result_json(result: &ExamRunResult, files: &[String]) -> anyhow::Result<Value> {
    let verdict = &result.verdict;
    let mut json = serde_json::to_value(verdict)?;
    let issued = match &result.certificate {
        Some(CertificateOutcome::Issued(id)) => Some(id),
        _ => None,
    };
    let extra = json!({
        "run": result.run,
        "status": verdict.failed.as_ref().map_or("completed", |_| "failed"),
        "verdict": verdict.line(),
        "bound": verdict.bound_line(),
        "report": files,
        "certificate": issued,
    });
    if let (Value::Object(json), Value::Object(extra)) = (&mut json, extra) {
        json.extend(extra);
    }
    Ok(json)
}

/// Returns success unless the run failed or missed the requested level.
fn exit_of(verdict: &ExamVerdict) -> ExitStatus {
    let is_short = verdict.asked.is_some() && !verdict.passed;
    ExitStatus::of(verdict.failed.is_none() && !is_short)
}

/// Prints the result as text.
fn print_result(result: &ExamRunResult, files: &[String]) {
    print_verdict(result.run, &result.verdict);
    match &result.certificate {
        Some(CertificateOutcome::Issued(id)) => show::line(&format!(
            "the planner earned certificate {id}. Next: `steadyhand exam certificate attach {id} --token NAME`"
        )),
        Some(CertificateOutcome::Refused(reason)) => show::line(&format!("  note: {reason}")),
        None => {}
    }
    for file in files {
        show::line(&format!("report: {file}"));
    }
}

fn print_verdict(run: i64, verdict: &ExamVerdict) {
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
            "  better descriptions for the node file (run the exam with them; `steadyhand exam compare` shows whether they help):",
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
            "  `steadyhand exam run --resume {run}` asks again for the missing answers"
        ));
    }
    show::line(&format!("  {}", verdict.bound_line()));
    show::line(&format!(
        "  right tool {}, F1 {}, everything right {}, router {}",
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
        for reason in worst.why.iter().chain(&worst.advice) {
            show::line(&format!("  {reason}"));
        }
    }
}
