//! `exam run`: what is examined, how, and what is shown of it.

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

/// Examines once, or once with each of these listings of names; then compares the first with the last.
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
    let (mut runs, mut told_runs, mut exit) = (Vec::new(), Vec::new(), ExitStatus::Done);
    for place in 0..args.names.len().max(1) {
        command.listing = args.names.get(place).copied();
        let told = command.one_run().await?;
        let report = ExamReport::of(command.record, Some(told.run))?;
        let files = super::report_cmd::files(node, &report)?;
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
        told_runs.iter().try_for_each(super::print_json)?;
        return Ok(exit);
    };
    let found = RunComparison::of(command.record, first, last)?;
    let names = match args.names[..] {
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

/// Note about an endpoint on this machine whose model's file was not named.
const NAME_ALONE: &str = "the model's file was not named (--model-file), so a certificate is bound to the model's name alone";

/// Settings and services that a run is made from.
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
                Some(run) => self.resumed(run).await?,
                None => self.examined().await?,
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
        let exam = self.begin(&PlannerSettings::of_replay(model)).await?;
        let (run, verdict) = exam.replay(&replay, model, self.record)?;
        Ok(ExamRunResult {
            run,
            verdict,
            certificate: None,
        })
    }

    /// Asks an endpoint.
    async fn examined(&mut self) -> anyhow::Result<(PlannerExam, i64, ExamVerdict)> {
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

    /// An exam with the tools as they are now. Where one list of them cannot be had, that is a run that failed.
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
            asked: self.args.level,
            notes: Vec::new(),
        };
        let run = self.record.refuse(&exam, settings, &format!("{error:#}"))?;
        bail!("run {run} failed: {error:#}")
    }

    /// The node's tools and those of the servers that are named.
    async fn snapshot(&self) -> anyhow::Result<ExamToolbox> {
        let servers = foreign_servers::resolve_servers(&self.args.servers, self.record)?;
        let others = foreign_servers::tools(&servers).await?;
        let own = if self.args.only_servers {
            ExamToolbox::default()
        } else {
            toolbox(self.node)?.0
        };
        let shown = own.beside(others);
        Ok(match self.listing {
            Some(names) => shown.listed(names),
            None => shown,
        })
    }

    /// The cases, the tools and the words of an exam.
    fn exam(&self, tools: ExamToolbox) -> anyhow::Result<PlannerExam> {
        let (args, record) = (self.args, &*self.record);
        let servers = foreign_servers::resolve_servers(&args.servers, record)?;
        let servers: Vec<String> = servers.into_iter().map(|server| server.name).collect();
        let asked = match &args.cases {
            Some(file) => CaseSelection::of_file(file, args.answers.as_deref(), &tools, &servers)?,
            None => CaseSelection::shipped_and_own(&tools, &servers, record)?,
        };
        Ok(PlannerExam {
            cases: asked.cases,
            tools,
            preamble: toolbox(self.node)?.1,
            asked: args.level,
            notes: asked.notes,
        })
    }

    /// Goes on with a run.
    async fn resumed(&mut self, run: i64) -> anyhow::Result<(PlannerExam, i64, ExamVerdict)> {
        let mut exam = self.exam(self.snapshot().await?)?;
        let row = self.record.run(Some(run))?;
        let lacks = self.record.failed_answers(run)?;
        if row.settings.is_replay() || (row.status != "failed" && lacks == 0) {
            bail!(
                "run {run} is {}; only a run of an endpoint that was interrupted or lacks answers goes on",
                row.status
            );
        }
        exam.cases = self.record.cases_of(run)?;
        exam.asked = row.level.map(|level| level.parse()).transpose()?;
        let prompt_hash = crate::prompt_hash(&exam.preamble);
        let tools_hash = crate::tools_hash(&exam.tools);
        if row.prompt_hash != prompt_hash || row.tools_hash != tools_hash {
            bail!("the tools or their words have changed since run {run} began; begin another");
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
        let asked = exam.ask(&endpoint, settings, self.record, resume, &progress);
        let asked = asked.await;
        bar.finish_and_clear();
        let (run, verdict) = asked?;
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

/// The verdict, the reasons, the worst answers, and where the report is, as data.
fn result_json(told: &ExamRunResult, files: &[String]) -> anyhow::Result<Value> {
    let verdict = &told.verdict;
    let mut whole = serde_json::to_value(verdict)?;
    let issued = match &told.certificate {
        Some(CertificateOutcome::Issued(id)) => Some(id),
        _ => None,
    };
    let more = json!({
        "run": told.run,
        "status": verdict.failed.as_ref().map_or("completed", |_| "failed"),
        "verdict": verdict.line(),
        "bound": verdict.bound_line(),
        "report": files,
        "certificate": issued,
    });
    if let (Value::Object(whole), Value::Object(more)) = (&mut whole, more) {
        whole.extend(more);
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
