//! Mutexes whose data is whole even where a thread panicked that held them.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Locking of a mutex that a panic leaves usable: its data is whole before each change and after it.
pub trait MutexExt<T> {
    /// Locks the mutex, also one that a panicked thread held.
    fn locked(&self) -> MutexGuard<'_, T>;

    /// Locks the mutex in the same way if no other thread holds it.
    fn try_locked(&self) -> Option<MutexGuard<'_, T>>;
}

impl<T> MutexExt<T> for Mutex<T> {
    fn locked(&self) -> MutexGuard<'_, T> {
        self.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_locked(&self) -> Option<MutexGuard<'_, T>> {
        match self.try_lock() {
            Ok(free) => Some(free),
            Err(TryLockError::Poisoned(broken)) => Some(broken.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}
