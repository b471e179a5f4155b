//! Copy-on-write data that a run shares with a save in progress.

use std::sync::Arc;
use std::time::Duration;

use crate::fault::if_memory_suffices;

/// How long a run that has no memory for a copy sleeps before it looks at the save again.
const PAUSE: Duration = Duration::from_millis(1);

/// The value, to be changed: a copy where a save shares it. Where the device has no memory for the copy, the value itself, once the save
/// is written; the calling thread waits for that.
///
/// Passes share values too, with their scalar heads and with gathered parameters. They run on the thread that calls this, and have ended
/// then: only saves are left, which other threads write, and each of them ends.
pub(crate) fn make_mut_or_wait<T: Clone>(shared: &mut Arc<T>) -> &mut T {
    if Arc::get_mut(shared).is_none() {
        match if_memory_suffices(|| T::clone(shared)) {
            Some(copy) => *shared = Arc::new(copy),
            None => {
                tracing::info!("the engine waits for a save: not enough memory to copy the shared data");
                while Arc::get_mut(shared).is_none() {
                    std::thread::sleep(PAUSE);
                }
            }
        }
    }
    Arc::make_mut(shared)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::channel;

    use super::*;
    use crate::fault::{DeviceFault, Fault};

    /// A value, and whether cloning it runs out of memory.
    struct Value(u32, bool);

    impl Clone for Value {
        fn clone(&self) -> Self {
            if self.1 {
                resume_unwind(Box::new(DeviceFault { fault: Fault::OutOfMemory, message: "full".to_owned() }));
            }
            Self(self.0, self.1)
        }
    }

    #[test]
    fn a_copy_is_changed_where_there_is_memory_for_one() {
        let mut value = Arc::new(Value(1, false));
        make_mut_or_wait(&mut value).0 += 1;
        let saved = Arc::clone(&value);
        make_mut_or_wait(&mut value).0 += 1;
        assert_eq!((saved.0, value.0), (2, 3));
    }

    #[test]
    fn without_memory_it_is_changed_after_the_save() {
        let mut value = Arc::new(Value(1, true));
        let (saved, (told, written)) = (Arc::clone(&value), channel());
        let save = std::thread::spawn(move || {
            std::thread::sleep(20 * PAUSE);
            told.send(saved.0).unwrap();
        });
        make_mut_or_wait(&mut value).0 += 1;
        assert_eq!((written.try_recv(), value.0), (Ok(1), 2));
        save.join().unwrap();
    }

    #[test]
    fn a_copy_that_panics_is_not_tried_again() {
        struct Broken(Arc<AtomicUsize>);
        impl Clone for Broken {
            fn clone(&self) -> Self {
                self.0.fetch_add(1, Ordering::Relaxed);
                resume_unwind(Box::new("broken"))
            }
        }
        let tries = Arc::new(AtomicUsize::new(0));
        let mut value = Arc::new(Broken(Arc::clone(&tries)));
        let _saved = Arc::clone(&value);
        let change = || {
            make_mut_or_wait(&mut value);
        };
        let panic = catch_unwind(AssertUnwindSafe(change)).unwrap_err();
        assert_eq!((panic.downcast_ref(), tries.load(Ordering::Relaxed)), (Some(&"broken"), 1));
    }
}
