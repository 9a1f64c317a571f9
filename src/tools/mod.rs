//! The tools: dispatch, and one file a tool. Independent of the transport of a call.

mod abroad;
mod admit;
mod align;
mod alone;
mod answer;
mod approve;
mod audit;
mod calibrated;
mod carry;
mod caught;
mod declared;
mod dispatch;
mod eyes;
mod helper;
mod interlock;
mod job;
mod known;
mod list_nodes;
mod metrics;
mod node;
mod photograph;
mod pictures;
mod preempt;
mod preview;
mod qualified;
mod record;
mod relay;
mod repair_log;
mod reset;
mod resume;
mod reword;
mod route;
mod sense;
mod shape;
mod shot;
mod shown;
mod sighted;
mod stop;
mod stroke;
mod withhold;

pub use abroad::{Abroad, Errand};
pub use alone::{Alone, Short};
pub use answer::Reply;
pub use approve::Pending;
pub use calibrated::origin;
pub use caught::{InternalError, catch_panic};
pub use declared::Declared;
pub use dispatch::{Request, here, shown};
pub use eyes::Exposure;
pub use fleet::{Answer, Progress, Watch};
pub use helper::{Helped, Helpers};
pub use interlock::{ArmSeparation, separations};
pub use metrics::metrics;
pub use node::{AT_REST_RAD, Node, Recorder, Seat, State, Studio};
pub use pictures::{
    ink as ink_picture, outside as outside_picture, preview as preview_picture,
    reach as reach_picture,
};
pub use preview::{Complaint, Preview};
pub use qualified::Examiner;
pub use resume::record as job_record;
pub use shape::shape;
pub use stop::line as stop_line;
