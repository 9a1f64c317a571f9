//! Turns a panic while a motion is planned or checked into a refusal, because nothing has been sent by then.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Panic during a piece of work: a bug in the program, regardless of the request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "internal error while {work}: {message}. Next: report it with the scene, the design and the node's log"
)]
pub struct InternalError {
    /// The work, as a phrase after "while".
    work: &'static str,
    /// Message of the panic.
    message: String,
}

/// Runs work that must not panic. A panic is logged and becomes an error; anything the work had
/// produced is dropped.
///
/// # Errors
/// [`InternalError`] when it panicked.
pub fn catch_panic<T>(work: &'static str, run: impl FnOnce() -> T) -> Result<T, InternalError> {
    // `run` only reads what it borrows, or nothing reads it after an error.
    catch_unwind(AssertUnwindSafe(run)).map_err(|payload| {
        let message = panic_message(payload.as_ref());
        tracing::error!("panic while {work}: {message}");
        InternalError { work, message }
    })
}

/// Returns the message of a panic.
fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
    text.map_or_else(|| "a panic without a message".to_owned(), str::to_owned)
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a failing test may panic"
)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_that_says_what_it_said() {
        assert_eq!(catch_panic("planning", || 7), Ok(7));
        let index = std::hint::black_box(9);
        let error = catch_panic("planning", || [1, 2, 3][index]).unwrap_err();
        let error = error.to_string();
        let expected = "internal error while planning: index out of bounds: the len is 3";
        assert!(
            error.contains(expected) && error.contains("report it"),
            "{error}"
        );
        let error = catch_panic("the plan is judged", || panic!("no words of its own"));
        let expected = "while the plan is judged: no words of its own";
        assert!(error.unwrap_err().to_string().contains(expected));
        let odd = catch_panic("planning", || std::panic::panic_any(3)).unwrap_err();
        assert!(odd.to_string().contains("a panic without a message"));
    }
}
