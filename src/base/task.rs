//! Tasks of the asynchronous runtime.

use std::pin::Pin;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// Runs `future` as a task of its own, as [`tokio::spawn`] does, and panics where that does.
///
/// The future is boxed, so that the runtime's part of a task is compiled once for each output type, not for each future.
pub fn spawn<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    spawn_on(&Handle::current(), future)
}

/// Runs `future` as a task of `runtime`, like [`spawn`].
pub fn spawn_on<T: Send + 'static>(
    runtime: &Handle,
    future: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    let boxed: Pin<Box<dyn Future<Output = T> + Send>> = Box::pin(future);
    runtime.spawn(boxed)
}

/// Waits by the runtime's timer, which may be a millisecond off, and not by a node's clock.
pub async fn pause(time: Duration) {
    let _ = tokio::time::timeout(time, std::future::pending::<()>()).await;
}
