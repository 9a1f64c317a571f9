//! Mutexes whose data stays valid even if a thread panicked while it held them.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Locks mutexes regardless of poisoning: their data is valid before and after each change.
pub trait MutexExt<T> {
    /// Locks the mutex, even if a thread panicked while it held the lock.
    fn locked(&self) -> MutexGuard<'_, T>;

    /// Locks the mutex in the same way, if no other thread holds it.
    fn try_locked(&self) -> Option<MutexGuard<'_, T>>;
}

impl<T> MutexExt<T> for Mutex<T> {
    fn locked(&self) -> MutexGuard<'_, T> {
        self.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_locked(&self) -> Option<MutexGuard<'_, T>> {
        match self.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}
