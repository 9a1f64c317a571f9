//! A process that is suspended in the middle of a motion, as by Ctrl-Z.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a failing test may panic"
)]

use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;

use crate::stop::{begin_to_draw, drawing_on_a_port, long_bench};
use crate::support::unless_starved;

/// More than the two seconds that a busy machine may take.
const SUSPENDED: Duration = Duration::from_millis(2_500);

/// It drew on without a word, beside other people perhaps.
#[test]
fn an_arm_whose_process_was_suspended_stands_and_says_so() {
    unless_starved(|| {
        let bench = long_bench();
        let (_sim, _path, served) = drawing_on_a_port(&bench);
        let mut caller = begin_to_draw(&bench, &served.url);
        served.child.signal(Signal::STOP);
        sleep(SUSPENDED);
        served.child.signal(Signal::CONT);
        assert_ne!(caller.exit_code(), Some(0));
        let (_, sensed) = bench.call(&["sense", "--node", &served.url]);
        let fault = sensed["fault"].to_string();
        assert!(fault.contains("suspended"), "{sensed:#}");
        let (_, refused) = bench.call(&["reset", "--node", &served.url]);
        assert_eq!(refused["success"], false, "{refused:#}");
    });
}
