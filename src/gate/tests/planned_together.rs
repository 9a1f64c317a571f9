//! What is planned for two arms together passes, together.

use plan::{SilentObserver, together};
use scene::{DesignReplacement, SceneLibrary};

use crate::preview_together;

#[test]
fn a_plan_of_two_arms_passes_every_rule() {
    let text = "two arms\non one sheet\nkeep apart";
    for (scene, drawing) in [
        ("two_arms_dips", None),
        ("two_arms", Some(DesignReplacement::from_text(text))),
    ] {
        let library = SceneLibrary::new(None);
        let library = drawing.map_or(library.clone(), |drawing| library.with_drawing(drawing));
        let shared = library.shared(scene, None).unwrap();
        let starts: Vec<_> = shared
            .parts
            .iter()
            .map(|part| part.scene.rest_rad)
            .collect();
        let plan = together(&shared, &starts, &SilentObserver).unwrap();
        let parts = shared.parts.iter().zip(&plan.plans);
        let moving: Vec<_> = parts
            .map(|(part, plan)| (&part.scene, &plan.trajectory))
            .collect();
        let judged = preview_together(&moving, &[]);
        assert!(judged.is_ok(), "{scene}: {}", judged.unwrap_err());
    }
}
