//! The mounted pens: all of a scene's, or the one that a person has put into the holder.

use std::sync::Arc;

use base::units::JointVector;

use super::{Scene, ScenePen};

/// The mounted pens.
#[derive(Clone, Debug, PartialEq)]
pub enum PenHolder {
    /// All pens of the scene at once.
    AllMounted,
    /// One pen, which a person changes.
    ByHand {
        /// Index of the pen that a person has confirmed; `None` while any pen may be mounted.
        mounted: Option<usize>,
        /// Pose in which the pen is changed.
        change_rad: JointVector,
        /// True if each pen is measured by touch before it draws.
        measures: bool,
    },
}

impl PenHolder {
    /// Returns whether a pen is or may be in the holder.
    #[must_use]
    pub fn may_hold(&self, pen: usize) -> bool {
        match self {
            Self::AllMounted => true,
            Self::ByHand { mounted, .. } => mounted.is_none_or(|mounted| mounted == pen),
        }
    }

    /// Returns whether a pen is known to be in the holder.
    #[must_use]
    pub fn holds(&self, pen: usize) -> bool {
        match self {
            Self::AllMounted => true,
            Self::ByHand { mounted, .. } => *mounted == Some(pen),
        }
    }

    /// Returns whether a person changes the pens.
    #[must_use]
    pub fn is_by_hand(&self) -> bool {
        matches!(self, Self::ByHand { .. })
    }

    /// Returns whether a pen is measured by touch before it draws.
    #[must_use]
    pub fn measures_change(&self) -> bool {
        matches!(self, Self::ByHand { measures: true, .. })
    }

    /// Returns the pose in which a person changes the pen; `None` where all are mounted.
    #[must_use]
    pub fn change_rad(&self) -> Option<&JointVector> {
        match self {
            Self::AllMounted => None,
            Self::ByHand { change_rad, .. } => Some(change_rad),
        }
    }
}

impl Scene {
    /// Returns the pose in which a person can reach the pen: the one for pen changes, or else the
    /// rest pose.
    #[must_use]
    pub fn attended_pose_rad(&self) -> &JointVector {
        self.holder.change_rad().unwrap_or(&self.rest_rad)
    }

    /// Returns whether drawing its design waits for a person, to change pens or to end a pause.
    #[must_use]
    pub fn waits_for_person(&self) -> bool {
        self.holder.is_by_hand() || self.strokes.iter().any(|stroke| stroke.pause.is_some())
    }

    /// Returns the pens that are or may be in the holder.
    pub fn pens_in_holder(&self) -> impl Iterator<Item = &ScenePen> {
        let pens = self.pens.iter().enumerate();
        let held = pens.filter(|(pen, _)| self.holder.may_hold(*pen));
        held.map(|(_, pen)| pen)
    }

    /// Returns the scene with this pen in the holder; where all are mounted, the scene as it is.
    #[must_use]
    pub fn with_mounted(self: &Arc<Self>, pen: usize) -> Arc<Self> {
        match &self.holder {
            PenHolder::AllMounted => Arc::clone(self),
            PenHolder::ByHand { .. } => Arc::new(self.holding(pen)),
        }
    }

    /// Returns a copy of the scene with this pen in the holder; where all are mounted, a copy as it is.
    #[must_use]
    pub fn holding(&self, pen: usize) -> Self {
        self.with_in_holder(Some(pen))
    }

    fn with_in_holder(&self, pen: Option<usize>) -> Self {
        let mut scene = self.clone();
        if let PenHolder::ByHand { mounted, .. } = &mut scene.holder {
            *mounted = pen;
        }
        scene
    }

    /// Returns a copy of the scene in which a pen's tip is moved outwards along its axis.
    #[must_use]
    pub fn with_longer_pen(&self, pen: usize, by_mm: f64) -> Self {
        let mut scene = self.clone();
        if let Some(pen) = scene.pens.get_mut(pen) {
            pen.tip_m += pen.axis.scale(by_mm / 1e3);
        }
        scene
    }

    /// Returns a copy of the scene in which any pen may be in the holder; where all are mounted, a copy as it is.
    #[must_use]
    pub fn without_mounted(&self) -> Self {
        self.with_in_holder(None)
    }

    /// Describes a pen by its number from 1, its name and its colour.
    #[must_use]
    pub fn pen_words(&self, pen: usize) -> String {
        let number = pen + 1;
        match self.pen(pen) {
            Some(named) => format!("pen {number} `{}` ({})", named.name, named.colour_text()),
            None => format!("pen {number}"),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use crate::{PenHolder, SceneLibrary};

    /// Returns the error for a changed copy of the shipped scene; empty if there is none.
    fn error_of(change: impl Fn(&str) -> String) -> String {
        let folder = tempfile::tempdir().unwrap();
        let shipped = include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/scenes/pens_by_hand.toml"
        ));
        std::fs::write(folder.path().join("pens_by_hand.toml"), change(shipped)).unwrap();
        let library = SceneLibrary::new(Some(folder.path().to_owned()));
        let scene = library.scene("pens_by_hand", None);
        scene
            .err()
            .map_or_else(String::new, |error| error.to_string())
    }

    #[test]
    fn a_pen_narrows_what_the_scene_allows_and_never_widens_it() {
        assert_eq!(error_of(str::to_owned), "");
        for (key, value, expected) in [
            ("press_mm", "1.1", "0 to 1 are possible"),
            ("press_mm", "-0.1", "0 to 1 are possible"),
            ("draw_mm_s", "41.0", "0.1 to 40 are possible"),
        ] {
            let change = |text: &str| {
                let lines = text.lines().map(|line| match line.starts_with(key) {
                    true => format!("{key} = {value}"),
                    false => line.to_owned(),
                });
                lines.collect::<Vec<_>>().join("\n")
            };
            let error = error_of(change);
            assert!(error.contains(key) && error.contains(expected), "{error}");
        }
    }

    #[test]
    fn refuses_what_only_pens_by_hand_can_do_and_changes_pens_at_rest() {
        let measured = |text: &str| text.replace("[design]", "measure_change = true\n\n[design]");
        assert_eq!(error_of(measured), "");
        let mounted = "pen_change = \"by_hand\"";
        let error = error_of(|text| measured(text).replace(mounted, ""));
        assert!(
            error.contains("`measure_change` is for pens that a person changes"),
            "{error}"
        );
        let rolled = "size_mm = [100.0, 100.0]\ncylinder_radius_mm = 400.0";
        let error = error_of(|text| measured(text).replace("size_mm = [100.0, 100.0]", rolled));
        assert!(error.contains("only for pens on a flat sheet"), "{error}");
        let error = error_of(|text| {
            let all = text.replace("pen_change = \"by_hand\"", "");
            all.replace(
                "[poses]",
                "[poses]\nchange_rad = [0.0, -1.5, 1.2, 0.8, 0.0]",
            )
        });
        assert!(error.contains("change_rad"), "{error}");
        let scene = SceneLibrary::new(None).scene("pens_by_hand", None).unwrap();
        assert_eq!(scene.holder.change_rad(), Some(&scene.rest_rad));
        assert!((0..3).all(|pen| scene.holder.may_hold(pen) && !scene.holder.holds(pen)));
        let mounted = scene.with_mounted(1);
        let possible = (0..3).filter(|pen| mounted.holder.may_hold(*pen));
        assert_eq!(possible.collect::<Vec<_>>(), [1]);
        assert_eq!(mounted.without_mounted().holder, scene.holder);
        let all = SceneLibrary::new(None).scene("two_pens", None).unwrap();
        assert_eq!(all.with_mounted(1).holder, PenHolder::AllMounted);
    }
}
