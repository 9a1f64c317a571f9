//! Finds what lifts a G-code file's pen: whether Z or the tool's switch changes between cuts.

use super::super::DesignError;
use super::machine::{self, GcodeMove};
use super::pen_lift::LiftRule;
use super::tool_switch::{PowerRange, ToolLevel};
use super::undrawable;

/// Heights nearer than this to each other count as one.
const SAME_MM: f64 = 1e-6;

/// The lowest and the highest of some heights.
#[derive(Clone, Copy)]
struct HeightRange {
    low_mm: f64,
    high_mm: f64,
}

impl HeightRange {
    fn including(range: Option<Self>, height_mm: f64) -> Option<Self> {
        let (low_mm, high_mm) = range.map_or((height_mm, height_mm), |r| (r.low_mm, r.high_mm));
        Some(Self {
            low_mm: low_mm.min(height_mm),
            high_mm: high_mm.max(height_mm),
        })
    }
}

/// Sides of 0 on which heights lie.
#[derive(Clone, Copy, Default)]
struct HeightSides {
    above: bool,
    level: bool,
    below: bool,
}

impl HeightSides {
    fn add(&mut self, height_mm: f64) {
        match height_mm {
            h if h > SAME_MM => self.above = true,
            h if h < -SAME_MM => self.below = true,
            _ => self.level = true,
        }
    }
}

/// Evidence of a file about heights and tools.
#[derive(Default)]
pub(super) struct LiftEvidence {
    /// Line of the lowest or highest point, for the refusal.
    line: usize,
    heights: Option<HeightRange>,
    sides: HeightSides,
    /// Sides of the heights at which G1 to G3 move along the paper.
    cut_sides: HeightSides,
    cuts: Option<HeightRange>,
    travels: Option<HeightRange>,
    /// The level of the last cut with the tool on, or at which it is on at all before any cut.
    tool: Option<ToolLevel>,
    /// The levels at which it cuts.
    powers: Option<PowerRange>,
    /// True if the tool was off or travelled by G0 since the last cut: what lifts the pen is then not its level.
    is_lifted: bool,
    /// Two levels of cuts between which nothing lifts, and the line of the second: a shade, or a pen that its level lifts.
    other_tool: Option<(ToolLevel, ToolLevel, usize)>,
    /// Powers at which comments say that the pen is down.
    said_down: Option<PowerRange>,
    /// Powers at which they say that it is up.
    said_up: Option<PowerRange>,
    /// A person changes the tools, at M6.
    pub(super) has_tool_changes: bool,
}

/// Agreement of Z and the tool on the cuts for which the pen is down.
#[derive(Default)]
struct LiftAgreement {
    both: bool,
    by_height: LiftCount,
    by_tool: LiftCount,
}

/// Cuts for which one signal, Z or the tool, has the pen down.
#[derive(Clone, Copy, Default)]
struct LiftCount {
    /// Number of times that the signal lifts the pen between two cuts.
    lifts: usize,
    has_cut: bool,
    is_lifted: bool,
    /// Line of the first cut for which the other signal has the pen up.
    contradicted_line: Option<usize>,
}

impl LiftCount {
    fn record_move(&mut self, movement: &GcodeMove, is_down: bool, other_is_down: bool) {
        if !is_down {
            self.is_lifted = true;
            return;
        }
        if !movement.is_cut() {
            return;
        }
        self.lifts += usize::from(self.has_cut && self.is_lifted);
        self.has_cut = true;
        self.is_lifted = false;
        if !other_is_down && self.contradicted_line.is_none() {
            self.contradicted_line = Some(movement.line);
        }
    }
}

impl LiftEvidence {
    pub(super) fn of(text: &str) -> Result<Self, DesignError> {
        let mut evidence = Self::default();
        machine::run(text, |movement| {
            evidence.record_tool(movement);
            evidence.has_tool_changes |= movement.changes_tool;
            if movement.is_height_known {
                evidence.record_height(movement);
            }
            Ok(())
        })?;
        Ok(evidence)
    }

    /// Returns the rule for a file: by Z if Z moves between cuts, by the tool's switch if only that
    /// changes, by G0 if neither does.
    pub(super) fn judge(&self, text: &str) -> Result<LiftRule, DesignError> {
        match (self.height_rule(), self.tool) {
            (Ok(Some(down_max_mm)), Some(_)) => self.choose(text, down_max_mm),
            (Ok(Some(down_max_mm)), None) => Ok(LiftRule::Height { down_max_mm }),
            (_, Some(down)) => self.tool_rule(down),
            (Ok(None), None) => Ok(LiftRule::Rapid),
            (Err(refusal), None) => Err(refusal),
        }
    }

    fn record_tool(&mut self, movement: &GcodeMove) {
        let is_cut = movement.is_cut();
        let Some(power) = movement.tool.power() else {
            self.is_lifted = true;
            return;
        };
        if let Some(is_down) = movement.says_down {
            let said = match is_down {
                true => &mut self.said_down,
                false => &mut self.said_up,
            };
            *said = Some(said.map_or(PowerRange::of(power), |all| all.including(power)));
        }
        if !is_cut {
            self.is_lifted |= movement.is_along_paper();
            self.tool.get_or_insert(movement.tool);
            return;
        }
        let before = self.tool.replace(movement.tool);
        let before = before.filter(|level| self.powers.is_some() && *level != movement.tool);
        if let Some(before) = before.filter(|_| !self.is_lifted) {
            let other = (before, movement.tool, movement.line);
            self.other_tool.get_or_insert(other);
        }
        let all = self
            .powers
            .map_or(PowerRange::of(power), |all| all.including(power));
        self.powers = Some(all);
        self.is_lifted = false;
    }

    /// Returns a note on layers of different power, which one pen draws alike.
    pub(super) fn note(&self, rule: LiftRule) -> Option<String> {
        let LiftRule::Tool { down } = rule else {
            return None;
        };
        (down.low < down.high).then(|| {
            format!(
                "cuts of different power (S{} to S{}) are drawn alike: a pen has no power setting",
                down.low, down.high
            )
        })
    }

    fn record_height(&mut self, movement: &GcodeMove) {
        let [from_mm, to_mm] = [movement.from[2], movement.to[2]];
        let before = self.heights;
        self.heights = HeightRange::including(before, to_mm);
        if before.is_none_or(|range| to_mm < range.low_mm || to_mm > range.high_mm) {
            self.line = movement.line;
        }
        self.sides.add(to_mm);
        if movement.is_cut() {
            self.cuts = HeightRange::including(self.cuts, to_mm);
            self.cut_sides.add(to_mm);
        } else if movement.is_along_paper() {
            self.travels = HeightRange::including(self.travels, from_mm.max(to_mm));
        }
    }

    /// Returns the height below which Z has the pen down; `None` if Z never moves.
    fn height_rule(&self) -> Result<Option<f64>, DesignError> {
        let is_single = |range: HeightRange| range.high_mm - range.low_mm <= SAME_MM;
        if self.heights.is_none_or(is_single) {
            return Ok(None);
        }
        if let (Some(cuts), Some(travels)) = (self.cuts, self.travels) {
            // All cuts lie below all travels, and no cut is really a travel by G1: all are at one
            // height, or none is above 0.
            let are_real_cuts = is_single(cuts) || cuts.high_mm <= SAME_MM;
            if are_real_cuts && cuts.high_mm + SAME_MM < travels.low_mm {
                return Ok(Some(cuts.high_mm + SAME_MM / 2.0));
            }
        }
        let cut = self.cut_sides;
        match (self.sides.above, self.sides.level, self.sides.below) {
            (true, true, false) => Ok(Some(SAME_MM)),
            (true, false, true) => Ok(Some(0.0)),
            (false, true, true) => Ok(Some(-SAME_MM)),
            // If nothing is cut at 0, or nothing below it, the tool only passes or parks there.
            (true, true, true) if cut.below && !cut.level => Ok(Some(-SAME_MM)),
            (true, true, true) if cut.level && !cut.below => Ok(Some(SAME_MM)),
            (true, true, true) => Err(self.refusal("a mix of heights above, at and below 0")),
            _ => Err(self.refusal("a mix of heights on one side of 0")),
        }
    }

    fn tool_rule(&self, level: ToolLevel) -> Result<LiftRule, DesignError> {
        if let Some(down) = self.down_by_words() {
            return Ok(LiftRule::Tool { down });
        }
        let Some((before, other, line)) = self.other_tool else {
            let power = PowerRange::of(level.power().unwrap_or_default());
            let down = self.powers.unwrap_or(power);
            return Ok(LiftRule::Tool { down });
        };
        let found = format!("{} after {}", level_name(other), level_name(before));
        let fix = "lift with M5, S0 or another S in G0, and draw with a single S in G1: a pen draws no shades";
        Err(undrawable(line, found, fix))
    }

    /// Returns the powers with which comments say that the pen is down, where others lift it while G1 travels.
    fn down_by_words(&self) -> Option<PowerRange> {
        let is_apart = |down: &PowerRange| self.said_up.is_some_and(|up| !up.overlaps(*down));
        self.other_tool.and(self.said_down).filter(is_apart)
    }

    /// Chooses between Z and the tool if both change. A pen marks where both have it down, so the
    /// one that has it down for fewer cuts decides, if it also lifts at least as often; if both
    /// agree, the one that lifts more often decides.
    fn choose(&self, text: &str, down_max_mm: f64) -> Result<LiftRule, DesignError> {
        let mut agreement = LiftAgreement::default();
        machine::run(text, |movement| {
            agreement.record_move(movement, down_max_mm);
            Ok(())
        })?;
        let (both, by_height, by_tool) = (agreement.both, agreement.by_height, agreement.by_tool);
        let is_by_height = match (by_height.contradicted_line, by_tool.contradicted_line) {
            (None, None) => by_height.lifts >= by_tool.lifts,
            (None, Some(_)) if !both => false,
            (Some(_), None) if !both => true,
            (None, Some(_)) if by_height.lifts >= by_tool.lifts => true,
            (Some(_), None) if by_tool.lifts >= by_height.lifts => false,
            (Some(line), _) => return Err(disagreement(line, "Z")),
            (None, Some(line)) => return Err(disagreement(line, "the tool")),
        };
        if is_by_height {
            return Ok(LiftRule::Height { down_max_mm });
        }
        self.tool_rule(self.tool.unwrap_or(ToolLevel::On))
    }

    fn refusal(&self, found: &str) -> DesignError {
        let (low, high) = self.heights.map_or((0.0, 0.0), |h| (h.low_mm, h.high_mm));
        let found = format!("{found} (Z from {low} to {high} mm)");
        let fix = "lift the pen to one Z above 0, and draw at one Z at or below 0";
        undrawable(self.line, found, fix)
    }
}

impl LiftAgreement {
    fn record_move(&mut self, movement: &GcodeMove, down_max_mm: f64) {
        if !movement.is_along_paper() {
            return;
        }
        let height_mm = movement.from[2].max(movement.to[2]);
        let by_height = movement.is_height_known && height_mm <= down_max_mm;
        let by_tool = movement.tool != ToolLevel::Off;
        self.both |= by_height && by_tool && movement.is_cut();
        self.by_height.record_move(movement, by_height, by_tool);
        self.by_tool.record_move(movement, by_tool, by_height);
    }
}

fn disagreement(line: usize, has_pen_down: &str) -> DesignError {
    undrawable(
        line,
        format!(
            "a cut where Z and the tool (M3, M5, S) disagree: according to {has_pen_down} alone, the pen is down. This"
        ),
        "delete every Z word of the file, or every M3, M4, M5 and S; the words that remain will lift the pen",
    )
}

fn level_name(level: ToolLevel) -> String {
    match level {
        ToolLevel::Off => "M5".to_owned(),
        ToolLevel::On => "M3".to_owned(),
        ToolLevel::Power(power) => format!("S{power}"),
    }
}
