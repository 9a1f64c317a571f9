//! Swings: all joints together from pose to pose, over poses above both ends where the straight way
//! comes too near the surface.

use super::cartesian_path::{CartesianSegment, ToolPose};
use super::compensation::has_needle;
use super::error::RefusalCause;
use super::follow_path::PathError;
use super::joint_move::plan_joint_move;
use super::trajectory::SpanKind;
use super::trajectory_builder::{NEEDLE_M_S, NEEDLE_NEAR_MM, SpanLabel, TrajectoryBuilder};
use base::units::JointVector;

/// Heights that a swing is tried over where the straight one comes too near the surface.
const OVER_MM: [f64; 4] = [15.0, 40.0, 70.0, 100.0];
/// A swing may come this much nearer to the surface than its ends.
const DIP_MM: f64 = 0.5;

impl TrajectoryBuilder<'_> {
    /// Returns the height of the lowest tip over the surface, and its pen.
    pub(super) fn lowest_tip(&self, q: &JointVector) -> (f64, usize) {
        let mut lowest = (f64::INFINITY, 0);
        for (pen, hand) in self.hands_in_holder() {
            let height_mm = self.scene.surface.project(&hand.point(q)).height_mm;
            if height_mm < lowest.0 {
                lowest = (height_mm, pen);
            }
        }
        lowest
    }

    /// Lifts the lowest tip along the surface's normal if it is below the height of travel.
    pub(super) fn lift_if_low(&mut self, kind: SpanKind) -> Result<(), PathError> {
        let lift_mm = self.scene.heights.lift_mm;
        let (height_mm, pen) = self.lowest_tip(&self.last_joints());
        if height_mm >= lift_mm - DIP_MM {
            return Ok(());
        }
        self.enter_limits(kind, pen)?;
        let hand = self.hand(pen)?;
        let from = hand.tip_pose(&self.last_joints());
        let seen = self.scene.surface.project(&from.point_m);
        let to = self.higher(&from, lift_mm - seen.height_mm);
        let what = SpanLabel::new(kind, None, pen);
        let asked = self.travel_limits();
        self.follow(what, &[vec![CartesianSegment::Across { from, to }]], asked)?;
        Ok(())
    }

    /// Returns a pose so much higher along the surface's normal.
    fn higher(&self, place: &ToolPose, by_mm: f64) -> ToolPose {
        let surface = &self.scene.surface;
        let normal = surface.at(surface.project(&place.point_m).at_mm).normal;
        ToolPose {
            point_m: place.point_m + normal.scale(by_mm / 1e3),
            ..*place
        }
    }

    /// An arm that was found beyond its limits is first brought to them.
    fn enter_limits(&mut self, kind: SpanKind, pen: usize) -> Result<(), PathError> {
        let here = self.last_joints();
        let limits = &self.scene.arm.limits;
        let within = here.zip(&limits.lower_rad, f64::max);
        let within = within.zip(&limits.upper_rad, f64::min);
        if within != here {
            let samples = self.swing_samples(&here, &within)?;
            self.append(SpanLabel::new(kind, None, pen), &samples)?;
        }
        Ok(())
    }

    fn swing_samples(
        &self,
        from: &JointVector,
        to: &JointVector,
    ) -> Result<Vec<JointVector>, RefusalCause> {
        let tips: Vec<_> = self.hands_in_holder().map(|(_, hand)| hand.tip).collect();
        let speed_m_s = self.scene.limits.travel_mm_s / 1e3;
        let swing = |most_m_s| plan_joint_move(&self.scene.arm, &tips, from, to, most_m_s);
        let samples = swing(speed_m_s)?;
        let is_near = |q: &JointVector| self.lowest_tip(q).0 < NEEDLE_NEAR_MM;
        if has_needle(self.scene) && samples.iter().any(is_near) {
            return swing(speed_m_s.min(NEEDLE_M_S));
        }
        Ok(samples)
    }

    /// Swings to a pose, over vias above both ends where the straight way comes too low.
    pub(super) fn swing_to(
        &mut self,
        what: SpanLabel,
        to: &JointVector,
    ) -> Result<(), RefusalCause> {
        if self.last_joints().distance_max(to) == 0.0 {
            return Ok(());
        }
        let mut height_mm = f64::NEG_INFINITY;
        let straight = std::iter::once(Some(Vec::new()));
        let from = self.last_joints();
        let over = OVER_MM.map(|mm| self.raised_vias(what.pen, &from, to, mm));
        for vias in straight.chain(over).flatten() {
            let (samples, lowest_mm) = self.joint_path_over(&vias, to)?;
            if lowest_mm >= 0.0 {
                return self.append(what, &samples);
            }
            height_mm = height_mm.max(lowest_mm);
        }
        Err(RefusalCause::NoWay {
            height_mm: height_mm + self.least_mm(),
            least_mm: self.least_mm(),
        })
    }

    /// Half of the height of travel.
    fn least_mm(&self) -> f64 {
        self.scene.heights.lift_mm / 2.0
    }

    /// A way over poses, and how much higher its lowest point is than it must be.
    fn joint_path_over(
        &self,
        vias: &[JointVector],
        to: &JointVector,
    ) -> Result<(Vec<JointVector>, f64), RefusalCause> {
        let from = self.last_joints();
        let least_mm = self
            .least_mm()
            .min(self.lowest_tip(&from).0 - DIP_MM)
            .min(self.lowest_tip(to).0 - DIP_MM);
        let mut samples = Vec::new();
        let mut at = from;
        for via in vias.iter().chain([to]) {
            samples.extend(self.swing_samples(&at, via)?);
            at = *via;
        }
        let heights_mm = samples.iter().map(|q| self.lowest_tip(q).0);
        let lowest_mm = heights_mm.fold(f64::INFINITY, f64::min);
        Ok((samples, lowest_mm - least_mm))
    }

    /// The poses between which a way goes that first rises and last descends.
    fn raised_vias(
        &self,
        pen: usize,
        from: &JointVector,
        to: &JointVector,
        by_mm: f64,
    ) -> Option<Vec<JointVector>> {
        let hand = self.hand(pen).ok()?;
        let raised = |q: &JointVector| {
            let higher = self.higher(&hand.tip_pose(q), by_mm);
            hand.solve(&higher, q).ok().map(|found| found.q_rad)
        };
        Some(vec![raised(from)?, raised(to)?])
    }
}
