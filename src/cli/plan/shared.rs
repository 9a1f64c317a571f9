//! Plans a drawing of several arms: the time that they take together, and what each of them draws.

use serde_json::{Map, Value, json};

use super::{DesignReport, PlanArgs, rounded, scenes};
use base::units::JointVector;
use base::wording::{millimetres, seconds};
use plan::{Plan, SilentObserver};
use scene::{SceneLibrary, ScenePart};
use tools::SharedPreview;

impl DesignReport {
    /// Plans for all arms that share a scene, each from its rest pose.
    pub(super) fn plan_shared(
        &mut self,
        library: &SceneLibrary,
        args: &PlanArgs,
        picture: &str,
    ) -> anyhow::Result<()> {
        let name = args.scene.as_deref().unwrap_or_default();
        let shared = scenes::find_shared(library, name, args.meta.as_deref())?;
        for part in &shared.parts {
            driver::check_ranges(&part.scene.arm)?;
        }
        let scenes: Vec<_> = shared.parts.iter().map(|part| &part.scene).collect();
        let refused_poses = tools::refused_poses(&scenes);
        if let Some(first) = shared.parts.first() {
            self.set("scene", first.scene.title());
            if first.scene.canvas.is_some() && shared.strokes.is_empty() {
                self.add_canvas();
                return self.add_refusals(&refused_poses);
            }
            self.add_size(&first.scene);
        }
        let starts = shared.parts.iter().map(|part| part.scene.rest_rad);
        let starts: Vec<JointVector> = starts.collect();
        let mut preview = SharedPreview::new(&shared, &starts, &SilentObserver)?;
        preview.refusals.extend(refused_poses);
        self.set("message", preview.message(&shared));
        if let Some(plan) = &preview.plan {
            self.set("duration_s", rounded(plan.duration_s));
            self.set("plan_hash", plan.hash.clone());
            self.lines
                .push(format!("{} together", seconds(plan.duration_s)));
            let parts = || shared.parts.iter().zip(&plan.plans);
            let arms =
                parts().map(|(part, plan)| (part.arm_name().to_owned(), facts_of(part, plan)));
            self.set("arms", arms.collect::<Map<String, Value>>());
            self.lines
                .extend(parts().map(|(part, plan)| line_of(part, plan)));
            self.lines.push(format!("plan {}", plan.hash));
            if let Some(out) = &args.out {
                self.save_picture(out, picture, tools::shared_picture(&shared, plan))?;
            }
        }
        self.add_refusals(&preview.refusals)
    }
}

/// Returns what one arm draws; strokes by their numbers in the design, in drawing order.
fn facts_of(part: &ScenePart, plan: &Plan) -> Value {
    let report = &plan.report;
    let strokes = report.strokes.iter().flat_map(|stroke| &stroke.parts);
    let strokes: Vec<usize> = strokes.map(|stroke| stroke + 1).collect();
    json!({
        "model": part.scene.arm.file.name,
        "revision": part.scene.revision.to_string(),
        "strokes": strokes,
        "stroke_count": report.stroke_count,
        "pen_down_mm": rounded(report.pen_down_mm),
        "pen_up_s": rounded(report.pen_up_s),
        "dips": report.dips,
    })
}

fn line_of(part: &ScenePart, plan: &Plan) -> String {
    let report = &plan.report;
    format!(
        "{}: {}, {} of line",
        part.arm_name(),
        report.strokes_text(),
        millimetres(report.pen_down_mm, 0)
    )
}
