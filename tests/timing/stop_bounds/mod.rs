//! Measures how fast an arm stops, on the bytes at the far end of its link.
//!
//! `STEADYHAND_STOPS` says how many stops each test makes; 100 where it does not. With `STEADYHAND_RECORD` nodes record
//! what they move. Latencies of
//! a machine that does other things as well are compared with those of a bare thread in the same run.
//! The tests run one after the other, for each would be another's load.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a failing test may panic; a histogram is printed"
)]

mod rig;
mod terminated;
mod test_node;
mod wire;

use crate::far_end;
use crate::support;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rig::{BaselineThread, Rig, print_histogram, quantile};
use steadyhand::clock::NodeClock;
use steadyhand::permit::ActorRank;
use terminated::{TerminatedNode, Until};
use test_node::{StopRequest, TestNode};

/// Returns whether nodes record what they move: the bounds are the same.
fn is_recorded() -> bool {
    std::env::var_os("STEADYHAND_RECORD").is_some()
}

/// The bounds that are promised.
const FIRST_FRAME_MS: f64 = 10.0;
const FIRST_FRAME_BUSY_MS: f64 = 50.0;
const GIVEN_UP_MS: f64 = 50.0;
const STANDSTILL_MS: f64 = 300.0;

/// Time by which the arm's thread may be later than a bare one where the machine itself is late.
const BARE_MS: f64 = 5.0;

/// Arms that swing at once where nothing else is done: one is next to no work.
const ARMS: usize = 4;

/// Nodes with callers that give up, of each kind.
const NODES: usize = 2;

/// Share of a swing at which it is stopped: at its fastest, or where there is all the time to be late.
const FASTEST: f64 = 0.5;
const UNDER_WAY: f64 = 0.1;

/// So much slower where a plan is begun on the way: a machine that is busy takes seconds for that.
const SLOWER: f64 = 5.0;

/// Number of clients that ask while it is measured.
const CLIENTS: usize = 16;

/// Angle by which the arm swings to be fast in its middle, and the angle where a machine that is busy may be
/// late.
const WAY_RAD: f64 = 0.2;
const LONG_WAY_RAD: f64 = 0.7;

/// One test at a time.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

fn stops() -> usize {
    let setting = std::env::var("STEADYHAND_STOPS").ok();
    setting.and_then(|text| text.parse().ok()).unwrap_or(100)
}

fn assert_bound(title: &str, all_ms: &[f64], baseline_ms: &[f64], bound_ms: f64) {
    print_histogram(title, all_ms);
    print_histogram("a bare thread", baseline_ms);
    let (found, baseline) = (quantile(all_ms, 0.99), quantile(baseline_ms, 0.99));
    let (limit_ms, by) = if baseline + BARE_MS <= bound_ms {
        (bound_ms, "the machine was on time: judged by the bound")
    } else {
        let by = "the machine was late itself: judged by its bare thread";
        (baseline + BARE_MS, by)
    };
    eprintln!("{title}: p99 {found:.2} ms of {limit_ms:.2} ms; {by}");
    assert!(
        found <= limit_ms,
        "{title}: p99 {found:.1} ms; {limit_ms:.1} ms is the limit ({by}: {baseline:.1} ms)"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_request_reaches_the_wire_in_time() {
    let _alone = ALONE.lock().await;
    let each = stops().div_ceil(ARMS);
    let measured = (0..ARMS).map(|_| swung_and_stopped(each, (WAY_RAD, 1.0), FASTEST));
    let measured = futures::future::join_all(measured).await;
    let (first_ms, baseline_ms): (Vec<f64>, Vec<f64>) = measured.into_iter().flatten().unzip();
    assert_bound(
        "stop request to first stop frame",
        &first_ms,
        &baseline_ms,
        FIRST_FRAME_MS,
    );
}

/// Stops one arm in a swing, many times. Returns the delays of the first frame and of a bare thread's wake-up.
async fn swung_and_stopped(count: usize, way: (f64, f64), fraction: f64) -> Vec<(f64, f64)> {
    let rig = Rig::new(NodeClock::real());
    let motion = rig.on_a_wire();
    let baseline = BaselineThread::start(&rig.clock);
    let (mut both_ms, mut uncounted) = (Vec::new(), 0);
    while both_ms.len() < count {
        rig.swings(&motion, way, fraction).await;
        let asked_at = rig.clock.now();
        let ticket = motion.stop(ActorRank::Operator, false);
        let baseline_ms = baseline.wake();
        let report = motion.stopped(ticket).await.unwrap();
        assert!(report.verified, "{report:?}");
        // A machine that is too busy may have ended the swing before: there was nothing to stop.
        if report.first_frame_ms.is_some() {
            both_ms.push((rig.first_frame_ms(asked_at, &report), baseline_ms));
        } else {
            uncounted += 1;
            assert!(uncounted <= count, "it never moved");
        }
        rig.release();
        rig.forget();
    }
    both_ms
}

/// Threads that take all of the machine's time.
const HOGS: usize = 4;

/// One stop of this kind per so many others.
const BESIDE_HOGS: usize = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_request_reaches_the_wire_in_time_beside_four_hogs() {
    let _alone = ALONE.lock().await;
    let over = std::sync::Arc::new(AtomicBool::new(false));
    let hogs: Vec<_> = (0..HOGS)
        .map(|_| {
            let over = std::sync::Arc::clone(&over);
            std::thread::spawn(move || {
                while !over.load(Ordering::SeqCst) {
                    std::hint::spin_loop();
                }
            })
        })
        .collect();
    let _end = Over(&over);
    let expected = stops().div_ceil(BESIDE_HOGS);
    let measured = swung_and_stopped(expected, (LONG_WAY_RAD, SLOWER), UNDER_WAY).await;
    over.store(true, Ordering::SeqCst);
    hogs.into_iter().for_each(|hog| hog.join().unwrap());
    let (first_ms, baseline_ms): (Vec<f64>, Vec<f64>) = measured.into_iter().unzip();
    assert_bound(
        "stop request to first stop frame, four hogs",
        &first_ms,
        &baseline_ms,
        FIRST_FRAME_BUSY_MS,
    );
}

/// As fast as a swing is in its middle, by its goals: they come in whole counts.
const FAST_MM_S: f64 = 96.0;

/// So many times as fast as everybody's time.
const RATE: u32 = 10;

/// On a clock that stands still while the machine is busy: the arm's own time.
#[tokio::test]
async fn an_arm_at_100_mm_s_stands_in_time() {
    let _alone = ALONE.lock().await;
    let rig = Rig::new(NodeClock::simulated_at(RATE));
    let motion = rig.in_memory();
    let (mut still_ms, mut slower) = (Vec::new(), 0);
    while still_ms.len() < stops() {
        // The long way, for it is at its fastest for longer than a busy machine is late.
        rig.swings(&motion, (LONG_WAY_RAD, 1.0), FASTEST).await;
        let speed_mm_s = rig.speed_mm_s().unwrap();
        let ticket = motion.stop(ActorRank::Operator, false);
        let report = motion.stopped(ticket).await.unwrap();
        assert!(
            report.verified && report.speed_rad_s.unwrap() < 0.05,
            "{report:?}"
        );
        // What was past its fastest when the machine came to stop it does not count.
        if speed_mm_s > FAST_MM_S {
            still_ms.push(report.standstill_ms.unwrap());
        } else {
            slower += 1;
            assert!(slower <= stops(), "it is never at 100 mm/s");
        }
        rig.release();
        rig.forget();
    }
    print_histogram("stop request to standstill, arm time", &still_ms);
    assert!(quantile(&still_ms, 1.0) <= STANDSTILL_MS, "{still_ms:?}");
}

/// The same with the pen on the paper, where a lift follows: that is told apart, and the rest is as
/// quick as where there is none.
#[tokio::test]
async fn an_arm_that_draws_at_100_mm_s_stands_in_time_and_is_lifted() {
    let _alone = ALONE.lock().await;
    let rig = Rig::in_scene("line", &fast_line(), NodeClock::simulated_at(RATE));
    let motion = rig.in_memory();
    let (mut still_ms, mut lift_ms, mut slower) = (Vec::new(), Vec::new(), 0);
    while still_ms.len() < stops() {
        rig.draws(&motion).await;
        let speed_mm_s = rig.speed_mm_s().unwrap();
        let ticket = motion.stop(ActorRank::Operator, false);
        let report = motion.stopped(ticket).await.unwrap();
        assert!(report.verified && report.lifted, "{report:?}");
        if speed_mm_s > FAST_MM_S {
            still_ms.push(report.braked_ms().unwrap());
            lift_ms.push(report.lift_ms.unwrap());
        } else {
            slower += 1;
            assert!(slower <= stops(), "it never draws at 100 mm/s");
        }
        rig.release();
        rig.forget();
    }
    print_histogram("stop request to standstill, drawing, arm time", &still_ms);
    print_histogram("and the lift behind it", &lift_ms);
    assert!(quantile(&still_ms, 1.0) <= STANDSTILL_MS, "{still_ms:?}");
}

/// A line along the sheet, turned about the foot for most of its way, as fast as a pen may be.
fn fast_line() -> String {
    let text = scene("line", &["[[0.0, 20.0], [90.0, 20.0]]".to_owned()]);
    let mut scene: toml::Table = toml::from_str(&text).unwrap();
    let limits = toml::toml! {
        draw_mm_s = 104.0
        travel_mm_s = 100.0
    };
    scene.insert("limits".to_owned(), limits.into());
    toml::to_string(&scene).unwrap()
}

/// A drawing of more than a hundred thousand waypoints is previewed for every stop, while clients on
/// HTTP ask for what the arm measures. A stop counts only if that plan was cut short by it: the
/// preview's own answer says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_is_heard_while_a_long_plan_is_made_and_clients_ask() {
    let _alone = ALONE.lock().await;
    let test_node = TestNode::new(&vast_scene()).await;
    plans_cut_short(
        &test_node,
        "stop request over HTTP to first stop frame, busy",
        &|test_node| test_node.call("stop", "{}"),
        &|test_node| assert!(test_node.call("sense", "{}").contains("age_ms")),
    );
}

/// The same for the button of the operator's page, while several pages follow the arm.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_stop_is_heard_while_a_long_plan_is_made_and_pages_follow() {
    const FOLLOWERS: usize = 50;
    let _alone = ALONE.lock().await;
    let test_node = TestNode::new(&vast_scene()).await;
    let _followers: Vec<_> = (0..FOLLOWERS)
        .map(|_| test_node.follows_on_page())
        .collect();
    plans_cut_short(
        &test_node,
        "stop on the page to first stop frame, busy",
        &|test_node| test_node.on_page("POST", "/page/stop"),
        &|test_node| assert!(test_node.on_page("GET", "/page/state").contains("joints")),
    );
}

/// Stops a swing and a plan again and again while clients ask, and judges how soon each was heard.
fn plans_cut_short(
    test_node: &TestNode,
    title: &str,
    stop: &(dyn Fn(&TestNode) -> String + Sync),
    request: &(dyn Fn(&TestNode) + Sync),
) {
    let (over, request_count) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (over, request_count) = (&over, &request_count);
    // Whatever breaks here, the others come to their end.
    let end = Over(over);
    let runtime = tokio::runtime::Handle::current();
    let (mut first_ms, mut baseline_ms, mut uncounted) = (Vec::new(), Vec::new(), 0);
    tokio::task::block_in_place(|| {
        std::thread::scope(|scope| {
            let _end = end;
            for _ in 0..CLIENTS {
                scope.spawn(|| {
                    while !over.load(Ordering::SeqCst) {
                        request(test_node);
                        request_count.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
            let baseline = BaselineThread::start(&test_node.rig.clock);
            while first_ms.len() < stops() {
                let into_plan = INTO_PLAN * u32::try_from(first_ms.len() % INTO_PLANS).unwrap();
                match cuts_a_plan(test_node, &runtime, &baseline, into_plan, stop) {
                    Some((first, baseline)) => {
                        first_ms.push(first);
                        baseline_ms.push(baseline);
                    }
                    None => uncounted += 1,
                }
                assert!(uncounted <= stops(), "the plan is too quick for this");
            }
        });
    });
    let request_count = request_count.load(Ordering::SeqCst);
    eprintln!(
        "{request_count} readings were taken; {uncounted} stops cut no plan and do not count"
    );
    assert!(request_count > CLIENTS * stops());
    assert_bound(title, &first_ms, &baseline_ms, FIRST_FRAME_BUSY_MS);
}

/// Stops come so long after a plan was begun: at each of these steps in turn.
const INTO_PLAN: Duration = Duration::from_millis(20);
const INTO_PLANS: usize = 10;

/// Begins a swing and then a plan, stops both, and says after how long the stop's first frame was
/// heard, and a bare thread woken; `None` where the plan was done before.
fn cuts_a_plan(
    test_node: &TestNode,
    runtime: &tokio::runtime::Handle,
    baseline: &BaselineThread,
    into_plan: Duration,
    stop: &(dyn Fn(&TestNode) -> String + Sync),
) -> Option<(f64, f64)> {
    let swings = test_node
        .rig
        .swings(test_node.motion(), (LONG_WAY_RAD, SLOWER), UNDER_WAY);
    runtime.block_on(swings);
    std::thread::scope(|scope| {
        let preview =
            scope.spawn(|| test_node.call("stroke", r#"{"scene":"vast","dry_run":true}"#));
        while planners() == 0 && !preview.is_finished() {
            std::thread::sleep(Duration::from_millis(2));
        }
        std::thread::sleep(into_plan);
        let request = StopRequest::watch(test_node);
        let stop = scope.spawn(|| stop(test_node));
        let baseline_ms = baseline.wake();
        let first_ms = runtime.block_on(request.first_frame_ms(test_node));
        let reply = stop.join().unwrap();
        assert!(first_ms.is_none() || reply.contains("stopped"), "{reply}");
        let cut = preview.join().unwrap().contains("being planned");
        test_node.rig.release();
        test_node.rig.forget();
        first_ms
            .filter(|_| cut)
            .map(|first_ms| (first_ms, baseline_ms))
    })
}

/// Plans in the making: each has a thread of its own.
fn planners() -> usize {
    let threads = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let names =
        threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("comm")).ok());
    names.filter(|name| name.trim_end() == "planner").count()
}

/// Tells loops that it is over, even if it is for a panic.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A client takes its call back, hangs up, or goes: nodes, each with its arm, at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_gives_up_is_heard_in_time() {
    let _alone = ALONE.lock().await;
    let ways = [
        ("cancelled call", test_node::GiveUp::Cancel),
        ("hang-up", test_node::GiveUp::HangUp),
        ("end of input", test_node::GiveUp::EndOfInput),
    ];
    let one = |how| async move {
        let test_node = TestNode::new(&small_scene()).await;
        let baseline = BaselineThread::start(&test_node.rig.clock);
        let (mut first_ms, mut baseline_ms) = (Vec::new(), Vec::new());
        while first_ms.len() < stops().div_ceil(NODES) {
            let caller = test_node.draws(how).await;
            let request = StopRequest::watch(&test_node);
            caller.gives_up().await;
            baseline_ms.push(baseline.wake());
            first_ms.extend(request.first_frame_ms(&test_node).await);
            test_node.is_over().await;
            test_node.rig.release();
            test_node.rig.forget();
        }
        (first_ms, baseline_ms)
    };
    let measured = ways.map(|(name, how)| async move {
        let all = futures::future::join_all((0..NODES).map(|_| one(how))).await;
        let (first_ms, baseline_ms): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        (name, first_ms.concat(), baseline_ms.concat())
    });
    for (name, first_ms, baseline_ms) in futures::future::join_all(measured).await {
        let title = format!("{name} to first stop frame");
        assert_bound(&title, &first_ms, &baseline_ms, GIVEN_UP_MS);
    }
}

/// Number of nodes terminated at once, each a separate process.
const TOLD_AT_ONCE: usize = 2;

/// One node of so many is left to park; the others have already shown how they stop.
const PARKED: usize = 10;

/// SIGTERM, from the process that sends it to the port of the one that is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_told_to_end_stops_its_arm_in_time() {
    let _alone = ALONE.lock().await;
    let each = stops().div_ceil(TOLD_AT_ONCE);
    let measured: Vec<(f64, f64)> = tokio::task::block_in_place(|| {
        std::thread::scope(|scope| {
            let all = (0..TOLD_AT_ONCE).map(|_| {
                scope.spawn(|| {
                    let baseline = BaselineThread::start(&NodeClock::real());
                    let once = |at: usize| {
                        let parks = at.is_multiple_of(PARKED);
                        let until = if parks { Until::Parked } else { Until::Stopped };
                        TerminatedNode::new().first_frame_ms(&baseline, until)
                    };
                    (0..each).map(once).collect::<Vec<_>>()
                })
            });
            let all: Vec<_> = all.collect();
            all.into_iter()
                .flat_map(|one| one.join().unwrap())
                .collect()
        })
    });
    let (first_ms, baseline_ms): (Vec<f64>, Vec<f64>) = measured.into_iter().unzip();
    assert_bound(
        "SIGTERM to first stop frame",
        &first_ms,
        &baseline_ms,
        FIRST_FRAME_MS,
    );
}

/// The default scene, with another design.
fn scene(name: &str, rows: &[String]) -> String {
    let text = include_str!("../../../scenes/default.toml");
    let mut scene: toml::Table = toml::from_str(text).unwrap();
    let design: toml::Table =
        toml::from_str(&format!("polylines = [{}]", rows.join(", "))).unwrap();
    scene.insert("design".to_owned(), design.into());
    scene.insert("name".to_owned(), name.into());
    toml::to_string(&scene).unwrap()
}

fn small_scene() -> String {
    scene("small", &["[[0.0, 0.0], [40.0, 0.0]]".to_owned()])
}

/// Wavy lines all over the sheet: 80 mm each, half a millimetre apart, more than a hundred thousand
/// points.
fn vast_scene() -> String {
    const POINTS: u32 = 641;
    const ROWS: u32 = 159;
    const { assert!(POINTS * ROWS > 100_000) };
    let row = |row: u32| {
        let y = f64::from(row) * 0.5;
        let points: Vec<String> = (0..POINTS)
            .map(|at| {
                let x = f64::from(at) / 8.0;
                format!("[{x:.3}, {:.3}]", y + 0.2 * (x * 3.0).sin())
            })
            .collect();
        format!("[{}]", points.join(", "))
    };
    let rows: Vec<String> = (1..=ROWS).map(row).collect();
    scene("vast", &rows)
}
