//! Runs G-code as a machine would, and reports where its tool moves, and how.

use std::f64::consts::TAU;

use base::plane::{Point, distance};

use super::super::DesignError;
use super::gcode_words::{GcodeWord, pen_said, split_words, text_lines};
use super::tool_switch::{ToolLevel, ToolSwitch};
use super::{invalid, tool_pens, undrawable};

/// An arc whose two radii differ by more than this and by more than a hundredth of its radius is a
/// mistake.
const RADIUS_SLACK_MM: f64 = 0.05;

const ACCEPTED: &str = "G0 G1 G2 G3, G4, G17, G20 G21, G28 G53, G43 G54 G64, G90 G91, G92, \
     M3 M4 M5, M280 M300, M0 M1 M6, M2 M30, F, N and T";

/// Motion of the tool to its next place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum GcodeMotion {
    /// No motion; something else changed.
    None,
    /// G0.
    Rapid,
    /// G1.
    Straight,
    /// G2 and G3; positive is counter-clockwise.
    Arc { centre: Point, sweep_rad: f64 },
}

impl GcodeMotion {
    /// Returns its word, for messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::None => "a pause",
            Self::Rapid => "G0",
            Self::Straight => "G1",
            Self::Arc { sweep_rad, .. } if sweep_rad < 0.0 => "G2",
            Self::Arc { .. } => "G3",
        }
    }
}

/// One step of the machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct GcodeMove {
    pub(super) line: usize,
    pub(super) motion: GcodeMotion,
    /// In millimetres.
    pub(super) from: [f64; 3],
    pub(super) to: [f64; 3],
    /// The tool, as set by M3, M4, M5 and S.
    pub(super) tool: ToolLevel,
    /// True once a Z is given; before that, and at the machine's own zero, the tool's height is
    /// unknown.
    pub(super) is_height_known: bool,
    /// The number of the last T; `None` before any.
    pub(super) tool_number: Option<u16>,
    /// The machine stops here for its operator or for another tool: M0, M1, M6.
    pub(super) pauses: bool,
    /// A person puts in another tool here: M6.
    pub(super) changes_tool: bool,
    /// True if a comment beside a new level of the tool says that the pen is down with it, false if it says up.
    pub(super) says_down: Option<bool>,
}

impl GcodeMove {
    /// Returns whether the tool moves along the paper.
    pub(super) fn is_along_paper(&self) -> bool {
        let [[x, y, _], [x_end, y_end, _]] = [self.from, self.to];
        let is_circle = matches!(self.motion, GcodeMotion::Arc { .. });
        self.motion != GcodeMotion::None && (is_circle || distance([x, y], [x_end, y_end]) > 0.0)
    }

    /// Returns whether the tool moves along the paper, and not by G0.
    pub(super) fn is_cut(&self) -> bool {
        self.motion != GcodeMotion::Rapid && self.is_along_paper()
    }
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
    /// True once G20 or G21 names the unit.
    has_unit: bool,
    is_relative: bool,
    is_height_known: bool,
    /// Axes at the machine's own zero, whose position the file does not know.
    is_lost: [bool; 3],
    mode: Option<GcodeMode>,
    tool: ToolSwitch,
    tool_number: Option<u16>,
}

/// Commands in the words of one line.
#[derive(Default)]
struct GcodeLine {
    number: usize,
    axes: [Option<f64>; 3],
    centre: [Option<f64>; 2],
    radius: Option<f64>,
    power: Option<f64>,
    /// True if an S is the time of a G4.
    is_timed: bool,
    motion: Option<GcodeMode>,
    is_dwell: bool,
    is_home: bool,
    /// G53: the line's coordinates are the machine's own.
    in_machine_coordinates: bool,
    sets_position: bool,
    pauses: bool,
    /// M6.
    changes_tool: bool,
    /// M280 and M300: S is a servo's angle, and P its number or a time.
    is_servo: bool,
    /// P, H and K, which have a meaning only with certain other words.
    params: Vec<GcodeWord>,
    is_end: bool,
}

/// Runs all of `text` and calls `on_move` for each step. Returns whether the text names its unit.
pub(super) fn run(
    text: &str,
    mut on_move: impl FnMut(&GcodeMove) -> Result<(), DesignError>,
) -> Result<bool, DesignError> {
    let mut machine = GcodeMachine {
        position_mm: [0.0; 3],
        shift_mm: [0.0; 3],
        mm_per_unit: 1.0,
        has_unit: false,
        is_relative: false,
        is_height_known: false,
        is_lost: [false; 3],
        mode: None,
        tool: ToolSwitch::default(),
        tool_number: None,
    };
    for (index, text) in text_lines(text).enumerate() {
        let number = index + 1;
        let words = split_words(text, number)?;
        if words.is_empty() {
            continue;
        }
        let line = machine.read(&words, number)?;
        let step = machine.step(&line)?;
        let says_down = line.power.and_then(|_| pen_said(text));
        on_move(&GcodeMove { says_down, ..step })?;
        if line.is_end {
            break;
        }
    }
    Ok(machine.has_unit)
}

impl GcodeMachine {
    fn read(&mut self, words: &[GcodeWord], number: usize) -> Result<GcodeLine, DesignError> {
        let mut line = GcodeLine {
            number,
            ..GcodeLine::default()
        };
        // True behind a G4 without its time: an S there is the time, and any other S is the tool's.
        let mut awaits_time = false;
        for word in words {
            match word.letter {
                'G' | 'M' => awaits_time = word.is_dwell(),
                'P' => awaits_time = false,
                _ => {}
            }
            let value = match word.letter {
                'S' if awaits_time => {
                    (awaits_time, line.is_timed) = (false, true);
                    continue;
                }
                'X' => &mut line.axes[0],
                'Y' => &mut line.axes[1],
                'Z' => &mut line.axes[2],
                'I' => &mut line.centre[0],
                'J' => &mut line.centre[1],
                'R' => &mut line.radius,
                'S' => &mut line.power,
                _ => {
                    self.apply_word(words, *word, &mut line)?;
                    continue;
                }
            };
            if value.replace(word.value).is_some() {
                let found = format!("a second {}", word.letter);
                return Err(invalid(number, found, "each letter once per line"));
            }
        }
        match line.params.iter().find(|word| !line.accepts(words, **word)) {
            Some(word) => Err(unknown_word(number, *word)),
            None => Ok(line),
        }
    }

    /// Applies a word that is not a coordinate.
    fn apply_word(
        &mut self,
        words: &[GcodeWord],
        word: GcodeWord,
        line: &mut GcodeLine,
    ) -> Result<(), DesignError> {
        match word.letter {
            'G' => return self.apply_g_word(word, line),
            'M' => return self.apply_m_word(word, line),
            'T' => self.tool_number = Some(tool_number(word, line.number)?),
            'F' | 'N' => {}
            'O' if words.len() == 1 => {}
            'P' | 'H' | 'K' => line.params.push(word),
            _ => return Err(unknown_word(line.number, word)),
        }
        Ok(())
    }

    fn apply_g_word(&mut self, word: GcodeWord, line: &mut GcodeLine) -> Result<(), DesignError> {
        match word.code() {
            Some(0) => set_mode(line, GcodeMode::Rapid, word)?,
            Some(10) => set_mode(line, GcodeMode::Straight, word)?,
            Some(20) => set_mode(line, GcodeMode::Clockwise, word)?,
            Some(30) => set_mode(line, GcodeMode::CounterClockwise, word)?,
            Some(40) => line.is_dwell = true,
            Some(200) => (self.mm_per_unit, self.has_unit) = (25.4, true),
            Some(210) => (self.mm_per_unit, self.has_unit) = (1.0, true),
            Some(280) => line.is_home = true,
            Some(530) => line.in_machine_coordinates = true,
            Some(900) => self.is_relative = false,
            Some(910) => self.is_relative = true,
            Some(920) => line.sets_position = true,
            // Plane XY, no radius compensation, tool length, first coordinate system, path modes,
            // no cycle, return height, feed per minute, relative arc centres: all are the default
            // here.
            Some(170 | 400 | 430 | 490 | 540 | 610 | 640 | 800 | 911 | 940 | 980 | 990) => {}
            _ => return Err(unknown_word(line.number, word)),
        }
        Ok(())
    }

    fn apply_m_word(&mut self, word: GcodeWord, line: &mut GcodeLine) -> Result<(), DesignError> {
        match word.code() {
            Some(30) => self.tool.switch_on(false),
            Some(40) => self.tool.switch_on(true),
            Some(50) => self.tool.switch_off(),
            Some(2800 | 3000) => {
                line.is_servo = true;
                self.tool.switch_on(false);
            }
            Some(0 | 10) => line.pauses = true,
            Some(60) => (line.pauses, line.changes_tool) = (true, true),
            Some(20 | 300) => line.is_end = true,
            // Coolant and air; motors on and off; an extruder's mode; waiting for moves to finish.
            Some(70 | 80 | 90 | 170 | 180 | 820 | 830 | 840 | 4000) => {}
            _ => return Err(unknown_word(line.number, word)),
        }
        Ok(())
    }

    fn step(&mut self, line: &GcodeLine) -> Result<GcodeMove, DesignError> {
        if let Some(power) = line.power {
            self.tool.set_power(power, line.is_servo);
        }
        self.mode = line.motion.or(self.mode);
        let from = self.position_mm;
        let motion = if line.dwells_by_x()? {
            GcodeMotion::None
        } else if line.is_home || line.in_machine_coordinates {
            self.go_to_machine_position(line)?;
            GcodeMotion::Rapid
        } else if line.sets_position {
            self.set_position(line);
            GcodeMotion::None
        } else {
            self.move_tool(line)?
        };
        Ok(GcodeMove {
            line: line.number,
            motion,
            from,
            to: self.position_mm,
            tool: self.tool.level(motion == GcodeMotion::Rapid),
            is_height_known: self.is_height_known,
            tool_number: self.tool_number,
            pauses: line.pauses,
            changes_tool: line.changes_tool,
            says_down: None,
        })
    }

    /// Moves the named axes, or every axis for a bare G28, to the machine's own zero or to a
    /// position relative to it. The file does not know where that is; its work counts as at 0 until
    /// the file says otherwise.
    fn go_to_machine_position(&mut self, line: &GcodeLine) -> Result<(), DesignError> {
        let has_no_axes = !line.has_axes();
        if line.in_machine_coordinates && has_no_axes {
            return Err(invalid(line.number, "G53 without coordinates", "G53 G0 Z0"));
        }
        let positions = self.position_mm.iter_mut().zip(&mut self.shift_mm);
        let axes = positions.zip(&mut self.is_lost).zip(&line.axes).enumerate();
        for (axis, (((position, shift), is_lost), value)) in axes {
            if has_no_axes || value.is_some() {
                (*position, *shift) = (0.0, 0.0);
                // G28 is also where a plotter begins: at its paper's corner.
                *is_lost = line.in_machine_coordinates || axis == 2;
                self.is_height_known &= axis != 2;
            }
        }
        Ok(())
    }

    fn set_position(&mut self, line: &GcodeLine) {
        let positions = self.position_mm.iter().zip(&line.axes);
        for (shift, (position, value)) in self.shift_mm.iter_mut().zip(positions) {
            if let Some(value) = value {
                *shift = position - value * self.mm_per_unit;
            }
        }
        let [_, _, height] = line.axes;
        self.is_height_known |= height.is_some();
    }

    fn move_tool(&mut self, line: &GcodeLine) -> Result<GcodeMotion, DesignError> {
        let has_arc_words = line.has_arc_words();
        if !line.has_axes() && !has_arc_words {
            return Ok(GcodeMotion::None);
        }
        let mode = self.mode.ok_or_else(|| {
            let found = "coordinates before any of G0 to G3";
            invalid(line.number, found, "G0 or G1 in front of them")
        })?;
        let from = self.position_mm;
        self.recover_position(line, mode)?;
        let to = self.target(&line.axes);
        let is_arc = matches!(mode, GcodeMode::Clockwise | GcodeMode::CounterClockwise);
        if has_arc_words && !is_arc {
            let found = "I, J or R in a straight move";
            return Err(invalid(line.number, found, "these only with G2 and G3"));
        }
        self.position_mm = to;
        match mode {
            GcodeMode::Rapid => Ok(GcodeMotion::Rapid),
            GcodeMode::Straight => Ok(GcodeMotion::Straight),
            GcodeMode::Clockwise => self.arc(line, from, to, true),
            GcodeMode::CounterClockwise => self.arc(line, from, to, false),
        }
    }

    /// Marks a lost axis as known if its position is given, and refuses to draw from an unknown
    /// position.
    fn recover_position(&mut self, line: &GcodeLine, mode: GcodeMode) -> Result<(), DesignError> {
        let [lost_x, lost_y, lost_z] = self.is_lost;
        let [x, y, z] = line.axes;
        if mode != GcodeMode::Rapid && (lost_x || lost_y) && (x.is_some() || y.is_some()) {
            return Err(undrawable(
                line.number,
                "a line that begins in the machine's own coordinates (G53)",
                "go to its start with G0 X Y first",
            ));
        }
        if !self.is_relative {
            for (is_lost, value) in self.is_lost.iter_mut().zip(&line.axes) {
                *is_lost &= value.is_none();
            }
        }
        // A relative lift from an unknown height leaves it unknown.
        self.is_height_known |= z.is_some() && !(lost_z && self.is_relative);
        Ok(())
    }

    fn target(&self, axes: &[Option<f64>; 3]) -> [f64; 3] {
        let mut to = self.position_mm;
        for ((to, value), shift) in to.iter_mut().zip(axes).zip(self.shift_mm) {
            let Some(value) = value else { continue };
            let value = value * self.mm_per_unit;
            *to = value + if self.is_relative { *to } else { shift };
        }
        to
    }

    fn arc(
        &self,
        line: &GcodeLine,
        [x, y, _]: [f64; 3],
        [x_end, y_end, _]: [f64; 3],
        is_clockwise: bool,
    ) -> Result<GcodeMotion, DesignError> {
        let (start, end) = ([x, y], [x_end, y_end]);
        let mm = self.mm_per_unit;
        let centre = match (line.radius, line.centre) {
            (Some(radius), [None, None]) => arc_centre(start, end, radius * mm, is_clockwise),
            (None, [i, j]) if i.is_some() || j.is_some() => {
                Some([x + i.unwrap_or(0.0) * mm, y + j.unwrap_or(0.0) * mm])
            }
            _ => None,
        };
        let centre = centre.ok_or_else(|| {
            let found = "an arc without a centre that fits";
            let accepted = "I and J from the start to the centre, or an R of at least half the distance from start to end";
            invalid(line.number, found, accepted)
        })?;
        let sweep_rad = sweep(start, end, centre, is_clockwise, line.number)?;
        Ok(GcodeMotion::Arc { centre, sweep_rad })
    }
}

impl GcodeLine {
    fn has_axes(&self) -> bool {
        self.axes.iter().any(Option::is_some)
    }

    fn has_arc_words(&self) -> bool {
        self.radius.is_some() || self.centre.iter().any(Option::is_some)
    }

    /// Returns whether X is the time of a G4: it is if X stands alone, without P or S.
    fn dwells_by_x(&self) -> Result<bool, DesignError> {
        let has_motion = self.has_axes() || self.has_arc_words();
        let is_timed = self.is_timed || self.params.iter().any(|word| word.letter == 'P');
        match self.axes {
            _ if !self.is_dwell || is_timed || !has_motion => Ok(false),
            [Some(_), None, None] if !self.has_arc_words() && self.motion.is_none() => Ok(true),
            _ => Err(invalid(
                self.number,
                "G4 without a time on a line with coordinates",
                "G4 P1 in front of them, or on a line of its own",
            )),
        }
    }

    /// Returns whether `word`, a P, H or K, belongs to another word of its line.
    fn accepts(&self, words: &[GcodeWord], word: GcodeWord) -> bool {
        let has = |letter: char, codes: &[u16]| {
            let mut same_letter = words.iter().filter(|word| word.letter == letter);
            same_letter.any(|word| word.code().is_some_and(|code| codes.contains(&code)))
        };
        match word.letter {
            'P' => self.is_dwell || has('G', &[640]) || has('M', &[30, 40, 2800, 3000]),
            'H' => has('G', &[430]),
            _ => word.value == 0.0,
        }
    }
}

fn set_mode(line: &mut GcodeLine, mode: GcodeMode, word: GcodeWord) -> Result<(), DesignError> {
    if line.motion.is_some_and(|other| other != mode) {
        let found = format!("G{} on a line with another motion", word.value);
        return Err(invalid(line.number, found, "one of G0 to G3 per line"));
    }
    line.motion = Some(mode);
    Ok(())
}

/// Returns the number of a T word.
fn tool_number(word: GcodeWord, line: usize) -> Result<u16, DesignError> {
    let is_number = word.value.fract() == 0.0 && (0.0..=f64::from(u16::MAX)).contains(&word.value);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a whole number between 0 and u16::MAX"
    )]
    let number = is_number.then_some(word.value as u16);
    number.ok_or_else(|| invalid(line, format!("T{}", word.value), tool_pens::ACCEPTED))
}

fn unknown_word(line: usize, word: GcodeWord) -> DesignError {
    let found = format!("{}{}", word.letter, word.value);
    undrawable(line, found, format!("use {ACCEPTED}"))
}

/// Returns the centre of an arc with this radius; a negative radius means the longer arc.
fn arc_centre(start: Point, end: Point, radius: f64, is_clockwise: bool) -> Option<Point> {
    let [dx, dy] = [end[0] - start[0], end[1] - start[1]];
    let chord = distance(start, end);
    let height_squared = radius * radius - chord * chord / 4.0;
    if chord <= 0.0 || height_squared < -RADIUS_SLACK_MM * radius.abs() {
        return None;
    }
    let height = height_squared.max(0.0).sqrt();
    let offset = if is_clockwise == (radius > 0.0) {
        -height
    } else {
        height
    };
    Some([
        start[0] + dx / 2.0 - dy / chord * offset,
        start[1] + dy / 2.0 + dx / chord * offset,
    ])
}

fn sweep(
    start: Point,
    end: Point,
    centre: Point,
    is_clockwise: bool,
    line: usize,
) -> Result<f64, DesignError> {
    let from = [start[0] - centre[0], start[1] - centre[1]];
    let to = [end[0] - centre[0], end[1] - centre[1]];
    let (radius, radius_end) = (distance(centre, start), distance(centre, end));
    let slack = RADIUS_SLACK_MM.max(radius / 100.0);
    if (radius - radius_end).abs() > slack || !radius.is_finite() {
        let found = format!(
            "an arc that starts {radius:.3} mm from its centre and ends {radius_end:.3} mm from it"
        );
        return Err(invalid(line, found, "the same distance at both ends"));
    }
    let ccw_rad = (to[1].atan2(to[0]) - from[1].atan2(from[0])).rem_euclid(TAU);
    let is_full_circle = distance(start, end) < 1e-6;
    Ok(match is_clockwise {
        false if is_full_circle => TAU,
        true if is_full_circle => -TAU,
        false => ccw_rad,
        true => ccw_rad - TAU,
    })
}
