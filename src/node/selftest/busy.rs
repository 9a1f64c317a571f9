//! What keeps a machine busy while stops are measured: a plan of more than a hundred thousand
//! waypoints in the making, and clients that ask what the arm measures.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio_util::task::AbortOnDropHandle;

use args::Received;
use base::clock::Clock;
use base::units::{Instant, Joints};
use permit::Who;
use plan::{self, PlanError};
use scene::{Order, Scene, SheetStroke};
use tools::{Node, Request, Watch};

/// Clients that ask at the same time, and how long each waits before it asks again.
const CLIENTS: usize = 16;
const PAUSE: Duration = Duration::from_millis(20);

/// The plan's lines, and the points of each.
const ROWS: u16 = 159;
const POINTS: u16 = 641;
const _: () = assert!(ROWS as usize * POINTS as usize > 100_000);

/// How far the planner's thread steps back, as for every plan.
const PLANNER_NICE: i32 = 10;

/// As long as it lives the machine is busy.
pub(super) struct Busy {
    over: Arc<AtomicBool>,
    planner: Option<JoinHandle<Result<(), PlanError>>>,
    _clients: Vec<AbortOnDropHandle<()>>,
}

/// A plan goes on until somebody says that it is over.
struct Until(Arc<AtomicBool>);

impl plan::Watch for Until {
    fn progress(&self, _: usize, _: usize) {}

    fn cancelled(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

impl Busy {
    /// Begins to plan and to ask.
    ///
    /// # Errors
    /// When there is no thread for the plan.
    pub(super) fn start(
        node: &Arc<Node>,
        scene: &Arc<Scene>,
        start: Joints,
    ) -> Result<Self, String> {
        let over = Arc::new(AtomicBool::new(false));
        let (own, scene) = (Until(Arc::clone(&over)), Arc::clone(scene));
        let planner = std::thread::Builder::new()
            .name("planner".to_owned())
            .spawn(move || plans(&own, &scene, &start))
            .map_err(|error| format!("no thread for a plan: {error}"))?;
        let clients =
            (0..CLIENTS).map(|_| AbortOnDropHandle::new(tokio::spawn(asks(node.clone()))));
        Ok(Self {
            _clients: clients.collect(),
            over,
            planner: Some(planner),
        })
    }

    /// Ends it all.
    ///
    /// # Errors
    /// Why no such plan can be made here, so that the machine was not as busy as it should have been.
    pub(super) fn end(mut self) -> Result<(), String> {
        self.over.store(true, Ordering::SeqCst);
        let planner = self.planner.take();
        match planner.map(JoinHandle::join) {
            Some(Ok(Err(error))) => {
                Err(format!("no plan of that length can be made here: {error}"))
            }
            Some(Err(_)) => Err("the planner failed".to_owned()),
            _ => Ok(()),
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
    }
}

/// The same plan, again and again.
fn plans(until: &Until, scene: &Scene, start: &Joints) -> Result<(), PlanError> {
    if let Err(error) = rustix::process::nice(PLANNER_NICE) {
        tracing::debug!("the planner keeps its priority: {error}");
    }
    let lines = lines(scene);
    while !plan::Watch::cancelled(until) {
        match plan::draw_strokes(scene, start, &lines, Order::AsDrawn, until) {
            Ok(_) | Err(PlanError::Cancelled) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Wavy lines all over where the scene draws.
fn lines(scene: &Scene) -> Vec<SheetStroke> {
    let points = || scene.strokes.iter().flat_map(|stroke| &stroke.points_mm);
    let [x, y] = [0, 1].map(|axis| {
        let all = points().filter_map(|at| at.get(axis).copied());
        all.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), at| {
            (low.min(at), high.max(at))
        })
    });
    let pen = scene.strokes.first().map_or(0, |stroke| stroke.pen);
    let apart_mm = (y.1 - y.0) / f64::from(ROWS + 1);
    let row = |row: u16| {
        let middle_mm = y.0 + apart_mm * f64::from(row);
        let points = (0..POINTS).map(|at| {
            let share = f64::from(at) / f64::from(POINTS - 1);
            let wave = (share * f64::from(POINTS)).sin();
            [x.0 + (x.1 - x.0) * share, middle_mm + 0.4 * apart_mm * wave]
        });
        SheetStroke {
            points_mm: points.collect(),
            pen,
            source: format!("row {row}"),
        }
    };
    (1..=ROWS).map(row).collect()
}

async fn asks(node: Arc<Node>) {
    loop {
        let request = Request {
            tool: "sense".to_owned(),
            arguments: Received::Absent,
            caller: "selftest".to_owned(),
            who: Who::Operator,
            standing: None,
            hop: None,
            is_step: false,
        };
        Arc::clone(&node).call(request, Watch::nobody()).await;
        drop(tokio::time::timeout(PAUSE, std::future::pending::<()>()).await);
    }
}

/// A thread with nothing to do but to note how late it is woken: as late as the machine itself is.
pub(super) struct Bare {
    ask: mpsc::Sender<Instant>,
    late_ms: mpsc::Receiver<f64>,
    clock: Clock,
}

impl Bare {
    /// # Errors
    /// When there is no thread for it.
    pub(super) fn start(clock: &Clock) -> Result<Self, String> {
        let (ask, asked) = mpsc::channel::<Instant>();
        let (tell, late_ms) = mpsc::channel();
        let own = clock.clone();
        std::thread::Builder::new()
            .name("bare".to_owned())
            .spawn(move || {
                while let Ok(at) = asked.recv() {
                    if tell.send(own.now().seconds_since(at) * 1e3).is_err() {
                        return;
                    }
                }
            })
            .map_err(|error| format!("no bare thread: {error}"))?;
        Ok(Self {
            ask,
            late_ms,
            clock: clock.clone(),
        })
    }

    /// How late it is now; `None` where the thread has ended.
    pub(super) fn wake_ms(&mut self) -> Option<f64> {
        self.ask.send(self.clock.now()).ok()?;
        self.late_ms.recv().ok()
    }
}
