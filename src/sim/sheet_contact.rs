//! A tip that presses on a sheet: first the pen gives way in its holder, then the arm in its servos.
//!
//! The sheet is solid. A pen slides into its holder against a spring as far as the holder has room,
//! and the arm does not feel it give. What presses beyond that turns the joints back: each servo
//! holds like a spring, stiff enough to use all of its torque at its full error, until its torque
//! limit is reached and it yields.

use base::units::JointVector;

/// Share of a servo's torque that presses a pen by a millimetre into its holder, over a lever of
/// [`LEVER_MM`].
const SPRING_PER_MM: f64 = 0.1;

/// Travel of a pen into its holder.
const SPRING_TRAVEL_MM: f64 = 2.0;

/// Share of a servo's torque, over a lever of [`LEVER_MM`], that presses pen, paper and table by a
/// millimetre once the pen slides no further.
const SOLID_PER_MM: f64 = 1.0;

/// The lever that both shares are told for.
const LEVER_MM: f64 = 250.0;

/// A tip in contact with the sheet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TipContact {
    /// Height of the tip over the sheet if nothing held it back, 0 or less.
    pub(crate) height_mm: f64,
    /// By how many millimetres a radian of each joint lifts the tip.
    pub(crate) lever_mm: JointVector,
}

/// Holding strength of one joint's servos against a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct JointHolding {
    /// Energised servos that share the load; none holds nothing, and gears keep a limp joint.
    pub(crate) servos: f64,
    /// Angle by which one servo gives way under all of its torque.
    pub(crate) give_rad: f64,
    /// Share of its torque that each servo may use.
    pub(crate) torque_ratio: f64,
}

/// Effect of a contact on an arm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ContactReaction {
    /// Share of its torque that presses each joint, in the joint's own sense.
    pub(crate) load_ratio: JointVector,
    /// Angle by which each joint is held back from where its servos send it.
    pub(crate) back_rad: JointVector,
}

impl TipContact {
    /// Returns what the sheet does to joints that are held like this.
    pub(crate) fn reaction(&self, holding: &[JointHolding]) -> ContactReaction {
        let spring_mm = self.height_mm.max(-SPRING_TRAVEL_MM);
        let spring = self
            .lever_mm
            .map(|_, lever_mm| SPRING_PER_MM * spring_mm * lever_mm / LEVER_MM);
        let back_rad = self.back_rad(holding, -self.height_mm - SPRING_TRAVEL_MM);
        let load_ratio = spring.map(|joint, spring| {
            let held = holding.get(joint).filter(|held| held.servos > 0.0);
            let back = back_rad.get(joint).copied().unwrap_or(0.0);
            held.map_or(spring, |held| spring - back / held.give_rad)
        });
        ContactReaction {
            load_ratio,
            back_rad,
        }
    }

    /// Returns how far each joint is held back where the tip would be so deep in what is solid.
    fn back_rad(&self, holding: &[JointHolding], deep_mm: f64) -> JointVector {
        let none = self.lever_mm.map(|_, _| 0.0);
        // Joints without a lever, and limp ones, take no part.
        let levers = || {
            let pairs = self.lever_mm.iter().copied().zip(holding).enumerate();
            pairs.filter(|(_, (lever_mm, held))| held.servos > 0.0 && lever_mm.abs() > 1e-6)
        };
        // The force is told as the share of one servo's torque that it takes over `LEVER_MM`.
        let turned = |lever_mm: f64, held: &JointHolding, force: f64| {
            force * lever_mm / LEVER_MM / held.servos * held.give_rad
        };
        let most = |lever_mm: f64, held: &JointHolding| {
            held.torque_ratio * held.servos * LEVER_MM / lever_mm.abs()
        };
        let Some((weakest, (lever_mm, held))) =
            levers().min_by(|(_, (a, x)), (_, (b, y))| most(*a, x).total_cmp(&most(*b, y)))
        else {
            return none;
        };
        if deep_mm <= 0.0 {
            return none;
        }
        let lifted_mm = |force: f64| {
            let all =
                levers().map(|(_, (lever_mm, held))| lever_mm * turned(lever_mm, held, force));
            all.sum::<f64>() + force / SOLID_PER_MM
        };
        let force = (deep_mm / lifted_mm(1.0)).min(most(lever_mm, held));
        let left_mm = deep_mm - lifted_mm(force);
        none.map(|joint, _| {
            let here = levers().find(|(index, _)| *index == joint);
            let back = here.map_or(0.0, |(_, (lever_mm, held))| turned(lever_mm, held, force));
            // A servo at its torque limit yields by all that is left.
            back + if joint == weakest {
                left_mm / lever_mm
            } else {
                0.0
            }
        })
    }
}
