//! The jog's terminal: turns keys into verbs, one at a time.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use anyhow::{Context, bail};
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::screen::JogScreen;
use super::view::{JogAction, JogView};
use super::{JogArgs, state};
use crate::{ExitStatus, operator_client, terminal_output};
use base::task::pause;
use node::operator_verb::{OperatorVerb, VerbReply};

/// Interval at which the arm's state is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Longest single wait for the keyboard.
const KEY_WAIT: Duration = Duration::from_millis(50);

/// A step under way.
type RunningStep = JoinHandle<anyhow::Result<VerbReply>>;

pub(super) async fn run(args: &JogArgs) -> anyhow::Result<ExitStatus> {
    if !std::io::stdout().is_terminal() {
        bail!(
            "jogging by keys needs a terminal. Next: give one step with --step, such as `--step z-1`"
        );
    }
    let mut view = JogView::new(state(args).await?);
    let screen = JogScreen::open()?;
    let result = run_view(args, &mut view, &screen).await;
    drop(screen);
    if let Ok(Some(stop_reply)) = &result {
        terminal_output::line(stop_reply);
    }
    if result.is_err() {
        // After any failure, nobody watches the arm any more.
        let stop_reply = send(args, &OperatorVerb::Stop).await;
        terminal_output::note(stop_reply.as_deref().unwrap_or("the node does not answer"));
    }
    result?;
    Ok(ExitStatus::Done)
}

/// Runs the view until a key ends it. Returns the reply to the stop if a step was under way.
async fn run_view(
    args: &JogArgs,
    view: &mut JogView,
    screen: &JogScreen,
) -> anyhow::Result<Option<String>> {
    let mut keys = keys();
    let mut running_step: Option<RunningStep> = None;
    loop {
        screen.show(&view.lines())?;
        tokio::select! {
            key = keys.recv() => {
                let key = key.context("the keyboard input has ended")?;
                let key = view.press(key);
                if key == JogAction::Quit {
                    return stop_running_step(args, running_step.as_ref()).await;
                }
                perform(args, view, key, &mut running_step).await?;
            }
            () = pause(POLL_INTERVAL) => {}
        }
        if running_step.as_ref().is_some_and(JoinHandle::is_finished)
            && let Some(step) = running_step.take()
        {
            view.message = step.await??.text;
        }
        view.stance = state(args).await?;
    }
}

/// Stops a running step, because the jog is no longer supervised.
async fn stop_running_step(
    args: &JogArgs,
    running_step: Option<&RunningStep>,
) -> anyhow::Result<Option<String>> {
    if running_step.is_none_or(JoinHandle::is_finished) {
        return Ok(None);
    }
    send(args, &OperatorVerb::Stop).await.map(Some)
}

/// Sends a verb to the node, and returns its reply.
async fn send(args: &JogArgs, verb: &OperatorVerb) -> anyhow::Result<String> {
    Ok(operator_client::ask(&args.at, verb).await?.text)
}

/// Performs the action of a key.
async fn perform(
    args: &JogArgs,
    view: &mut JogView,
    key: JogAction,
    running_step: &mut Option<RunningStep>,
) -> anyhow::Result<()> {
    match key {
        // A held key sends many: the next step begins when the previous one has ended.
        JogAction::Step(_) if running_step.is_some() => {}
        JogAction::Step(step) => {
            let at = args.at.clone();
            let (scene, arm) = (args.scene.clone(), args.arm.clone());
            let verb = OperatorVerb::Jog { scene, step, arm };
            *running_step = Some(base::task::spawn(async move {
                operator_client::ask(&at, &verb).await
            }));
        }
        JogAction::Stop => view.message = send(args, &OperatorVerb::Stop).await?,
        JogAction::LetGo => view.message = send(args, &OperatorVerb::TorqueOff).await?,
        JogAction::Record => view.message = record(args, view)?,
        JogAction::Quit | JogAction::ViewOnly => {}
    }
    Ok(())
}

/// Records the pose in the format of scene files.
fn record(args: &JogArgs, view: &JogView) -> anyhow::Result<String> {
    let joints = view.stance.joints.iter();
    let joints: Vec<f64> = joints.map(|joint| joint.deg.to_radians()).collect();
    let pose = format!("pose_rad = {joints:.4?}");
    if let Some(path) = &args.poses {
        let mut file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .with_context(|| format!("cannot write {}", path.display()))?;
        writeln!(file, "{pose}")?;
    }
    Ok(pose)
}

/// Returns the pressed keys, read by a separate thread.
fn keys() -> mpsc::Receiver<KeyCode> {
    let (sender, keys) = mpsc::channel(8);
    std::thread::spawn(move || {
        while !sender.is_closed() {
            match event::poll(KEY_WAIT).and_then(|is_ready| is_ready.then(event::read).transpose())
            {
                Ok(Some(Event::Key(key))) if key.kind != KeyEventKind::Release => {
                    // Unread keys are outdated: a stop must not wait behind them.
                    let code = key_code(key);
                    if !matches!(code, KeyCode::Char(' ') | KeyCode::Esc) {
                        let _ = sender.try_send(code);
                    } else if sender.blocking_send(code).is_err() {
                        break;
                    }
                }
                Ok(_) => {}
                Err(_) => break,
            }
        }
    });
    keys
}

/// Maps Ctrl-C, which a raw terminal delivers as a key, to Esc, which ends the view.
fn key_code(key: KeyEvent) -> KeyCode {
    let interrupts =
        key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    if interrupts { KeyCode::Esc } else { key.code }
}
