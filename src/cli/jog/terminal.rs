//! The jog's terminal: keys in, verbs out, one at a time.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use anyhow::{Context, bail};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::view::{Key, View};
use super::{JogArgs, look};
use crate::{Exit, operate, show};
use base::clock::Clock;
use node::control_socket::{Told, Verb};

/// Interval at which the arm's state is polled.
const EVERY: Duration = Duration::from_millis(100);

/// Longest wait for the keyboard at a time.
const POLL: Duration = Duration::from_millis(50);

/// A step under way.
type Step = JoinHandle<anyhow::Result<Told>>;

pub(super) async fn run(args: &JogArgs) -> anyhow::Result<Exit> {
    if !std::io::stdout().is_terminal() {
        bail!("this is not a terminal: say one step with --step, such as --step z-1");
    }
    let mut view = View::new(look(args).await?);
    let mut terminal = ratatui::try_init()?;
    let ended = attend(args, &mut view, &mut terminal).await;
    ratatui::restore();
    if let Ok(Some(stopped)) = &ended {
        show::line(stopped);
    }
    if ended.is_err() {
        // Whatever failed here, nobody watches any more.
        let stopped = operate::ask(&args.at, &Verb::Stop).await;
        show::note(
            stopped
                .as_ref()
                .map_or("the node does not answer", |told| &told.text),
        );
    }
    ended?;
    Ok(Exit::Done)
}

/// Until a key ends it; where a step was under way then, what came of stopping it.
async fn attend(
    args: &JogArgs,
    view: &mut View,
    terminal: &mut ratatui::DefaultTerminal,
) -> anyhow::Result<Option<String>> {
    let mut keys = keys();
    let clock = Clock::real();
    let mut alarm = clock.alarm()?;
    let mut under_way: Option<Step> = None;
    loop {
        terminal.draw(|frame| view.draw(frame))?;
        tokio::select! {
            key = keys.recv() => {
                let key = key.context("the keyboard is gone")?;
                let key = view.press(key);
                if key == Key::Quit {
                    return leave(args, under_way.as_ref()).await;
                }
                obey(args, view, key, &mut under_way).await?;
            }
            waited = alarm.until(clock.now().after(EVERY)) => waited?,
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
async fn leave(args: &JogArgs, under_way: Option<&Step>) -> anyhow::Result<Option<String>> {
    if under_way.is_none_or(JoinHandle::is_finished) {
        return Ok(None);
    }
    Ok(Some(operate::ask(&args.at, &Verb::Stop).await?.text))
}

/// Does what a key asks for.
async fn obey(
    args: &JogArgs,
    view: &mut View,
    key: Key,
    under_way: &mut Option<Step>,
) -> anyhow::Result<()> {
    match key {
        // A key that is held sends many: the next step begins when the one before has ended.
        Key::Step(_) if under_way.is_some() => {}
        Key::Step(step) => {
            let (at, scene) = (args.at.clone(), args.scene.clone());
            let verb = Verb::Jog { scene, step };
            *under_way = Some(tokio::spawn(async move { operate::ask(&at, &verb).await }));
        }
        Key::Stop => view.message = operate::ask(&args.at, &Verb::Stop).await?.text,
        Key::LetGo => view.message = operate::ask(&args.at, &Verb::TorqueOff).await?.text,
        Key::Record => view.message = record(args, view)?,
        Key::Quit | Key::Own => {}
    }
    Ok(())
}

/// The pose as a scene's file says poses.
fn record(args: &JogArgs, view: &View) -> anyhow::Result<String> {
    let joints = view.stance.joints.iter();
    let joints: Vec<String> = joints
        .map(|joint| format!("{:.4}", joint.deg.to_radians()))
        .collect();
    let pose = format!("pose_rad = [{}]", joints.join(", "));
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
                    let code = meant(key);
                    if matches!(code, KeyCode::Char(' ') | KeyCode::Esc) {
                        if tell.blocking_send(code).is_err() {
                            break;
                        }
                    } else {
                        let _ = tell.try_send(code);
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
fn meant(key: KeyEvent) -> KeyCode {
    let interrupts =
        key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    if interrupts { KeyCode::Esc } else { key.code }
}
