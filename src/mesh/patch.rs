//! A mesh laid out flat around a point: places on it by millimetres, and the other way round.
#![expect(
    clippy::indexing_slicing,
    reason = "triangles name points of the same mesh"
)]

use std::fmt;

use nalgebra::{Isometry3, Matrix2, Point3, Unit, Vector2, Vector3};

use super::clean::CleanMesh;
use super::geodesic_polar::{PolarPoint, polar_map};
use super::smooth_sheet::SmoothSheet;
use super::topology::{NONE, Topology};
use super::triangle_tree::{Bounds, Nearest, TriangleTree};
use super::weld::to_index;
use super::{MeshError, MeshReport, ScanReport};

/// A mesh with a place in millimetres for each of its points.
#[derive(Clone)]
pub struct MeshPatch {
    mesh: Topology,
    tree: TriangleTree,
    /// Normals of triangles; zero without an area.
    faces: Vec<Vector3<f64>>,
    /// Normals of points, weighted by the angles of their triangles.
    normals: Vec<Vector3<f64>>,
    is_at_end: Vec<bool>,
    polar: Vec<PolarPoint>,
    places_mm: Vec<Vector2<f64>>,
    is_laid: Vec<bool>,
    laid: TriangleTree,
    /// What the tip follows; empty until the triangles can be asked.
    smooth: Option<SmoothSheet>,
    /// Shape without its bumps, by which a tool is held.
    coarse: Option<SmoothSheet>,
    middle_mm: Vector2<f64>,
    report: MeshReport,
    scan: Option<ScanReport>,
    uncertainty_mm: f64,
}

/// A point of a patch.
#[derive(Clone, Copy, Debug)]
pub struct PatchPoint {
    /// The point.
    pub point_m: Point3<f64>,
    /// Outward normal.
    pub normal: Unit<Vector3<f64>>,
    /// Direction of increasing x.
    pub x: Unit<Vector3<f64>>,
    /// Outward normal of the shape without bumps of a few centimetres.
    pub hold: Unit<Vector3<f64>>,
}

/// A point in space projected onto a patch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PatchProjection {
    /// Place of the nearest point.
    pub at_mm: [f64; 2],
    /// Height over the mesh; negative below it. Its amount is never more than the distance from the mesh.
    pub height_mm: f64,
    /// Distance from the mesh; negative below it.
    pub obstacle_mm: f64,
    /// False beyond the edge of an open mesh.
    pub is_on_mesh: bool,
}

/// Range of the ratio of an edge's length in millimetres on the patch to its length on the mesh: a
/// triangle beyond it was not laid out but torn.
const LAID: [f64; 2] = [0.4, 2.5];
/// Least ratio of its areas: behind a hole or a fold triangles are squeezed to a line, and nothing can continue them.
const SQUEEZED: f64 = 0.1;
/// Distance beyond the sheet up to which the surface is smooth.
const BEYOND_MM: f64 = 40.0;
/// Distance of the samples of the smooth surface, as a share of an edge of the mesh and in its range.
const STEP_EDGES: f64 = 0.5;
const STEP_MM: [f64; 2] = [0.5, 2.0];
/// Distance of the samples of the shape without bumps, and of the places whose mean each is.
const HOLD_MM: f64 = 40.0;
const HOLD_PLACES: i32 = 5;
/// Places nearer than this to the patch are on it.
const ON_MM: f64 = 1e-6;
/// Two points of the mesh farther apart than this do not lie at one place.
const APART_M: f64 = 5e-5;
/// Sideways distance from an edge below which a point is over it.
const OVER_M: f64 = 1e-9;

/// A feature of a triangle that a point is nearest to.
struct Foot {
    /// Normal that tells the side.
    normal: Vector3<f64>,
    /// True at the edge of an open mesh.
    is_at_end: bool,
}

impl fmt::Debug for MeshPatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MeshPatch({:?})", self.report)
    }
}

impl MeshPatch {
    /// Lays a mesh out around the middle that it was cleaned for, which gets the middle of a sheet from
    /// its lower left to its upper right corner.
    ///
    /// # Errors
    /// A direction to the right along the normal.
    pub fn new(
        clean: CleanMesh,
        right: &Vector3<f64>,
        sheet_mm: [[f64; 2]; 2],
    ) -> Result<Self, MeshError> {
        let CleanMesh {
            mesh,
            tree,
            seed,
            report,
        } = clean;
        let polar = polar_map(&mesh, &seed, right)?;
        let [low_mm, high_mm] = sheet_mm.map(Vector2::from);
        let middle_mm = (low_mm + high_mm) / 2.0;
        let places_mm = polar
            .iter()
            .map(|polar| middle_mm + offset_mm(polar.distance_m, polar.angle_rad));
        let places_mm: Vec<Vector2<f64>> = places_mm.collect();
        let (faces, normals) = normals(&mesh);
        let is_laid: Vec<bool> = (0..mesh.triangles.len())
            .map(|triangle| is_laid(&mesh, &places_mm, triangle))
            .collect();
        let all = (0..mesh.triangles.len()).filter(|triangle| is_laid[*triangle]);
        let flat = |place: Vector2<f64>| Point3::new(place.x, place.y, 0.0);
        let laid = all.map(|triangle| {
            let corners = mesh.triangles[triangle];
            let corners = corners.map(|corner| flat(places_mm[corner as usize]));
            (corners, to_index(triangle))
        });
        let patch = Self {
            smooth: None,
            coarse: None,
            laid: TriangleTree::new(laid.collect()),
            is_at_end: ends(&mesh),
            mesh,
            tree,
            faces,
            normals,
            polar,
            places_mm,
            is_laid,
            middle_mm,
            report,
            scan: None,
            uncertainty_mm: 0.0,
        };
        Ok(patch.smoothed([low_mm, high_mm]))
    }

    /// Adds the smooth surfaces around a sheet.
    fn smoothed(mut self, [low_mm, high_mm]: [Vector2<f64>; 2]) -> Self {
        let beyond = Vector2::repeat(BEYOND_MM);
        let area_mm = [low_mm - beyond, high_mm + beyond].map(Into::into);
        let step_mm = mean_edge_mm(&self.mesh) * STEP_EDGES;
        let step_mm = step_mm.clamp(STEP_MM[0], STEP_MM[1]);
        let smooth = SmoothSheet::new(area_mm, step_mm, |place| self.on_triangles(place).point_m);
        self.smooth = Some(smooth);
        let coarse = SmoothSheet::new(area_mm, HOLD_MM, |place| self.mean_around(place));
        self.coarse = Some(coarse);
        self
    }

    /// Notes how it was made of points alone, and by how much more it may be off.
    #[must_use]
    pub fn known_to(mut self, scan: Option<ScanReport>, more_mm: f64) -> Self {
        self.uncertainty_mm = scan.map_or(0.0, |scan| scan.uncertainty_mm) + more_mm;
        self.scan = scan;
        self
    }

    /// Returns by how much its height may be off.
    #[must_use]
    pub fn uncertainty_mm(&self) -> f64 {
        self.uncertainty_mm
    }

    /// Returns a line for each kind of change against the file, and for a scan one about it.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let scan = self.scan.iter().flat_map(ScanReport::lines);
        scan.chain(self.report.lines()).collect()
    }

    /// Returns the changes against the file.
    #[must_use]
    pub fn report(&self) -> &MeshReport {
        &self.report
    }

    /// Returns the triangles' corners, for pictures.
    pub fn triangles(&self) -> impl Iterator<Item = [Point3<f64>; 3]> + '_ {
        (0..self.mesh.triangles.len()).map(|triangle| self.mesh.corners(triangle))
    }

    /// Returns the point at a place, on a smooth surface near the mesh. Beyond the mesh its nearest
    /// triangle continues.
    #[must_use]
    pub fn at(&self, at_mm: [f64; 2]) -> PatchPoint {
        let smooth = self.smooth.as_ref().and_then(|smooth| smooth.at(at_mm));
        let smooth = smooth.and_then(|at| {
            let normal = at.normal()?;
            let coarse = self.coarse.as_ref().and_then(|coarse| coarse.at(at_mm));
            Some(PatchPoint {
                point_m: at.point_m,
                normal,
                hold: coarse.and_then(|at| at.normal()).unwrap_or(normal),
                x: Unit::try_new(at.along, 0.0)?,
            })
        });
        smooth.unwrap_or_else(|| self.on_triangles(at_mm))
    }

    fn on_triangles(&self, at_mm: [f64; 2]) -> PatchPoint {
        let place = Point3::new(at_mm[0], at_mm[1], 0.0);
        let Some(nearest) = self.laid.nearest(&place) else {
            return self.nowhere();
        };
        let on_mesh = self.on_mesh(nearest.triangle, &nearest.weights);
        let [along, across] = self.sides_m(nearest.triangle);
        let beyond = (place - nearest.point).xy();
        let lift = |by_mm: Vector2<f64>| {
            let sides = self.laid_sides_mm(nearest.triangle).try_inverse();
            let by = sides.map_or_else(Vector2::zeros, |inverse| inverse * by_mm);
            let most_m = by_mm.norm() / 1e3 / LAID[0];
            (along * by.x + across * by.y).cap_magnitude(most_m)
        };
        let normal = self.normal_at(nearest.triangle, &nearest.weights);
        let x = lift(Vector2::x());
        PatchPoint {
            point_m: on_mesh + lift(beyond),
            normal,
            hold: normal,
            x: Unit::new_normalize(x - normal.scale(x.dot(&normal))),
        }
    }

    /// Projects a point onto its nearest point of the mesh. Beyond the edge of an open mesh the
    /// height is that over the plane through the edge, and the place continues the nearest triangle.
    #[must_use]
    pub fn project(&self, point_m: &Point3<f64>) -> PatchProjection {
        let Some(nearest) = self.tree.nearest(point_m) else {
            return PatchProjection {
                at_mm: self.middle_mm.into(),
                height_mm: f64::INFINITY,
                obstacle_mm: f64::INFINITY,
                is_on_mesh: false,
            };
        };
        let foot = self.foot(&nearest);
        let from_mesh = point_m - nearest.point;
        let over = from_mesh.dot(&foot.normal);
        let distance_m = nearest.square.sqrt();
        let beyond = from_mesh - foot.normal.scale(over);
        let is_on_mesh = !foot.is_at_end || beyond.norm() <= OVER_M;
        let height_m = match is_on_mesh {
            true => distance_m.copysign(over),
            false => over,
        };
        let place = self.place_mm(&nearest);
        let beyond_mm = match is_on_mesh {
            true => Vector2::zeros(),
            false => self.laid_by_mm(nearest.triangle, &beyond),
        };
        PatchProjection {
            at_mm: (place + beyond_mm).into(),
            height_mm: height_m * 1e3,
            obstacle_mm: if is_on_mesh { height_m } else { distance_m } * 1e3,
            is_on_mesh,
        }
    }

    /// Projects a point of a frame in which the mesh lies at a pose. The gate asks for hundreds of thousands of points of a plan, and
    /// in a crate that is not optimized the change of frames alone takes as long as the search.
    #[must_use]
    pub fn project_from(&self, pose: &Isometry3<f64>, point_m: &Point3<f64>) -> PatchProjection {
        self.project(&pose.inverse_transform_point(point_m))
    }

    /// Returns whether exactly one point of the mesh lies at a place: none does beyond the mesh, and
    /// several do behind a bump, where the geodesics cross. The smooth surface must be near it, which it
    /// is not beside such a fold.
    #[must_use]
    pub fn is_on(&self, at_mm: [f64; 2]) -> bool {
        let around = Bounds {
            low: [at_mm[0] - ON_MM, at_mm[1] - ON_MM, 0.0],
            high: [at_mm[0] + ON_MM, at_mm[1] + ON_MM, 0.0],
        };
        let place = Point3::new(at_mm[0], at_mm[1], 0.0);
        let (mut first, mut is_unique) = (None, true);
        self.laid.overlapping(&around, |triangle, corners| {
            let (weights, at) = super::triangle_tree::nearest_on(corners, &place);
            if (at - place).norm() > ON_MM {
                return;
            }
            let point = self.on_mesh(triangle, &weights);
            let other = *first.get_or_insert(point);
            is_unique &= (other - point).norm() < APART_M;
        });
        let near_m = self.smooth.as_ref().map_or(0.0, SmoothSheet::step_mm) / 1e3;
        let is_near = |point: Point3<f64>| (self.at(at_mm).point_m - point).norm() <= near_m;
        is_unique && first.is_some_and(is_near)
    }

    /// Returns the mean of the points around a place.
    fn mean_around(&self, [x_mm, y_mm]: [f64; 2]) -> Point3<f64> {
        let step_mm = HOLD_MM / f64::from(HOLD_PLACES);
        let steps = || (-HOLD_PLACES / 2..=HOLD_PLACES / 2).map(|n| f64::from(n) * step_mm);
        let places = steps().flat_map(|dx| steps().map(move |dy| [x_mm + dx, y_mm + dy]));
        let sum: Vector3<f64> = places.map(|place| self.at(place).point_m.coords).sum();
        Point3::from(sum / f64::from(HOLD_PLACES * HOLD_PLACES))
    }

    fn nowhere(&self) -> PatchPoint {
        PatchPoint {
            point_m: self.mesh.points.first().copied().unwrap_or_default(),
            normal: Vector3::z_axis(),
            hold: Vector3::z_axis(),
            x: Vector3::x_axis(),
        }
    }

    fn on_mesh(&self, triangle: usize, [a, b, c]: &[f64; 3]) -> Point3<f64> {
        let [pa, pb, pc] = self.mesh.corners(triangle);
        Point3::from(pa.coords * *a + pb.coords * *b + pc.coords * *c)
    }

    fn normal_at(&self, triangle: usize, weights: &[f64; 3]) -> Unit<Vector3<f64>> {
        let corners = self.mesh.triangles[triangle].iter().zip(weights);
        let sum = corners.map(|(corner, weight)| self.normals[*corner as usize] * *weight);
        Unit::try_new(sum.sum(), 1e-9).unwrap_or_else(|| {
            Unit::try_new(self.faces[triangle], 1e-9).unwrap_or_else(Vector3::z_axis)
        })
    }

    fn foot(&self, nearest: &Nearest) -> Foot {
        let triangle = nearest.triangle;
        let is_used = nearest.weights.map(|weight| weight > 0.0);
        match is_used {
            [true, true, true] => Foot {
                normal: self.faces[triangle],
                is_at_end: false,
            },
            [true, true, false] => self.edge_foot(triangle, 0),
            [false, true, true] => self.edge_foot(triangle, 1),
            [true, false, true] => self.edge_foot(triangle, 2),
            [_, is_second, is_third] => {
                let corner = usize::from(is_second) + 2 * usize::from(is_third);
                let point = self.mesh.triangles[triangle][corner] as usize;
                Foot {
                    normal: self.normals[point],
                    is_at_end: self.is_at_end[point],
                }
            }
        }
    }

    fn edge_foot(&self, triangle: usize, edge: usize) -> Foot {
        let other = self.mesh.neighbours[triangle][edge];
        let own = self.faces[triangle];
        match other {
            NONE => Foot {
                normal: own,
                is_at_end: true,
            },
            other => Foot {
                normal: own + self.faces[other as usize],
                is_at_end: false,
            },
        }
    }

    /// Returns the place of a nearest point. Where the mesh was torn, as behind a ball, it is as far
    /// from the middle as the point is.
    fn place_mm(&self, nearest: &Nearest) -> Vector2<f64> {
        let corners = self.mesh.triangles[nearest.triangle];
        let weighted = corners.iter().zip(nearest.weights);
        if self.is_laid[nearest.triangle] {
            let places = weighted.map(|(corner, weight)| self.places_mm[*corner as usize] * weight);
            return places.sum();
        }
        let distances = weighted
            .clone()
            .map(|(corner, weight)| self.polar[*corner as usize].distance_m * weight);
        let distance_m = distances.sum();
        let heaviest = weighted.max_by(|a, b| a.1.total_cmp(&b.1));
        let angle_rad = heaviest.map_or(0.0, |(corner, _)| self.polar[*corner as usize].angle_rad);
        self.middle_mm + offset_mm(distance_m, angle_rad)
    }

    fn sides_m(&self, triangle: usize) -> [Vector3<f64>; 2] {
        let [a, b, c] = self.mesh.corners(triangle);
        [b - a, c - a]
    }

    fn laid_sides_mm(&self, triangle: usize) -> Matrix2<f64> {
        let corners = self.mesh.triangles[triangle];
        let [a, b, c] = corners.map(|corner| self.places_mm[corner as usize]);
        Matrix2::from_columns(&[b - a, c - a])
    }

    /// Returns a vector along a triangle as one on the patch.
    fn laid_by_mm(&self, triangle: usize, by_m: &Vector3<f64>) -> Vector2<f64> {
        let [along, across] = self.sides_m(triangle);
        let (aa, ab, bb) = (along.dot(&along), along.dot(&across), across.dot(&across));
        let gram = Matrix2::new(aa, ab, ab, bb);
        let by = Vector2::new(along.dot(by_m), across.dot(by_m));
        let solved = gram.try_inverse().map(|inverse| inverse * by);
        solved.map_or_else(Vector2::zeros, |by| self.laid_sides_mm(triangle) * by)
    }
}

fn mean_edge_mm(mesh: &Topology) -> f64 {
    let edges = (0..mesh.triangles.len()).map(|triangle| {
        let [a, b, c] = mesh.corners(triangle);
        (b - a).norm() + (c - b).norm() + (a - c).norm()
    });
    edges.sum::<f64>() / 3.0 / mesh.triangles.len().max(1) as f64 * 1e3
}

fn offset_mm(distance_m: f64, angle_rad: f64) -> Vector2<f64> {
    let (sin, cos) = angle_rad.sin_cos();
    Vector2::new(cos, sin) * (distance_m * 1e3)
}

/// Returns the normals of triangles and of points.
fn normals(mesh: &Topology) -> (Vec<Vector3<f64>>, Vec<Vector3<f64>>) {
    let mut points = vec![Vector3::zeros(); mesh.points.len()];
    let faces = (0..mesh.triangles.len()).map(|triangle| {
        let across = mesh.area_vector(triangle).try_normalize(0.0);
        let normal = across.unwrap_or_else(Vector3::zeros);
        let corners = mesh.corners(triangle);
        for corner in 0..3 {
            let at = corners[corner];
            let [one, other] = [1, 2].map(|step| corners[(corner + step) % 3] - at);
            points[mesh.triangles[triangle][corner] as usize] += normal * one.angle(&other);
        }
        normal
    });
    let faces = faces.collect();
    let points = points.into_iter().map(|sum: Vector3<f64>| {
        let unit = sum.try_normalize(1e-9);
        unit.unwrap_or_else(Vector3::zeros)
    });
    (faces, points.collect())
}

/// Returns which points lie on an edge of an open mesh.
fn ends(mesh: &Topology) -> Vec<bool> {
    let mut is_at_end = vec![false; mesh.points.len()];
    for (corners, neighbours) in mesh.triangles.iter().zip(&mesh.neighbours) {
        for edge in 0..3 {
            if neighbours[edge] == NONE {
                is_at_end[corners[edge] as usize] = true;
                is_at_end[corners[(edge + 1) % 3] as usize] = true;
            }
        }
    }
    is_at_end
}

/// Returns whether a triangle was laid out the right side up and without tearing.
fn is_laid(mesh: &Topology, places_mm: &[Vector2<f64>], triangle: usize) -> bool {
    let corners = mesh.triangles[triangle];
    let [a, b, c] = corners.map(|corner| places_mm[corner as usize]);
    let is_whole = (0..3).all(|edge| {
        let [from, to] = [edge, (edge + 1) % 3].map(|corner| corners[corner] as usize);
        let mesh_mm = (mesh.points[to] - mesh.points[from]).norm() * 1e3;
        let ratio = (places_mm[to] - places_mm[from]).norm() / mesh_mm;
        (LAID[0]..=LAID[1]).contains(&ratio)
    });
    let [along, across] = [corners[1], corners[2]]
        .map(|corner| (mesh.points[corner as usize] - mesh.points[corners[0] as usize]) * 1e3);
    let mesh_mm2 = along.cross(&across).norm();
    let laid_mm2 = (b - a).perp(&(c - a));
    is_whole && laid_mm2 > SQUEEZED * mesh_mm2
}
