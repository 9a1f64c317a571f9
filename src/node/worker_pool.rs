//! Threads for calls that are no stops: however long they read, compute or draw, the threads that
//! hear clients stay free, so that no stop waits behind them.

use std::sync::OnceLock;

use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

/// Calls that are worked on at the same moment; others wait their turn.
const THREADS: usize = 2;

/// As long as the process: what is under way when a client goes is still brought to its end.
static WORK: OnceLock<Option<Runtime>> = OnceLock::new();

/// Does `work` there; here, where the system gives no threads.
pub(crate) fn spawn<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    match WORK.get_or_init(threads) {
        Some(runtime) => base::task::spawn_on(runtime.handle(), work),
        None => base::task::spawn(work),
    }
}

fn threads() -> Option<Runtime> {
    let made = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name("work")
        .enable_all()
        .build();
    made.inspect_err(|error| tracing::warn!("no threads for calls: {error}"))
        .ok()
}
