//! A tip that presses on a sheet: first the pen gives way in its holder, then the arm in its servos.
//!
//! The sheet is solid. A pen slides into its holder against a spring as far as the holder has room,
//! without deflecting the arm. Further travel deflects the joints: each servo
//! holds like a spring, stiff enough to use all of its torque at its full error, until its torque
//! limit is reached and it yields. Measured servos (`servo_motor`) feel springs in newtons as a torque on their axles.

use base::units::JointVector;

/// Fraction of a servo's torque that presses a pen a millimetre into its holder, over a lever of
/// [`LEVER_MM`].
const SPRING_PER_MM: f64 = 0.1;

/// Travel of a pen into its holder.
const SPRING_TRAVEL_MM: f64 = 2.0;

/// Fraction of a servo's torque, over a lever of [`LEVER_MM`], that compresses pen, paper and table by a
/// millimetre once the pen slides no further.
const SOLID_PER_MM: f64 = 1.0;

/// What arms with measured servos feel, in newtons for each millimetre: a pen that slides in a printed holder, then pen,
/// paper and table.
const SPRING_N_PER_MM: f64 = 0.4;
const SOLID_N_PER_MM: f64 = 13.0;

/// Force for each millimetre a second into the solid.
const SOLID_DAMPING_N_S_PER_MM: f64 = 0.09;

/// The lever to which these fractions refer.
const LEVER_MM: f64 = 250.0;

/// A tip in contact with the sheet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TipContact {
    /// Height over the sheet that the tip would have without it, 0 or less.
    pub(crate) height_mm: f64,
    /// By how many millimetres a radian of each joint lifts the tip.
    pub(crate) lever_mm: JointVector,
}

/// Holding strength of one joint's servos against a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct JointHolding {
    /// Number of energised servos that share the load; with 0 the gears hold a limp joint.
    pub(crate) servos: f64,
    /// Angle by which one servo gives way under all of its torque.
    pub(crate) give_rad: f64,
    /// Fraction of its torque that each servo may use.
    pub(crate) torque_ratio: f64,
}

/// Effect of a contact on an arm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ContactReaction {
    /// Load on each joint as a fraction of a servo's torque, in the joint's own sense.
    pub(crate) load_ratio: JointVector,
    /// Angle by which the sheet deflects each joint from its servos' goal.
    pub(crate) deflection_rad: JointVector,
}

impl TipContact {
    /// Returns the torque with which the sheet turns each joint of an arm that moves at these speeds.
    pub(crate) fn torque_n_m(&self, speed_rad_s: &JointVector) -> JointVector {
        let depth_mm = -self.height_mm;
        let solid_mm = (depth_mm - SPRING_TRAVEL_MM).max(0.0);
        let lifts_mm_s = self.lever_mm.zip(speed_rad_s, |lever, speed| lever * speed);
        let damping = if solid_mm > 0.0 {
            -SOLID_DAMPING_N_S_PER_MM * lifts_mm_s.iter().sum::<f64>()
        } else {
            0.0
        };
        let spring_n = SPRING_N_PER_MM * depth_mm.clamp(0.0, SPRING_TRAVEL_MM);
        let force_n = (spring_n + SOLID_N_PER_MM * solid_mm + damping).max(0.0);
        self.lever_mm.map(|_, lever_mm| force_n * lever_mm / 1e3)
    }

    /// Returns the sheet's effect on joints with this holding strength.
    pub(crate) fn reaction(&self, holding: &[JointHolding]) -> ContactReaction {
        let spring_mm = self.height_mm.max(-SPRING_TRAVEL_MM);
        let spring = self
            .lever_mm
            .map(|_, lever_mm| SPRING_PER_MM * spring_mm * lever_mm / LEVER_MM);
        let deflection_rad = self.deflection_rad(holding, -self.height_mm - SPRING_TRAVEL_MM);
        let load_ratio = spring.map(|joint, spring| {
            let held = holding.get(joint).filter(|held| held.servos > 0.0);
            let deflection = deflection_rad.get(joint).copied().unwrap_or(0.0);
            held.map_or(spring, |held| spring - deflection / held.give_rad)
        });
        ContactReaction {
            load_ratio,
            deflection_rad,
        }
    }

    /// Returns the deflection of each joint if the tip would be at this depth in the solid.
    fn deflection_rad(&self, holding: &[JointHolding], depth_mm: f64) -> JointVector {
        let none = self.lever_mm.map(|_, _| 0.0);
        // Joints without a lever, and limp ones, are not deflected.
        let levers = || {
            let pairs = self.lever_mm.iter().copied().zip(holding).enumerate();
            pairs.filter(|(_, (lever_mm, held))| held.servos > 0.0 && lever_mm.abs() > 1e-6)
        };
        // The force is in units of one servo's torque over `LEVER_MM`.
        let deflection = |lever_mm: f64, held: &JointHolding, force: f64| {
            force * lever_mm / LEVER_MM / held.servos * held.give_rad
        };
        let force_limit = |lever_mm: f64, held: &JointHolding| {
            held.torque_ratio * held.servos * LEVER_MM / lever_mm.abs()
        };
        let Some((weakest, (lever_mm, held))) = levers()
            .min_by(|(_, (a, x)), (_, (b, y))| force_limit(*a, x).total_cmp(&force_limit(*b, y)))
        else {
            return none;
        };
        if depth_mm <= 0.0 {
            return none;
        }
        let lifted_mm = |force: f64| {
            let lifts_mm =
                levers().map(|(_, (lever_mm, held))| lever_mm * deflection(lever_mm, held, force));
            lifts_mm.sum::<f64>() + force / SOLID_PER_MM
        };
        let force = (depth_mm / lifted_mm(1.0)).min(force_limit(lever_mm, held));
        let remaining_mm = depth_mm - lifted_mm(force);
        none.map(|joint, _| {
            let lever = levers().find(|(index, _)| *index == joint);
            let elastic = lever.map_or(0.0, |(_, (mm, held))| deflection(mm, held, force));
            // A servo at its torque limit yields by the whole remainder.
            elastic
                + if joint == weakest {
                    remaining_mm / lever_mm
                } else {
                    0.0
                }
        })
    }
}
