//! The thread that writes an operator's orders to the disk, so that no stop waits for it.
//!
//! Memory decides, and the files follow: an order wakes the thread, and the thread makes the files match memory. It also writes
//! them again where somebody has removed them. Clearing an emergency stop changes the files first, under the lock that the thread
//! writes under, so that a stop that comes meanwhile is written again.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak};
use std::thread::Thread;
use std::time::Duration;

use tokio::sync::watch;

use super::estop_file::EstopFile;
use super::order_file::{KeptOrders, NumberedOrders, OrderFile};
use super::port_records::PortRecords;
use super::standing_orders::{OrderVerb, StandingOrder, StandingOrders};
use super::{ActorRank, PermitRegistry, StopLatch};
use base::clock::calendar_ms;
use base::lock::MutexExt;

/// Longest time that an answer waits for the disk. The arm stands still long before.
const DISK_TIMEOUT: Duration = Duration::from_secs(2);

/// Interval at which the thread checks by itself whether the node and the files still exist.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Records each change of an arm's orders in the audit log. It may wait for the disk.
pub type OrderLog = Box<dyn Fn(&NumberedOrders) + Send>;

/// Reason why an order is not kept on the disk, or not ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrderKeepingError {
    /// A file cannot be written or removed.
    #[error("{}: {why}", path.display())]
    Disk {
        /// The file.
        path: PathBuf,
        /// Message of the system.
        why: String,
    },
    /// The record at the arm's port cannot be written.
    #[error("{}: {why}", path.display())]
    PortRecord {
        /// The record.
        path: PathBuf,
        /// Message of the system.
        why: String,
    },
    /// The thread that writes the files could not be started: message of the system.
    #[error("cannot start the thread that saves operators' orders: {0}")]
    NoThread(String),
    /// The files were set before.
    #[error("operators' orders are already being saved")]
    KeptAlready,
    /// The thread that writes the files has ended.
    #[error("the thread that saves operators' orders has ended")]
    ThreadEnded,
    /// The files were not written in time.
    #[error("the disk took longer than {} s", DISK_TIMEOUT.as_secs())]
    SlowDisk,
    /// Another emergency stop was requested while one was cleared.
    #[error("another emergency stop came first")]
    StoppedMeanwhile,
}

impl OrderKeepingError {
    /// Describes what it means for an order that was given.
    #[must_use]
    pub fn consequence(&self) -> String {
        let what = match self.is_of_record() {
            true => "a node with another state folder does not see the order",
            false => "the order ends with this process",
        };
        format!("{what}, because the order could not be saved: {self}")
    }

    const fn is_of_record(&self) -> bool {
        matches!(self, Self::PortRecord { .. })
    }
}

/// What the audit log says of the orders of an arm. Each process records them at its start, so that log and file are witnesses of
/// each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RecordedOrders {
    /// No earlier process has recorded any for this arm.
    #[default]
    None,
    /// The last record.
    Last(NumberedOrders),
    /// A node was here, and its log has no orders: it was removed, cut or overwritten.
    Lost,
}

/// The files in which one arm's orders are kept.
#[derive(Debug)]
pub struct OrderFiles {
    orders: OrderFile,
    /// There while an emergency stop stands: it latches by being there.
    estop: EstopFile,
    /// Written by older nodes: an operator has to reset the arm.
    owed: EstopFile,
    /// Lead nodes with other state folders to these files.
    port: Option<PortRecords>,
}

impl OrderFiles {
    /// Returns the files of an arm in a state folder: an arm on a port and one that is simulated under the same name have their
    /// own.
    #[must_use]
    pub fn of_arm(state: &Path, file_name_part: &str, is_on_port: bool) -> Self {
        let place = if is_on_port { "port" } else { "simulator" };
        Self::named(state, &format!("{file_name_part}.{place}"))
    }

    fn named(state: &Path, arm: &str) -> Self {
        let estop = EstopFile::at(state.join(format!("emergency-stop-{arm}")));
        Self {
            orders: OrderFile::at(state.join(format!("standing-orders-{arm}"))),
            owed: estop.owed_reset(),
            estop,
            port: None,
        }
    }

    /// Returns the files with the records of the arm's port.
    #[must_use]
    pub fn at_port(self, records: PortRecords) -> Self {
        Self {
            port: Some(records),
            ..self
        }
    }

    /// Reads the file of orders.
    pub(super) fn read(&self) -> KeptOrders {
        self.orders.read()
    }

    /// Returns the orders that stand by these files alone.
    #[must_use]
    pub fn kept(&self) -> StandingOrders {
        let (file, damage) = self.orders.read().into_parts();
        self.standing(file.unwrap_or_default(), damage).orders
    }

    /// Writes that no order stands for this arm, because the orders stand for others now.
    ///
    /// # Errors
    /// A file cannot be written or removed; the orders then stand for this arm as well.
    pub fn hand_over(&self) -> Result<(), OrderKeepingError> {
        let (file, _) = self.orders.read().into_parts();
        self.write(&NumberedOrders {
            number: file.unwrap_or_default().number + 1,
            orders: StandingOrders::default(),
        })?;
        let removed = self.estop.remove();
        removed.map_err(|error| self.estop.failed(&error))
    }

    /// Returns the orders that stand, here and at the arm's port: an order stands while the file or the audit log says so, because
    /// either may be an older copy or another node's. Where one of the witnesses is damaged, or away although another is there, the
    /// arm is disabled.
    fn load(&self, recorded: RecordedOrders) -> NumberedOrders {
        let (file, damage) = self.orders.read().into_parts();
        let unwitnessed = match (&file, &recorded) {
            (None, RecordedOrders::None) | (Some(_), RecordedOrders::Last(_)) => None,
            (None, RecordedOrders::Last(_) | RecordedOrders::Lost) => Some("the file was removed"),
            (Some(_), RecordedOrders::None | RecordedOrders::Lost) => {
                Some("the audit log no longer has the orders' records")
            }
        };
        let logged = match recorded {
            RecordedOrders::Last(logged) => Some(logged),
            RecordedOrders::None | RecordedOrders::Lost => None,
        };
        let mut witnesses: Vec<NumberedOrders> = [logged, file].into_iter().flatten().collect();
        witnesses.sort_by_key(|change| change.number);
        let mut either = NumberedOrders::default();
        for witness in witnesses {
            either.number = witness.number;
            for order in witness.orders.iter() {
                either.orders.give(order.clone());
            }
        }
        let damage = damage.or_else(|| unwitnessed.map(str::to_owned));
        let mut loaded = self.standing(either, damage);
        for order in self.port.iter().flat_map(PortRecords::standing) {
            loaded.orders.give(order);
        }
        loaded
    }

    /// Adds what the other files say, and that damage disables the arm.
    fn standing(&self, mut last: NumberedOrders, damage: Option<String>) -> NumberedOrders {
        if let Some(reason) = damage {
            let by = format!("the node, because of {}: {reason}", self.orders.name());
            let order = StandingOrder::new(OrderVerb::Disable, &by, calendar_ms());
            last.orders.give(order);
        }
        let files = [
            (&self.owed, OrderVerb::Stop),
            (&self.estop, OrderVerb::EmergencyStop),
        ];
        for (file, verb) in files {
            if file.exists() && last.orders.get(verb).is_none() {
                last.orders
                    .give(StandingOrder::new(verb, "an operator", calendar_ms()));
            }
        }
        last
    }

    /// Writes a change. An emergency stop is kept if either of its files takes it.
    fn write(&self, change: &NumberedOrders) -> Result<(), OrderKeepingError> {
        let written = self.orders.write(change);
        let written = written.map_err(|error| failed(self.orders.path(), &error));
        let Some(order) = change.orders.get(OrderVerb::EmergencyStop) else {
            written?;
            return self.remove_owed();
        };
        let latched = self.estop.write(&order.to_string());
        let latched = latched.map_err(|error| self.estop.failed(&error));
        match latched {
            Ok(()) => self.remove_owed(),
            Err(_) if written.is_ok() => self.remove_owed(),
            Err(error) => Err(error),
        }
    }

    /// Removes the file of an older node, now that the file of orders says the same.
    fn remove_owed(&self) -> Result<(), OrderKeepingError> {
        match self.owed.exists() {
            true => self.owed.remove().map_err(|error| self.owed.failed(&error)),
            false => Ok(()),
        }
    }

    /// Returns whether the files that say so are there.
    fn say(&self, orders: &StandingOrders) -> bool {
        let is_emergency = orders.get(OrderVerb::EmergencyStop).is_some();
        self.orders.is_there() && (!is_emergency || self.estop.exists())
    }
}

fn failed(path: &Path, error: &std::io::Error) -> OrderKeepingError {
    OrderKeepingError::Disk {
        path: path.to_owned(),
        why: error.to_string(),
    }
}

#[derive(Debug)]
pub(super) struct OrderWriter {
    files: Arc<Mutex<OrderFiles>>,
    thread: Thread,
    progress: watch::Receiver<OrderProgress>,
}

/// Progress of the disk: the changes that it has followed, and its last failure.
#[derive(Clone, Debug, Default)]
struct OrderProgress {
    number: u64,
    failed: Option<OrderKeepingError>,
}

impl OrderWriter {
    /// Wakes the thread. Never waits.
    pub(super) fn wake(&self) {
        self.thread.unpark();
    }
}

impl PermitRegistry {
    /// Keeps an operator's orders in these files, and takes over those that stand there: from an earlier process, or because the
    /// files cannot be read. Where one stands, nothing is enabled.
    ///
    /// # Errors
    /// The thread cannot be started, or files were set before.
    pub fn keep_orders_in(
        self: &Arc<Self>,
        files: OrderFiles,
        recorded: RecordedOrders,
        log: OrderLog,
    ) -> Result<(), OrderKeepingError> {
        let loaded = files.load(recorded);
        self.take_over(&loaded);
        let files = Arc::new(Mutex::new(files));
        let (progress_sender, progress) = watch::channel(OrderProgress {
            number: loaded.number,
            failed: None,
        });
        let follower = OrderFollower {
            files: Arc::clone(&files),
            progress: progress_sender,
            log,
        };
        // At once: a start that is refused after this leaves its witnesses.
        follower.follow(Arc::clone(self));
        let registry = Arc::downgrade(self);
        let thread = std::thread::Builder::new()
            .name("orders".to_owned())
            .spawn(move || follower.run(&registry))
            .map_err(|error| OrderKeepingError::NoThread(error.to_string()))?;
        let writer = OrderWriter {
            files,
            thread: thread.thread().clone(),
            progress,
        };
        self.order_writer
            .set(writer)
            .map_err(|_| OrderKeepingError::KeptAlready)
    }

    /// Takes over orders from an earlier process. They are written and recorded anew, also if none stands: a later process that finds
    /// no record knows by that that it was lost.
    fn take_over(&self, loaded: &NumberedOrders) {
        if !loaded.orders.is_empty() {
            self.disable();
        }
        if loaded.orders.get(OrderVerb::Stop).is_some() {
            self.latch(StopLatch::Stopped(ActorRank::Operator));
        }
        if loaded.orders.get(OrderVerb::EmergencyStop).is_some() {
            self.latch(StopLatch::Emergency(ActorRank::Operator));
        }
        let mut state = self.state();
        state.orders = loaded.clone();
        state.orders.number += 1;
        // No number of orders that an earlier process showed is one of this process.
        let orders_given = state.orders.number;
        self.orders_given.store(orders_given, Ordering::SeqCst);
    }

    /// Waits until every order so far is on the disk; returns at once if none is kept in files.
    ///
    /// # Errors
    /// The reason why one is not; it then lasts only as long as this process.
    pub async fn orders_are_kept(&self) -> Result<(), OrderKeepingError> {
        let Some(writer) = self.order_writer.get() else {
            return Ok(());
        };
        let number = self.state().orders.number;
        let mut progress = writer.progress.clone();
        let written = progress.wait_for(|progress| progress.number >= number);
        match tokio::time::timeout(DISK_TIMEOUT, written).await {
            Ok(Ok(progress)) => progress.failed.clone().map_or(Ok(()), Err),
            Ok(Err(_)) => Err(OrderKeepingError::ThreadEnded),
            Err(_) => Err(OrderKeepingError::SlowDisk),
        }
    }

    /// Ends an emergency stop on an operator's word. An operator's `reset` comes next. `seen` is the number of emergency stops
    /// that had been latched when that word arrived: it ends no later one.
    ///
    /// # Errors
    /// The reason why it still stands: its files could not be changed, or another one came meanwhile.
    pub fn clear_emergency(&self, seen: u64) -> Result<(), OrderKeepingError> {
        let files = self.order_writer.get().map(|writer| writer.files.locked());
        if self.emergencies() != seen {
            return Err(OrderKeepingError::StoppedMeanwhile);
        }
        let mut cleared = self.state().orders.clone();
        cleared.orders.clear_emergency();
        cleared.number += 1;
        if let Some(files) = &files {
            files.write(&cleared)?;
            let removed = files.estop.remove();
            removed.map_err(|error| files.estop.failed(&error))?;
        }
        let mut state = self.state();
        if state.emergencies != seen {
            // The thread waits for the files' lock, and writes them again.
            return Err(OrderKeepingError::StoppedMeanwhile);
        }
        if matches!(state.latch, Some(StopLatch::Emergency(_))) {
            state.latch = Some(StopLatch::Stopped(ActorRank::Operator));
        }
        state.orders.orders.clear_emergency();
        state.orders.number += 1;
        drop(state);
        self.wake_order_writer();
        Ok(())
    }
}

/// Makes the files follow the orders.
struct OrderFollower {
    files: Arc<Mutex<OrderFiles>>,
    progress: watch::Sender<OrderProgress>,
    log: OrderLog,
}

impl OrderFollower {
    /// Follows until the registry is gone.
    fn run(self, registry: &Weak<PermitRegistry>) {
        while let Some(permits) = registry.upgrade() {
            self.follow(permits);
            std::thread::park_timeout(POLL_INTERVAL);
        }
    }

    /// Writes what the files do not say yet.
    fn follow(&self, permits: Arc<PermitRegistry>) {
        let files = self.files.locked();
        let change = permits.state().orders.clone();
        drop(permits);
        let OrderProgress {
            number,
            failed: before,
        } = self.progress.borrow().clone();
        let is_new = change.number > number;
        let is_retry = before.as_ref().is_some_and(|error| !error.is_of_record());
        let is_removed = !files.say(&change.orders);
        let unwritten = (is_new || is_retry || is_removed).then(|| files.write(&change).err());
        let records = files.port.as_ref();
        let unrecorded = records.and_then(|records| records.follow(&change.orders).err());
        drop(files);
        let failed = unwritten.flatten().or(unrecorded);
        report(&before, &failed, is_removed && !is_new);
        if is_new {
            (self.log)(&change);
        }
        if is_new || failed != before {
            self.progress.send_replace(OrderProgress {
                number: change.number,
                failed,
            });
        }
    }
}

/// Logs that the files could not be written, once, or that they were written again.
fn report(
    before: &Option<OrderKeepingError>,
    failed: &Option<OrderKeepingError>,
    is_removed: bool,
) {
    match failed {
        Some(failure) if before.as_ref() != Some(failure) => {
            tracing::error!(
                "an operator's order could not be saved: {}",
                failure.consequence()
            );
        }
        None if is_removed && before.is_none() => {
            tracing::error!(
                "the files with operators' orders were removed, so they are written again"
            );
        }
        _ => {}
    }
}
