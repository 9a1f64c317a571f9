//! Reasons why a file is not a surface to draw on.

use nalgebra::Point3;

use super::{BYTES_MAX, POINTS_MAX, TRIANGLES_MAX};

/// Reason why a file is not a surface to draw on.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MeshError {
    /// The name ends in no known format.
    #[error("its name must end in .ply, .stl or .obj. Next: export the mesh as one of them")]
    Format,
    /// The file has too many bytes.
    #[error("it has {bytes} bytes; {BYTES_MAX} is the limit. Next: simplify the mesh")]
    Bytes {
        /// Length of the file.
        bytes: u64,
    },
    /// The file has, or claims, too many points or triangles.
    #[error(
        "it has {count} {what}; at most {} can be read. Next: simplify the mesh",
        if *what == "points" { POINTS_MAX } else { TRIANGLES_MAX }
    )]
    TooMany {
        /// "points" or "triangles".
        what: &'static str,
        /// Their number.
        count: u64,
    },
    /// The file ends too early.
    #[error(
        "it ends before {what} {number} of {count}: the file is cut off. Next: export it again"
    )]
    CutOff {
        /// "point", "triangle" or "row".
        what: &'static str,
        /// Number of the first that is missing, from 1.
        number: u64,
        /// Number of all that the file states.
        count: u64,
    },
    /// A header or line cannot be read.
    #[error("line {line}: {why}. Next: export it again, preferably as binary PLY")]
    Line {
        /// The line, from 1.
        line: usize,
        /// The defect.
        why: String,
    },
    /// A coordinate is not a finite number.
    #[error("point {number} is not finite. Next: remove it in a mesh editor")]
    NotFinite {
        /// The point, from 1.
        number: usize,
    },
    /// A triangle names a point that is not there.
    #[error(
        "triangle {triangle} names point {index}; the file has {points} points. Next: export it again"
    )]
    Index {
        /// The triangle, from 1.
        triangle: usize,
        /// The named point, from 1.
        index: i64,
        /// Number of points read.
        points: usize,
    },
    /// A face has more corners than are read.
    #[error("face {face} has more than {} corners. Next: triangulate the mesh", super::ply::CORNERS_MAX - 1)]
    Corners {
        /// The face, from 1.
        face: usize,
    },
    /// The file has no triangle.
    #[error(
        "it has no triangle and only {points} points; a scan needs at least {}. Next: export the faces too",
        super::scan::POINTS_MIN
    )]
    NoTriangle {
        /// Number of points.
        points: usize,
    },
    /// A scan that tells no height well enough.
    #[error(
        "its {points} points are too few or too uneven to give heights accurate to {limit_mm} mm. Next: scan it closer, or export the faces"
    )]
    Scan {
        /// Number of points.
        points: usize,
        /// The largest uncertainty that is drawn on.
        limit_mm: f64,
    },
    /// Too many triangles have no area.
    #[error(
        "{flat} of {all} triangles have no area (at most 1 in {}). Next: check the unit, or remesh it",
        super::clean::FLAT_SHARE
    )]
    Flat {
        /// Triangles without an area.
        flat: usize,
        /// All triangles.
        all: usize,
    },
    /// The mesh is larger or smaller than anything that an arm draws on.
    #[error("it is {size_m} m long; 0.005 to 10 m are possible. Next: state its `unit`")]
    Size {
        /// Its longest side.
        size_m: f64,
    },
    /// An edge belongs to more than two triangles.
    #[error(
        "{triangles} triangles share an edge at {} (at most 2). Next: remove the inner walls",
        place(at_m)
    )]
    SharedEdge {
        /// Middle of the edge.
        at_m: Point3<f64>,
        /// Number of triangles.
        triangles: usize,
    },
    /// The surface has one side only.
    #[error(
        "its outer side becomes its inner side at {}, as on a Möbius strip. Next: cut it there",
        place(at_m)
    )]
    OneSided {
        /// Middle of an edge where they swap.
        at_m: Point3<f64>,
    },
    /// Two triangles cross.
    #[error(
        "the mesh crosses itself at {}. Next: repair it in a mesh editor",
        place(at_m)
    )]
    Crosses {
        /// A place on both.
        at_m: Point3<f64>,
    },
    /// The line along the sheet's normal through its middle misses the mesh.
    #[error(
        "there is no mesh above or below the sheet's middle ({x_mm}, {y_mm}) mm. Next: move the mesh there, or name a `point_m` on it"
    )]
    Misses {
        /// The middle, to the right.
        x_mm: f64,
        /// The middle, up.
        y_mm: f64,
    },
    /// The named point is not on the mesh.
    #[error(
        "`point_m` is {off_mm} mm from the mesh; {limit_mm} mm is the limit. Next: write {}, its nearest point",
        metres(nearest_m)
    )]
    OffMesh {
        /// Its distance from the mesh.
        off_mm: f64,
        /// Largest distance.
        limit_mm: f64,
        /// Nearest point of the mesh.
        nearest_m: Point3<f64>,
    },
    /// The outer side of an open mesh cannot be told.
    #[error(
        "the mesh is open and stands upright at {}, so its outer side is unknown. Next: turn the sheet so that its normal points away from the mesh there",
        place(at_m)
    )]
    UnknownSide {
        /// The design's middle.
        at_m: Point3<f64>,
    },
    /// The direction to the right points into the surface.
    #[error(
        "`direction` points along the surface's normal at the design's middle. Next: name a direction along the surface"
    )]
    Direction,
}

/// Writes a place in millimetres.
fn place(at_m: &Point3<f64>) -> String {
    let [x, y, z]: [f64; 3] = at_m.coords.into();
    format!("({:.2}, {:.2}, {:.2}) mm", x * 1e3, y * 1e3, z * 1e3)
}

/// Writes a point as a scene file does.
fn metres(at_m: &Point3<f64>) -> String {
    let [x, y, z]: [f64; 3] = at_m.coords.into();
    format!("point_m = [{x:.5}, {y:.5}, {z:.5}]")
}
