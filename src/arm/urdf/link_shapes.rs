//! A link's collision shapes as capsules, each enclosing its whole shape.

use nalgebra::{Isometry3, Vector3};
use roxmltree::Node;

use super::urdf_xml::{child, name_of, number, origin, vector, wrong};
use super::{UrdfError, finite, finite3};
use crate::CapsuleFile;

/// Radius of the capsule of a link without a shape.
pub(super) const BONE_M: f64 = 0.03;
/// Shorter bones lie inside their neighbours and need no capsule.
const BONE_M_MIN: f64 = 0.02;
/// Largest number of shapes of one link.
const SHAPES_MAX: usize = 32;

/// Capsules made of a link's shapes.
#[derive(Default)]
pub(super) struct LinkShapes {
    pub(super) capsules: Vec<CapsuleFile>,
    /// Shapes that could not become capsules.
    pub(super) skipped: Vec<String>,
}

/// Returns the shapes of a link whose frame is at `to_link` in the frame of the joint before.
pub(super) fn of_link(
    link: Node<'_, '_>,
    to_link: &Isometry3<f64>,
    moved_by: Option<&str>,
) -> Result<LinkShapes, UrdfError> {
    let name = name_of(link)?;
    let mut shapes = LinkShapes::default();
    for tag in ["collision", "visual"] {
        let nodes = link.children().filter(|node| node.has_tag_name(tag));
        for (index, shape) in nodes.enumerate() {
            if index >= SHAPES_MAX {
                return Err(wrong(link, format!("has more than {SHAPES_MAX} shapes")));
            }
            match capsule(shape, to_link)? {
                Some((ends, radius_m)) => {
                    let [from_m, to_m] = ends.map(|end| finite3(end.into()));
                    shapes.capsules.push(CapsuleFile {
                        name: numbered(name, shapes.capsules.len()),
                        joint: moved_by.map(str::to_owned),
                        from_m,
                        to_m,
                        radius_m: finite(radius_m),
                    });
                }
                None => shapes.skipped.push(format!(
                    "a {tag} shape of link `{name}` is a mesh; meshes cannot be read"
                )),
            }
        }
        if !shapes.capsules.is_empty() {
            break;
        }
    }
    shapes.skipped.dedup();
    Ok(shapes)
}

fn numbered(name: &str, before: usize) -> String {
    match before {
        0 => name.to_owned(),
        before => format!("{name} {}", before + 1),
    }
}

/// A capsule's two ends and its radius.
type CapsuleEnds = ([Vector3<f64>; 2], f64);

/// Returns the capsule that encloses a shape; `None` for a mesh.
fn capsule(
    shape: Node<'_, '_>,
    to_link: &Isometry3<f64>,
) -> Result<Option<CapsuleEnds>, UrdfError> {
    let geometry = child(shape, "geometry").ok_or_else(|| wrong(shape, "has no <geometry>"))?;
    let pose = to_link * origin(shape)?;
    let Some(kind) = geometry.children().find(Node::is_element) else {
        return Err(wrong(geometry, "is empty"));
    };
    let (half_axis, radius_m) = match kind.tag_name().name() {
        "box" => box_axis(kind)?,
        "cylinder" => {
            let half_axis = Vector3::z() * positive(kind, "length")? / 2.0;
            (half_axis, positive(kind, "radius")?)
        }
        "sphere" => (Vector3::zeros(), positive(kind, "radius")?),
        "mesh" => return Ok(None),
        _ => {
            return Err(wrong(
                kind,
                "is not a shape. Valid: box, cylinder, sphere, mesh",
            ));
        }
    };
    let ends = [half_axis, -half_axis].map(|end| (pose * nalgebra::Point3::from(end)).coords);
    Ok(Some((ends, radius_m)))
}

/// Returns half the axis of a box's capsule, along its longest side, and the radius that encloses the other two.
fn box_axis(kind: Node<'_, '_>) -> Result<(Vector3<f64>, f64), UrdfError> {
    let size = vector(kind, "size", [0.0; 3])?;
    if size.min() <= 0.0 {
        return Err(wrong(kind, "needs size=\"x y z\", each above 0 m"));
    }
    let longest = size.imax();
    let mut half_axis = Vector3::zeros();
    let mut across = size / 2.0;
    if let (Some(along), Some(side)) = (half_axis.get_mut(longest), across.get_mut(longest)) {
        *along = std::mem::take(side);
    }
    Ok((half_axis, across.norm()))
}

fn positive(kind: Node<'_, '_>, key: &str) -> Result<f64, UrdfError> {
    let text = kind.attribute(key);
    let text = text.ok_or_else(|| wrong(kind, format!("needs {key}")))?;
    match number(kind, key, text)? {
        value if value > 0.0 => Ok(value),
        value => Err(wrong(
            kind,
            format!("{key} is {value}; it must be above 0 m"),
        )),
    }
}

/// Returns a capsule from a joint to the next one, if they are far enough apart to have a body.
pub(super) fn bone(moved_by: Option<&str>, to_m: Vector3<f64>) -> Option<CapsuleFile> {
    (to_m.norm() >= BONE_M_MIN).then(|| CapsuleFile {
        name: moved_by.map_or_else(|| "base".to_owned(), |joint| format!("after {joint}")),
        joint: moved_by.map(str::to_owned),
        from_m: finite3([0.0; 3]),
        to_m: finite3(to_m.into()),
        radius_m: finite(BONE_M),
    })
}
