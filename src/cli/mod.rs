//! The command line: wiring only. Everything that a command does is done in another room.

mod approve;
mod arm;
mod audit;
mod bus;
mod calibrate;
mod call;
mod check;
mod command;
mod doctor;
mod duration;
mod explain;
mod init;
mod jobs;
mod jog;
mod node_args;
mod operator_client;
mod plan;
mod playback;
mod reach;
mod recorded_playback;
mod replay;
mod scenes;
mod serve_args;
mod sim;
mod stop_keys;
mod terminal_output;
mod token;
mod tools;
mod trace;

pub use command::Cli;
pub use node::{ExitStatus, node_service};
pub use terminal_output::harmless;

use command::Command;
use node::{NodeOptions, control_socket, serve, systemd};
use node_args::AtArgs;

/// Does what the command line says.
///
/// # Errors
/// One message that names the value, the limit and the fix.
pub fn run(cli: Cli) -> anyhow::Result<ExitStatus> {
    let sockets = match cli.command {
        Command::Serve(_) => systemd::sockets()?,
        _ => systemd::ActivatedSockets::default(),
    };
    let quiet = !matches!(cli.command, Command::Serve(_) | Command::Sim(_));
    if let Err(error) = node::log::begin(cli.node.log.map(Into::into), quiet) {
        terminal_output::note(&format!("the log cannot be set up: {error}"));
    }
    // One thread hears everybody: with two, each message would wake both. What takes long is done
    // by others (`work`).
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let result = runtime.block_on(command(cli, sockets));
    node::open::end_temporary();
    // A thread that still reads standard input must not hold the process.
    runtime.shutdown_background();
    result
}

async fn command(cli: Cli, sockets: systemd::ActivatedSockets) -> anyhow::Result<ExitStatus> {
    let node = NodeOptions::from(cli.node);
    match cli.command {
        Command::Call(args) => call::run(&node, args).await,
        Command::Serve(args) => serve::run(&node, args.into(), sockets).await,
        Command::Tools { format, what } => tools::run(&node, &format, what.map(|what| *what)),
        Command::Scene(what) => scenes::run(&node, what),
        Command::Plan(args) => plan::run(&node, &args),
        Command::Reach(args) => reach::run(&node, &args),
        Command::Arm(what) => arm::run(&what),
        Command::Calibrate(what) => calibrate::run(&node, what).await,
        Command::Jog(args) => jog::run(args).await,
        Command::Teach(what) => calibrate::teach::run(&node, &what).await,
        Command::Explain(args) => explain::run(&node, &args),
        #[cfg(feature = "exam")]
        Command::Exam(args) => exam::run_command(&node, *args).await,
        #[cfg(not(feature = "exam"))]
        Command::Exam { .. } => anyhow::bail!(
            "this program was built without the exam: build it with the cargo feature `exam`, which is on by default"
        ),
        Command::Sim(args) => sim::run(&node, args).await,
        Command::Bus(what) => bus::run(&node, what).await,
        Command::Doctor(args) => doctor::run(&node, &args).await,
        Command::Enable {
            scenes,
            meta,
            for_,
            arm,
            at,
        } => operator_client::enable(&at, scenes, meta, for_, arm).await,
        Command::Disable(at) => {
            operator_client::verb(&at, control_socket::OperatorVerb::Disable).await
        }
        Command::Stop(at) => operator_client::verb(&at, control_socket::OperatorVerb::Stop).await,
        Command::Estop(at) => operator_client::verb(&at, control_socket::OperatorVerb::Estop).await,
        Command::Clear(at) => operator_client::clear(&at).await,
        Command::Hold { now, at } => {
            operator_client::verb(&at, control_socket::OperatorVerb::Hold { now }).await
        }
        Command::Resume(at) => {
            operator_client::verb(&at, control_socket::OperatorVerb::Resume).await
        }
        Command::TorqueOff { yes, at } => operator_client::torque_off(&at, yes).await,
        Command::Selftest { scene, rounds, at } => {
            operator_client::verb(
                &at,
                control_socket::OperatorVerb::Selftest { scene, rounds },
            )
            .await
        }
        Command::Reset { scene, arm, at } => {
            operator_client::verb(&at, control_socket::OperatorVerb::Reset { scene, arm }).await
        }
        Command::Init(args) => init::run(&node, args).await,
        Command::Check => check::run(&node),
        Command::Token(command) => token::run(&node, command),
        Command::Status(at) => {
            operator_client::verb(&at, control_socket::OperatorVerb::Status).await
        }
        Command::Jobs { id, json, at } => jobs::run(&node, id, json, &at).await,
        Command::Approve { job, yes, at } => approve::run(job, yes, &at).await,
        Command::Replay { job, bytes } => replay::run(&node, &job, bytes).await,
        Command::Audit(audit::AuditCommand::Verify { file, key }) => {
            audit::verify(&file, key.as_deref())
        }
    }
}

/// An error with its causes, from the outside in; what one says already in its own words is not said again.
#[must_use]
pub fn why(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |said, cause| {
        let cause = cause.to_string();
        match said.as_str() {
            "" => cause,
            said if said.contains(&cause) => said.to_owned(),
            said => format!("{said}: {cause}"),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cause_is_said_twice() {
        let lost = || driver::DriverError::from(driver::BusError::Read(link::LinkError::Unplugged));
        let said = why(&anyhow::Error::new(lost()));
        assert_eq!(said, lost().to_string());
        let said = why(&anyhow::Error::new(lost()).context("nothing was saved"));
        assert_eq!(said, format!("nothing was saved: {}", lost()));
    }
}
