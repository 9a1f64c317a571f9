//! An arm's description from a URDF by other people: the chain from a base link to a tip link.
//!
//! The file is not trusted. Its size, elements and nesting are bounded, nothing it refers to is
//! opened, and every complaint names the element and its line. What a URDF does not know, such as
//! servos, is assumed and said so.

use std::collections::{BTreeMap, HashMap};

use nalgebra::{Isometry3, Translation3, Unit, UnitQuaternion, Vector3};
use roxmltree::{Document, Node, ParsingOptions};

use super::{
    ArmFile, ArmModel, CapsuleFile, FrameFile, JointFile, ServoFamily, ServoFile,
    SimulationParameters, margin_rad_default, ticks_per_turn_default,
};
use base::units::{Finite, JOINTS_MAX};

mod link_shapes;
mod urdf_xml;

pub use urdf_xml::BYTES_MAX;
use urdf_xml::{
    NODES_MAX, NUMBER_MAX, bounded, inner, named, number, origin, shallow, shorten, text_of, three,
    wrong,
};

/// Choices that a URDF leaves open.
#[derive(Clone, Debug)]
pub struct UrdfOptions<'a> {
    /// The link that stands still, such as `base_link`.
    pub base: &'a str,
    /// The link that a tool is mounted to.
    pub tip: &'a str,
    /// Family of the servos that turn the joints.
    pub family: ServoFamily,
    /// Joints that are to be held still, and where, in rad or m. One that slides must be.
    pub held: &'a [(String, f64)],
    /// Hardest acceleration of every joint: a URDF says none.
    pub acceleration_max_rad_s2: f64,
}

impl<'a> UrdfOptions<'a> {
    /// From one link to another, with what is assumed where nothing is said.
    #[must_use]
    pub const fn new(base: &'a str, tip: &'a str) -> Self {
        Self {
            base,
            tip,
            family: ServoFamily::Dynamixel2,
            held: &[],
            acceleration_max_rad_s2: 10.0,
        }
    }
}

/// An arm's description and what was assumed to make it.
#[derive(Clone, Debug)]
pub struct UrdfImport {
    /// The description; [`ArmModel::new`] takes it.
    pub file: ArmFile,
    /// Assumptions that a person must check before a real arm moves by this file.
    pub assumed: Vec<String>,
}

/// Reason that a URDF cannot become an arm.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum UrdfError {
    /// More than is read.
    #[error("the file has {have} {what}; at most {most} are read")]
    TooMuch {
        /// Bytes, levels of nesting and the like.
        what: &'static str,
        /// Actual number.
        have: usize,
        /// Largest number.
        most: usize,
    },
    /// It is not XML.
    #[error("not XML: {0}")]
    Xml(String),
    /// An element that no arm can have.
    #[error("line {line}, {element}: {what}")]
    Element {
        /// Counted from 1.
        line: u32,
        /// Such as `<joint name="elbow">`.
        element: String,
        /// The value, the limit and the fix.
        what: String,
    },
    /// The links and joints do not make an arm.
    #[error("{0}")]
    Chain(String),
}

/// Imports the arm between two links of a URDF.
///
/// Fixed and held joints become part of the next one's origin. Capsules come from collision
/// shapes, or from visual shapes without them: a box's capsule holds the whole box.
///
/// # Errors
/// [`UrdfError`], by the element and its line.
pub fn import(text: &str, ask: &UrdfOptions<'_>) -> Result<UrdfImport, UrdfError> {
    bounded(text)?;
    let options = ParsingOptions {
        nodes_limit: NODES_MAX,
        ..ParsingOptions::default()
    };
    let document = Document::parse_with_options(text, options)
        .map_err(|error| UrdfError::Xml(error.to_string()))?;
    shallow(&document)?;
    let robot = UrdfRobot::read(&document)?;
    let joints = robot.chain(ask)?;
    let mut draft = ArmDraft::default();
    draft.link(robot.links.get(ask.base).copied())?;
    for node in joints {
        draft.joint(node, ask)?;
        draft.link(robot.links.get(text_of(node, "child", "link")?).copied())?;
    }
    draft.finish(&robot, ask)
}

impl UrdfImport {
    /// The description as TOML, with what was assumed as comments above it.
    ///
    /// # Errors
    /// [`UrdfError::Chain`] where a value has no form in TOML.
    pub fn toml(&self) -> Result<String, UrdfError> {
        let body =
            toml::to_string(&self.file).map_err(|error| UrdfError::Chain(error.to_string()))?;
        let comments = self.assumed.iter().fold(
            String::from("# Imported from a URDF. Look at each of these before an arm moves:\n"),
            |head, line| format!("{head}# - {line}\n"),
        );
        Ok(format!("{comments}{body}"))
    }
}

/// A document's links and joints by name.
struct UrdfRobot<'a, 'i> {
    name: String,
    links: HashMap<&'a str, Node<'a, 'i>>,
    /// By the link that each carries.
    joints: HashMap<&'a str, Node<'a, 'i>>,
}

impl<'a, 'i> UrdfRobot<'a, 'i> {
    fn read(document: &'a Document<'i>) -> Result<Self, UrdfError> {
        let root = document.root_element();
        if !root.has_tag_name("robot") {
            return Err(wrong(root, "is not <robot>; a URDF begins with <robot>"));
        }
        let mut robot = Self {
            name: root.attribute("name").map_or_else(String::new, shorten),
            links: HashMap::new(),
            joints: HashMap::new(),
        };
        let mut names: HashMap<&str, Node<'_, '_>> = HashMap::new();
        for node in root.children() {
            if node.has_tag_name("link") {
                unique(robot.links.insert(named(node)?, node), node)?;
            } else if node.has_tag_name("joint") {
                unique(names.insert(named(node)?, node), node)?;
                let child = text_of(node, "child", "link")?;
                if let Some(other) = robot.joints.insert(child, node) {
                    let [child, other] = [child, named(other)?].map(shorten);
                    let why = format!("carries link `{child}`, as joint `{other}` does");
                    return Err(wrong(node, why));
                }
            }
        }
        Ok(robot)
    }

    /// The joints from the base to the tip.
    fn chain(&self, ask: &UrdfOptions<'_>) -> Result<Vec<Node<'a, 'i>>, UrdfError> {
        for link in [ask.base, ask.tip] {
            if !self.links.contains_key(link) {
                return Err(UrdfError::Chain(self.unknown(link)));
            }
        }
        let mut chain = Vec::new();
        let mut link = ask.tip;
        while link != ask.base {
            let Some(joint) = self.joints.get(link).copied() else {
                return Err(UrdfError::Chain(format!(
                    "link `{}` is not carried by `{}`: its chain begins at `{}`",
                    shorten(ask.tip),
                    shorten(ask.base),
                    shorten(link)
                )));
            };
            if chain.len() > self.joints.len() {
                return Err(wrong(joint, "is part of a ring of joints"));
            }
            chain.push(joint);
            link = text_of(joint, "parent", "link")?;
            if !self.links.contains_key(link) {
                let why = format!("there is no link `{}`", shorten(link));
                return Err(wrong(joint, why));
            }
        }
        chain.reverse();
        Ok(chain)
    }

    fn unknown(&self, link: &str) -> String {
        let mut known: Vec<&str> = self.links.keys().copied().collect();
        known.sort_unstable();
        known.sort_by_key(|name| strsim::damerau_levenshtein(name, link));
        let nearest: Vec<String> = known.into_iter().take(5).map(shorten).collect();
        format!(
            "there is no link `{}`; the nearest of {}: {}",
            shorten(link),
            self.links.len(),
            nearest.join(", ")
        )
    }
}

fn unique(before: Option<Node<'_, '_>>, node: Node<'_, '_>) -> Result<(), UrdfError> {
    match before {
        None => Ok(()),
        Some(_) => Err(wrong(node, "its name is used twice")),
    }
}

/// An arm in the making.
#[derive(Default)]
struct ArmDraft {
    joints: Vec<JointFile>,
    capsules: Vec<CapsuleFile>,
    /// From the last joint's frame to where the chain has come.
    since: Isometry3<f64>,
    assumed: Vec<String>,
    /// True if the last visited link has a shape of its own.
    has_shape: bool,
}

impl ArmDraft {
    fn link(&mut self, node: Option<Node<'_, '_>>) -> Result<(), UrdfError> {
        let Some(node) = node else { return Ok(()) };
        let moved_by = self.joints.last().map(|joint| joint.name.clone());
        let shapes = link_shapes::of_link(node, &self.since, moved_by.as_deref())?;
        self.has_shape |= !shapes.capsules.is_empty();
        self.capsules.extend(shapes.capsules);
        self.assumed.extend(shapes.skipped);
        Ok(())
    }

    fn joint(&mut self, node: Node<'_, '_>, ask: &UrdfOptions<'_>) -> Result<(), UrdfError> {
        let name = named(node)?;
        let kind = node.attribute("type").unwrap_or("");
        let here = origin(node)?;
        let at = ask.held.iter().find(|(held, _)| held == name);
        if let Some((_, at)) = at {
            let still = held_pose(node, kind, *at)?;
            self.since *= here * still;
            self.assumed
                .push(format!("`{name}` is held at {at} and is not moved"));
            return Ok(());
        }
        match kind {
            "fixed" => {
                self.since *= here;
                Ok(())
            }
            "revolute" | "continuous" => self.turning(node, name, here, ask),
            "prismatic" => Err(wrong(
                node,
                "slides; an arm has turning joints only: hold it at a place, such as 0.02 m",
            )),
            _ => {
                let kind = shorten(kind);
                let why = format!(
                    "its type is `{kind}`; revolute, continuous, prismatic and fixed are known"
                );
                Err(wrong(node, why))
            }
        }
    }

    fn turning(
        &mut self,
        node: Node<'_, '_>,
        name: &str,
        here: Isometry3<f64>,
        ask: &UrdfOptions<'_>,
    ) -> Result<(), UrdfError> {
        if inner(node, "mimic").is_some() {
            return Err(wrong(
                node,
                "follows another joint (<mimic>), which an arm's joint cannot: hold it still",
            ));
        }
        if self.joints.len() == JOINTS_MAX {
            let why = format!("is joint {}; {JOINTS_MAX} are possible", JOINTS_MAX + 1);
            return Err(wrong(node, why));
        }
        let origin = self.since * here;
        self.bone(&origin);
        let limits = UrdfLimit::of(node, &mut self.assumed)?;
        let axis = turning_axis(node)?;
        let id = u8::try_from(self.joints.len() + 1).unwrap_or(u8::MAX);
        let FrameFile { origin_m, rpy_rad } = frame(&origin);
        self.joints.push(JointFile {
            name: name.to_owned(),
            origin_m,
            rpy_rad,
            axis: finite(axis.into_inner().into()),
            lower_rad: single(limits.lower_rad),
            upper_rad: single(limits.upper_rad),
            margin_rad: margin_rad_default(),
            velocity_max_rad_s: single(limits.velocity_rad_s),
            acceleration_max_rad_s2: single(ask.acceleration_max_rad_s2),
            servos: vec![ServoFile {
                id,
                sign: 1,
                zero_tick: 2048,
                ticks_per_turn: ticks_per_turn_default(),
                dead_band_ticks: 0,
            }],
        });
        self.since = Isometry3::identity();
        self.has_shape = false;
        Ok(())
    }

    /// A link without a shape is a capsule from its joint to the next.
    fn bone(&mut self, to: &Isometry3<f64>) {
        let moved_by = self.joints.last().map(|joint| joint.name.as_str());
        if self.has_shape {
            return;
        }
        if let Some(bone) = link_shapes::bone(moved_by, to.translation.vector) {
            self.assumed.push(format!(
                "{} has no box, cylinder or sphere; a capsule of {:.0} mm radius along its bone stands for it",
                bone.name,
                link_shapes::BONE_M * 1e3
            ));
            self.capsules.push(bone);
        }
    }

    fn finish(
        mut self,
        robot: &UrdfRobot<'_, '_>,
        ask: &UrdfOptions<'_>,
    ) -> Result<UrdfImport, UrdfError> {
        if self.joints.is_empty() {
            return Err(UrdfError::Chain(format!(
                "no joint between `{}` and `{}` turns; an arm has 1 to {JOINTS_MAX} that do",
                shorten(ask.base),
                shorten(ask.tip)
            )));
        }
        self.assumed.insert(0, format!(
            "servo ids are 1 to {}, all signs 1 and all zeros at tick 2048; no joint accelerates harder than {} rad/s²",
            self.joints.len(),
            ask.acceleration_max_rad_s2
        ));
        let file = ArmFile {
            compensation: None,
            like: None,
            name: plain(&robot.name),
            about: format!("Imported from a URDF: `{}` to `{}`", ask.base, ask.tip),
            family: ask.family,
            baud: 1_000_000,
            joints: self.joints,
            held: Vec::new(),
            identity: BTreeMap::new(),
            tool_mount: frame(&self.since),
            capsules: self.capsules,
            may_touch: Vec::new(),
            simulation: SimulationParameters::default(),
        };
        ArmModel::new(file.clone()).map_err(|error| UrdfError::Chain(error.to_string()))?;
        Ok(UrdfImport {
            file,
            assumed: self.assumed,
        })
    }
}

/// Returns the pose of a joint that is not moved.
fn held_pose(node: Node<'_, '_>, kind: &str, at: f64) -> Result<Isometry3<f64>, UrdfError> {
    let axis = turning_axis(node)?;
    if !at.is_finite() || at.abs() > NUMBER_MAX {
        return Err(wrong(node, format!("cannot be held at {at}")));
    }
    match kind {
        "prismatic" => Ok(Translation3::from(axis.into_inner() * at).into()),
        "revolute" | "continuous" => {
            let turn = UnitQuaternion::from_axis_angle(&axis, at);
            Ok(Isometry3::from_parts(Translation3::identity(), turn))
        }
        _ => Err(wrong(node, "does not move and cannot be held elsewhere")),
    }
}

/// The axis; along x where none is given, as URDF has it.
fn turning_axis(node: Node<'_, '_>) -> Result<Unit<Vector3<f64>>, UrdfError> {
    let axis = match inner(node, "axis") {
        Some(axis) => three(axis, "xyz", [1.0, 0.0, 0.0])?,
        None => Vector3::x(),
    };
    Unit::try_new(axis, 1e-6).ok_or_else(|| wrong(node, "its axis has no direction"))
}

/// A joint's limits.
struct UrdfLimit {
    lower_rad: f64,
    upper_rad: f64,
    velocity_rad_s: f64,
}

impl UrdfLimit {
    fn of(node: Node<'_, '_>, assumed: &mut Vec<String>) -> Result<Self, UrdfError> {
        let limit = inner(node, "limit");
        let value = |key: &str| -> Result<Option<f64>, UrdfError> {
            let text = limit.and_then(|limit| limit.attribute(key));
            let read = limit
                .zip(text)
                .map(|(limit, text)| number(limit, key, text));
            read.transpose()
        };
        let velocity_rad_s = value("velocity")?
            .filter(|speed| *speed > 0.0)
            .ok_or_else(|| wrong(node, "needs <limit velocity=\"…\"/> above 0 rad/s"))?;
        if node.attribute("type") == Some("continuous") {
            assumed.push(format!(
                "`{}` turns without end; it is kept to half a turn either way",
                named(node)?
            ));
            return Ok(Self {
                lower_rad: -std::f64::consts::PI,
                upper_rad: std::f64::consts::PI,
                velocity_rad_s,
            });
        }
        // URDF: absent is 0.
        let (lower, upper) = (value("lower")?, value("upper")?);
        let (lower_rad, upper_rad) = (lower.unwrap_or(0.0), upper.unwrap_or(0.0));
        if lower_rad >= upper_rad {
            let why = format!("its limits {lower_rad} to {upper_rad} rad leave no range");
            return Err(wrong(node, why));
        }
        Ok(Self {
            lower_rad,
            upper_rad,
            velocity_rad_s,
        })
    }
}

/// A name that a scene can say: letters, digits, `-` and `_`.
fn plain(name: &str) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let kept: String = name.chars().filter(is_plain).collect();
    if kept.is_empty() {
        "imported".to_owned()
    } else {
        kept
    }
}

#[expect(
    clippy::expect_used,
    reason = "what is read is bounded, and what is made of it is as well"
)]
fn single(value: f64) -> Finite {
    Finite::new(value).expect("a finite number from finite ones")
}

fn finite(of: [f64; 3]) -> [Finite; 3] {
    of.map(single)
}

fn frame(of: &Isometry3<f64>) -> FrameFile {
    let (roll, pitch, yaw) = of.rotation.euler_angles();
    FrameFile {
        origin_m: finite(of.translation.vector.into()),
        rpy_rad: finite([roll, pitch, yaw]),
    }
}

#[cfg(test)]
mod tests;
