//! Runs HP-GL as a plotter would, and collects the strokes that its pens leave.

use std::collections::BTreeMap;

use base::plane::Point;

use super::super::collect_strokes::StrokeCollector;
use super::super::design_error::quoted;
use super::super::fill_area::{FilledArea, InsideRule, WorkBudget, clip};
use super::super::{Design, DesignCaps, DesignError, DesignStroke, dash};
use super::commands::HpglCommand;
use super::coordinates::PlotterCoordinates;
use super::label::LabelStyle;
use super::line_type::LineType;
use super::losses::{HpglLosses, UNDRAWABLE};
use super::polygon::PolygonBuffer;
use super::shapes::rectangle;
use super::{EMPTY, byte_name};

/// Default half-lengths of ticks: upwards and downwards, or to the right and to the left.
const TICK_PERCENT: Point = [0.5, 0.5];

pub(super) struct HpglPlotter<'c> {
    pub(super) strokes: StrokeCollector<'c>,
    pub(super) coords: PlotterCoordinates,
    /// Counted from 1; 0, after SP0, is no pen and draws nothing. `None` before any SP.
    pen: Option<u16>,
    /// In plotter units.
    pub(super) at: Point,
    pub(super) is_down: bool,
    is_relative: bool,
    /// The path of the pen since it came down, in mm.
    pub(super) path: Vec<Point>,
    path_from: usize,
    pub(super) line_type: LineType,
    pub(super) chord_is_distance: bool,
    window: Option<FilledArea>,
    /// The last LT, SI or SR, and DI or DR, by first letter: they may be relative to the scaling
    /// points.
    frame_commands: BTreeMap<u8, HpglCommand>,
    work: WorkBudget,
    pub(super) polygon: PolygonBuffer,
    pub(super) label: LabelStyle,
    /// In hundredths of the distance between the scaling points.
    pub(super) tick_percent: Point,
    /// A word that is not known; what is drawn after it may depend on it.
    unknown_word: Option<HpglCommand>,
    /// Byte at which a new page begins; what follows would lie on the first page.
    page_end: Option<usize>,
    pub(super) losses: HpglLosses,
}

impl<'c> HpglPlotter<'c> {
    pub(super) fn new(caps: &'c DesignCaps) -> Self {
        Self {
            strokes: StrokeCollector::new(caps),
            coords: PlotterCoordinates::default(),
            pen: None,
            at: [0.0, 0.0],
            is_down: false,
            is_relative: false,
            path: Vec::new(),
            path_from: 0,
            line_type: LineType::Solid,
            chord_is_distance: false,
            window: None,
            frame_commands: BTreeMap::new(),
            work: WorkBudget::default(),
            polygon: PolygonBuffer::default(),
            label: LabelStyle::default(),
            tick_percent: TICK_PERCENT,
            unknown_word: None,
            page_end: None,
            losses: HpglLosses::default(),
        }
    }

    pub(super) fn run(&mut self, command: &HpglCommand) -> Result<(), DesignError> {
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
            b"LB" => self.draw_label(command),
            b"XT" | b"YT" => self.tick(command),
            _ => self.set_up(command),
        }
    }

    /// Applies a command that changes what others draw.
    fn set_up(&mut self, command: &HpglCommand) -> Result<(), DesignError> {
        self.lift()?;
        if let b"LT" | b"SI" | b"SR" | b"DI" | b"DR" = &command.name {
            let [kind, _] = command.name;
            self.frame_commands.insert(kind, command.clone());
        }
        match &command.name {
            b"IN" | b"DF" => self.initialize(command.name == *b"IN"),
            b"SP" => self.select_pen(command.number(0, 0.0), command)?,
            b"IP" => {
                self.coords.set_scaling_points(command)?;
                for command in std::mem::take(&mut self.frame_commands).into_values() {
                    self.set_up(&command)?;
                }
            }
            b"SC" => self.coords.set_user_units(command)?,
            b"RO" => self.coords.rotate(command)?,
            b"IW" => self.set_window(command)?,
            b"LT" => {
                let line_type = LineType::of(command, self.coords.frame_mm());
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
                self.at = self.label.move_by_cells(self.at, cells);
            }
            // Before anything is drawn the page is the first.
            b"PG" | b"AF" | b"AH" if self.strokes.len() == 0 => {}
            b"PG" | b"AF" | b"AH" => self.page_end = Some(command.at),
            b"SM" if command.raw.trim_ascii().is_empty() => {}
            b"DV" if command.choice(0, 0) == 0 => {}
            _ if self.label.apply(command, self.coords.frame_mm()) => {}
            _ if self.losses.count(command) => {}
            name if UNDRAWABLE.contains(name) => return Err(unknown(command)),
            _ => self.skip_unless_drawing(command),
        }
        Ok(())
    }

    fn initialize(&mut self, resets_pen: bool) {
        self.is_relative = false;
        self.line_type = LineType::Solid;
        self.label = LabelStyle::default();
        self.window = None;
        self.frame_commands.clear();
        self.polygon = PolygonBuffer::default();
        // DF keeps the rotation.
        let quarter_turns = self.coords.quarter_turns;
        self.coords = PlotterCoordinates::default();
        if resets_pen {
            (self.is_down, self.at) = (false, [0.0, 0.0]);
        } else {
            self.coords.quarter_turns = quarter_turns;
        }
    }

    /// Skips an unknown word outside the drawing; between its lines it might draw.
    fn skip_unless_drawing(&mut self, command: &HpglCommand) {
        if self.strokes.len() > 0 && self.unknown_word.is_none() {
            self.unknown_word = Some(command.clone());
        }
        self.losses.count_of_cutter(command.word());
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
        command.require_numbers(4)?;
        if let [low, high, ..] = *command.points()? {
            let outline = rectangle(self.coords.to_plotter(low), self.coords.to_plotter(high));
            let outline = outline.into_iter().map(|point| self.coords.to_mm(point));
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
                self.begin_path(command.at);
            }
            Some(false) => {
                self.lift()?;
                self.is_down = false;
            }
            _ => {}
        }
        for point in command.points()? {
            let to = self.resolve(*point, self.is_relative);
            self.move_to(to, command.at)?;
        }
        Ok(())
    }

    /// Converts coordinates of a command to plotter units.
    pub(super) fn resolve(&self, [x, y]: Point, is_relative: bool) -> Point {
        if !is_relative {
            return self.coords.to_plotter([x, y]);
        }
        let [at_x, at_y] = self.coords.to_user(self.at);
        self.coords.to_plotter([at_x + x, at_y + y])
    }

    fn begin_path(&mut self, byte: usize) {
        if self.path.is_empty() && !self.polygon.is_open {
            self.path.push(self.coords.to_mm(self.at));
            self.path_from = byte;
        }
    }

    pub(super) fn move_to(&mut self, to: Point, byte: usize) -> Result<(), DesignError> {
        let to_mm = self.coords.to_mm(to);
        if self.polygon.is_open {
            self.polygon.add(to_mm, self.is_down);
        } else if self.is_down {
            self.begin_path(byte);
            self.path.push(to_mm);
        }
        self.at = to;
        self.check_point_cap(byte)
    }

    fn check_point_cap(&self, byte: usize) -> Result<(), DesignError> {
        match self.path.len().max(self.polygon.vertices) > self.strokes.points_left() {
            true => Err(self.strokes.too_many_points(&byte_name(byte))),
            false => Ok(()),
        }
    }

    /// Ends the line under the pen.
    pub(super) fn lift(&mut self) -> Result<(), DesignError> {
        match std::mem::take(&mut self.path) {
            path if path.is_empty() => Ok(()),
            path => self.add_line(path, self.path_from),
        }
    }

    /// Draws a line in user units, wherever the pen is and whether it is up or down.
    pub(super) fn outline(&mut self, points: &[Point], byte: usize) -> Result<(), DesignError> {
        self.lift()?;
        let coords = &self.coords;
        let line = points.iter().map(|p| coords.to_mm(coords.to_plotter(*p)));
        self.add_line(line.collect(), byte)
    }

    /// Adds a line to the drawing, or to the open polygon.
    pub(super) fn add_line(&mut self, path: Vec<Point>, byte: usize) -> Result<(), DesignError> {
        if self.polygon.is_open {
            self.polygon.add_subpolygon(path);
            return self.check_point_cap(byte);
        }
        if self.pen == Some(0) {
            self.losses.without_pen += 1;
            return Ok(());
        }
        if let Some(page_end) = self.page_end {
            return Err(DesignError::unsupported(
                byte_name(page_end),
                "a second page",
                "write one page per file",
            ));
        }
        if let Some(word) = &self.unknown_word {
            return Err(unknown(word));
        }
        self.losses.has_unknown_size |= self.coords.has_unknown_size();
        let template = DesignStroke {
            pen: self.pen,
            source: byte_name(byte),
            ..DesignStroke::default()
        };
        for part in self.apply_line_type(path, &template)? {
            self.clip(part, &template)?;
        }
        Ok(())
    }

    /// Cuts a line into the dashes or dots of its line type.
    fn apply_line_type(
        &self,
        path: Vec<Point>,
        template: &DesignStroke,
    ) -> Result<Vec<Vec<Point>>, DesignError> {
        let points_left = self.strokes.points_left();
        match &self.line_type {
            LineType::Solid => Ok(vec![path]),
            LineType::Dots => Ok(path.into_iter().map(|point| vec![point]).collect()),
            LineType::Dashed(pattern_mm) => dash::dashes(&path, pattern_mm, 0.0, points_left)
                .ok_or_else(|| self.strokes.too_many_points(&template.source)),
        }
    }

    /// Adds the part of a line inside the window.
    fn clip(&mut self, path: Vec<Point>, template: &DesignStroke) -> Result<(), DesignError> {
        let Some(window) = &self.window else {
            return self.strokes.push(path, template);
        };
        let parts = clip(&path, std::slice::from_ref(window), &mut self.work);
        let parts = parts.ok_or_else(|| {
            DesignError::unsupported(
                template.source.clone(),
                "too much clipping to a window (IW)",
                "remove IW",
            )
        })?;
        parts
            .into_iter()
            .try_for_each(|part| self.strokes.push(part, template))
    }

    pub(super) fn finish_file(mut self) -> Result<Design, DesignError> {
        self.lift()?;
        let (notes, has_unknown_size) = (self.losses.notes(), self.losses.has_unknown_size);
        Ok(Design {
            notes,
            states_lengths: !has_unknown_size,
            ..self.strokes.on_fitted_page(EMPTY)?
        })
    }
}

pub(super) fn unknown(command: &HpglCommand) -> DesignError {
    DesignError::unsupported(
        byte_name(command.at),
        quoted(&command.word()),
        "use lines, arcs, rectangles, wedges, polygons and labels of HP-GL",
    )
}
