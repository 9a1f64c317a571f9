//! Runs HP-GL as a plotter would: where its pen goes, which one, and what it leaves.

use std::collections::BTreeMap;

use base::plane::Point;

use super::super::collect_strokes::StrokeCollector;
use super::super::design_error::quoted;
use super::super::fill_area::{FilledArea, InsideRule, WorkBudget, clipped};
use super::super::{Design, DesignCaps, DesignError, DesignStroke, dash};
use super::commands::HpglCommand;
use super::coordinates::PlotterCoordinates;
use super::label::LabelStyle;
use super::line_type::LineType;
use super::losses::HpglLosses;
use super::polygon::PolygonBuffer;
use super::shapes::rectangle;
use super::{EMPTY, byte_name};

/// Half-lengths of ticks where TL says none: upwards and downwards, or to the right and to the left.
const TICK_PERCENT: Point = [0.5, 0.5];

pub(super) struct HpglPlotter<'c> {
    pub(super) all: StrokeCollector<'c>,
    pub(super) place: PlotterCoordinates,
    /// Counted from 1; 0 is none, after SP0, and draws nothing. Before any SP it is whichever is there.
    pen: Option<u16>,
    /// In plotter units.
    pub(super) at: Point,
    pub(super) is_down: bool,
    is_relative: bool,
    /// Under the pen since it came down, in mm.
    pub(super) path: Vec<Point>,
    path_from: usize,
    pub(super) line_type: LineType,
    pub(super) chord_is_distance: bool,
    window: Option<FilledArea>,
    /// The last of LT, of SI and SR, and of DI and DR, which may be relative to the scaling points, by first letter.
    of_frame: BTreeMap<u8, HpglCommand>,
    work: WorkBudget,
    pub(super) polygon: PolygonBuffer,
    pub(super) label: LabelStyle,
    /// In hundredths of the distance between the scaling points.
    pub(super) tick_percent: Point,
    /// A new page came; what follows would lie on the first.
    page_ended: Option<usize>,
    pub(super) losses: HpglLosses,
}

impl<'c> HpglPlotter<'c> {
    pub(super) fn new(caps: &'c DesignCaps) -> Self {
        Self {
            all: StrokeCollector::new(caps),
            place: PlotterCoordinates::default(),
            pen: None,
            at: [0.0, 0.0],
            is_down: false,
            is_relative: false,
            path: Vec::new(),
            path_from: 0,
            line_type: LineType::Solid,
            chord_is_distance: false,
            window: None,
            of_frame: BTreeMap::new(),
            work: WorkBudget::default(),
            polygon: PolygonBuffer::default(),
            label: LabelStyle::default(),
            tick_percent: TICK_PERCENT,
            page_ended: None,
            losses: HpglLosses::default(),
        }
    }

    pub(super) fn take(&mut self, command: &HpglCommand) -> Result<(), DesignError> {
        match &command.name {
            b"PU" => self.pen_move(command, Some(false), None),
            b"PD" => self.pen_move(command, Some(true), None),
            b"PA" => self.pen_move(command, None, Some(false)),
            b"PR" => self.pen_move(command, None, Some(true)),
            b"AA" | b"AR" | b"AT" | b"RT" => self.arc(command),
            b"BZ" | b"BR" => self.bezier(command),
            b"CI" | b"EA" | b"ER" | b"EW" | b"RA" | b"RR" | b"WG" => self.shape(command),
            b"PM" | b"EP" | b"FP" => self.polygon(command),
            b"PE" => self.encoded(command),
            b"LB" => self.write(command),
            b"XT" | b"YT" => self.tick(command),
            _ => self.set_up(command),
        }
    }

    /// Commands that change what others draw.
    fn set_up(&mut self, command: &HpglCommand) -> Result<(), DesignError> {
        self.lift()?;
        if let b"LT" | b"SI" | b"SR" | b"DI" | b"DR" = &command.name {
            let [kind, _] = command.name;
            self.of_frame.insert(kind, command.clone());
        }
        match &command.name {
            b"IN" | b"DF" => self.initialize(command.name == *b"IN"),
            b"SP" => self.select_pen(command.number(0, 0.0), command)?,
            b"IP" => {
                self.place.set_scaling_points(command)?;
                for command in std::mem::take(&mut self.of_frame).into_values() {
                    self.set_up(&command)?;
                }
            }
            b"SC" => self.place.set_user_units(command)?,
            b"RO" => self.place.rotate(command)?,
            b"IW" => self.set_window(command)?,
            b"LT" => {
                let line_type = LineType::of(command, self.place.frame_mm());
                self.line_type = line_type.ok_or_else(|| unknown(command))?;
            }
            b"CT" => self.chord_is_distance = command.choice(0, 0) == 1,
            b"TL" => {
                self.tick_percent = if command.numbers.is_empty() {
                    TICK_PERCENT
                } else {
                    [command.number(0, 0.0), command.number(1, 0.0)]
                };
            }
            b"CP" => {
                let cells = match command.numbers.is_empty() {
                    true => [0.0, -1.0],
                    false => [command.number(0, 0.0), command.number(1, 0.0)],
                };
                self.at = self.label.moved(self.at, cells);
            }
            b"PG" | b"AF" | b"AH" => self.page_ended = Some(command.at),
            b"SM" if command.raw.trim_ascii().is_empty() => {}
            b"DV" if command.choice(0, 0) == 0 => {}
            _ if self.label.set(command, self.place.frame_mm()) => {}
            _ if self.losses.take(command) => {}
            _ => return Err(unknown(command)),
        }
        Ok(())
    }

    fn initialize(&mut self, all: bool) {
        self.is_relative = false;
        self.line_type = LineType::Solid;
        self.label = LabelStyle::default();
        self.window = None;
        self.of_frame.clear();
        self.polygon = PolygonBuffer::default();
        // DF leaves the paper as it lies.
        let quarter_turns = self.place.quarter_turns;
        self.place = PlotterCoordinates::default();
        if all {
            (self.is_down, self.at) = (false, [0.0, 0.0]);
        } else {
            self.place.quarter_turns = quarter_turns;
        }
    }

    pub(super) fn select_pen(
        &mut self,
        number: f64,
        command: &HpglCommand,
    ) -> Result<(), DesignError> {
        let is_pen = (0.0..=f64::from(u16::MAX)).contains(&number);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and 65535"
        )]
        let pen = is_pen.then_some(number.round() as u16);
        self.pen = Some(pen.ok_or_else(|| unknown(command))?);
        Ok(())
    }

    fn set_window(&mut self, command: &HpglCommand) -> Result<(), DesignError> {
        if command.numbers.is_empty() {
            self.window = None;
            return Ok(());
        }
        command.needs(4)?;
        if let [low, high, ..] = *command.points()? {
            let outline = rectangle(self.place.to_plotter(low), self.place.to_plotter(high));
            let outline = outline.into_iter().map(|point| self.place.to_mm(point));
            self.window = Some(FilledArea::new(&[outline.collect()], InsideRule::NonZero));
        }
        Ok(())
    }

    fn pen_move(
        &mut self,
        command: &HpglCommand,
        is_down: Option<bool>,
        is_relative: Option<bool>,
    ) -> Result<(), DesignError> {
        self.is_relative = is_relative.unwrap_or(self.is_relative);
        match is_down {
            Some(true) if !self.is_down => {
                self.is_down = true;
                self.begin(command.at);
            }
            Some(false) => {
                self.lift()?;
                self.is_down = false;
            }
            _ => {}
        }
        for point in command.points()? {
            let to = self.named(*point, self.is_relative);
            self.go(to, command.at)?;
        }
        Ok(())
    }

    /// A place that a command names, in plotter units.
    pub(super) fn named(&self, [x, y]: Point, is_relative: bool) -> Point {
        if !is_relative {
            return self.place.to_plotter([x, y]);
        }
        let [at_x, at_y] = self.place.to_user(self.at);
        self.place.to_plotter([at_x + x, at_y + y])
    }

    fn begin(&mut self, byte: usize) {
        if self.path.is_empty() && !self.polygon.is_open {
            self.path.push(self.place.to_mm(self.at));
            self.path_from = byte;
        }
    }

    pub(super) fn go(&mut self, to: Point, byte: usize) -> Result<(), DesignError> {
        let to_mm = self.place.to_mm(to);
        if self.polygon.is_open {
            self.polygon.add(to_mm, self.is_down);
        } else if self.is_down {
            self.begin(byte);
            self.path.push(to_mm);
        }
        self.at = to;
        self.refuse_full(byte)
    }

    fn refuse_full(&self, byte: usize) -> Result<(), DesignError> {
        match self.path.len().max(self.polygon.vertices) > self.all.room() {
            true => Err(self.all.full(&byte_name(byte))),
            false => Ok(()),
        }
    }

    /// Ends the line under the pen.
    pub(super) fn lift(&mut self) -> Result<(), DesignError> {
        match std::mem::take(&mut self.path) {
            path if path.is_empty() => Ok(()),
            path => self.leave(path, self.path_from),
        }
    }

    /// A line in user units, wherever the pen is and whether it is down or not.
    pub(super) fn outline(&mut self, points: &[Point], byte: usize) -> Result<(), DesignError> {
        self.lift()?;
        let place = &self.place;
        let line = points.iter().map(|p| place.to_mm(place.to_plotter(*p)));
        self.leave(line.collect(), byte)
    }

    /// Leaves a line's ink, or a part of a polygon.
    pub(super) fn leave(&mut self, path: Vec<Point>, byte: usize) -> Result<(), DesignError> {
        if self.polygon.is_open {
            self.polygon.add_whole(path);
            return self.refuse_full(byte);
        }
        if self.pen == Some(0) {
            self.losses.without_pen += 1;
            return Ok(());
        }
        if let Some(page_end) = self.page_ended {
            return Err(DesignError::unsupported(
                byte_name(page_end),
                "a second page",
                "write one page a file",
            ));
        }
        self.losses.is_of_unknown_size |= self.place.is_of_unknown_size();
        let mark = DesignStroke {
            pen: self.pen,
            source: byte_name(byte),
            ..DesignStroke::default()
        };
        for part in self.patterned(path, &mark)? {
            self.put(part, &mark)?;
        }
        Ok(())
    }

    /// The line in its line type.
    fn patterned(
        &self,
        path: Vec<Point>,
        mark: &DesignStroke,
    ) -> Result<Vec<Vec<Point>>, DesignError> {
        match &self.line_type {
            LineType::Solid => Ok(vec![path]),
            LineType::Dots => Ok(path.into_iter().map(|point| vec![point]).collect()),
            LineType::Dashed(pattern_mm) => dash::dashes(&path, pattern_mm, 0.0, self.all.room())
                .ok_or_else(|| self.all.full(&mark.source)),
        }
    }

    /// Takes in what the window leaves of a line.
    fn put(&mut self, path: Vec<Point>, mark: &DesignStroke) -> Result<(), DesignError> {
        let Some(window) = &self.window else {
            return self.all.push(path, mark);
        };
        let parts = clipped(&path, std::slice::from_ref(window), &mut self.work);
        let parts = parts.ok_or_else(|| {
            DesignError::unsupported(
                mark.source.clone(),
                "so much to cut at a window (IW)",
                "remove IW",
            )
        })?;
        parts
            .into_iter()
            .try_for_each(|part| self.all.push(part, mark))
    }

    pub(super) fn finish_file(mut self) -> Result<Design, DesignError> {
        self.lift()?;
        let notes = self.losses.notes();
        let mut design = self.all.on_page_about_origin(EMPTY)?;
        design.notes.extend(notes);
        Ok(design)
    }
}

pub(super) fn unknown(command: &HpglCommand) -> DesignError {
    DesignError::unsupported(
        byte_name(command.at),
        quoted(&command.word()),
        "known are the lines, arcs, rectangles, wedges, polygons and labels of HP-GL",
    )
}
