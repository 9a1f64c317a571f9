//! The jog's terminal: keys in, verbs out, one at a time.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use anyhow::{Context, bail};
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::screen::JogScreen;
use super::view::{JogAction, JogView};
use super::{JogArgs, look};
use crate::{ExitStatus, operator_client, terminal_output};
use base::task::pause;
use node::operator_verb::{OperatorVerb, VerbReply};

/// Interval at which the arm's state is polled.
const EVERY: Duration = Duration::from_millis(100);

/// Longest wait for the keyboard at a time.
const POLL: Duration = Duration::from_millis(50);

/// A step under way.
type RunningStep = JoinHandle<anyhow::Result<VerbReply>>;

pub(super) async fn run(args: &JogArgs) -> anyhow::Result<ExitStatus> {
    if !std::io::stdout().is_terminal() {
        bail!("this is not a terminal: say one step with --step, such as --step z-1");
    }
    let mut view = JogView::new(look(args).await?);
    let screen = JogScreen::open()?;
    let ended = run_view(args, &mut view, &screen).await;
    drop(screen);
    if let Ok(Some(stopped)) = &ended {
        terminal_output::line(stopped);
    }
    if ended.is_err() {
        // Whatever failed here, nobody watches any more.
        let stopped = told(args, &OperatorVerb::Stop).await;
        terminal_output::note(stopped.as_deref().unwrap_or("the node does not answer"));
    }
    ended?;
    Ok(ExitStatus::Done)
}

/// Until a key ends it; where a step was under way then, what came of stopping it.
async fn run_view(
    args: &JogArgs,
    view: &mut JogView,
    screen: &JogScreen,
) -> anyhow::Result<Option<String>> {
    let mut keys = keys();
    let mut under_way: Option<RunningStep> = None;
    loop {
        screen.show(&view.lines())?;
        tokio::select! {
            key = keys.recv() => {
                let key = key.context("the keyboard is gone")?;
                let key = view.press(key);
                if key == JogAction::Quit {
                    return stop_running_step(args, under_way.as_ref()).await;
                }
                perform(args, view, key, &mut under_way).await?;
            }
            () = pause(EVERY) => {}
        }
        if under_way.as_ref().is_some_and(JoinHandle::is_finished)
            && let Some(step) = under_way.take()
        {
            view.message = step.await??.text;
        }
        view.stance = look(args).await?;
    }
}

/// Stops a running step, because the jog is no longer supervised.
async fn stop_running_step(
    args: &JogArgs,
    under_way: Option<&RunningStep>,
) -> anyhow::Result<Option<String>> {
    if under_way.is_none_or(JoinHandle::is_finished) {
        return Ok(None);
    }
    told(args, &OperatorVerb::Stop).await.map(Some)
}

/// Tells the node, and returns what it says.
async fn told(args: &JogArgs, verb: &OperatorVerb) -> anyhow::Result<String> {
    Ok(operator_client::ask(&args.at, verb).await?.text)
}

/// Does what a key asks for.
async fn perform(
    args: &JogArgs,
    view: &mut JogView,
    key: JogAction,
    under_way: &mut Option<RunningStep>,
) -> anyhow::Result<()> {
    match key {
        // A key that is held sends many: the next step begins when the one before has ended.
        JogAction::Step(_) if under_way.is_some() => {}
        JogAction::Step(step) => {
            let (at, scene) = (args.at.clone(), args.scene.clone());
            let verb = OperatorVerb::Jog { scene, step };
            *under_way = Some(base::task::spawn(async move {
                operator_client::ask(&at, &verb).await
            }));
        }
        JogAction::Stop => view.message = told(args, &OperatorVerb::Stop).await?,
        JogAction::LetGo => view.message = told(args, &OperatorVerb::TorqueOff).await?,
        JogAction::Record => view.message = record(args, view)?,
        JogAction::Quit | JogAction::Own => {}
    }
    Ok(())
}

/// The pose as a scene's file says poses.
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

/// Keys as they are pressed, from a thread that waits for them.
fn keys() -> mpsc::Receiver<KeyCode> {
    let (tell, keys) = mpsc::channel(8);
    std::thread::spawn(move || {
        while !tell.is_closed() {
            match event::poll(POLL).and_then(|there| there.then(event::read).transpose()) {
                Ok(Some(Event::Key(key))) if key.kind != KeyEventKind::Release => {
                    // Keys that nobody took yet are old: a stop must not wait behind them.
                    let code = key_code(key);
                    if !matches!(code, KeyCode::Char(' ') | KeyCode::Esc) {
                        let _ = tell.try_send(code);
                    } else if tell.blocking_send(code).is_err() {
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

/// The terminal is raw: what would interrupt the program comes as a key, and ends the view.
fn key_code(key: KeyEvent) -> KeyCode {
    let interrupts =
        key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    if interrupts { KeyCode::Esc } else { key.code }
}
