//! A person's correction of one drawing at the arm: the pen higher and slower than in the scene,
//! never lower or faster.

use serde::{Deserialize, Serialize};

use super::{Scene, ScenePen};
use base::units::Finite;

/// Step in which the pen's height is trimmed.
const TRIM_STEP_MM: f64 = 0.1;

/// Slowest drawing, in percent of the scene's speed.
const TRIM_PERCENT_LEAST: f64 = 10.0;

/// Most by which the first ink on a sheet is drawn higher: an arm with coarse encoders may be a
/// quarter of a millimetre off in height, and no ink has yet shown where the sheet lies.
const FIRST_INK_MM_MAX: f64 = 0.3;

/// Largest fraction of a pen's depth by which the first ink is drawn higher.
const FIRST_INK_FRACTION: f64 = 0.35;

/// A correction of a drawing. The default changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct DrawingTrim {
    /// Height by which every pen is raised, in steps of a tenth of a millimetre.
    pub raise_mm: Finite,
    /// Drawing speed in percent of each pen's own.
    pub speed_percent: Finite,
}

/// The reason why a trim is refused.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum DrawingTrimError {
    /// It is not a whole number of steps, or would lower the pen.
    #[error(
        "`raise_mm` is {0}; it must be 0 or more, in steps of 0.1. A trim can only raise the pen (the scene's depth is `press_mm`)"
    )]
    Raise(f64),
    /// The pen would no longer touch the sheet.
    #[error(
        "`raise_mm` is {raise_mm}; at most {most_mm} is possible, because the pen's goal is {most_mm} mm below the sheet"
    )]
    OffTheSheet {
        /// The requested height.
        raise_mm: f64,
        /// The largest height at which every pen touches the sheet.
        most_mm: f64,
    },
    /// Faster than the scene allows, or too slow.
    #[error(
        "`speed_percent` is {0}; 10 to 100 are possible. The scene sets the full speed (`draw_mm_s`)"
    )]
    Speed(f64),
}

impl Default for DrawingTrim {
    fn default() -> Self {
        let finite = |value| Finite::new(value).unwrap_or_default();
        Self {
            raise_mm: finite(0.0),
            speed_percent: finite(100.0),
        }
    }
}

impl DrawingTrim {
    /// Returns the trim of the first ink on a scene's sheet.
    #[must_use]
    pub fn of_first_ink(scene: &Scene) -> Self {
        let raise_mm = (FIRST_INK_FRACTION * least_press_mm(scene)).min(FIRST_INK_MM_MAX);
        let steps = (raise_mm / TRIM_STEP_MM + 1e-6).floor();
        Self {
            raise_mm: Finite::new(steps * TRIM_STEP_MM).unwrap_or_default(),
            ..Self::default()
        }
    }

    /// Returns whether it changes anything.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Describes what it changes.
    #[must_use]
    pub fn words(&self) -> String {
        format!(
            "pen raised by {:.1} mm, drawn at {} % of its speed",
            self.raise_mm.get(),
            self.speed_percent.get()
        )
    }

    fn check(&self, scene: &Scene) -> Result<(), DrawingTrimError> {
        let (raise_mm, percent) = (self.raise_mm.get(), self.speed_percent.get());
        let steps = raise_mm / TRIM_STEP_MM;
        if raise_mm < 0.0 || (steps - steps.round()).abs() > 1e-6 {
            return Err(DrawingTrimError::Raise(raise_mm));
        }
        if !(TRIM_PERCENT_LEAST..=100.0).contains(&percent) {
            return Err(DrawingTrimError::Speed(percent));
        }
        let most_mm = least_press_mm(scene);
        if raise_mm > most_mm + 1e-9 {
            return Err(DrawingTrimError::OffTheSheet { raise_mm, most_mm });
        }
        Ok(())
    }

    fn pen(&self, scene: &Scene, pen: &ScenePen) -> ScenePen {
        ScenePen {
            press_mm: Some((scene.press_mm(pen) - self.raise_mm.get()).max(0.0)),
            draw_mm_s: Some(scene.draw_mm_s(pen) * self.speed_percent.get() / 100.0),
            ..pen.clone()
        }
    }
}

/// Returns the smallest depth of all pens; infinite without pens.
fn least_press_mm(scene: &Scene) -> f64 {
    let depths_mm = scene.pens.iter().map(|pen| scene.press_mm(pen));
    depths_mm.fold(f64::INFINITY, f64::min)
}

impl Scene {
    /// Returns a copy of the scene whose pens go less deep and draw slower. It only narrows what
    /// the scene allows, so its revision is the same.
    ///
    /// # Errors
    /// A trim that would go beyond what the scene allows, or lift the pen off the sheet.
    pub fn trimmed(&self, trim: &DrawingTrim) -> Result<Self, DrawingTrimError> {
        trim.check(self)?;
        let pens = self.pens.iter().map(|pen| trim.pen(self, pen));
        Ok(Self {
            pens: pens.collect(),
            ..self.clone()
        })
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    use crate::SceneLibrary;

    fn trim(raise_mm: f64, speed_percent: f64) -> DrawingTrim {
        DrawingTrim {
            raise_mm: Finite::new(raise_mm).unwrap(),
            speed_percent: Finite::new(speed_percent).unwrap(),
        }
    }

    #[test]
    fn a_trim_narrows_every_pen_and_keeps_the_revision() {
        let scene = SceneLibrary::new(None).scene("pens_by_hand", None).unwrap();
        let trimmed = scene.trimmed(&trim(0.3, 50.0)).unwrap();
        assert_eq!(trimmed.revision, scene.revision);
        for (pen, original) in trimmed.pens.iter().zip(&scene.pens) {
            assert!((trimmed.press_mm(pen) - (scene.press_mm(original) - 0.3)).abs() < 1e-9);
            assert!((trimmed.draw_mm_s(pen) - scene.draw_mm_s(original) / 2.0).abs() < 1e-9);
        }
        let same = scene.trimmed(&DrawingTrim::default()).unwrap();
        for (pen, original) in same.pens.iter().zip(&scene.pens) {
            assert!((same.press_mm(pen) - scene.press_mm(original)).abs() < 1e-12);
            assert!((same.draw_mm_s(pen) - scene.draw_mm_s(original)).abs() < 1e-12);
        }
    }

    #[test]
    fn a_trim_never_goes_beyond_the_scene() {
        let scene = SceneLibrary::new(None).scene("pens_by_hand", None).unwrap();
        for (raise_mm, percent) in [
            (-0.1, 100.0),
            (0.05, 100.0),
            (5.0, 100.0),
            (0.0, 101.0),
            (0.0, 0.0),
            (0.0, 9.9),
            (0.0, -50.0),
        ] {
            let trimmed = scene.trimmed(&trim(raise_mm, percent));
            assert!(trimmed.is_err(), "{raise_mm} {percent}");
        }
    }

    #[test]
    fn first_ink_is_pressed_less_and_still_touches() {
        let library = SceneLibrary::new(None);
        for (name, raise_mm) in [("default", 0.3), ("pens_by_hand", 0.2)] {
            let scene = library.scene(name, None).unwrap();
            let trim = DrawingTrim::of_first_ink(&scene);
            assert!(
                (trim.raise_mm.get() - raise_mm).abs() < 1e-9,
                "{name}: {trim:?}"
            );
            let trimmed = scene.trimmed(&trim).unwrap();
            assert!(trimmed.pens.iter().all(|pen| trimmed.press_mm(pen) > 0.3));
        }
    }
}
