//! Types and services that every other crate may use: quantities with units, the clock, files on disk, output for
//! people, points in a plane, nearest segments.

mod alarm_timer;
pub mod background_thread;
pub mod calendar;
pub mod clock;
mod clock_seats;
pub mod disk;
pub mod file_access;
pub mod file_lock;
pub mod lock;
pub mod nearest;
pub mod plain_file;
pub mod plane;
pub mod segment_index;
pub mod signals;
mod system_clocks;
pub mod task;
pub mod terminal;
pub mod units;
pub mod wording;
