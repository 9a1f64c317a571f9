//! Standard input of `sim --pty`: pens, faults, and a hand that moves the limp arm, by lines and by single keys.

use std::io::{IsTerminal, Read as _, Write as _};
use std::sync::Arc;

use super::stop_keys::RawTerminal;
use super::terminal_output;
use anyhow::{Context as _, bail};
use scene::Scene;
use sim::{ArmSimulator, HeldPens, SimulatedFault};

/// Angle of one key.
const KEY_STEP_DEG: f64 = 2.0;

/// Longest line.
const LINE_BYTES_MAX: usize = 200;

/// First byte of an arrow key, and the number of its bytes.
const ESCAPE: u8 = 0x1b;
const ARROW_BYTES: usize = 3;

/// Largest difference between the lean that a person asks for and the one that the joints allow.
const LEAN_TOLERANCE_DEG: f64 = 10.0;

/// What may be written.
const WORDS: &str = "`pen N`, `fault WORDS` (as for --fault), `hand X Y Z [LEAN TURN]` (the tip's place in mm on the sheet and above it, the pen's lean and the direction of the lean, both in degrees) or `joint N DEGREES`. Keys: 1 to 9 choose a joint; +, - or the arrows turn it";

/// A person beside the simulated arm.
pub(super) struct PracticeInput {
    simulator: ArmSimulator,
    /// The scene as it really is.
    scene: Arc<Scene>,
    /// The joint that keys turn.
    joint: usize,
    line: Vec<u8>,
    arrow: Vec<u8>,
    /// True if what is typed is shown: a terminal whose keys are read one by one does not.
    echoes: bool,
}

impl PracticeInput {
    /// Reads standard input on a thread of its own, until it ends. Dropping the result restores the terminal.
    pub(super) fn listen(
        simulator: &ArmSimulator,
        scene: &Arc<Scene>,
    ) -> std::io::Result<Option<RawTerminal>> {
        let is_terminal = std::io::stdin().is_terminal();
        let raw = match is_terminal {
            // A job in the background that reads its terminal is suspended.
            true if !RawTerminal::is_in_foreground() => return Ok(None),
            true => RawTerminal::open(),
            false => None,
        };
        let mut input = Self {
            simulator: simulator.clone(),
            scene: Arc::clone(scene),
            joint: 0,
            line: Vec::new(),
            arrow: Vec::new(),
            echoes: raw.is_some(),
        };
        if raw.is_some() {
            terminal_output::note(WORDS);
        }
        let read = move || {
            let bytes = std::io::stdin().lock().bytes();
            bytes
                .map_while(Result::ok)
                .for_each(|byte| input.take(byte));
            input.end_line();
        };
        // The thread ends with the process.
        let thread = std::thread::Builder::new().name("input".to_owned());
        thread.spawn(read)?;
        Ok(raw)
    }

    /// Takes one byte: a key where no line was begun, otherwise a part of the line.
    fn take(&mut self, byte: u8) {
        if byte == ESCAPE || !self.arrow.is_empty() {
            self.arrow.push(byte);
            if self.arrow.len() == ARROW_BYTES {
                match std::mem::take(&mut self.arrow).last() {
                    Some(b'A' | b'C') => self.turn_by_key(KEY_STEP_DEG),
                    Some(b'B' | b'D') => self.turn_by_key(-KEY_STEP_DEG),
                    _ => {}
                }
            }
            return;
        }
        match byte {
            b'1'..=b'9' if self.line.is_empty() => self.choose(usize::from(byte - b'1')),
            b'+' if self.line.is_empty() => self.turn_by_key(KEY_STEP_DEG),
            b'-' if self.line.is_empty() => self.turn_by_key(-KEY_STEP_DEG),
            b'\n' | b'\r' => self.end_line(),
            0x08 | 0x7f if self.line.pop().is_some() => self.echo(b"\x08 \x08"),
            0x08 | 0x7f => {}
            _ if self.line.len() < LINE_BYTES_MAX => {
                self.line.push(byte);
                self.echo(&[byte]);
            }
            _ => {}
        }
    }

    fn echo(&self, bytes: &[u8]) {
        if self.echoes {
            let mut terminal = std::io::stderr();
            // Nothing is lost where nobody sees it.
            let _ = terminal.write_all(bytes).and_then(|()| terminal.flush());
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        if line.trim().is_empty() {
            return;
        }
        self.echo(b"\n");
        let said = self.obey(line.trim());
        terminal_output::line(&said.unwrap_or_else(|error| format!("{error:#}")));
    }

    /// Does what a line asks for, and returns what came of it.
    fn obey(&mut self, line: &str) -> anyhow::Result<String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "pen" => self.pen(line, rest),
            "fault" => {
                let fault: SimulatedFault = rest.parse()?;
                self.simulator.break_it(fault);
                Ok(format!("fault: {}", rest.trim()))
            }
            "hand" => self.hand(&numbers(rest)?),
            "joint" => match numbers(rest)?.as_slice() {
                [number, degrees] => {
                    self.choose_number(*number)?;
                    self.turn_to(degrees.to_radians())
                }
                _ => bail!("type `joint 2 -15`: the joint's number and its angle in degrees"),
            },
            _ => bail!("{line:?} is unknown. Next: type {WORDS}"),
        }
    }

    fn pen(&self, line: &str, rest: &str) -> anyhow::Result<String> {
        let pen = rest.trim().parse::<usize>().ok();
        let pen = pen.and_then(|number| number.checked_sub(1));
        let is_by_hand = self.scene.holder.is_by_hand();
        let Some(pen) = pen.filter(|pen| self.scene.pen(*pen).is_some() && is_by_hand) else {
            bail!(
                "{line:?} is not a pen. Next: type `pen 1` to `pen {}`",
                self.scene.pens.len()
            );
        };
        self.simulator.hold_pens(HeldPens::One(pen));
        Ok(format!("{} is in the holder", self.scene.pen_words(pen)))
    }

    /// Brings the tip of the first pen to a place over the sheet, upright or leaning.
    fn hand(&self, place: &[f64]) -> anyhow::Result<String> {
        let (x_mm, y_mm, height_mm, lean_deg) = match *place {
            [x_mm, y_mm, height_mm] => (x_mm, y_mm, height_mm, [0.0; 2]),
            [x_mm, y_mm, height_mm, lean, turn] => (x_mm, y_mm, height_mm, [lean, turn]),
            _ => bail!(
                "type `hand 50 40 0`: x and y on the sheet and the height above it, in mm. `hand 50 40 0 20 90` leans the pen by 20 degrees in the direction of 90 degrees"
            ),
        };
        let now = self.simulator.true_joints();
        let lean_rad = lean_deg.map(f64::to_radians);
        let joints = plan::joints_over(&self.scene, [x_mm, y_mm], height_mm, lean_rad, &now);
        let (joints, off_rad) =
            joints.context("the tip cannot reach that place within the joints' limits")?;
        let off_deg = off_rad.to_degrees();
        if place.len() == 5 && off_deg > LEAN_TOLERANCE_DEG {
            bail!(
                "the pen cannot lean so there: it would be {off_deg:.0}° off (at most {LEAN_TOLERANCE_DEG}°). Next: try another direction, such as the opposite one"
            );
        }
        for (joint, to_rad) in joints.iter().enumerate() {
            self.turn(joint, *to_rad)?;
        }
        Ok(format!(
            "the tip is at {x_mm:.1}, {y_mm:.1} mm, {height_mm:.1} mm over the sheet"
        ))
    }

    fn choose_number(&mut self, number: f64) -> anyhow::Result<()> {
        let joint = (0..self.scene.arm.dof()).zip(1_u8..);
        let mut found = joint.filter(|(_, count)| (f64::from(*count) - number).abs() < 0.5);
        let (joint, _) = found.next().with_context(|| {
            format!(
                "there is no joint {number}: type 1 to {}",
                self.scene.arm.dof()
            )
        })?;
        self.joint = joint;
        Ok(())
    }

    fn choose(&mut self, joint: usize) {
        if joint < self.scene.arm.dof() {
            self.joint = joint;
            terminal_output::line(&format!("{} is selected", self.scene.arm.joint_name(joint)));
        }
    }

    fn turn_by_key(&mut self, by_deg: f64) {
        let joints = self.simulator.true_joints();
        let Some(now_rad) = joints.get(self.joint) else {
            return;
        };
        let said = self.turn_to(now_rad + by_deg.to_radians());
        terminal_output::line(&said.unwrap_or_else(|error| format!("{error:#}")));
    }

    /// Turns the chosen joint, as far as it goes.
    fn turn_to(&self, to_rad: f64) -> anyhow::Result<String> {
        let file = self.scene.arm.file.joints.get(self.joint);
        let file = file.context("the arm has no such joint")?;
        let to_rad = to_rad.max(file.lower_rad.get()).min(file.upper_rad.get());
        self.turn(self.joint, to_rad)?;
        Ok(format!("{} is at {:.1}°", file.name, to_rad.to_degrees()))
    }

    fn turn(&self, joint: usize, to_rad: f64) -> anyhow::Result<()> {
        if !self.simulator.turn_by_hand(joint, to_rad) {
            bail!(
                "{} holds: its torque is on. Next: `steadyhand torque-off`",
                self.scene.arm.joint_name(joint)
            );
        }
        Ok(())
    }
}

/// Reads numbers that are separated by spaces.
fn numbers(text: &str) -> anyhow::Result<Vec<f64>> {
    let number = |word: &str| {
        let number = word.parse::<f64>().ok().filter(|number| number.is_finite());
        number.with_context(|| format!("{word:?} is not a number"))
    };
    text.split_whitespace().map(number).collect()
}
