//! A long run with and without recording, an arm on a port and two cameras: the same cycles, and what the disk has to take.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a failing test may panic, and tests measure for real"
)]

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::load::{cycles, is_judged, long_scene, lost, resident_mib, woken_late};
use crate::support::{Bench, Caller, Served, on_port};

/// The picture that both cameras show: a JPEG of 640 by 480.
const STILL: &[u8] = include_bytes!("../pictures/sheet.jpg");

const CAMERAS: [&str; 2] = ["left", "right"];

/// As many pictures a second as a data set of that rate has frames.
const PICTURES_PER_S: u32 = 10;

/// Seconds of each run; ten minutes where `STEADYHAND_RUN_S=600` says so.
fn run_time() -> Duration {
    let variable = std::env::var("STEADYHAND_RUN_S").ok();
    Duration::from_secs(
        variable
            .and_then(|printed| printed.parse().ok())
            .unwrap_or(30),
    )
}

/// Figures of a run.
#[derive(Debug, Default)]
struct RunFigures {
    jobs: u32,
    faults: u32,
    recordings: u32,
    cycles: u64,
    lost: u64,
    /// Number of times that a bare thread of this machine was woken too late meanwhile.
    machine_late: u64,
    run_s: f64,
    written_bytes: u64,
    recorded_bytes: u64,
    missing_ticks: u64,
    pictures: u64,
    resident_mib: f64,
}

impl RunFigures {
    fn print(&self, name: &str) {
        println!(
            "{name}: {} jobs in {:.0} s, {} faults, {} cycles, {:.1} a second, {} lost (a bare thread was woken too late {} times); {:.0} kB/s to the disk; {} recordings of {:.1} MB with {} pictures, {} ticks missing; {:.1} MiB resident",
            self.jobs,
            self.run_s,
            self.faults,
            self.cycles,
            self.cycles as f64 / self.run_s,
            self.lost,
            self.machine_late,
            self.written_bytes as f64 / self.run_s / 1e3,
            self.recordings,
            self.recorded_bytes as f64 / 1e6,
            self.pictures,
            self.missing_ticks,
            self.resident_mib,
        );
    }

    /// Cycles that were lost, and not because the machine slept.
    fn own_losses(&self) -> u64 {
        (self.lost + u64::from(self.faults)).saturating_sub(self.machine_late)
    }
}

/// Serves the still picture as a network camera does, and returns its address.
fn camera_on_loopback() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/still.jpg", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let request = BufReader::new(stream.try_clone().unwrap()).lines();
            // The head ends with an empty line.
            request
                .map_while(Result::ok)
                .take_while(|line| !line.is_empty())
                .for_each(drop);
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: image/jpeg\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                STILL.len()
            );
            // A node that has gone asks no more.
            let _ = stream
                .write_all(head.as_bytes())
                .and_then(|()| stream.write_all(STILL));
        }
    });
    address
}

fn node_file(is_recorded: bool) -> String {
    let mut file = "answer_within_s = 1\nkeep_jobs_mb = 4096\n".to_owned();
    if is_recorded {
        file += &format!("record = {{ cameras = {CAMERAS:?}, fps = {PICTURES_PER_S} }}\n");
    }
    for name in CAMERAS {
        let source = camera_on_loopback();
        file += &format!(
            "[[cameras]]\nname = \"{name}\"\nsource = \"{source}\"\nsize_px = [640, 480]\n"
        );
    }
    file
}

/// Bytes that a process has given to the disk.
fn written_bytes(served: &Served) -> u64 {
    let file = format!("/proc/{}/io", served.child.0.id());
    let text = std::fs::read_to_string(file).unwrap();
    let line = text.lines().find(|line| line.starts_with("write_bytes"));
    line.unwrap().rsplit(' ').next().unwrap().parse().unwrap()
}

/// Draws one job after another until the time is over; returns how many, and how often the arm had a fault between them.
fn draw_for(served: &Served, time: Duration) -> (u32, u32) {
    let (began, mut jobs, mut faults) = (Instant::now(), 0, 0);
    loop {
        let stroke = served.call("stroke", &json!({"scene": "long", "again": true}));
        jobs += 1;
        if stroke["code"] == "fault" {
            println!("{}", stroke["message"]);
            faults += 1;
            served.call("reset", &json!({"scene": "long"}));
            jobs += 1;
            continue;
        }
        assert_eq!(stroke["success"], true, "{stroke:#}");
        while is_under_way(served) {
            if began.elapsed() >= time {
                let stopped = served.call("stop", &json!({}));
                assert_eq!(stopped["success"], true, "{stopped:#}");
                return (jobs, faults);
            }
            thread::sleep(Duration::from_millis(250));
        }
    }
}

fn is_under_way(served: &Served) -> bool {
    let preview = served.call("list_nodes", &json!({}));
    !preview["nodes"][0]["arms"][0]["job"].is_null()
}

fn run(is_recorded: bool) -> RunFigures {
    let bench = Bench::new();
    bench.scene("long", &long_scene());
    std::fs::write(bench.path("node.toml"), node_file(is_recorded)).unwrap();
    let config = bench.path("node.toml").display().to_string();
    let state = bench.state();
    let (_sim, port) = bench.sim(&["--scene", "long"]);
    let args = [
        &["--config", &config, "--enable", "long"][..],
        &on_port(&port, &state),
    ];
    let mut served = bench.serve(&args.concat());
    let (cycles_before, lost_before) = (cycles(&served), lost(&served));
    let over = Arc::new(AtomicBool::new(false));
    let baseline = thread::spawn({
        let over = Arc::clone(&over);
        move || woken_late(&over)
    });
    let clock = Instant::now();
    let (jobs, faults) = draw_for(&served, run_time());
    over.store(true, Ordering::Relaxed);
    let mut figures = RunFigures {
        jobs,
        faults,
        cycles: cycles(&served) - cycles_before,
        lost: lost(&served) - lost_before,
        machine_late: baseline.join().unwrap(),
        run_s: clock.elapsed().as_secs_f64(),
        written_bytes: written_bytes(&served),
        resident_mib: resident_mib(&served),
        ..RunFigures::default()
    };
    // The node ends in order, so that its last recording is made whole.
    served.child.terminate();
    if is_recorded {
        read_recordings(&bench, Path::new(&state), &mut figures);
    }
    figures
}

fn read_recordings(bench: &Bench, state: &Path, figures: &mut RunFigures) {
    for job in 1..=figures.jobs {
        let file = state.join(format!("jobs/job-{job}/job.mcap"));
        // A drawing that was refused because of a fault has none.
        let Ok(about) = std::fs::metadata(&file) else {
            continue;
        };
        figures.recordings += 1;
        figures.recorded_bytes += about.len();
        let shown = bench.run(&["recording", "show", file.to_str().unwrap(), "--json"]);
        assert!(shown.status.success(), "{shown:?}");
        let reply: Value = serde_json::from_slice(&shown.stdout).unwrap();
        figures.missing_ticks += reply["missing_ticks"].as_u64().unwrap();
        for camera in CAMERAS {
            let pictures = &reply["topics"][format!("/camera/{camera}")];
            figures.pictures += pictures.as_u64().unwrap_or(0);
        }
    }
}

#[test]
fn a_recording_with_two_cameras_costs_the_arm_no_cycle() {
    let unrecorded = run(false);
    unrecorded.print("not recorded");
    let recorded = run(true);
    recorded.print("recorded");
    assert!(recorded.pictures > 0 && recorded.recorded_bytes > 0);
    assert!(recorded.recordings >= recorded.jobs - 2 * recorded.faults);
    assert_eq!(recorded.missing_ticks, 0);
    if is_judged() {
        assert!(
            recorded.own_losses() <= unrecorded.own_losses(),
            "{} cycles lost with recording, {} without",
            recorded.lost,
            unrecorded.lost
        );
    }
}
