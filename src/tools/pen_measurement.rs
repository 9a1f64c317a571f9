//! Measures the length of a pen that a person has put in, by touching the sheet where its first line begins.

use std::sync::Arc;

use super::motion_job::{JobContext, JobError, tip_m};
use base::units::JointVector;
use base::wording::millimetres;
use call::{Refusal, refusal};
use motion::VisitKind;
use plan::AttendedPart;
use scene::{PROBE_DEPTH_MM, PROBE_FROM_MM, Scene};

/// Largest difference from the scene's length that is accepted from a touch.
const CHANGE_MM_MAX: f64 = 4.0;

/// Heights from which the two touches begin: what goes with the path and not with the sheet differs between them.
const FROM_MM: [f64; 2] = [PROBE_FROM_MM, PROBE_FROM_MM + 3.0];

/// Largest difference between the two touches.
const SPREAD_MM_MAX: f64 = 0.5;

/// Largest error of a measured length: a touch is noticed after it began, so that a pen is rather
/// longer than it was measured.
const UNCERTAINTY_MM: f64 = 0.5;

/// Step by which a pen is lengthened to compute how much nearer its tip comes to the sheet.
const STEP_MM: f64 = 1.0;

impl JobContext {
    /// Measures the pen in the holder, if the scene asks for that and it was not measured yet.
    pub(super) async fn measure_change(
        &self,
        scene: &Arc<Scene>,
        part: &AttendedPart,
    ) -> Result<(), JobError> {
        if !scene.holder.measures_change() || self.arm.is_pen_measured() {
            return Ok(());
        }
        let measured = self.measure_pen(scene, part).await;
        // A pen that could not be measured is requested again, so that a person puts it in anew.
        let longer_mm = measured.inspect_err(|_| self.arm.take_pen(scene, None))?;
        let name = scene.pen(part.pen).map_or("", |pen| pen.name.as_str());
        let kept = self
            .entry
            .pen_measured(part.pen + 1, name, longer_mm, UNCERTAINTY_MM);
        kept.map_err(|error| JobError::Journal(error.to_string()))?;
        self.arm.keep_pen_measurement(longer_mm);
        Ok(())
    }

    /// Touches the sheet twice with the pen, and returns how much longer it is than the scene says.
    async fn measure_pen(&self, scene: &Arc<Scene>, part: &AttendedPart) -> Result<f64, JobError> {
        let words = scene.pen_words(part.pen);
        let failed = |reason: Refusal| {
            JobError::PenNotMeasured(format!(
                "{words} could not be measured: {reason}. Next: put it in again with its tip where the scene has it, then `reset`, then `stroke` with `resume` (it asks for the pen)"
            ))
        };
        let line = part.strokes.first();
        let Some(at_mm) = line.and_then(|stroke| stroke.points_mm.first()).copied() else {
            return Err(failed(refusal!("the pen draws nothing")));
        };
        let [first, second] = FROM_MM.map(|from_mm| (at_mm, from_mm));
        let first_mm = self.touch(scene, part.pen, first).await?.map_err(&failed)?;
        let second_mm = self
            .touch(scene, part.pen, second)
            .await?
            .map_err(&failed)?;
        let spread_mm = (first_mm - second_mm).abs();
        if spread_mm > SPREAD_MM_MAX {
            let (spread, most) = (millimetres(spread_mm, 2), millimetres(SPREAD_MM_MAX, 1));
            return Err(failed(refusal!(
                "two touches differ by {spread} (at most {most})"
            )));
        }
        let longer_mm = (first_mm + second_mm) / 2.0;
        if longer_mm.abs() > CHANGE_MM_MAX {
            let (by, most) = (difference_text(longer_mm), millimetres(CHANGE_MM_MAX, 0));
            return Err(failed(refusal!(
                "the pen is {by} than in the scene (at most {most})"
            )));
        }
        Ok(longer_mm)
    }

    /// Lowers the pen until it touches. Returns how much longer it is than the scene says, or why that was not measured.
    async fn touch(
        &self,
        scene: &Arc<Scene>,
        pen: usize,
        from: ([f64; 2], f64),
    ) -> Result<Result<f64, Refusal>, JobError> {
        let mounted = self.arm.with_confirmed_pen(scene);
        let (_, done) = self
            .run_preparatory(&mounted, move |scene, start, watch| {
                plan::probe_from(scene, start, from, pen, watch)
            })
            .await?;
        Ok(match done.visits.first() {
            Some(contact) if contact.kind == VisitKind::Contact => {
                longer_mm(scene, pen, &contact.position_rad)
                    .ok_or_else(|| refusal!("the pen's length cannot be computed from this touch"))
            }
            Some(early) if early.kind == VisitKind::EarlyContact => Err(refusal!(
                "the pen already touched something before the touch began"
            )),
            Some(_) | None => Err(refusal!(
                "the pen touched nothing down to {PROBE_DEPTH_MM} mm below the sheet"
            )),
        })
    }
}

/// Describes a difference in length.
fn difference_text(longer_mm: f64) -> String {
    let by = millimetres(longer_mm.abs(), 1);
    match longer_mm < 0.0 {
        true => format!("{by} shorter"),
        false => format!("{by} longer"),
    }
}

/// Returns how much longer than the scene says a pen is that touches the sheet at these joint angles.
fn longer_mm(scene: &Scene, pen: usize, joints_rad: &JointVector) -> Option<f64> {
    let tip_height_mm = |scene: &Scene| {
        let tip = tip_m(scene, pen, joints_rad)?;
        Some(scene.surface.project(&tip).height_mm)
    };
    let height_mm = tip_height_mm(scene)?;
    let nearer_mm = height_mm - tip_height_mm(&scene.with_longer_pen(pen, STEP_MM))?;
    (nearer_mm > 0.5 * STEP_MM).then(|| height_mm / nearer_mm * STEP_MM)
}
