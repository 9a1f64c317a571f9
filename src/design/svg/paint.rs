//! Turns usvg's tree into strokes: what is visible, in which colour, and with which layer's pen.

use std::collections::HashMap;

use base::plane::Point;
use base::wording::count;
use usvg::roxmltree::Document;
use usvg::tiny_skia_path::PathSegment;
use usvg::{Group, Node, Paint, Path, Transform};

use super::super::collect_strokes::StrokeCollector;
use super::super::design_error::quoted;
use super::super::fill_area::{AreaFill, FilledArea, InsideRule, WorkBudget, clip};
use super::super::letters::CAPITAL_EM;
use super::super::{
    ChoiceWords, DesignCaps, DesignChoice, DesignError, DesignStroke, ReadOptions, dash, flatten,
};
use super::hidden_lines::{HiddenLines, hiding_rule, paths_in};
use super::layers::{self, SvgLayer};
use super::machine_fonts::{letters_of, pictures_in};
use super::unsupported::FlaggedElements;
use super::{PageScale, clip_paths, cut_edges, text_to_paths};

/// Areas in this colour without an outline are paper, and lines for all pens but white ones.
const PAPER: [u8; 3] = [255, 255, 255];

pub(super) struct SvgPainter<'p> {
    pub(super) strokes: StrokeCollector<'p>,
    places: &'p FlaggedElements,
    /// From the coordinates of the group being drawn. usvg's own absolute transforms are wrong inside a `use` of a `symbol`.
    page: PageTransform,
    /// The author's names of elements, by id, for messages.
    labels: HashMap<String, String>,
    layers: HashMap<String, SvgLayer>,
    /// True inside a layer that requests a pause, until something of it is drawn.
    pause_pending: bool,
    /// Elements that enclose the path being drawn, from the page inwards.
    enclosing: Vec<EnclosingElement>,
    paths: usize,
    fill: AreaFill,
    /// What hides lines, where that is asked for.
    hidden: Option<HiddenLines>,
    /// Place of the path being drawn among all paths, from the back.
    depth: usize,
    /// Clips from the page inwards: only what lies in each of them is drawn.
    clips: Vec<Vec<FilledArea>>,
    work: WorkBudget,
    /// Rounding step of the positions to which the enclosing transforms can shift the path.
    grid_mm: f64,
    pub(super) losses: PaintLosses,
}

/// Numbers of shapes that do not look on the sheet as on the screen, for the notes.
#[derive(Default)]
pub(super) struct PaintLosses {
    hidden: usize,
    white_areas: usize,
    outlined_areas: usize,
    /// Letters that are pictures made of pixels.
    pictures: usize,
    has_letters: bool,
}

impl PaintLosses {
    /// Counts a path without a line or a coloured area.
    fn count_unseen(&mut self, is_white: bool) {
        let counter = match is_white {
            true => &mut self.white_areas,
            false => &mut self.hidden,
        };
        *counter += 1;
    }

    pub(super) fn notes(&self, words: ChoiceWords) -> Vec<String> {
        let of = |number: usize, noun: &str, loss: &str| {
            (number > 0).then(|| format!("{} {loss}", count(number, noun)))
        };
        let filling = words.offer(DesignChoice::HatchFill);
        let filling = filling.map_or(String::new(), |offer| format!(": {offer}"));
        let letters = "text is drawn in single-line letters, not in its font";
        let notes = [
            of(self.hidden, "hidden or transparent shape", "left out"),
            of(
                self.white_areas,
                "white area",
                "without an outline, left out",
            ),
            of(
                self.outlined_areas,
                "filled area",
                &format!("drawn as an outline{filling}"),
            ),
            of(
                self.pictures,
                "letter",
                "left out, because its font has only pixels for it",
            ),
            self.has_letters.then(|| letters.to_owned()),
        ];
        notes.into_iter().flatten().collect()
    }
}

struct EnclosingElement {
    name: String,
    layer: Option<SvgLayer>,
}

impl EnclosingElement {
    fn has_pause(&self) -> bool {
        self.layer.as_ref().is_some_and(|layer| layer.pauses)
    }
}

impl<'p> SvgPainter<'p> {
    pub(super) fn new(
        document: &Document<'_>,
        places: &'p FlaggedElements,
        PageScale { page_mm, mm_per_px }: PageScale,
        caps: &'p DesignCaps,
        options: ReadOptions,
    ) -> Self {
        let labels = document.descendants().filter_map(|node| {
            let label = layers::label_of(node)?;
            Some((node.attribute("id")?.to_owned(), label.to_owned()))
        });
        Self {
            strokes: StrokeCollector::for_page(caps, page_mm),
            places,
            page: PageTransform {
                transform: Transform::identity(),
                error_mm: flatten::chord_error_mm(page_mm),
                height_mm: page_mm[1],
                mm_per_px,
            },
            labels: labels.collect(),
            layers: layers::by_id(document),
            pause_pending: false,
            enclosing: Vec::new(),
            paths: 0,
            fill: options.fill,
            hidden: options.hide.then(HiddenLines::default),
            depth: 0,
            clips: Vec::new(),
            work: WorkBudget::default(),
            grid_mm: 0.0,
            losses: PaintLosses::default(),
        }
    }

    pub(super) fn draw_group(&mut self, group: &Group) -> Result<(), DesignError> {
        if group.opacity().get() <= 0.0 {
            self.losses.hidden += 1;
            return Ok(());
        }
        if group.mask().is_some() {
            return Err(DesignError::unsupported(
                self.places.masked(group.id()),
                "a mask",
                "cut the paths to their visible parts, or remove the mask",
            ));
        }
        let clips_before = self.clips.len();
        let page = self.page.inside(group);
        clip_paths::push(group, &page, &mut self.clips, &mut self.work)?;
        let grid_before_mm = self.grid_mm;
        self.grid_mm = grid_before_mm.max(page.shift_grid_mm());
        let page_before = std::mem::replace(&mut self.page, page);
        let element = self.enclosing_element(group.id());
        let has_pause = element.as_ref().is_some_and(EnclosingElement::has_pause);
        let pending_before = self.pause_pending;
        self.pause_pending |= has_pause;
        let depth = self.enclosing.len();
        self.enclosing.extend(element);
        self.draw_children(group)?;
        self.enclosing.truncate(depth);
        if has_pause {
            // An empty layer causes no pause.
            self.pause_pending &= pending_before;
        }
        self.clips.truncate(clips_before);
        self.grid_mm = grid_before_mm;
        self.page = page_before;
        Ok(())
    }

    /// Draws the children of a group: numbered layers first, by number, and the rest in file order.
    fn draw_children(&mut self, group: &Group) -> Result<(), DesignError> {
        let mut depth = self.depth;
        let mut children: Vec<(&Node, usize)> = Vec::new();
        for node in group.children() {
            children.push((node, depth));
            depth += self.hidden.as_ref().map_or(0, |_| paths_in(node));
        }
        children.sort_by_cached_key(|(node, _)| match node {
            Node::Group(inner) => self.layers.get(inner.id()).map_or(u32::MAX, SvgLayer::rank),
            Node::Path(_) | Node::Image(_) | Node::Text(_) => u32::MAX,
        });
        children.into_iter().try_for_each(|(node, depth)| {
            self.depth = depth;
            match node {
                Node::Group(inner) => self.draw_group(inner),
                Node::Path(path) => {
                    self.note_area(path)?;
                    self.draw_path(path)?;
                    let strokes = self.strokes.len();
                    if let Some(hidden) = &mut self.hidden {
                        hidden.note_depth(strokes, depth);
                    }
                    Ok(())
                }
                Node::Text(text) => self.draw_letters(text.id(), node),
                Node::Image(_) => Ok(()),
            }
        })
    }

    /// Draws a text in the outlines of its font.
    fn draw_letters(&mut self, id: &str, node: &Node) -> Result<(), DesignError> {
        let Some((letters, font_px)) = letters_of(node) else {
            return Ok(());
        };
        let mm_per_px = mean_scale(self.page.transform) * self.page.mm_per_px;
        self.strokes
            .note_capital(f64::from(font_px) * mm_per_px * CAPITAL_EM);
        self.losses.pictures += pictures_in(letters);
        let named = self.enclosing_element(id);
        let enclosed = self.enclosing.len();
        self.enclosing.push(named.unwrap_or(EnclosingElement {
            name: "text".to_owned(),
            layer: None,
        }));
        self.draw_group(letters)?;
        self.enclosing.truncate(enclosed);
        Ok(())
    }

    /// Notes the area of a path that hides what lies behind it.
    fn note_area(&mut self, path: &Path) -> Result<(), DesignError> {
        let rule = hiding_rule(path).filter(|_| has_area(path));
        let (Some(hidden), Some(rule)) = (&mut self.hidden, rule) else {
            return Ok(());
        };
        let outlines = outlines(path, &self.page, true, self.strokes.points_left());
        let outlines = outlines.ok_or_else(|| self.strokes.too_many_points(path.id()))?;
        let area = FilledArea::new(&outlines, rule);
        hidden.add(self.depth, area, !self.clips.is_empty());
        Ok(())
    }

    /// Takes away what lies behind filled areas, if that is asked for, and returns notes.
    pub(super) fn hide_lines(&mut self) -> Result<Vec<String>, DesignError> {
        let Some(hidden) = &self.hidden else {
            return Ok(Vec::new());
        };
        let strokes = self.strokes.take();
        let visible = hidden.visible(strokes, &mut self.work);
        let (strokes, notes) = visible.ok_or_else(|| {
            DesignError::unsupported(
                "the drawing",
                "a drawing with too many hidden lines",
                "use simpler outlines",
            )
        })?;
        self.strokes.put_back(strokes);
        Ok(notes)
    }

    fn enclosing_element(&self, id: &str) -> Option<EnclosingElement> {
        if id.is_empty() {
            return None;
        }
        Some(EnclosingElement {
            name: self.labels.get(id).map_or(id, String::as_str).to_owned(),
            layer: self.layers.get(id).cloned(),
        })
    }

    fn draw_path(&mut self, path: &Path) -> Result<(), DesignError> {
        self.paths += 1;
        let Some(look) = PathAppearance::of_path(path, &mut self.losses) else {
            return Ok(());
        };
        if text_to_paths::is_letters(path.id()) {
            let mm_per_em = mean_scale(self.page.transform) * self.page.mm_per_px;
            self.strokes.note_capital(mm_per_em * CAPITAL_EM);
            self.losses.has_letters |= text_to_paths::is_in_another_font(path.id());
        }
        let enclosing = self.enclosing.iter().rev();
        let mut layers = enclosing.filter_map(|element| element.layer.as_ref());
        let pen = layers.clone().find_map(|layer| layer.pen);
        let template = DesignStroke {
            colour: look.colour,
            pen,
            is_paper_coloured: pen.is_none() && look.is_paper,
            layer: layers.next().map(|layer| layer.name.clone()),
            source: self.source(path.id()),
            ..DesignStroke::default()
        };
        if self.grid_mm.max(self.page.grid_mm(path)) > GRID_MAX_MM {
            return Err(too_far(template.source));
        }
        let outlines = outlines(
            path,
            &self.page,
            look.closes_areas,
            self.strokes.points_left(),
        )
        .ok_or_else(|| self.strokes.too_many_points(&template.source))?;
        let is_area_lost = self.fill == AreaFill::Outline && look.fill.is_some() && has_area(path);
        self.losses.outlined_areas += usize::from(is_area_lost);
        let is_area_used = self.fill != AreaFill::Outline || !self.clips.is_empty();
        let fill = look.fill.filter(|_| is_area_used);
        let area = fill.map(|(_, rule)| FilledArea::new(&outlines, rule));
        let points_left = self.strokes.points_left();
        for points in outlines {
            self.push_dashed(points, look.line, &template)?;
        }
        let (Some(area), Some((colour, _))) = (area, fill) else {
            return Ok(());
        };
        let template = DesignStroke {
            colour,
            is_paper_coloured: false,
            ..template
        };
        if look.line.is_none() || self.strokes.points_left() == points_left {
            let edges = cut_edges::find(&area, &self.clips, &mut self.work);
            for edge in edges.ok_or_else(|| too_much_work(&template))? {
                self.push(edge, &template)?;
            }
        }
        let lines = area.lines(self.fill, &mut self.work);
        for line in lines.ok_or_else(|| too_much_work(&template))? {
            self.clip(line, &template)?;
        }
        Ok(())
    }

    /// Adds the part of a line inside the clips.
    fn clip(&mut self, points: Vec<Point>, template: &DesignStroke) -> Result<(), DesignError> {
        if self.clips.is_empty() {
            return self.push(points, template);
        }
        let mut parts = vec![points];
        for areas in &self.clips {
            let mut inside = Vec::new();
            for part in &parts {
                let kept = clip(part, areas, &mut self.work);
                inside.extend(kept.ok_or_else(|| too_much_work(template))?);
            }
            parts = inside;
        }
        parts.into_iter().try_for_each(|p| self.push(p, template))
    }

    /// Adds a line; the first line of a layer that requests a pause carries the pause.
    fn push(&mut self, points: Vec<Point>, template: &DesignStroke) -> Result<(), DesignError> {
        if points.is_empty() || !self.pause_pending {
            return self.strokes.push(points, template);
        }
        self.pause_pending = false;
        let template = DesignStroke {
            pause_before: true,
            ..template.clone()
        };
        self.strokes.push(points, &template)
    }

    fn push_dashed(
        &mut self,
        points: Vec<Point>,
        line: Option<&usvg::Stroke>,
        template: &DesignStroke,
    ) -> Result<(), DesignError> {
        let Some((stroke, pattern)) = line.and_then(|line| Some((line, line.dasharray()?))) else {
            return self.clip(points, template);
        };
        let transform = self.page.transform;
        let mm = self.page.mm_per_px * mean_scale(transform);
        let pattern: Vec<f64> = pattern.iter().map(|px| f64::from(*px) * mm).collect();
        let offset_mm = f64::from(stroke.dashoffset()) * mm;
        let length_mm = user_length(transform);
        let dashes = dash::dashes_by(
            &points,
            &pattern,
            offset_mm,
            self.strokes.points_left(),
            length_mm,
        )
        .ok_or_else(|| self.strokes.too_many_points(&template.source))?;
        dashes
            .into_iter()
            .try_for_each(|points| self.clip(points, template))
    }

    /// Returns the path's id or number, and its enclosing element, for messages.
    fn source(&self, id: &str) -> String {
        let path_name = match id {
            "" => format!("path {}", self.paths),
            id if text_to_paths::is_letters(id) => "text".to_owned(),
            id => quoted(id),
        };
        match self.enclosing.last() {
            None => path_name,
            Some(element) => format!("{path_name} in {}", quoted(&element.name)),
        }
    }
}

/// Returns the path's lines on the page; `None` for more than `points_max` points.
pub(super) fn outlines(
    path: &Path,
    page: &PageTransform,
    closes_areas: bool,
    points_max: usize,
) -> Option<Vec<Vec<Point>>> {
    let mut tracer = PathTracer {
        closes_areas,
        outlines: Vec::new(),
        points: Vec::new(),
    };
    let mut points = 0;
    for segment in path.data().segments() {
        points += tracer.add_segment(segment, page);
        if points > points_max {
            return None;
        }
    }
    tracer.lift();
    Some(tracer.outlines)
}

fn too_much_work(template: &DesignStroke) -> DesignError {
    DesignError::unsupported(
        template.source.clone(),
        "an area that takes too many lines to fill or clip",
        "use wider spacing, or simpler outlines",
    )
}

/// Largest rounding step of positions: usvg computes in `f32`, and larger steps show in a drawing.
const GRID_MAX_MM: f64 = 0.05;

fn too_far(at: impl Into<String>) -> DesignError {
    DesignError::unsupported(
        at,
        format!("a line too far from the origin (places there are exact only to {GRID_MAX_MM} mm)"),
        "move the drawing to the origin of its coordinates, and avoid large numbers in `viewBox` and `transform`",
    )
}

/// Returns the mean factor by which a transform scales lengths.
fn mean_scale(transform: Transform) -> f64 {
    let [sx, ky, kx, sy] = linear(transform);
    (sx * sy - kx * ky).abs().sqrt()
}

fn linear(t: Transform) -> [f64; 4] {
    [t.sx, t.ky, t.kx, t.sy].map(f64::from)
}

/// Returns a function that measures steps on the page as before the transform, times its mean
/// factor.
fn user_length(transform: Transform) -> impl Fn(Point) -> f64 {
    let [sx, ky, kx, sy] = linear(transform);
    let scale = mean_scale(transform);
    move |[x, up]| {
        let y = -up;
        let user = [sy * x - kx * y, sx * y - ky * x];
        // The inverse would divide by the determinant, which is the factor squared.
        let length = user[0].hypot(user[1]) / scale;
        if length.is_finite() {
            length
        } else {
            x.hypot(y)
        }
    }
}

/// Visible properties of a path.
struct PathAppearance<'p> {
    /// The line along it, none where only its area is seen.
    line: Option<&'p usvg::Stroke>,
    /// True if the line has the colour of paper.
    is_paper: bool,
    colour: Option<[u8; 3]>,
    /// True if an area's outline is closed even where its author left it open.
    closes_areas: bool,
    /// Fill of the path: colour and rule.
    fill: Option<(Option<[u8; 3]>, InsideRule)>,
}

impl<'p> PathAppearance<'p> {
    /// Returns `None` for an invisible path, and counts it.
    fn of_path(path: &'p Path, losses: &mut PaintLosses) -> Option<Self> {
        if !path.is_visible() {
            losses.hidden += 1;
            return None;
        }
        let is_text = text_to_paths::is_letters(path.id());
        let opaque_fill = path.fill().filter(|f| f.opacity().get() > 0.0);
        // White letters are lines for a white pen; a white area is paper.
        let fill = opaque_fill.filter(|f| is_text || !is_paper(f.paint()));
        let is_white_text = is_text && fill.is_some_and(|f| is_paper(f.paint()));
        let fill = fill.map(|f| (colour(f.paint()), f.rule()));
        let line = path.stroke().filter(|s| s.opacity().get() > 0.0);
        // Paper around an area leaves the area.
        let line = line.filter(|s| !is_paper(s.paint()) || fill.is_none() || !has_area(path));
        let outline = match (line, fill) {
            (Some(stroke), _) => colour(stroke.paint()),
            (None, Some((colour, _))) => colour,
            (None, None) => {
                losses.count_unseen(opaque_fill.is_some());
                return None;
            }
        };
        Some(Self {
            line,
            is_paper: line.map_or(is_white_text, |stroke| is_paper(stroke.paint())),
            colour: outline,
            closes_areas: line.is_none() && !is_text,
            fill: fill.filter(|_| !is_text),
        })
    }
}

/// Returns whether a path's points are not all on one line.
fn has_area(path: &Path) -> bool {
    let points = path.data().points();
    let [first, rest @ ..] = points else {
        return false;
    };
    let from_first = |point: &usvg::tiny_skia_path::Point| [point.x - first.x, point.y - first.y];
    let length = |[x, y]: [f32; 2]| x.hypot(y);
    let steps = rest.iter().map(from_first);
    let Some(along) = steps
        .clone()
        .max_by(|a, b| length(*a).total_cmp(&length(*b)))
    else {
        return false;
    };
    let off_line = |[x, y]: [f32; 2]| (along[0] * y - along[1] * x).abs();
    let flat = length(along) * length(along) * FLATNESS;
    steps.into_iter().any(|step| off_line(step) > flat)
}

/// Height of a shape that is a line, as a share of its length.
const FLATNESS: f32 = 1e-5;

/// Returns whether all of a paint has the colour of paper; a gradient only begins with its colour.
fn is_paper(paint: &Paint) -> bool {
    matches!(paint, Paint::Color(_)) && colour(paint) == Some(PAPER)
}

fn colour(paint: &Paint) -> Option<[u8; 3]> {
    let first_stop = |stops: &[usvg::Stop]| stops.first().map(usvg::Stop::color);
    let colour = match paint {
        Paint::Color(colour) => Some(*colour),
        Paint::LinearGradient(gradient) => first_stop(gradient.stops()),
        Paint::RadialGradient(gradient) => first_stop(gradient.stops()),
        Paint::Pattern(_) => None,
    };
    colour.map(|c| [c.red, c.green, c.blue])
}

/// Transforms a path's own coordinates to those of the page.
pub(super) struct PageTransform {
    pub(super) transform: Transform,
    error_mm: f64,
    height_mm: f64,
    mm_per_px: f64,
}

impl PageTransform {
    pub(super) fn with(&self, transform: Transform) -> Self {
        Self { transform, ..*self }
    }

    /// Returns the map from the coordinates of what a group holds.
    fn inside(&self, group: &Group) -> Self {
        self.with(self.transform.pre_concat(group.transform()))
    }

    /// Refuses a clip path whose positions are rounded too coarsely.
    pub(super) fn refuse_far(&self, path: &Path, at: &str) -> Result<(), DesignError> {
        match self.grid_mm(path) > GRID_MAX_MM {
            true => Err(too_far(at)),
            false => Ok(()),
        }
    }

    /// Returns the rounding step of positions on the path.
    fn grid_mm(&self, path: &Path) -> f64 {
        let t = self.transform;
        let bounds = path.data().bounds();
        let x = bounds.left().abs().max(bounds.right().abs());
        let y = bounds.top().abs().max(bounds.bottom().abs());
        let across = f64::from(t.sx.abs() * x).max(f64::from(t.kx.abs() * y));
        let down = f64::from(t.ky.abs() * x).max(f64::from(t.sy.abs() * y));
        let grid_mm = across.max(down) * f64::from(f32::EPSILON) * self.mm_per_px;
        grid_mm.max(self.shift_grid_mm())
    }

    fn shift_grid_mm(&self) -> f64 {
        let shift = self.transform.tx.abs().max(self.transform.ty.abs());
        f64::from(shift) * f64::from(f32::EPSILON) * self.mm_per_px
    }

    fn to_page(&self, point: usvg::tiny_skia_path::Point) -> Point {
        // In f64, because f32 would cost a large page its last hundredths of a millimetre.
        let t = self.transform;
        let [sx, ky, kx, sy, tx, ty] = [t.sx, t.ky, t.kx, t.sy, t.tx, t.ty].map(f64::from);
        let (x, y) = (f64::from(point.x), f64::from(point.y));
        let x_px = sx * x + kx * y + tx;
        let y_px = ky * x + sy * y + ty;
        [
            x_px * self.mm_per_px,
            self.height_mm - y_px * self.mm_per_px,
        ]
    }
}

struct PathTracer {
    closes_areas: bool,
    outlines: Vec<Vec<Point>>,
    points: Vec<Point>,
}

impl PathTracer {
    /// Appends a segment and returns the number of new points.
    fn add_segment(&mut self, segment: PathSegment, page: &PageTransform) -> usize {
        let before = self.points.len();
        match segment {
            PathSegment::MoveTo(to) => {
                self.lift();
                self.points.push(page.to_page(to));
                return 1;
            }
            PathSegment::LineTo(to) => self.points.push(page.to_page(to)),
            PathSegment::QuadTo(control, to) => {
                let (control, to) = (page.to_page(control), page.to_page(to));
                flatten::quadratic(&mut self.points, control, to, page.error_mm);
            }
            PathSegment::CubicTo(first, second, to) => {
                let points = [first, second, to].map(|p| page.to_page(p));
                flatten::cubic(&mut self.points, points, page.error_mm);
            }
            PathSegment::Close => self.close(),
        }
        self.points.len().saturating_sub(before)
    }

    fn close(&mut self) {
        let Some(&first) = self.points.first() else {
            return;
        };
        if self.points.last() != Some(&first) {
            self.points.push(first);
        }
    }

    fn lift(&mut self) {
        if self.closes_areas {
            self.close();
        }
        if !self.points.is_empty() {
            self.outlines.push(std::mem::take(&mut self.points));
        }
    }
}
