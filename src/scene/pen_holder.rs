//! Pens that are mounted: all of a scene's, or the one that a person has put into the holder.

use std::sync::Arc;

use base::units::JointVector;

use super::Scene;

/// Pens that are mounted.
#[derive(Clone, Debug, PartialEq)]
pub enum PenHolder {
    /// All pens of the scene at once.
    AllMounted,
    /// One pen, which a person changes.
    ByHand {
        /// Index of the pen that a person has confirmed; `None` while any of them may be there.
        mounted: Option<usize>,
        /// Pose in which the pen is changed.
        change_rad: JointVector,
    },
}

impl PenHolder {
    /// Returns whether a pen is in the holder, or may be.
    #[must_use]
    pub fn may_hold(&self, pen: usize) -> bool {
        match self {
            Self::AllMounted | Self::ByHand { mounted: None, .. } => true,
            Self::ByHand {
                mounted: Some(mounted),
                ..
            } => *mounted == pen,
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
        let mut scene = self.clone();
        if let PenHolder::ByHand { mounted, .. } = &mut scene.holder {
            *mounted = Some(pen);
        }
        scene
    }

    /// Returns a copy of the scene in which any pen may be in the holder; where all are mounted, a copy as it is.
    #[must_use]
    pub fn without_mounted(&self) -> Self {
        let mut scene = self.clone();
        if let PenHolder::ByHand { mounted, .. } = &mut scene.holder {
            *mounted = None;
        }
        scene
    }

    /// Returns a pen as people know it: its number from 1, its name and its colour.
    #[must_use]
    pub fn pen_words(&self, pen: usize) -> String {
        let number = pen + 1;
        match self.pen(pen) {
            Some(named) => {
                let [r, g, b] = named.colour;
                format!("pen {number} `{}` (#{r:02x}{g:02x}{b:02x})", named.name)
            }
            None => format!("pen {number}"),
        }
    }
}
