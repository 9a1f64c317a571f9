//! A link's collision shapes as capsules, each holding the whole of its shape.

use nalgebra::{Isometry3, Vector3};
use roxmltree::Node;

use super::urdf_xml::{inner, named, number, origin, three, wrong};
use super::{UrdfError, finite, single};
use crate::CapsuleFile;

/// Radius of what stands for a link without a shape.
pub(super) const BONE_M: f64 = 0.03;
/// Shorter bones are inside their neighbours.
const BONE_M_MIN: f64 = 0.02;
/// Shapes of one link.
const SHAPES_MAX: usize = 32;

/// Capsules made of a link's shapes.
#[derive(Default)]
pub(super) struct LinkShapes {
    pub(super) capsules: Vec<CapsuleFile>,
    /// Shapes that could not become capsules.
    pub(super) skipped: Vec<String>,
}

/// The shapes of a link whose frame is at `to_link` in the frame of the joint before.
pub(super) fn of_link(
    link: Node<'_, '_>,
    to_link: &Isometry3<f64>,
    moved_by: Option<&str>,
) -> Result<LinkShapes, UrdfError> {
    let name = named(link)?;
    let mut shapes = LinkShapes::default();
    for tag in ["collision", "visual"] {
        let found = link.children().filter(|child| child.has_tag_name(tag));
        for (index, shape) in found.enumerate() {
            if index >= SHAPES_MAX {
                return Err(wrong(link, format!("has more than {SHAPES_MAX} shapes")));
            }
            match capsule(shape, to_link)? {
                Some((ends, radius_m)) => {
                    let [from_m, to_m] = ends.map(|end| finite(end.into()));
                    shapes.capsules.push(CapsuleFile {
                        name: numbered(name, shapes.capsules.len()),
                        joint: moved_by.map(str::to_owned),
                        from_m,
                        to_m,
                        radius_m: single(radius_m),
                    });
                }
                None => shapes.skipped.push(format!(
                    "a {tag} shape of link `{name}` is a mesh, which is not opened"
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

/// `None` for a mesh.
fn capsule(
    shape: Node<'_, '_>,
    to_link: &Isometry3<f64>,
) -> Result<Option<CapsuleEnds>, UrdfError> {
    let geometry = inner(shape, "geometry").ok_or_else(|| wrong(shape, "has no <geometry>"))?;
    let pose = to_link * origin(shape)?;
    let Some(kind) = geometry.children().find(Node::is_element) else {
        return Err(wrong(geometry, "is empty"));
    };
    let (half, radius_m) = match kind.tag_name().name() {
        "box" => boxed(kind)?,
        "cylinder" => {
            let half = Vector3::z() * positive(kind, "length")? / 2.0;
            (half, positive(kind, "radius")?)
        }
        "sphere" => (Vector3::zeros(), positive(kind, "radius")?),
        "mesh" => return Ok(None),
        _ => {
            return Err(wrong(
                kind,
                "is no shape; box, cylinder, sphere and mesh are",
            ));
        }
    };
    let ends = [half, -half].map(|end| (pose * nalgebra::Point3::from(end)).coords);
    Ok(Some((ends, radius_m)))
}

/// Along its longest side, and as thick as the other two reach.
fn boxed(kind: Node<'_, '_>) -> Result<(Vector3<f64>, f64), UrdfError> {
    let size = three(kind, "size", [0.0; 3])?;
    if size.min() <= 0.0 {
        return Err(wrong(kind, "needs size=\"x y z\", each above 0 m"));
    }
    let longest = size.imax();
    let mut half = Vector3::zeros();
    let mut across = size / 2.0;
    if let (Some(along), Some(rest)) = (half.get_mut(longest), across.get_mut(longest)) {
        *along = *rest;
        *rest = 0.0;
    }
    Ok((half, across.norm()))
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

/// A capsule from a joint to the next one, where they are far enough apart to have a body.
pub(super) fn bone(moved_by: Option<&str>, to: Vector3<f64>) -> Option<CapsuleFile> {
    (to.norm() >= BONE_M_MIN).then(|| CapsuleFile {
        name: moved_by.map_or_else(|| "base".to_owned(), |joint| format!("after {joint}")),
        joint: moved_by.map(str::to_owned),
        from_m: finite([0.0; 3]),
        to_m: finite(to.into()),
        radius_m: single(BONE_M),
    })
}
