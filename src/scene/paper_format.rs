//! Paper of a standard size in place of a scene's own sheet, for one drawing.

use serde::{Deserialize, Serialize};

use super::SceneError;
use super::file::SceneFile;
use config::toml::FileError;

/// A standard size of paper, upright unless it lies on its side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PaperFormat {
    A6,
    A5,
    A4,
    A6Landscape,
    A5Landscape,
    A4Landscape,
}

impl PaperFormat {
    /// Returns all of them.
    pub const ALL: [Self; 6] = [
        Self::A6,
        Self::A5,
        Self::A4,
        Self::A6Landscape,
        Self::A5Landscape,
        Self::A4Landscape,
    ];

    /// Returns its name and its width and height.
    const fn name_and_size_mm(self) -> (&'static str, [f64; 2]) {
        match self {
            Self::A6 => ("a6", [105.0, 148.0]),
            Self::A5 => ("a5", [148.0, 210.0]),
            Self::A4 => ("a4", [210.0, 297.0]),
            Self::A6Landscape => ("a6-landscape", [148.0, 105.0]),
            Self::A5Landscape => ("a5-landscape", [210.0, 148.0]),
            Self::A4Landscape => ("a4-landscape", [297.0, 210.0]),
        }
    }

    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name_and_size_mm().0
    }

    /// Lays it in place of a scene's sheet: the lower left corner and the directions stay.
    pub(super) fn lay_in(self, file: &str, scene: &mut SceneFile) -> Result<(), SceneError> {
        let (name, size_mm) = self.name_and_size_mm();
        let why = if scene.surface.is_some() || scene.sheet.cylinder_radius_mm.is_some() {
            Some("is not flat")
        } else if scene.fiducials.is_some() {
            Some("has tags at its own edges")
        } else {
            None
        };
        if let Some(why) = why {
            let text = format!(
                "its sheet {why}, so {name} paper cannot lie there. Next: leave --paper out"
            );
            return Err(FileError::single(file, text).into());
        }
        for (side, length_mm) in scene.sheet.size_mm.iter_mut().zip(size_mm) {
            *side = base::units::Finite::new(length_mm).unwrap_or(*side);
        }
        // It was learned on the sheet of the scene.
        scene.sheet.correction = None;
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::PaperFormat;

    #[test]
    fn names_are_those_that_a_stored_drawing_has() {
        for format in PaperFormat::ALL {
            let stored = serde_json::to_value(format).unwrap();
            assert_eq!(stored, format.name());
        }
    }
}
