//! (scene, strokes, start) to a [`Trajectory`]: order, lift, map to the surface, solve, time.
//!
//! Pure and seeded: the same scene and start give the same bits. No clock, no gate, no drivers.

mod trajectory;

pub use trajectory::{Span, SpanKind, Trajectory};
