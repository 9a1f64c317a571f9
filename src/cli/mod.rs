//! The command line: wiring only. The other crates do the work.

mod approve;
mod arm;
mod audit;
mod bus;
mod calibrate;
mod call;
mod check;
mod choice;
mod clients;
mod command;
mod command_groups;
mod design_files;
mod doctor;
mod draw;
mod drawing_words;
mod duration;
mod explain;
mod files;
mod fleet;
mod fleet_draw;
mod fleet_jobs;
mod follow_job;
mod fonts;
mod given_options;
mod init;
mod jobs;
mod jog;
mod new_scene;
mod node_args;
mod node_file_text;
mod nodes;
mod operator_client;
mod operator_door;
mod own_node;
mod pen;
mod pen_prompt;
mod placement_args;
mod plan;
mod playback;
mod practice_input;
mod progress_bar;
mod questions;
mod reach;
mod recorded_playback;
mod replay;
mod result_copies;
mod retyped_command;
mod scenes;
mod serve_args;
mod sim;
mod stop_keys;
mod stop_names;
mod terminal_output;
mod token;
mod tools;
mod trace;
mod trim;
mod watch;
mod which_node;

pub use command::Cli;
pub use node::{ExitStatus, node_service};
pub use terminal_output::note;

use base::disk::read_advice;
use base::wording::{names_step, next_apart, with_next};
use command::{CliCommand, JobReplayArgs};
use node::operator_verb::OperatorVerb;
use node::{NodeOptions, serve, systemd};
use node_args::AtArgs;

/// Runs the command.
///
/// # Errors
/// Fails with one message that names the value, the limit and the fix.
pub fn run(mut cli: Cli) -> anyhow::Result<ExitStatus> {
    let sockets = match cli.command {
        CliCommand::Serve(_) => systemd::sockets()?,
        _ => systemd::ActivatedSockets::default(),
    };
    let quiet = !matches!(cli.command, CliCommand::Serve(_) | CliCommand::Sim(_));
    if let Err(error) = node::log::begin(cli.node.log, quiet) {
        terminal_output::note(&format!("the log cannot be started: {error}"));
    }
    // One thread serves all connections: with two, each message would wake both. Long work runs on
    // other threads (`work`).
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let (remark, not_stopped) = (cli.remark.take(), cli.not_stopped.take());
    let mut result = runtime.block_on(command(cli, sockets));
    // A stop does not wait for a terminal that takes nothing.
    for told in [&remark, &not_stopped].into_iter().flatten() {
        terminal_output::note(told);
    }
    if let (Some(_), Ok(ExitStatus::Done)) = (&not_stopped, &result) {
        result = Ok(ExitStatus::Broken);
    }
    node::open::end_temporary();
    // A thread that still reads standard input must not hold the process.
    runtime.shutdown_background();
    match (terminal_output::lost_output(), &result) {
        // A refusal, or an arm that is still energised, matters more.
        (Some(error), Ok(ExitStatus::Done)) => {
            anyhow::bail!("cannot write to standard output: {error}")
        }
        (Some(error), Ok(_)) => {
            terminal_output::note(&format!("cannot write to standard output: {error}"));
            result
        }
        _ => result,
    }
}

async fn command(cli: Cli, sockets: systemd::ActivatedSockets) -> anyhow::Result<ExitStatus> {
    let node = NodeOptions::from(cli.node);
    base::signals::bear_full_files()?;
    match cli.command {
        CliCommand::Call(args) => call::run(&node, args).await,
        CliCommand::Draw(args) => draw::run(&node, &args).await,
        CliCommand::Watch { job, json, at } => watch::run(&node, job.as_deref(), json, &at).await,
        CliCommand::Serve(args) => serve::run(&node, args.into(), sockets).await,
        CliCommand::Tools { format, what } => tools::run(&node, &format, what.map(|what| *what)),
        CliCommand::Scene(what) => scenes::run(&node, what),
        CliCommand::Fonts(args) => fonts::run(&args),
        CliCommand::Plan(args) => plan::run(&node, &args),
        CliCommand::Calibrate(what) => calibrate::run(&node, what).await,
        CliCommand::FirstLine(args) => calibrate::first_line::run(&node, &args).await,
        CliCommand::Jog(args) => jog::run(&node, args).await,
        CliCommand::Teach(what) => calibrate::teach::run(&node, &what).await,
        CliCommand::Explain(args) => explain::run(&node, &args),
        #[cfg(feature = "exam")]
        CliCommand::Exam(args) => exam::run_command(&node, *args).await,
        #[cfg(not(feature = "exam"))]
        CliCommand::Exam { .. } => anyhow::bail!(
            "this program was built without the exam. Next: build it with the cargo feature `exam` (on by default)"
        ),
        #[cfg(feature = "recording")]
        CliCommand::Recording(args) => recording(node, *args).await,
        #[cfg(not(feature = "recording"))]
        CliCommand::Recording { .. } => anyhow::bail!(
            "this program was built without recordings. Next: build it with the cargo feature `recording` (on by default)"
        ),
        CliCommand::Sim(args) => sim::run(&node, args).await,
        CliCommand::Bus(what) => bus::run(&node, what).await,
        CliCommand::Doctor(args) => doctor::run(&node, &args).await,
        CliCommand::Enable {
            scenes,
            meta,
            for_,
            arm,
            at,
        } => operator_client::enable(&node, &at, scenes, meta, for_, arm).await,
        CliCommand::Page { socket } => operator_client::page(&node, socket).await,
        CliCommand::Disable(at) => which_node::verb(&node, &at, OperatorVerb::Disable).await,
        CliCommand::Stop(at) => which_node::stop(&node, &at, OperatorVerb::Stop).await,
        CliCommand::Estop(at) => which_node::stop(&node, &at, OperatorVerb::Estop).await,
        CliCommand::Clear(at) => operator_client::clear(&node, &at).await,
        CliCommand::Hold { now, at } => operator_client::hold(&node, &at, now).await,
        CliCommand::Continue(at) => which_node::verb(&node, &at, OperatorVerb::Resume).await,
        CliCommand::Trim(args) => trim::run(&node, args).await,
        CliCommand::TorqueOff { yes, at } => operator_client::torque_off(&node, &at, yes).await,
        CliCommand::Selftest { scene, rounds, at } => {
            which_node::moving_verb(&node, &at, OperatorVerb::Selftest { scene, rounds }).await
        }
        CliCommand::NewSheet { arm, at } => {
            which_node::verb(&node, &at, OperatorVerb::NewSheet { arm }).await
        }
        CliCommand::Reset { scene, arm, at } => {
            which_node::moving_verb(&node, &at, OperatorVerb::Reset { scene, arm }).await
        }
        CliCommand::Init(args) => init::run(&node, args).await,
        CliCommand::Check => check::run(&node),
        CliCommand::Clients(args) => clients::run(&node, &args),
        CliCommand::Token(command) => token::run(&node, command),
        CliCommand::Status(at) => which_node::verb(&node, &at, OperatorVerb::Status).await,
        CliCommand::Jobs { what, id, json, at } => jobs::run(&node, what, id, json, &at).await,
        CliCommand::Approve { job, yes, at } => approve::run(&node, job, yes, &at).await,
        CliCommand::Pen { job, pen, yes, at } => pen::run(&node, job, pen, yes, &at).await,
        CliCommand::Replay(args) => replay(node, args).await,
        CliCommand::Fleet(what) => fleet::run(&node, &what).await,
    }
}

async fn replay(node: NodeOptions, args: JobReplayArgs) -> anyhow::Result<ExitStatus> {
    #[cfg(feature = "recording")]
    if args.setpoints {
        return recording(node, recording::RecordingArgs::replay(args.job)).await;
    }
    replay::run(&node, &args.job, args.bytes).await
}

#[cfg(feature = "recording")]
async fn recording(
    mut node: NodeOptions,
    args: recording::RecordingArgs,
) -> anyhow::Result<ExitStatus> {
    if args.names_job() {
        node = replay::of_running_node(&node).await?;
    }
    recording::run_command(&node, args).await
}

/// Describes the error that ends this process, with its next step: the error's own, that of its cause, or the help of the command.
#[must_use]
pub fn describe_failure(error: &anyhow::Error) -> String {
    let text = describe_error(error);
    if names_step(&text) {
        return text;
    }
    // An error of the system without advice is of something that is read: what is written has advice of its own.
    let unread = error
        .chain()
        .find_map(<dyn std::error::Error>::downcast_ref);
    match unread.map(read_advice) {
        Some(advice) => with_next(text, advice),
        None => with_next(text, &command_groups::help_of(std::env::args().skip(1))),
    }
}

/// Describes an error with its causes, from the outside in, and the next step last. A cause that the text already contains is not
/// repeated.
fn describe_error(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |text, cause| {
        let cause = cause.to_string();
        if text.is_empty() || text.contains(&cause) {
            return if text.is_empty() { cause } else { text };
        }
        let ((stated, next), (cause, next_of_cause)) = (next_apart(&text), next_apart(&cause));
        let text = format!("{stated}: {cause}");
        match next.or(next_of_cause) {
            Some(next) => with_next(text, next),
            None => text,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_step_comes_after_all_causes() {
        let error = anyhow::anyhow!("no such file").context("cannot read a.svg. Next: look");
        assert_eq!(
            describe_error(&error),
            "cannot read a.svg: no such file. Next: look"
        );
        let own = describe_failure(&error);
        assert_eq!(own, describe_error(&error));
        let without = describe_failure(&anyhow::anyhow!("no such file"));
        assert!(without.ends_with("--help`"), "{without}");
        let unread = std::io::Error::from(std::io::ErrorKind::NotFound);
        let unread = describe_failure(&anyhow::Error::new(unread).context("cannot read a.svg"));
        assert!(
            unread.ends_with("Next: check the file's name and folder"),
            "{unread}"
        );
    }

    #[test]
    fn no_cause_is_repeated() {
        let lost = || driver::DriverError::from(driver::BusError::Read(link::LinkError::Unplugged));
        let text = describe_error(&anyhow::Error::new(lost()));
        assert_eq!(text, lost().to_string());
        let text = describe_error(&anyhow::Error::new(lost()).context("nothing was saved"));
        assert_eq!(text, format!("nothing was saved: {}", lost()));
    }
}
