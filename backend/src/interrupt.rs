//! The early end of work whose result nobody needs.

use std::cell::RefCell;
use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;

use trainyard_protocol::{IsAbandoned, OpError, RequestId};

/// Tells whether the result of some work is no longer needed. The answer may take a lock.
#[derive(Clone, Default)]
pub struct Interrupt(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

impl Interrupt {
    /// An interrupt that a function tells.
    pub fn new(is_set: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(is_set)))
    }

    /// Set once nobody waits for a request; never without a function that tells.
    pub fn of(is_abandoned: Option<&IsAbandoned>, request: &RequestId) -> Self {
        let Some(is_abandoned) = is_abandoned.cloned() else { return Self::default() };
        let request = request.clone();
        Self::new(move || is_abandoned(&request))
    }

    /// Set once all of these are: work that somebody waits for goes on.
    pub fn all_of(interrupts: Vec<Self>) -> Self {
        Self::new(move || !interrupts.is_empty() && interrupts.iter().all(Self::is_set))
    }

    /// Whether whoever waited has gone.
    pub fn is_set(&self) -> bool {
        self.0.as_ref().is_some_and(|is_set| is_set())
    }
}

/// The error of work that was interrupted.
#[derive(Debug)]
struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted: its session ended")
    }
}

impl Error for Interrupted {}

thread_local! {
    /// The interrupt of this thread's work: reading and writing of files is far below the request that it is for.
    static CURRENT: RefCell<Interrupt> = RefCell::default();
}

/// Restores the interrupt of the work around, also after a panic.
struct Former(Interrupt);

impl Drop for Former {
    fn drop(&mut self) {
        CURRENT.set(std::mem::take(&mut self.0));
    }
}

/// Calls `work`, in which [`check`] fails once `interrupt` is set.
pub fn interruptible<T>(interrupt: Interrupt, work: impl FnOnce() -> T) -> T {
    let _former = Former(CURRENT.replace(interrupt));
    work()
}

/// The interrupt of this thread's work, for threads that help with it.
pub fn current() -> Interrupt {
    CURRENT.with_borrow(Clone::clone)
}

/// Fails when the work of this thread is interrupted.
///
/// # Errors
/// One that [`refusal`] knows.
pub fn check() -> io::Result<()> {
    if current().is_set() { Err(io::Error::other(Interrupted)) } else { Ok(()) }
}

/// The client's error for one of [`check`]; `None` for others.
pub fn refusal(error: &io::Error) -> Option<OpError> {
    error.get_ref().filter(|inner| inner.is::<Interrupted>()).map(|_| ended())
}

/// The client's error for work that was interrupted.
pub fn ended() -> OpError {
    OpError::user(Interrupted.to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic, reason = "tests")]

    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn work_is_interrupted_until_it_is_over() {
        let set = || Interrupt::new(|| true);
        assert!(check().is_ok());
        interruptible(set(), || {
            assert!(check().is_err_and(|error| refusal(&error).is_some()));
            interruptible(Interrupt::default(), || assert!(check().is_ok()));
            assert!(check().is_err());
        });
        let panicked = catch_unwind(AssertUnwindSafe(|| interruptible(set(), || panic!("as a test wants it"))));
        assert!(panicked.is_err() && check().is_ok());
        assert!(refusal(&io::Error::other("interrupted: its session ended")).is_none());
    }

    #[test]
    fn work_goes_on_for_whoever_waits() {
        let of = |set: &[bool]| Interrupt::all_of(set.iter().map(|&set| Interrupt::new(move || set)).collect());
        assert!(of(&[true, true]).is_set());
        assert!(!of(&[true, false]).is_set());
        assert!(!of(&[]).is_set());
    }
}
