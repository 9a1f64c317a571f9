//! What each tool does: dispatch, and one file a tool. Knows nothing of how a call arrived.

mod abroad;
mod admit;
mod align;
mod answer;
mod approve;
mod audit;
mod carry;
mod declared;
mod dispatch;
mod job;
mod list_nodes;
mod metrics;
mod node;
mod pictures;
mod preview;
mod record;
mod relay;
mod reset;
mod resume;
mod sense;
mod shape;
mod shown;
mod stop;
mod stroke;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

pub use abroad::{Abroad, Answer, Errand};
pub use answer::Reply;
pub use approve::Pending;
pub use declared::Declared;
pub use dispatch::{Request, here};
pub use metrics::metrics;
pub use node::{Node, Recorder, Seat, State, Studio};
pub use pictures::{ink as ink_picture, preview as preview_picture, reach as reach_picture};
pub use preview::{Complaint, Preview};
pub use resume::record as job_record;
pub use shape::{shape, strictness};

/// Told how far a call is: so much done, of how much, and what is going on.
pub type Progress = Arc<dyn Fn(f64, f64, &str) + Send + Sync>;

/// What a call may look at and tell while it runs.
#[derive(Clone)]
pub struct Watch {
    /// Set when the caller gave up: motion stops.
    pub cancelled: CancellationToken,
    /// Where progress goes, if the caller wants any.
    pub progress: Option<Progress>,
}

impl Watch {
    /// Nobody gives up and nobody is told.
    #[must_use]
    pub fn nobody() -> Self {
        Self {
            cancelled: CancellationToken::new(),
            progress: None,
        }
    }

    fn tell(&self, done: f64, of: f64, message: &str) {
        if let Some(progress) = &self.progress {
            progress(done, of, message);
        }
    }
}
