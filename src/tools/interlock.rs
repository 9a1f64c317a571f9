//! Arms over one table: which of a node's arms can touch each other, and so are enabled one at a time.

use std::fmt;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use nalgebra::{Rotation3, Vector3};
use serde_json::{Map, Value, json};

use super::calibration_check::check_same_zeros;
use super::node::{AT_REST_RAD, check_is_for};
use super::team::PartOfArm;
use super::{AttachedArm, Node};
use base::units::JointVector;
use base::wording::with_statement;
use call::{ArrivalStamp, Refusal, refusal};
use config::{ArmEntry, ArmZone, NodeFile};
use permit::{ArmInterlock, ObstructionCheck};
use scene::{AxisAlignedBox, Scene, SceneError, SceneLibrary};

/// Smallest gap between the spheres that two arms can reach, in metres: it allows for a pen's thickness and for errors in
/// measuring the distance of two bases.
const SEPARATION_M: f64 = 0.1;

/// What rounding the places of bases in two files may make of them, in metres.
const BASE_ROUNDING_M: f64 = 0.001;

/// Growth of a tool's length allowed after the node's start, in metres, for example by a new calibration.
const TOOL_GROWTH_M: f64 = 0.02;

/// Two arms of a node, and what keeps them from touching.
#[derive(Clone, Debug, PartialEq)]
pub struct ArmSeparation {
    /// The names of both.
    pub arms: [String; 2],
    /// Means that keeps the arms apart.
    pub kind: SeparationKind,
}

/// Means that keeps two arms from touching.
#[derive(Clone, Debug, PartialEq)]
pub enum SeparationKind {
    /// A person's statement: `apart = true` of this arm.
    ByWord(String),
    /// Their bases stand farther apart than both can reach.
    ByDistance {
        /// Distance of the bases, in metres.
        gap_m: f64,
        /// Reach of each arm from its base, in metres.
        reach_m: [f64; 2],
    },
    /// Each stays in a zone of the node file, and the zones do not meet.
    ByZone,
    /// Only that one of them is enabled at a time.
    OneAtATime(String),
}

impl ArmSeparation {
    /// Returns whether one of the two must not be enabled while the other is.
    #[must_use]
    pub fn is_one_at_a_time(&self) -> bool {
        matches!(self.kind, SeparationKind::OneAtATime(_))
    }

    fn other(&self, arm: &str) -> Option<&str> {
        match &self.arms {
            [one, other] if one == arm => Some(other),
            [other, one] if one == arm => Some(other),
            _ => None,
        }
    }

    fn is_between(&self, arms: &[&Arc<AttachedArm>]) -> bool {
        let has = |name: &String| arms.iter().any(|arm| arm.name == *name);
        self.arms.iter().all(has)
    }
}

impl fmt::Display for ArmSeparation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [one, other] = &self.arms;
        match &self.kind {
            SeparationKind::ByWord(arm) => write!(
                f,
                "`{one}` and `{other}` cannot reach each other, according to the node file (`apart = true` of `{arm}`)"
            ),
            SeparationKind::ByDistance { gap_m, reach_m } => write!(
                f,
                "`{one}` and `{other}` cannot reach each other: their bases stand {gap_m:.2} m apart, and they reach {:.2} m and {:.2} m",
                reach_m[0], reach_m[1]
            ),
            SeparationKind::ByZone => write!(
                f,
                "`{one}` and `{other}` stay in their zones, which do not overlap"
            ),
            SeparationKind::OneAtATime(reason) => write!(
                f,
                "only one of `{one}` and `{other}` may be enabled at a time: {reason}"
            ),
        }
    }
}

/// Returns what keeps each two arms of a node apart. Simulated arms without a place stand on tables of their own.
#[must_use]
pub fn separations(file: &NodeFile, library: &SceneLibrary) -> Vec<ArmSeparation> {
    let may_share_table = |entry: &&ArmEntry| !entry.is_simulated() || entry.base_m.is_some();
    let arms: Vec<&ArmEntry> = file.arms.iter().filter(may_share_table).collect();
    let is_placed = |entry: &&&ArmEntry| entry.base_m.is_some();
    // The reach reads every scene, so it is computed only if places are compared.
    let are_compared = arms.iter().filter(is_placed).count() > 1;
    let reach_m = |entry| are_compared.then(|| reach_m(entry, library)).flatten();
    let all: Vec<(&ArmEntry, Option<f64>)> =
        arms.into_iter().map(|arm| (arm, reach_m(arm))).collect();
    let later = |index: usize| all.iter().skip(index + 1);
    let pairs = all.iter().enumerate();
    let pairs = pairs.flat_map(|(index, one)| later(index).map(move |other| (one, other)));
    let separations = pairs.map(|((one, one_m), (other, other_m))| ArmSeparation {
        arms: [one.name.clone(), other.name.clone()],
        kind: separation([one, other], [*one_m, *other_m]),
    });
    separations.collect()
}

/// Statement about an order to enable that is refused.
const NOTHING_ENABLED: &str = "nothing was enabled";

/// Returns what keeps two arms with these reaches apart; `None` is an unknown reach.
fn separation(arms: [&ArmEntry; 2], reach_m: [Option<f64>; 2]) -> SeparationKind {
    if let Some(arm) = arms.iter().find(|arm| arm.apart) {
        return SeparationKind::ByWord(arm.name.clone());
    }
    if let [Some(one), Some(other)] = arms.map(|arm| arm.zone)
        && are_separate(one, other)
    {
        return SeparationKind::ByZone;
    }
    let [Some(one_m), Some(other_m)] = arms.map(|arm| arm.base_m) else {
        return SeparationKind::OneAtATime(
            "the node file neither gives the places of both bases (`base_m`) nor says that the arms cannot reach each other (`apart = true`)".to_owned(),
        );
    };
    let [Some(one_reach_m), Some(other_reach_m)] = reach_m else {
        return SeparationKind::OneAtATime("their reach is unknown".to_owned());
    };
    let squares = one_m.iter().zip(other_m).map(|(a, b)| (a - b).powi(2));
    let gap_m = squares.sum::<f64>().sqrt();
    let needed_m = one_reach_m + other_reach_m + SEPARATION_M;
    // Written so that NaN is refused too.
    if gap_m >= needed_m {
        SeparationKind::ByDistance {
            gap_m,
            reach_m: [one_reach_m, other_reach_m],
        }
    } else {
        SeparationKind::OneAtATime(format!(
            "their bases are {gap_m:.2} m apart but must be {needed_m:.2} m apart (reaches of {one_reach_m:.2} m and {other_reach_m:.2} m, plus {SEPARATION_M:.2} m)"
        ))
    }
}

/// Returns whether a gap lies between two zones, in the direction of an axis.
fn are_separate(one: ArmZone, other: ArmZone) -> bool {
    let is_beyond = |one: ArmZone, other: ArmZone| {
        let mut axes = one.min_m.iter().zip(&other.max_m);
        axes.any(|(min, max)| min - max >= SEPARATION_M)
    };
    is_beyond(one, other) || is_beyond(other, one)
}

/// Returns the direction from the frame that arms share to the base frame of one of them.
fn to_own_frame(entry: &ArmEntry) -> Rotation3<f64> {
    let yaw_rad = entry.base_yaw_deg.unwrap_or_default().to_radians();
    Rotation3::from_axis_angle(&Vector3::z_axis(), -yaw_rad)
}

/// Returns an arm's zone in its base frame.
fn own_zone(entry: &ArmEntry) -> Option<AxisAlignedBox> {
    let (zone, base_m) = (entry.zone?, Vector3::from(entry.base_m?));
    let [a, b] = [zone.min_m, zone.max_m]
        .map(|corner| to_own_frame(entry) * (Vector3::from(corner) - base_m));
    Some(AxisAlignedBox {
        min_m: a.inf(&b).into(),
        max_m: a.sup(&b).into(),
    })
}

/// Returns the check that an arm is in its zone, unless it is limp: only there do motions keep it.
fn zone_check(entry: &ArmEntry, arm: &Arc<AttachedArm>) -> Option<ObstructionCheck> {
    let (zone, arm) = (own_zone(entry)?, Arc::downgrade(arm));
    Some(Box::new(move |_| {
        let arm = arm.upgrade()?;
        let snapshot = arm.motion.snapshot();
        let measured = snapshot.measured.filter(|_| snapshot.energised)?;
        let model = arm.motion.arm();
        let frames = model.chain.frames(&measured.position_rad);
        let is_outside = model.capsules.iter().any(|part| {
            let moving = (part.joints_before > 0).then_some(part.joints_before);
            let frame = moving.and_then(|joints| frames.get(joints));
            let ends = frame.map(|frame| [frame * part.from_m, frame * part.to_m]);
            let mut inside_m = ends
                .into_iter()
                .flatten()
                .flat_map(|end| zone.inside_m(&end));
            inside_m.any(|m| m < part.radius_m)
        });
        is_outside.then(|| {
            format!(
                "`{}` stands outside its zone, with its torque on. Next: `steadyhand torque-off`, and move it into its zone by hand",
                arm.name
            )
        })
    }))
}

/// Returns the check that a scene which two arms share has their bases where the node file has them.
fn base_check(own: &ArmEntry, other: &ArmEntry) -> Option<ObstructionCheck> {
    let between_m = Vector3::from(other.base_m?) - Vector3::from(own.base_m?);
    let is_turned = own.base_yaw_deg.is_some();
    let between_m = to_own_frame(own) * between_m;
    let (own, other) = (own.name.clone(), other.name.clone());
    Some(Box::new(move |scene: &Scene| {
        let beside = scene.beside.iter().find(|beside| beside.name == other)?;
        let in_scene_m = beside.base_in_ours.translation.vector;
        let off_m = match is_turned {
            true => (in_scene_m - between_m).norm(),
            // Without a direction only distance and height can be compared.
            false => {
                let across_m = in_scene_m.xy().norm() - between_m.xy().norm();
                across_m.hypot(in_scene_m.z - between_m.z)
            }
        };
        (off_m > beside.uncertainty_m + BASE_ROUNDING_M).then(|| {
            format!(
                "scene `{}` places the bases of `{own}` and `{other}` {:.3} m apart, but the node file says {:.3} m, a difference of {:.0} mm (at most {:.0} mm). Next: measure the distance, and correct `base_m` in one of the files",
                scene.shared_name(),
                in_scene_m.norm(),
                between_m.norm(),
                off_m * 1e3,
                (beside.uncertainty_m + BASE_ROUNDING_M) * 1e3
            )
        })
    }))
}

/// Returns the check that no pen of a scene reaches farther than the reach with which an arm stays out of the others'.
fn reach_check(max_m: f64) -> ObstructionCheck {
    Box::new(move |scene: &Scene| {
        let reach_m = scene.reach_m();
        (reach_m > max_m).then(|| {
            format!(
                "in scene `{}` the arm reaches {reach_m:.3} m from its base (at most {max_m:.3} m, so that it cannot touch other arms). Next: restart the node; it computes the reach again",
                scene.title()
            )
        })
    })
}

/// Returns how far an arm can reach from its base with any tool of any scene, in metres; `None` where its file cannot be read.
/// A scene that cannot be read cannot be enabled either.
fn reach_m(entry: &ArmEntry, library: &SceneLibrary) -> Option<f64> {
    let arm = library.arm(&entry.model).ok()?;
    let scenes = scenes_of(&arm.file.name, &library.overlays(), library);
    let reaches = scenes.iter().map(|scene| scene.reach_m());
    Some(reaches.fold(arm.reach_m(), f64::max) + TOOL_GROWTH_M)
}

/// Returns every scene for an arm, with each of these overlays and without.
fn scenes_of(model: &str, overlays: &[String], library: &SceneLibrary) -> Vec<Arc<Scene>> {
    let overlays = || std::iter::once(None).chain(overlays.iter().map(|name| Some(name.as_str())));
    let names = library.scenes_for(&[model]);
    let each = names
        .iter()
        .flat_map(|name| overlays().map(move |overlay| (name, overlay)));
    let scenes = each.filter_map(|(name, overlay)| library.scene(name, overlay).ok());
    scenes
        .filter(|scene| scene.arm.file.name == model)
        .collect()
}

/// Joins the arms of a node, so that those that can touch each other are enabled one at a time.
pub(super) fn join(
    file: &NodeFile,
    library: &SceneLibrary,
    arms: &[Arc<AttachedArm>],
) -> Vec<ArmSeparation> {
    let separations = separations(file, library);
    let lock = Arc::new(Mutex::new(()));
    for arm in arms {
        let exclusive = separations.iter().filter(|pair| pair.is_one_at_a_time());
        let obstructions = exclusive.flat_map(|pair| {
            let is_other = |other: &&Arc<AttachedArm>| pair.other(&arm.name) == Some(&other.name);
            let others = arms.iter().filter(is_other);
            others.map(|other| obstruction(&arm.name, pair, other, library))
        });
        let reach_m = separations.iter().find_map(|pair| pair.reach_m(&arm.name));
        let own = file.arms.iter().find(|entry| entry.name == arm.name);
        let bases = file.arms.iter().filter_map(|other| base_check(own?, other));
        let in_zone = arms.iter().filter_map(|each| {
            let is_pair = |pair: &&ArmSeparation| {
                matches!(pair.kind, SeparationKind::ByZone) && pair.is_between(&[arm, each])
            };
            let is_kept = each.name == arm.name || separations.iter().any(|pair| is_pair(&pair));
            let entry = file.arms.iter().find(|entry| entry.name == each.name);
            zone_check(entry.filter(|_| is_kept)?, each)
        });
        let scene_checks = reach_m.map(reach_check).into_iter().chain(bases);
        let scene_checks = scene_checks.chain(in_zone);
        let interlock = ArmInterlock::new(
            Arc::clone(&lock),
            obstructions.collect(),
            scene_checks.collect(),
            own.and_then(own_zone),
        );
        arm.permits().interlock(interlock);
    }
    separations
}

impl ArmSeparation {
    /// Returns the reach of an arm by which it was found to be apart from the other, in metres.
    fn reach_m(&self, arm: &str) -> Option<f64> {
        let SeparationKind::ByDistance { reach_m, .. } = &self.kind else {
            return None;
        };
        let mut both = self.arms.iter().zip(reach_m);
        both.find(|(name, _)| *name == arm)
            .map(|(_, reach_m)| *reach_m)
    }
}

/// Returns the check that says why `other` is in the way of an arm, if it is.
fn obstruction(
    arm_name: &str,
    pair: &ArmSeparation,
    other: &Arc<AttachedArm>,
    library: &SceneLibrary,
) -> ObstructionCheck {
    let model = &other.motion.arm().file.name;
    let scenes = scenes_of(model, &[], library);
    let rests: Vec<JointVector> = scenes.iter().map(|scene| scene.rest_rad).collect();
    let (arm_name, pair, name) = (arm_name.to_owned(), pair.to_string(), other.name.clone());
    let other: Weak<AttachedArm> = Arc::downgrade(other);
    Box::new(move |scene: &Scene| {
        let reason = match other.upgrade() {
            // The gate keeps arms apart that move in a scene that they share.
            Some(other) if is_enabled_beside(&other, scene) => return None,
            Some(other) => obstruction_reason(&other, &rests)?,
            None => "it is no longer attached. Next: restart the node".to_owned(),
        };
        Some(format!(
            "`{arm_name}` cannot be enabled, because of `{name}` ({pair}): {reason}"
        ))
    })
}

/// Returns whether an arm shares a scene, and nothing but its part of it is enabled.
fn is_enabled_beside(arm: &AttachedArm, scene: &Scene) -> bool {
    let now = arm.motion.clock().now();
    let mut beside = scene.beside.iter();
    beside.any(|beside| beside.name == arm.name)
        && arm
            .permits()
            .is_enabled_only_in(&scene.part_name(&arm.name), now)
}

/// Returns why an arm is in the way of those that can touch it, and what to do about it. An arm without torque does not
/// count: it lies where a person left it, and that person enables the other.
fn obstruction_reason(arm: &AttachedArm, rests: &[JointVector]) -> Option<String> {
    let now = arm.motion.clock().now();
    let snapshot = arm.motion.snapshot();
    if arm.permits().any_enabled(now) {
        return Some(format!(
            "it is enabled for {}. Next: `steadyhand reset --arm {}`, then `steadyhand disable`",
            arm.permits().enabled_text(now),
            arm.name
        ));
    }
    if snapshot.state.is_under_way() {
        return Some("its motion has not ended. Next: `steadyhand stop`".to_owned());
    }
    let is_at_rest = arm.is_at_rest()
        || snapshot.measured.is_some_and(|measured| {
            let mut poses = rests.iter();
            poses.any(|rest_rad| measured.position_rad.distance_max(rest_rad) < AT_REST_RAD)
        });
    (snapshot.energised && !is_at_rest).then(|| {
        format!(
            "its torque is on and it is not at rest. Next: enable it, then `steadyhand reset --arm {}` and `steadyhand disable` (or `steadyhand torque-off`: every arm drops)",
            arm.name
        )
    })
}

impl Node {
    /// Enables a scene by its name on every arm that it is for, or on the named one; returns it with these arms. Where several arms
    /// share it, each has its part enabled.
    ///
    /// # Errors
    /// There is no such scene, or not every arm was enabled.
    pub fn enable_by_name(
        &self,
        (scene, overlay): (&str, Option<&str>),
        arm_name: Option<&str>,
        duration: Option<Duration>,
        arrived: &ArrivalStamp,
    ) -> Result<Vec<PartOfArm<'_>>, Refusal> {
        let parts = match self.scenes.scene(scene, overlay) {
            Ok(scene) => vec![scene],
            Err(SceneError::SeveralArms { .. }) => {
                let shared = self.scenes.shared(scene, overlay)?;
                shared.parts.into_iter().map(|part| part.scene).collect()
            }
            Err(error) => return Err(self.listing_own_scenes(error).into()),
        };
        let is_meant = |part: &&Arc<Scene>| match (&part.arm_name, arm_name) {
            (Some(own), Some(named)) => own == named,
            _ => true,
        };
        let mut meant = Vec::new();
        for part in parts.iter().filter(is_meant) {
            let arms = self.arms_to_enable(part, arm_name)?;
            meant.extend(arms.into_iter().map(|arm| (arm, Arc::clone(part))));
        }
        if meant.is_empty() {
            let names = parts.iter().filter_map(|part| part.arm_name.as_deref());
            return Err(refusal!(
                "scene `{scene}` has no arm of that name; nothing was enabled. Next: name one of {}",
                names.collect::<Vec<_>>().join(", ")
            ));
        }
        let all = meant.iter().map(|(arm, part)| (*arm, &**part));
        self.enable_all(&all.collect::<Vec<_>>(), duration, arrived)?;
        Ok(meant)
    }

    /// Enables a scene on every arm that it is for, or on the named one; returns these arms. An order of an operator that came after
    /// the word to enable had arrived stands.
    ///
    /// # Errors
    /// The reason why not every arm was enabled.
    pub fn enable(
        &self,
        scene: &Scene,
        arm_name: Option<&str>,
        duration: Option<Duration>,
        arrived: &ArrivalStamp,
    ) -> Result<Vec<&Arc<AttachedArm>>, Refusal> {
        let arms = self.arms_to_enable(scene, arm_name)?;
        let all: Vec<_> = arms.iter().map(|arm| (*arm, scene)).collect();
        self.enable_all(&all, duration, arrived)?;
        Ok(arms)
    }

    /// Returns the arms that a scene is enabled on, if they may be enabled at once.
    fn arms_to_enable(
        &self,
        scene: &Scene,
        arm_name: Option<&str>,
    ) -> Result<Vec<&Arc<AttachedArm>>, Refusal> {
        let arms = self.arms(scene, arm_name)?;
        let excludes = |pair: &&ArmSeparation| pair.is_one_at_a_time() && pair.is_between(&arms);
        if let Some(pair) = self.separations.iter().find(excludes) {
            return Err(refusal!(
                "scene {} fits several arms, and {pair}. Nothing was enabled. Next: name one of them with `--arm`",
                scene.title()
            ));
        }
        Ok(arms)
    }

    /// Enables each of these arms for its scene, in order. Where one is refused, the error says which are enabled.
    fn enable_all(
        &self,
        all: &[(&Arc<AttachedArm>, &Scene)],
        duration: Option<Duration>,
        arrived: &ArrivalStamp,
    ) -> Result<(), Refusal> {
        for (arm, scene) in all {
            check_same_zeros(arm, scene)
                .map_err(|error| Refusal::new(with_statement(error, NOTHING_ENABLED)))?;
        }
        let mut done: Vec<&str> = Vec::new();
        for (arm, scene) in all {
            let now = arm.motion.clock().now();
            let seen = self.stops_before(arrived, arm).orders;
            let enabled = arm.permits().enable(scene, now, duration, seen);
            enabled.map_err(|denied| match done.as_slice() {
                [] => Refusal::new(with_statement(denied, NOTHING_ENABLED)),
                done => {
                    let enabled = format!("enabled: {}", done.join(", "));
                    Refusal::new(with_statement(denied, &enabled))
                }
            })?;
            done.push(&arm.name);
        }
        Ok(())
    }

    /// Returns the arms that a scene is for, or the named one of them.
    fn arms(&self, scene: &Scene, name: Option<&str>) -> Result<Vec<&Arc<AttachedArm>>, Refusal> {
        let model = &scene.arm.file.name;
        let is_for = |arm: &&Arc<AttachedArm>| check_is_for(arm, scene).is_ok();
        let mut arms: Vec<_> = self.arms.iter().filter(is_for).collect();
        if arms.is_empty() {
            return Err(refusal!(
                "scene {} is for an arm of model {model}, but this node has none",
                scene.title()
            ));
        }
        let names: Vec<&str> = arms.iter().map(|arm| arm.name.as_str()).collect();
        let names = names.join(", ");
        arms.retain(|arm| name.is_none_or(|name| arm.name == name));
        match (arms.is_empty(), name) {
            (true, Some(name)) => Err(refusal!(
                "scene {} is for an arm of model {model}, but this node has no such arm `{name}`. Nothing was enabled. Next: name one of {names}",
                scene.title()
            )),
            _ => Ok(arms),
        }
    }

    /// Returns the statements of the node file by which an arm counts as out of the others' reach, if any.
    #[must_use]
    pub fn kept_apart(&self, arm: &AttachedArm) -> Option<String> {
        let by_word = |pair: &&ArmSeparation| {
            pair.other(&arm.name).is_some() && matches!(pair.kind, SeparationKind::ByWord(_))
        };
        let pairs = self.separations.iter().filter(by_word);
        let texts: Vec<String> = pairs.map(ToString::to_string).collect();
        (!texts.is_empty()).then(|| texts.join("; "))
    }

    /// Returns the fields about neighbouring arms for lists of arms; empty without neighbours.
    pub(super) fn neighbour_fields(&self, arm: &AttachedArm) -> Map<String, Value> {
        let mut fields = Map::new();
        if let Some(words) = self.kept_apart(arm) {
            fields.insert("apart".to_owned(), words.into());
        }
        let exclusive = self
            .separations
            .iter()
            .filter(|pair| pair.is_one_at_a_time());
        let others: Vec<&str> = exclusive.filter_map(|pair| pair.other(&arm.name)).collect();
        if !others.is_empty() {
            fields.insert("one_at_a_time_with".to_owned(), json!(others));
        }
        fields
    }
}

#[cfg(test)]
mod tests;
