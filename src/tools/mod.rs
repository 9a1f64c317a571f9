//! The tools: dispatch, and one file a tool. Independent of the transport of a call.

mod access;
mod align;
mod arm_time_progress;
mod audit;
mod calibration_check;
mod camera_report;
mod cameras;
mod certificate_check;
mod declared_tools;
mod dispatch;
mod exam_helpers;
mod interlock;
mod job_board;
mod journal_entries;
mod list_nodes;
mod metrics;
mod motion_job;
mod names_cache;
mod node;
mod node_job;
mod node_status;
mod panic_guard;
mod pictures;
mod plan_approval;
mod preempt;
mod preview;
mod preview_text;
mod remote_tools;
mod repair_log;
mod reply;
mod reset;
mod resume;
mod reword;
mod route;
mod sense;
mod sequence;
mod sheet_check;
mod sim_photo_cache;
mod stop;
mod stroke;
mod tool_filter;
mod tool_shape;

pub use calibration_check::origin;
pub use cameras::RenderExposure;
pub use certificate_check::CertificateChecker;
pub use declared_tools::DeclaredTools;
pub use dispatch::{ToolRequest, here, shown};
pub use exam_helpers::{ExamHelperService, HelperToolResult};
pub use fleet::{ProgressCallback, RemoteCallWatch, ToolAnswer};
pub use interlock::{ArmSeparation, separations};
pub use metrics::metrics;
pub use node::{AT_REST_RAD, AttachedArm, Node, NodeStorage, SimulatedWorkcell, TrafficRecorder};
pub use node_job::{IncompleteMotion, NodeJob};
pub use panic_guard::{InternalError, catch_panic};
pub use pictures::{
    ink as ink_picture, outside as outside_picture, preview as preview_picture,
    reach as reach_picture,
};
pub use plan_approval::PendingPlan;
pub use preview::{DrawingPreview, RuleViolation};
pub use remote_tools::{RemoteToolCall, RemoteTools};
pub use reply::Reply;
pub use resume::record as job_record;
pub use stop::stop_text as stop_line;
pub use tool_shape::shape;
