//! usvg's tree → strokes: what is visible, in which colour, by which layer's pen.

use std::collections::HashMap;

use base::plane::Point;
use usvg::roxmltree::Document;
use usvg::tiny_skia_path::PathSegment;
use usvg::{Group, Node, Paint, Path, Transform};

use super::super::collect_strokes::StrokeCollector;
use super::super::design_error::quoted;
use super::super::fill_area::{AreaFill, FilledArea, InsideRule, WorkBudget, clipped};
use super::super::{DesignCaps, DesignError, DesignStroke, dash, flatten};
use super::layers::{self, SvgLayer};
use super::unsupported::FlaggedElements;
use super::{MM_PER_PX, clip_paths, text_to_paths};

/// Areas in this colour without an outline are paper.
const PAPER: [u8; 3] = [255, 255, 255];

pub(super) struct SvgPainter<'p> {
    pub(super) all: StrokeCollector<'p>,
    places: &'p FlaggedElements,
    page: PageTransform,
    /// The author's names of elements by their ids, for messages, and what those of layers say.
    labels: HashMap<String, String>,
    layers: HashMap<String, SvgLayer>,
    /// A layer that asks for a pause was entered, and nothing of it is drawn yet.
    pauses: bool,
    /// From the page inwards: what encloses the path being drawn.
    place: Vec<EnclosingElement>,
    paths: usize,
    fill: AreaFill,
    /// From the page inwards: only what lies in each of them is drawn.
    clips: Vec<Vec<FilledArea>>,
    work: WorkBudget,
    /// Distance between neighbouring places to which the transforms around the path can shift it.
    grid_mm: f64,
}

struct EnclosingElement {
    name: String,
    layer: Option<SvgLayer>,
}

impl EnclosingElement {
    fn pauses(&self) -> bool {
        self.layer.as_ref().is_some_and(|layer| layer.pauses)
    }
}

impl<'p> SvgPainter<'p> {
    pub(super) fn new(
        document: &Document<'_>,
        places: &'p FlaggedElements,
        page_mm: [f64; 2],
        caps: &'p DesignCaps,
        fill: AreaFill,
    ) -> Self {
        let labels = document.descendants().filter_map(|node| {
            let label = layers::label_of(node)?;
            Some((node.attribute("id")?.to_owned(), label.to_owned()))
        });
        Self {
            all: StrokeCollector::for_page(caps, page_mm),
            places,
            page: PageTransform {
                transform: Transform::identity(),
                error_mm: flatten::chord_error_mm(page_mm),
                height_mm: page_mm[1],
            },
            labels: labels.collect(),
            layers: layers::by_id(document),
            pauses: false,
            place: Vec::new(),
            paths: 0,
            fill,
            clips: Vec::new(),
            work: WorkBudget::default(),
            grid_mm: 0.0,
        }
    }

    pub(super) fn group(&mut self, group: &Group) -> Result<(), DesignError> {
        if group.opacity().get() <= 0.0 {
            return Ok(());
        }
        if group.mask().is_some() {
            return Err(DesignError::unsupported(
                self.places.masked(group.id()),
                "a mask",
                "cut the paths to what should be seen, or remove the mask",
            ));
        }
        let clips_before = self.clips.len();
        let page = self.page.with(group.abs_transform());
        clip_paths::push(group, &page, &mut self.clips, &mut self.work)?;
        let grid_above_mm = self.grid_mm;
        self.grid_mm = grid_above_mm.max(page.shift_grid_mm());
        let place = self.place_of(group.id());
        let asks = place.as_ref().is_some_and(EnclosingElement::pauses);
        let asked_above = self.pauses;
        self.pauses |= asks;
        let depth = self.place.len();
        self.place.extend(place);
        self.children(group)?;
        self.place.truncate(depth);
        if asks {
            // An empty layer asks for nothing.
            self.pauses &= asked_above;
        }
        self.clips.truncate(clips_before);
        self.grid_mm = grid_above_mm;
        Ok(())
    }

    /// Draws what a group holds: layers with numbers first, by their numbers, and the rest as in the file.
    fn children(&mut self, group: &Group) -> Result<(), DesignError> {
        let mut children: Vec<&Node> = group.children().iter().collect();
        children.sort_by_cached_key(|node| match node {
            Node::Group(inner) => self.layers.get(inner.id()).map_or(u32::MAX, SvgLayer::turn),
            Node::Path(_) | Node::Image(_) | Node::Text(_) => u32::MAX,
        });
        children.into_iter().try_for_each(|node| match node {
            Node::Group(inner) => self.group(inner),
            Node::Path(path) => self.path(path),
            Node::Image(_) | Node::Text(_) => Ok(()),
        })
    }

    fn place_of(&self, id: &str) -> Option<EnclosingElement> {
        if id.is_empty() {
            return None;
        }
        Some(EnclosingElement {
            name: self.labels.get(id).map_or(id, String::as_str).to_owned(),
            layer: self.layers.get(id).cloned(),
        })
    }

    fn path(&mut self, path: &Path) -> Result<(), DesignError> {
        self.paths += 1;
        let Some(look) = PathAppearance::of_path(path) else {
            return Ok(());
        };
        let around = self.place.iter().rev();
        let mut layers = around.filter_map(|place| place.layer.as_ref());
        let mark = DesignStroke {
            colour: look.colour,
            pen: layers.clone().find_map(|layer| layer.pen),
            layer: layers.next().map(|layer| layer.name.clone()),
            source: self.source(path.id()),
            ..DesignStroke::default()
        };
        let page = self.page.with(path.abs_transform());
        if self.grid_mm.max(page.grid_mm(path)) > GRID_MAX_MM {
            return Err(too_far(mark.source));
        }
        let outlines = outlines(path, &page, look.closes_areas, self.all.room())
            .ok_or_else(|| self.all.full(&mark.source))?;
        let fill = look.fill.filter(|_| self.fill != AreaFill::Outline);
        let area = fill.map(|(_, rule)| FilledArea::new(&outlines, rule));
        for points in outlines {
            self.dashed(points, path, &mark)?;
        }
        let (Some(area), Some((colour, _))) = (area, fill) else {
            return Ok(());
        };
        let lines = area.filled(self.fill, &mut self.work);
        let mark = DesignStroke { colour, ..mark };
        for line in lines.ok_or_else(|| too_much(&mark))? {
            self.put(line, &mark)?;
        }
        Ok(())
    }

    /// Draws what the clips leave of a line.
    fn put(&mut self, points: Vec<Point>, mark: &DesignStroke) -> Result<(), DesignError> {
        if self.clips.is_empty() {
            return self.push(points, mark);
        }
        let mut parts = vec![points];
        for areas in &self.clips {
            let mut inside = Vec::new();
            for part in &parts {
                let kept = clipped(part, areas, &mut self.work);
                inside.extend(kept.ok_or_else(|| too_much(mark))?);
            }
            parts = inside;
        }
        parts.into_iter().try_for_each(|part| self.push(part, mark))
    }

    /// Takes a line in; the first of a layer that asks for a pause has it before it.
    fn push(&mut self, points: Vec<Point>, mark: &DesignStroke) -> Result<(), DesignError> {
        if points.is_empty() || !self.pauses {
            return self.all.push(points, mark);
        }
        self.pauses = false;
        let mark = DesignStroke {
            pause_before: true,
            ..mark.clone()
        };
        self.all.push(points, &mark)
    }

    fn dashed(
        &mut self,
        points: Vec<Point>,
        path: &Path,
        mark: &DesignStroke,
    ) -> Result<(), DesignError> {
        let Some((stroke, pattern)) = path.stroke().and_then(|s| Some((s, s.dasharray()?))) else {
            return self.put(points, mark);
        };
        let mm = MM_PER_PX * stretch(path.abs_transform());
        let pattern: Vec<f64> = pattern.iter().map(|px| f64::from(*px) * mm).collect();
        let offset_mm = f64::from(stroke.dashoffset()) * mm;
        let length_mm = user_length(path.abs_transform());
        let dashes = dash::dashes_by(&points, &pattern, offset_mm, self.all.room(), length_mm)
            .ok_or_else(|| self.all.full(&mark.source))?;
        dashes
            .into_iter()
            .try_for_each(|points| self.put(points, mark))
    }

    /// The path's id, or its number, and what encloses it.
    fn source(&self, id: &str) -> String {
        let own = match id {
            "" => format!("path {}", self.paths),
            id if text_to_paths::is_letters(id) => "text".to_owned(),
            id => quoted(id),
        };
        match self.place.last() {
            None => own,
            Some(place) => format!("{own} in {}", quoted(&place.name)),
        }
    }
}

/// The path's lines on the page; none for more than `points_max` points.
pub(super) fn outlines(
    path: &Path,
    page: &PageTransform,
    closes_areas: bool,
    points_max: usize,
) -> Option<Vec<Vec<Point>>> {
    let mut tracer = PathTracer {
        closes_areas,
        done: Vec::new(),
        points: Vec::new(),
    };
    let mut points = 0;
    for segment in path.data().segments() {
        points += tracer.segment(segment, page);
        if points > points_max {
            return None;
        }
    }
    tracer.lift();
    Some(tracer.done)
}

fn too_much(mark: &DesignStroke) -> DesignError {
    DesignError::unsupported(
        mark.source.clone(),
        "an area that takes so many lines to fill or clip",
        "use wider spacing, or simpler outlines",
    )
}

/// usvg reckons in `f32`. Places farther apart than this show in a drawing.
const GRID_MAX_MM: f64 = 0.05;

fn too_far(at: impl Into<String>) -> DesignError {
    DesignError::unsupported(
        at,
        format!(
            "a line so far from the origin that its places are more than {GRID_MAX_MM} mm apart"
        ),
        "move the drawing to the origin of its coordinates, without large numbers in viewBox and transform",
    )
}

/// Returns the mean factor by which lengths grow, over all directions.
fn stretch(transform: Transform) -> f64 {
    let [sx, ky, kx, sy] = linear(transform);
    (sx * sy - kx * ky).abs().sqrt()
}

fn linear(t: Transform) -> [f64; 4] {
    [t.sx, t.ky, t.kx, t.sy].map(f64::from)
}

/// Measures steps on the page as their author did before the transform, times its mean factor.
fn user_length(transform: Transform) -> impl Fn(Point) -> f64 {
    let [sx, ky, kx, sy] = linear(transform);
    let mean = stretch(transform);
    move |[x, up]| {
        let y = -up;
        let user = [sy * x - kx * y, sx * y - ky * x];
        // Divided by the determinant, whose root is the factor.
        let length = user[0].hypot(user[1]) / mean;
        if length.is_finite() {
            length
        } else {
            x.hypot(y)
        }
    }
}

/// Visible properties of a path.
struct PathAppearance {
    colour: Option<[u8; 3]>,
    /// An area's outline is closed even where its author left it open.
    closes_areas: bool,
    /// Fill of the path: colour and rule.
    fill: Option<(Option<[u8; 3]>, InsideRule)>,
}

impl PathAppearance {
    /// None for what cannot be seen.
    fn of_path(path: &Path) -> Option<Self> {
        if !path.is_visible() {
            return None;
        }
        let is_words = text_to_paths::is_letters(path.id());
        let fill = path.fill().filter(|f| f.opacity().get() > 0.0);
        let fill = fill.map(|f| (colour(f.paint()), f.rule()));
        let fill = fill.filter(|(colour, _)| *colour != Some(PAPER));
        let line = path.stroke().filter(|s| s.opacity().get() > 0.0);
        let outline = match line {
            Some(stroke) => colour(stroke.paint()),
            None => fill?.0,
        };
        Some(Self {
            colour: outline,
            closes_areas: line.is_none() && !is_words,
            fill: fill.filter(|_| !is_words),
        })
    }
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

/// From a path's own coordinates to the page's.
pub(super) struct PageTransform {
    pub(super) transform: Transform,
    error_mm: f64,
    height_mm: f64,
}

impl PageTransform {
    pub(super) fn with(&self, transform: Transform) -> Self {
        Self { transform, ..*self }
    }

    /// Refuses a clip path whose places are too far apart.
    pub(super) fn refuse_far(&self, path: &Path, at: &str) -> Result<(), DesignError> {
        match self.grid_mm(path) > GRID_MAX_MM {
            true => Err(too_far(at)),
            false => Ok(()),
        }
    }

    /// Distance between neighbouring places that a point of the path can have.
    fn grid_mm(&self, path: &Path) -> f64 {
        let t = self.transform;
        let bounds = path.data().bounds();
        let x = bounds.left().abs().max(bounds.right().abs());
        let y = bounds.top().abs().max(bounds.bottom().abs());
        let across = f64::from(t.sx.abs() * x).max(f64::from(t.kx.abs() * y));
        let along = f64::from(t.ky.abs() * x).max(f64::from(t.sy.abs() * y));
        let grid_mm = across.max(along) * f64::from(f32::EPSILON) * MM_PER_PX;
        grid_mm.max(self.shift_grid_mm())
    }

    fn shift_grid_mm(&self) -> f64 {
        let shift = self.transform.tx.abs().max(self.transform.ty.abs());
        f64::from(shift) * f64::from(f32::EPSILON) * MM_PER_PX
    }

    fn place(&self, point: usvg::tiny_skia_path::Point) -> Point {
        // In f64, because f32 would cost a large page its last hundredths of a millimetre.
        let t = self.transform;
        let [sx, ky, kx, sy, tx, ty] = [t.sx, t.ky, t.kx, t.sy, t.tx, t.ty].map(f64::from);
        let (x, y) = (f64::from(point.x), f64::from(point.y));
        let x_px = sx * x + kx * y + tx;
        let y_px = ky * x + sy * y + ty;
        [x_px * MM_PER_PX, self.height_mm - y_px * MM_PER_PX]
    }
}

struct PathTracer {
    closes_areas: bool,
    done: Vec<Vec<Point>>,
    points: Vec<Point>,
}

impl PathTracer {
    /// Appends a segment and returns the number of new points.
    fn segment(&mut self, segment: PathSegment, page: &PageTransform) -> usize {
        let before = self.points.len();
        match segment {
            PathSegment::MoveTo(to) => {
                self.lift();
                self.points.push(page.place(to));
                return 1;
            }
            PathSegment::LineTo(to) => self.points.push(page.place(to)),
            PathSegment::QuadTo(control, to) => {
                let (control, to) = (page.place(control), page.place(to));
                flatten::quadratic(&mut self.points, control, to, page.error_mm);
            }
            PathSegment::CubicTo(first, second, to) => {
                let points = [first, second, to].map(|p| page.place(p));
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
            self.done.push(std::mem::take(&mut self.points));
        }
    }
}
