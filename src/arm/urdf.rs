//! An arm's description from a URDF by other people: the chain from a base link to a tip link.
//!
//! The file is not trusted. Its size, elements and nesting are bounded, nothing it refers to is
//! opened, and every error names the element and its line. What a URDF cannot describe, such as
//! servos, is assumed, and each assumption is listed.

use std::collections::{BTreeMap, HashMap};

use nalgebra::{Isometry3, Translation3, Unit, UnitQuaternion, Vector3};
use roxmltree::{Document, Node, ParsingOptions};

use super::{
    ArmFile, ArmModel, CapsuleFile, FrameFile, JointFile, ServoFamily, ServoFile,
    SimulationParameters, margin_rad_default, ticks_per_turn_default,
};
use base::nearest;
use base::units::{Finite, JOINTS_MAX};

mod link_shapes;
mod urdf_xml;

pub use urdf_xml::BYTES_MAX;
use urdf_xml::{
    NODES_MAX, NUMBER_MAX, attribute_of, check_bounds, check_depth, child, name_of, number, origin,
    shorten, vector, wrong,
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
    /// Joints to hold still, each with its position in rad or m. A sliding joint must be held.
    pub held: &'a [(String, f64)],
    /// Largest acceleration of every joint, which a URDF does not give.
    pub acceleration_max_rad_s2: f64,
}

impl<'a> UrdfOptions<'a> {
    /// Creates options for the chain from one link to another, with assumed values for the rest.
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
    /// It exceeds a limit of the import.
    #[error("the file has {have} {what}; at most {most} can be read")]
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
    /// An element that is not valid in an arm.
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
/// Fixed and held joints become part of the next joint's origin. Capsules come from collision
/// shapes, or from visual shapes if a link has none: a box's capsule encloses the whole box.
///
/// # Errors
/// [`UrdfError`], which names the element and its line.
pub fn import(text: &str, options: &UrdfOptions<'_>) -> Result<UrdfImport, UrdfError> {
    check_bounds(text)?;
    let parsing = ParsingOptions {
        nodes_limit: NODES_MAX,
        ..ParsingOptions::default()
    };
    let document = Document::parse_with_options(text, parsing)
        .map_err(|error| UrdfError::Xml(error.to_string()))?;
    check_depth(&document)?;
    let robot = UrdfRobot::read(&document)?;
    let joints = robot.chain(options)?;
    let mut draft = ArmDraft::default();
    draft.link(robot.links.get(options.base).copied())?;
    for node in joints {
        draft.joint(node, options)?;
        let child = attribute_of(node, "child", "link")?;
        draft.link(robot.links.get(child).copied())?;
    }
    draft.finish(&robot, options)
}

impl UrdfImport {
    /// Returns the description as TOML, with the assumptions as comments above it.
    ///
    /// # Errors
    /// [`UrdfError::Chain`] where a value has no form in TOML.
    pub fn toml(&self) -> Result<String, UrdfError> {
        let body =
            toml::to_string(&self.file).map_err(|error| UrdfError::Chain(error.to_string()))?;
        let comments = self.assumed.iter().fold(
            String::from("# Imported from a URDF. Check each of these before an arm moves:\n"),
            |head, line| format!("{head}# - {line}\n"),
        );
        Ok(format!("{comments}{body}"))
    }
}

/// A document's links and joints by name.
struct UrdfRobot<'a, 'i> {
    name: String,
    links: HashMap<&'a str, Node<'a, 'i>>,
    /// Each by the link that it carries.
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
        let mut joints_by_name: HashMap<&str, Node<'_, '_>> = HashMap::new();
        for node in root.children() {
            if node.has_tag_name("link") {
                unique(robot.links.insert(name_of(node)?, node), node)?;
            } else if node.has_tag_name("joint") {
                unique(joints_by_name.insert(name_of(node)?, node), node)?;
                let link = attribute_of(node, "child", "link")?;
                if let Some(other) = robot.joints.insert(link, node) {
                    let [link, other] = [link, name_of(other)?].map(shorten);
                    let reason = format!("carries link `{link}`, as joint `{other}` does");
                    return Err(wrong(node, reason));
                }
            }
        }
        Ok(robot)
    }

    /// Returns the joints from the base to the tip.
    fn chain(&self, options: &UrdfOptions<'_>) -> Result<Vec<Node<'a, 'i>>, UrdfError> {
        for link in [options.base, options.tip] {
            if !self.links.contains_key(link) {
                return Err(UrdfError::Chain(self.unknown_link(link)));
            }
        }
        let mut chain = Vec::new();
        let mut link = options.tip;
        while link != options.base {
            let Some(joint) = self.joints.get(link).copied() else {
                return Err(UrdfError::Chain(format!(
                    "link `{}` is not connected to `{}`: its chain begins at `{}`",
                    shorten(options.tip),
                    shorten(options.base),
                    shorten(link)
                )));
            };
            if chain.len() > self.joints.len() {
                return Err(wrong(joint, "is part of a closed loop of joints"));
            }
            chain.push(joint);
            link = attribute_of(joint, "parent", "link")?;
            if !self.links.contains_key(link) {
                let reason = format!("there is no link `{}`", shorten(link));
                return Err(wrong(joint, reason));
            }
        }
        chain.reverse();
        Ok(chain)
    }

    fn unknown_link(&self, link: &str) -> String {
        let mut names: Vec<&str> = self.links.keys().copied().collect();
        names.sort_unstable();
        nearest::sort(link, &mut names);
        let nearest: Vec<String> = names.into_iter().take(5).map(shorten).collect();
        format!(
            "there is no link `{}`; nearest of the {} links: {}",
            shorten(link),
            self.links.len(),
            nearest.join(", ")
        )
    }
}

fn unique(previous: Option<Node<'_, '_>>, node: Node<'_, '_>) -> Result<(), UrdfError> {
    match previous {
        None => Ok(()),
        Some(_) => Err(wrong(node, "its name is used twice")),
    }
}

/// An arm under construction.
#[derive(Default)]
struct ArmDraft {
    joints: Vec<JointFile>,
    capsules: Vec<CapsuleFile>,
    /// Pose of the last visited link in the last joint's frame.
    pose: Isometry3<f64>,
    assumed: Vec<String>,
    /// True if a link since the last joint has a shape of its own.
    has_shape: bool,
}

impl ArmDraft {
    fn link(&mut self, node: Option<Node<'_, '_>>) -> Result<(), UrdfError> {
        let Some(node) = node else { return Ok(()) };
        let moved_by = self.joints.last().map(|joint| joint.name.clone());
        let shapes = link_shapes::of_link(node, &self.pose, moved_by.as_deref())?;
        self.has_shape |= !shapes.capsules.is_empty();
        self.capsules.extend(shapes.capsules);
        self.assumed.extend(shapes.skipped);
        Ok(())
    }

    fn joint(&mut self, node: Node<'_, '_>, options: &UrdfOptions<'_>) -> Result<(), UrdfError> {
        let name = name_of(node)?;
        let kind = node.attribute("type").unwrap_or("");
        let origin = origin(node)?;
        if let Some((_, position)) = options.held.iter().find(|(held, _)| held == name) {
            self.pose *= origin * held_pose(node, kind, *position)?;
            self.assumed
                .push(format!("`{name}` stays fixed at {position}"));
            return Ok(());
        }
        match kind {
            "fixed" => {
                self.pose *= origin;
                Ok(())
            }
            "revolute" | "continuous" => self.turning_joint(node, name, origin, options),
            "prismatic" => Err(wrong(
                node,
                "slides, and an arm has only turning joints: fix it at a position, such as 0.02 m",
            )),
            _ => {
                let kind = shorten(kind);
                let reason =
                    format!("its type is `{kind}`. Valid: revolute, continuous, prismatic, fixed");
                Err(wrong(node, reason))
            }
        }
    }

    fn turning_joint(
        &mut self,
        node: Node<'_, '_>,
        name: &str,
        origin: Isometry3<f64>,
        options: &UrdfOptions<'_>,
    ) -> Result<(), UrdfError> {
        if child(node, "mimic").is_some() {
            return Err(wrong(
                node,
                "follows another joint (<mimic>), which an arm's joint cannot do: fix it at a position",
            ));
        }
        if self.joints.len() == JOINTS_MAX {
            let reason = format!("is joint {}; {JOINTS_MAX} are possible", JOINTS_MAX + 1);
            return Err(wrong(node, reason));
        }
        let origin = self.pose * origin;
        self.add_bone(&origin);
        let limits = UrdfLimit::read(node, &mut self.assumed)?;
        let axis = joint_axis(node)?;
        let id = u8::try_from(self.joints.len() + 1).unwrap_or(u8::MAX);
        let FrameFile { origin_m, rpy_rad } = frame(&origin);
        self.joints.push(JointFile {
            name: name.to_owned(),
            origin_m,
            rpy_rad,
            axis: finite3(axis.into_inner().into()),
            lower_rad: finite(limits.lower_rad),
            upper_rad: finite(limits.upper_rad),
            margin_rad: margin_rad_default(),
            velocity_max_rad_s: finite(limits.velocity_rad_s),
            acceleration_max_rad_s2: finite(options.acceleration_max_rad_s2),
            servos: vec![ServoFile {
                id,
                sign: 1,
                zero_tick: 2048,
                ticks_per_turn: ticks_per_turn_default(),
                dead_band_ticks: 0,
            }],
        });
        self.pose = Isometry3::identity();
        self.has_shape = false;
        Ok(())
    }

    /// Adds a capsule from the last joint to the next for a link without a shape.
    fn add_bone(&mut self, next_joint: &Isometry3<f64>) {
        let moved_by = self.joints.last().map(|joint| joint.name.as_str());
        if self.has_shape {
            return;
        }
        if let Some(bone) = link_shapes::bone(moved_by, next_joint.translation.vector) {
            self.assumed.push(format!(
                "{} has no box, cylinder or sphere, so it becomes a capsule of {:.0} mm radius along its length",
                bone.name,
                link_shapes::BONE_M * 1e3
            ));
            self.capsules.push(bone);
        }
    }

    fn finish(
        mut self,
        robot: &UrdfRobot<'_, '_>,
        options: &UrdfOptions<'_>,
    ) -> Result<UrdfImport, UrdfError> {
        if self.joints.is_empty() {
            return Err(UrdfError::Chain(format!(
                "no joint between `{}` and `{}` turns; an arm has 1 to {JOINTS_MAX} turning joints",
                shorten(options.base),
                shorten(options.tip)
            )));
        }
        self.assumed.insert(0, format!(
            "assumed: servo ids 1 to {}, every sign 1, every zero at count 2048, and at most {} rad/s² for each joint",
            self.joints.len(),
            options.acceleration_max_rad_s2
        ));
        let UrdfOptions { base, tip, .. } = options;
        let file = ArmFile {
            supply_v: None,
            firmware: Vec::new(),
            compensation: None,
            masses: Vec::new(),
            servo: None,
            frame: None,
            frame_before: None,
            like: None,
            name: scene_name(&robot.name),
            about: format!("Imported from a URDF: `{base}` to `{tip}`"),
            family: options.family,
            baud: 1_000_000,
            joints: self.joints,
            held: Vec::new(),
            identity: BTreeMap::new(),
            tool_mount: frame(&self.pose),
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

/// Returns the displacement of a joint that is held at a position in rad or m.
fn held_pose(node: Node<'_, '_>, kind: &str, position: f64) -> Result<Isometry3<f64>, UrdfError> {
    let axis = joint_axis(node)?;
    if !position.is_finite() || position.abs() > NUMBER_MAX {
        return Err(wrong(node, format!("cannot be fixed at {position}")));
    }
    match kind {
        "prismatic" => Ok(Translation3::from(axis.into_inner() * position).into()),
        "revolute" | "continuous" => {
            let rotation = UnitQuaternion::from_axis_angle(&axis, position);
            Ok(Isometry3::from_parts(Translation3::identity(), rotation))
        }
        _ => Err(wrong(node, "does not move, so it needs no position")),
    }
}

/// Returns a joint's axis; URDF's default is x.
fn joint_axis(node: Node<'_, '_>) -> Result<Unit<Vector3<f64>>, UrdfError> {
    let axis = match child(node, "axis") {
        Some(axis) => vector(axis, "xyz", [1.0, 0.0, 0.0])?,
        None => Vector3::x(),
    };
    Unit::try_new(axis, 1e-6).ok_or_else(|| wrong(node, "its axis has no direction"))
}

/// Largest limit of a revolute joint, a whole turn as it is rounded in files; a larger one is in degrees.
const LIMIT_MAX_RAD: f64 = 6.3;

/// Largest speed of a joint for which the file has none: slow for any servo.
const VELOCITY_ASSUMED_RAD_S: f64 = 1.0;

/// A joint's limits.
struct UrdfLimit {
    lower_rad: f64,
    upper_rad: f64,
    velocity_rad_s: f64,
}

impl UrdfLimit {
    fn read(node: Node<'_, '_>, assumed: &mut Vec<String>) -> Result<Self, UrdfError> {
        let limit = child(node, "limit");
        let value = |key: &str| -> Result<Option<f64>, UrdfError> {
            let text = limit.and_then(|limit| limit.attribute(key));
            let value = limit
                .zip(text)
                .map(|(limit, text)| number(limit, key, text));
            value.transpose()
        };
        // Some exporters write 0 for a speed that is not known.
        let velocity_rad_s = match value("velocity")?.unwrap_or(0.0) {
            0.0 => {
                assumed.push(format!(
                    "`{}` has no speed limit; {VELOCITY_ASSUMED_RAD_S} rad/s is assumed",
                    name_of(node)?
                ));
                VELOCITY_ASSUMED_RAD_S
            }
            speed if speed > 0.0 => speed,
            _ => return Err(wrong(node, "needs <limit velocity=\"…\"/> above 0 rad/s")),
        };
        if node.attribute("type") == Some("continuous") {
            assumed.push(format!(
                "`{}` can turn endlessly; it is limited to half a turn each way",
                name_of(node)?
            ));
            return Ok(Self {
                lower_rad: -std::f64::consts::PI,
                upper_rad: std::f64::consts::PI,
                velocity_rad_s,
            });
        }
        // URDF: an absent limit is 0.
        let (lower, upper) = (value("lower")?, value("upper")?);
        let (lower_rad, upper_rad) = (lower.unwrap_or(0.0), upper.unwrap_or(0.0));
        if lower_rad >= upper_rad {
            let reason = format!("its limits {lower_rad} to {upper_rad} rad leave no range");
            return Err(wrong(node, reason));
        }
        if lower_rad.abs().max(upper_rad.abs()) > LIMIT_MAX_RAD {
            let reason = format!(
                "its limits are {lower_rad} to {upper_rad} rad, more than a full turn each way. URDF limits are in radians; these may be in degrees"
            );
            return Err(wrong(node, reason));
        }
        Ok(Self {
            lower_rad,
            upper_rad,
            velocity_rad_s,
        })
    }
}

/// Reduces a name to what a scene can refer to: letters, digits, `-` and `_`.
fn scene_name(name: &str) -> String {
    let is_allowed = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let kept: String = name.chars().filter(is_allowed).collect();
    if kept.is_empty() {
        "imported".to_owned()
    } else {
        kept
    }
}

#[expect(
    clippy::expect_used,
    reason = "numbers in the file are bounded, and so are those computed from them"
)]
fn finite(value: f64) -> Finite {
    Finite::new(value).expect("finite numbers give a finite number")
}

fn finite3(values: [f64; 3]) -> [Finite; 3] {
    values.map(finite)
}

fn frame(pose: &Isometry3<f64>) -> FrameFile {
    let (roll, pitch, yaw) = pose.rotation.euler_angles();
    FrameFile {
        origin_m: finite3(pose.translation.vector.into()),
        rpy_rad: finite3([roll, pitch, yaw]),
    }
}

#[cfg(test)]
mod tests;
