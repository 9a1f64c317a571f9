//! Swings all joints together from pose to pose, by way of poses above both ends where the direct
//! motion comes too near the surface.

use super::cartesian_path::{CartesianSegment, ToolPose};
use super::compensation::has_needle;
use super::error::RefusalCause;
use super::follow_path::PathError;
use super::joint_move::plan_joint_move;
use super::trajectory::SpanKind;
use super::trajectory_builder::{NEEDLE_M_S, NEEDLE_NEAR_MM, SpanLabel, TrajectoryBuilder};
use base::units::JointVector;

/// Heights above both ends to try where the direct swing comes too near the surface.
const VIA_HEIGHTS_MM: [f64; 4] = [15.0, 40.0, 70.0, 100.0];
/// A swing may come this much nearer to the surface than its ends.
const DIP_MM: f64 = 0.5;

impl TrajectoryBuilder<'_> {
    /// Returns the height of the lowest tip over the surface, and its pen.
    pub(super) fn lowest_tip(&self, q: &JointVector) -> (f64, usize) {
        let mut lowest = (f64::INFINITY, 0);
        for (pen, ik) in self.tools_in_holder() {
            let height_mm = self.scene.surface.project(&ik.point(q)).height_mm;
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
        let ik = self.ik(pen)?;
        let from = ik.tip_pose(&self.last_joints());
        let projection = self.scene.surface.project(&from.point_m);
        let to = self.raise_pose(&from, lift_mm - projection.height_mm);
        let label = SpanLabel::new(kind, None, pen);
        let path = vec![CartesianSegment::Across { from, to }];
        self.follow(label, &[path], self.travel_limits())?;
        Ok(())
    }

    /// Raises a pose along the surface's normal.
    fn raise_pose(&self, pose: &ToolPose, by_mm: f64) -> ToolPose {
        let surface = &self.scene.surface;
        let normal = surface.at(surface.project(&pose.point_m).at_mm).normal;
        ToolPose {
            point_m: pose.point_m + normal.scale(by_mm / 1e3),
            ..*pose
        }
    }

    /// Brings an arm that is beyond its limits back to them first.
    fn enter_limits(&mut self, kind: SpanKind, pen: usize) -> Result<(), PathError> {
        let here = self.last_joints();
        let limits = &self.scene.arm.limits;
        let above_lower = here.zip(&limits.lower_rad, f64::max);
        let inside = above_lower.zip(&limits.upper_rad, f64::min);
        if inside != here {
            let samples = self.swing_samples(&here, &inside)?;
            self.append(SpanLabel::new(kind, None, pen), &samples)?;
        }
        Ok(())
    }

    fn swing_samples(
        &self,
        from: &JointVector,
        to: &JointVector,
    ) -> Result<Vec<JointVector>, RefusalCause> {
        let tips: Vec<_> = self.tools_in_holder().map(|(_, ik)| ik.tip).collect();
        let speed_m_s = self.scene.limits.travel_mm_s / 1e3;
        let plan_swing = |tip_m_s| plan_joint_move(&self.scene.arm, &tips, from, to, tip_m_s);
        let samples = plan_swing(speed_m_s)?;
        let is_near = |q: &JointVector| self.lowest_tip(q).0 < NEEDLE_NEAR_MM;
        if has_needle(self.scene) && samples.iter().any(is_near) {
            return plan_swing(speed_m_s.min(NEEDLE_M_S));
        }
        Ok(samples)
    }

    /// Swings to a pose, by way of vias above both ends where the direct motion comes too low.
    pub(super) fn swing_to(
        &mut self,
        label: SpanLabel,
        to: &JointVector,
    ) -> Result<(), RefusalCause> {
        if self.last_joints().distance_max(to) == 0.0 {
            return Ok(());
        }
        let mut best_excess_mm = f64::NEG_INFINITY;
        let direct = std::iter::once(Some(Vec::new()));
        let from = self.last_joints();
        let raised = VIA_HEIGHTS_MM.map(|mm| self.raised_vias(label.pen, &from, to, mm));
        for vias in direct.chain(raised).flatten() {
            let (samples, excess_mm) = self.joint_path_over(&vias, to)?;
            if excess_mm >= 0.0 {
                return self.append(label, &samples);
            }
            best_excess_mm = best_excess_mm.max(excess_mm);
        }
        Err(RefusalCause::NoWay {
            height_mm: best_excess_mm + self.min_height_mm(),
            least_mm: self.min_height_mm(),
        })
    }

    /// Returns the least height of a swing: half of the height of travel.
    fn min_height_mm(&self) -> f64 {
        self.scene.heights.lift_mm / 2.0
    }

    /// Plans a motion over poses. Returns its samples, and how much higher its lowest point is than
    /// it must be.
    fn joint_path_over(
        &self,
        vias: &[JointVector],
        to: &JointVector,
    ) -> Result<(Vec<JointVector>, f64), RefusalCause> {
        let from = self.last_joints();
        let least_mm = self
            .min_height_mm()
            .min(self.lowest_tip(&from).0 - DIP_MM)
            .min(self.lowest_tip(to).0 - DIP_MM);
        let mut samples = Vec::new();
        let mut joints = from;
        for via in vias.iter().chain([to]) {
            samples.extend(self.swing_samples(&joints, via)?);
            joints = *via;
        }
        let heights_mm = samples.iter().map(|q| self.lowest_tip(q).0);
        let lowest_mm = heights_mm.fold(f64::INFINITY, f64::min);
        Ok((samples, lowest_mm - least_mm))
    }

    /// Returns poses above both ends: a motion over them first rises and last descends.
    fn raised_vias(
        &self,
        pen: usize,
        from: &JointVector,
        to: &JointVector,
        by_mm: f64,
    ) -> Option<Vec<JointVector>> {
        let ik = self.ik(pen).ok()?;
        let raise = |q: &JointVector| {
            let higher = self.raise_pose(&ik.tip_pose(q), by_mm);
            ik.leaving(q)
                .solve(&higher, q)
                .ok()
                .map(|solution| solution.q_rad)
        };
        Some(vec![raise(from)?, raise(to)?])
    }
}
