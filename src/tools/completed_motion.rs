//! A motion that was carried out, and what its answer says of joints that hang.

use super::reply::Reply;
use motion::{DrawingDeviation, JointSagging, PathReading, VisitReading};

/// A motion that was carried out.
pub(super) struct CompletedMotion {
    pub(super) visits: Vec<VisitReading>,
    pub(super) readings: Vec<PathReading>,
    pub(super) off_rad: f64,
    /// Joints that hang from where they should be, by no more than gravity explains.
    pub(super) sags: Vec<JointSagging>,
    pub(super) deviation: Option<DrawingDeviation>,
    pub(super) arm_time_s: f64,
}

impl CompletedMotion {
    /// Adds the joints that hang from where they should be, if any.
    pub(super) fn with_sags(&self, reply: Reply) -> Reply {
        if self.sags.is_empty() {
            return reply;
        }
        let sags = self.sags.iter().map(|sag| {
            let deg = super::stroke::rounded(sag.rad.to_degrees());
            serde_json::json!({"joint": sag.joint, "deg": deg})
        });
        let sags: Vec<_> = sags.collect();
        reply
            .with("sags", sags)
            .hint("`align` with `touch` measures how far the joints in `sags` give way under the arm's weight")
    }
}
