//! Threads that may wait: they yield the processor to the arms.

/// Nice value of such a thread; other systems than Unix leave it as it is.
#[cfg(unix)]
const BACKGROUND_NICE: i32 = 10;

/// Lowers the priority of the calling thread, so that it yields to the arms' threads and to callers.
///
/// # Errors
/// When the system does not let it; the thread goes on as it was.
pub fn yield_to_arms() -> std::io::Result<()> {
    #[cfg(unix)]
    rustix::process::nice(BACKGROUND_NICE)?;
    Ok(())
}
