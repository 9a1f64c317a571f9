//! Threads for calls other than stops. However long these read, compute or draw, the threads that serve clients stay free, so
//! that no stop waits.

use std::sync::OnceLock;

use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

/// Number of calls that are worked on at the same time; others wait.
const THREADS: usize = 2;

/// The pool. It lives as long as the process, so that work goes on after its client has disconnected.
static POOL: OnceLock<Option<Runtime>> = OnceLock::new();

/// Runs `work` in the pool, or on the caller's runtime if the system has no threads left.
pub(crate) fn spawn<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    match POOL.get_or_init(build_pool) {
        Some(runtime) => base::task::spawn_on(runtime.handle(), work),
        None => base::task::spawn(work),
    }
}

fn build_pool() -> Option<Runtime> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name("work")
        .enable_all()
        .build();
    runtime
        .inspect_err(|error| tracing::warn!("the threads for calls cannot be started: {error}"))
        .ok()
}
