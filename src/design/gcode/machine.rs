//! Runs G-code as a machine would: where its tool goes, and how.

use std::f64::consts::TAU;

use super::super::DesignError;
use super::gcode_words::{GcodeWord, split_words};
use super::line_name;

type Point = [f64; 2];

/// An arc whose end is nearer to its centre than its start is, by more than this and by more
/// than a hundredth of its radius, is a mistake.
const RADIUS_SLACK_MM: f64 = 0.05;

const ACCEPTED: &str =
    "G0 G1 G2 G3, G4, G17, G20 G21, G28, G90 G91, G92, M3 M4 M5, M2 M30, F and N";

/// Motion of the tool to its next place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum GcodeMotion {
    /// It stands; something else changed.
    None,
    /// G0.
    Rapid,
    /// G1.
    Straight,
    /// G2 and G3; positive is counter-clockwise.
    Arc { centre: Point, sweep_rad: f64 },
}

/// One step of the machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct GcodeMove {
    pub(super) line: usize,
    pub(super) motion: GcodeMotion,
    /// In millimetres.
    pub(super) from: [f64; 3],
    pub(super) to: [f64; 3],
    /// M3 or M4 was said, and not M5 or S0 since.
    pub(super) tool_is_on: bool,
    /// True if a Z was given; before that the tool's height is unknown.
    pub(super) height_is_known: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum GcodeMode {
    Rapid,
    Straight,
    Clockwise,
    CounterClockwise,
}

struct GcodeMachine {
    position_mm: [f64; 3],
    /// Offset of G92's coordinates from the position.
    shift_mm: [f64; 3],
    mm_per_unit: f64,
    is_relative: bool,
    height_is_known: bool,
    mode: Option<GcodeMode>,
    spindle: bool,
    /// The last S word, and the one other than 0 that this file uses.
    power: Option<f64>,
    power_on: Option<f64>,
}

/// Commands in the words of one line.
#[derive(Default)]
struct GcodeLine {
    number: usize,
    axes: [Option<f64>; 3],
    centre: [Option<f64>; 2],
    radius: Option<f64>,
    power: Option<f64>,
    motion: Option<GcodeMode>,
    waits: bool,
    homes: bool,
    renames: bool,
    ends: bool,
}

/// Runs the whole of `text` and shows each step to `see`.
pub(super) fn run(
    text: &str,
    mut see: impl FnMut(&GcodeMove) -> Result<(), DesignError>,
) -> Result<(), DesignError> {
    let mut machine = GcodeMachine {
        position_mm: [0.0; 3],
        shift_mm: [0.0; 3],
        mm_per_unit: 1.0,
        is_relative: false,
        height_is_known: false,
        mode: None,
        spindle: false,
        power: None,
        power_on: None,
    };
    for (index, text) in text.lines().enumerate() {
        let number = index + 1;
        let words = split_words(text, number)?;
        if words.is_empty() {
            continue;
        }
        let line = machine.read(&words, number)?;
        see(&machine.step(&line)?)?;
        if line.ends {
            break;
        }
    }
    Ok(())
}

impl GcodeMachine {
    fn read(&mut self, words: &[GcodeWord], number: usize) -> Result<GcodeLine, DesignError> {
        let mut line = GcodeLine {
            number,
            ..GcodeLine::default()
        };
        for word in words {
            let value = Some(word.value);
            match word.letter {
                'G' => self.general(*word, &mut line)?,
                'M' => self.miscellaneous(*word, &mut line)?,
                'X' => set(&mut line.axes[0], value, *word, number)?,
                'Y' => set(&mut line.axes[1], value, *word, number)?,
                'Z' => set(&mut line.axes[2], value, *word, number)?,
                'I' => set(&mut line.centre[0], value, *word, number)?,
                'J' => set(&mut line.centre[1], value, *word, number)?,
                'R' => set(&mut line.radius, value, *word, number)?,
                'S' => set(&mut line.power, value, *word, number)?,
                'F' | 'N' => {}
                'P' if line.waits => {}
                _ => return Err(refused(number, *word)),
            }
        }
        Ok(line)
    }

    fn general(&mut self, word: GcodeWord, line: &mut GcodeLine) -> Result<(), DesignError> {
        match word.code() {
            Some(0) => set_mode(line, GcodeMode::Rapid, word),
            Some(10) => set_mode(line, GcodeMode::Straight, word),
            Some(20) => set_mode(line, GcodeMode::Clockwise, word),
            Some(30) => set_mode(line, GcodeMode::CounterClockwise, word),
            Some(40) => {
                line.waits = true;
                Ok(())
            }
            Some(200) => {
                self.mm_per_unit = 25.4;
                Ok(())
            }
            Some(210) => {
                self.mm_per_unit = 1.0;
                Ok(())
            }
            Some(280) => {
                line.homes = true;
                Ok(())
            }
            Some(900) => {
                self.is_relative = false;
                Ok(())
            }
            Some(910) => {
                self.is_relative = true;
                Ok(())
            }
            Some(920) => {
                line.renames = true;
                Ok(())
            }
            // Plane XY, no compensation, first coordinate system, path modes, feed per minute,
            // arc centres relative: what is done here anyway.
            Some(170 | 400 | 490 | 540 | 610 | 640 | 800 | 911 | 940) => Ok(()),
            _ => Err(refused(line.number, word)),
        }
    }

    fn miscellaneous(&mut self, word: GcodeWord, line: &mut GcodeLine) -> Result<(), DesignError> {
        match word.code() {
            Some(30 | 40) => self.spindle = true,
            Some(50) => self.spindle = false,
            Some(20 | 300) => line.ends = true,
            // Motors on and off.
            Some(170 | 180 | 840) => {}
            _ => return Err(refused(line.number, word)),
        }
        Ok(())
    }

    fn step(&mut self, line: &GcodeLine) -> Result<GcodeMove, DesignError> {
        if let Some(power) = line.power.filter(|_| !line.waits) {
            self.set_power(power, line.number)?;
        }
        let from = self.position_mm;
        let [_, _, height] = line.axes;
        self.height_is_known |= height.is_some();
        let motion = if line.waits {
            GcodeMotion::None
        } else if line.homes {
            self.position_mm = [0.0; 3];
            self.shift_mm = [0.0; 3];
            GcodeMotion::Rapid
        } else if line.renames {
            self.rename(line);
            GcodeMotion::None
        } else {
            self.go(line)?
        };
        Ok(GcodeMove {
            line: line.number,
            motion,
            from,
            to: self.position_mm,
            tool_is_on: self.spindle && self.power.is_none_or(|power| power > 0.0),
            height_is_known: self.height_is_known,
        })
    }

    fn set_power(&mut self, power: f64, line: usize) -> Result<(), DesignError> {
        let differs = |before: f64| (before - power).abs() > 1e-9;
        if power > 0.0 && self.power_on.is_some_and(differs) {
            return Err(DesignError::unsupported(
                line_name(line),
                format!("S{power} after S{}", self.power_on.unwrap_or(0.0)),
                "use S0 or M5 for up and one other S for down",
            ));
        }
        if power > 0.0 {
            self.power_on = Some(power);
        }
        self.power = Some(power);
        Ok(())
    }

    fn rename(&mut self, line: &GcodeLine) {
        let now = self.position_mm.iter().zip(&line.axes);
        for (shift, (position, value)) in self.shift_mm.iter_mut().zip(now) {
            if let Some(value) = value {
                *shift = position - value * self.mm_per_unit;
            }
        }
    }

    fn go(&mut self, line: &GcodeLine) -> Result<GcodeMotion, DesignError> {
        self.mode = line.motion.or(self.mode);
        let has_arc_words = line.radius.is_some() || line.centre.iter().any(Option::is_some);
        if line.axes.iter().all(Option::is_none) && !has_arc_words {
            return Ok(GcodeMotion::None);
        }
        let mode = self.mode.ok_or_else(|| {
            let found = "coordinates before any of G0 to G3";
            DesignError::syntax(line_name(line.number), found, "G0 or G1 in front of them")
        })?;
        let from = self.position_mm;
        let to = self.target(&line.axes);
        let is_arc = matches!(mode, GcodeMode::Clockwise | GcodeMode::CounterClockwise);
        if has_arc_words && !is_arc {
            let found = "I, J or R with a straight move";
            return Err(DesignError::syntax(
                line_name(line.number),
                found,
                "them with G2 and G3",
            ));
        }
        self.position_mm = to;
        match mode {
            GcodeMode::Rapid => Ok(GcodeMotion::Rapid),
            GcodeMode::Straight => Ok(GcodeMotion::Straight),
            GcodeMode::Clockwise => self.arc(line, from, to, true),
            GcodeMode::CounterClockwise => self.arc(line, from, to, false),
        }
    }

    fn target(&self, axes: &[Option<f64>; 3]) -> [f64; 3] {
        let mut to = self.position_mm;
        for ((to, value), shift) in to.iter_mut().zip(axes).zip(self.shift_mm) {
            let Some(value) = value else { continue };
            let value = value * self.mm_per_unit;
            *to = if self.is_relative {
                *to + value
            } else {
                value + shift
            };
        }
        to
    }

    fn arc(
        &self,
        line: &GcodeLine,
        [x, y, _]: [f64; 3],
        [x_end, y_end, _]: [f64; 3],
        clockwise: bool,
    ) -> Result<GcodeMotion, DesignError> {
        let (start, end) = ([x, y], [x_end, y_end]);
        let mm = self.mm_per_unit;
        let centre = match (line.radius, line.centre) {
            (Some(radius), [None, None]) => centre_of(start, end, radius * mm, clockwise),
            (None, [i, j]) if i.is_some() || j.is_some() => {
                Some([x + i.unwrap_or(0.0) * mm, y + j.unwrap_or(0.0) * mm])
            }
            _ => None,
        };
        let centre = centre.ok_or_else(|| {
            let found = "an arc without a centre that fits";
            let accepted = "I and J from the start to the centre, or R of at least half the way";
            DesignError::syntax(line_name(line.number), found, accepted)
        })?;
        let sweep_rad = sweep(start, end, centre, clockwise, line.number)?;
        Ok(GcodeMotion::Arc { centre, sweep_rad })
    }
}

fn set(
    to: &mut Option<f64>,
    value: Option<f64>,
    word: GcodeWord,
    line: usize,
) -> Result<(), DesignError> {
    if to.is_some() {
        let found = format!("a second {}", word.letter);
        return Err(DesignError::syntax(
            line_name(line),
            found,
            "each letter once a line",
        ));
    }
    *to = value;
    Ok(())
}

fn set_mode(line: &mut GcodeLine, mode: GcodeMode, word: GcodeWord) -> Result<(), DesignError> {
    if line.motion.is_some_and(|before| before != mode) {
        let found = format!("G{} beside another motion", word.value);
        return Err(DesignError::syntax(
            line_name(line.number),
            found,
            "one of G0 to G3 a line",
        ));
    }
    line.motion = Some(mode);
    Ok(())
}

fn refused(line: usize, word: GcodeWord) -> DesignError {
    DesignError::unsupported(
        line_name(line),
        format!("{}{}", word.letter, word.value),
        format!("known are {ACCEPTED}"),
    )
}

/// The centre of an arc with this radius; a negative one asks for the longer way round.
fn centre_of(start: Point, end: Point, radius: f64, clockwise: bool) -> Option<Point> {
    let [dx, dy] = [end[0] - start[0], end[1] - start[1]];
    let way = dx.hypot(dy);
    let height2 = radius * radius - way * way / 4.0;
    if way <= 0.0 || height2 < -RADIUS_SLACK_MM * radius.abs() {
        return None;
    }
    let height = height2.max(0.0).sqrt();
    let left = if clockwise == (radius > 0.0) {
        -height
    } else {
        height
    };
    Some([
        start[0] + dx / 2.0 - dy / way * left,
        start[1] + dy / 2.0 + dx / way * left,
    ])
}

fn sweep(
    start: Point,
    end: Point,
    centre: Point,
    clockwise: bool,
    line: usize,
) -> Result<f64, DesignError> {
    let from = [start[0] - centre[0], start[1] - centre[1]];
    let to = [end[0] - centre[0], end[1] - centre[1]];
    let (radius, radius_end) = (from[0].hypot(from[1]), to[0].hypot(to[1]));
    let slack = RADIUS_SLACK_MM.max(radius / 100.0);
    if (radius - radius_end).abs() > slack || !radius.is_finite() {
        return Err(DesignError::syntax(
            line_name(line),
            format!(
                "an arc that starts {radius:.3} mm from its centre and ends {radius_end:.3} mm from it"
            ),
            "the same distance at both ends",
        ));
    }
    let turn = (to[1].atan2(to[0]) - from[1].atan2(from[0])).rem_euclid(TAU);
    let apart = (end[0] - start[0]).hypot(end[1] - start[1]);
    let turn = match clockwise {
        false if apart < 1e-6 => TAU,
        true if apart < 1e-6 => -TAU,
        false => turn,
        true => turn - TAU,
    };
    Ok(turn)
}
