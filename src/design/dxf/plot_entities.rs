//! Turns entities and blocks of a DXF into strokes.

use std::collections::{BTreeMap, HashMap};
use std::f64::consts::TAU;

use base::plane::{Point, distance};

use super::super::collect_strokes::StrokeCollector;
use super::super::{DesignError, DesignStroke};
use super::curves::{BSpline, EllipseArc};
use super::fit_spline::FitSpline;
use super::group_codes::{DxfEntity, DxfSection};
use super::layers::{DxfLayers, OUTSIDE_BLOCKS, lower_case, pen_of};

/// Deepest nesting of blocks.
const DEPTH_MAX: usize = 16;

/// An affine map of the plane: `x · [a, b] + y · [c, d] + [e, f]`.
#[derive(Clone, Copy)]
struct PlaneMap([f64; 6]);

impl PlaneMap {
    fn apply(&self, [x, y]: Point) -> Point {
        let [a, b, c, d, e, f] = self.0;
        [x * a + y * c + e, x * b + y * d + f]
    }

    /// Returns the map that applies `inner` first, then this one.
    fn after(&self, inner: Self) -> Self {
        let [a, b, c, d, e, f] = inner.0;
        let [x, y] = [[a, b], [c, d]].map(|v| self.direction(v));
        let origin = self.apply([e, f]);
        Self([x[0], x[1], y[0], y[1], origin[0], origin[1]])
    }

    fn direction(&self, [x, y]: Point) -> Point {
        let [a, b, c, d, _, _] = self.0;
        [x * a + y * c, x * b + y * d]
    }

    /// Returns the larger of the factors by which the axes are scaled.
    fn scale_max(&self) -> f64 {
        let [a, b, c, d, _, _] = self.0;
        a.hypot(b).max(c.hypot(d))
    }
}

/// A named block: its base point and its entities.
struct DxfBlock<'t> {
    base: Point,
    entities: Vec<DxfEntity<'t>>,
}

/// Context in which entities are drawn: the map of the block that they are in, its layer and its colour.
#[derive(Clone, Copy)]
pub(super) struct BlockPlace<'t> {
    map: PlaneMap,
    layer: &'t str,
    colour: Option<[u8; 3]>,
    depth: usize,
}

impl BlockPlace<'_> {
    /// Returns the larger of the factors by which it scales.
    pub(super) fn scale(&self) -> f64 {
        self.map.scale_max()
    }
}

pub(super) struct DxfPlotter<'c, 't> {
    all: StrokeCollector<'c>,
    layers: DxfLayers,
    /// Blocks by name, in lower case.
    blocks: HashMap<String, DxfBlock<'t>>,
    mm_per_unit: f64,
    remaining_entities: usize,
    entities_max: usize,
    losses: BTreeMap<String, usize>,
}

impl<'c, 't> DxfPlotter<'c, 't> {
    pub(super) fn new(
        sections: &[DxfSection<'t>],
        mm_per_unit: f64,
        strokes: StrokeCollector<'c>,
    ) -> Result<Self, DesignError> {
        let entities_max = strokes.elements_max();
        Ok(Self {
            all: strokes,
            layers: DxfLayers::of(sections)?,
            blocks: blocks(sections)?,
            mm_per_unit,
            remaining_entities: entities_max,
            entities_max,
            losses: BTreeMap::new(),
        })
    }

    pub(super) fn draw(&mut self, entities: &[DxfEntity<'t>]) -> Result<(), DesignError> {
        let mm = self.mm_per_unit;
        let place = BlockPlace {
            map: PlaneMap([mm, 0.0, 0.0, mm, 0.0, 0.0]),
            layer: "0",
            colour: OUTSIDE_BLOCKS,
            depth: 0,
        };
        self.draw_entities(entities, place)
    }

    pub(super) fn finish(self) -> (StrokeCollector<'c>, BTreeMap<String, usize>) {
        (self.all, self.losses)
    }

    fn draw_entities(
        &mut self,
        entities: &[DxfEntity<'t>],
        place: BlockPlace<'t>,
    ) -> Result<(), DesignError> {
        let mut rest = entities;
        while let Some((entity, next)) = rest.split_first() {
            self.count(entity)?;
            // The vertices of an old polyline follow it, up to the end of their sequence.
            let vertex_count = next
                .iter()
                .take_while(|e| matches!(e.kind, "VERTEX" | "SEQEND"))
                .count();
            let (vertices, after) = next.split_at_checked(vertex_count).unwrap_or((next, &[]));
            rest = after;
            self.draw_entity(entity, vertices, place)?;
        }
        Ok(())
    }

    /// Counts entities as they are drawn, blocks expanded, so that a few nested blocks cannot take
    /// endless time.
    fn count(&mut self, entity: &DxfEntity<'t>) -> Result<(), DesignError> {
        let remaining = self.remaining_entities.checked_sub(1);
        self.remaining_entities = remaining.ok_or_else(|| DesignError::TooMany {
            at: entity.place(),
            what: "entities, with blocks expanded",
            max: self.entities_max,
        })?;
        Ok(())
    }

    fn draw_entity(
        &mut self,
        entity: &DxfEntity<'t>,
        vertices: &[DxfEntity<'t>],
        place: BlockPlace<'t>,
    ) -> Result<(), DesignError> {
        // Layer 0 in a block stands for the layer that the block is inserted on.
        let name = entity.text(8).unwrap_or("0");
        let layer = if name == "0" { place.layer } else { name };
        let is_in_paper = entity.flags(67)? == 1;
        if !self.layers.is_shown(layer) || is_in_paper || entity.flags(60)? == 1 {
            return self.note_loss("entities that are hidden");
        }
        let Some(extrusion_map) = extrusion_map(entity)? else {
            return self.note_loss("entities outside the plane");
        };
        let place = BlockPlace { layer, ..place };
        let in_own_plane = BlockPlace {
            map: place.map.after(extrusion_map),
            ..place
        };
        match entity.kind {
            "LINE" => {
                let line = vec![entity.point(10)?, entity.point(11)?];
                self.stroke(entity, place, &line)
            }
            "POINT" => self.stroke(entity, place, &[entity.point(10)?]),
            "CIRCLE" | "ARC" => self.arc(entity, in_own_plane),
            "ELLIPSE" => self.ellipse(entity, place),
            "LWPOLYLINE" => {
                // One without a point is damaged.
                entity.point(10)?;
                let (points, bulges) = (entity.points(10)?, entity.numbers_by_point(42)?);
                self.polyline(entity, in_own_plane, &points, &bulges)
            }
            // Meshes and surfaces are not lines.
            "POLYLINE" if entity.flags(70)? & 0b101_0000 != 0 => self.note_loss("POLYLINE mesh"),
            "POLYLINE" => {
                // Control vertices of a spline are not on the line.
                let drawn: Vec<&DxfEntity<'_>> = (vertices.iter())
                    .filter(|v| v.kind == "VERTEX")
                    .filter(|v| !matches!(v.flags(70), Ok(flags) if flags & 16 != 0))
                    .collect();
                let points: Result<Vec<Point>, _> = drawn.iter().map(|v| v.point(10)).collect();
                let bulges: Result<Vec<f64>, _> = drawn.iter().map(|v| v.number(42, 0.0)).collect();
                self.polyline(entity, in_own_plane, &points?, &bulges?)
            }
            "SPLINE" => self.spline(entity, place),
            "ATTRIB" if entity.flags(70)? & 1 != 0 => self.note_loss("entities that are hidden"),
            "TEXT" | "ATTRIB" => self.text(entity, in_own_plane),
            "MTEXT" => self.mtext(entity, in_own_plane),
            "INSERT" => self.insert(entity, in_own_plane),
            "VERTEX" | "SEQEND" | "VIEWPORT" | "ATTDEF" => Ok(()),
            other => self.note_loss(other),
        }
    }

    pub(super) fn note_loss(&mut self, what: &str) -> Result<(), DesignError> {
        // A file may have any number of kinds; their names are bounded by its size, and their count here.
        let what: String = what.chars().take(60).collect();
        let is_named = self.losses.len() < 20 || self.losses.contains_key(&what);
        let what = if is_named { what } else { "others".to_owned() };
        *self.losses.entry(what).or_default() += 1;
        Ok(())
    }

    pub(super) fn note_capital(&mut self, capital_mm: f64) {
        self.all.note_capital(capital_mm);
    }

    pub(super) fn stroke(
        &mut self,
        entity: &DxfEntity<'t>,
        place: BlockPlace<'t>,
        points: &[Point],
    ) -> Result<(), DesignError> {
        let template = DesignStroke {
            colour: self.layers.colour_of(entity, place.layer, place.colour)?,
            pen: pen_of(place.layer),
            layer: Some(place.layer.to_owned()),
            source: entity.place(),
            ..DesignStroke::default()
        };
        let points = points.iter().map(|point| place.map.apply(*point));
        self.all.push(points.collect(), &template)
    }

    fn arc(&mut self, entity: &DxfEntity<'t>, place: BlockPlace<'t>) -> Result<(), DesignError> {
        let (centre, radius) = (entity.point(10)?, entity.required(40)?);
        let (from, to) = match entity.kind {
            "ARC" => (entity.required(50)?, entity.required(51)?),
            _ => (0.0, 0.0),
        };
        let arc = EllipseArc::of_circle(centre, radius, from.to_radians(), to.to_radians());
        self.stroke(
            entity,
            place,
            &arc.points(place.map.scale_max(), self.all.chord_error_mm),
        )
    }

    fn ellipse(
        &mut self,
        entity: &DxfEntity<'t>,
        place: BlockPlace<'t>,
    ) -> Result<(), DesignError> {
        let major = entity.point(11)?;
        let ratio = entity.required(40)?;
        // Seen from below, angles run the other way.
        let is_below = entity.number(230, 1.0)? < 0.0;
        let minor_ratio = if is_below { -ratio } else { ratio };
        let (from, to) = (entity.number(41, 0.0)?, entity.number(42, TAU)?);
        let unit_arc = EllipseArc::of_circle([0.0; 2], 1.0, from, to);
        let arc = EllipseArc {
            centre: entity.point(10)?,
            major,
            minor: [-major[1] * minor_ratio, major[0] * minor_ratio],
            ..unit_arc
        };
        self.stroke(
            entity,
            place,
            &arc.points(place.map.scale_max(), self.all.chord_error_mm),
        )
    }

    fn polyline(
        &mut self,
        entity: &DxfEntity<'t>,
        place: BlockPlace<'t>,
        points: &[Point],
        bulges: &[f64],
    ) -> Result<(), DesignError> {
        let is_closed = entity.flags(70)? & 1 != 0;
        let mut line: Vec<Point> = points.first().copied().into_iter().collect();
        let closing_point = points.first().filter(|_| is_closed && points.len() > 1);
        let next = points.iter().skip(1).chain(closing_point);
        for ((from, to), bulge) in points.iter().zip(next).zip(bulges) {
            if bulge.abs() > 1e-9 && distance(*from, *to) > 0.0 {
                let arc = EllipseArc::of_bulge(*from, *to, *bulge);
                let arc = arc.points(place.map.scale_max(), self.all.chord_error_mm);
                line.extend(arc.into_iter().skip(1));
                if let Some(last) = line.last_mut() {
                    *last = *to;
                }
            } else {
                line.push(*to);
            }
        }
        self.stroke(entity, place, &line)
    }

    fn spline(&mut self, entity: &DxfEntity<'t>, place: BlockPlace<'t>) -> Result<(), DesignError> {
        let (controls, through) = (entity.points(10)?, entity.points(11)?);
        let (scale, error_mm) = (place.map.scale_max(), self.all.chord_error_mm);
        if controls.is_empty() && through.len() > 1 {
            let spline = FitSpline {
                through,
                start: entity.direction(12)?,
                end: entity.direction(13)?,
                is_closed: entity.flags(70)? & 1 != 0,
            };
            return self.stroke(entity, place, &spline.points(error_mm / scale));
        }
        let degree = usize::try_from(entity.flags(71)?).unwrap_or(0);
        let spline = BSpline {
            degree,
            knots: entity.numbers(40)?,
            controls,
            weights: entity.numbers(41)?,
        };
        match spline.points(scale, error_mm) {
            Some(points) => self.stroke(entity, place, &points),
            None => self.note_loss("SPLINE without control points and knots that fit"),
        }
    }

    fn insert(&mut self, entity: &DxfEntity<'t>, place: BlockPlace<'t>) -> Result<(), DesignError> {
        let name = lower_case(entity.text(2).unwrap_or(""));
        let Some(block) = self.blocks.get(&name) else {
            return self.note_loss("INSERT of a block that is not in the file");
        };
        if place.depth == DEPTH_MAX {
            return Err(DesignError::TooMany {
                at: entity.place(),
                what: "nested blocks",
                max: DEPTH_MAX,
            });
        }
        let (base, entities) = (block.base, block.entities.clone());
        let (sin, cos) = entity.number(50, 0.0)?.to_radians().sin_cos();
        let (sx, sy) = (entity.number(41, 1.0)?, entity.number(42, 1.0)?);
        let insertion = entity.point(10)?;
        let colour = self.layers.colour_of(entity, place.layer, place.colour)?;
        let count = |code: i32| Ok::<_, DesignError>(entity.flags(code)?.clamp(1, 1000));
        for row in 0..count(71)? {
            for column in 0..count(70)? {
                self.count(entity)?;
                let dx = column as f64 * entity.number(44, 0.0)?;
                let dy = row as f64 * entity.number(45, 0.0)?;
                let rotated = PlaneMap([cos, sin, -sin, cos, insertion[0], insertion[1]]);
                let scaled = PlaneMap([sx, 0.0, 0.0, sy, dx - base[0] * sx, dy - base[1] * sy]);
                let inner = BlockPlace {
                    map: place.map.after(rotated.after(scaled)),
                    depth: place.depth + 1,
                    colour,
                    ..place
                };
                self.draw_entities(&entities, inner)?;
            }
        }
        Ok(())
    }
}

/// Returns whether an entity's coordinates are the world's: its extrusion then moves nothing.
fn is_in_world(entity: &DxfEntity<'_>) -> Result<bool, DesignError> {
    Ok(match entity.kind {
        "LINE" | "POINT" | "SPLINE" => true,
        // A polyline in space.
        "POLYLINE" => entity.flags(70)? & 8 != 0,
        _ => false,
    })
}

/// Returns the map of the plane that an entity lies in: mirrored if it is seen from below, `None`
/// if it is tilted.
fn extrusion_map(entity: &DxfEntity<'_>) -> Result<Option<PlaneMap>, DesignError> {
    if is_in_world(entity)? {
        return Ok(Some(PlaneMap([1.0, 0.0, 0.0, 1.0, 0.0, 0.0])));
    }
    let (x, y) = (entity.number(210, 0.0)?, entity.number(220, 0.0)?);
    let z = entity.number(230, 1.0)?;
    if x.abs() > 1e-6 || y.abs() > 1e-6 {
        return Ok(None);
    }
    let side = if z < 0.0 { -1.0 } else { 1.0 };
    Ok(Some(PlaneMap([side, 0.0, 0.0, 1.0, 0.0, 0.0])))
}

fn blocks<'t>(sections: &[DxfSection<'t>]) -> Result<HashMap<String, DxfBlock<'t>>, DesignError> {
    let mut blocks = HashMap::new();
    let mut open_block: Option<(String, DxfBlock<'t>)> = None;
    let sections = sections.iter().filter(|section| section.name == "BLOCKS");
    for entity in sections.flat_map(|section| &section.entities) {
        match entity.kind {
            "BLOCK" => {
                let block = DxfBlock {
                    base: [entity.number(10, 0.0)?, entity.number(20, 0.0)?],
                    entities: Vec::new(),
                };
                open_block = Some((lower_case(entity.text(2).unwrap_or("")), block));
            }
            "ENDBLK" => blocks.extend(open_block.take()),
            _ => {
                if let Some((_, block)) = &mut open_block {
                    block.entities.push(entity.clone());
                }
            }
        }
    }
    Ok(blocks)
}
