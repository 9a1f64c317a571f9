//! `exam run`: what is examined, how, and what is shown of it.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::endpoint::Http;
use super::{Exit, NodeArgs, certificate, foreign, read, show, toolbox};
use crate::exam::{
    self, Case, Exam, Level, Progress, Record, Replay, Report, Settings, Toolbox, Verdict,
};

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// An OpenAI-compatible endpoint, such as http://127.0.0.1:8080/v1; its key, where it wants one,
    /// comes from STEADYHAND_API_KEY
    #[arg(long, value_name = "URL", required_unless_present_any = ["replay", "resume"], conflicts_with = "replay")]
    planner: Option<String>,
    /// The model's name [default: the first that the endpoint lists]
    #[arg(long)]
    model: Option<String>,
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
    /// Make further cases of the classes that least is known of, until the verdict is certain or so many answers are spent
    #[arg(long, value_name = "ANSWERS", conflicts_with_all = ["replay", "resume"])]
    budget: Option<u32>,
    /// The level that is asked for: observe, home, align or stroke; without one, the highest that is reached is told
    #[arg(long)]
    level: Option<Level>,
    /// Go on with a run that was interrupted
    #[arg(long, value_name = "RUN", conflicts_with_all = ["planner", "replay", "cases", "model"])]
    resume: Option<i64>,
    /// How often each case is asked, 1 to 10 [default: 3]
    #[arg(long, value_name = "K")]
    samples: Option<u32>,
    /// Longest wait for an answer, 1 to 300 s [default: 30]
    #[arg(long, value_name = "SECONDS")]
    time_limit: Option<u32>,
    /// 0 to 2 [default: 0.4]
    #[arg(long)]
    temperature: Option<f64>,
    /// Further tries after an error, 0 to 10 [default: 3]
    #[arg(long)]
    retries: Option<u32>,
    /// The seed that is sent with each question [default: 1]
    #[arg(long)]
    seed: Option<u64>,
    /// The model's file, where the endpoint runs it from this machine: its hash goes into the certificate
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    model_file: Option<PathBuf>,
    /// Print the verdict as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(
    node: &NodeArgs,
    args: RunArgs,
    record: &mut Record,
) -> anyhow::Result<Exit> {
    let (run, verdict, certificate) = match (&args.replay, args.resume) {
        (Some(file), _) => {
            let text = read(file)?;
            let replay = Replay::read_lines(&text).with_context(|| file.display().to_string())?;
            let model = args.model.clone().unwrap_or_else(|| file_name(file));
            let exam = begun(node, &args, &Settings::new("replay", &model), record).await?;
            let (run, verdict) = exam.replay(&replay, &model, record)?;
            (run, verdict, None)
        }
        (None, resumed) => {
            let (exam, run, verdict) = examined(node, &args, resumed, record).await?;
            let certificate = certificate::issue(node, &exam, record, run, &verdict)?;
            (run, verdict, certificate)
        }
    };
    tell(
        node,
        &args,
        record,
        &Told {
            run,
            verdict,
            certificate,
        },
    )
}

/// Asks an endpoint.
async fn examined(
    node: &NodeArgs,
    args: &RunArgs,
    resumed: Option<i64>,
    record: &mut Record,
) -> anyhow::Result<(Exam, i64, Verdict)> {
    if let Some(run) = resumed {
        let tools = snapshot(node, args, record).await?;
        let mut exam = exam(node, args, tools, record)?;
        let (run, verdict) = resume(&mut exam, args, run, record).await?;
        return Ok((exam, run, verdict));
    }
    let endpoint = Http::at(args.planner.as_deref().unwrap_or_default());
    let settings = settings(args, &endpoint).await?;
    let exam = begun(node, args, &settings, record).await?;
    let (run, verdict) = ask(&exam, &endpoint, &settings, record, None, args.json).await?;
    Ok((exam, run, verdict))
}

/// An exam with the tools as they are now. Where one list of them cannot be had, that is a run that failed.
async fn begun(
    node: &NodeArgs,
    args: &RunArgs,
    settings: &Settings,
    record: &mut Record,
) -> anyhow::Result<Exam> {
    match snapshot(node, args, record).await {
        Ok(tools) => exam(node, args, tools, record),
        Err(error) => {
            let exam = exam(node, args, toolbox(node)?.0, record)?;
            let run = exam.refuse(settings, &format!("{error:#}"), record)?;
            bail!("run {run} failed: {error:#}")
        }
    }
}

/// The node's tools and those of the servers that are named.
async fn snapshot(node: &NodeArgs, args: &RunArgs, record: &Record) -> anyhow::Result<Toolbox> {
    let servers = foreign::meant(&args.servers, record)?;
    let others = foreign::tools(&servers).await?;
    let own = if args.only_servers {
        Toolbox::default()
    } else {
        toolbox(node)?.0
    };
    Ok(own.beside(others))
}

/// The cases, the tools and the words of an exam.
fn exam(node: &NodeArgs, args: &RunArgs, tools: Toolbox, record: &Record) -> anyhow::Result<Exam> {
    let (_, preamble) = toolbox(node)?;
    let mut notes = Vec::new();
    let cases = match &args.cases {
        Some(file) => cases_of(file, args.answers.as_deref())?,
        None => kept_cases(&tools, args, record, &mut notes)?,
    };
    let cases = cases.into_iter().map(|case| case.aimed(&tools)).collect();
    Ok(Exam {
        cases,
        tools,
        preamble,
        asked: args.level,
        notes,
    })
}

/// Those that ship and fit, and the operator's own that are for the servers that are examined.
fn kept_cases(
    tools: &Toolbox,
    args: &RunArgs,
    record: &Record,
    notes: &mut Vec<String>,
) -> anyhow::Result<Vec<Case>> {
    let (cases, left_out) = exam::fitting(Case::shipped()?, tools);
    if left_out > 0 {
        notes.push(format!(
            "{left_out} cases that ship name what this node does not have and were left out"
        ));
    }
    let servers = foreign::meant(&args.servers, record)?;
    let servers: Vec<String> = servers.into_iter().map(|server| server.name).collect();
    let mut own = record.cases()?;
    let all = own.len();
    own.retain(|case| case.is_for(&servers));
    if own.len() < all {
        notes.push(format!(
            "{} cases of your own are for servers that were not examined (--servers) and were left out",
            all - own.len()
        ));
    }
    own.retain(|case| !cases.iter().any(|one| one.name == case.name));
    Ok(cases.into_iter().chain(own).collect())
}

pub(super) fn cases_of(file: &Path, answers: Option<&Path>) -> anyhow::Result<Vec<Case>> {
    let text = read(file)?;
    let answers = answers.map(read).transpose()?;
    let cases = if Case::is_bfcl(&text) {
        Case::read_bfcl(&text, answers.as_deref())
    } else {
        Case::read_lines(&text)
    };
    cases.with_context(|| file.display().to_string())
}

fn file_name(path: &Path) -> String {
    let name = path.file_stem().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// What is said on the command line, else in the environment, else as shipped.
async fn settings(args: &RunArgs, endpoint: &Http) -> anyhow::Result<Settings> {
    let model = match args.model.clone().or_else(|| said("MODEL")) {
        Some(model) => model,
        None => endpoint
            .first_model()
            .await
            .unwrap_or_else(|| "default".to_owned()),
    };
    let shipped = Settings::new(endpoint.base(), &model);
    let settings = Settings {
        time_limit_s: chosen(args.time_limit, "TIME_LIMIT", shipped.time_limit_s)?,
        temperature: chosen(args.temperature, "TEMPERATURE", shipped.temperature)?,
        retries: chosen(args.retries, "RETRIES", shipped.retries)?,
        seed: chosen(args.seed, "SEED", shipped.seed)?,
        samples: chosen(args.samples, "SAMPLES", 3)?,
        budget: budget(args)?,
        model_file: args.model_file.as_deref().map(hash_of).transpose()?,
        ..shipped
    };
    settings.check()?;
    Ok(settings)
}

/// Without one, no case is made.
fn budget(args: &RunArgs) -> anyhow::Result<Option<u32>> {
    let none = 0;
    let said = chosen(args.budget, "BUDGET", none)?;
    Ok((said != none || args.budget.is_some()).then_some(said))
}

/// The BLAKE3 hash of a file of any size.
fn hash_of(path: &Path) -> anyhow::Result<String> {
    let cannot = || format!("cannot read the model's file {}", path.display());
    let mut file = std::fs::File::open(path).with_context(cannot)?;
    let (mut hasher, mut part) = (blake3::Hasher::new(), vec![0; 1 << 16]);
    loop {
        let length = file.read(&mut part).with_context(cannot)?;
        if length == 0 {
            return Ok(hasher.finalize().to_hex().to_string());
        }
        hasher.update(part.get(..length).unwrap_or_default());
    }
}

fn said(name: &str) -> Option<String> {
    let value = std::env::var(format!("STEADYHAND_EXAM_{name}")).ok()?;
    (!value.trim().is_empty()).then(|| value.trim().to_owned())
}

fn chosen<T: std::str::FromStr>(on_line: Option<T>, name: &str, shipped: T) -> anyhow::Result<T> {
    match (on_line, said(name)) {
        (Some(value), _) => Ok(value),
        (None, None) => Ok(shipped),
        (None, Some(text)) => match text.parse() {
            Ok(value) => Ok(value),
            Err(_) => bail!("STEADYHAND_EXAM_{name} is {text:?}, which is no value for it"),
        },
    }
}

async fn resume(
    exam: &mut Exam,
    args: &RunArgs,
    run: i64,
    record: &mut Record,
) -> anyhow::Result<(i64, Verdict)> {
    let row = record.run(Some(run))?;
    if row.status != "failed" || row.settings.provider == "replay" {
        bail!(
            "run {run} is {}; only an interrupted run of an endpoint goes on",
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
    let endpoint = Http::at(&row.settings.provider);
    ask(exam, &endpoint, &row.settings, record, Some(run), args.json).await
}

async fn ask(
    exam: &Exam,
    endpoint: &Http,
    settings: &Settings,
    record: &mut Record,
    resume: Option<i64>,
    quiet: bool,
) -> anyhow::Result<(i64, Verdict)> {
    let bar = bar(quiet);
    let progress = |now: Progress| show_progress(&bar, now);
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

fn show_progress(bar: &ProgressBar, now: Progress) {
    let count = |value: usize| u64::try_from(value).unwrap_or(u64::MAX);
    bar.set_length(count(now.of));
    bar.set_position(count(now.done));
    bar.set_message(format!(
        "right {} of {}, hazards {}",
        now.right, now.done, now.hazards
    ));
}

/// What a run came to.
struct Told {
    run: i64,
    verdict: Verdict,
    certificate: Option<Result<String, String>>,
}

/// The verdict, the reasons, the worst answers, and where the report is.
fn tell(node: &NodeArgs, args: &RunArgs, record: &Record, told: &Told) -> anyhow::Result<Exit> {
    let Told {
        run,
        verdict,
        certificate,
    } = told;
    let run = *run;
    let files = super::look::files(node, &Report::of(record, Some(run))?)?;
    if args.json {
        let mut told = serde_json::to_value(verdict)?;
        if let Some(told) = told.as_object_mut() {
            told.insert("run".to_owned(), run.into());
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
    Ok(if verdict.passed || verdict.asked.is_none() {
        Exit::Done
    } else {
        Exit::Refused
    })
}

fn in_words(run: i64, verdict: &Verdict) {
    let tally = &verdict.tally;
    show::line(&format!("run {run}: {}", verdict.line()));
    for reason in &verdict.reasons {
        show::line(&format!("  because {reason}"));
    }
    show::line(&format!("  {}", verdict.bound_line()));
    show::line(&format!(
        "  right tool {}; F1 {:.3} (n = {}); right in everything {}; router {}",
        tally.all.right, tally.f1, tally.answers, tally.all.exact, verdict.router
    ));
    for note in &verdict.notes {
        show::line(&format!("  note: {note}"));
    }
    for worst in &verdict.worst {
        show::line(&format!(
            "worst: {} {:?}",
            worst.classification, worst.query
        ));
        show::line(&format!("  answered {:?}", worst.answer));
        for why in worst.why.iter().chain(&worst.advice) {
            show::line(&format!("  {why}"));
        }
    }
}
