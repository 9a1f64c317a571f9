//! Background threads, which yield the processor to the arms.

/// Nice value of a background thread on Unix: half the share of any other thread. With more, a person would wait ten times
/// longer for a plan beside programs that use all processors, such as a language model.
#[cfg(unix)]
const BACKGROUND_NICE: i32 = 3;

/// Lowers the priority of the calling thread, so that it yields to the arms' threads and to callers.
///
/// # Errors
/// When the system refuses; the thread then keeps its priority.
pub fn yield_to_arms() -> std::io::Result<()> {
    #[cfg(unix)]
    rustix::process::nice(BACKGROUND_NICE)?;
    Ok(())
}
