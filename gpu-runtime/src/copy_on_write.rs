//! What a run shares with a save that is being written, when the run changes it.

use std::sync::Arc;
use std::time::Duration;

use crate::fault::{Fault, guarded};

/// How long a run that has no memory for a copy sleeps before it looks at the save again.
const PAUSE: Duration = Duration::from_millis(1);

/// The value, to be changed: a copy where a save shares it. Where the device has no memory for the copy, the value itself, once the save
/// is written. Saves alone share values, and each of them ends.
pub(crate) fn own<T: Clone>(shared: &mut Arc<T>) -> &mut T {
    if Arc::get_mut(shared).is_none() {
        match guarded("copy of what is being saved", || T::clone(shared)) {
            Ok(copy) => *shared = Arc::new(copy),
            Err(Fault::OutOfMemory) => {
                tracing::info!("a run waits for its save, as there is no memory for a copy");
                while Arc::get_mut(shared).is_none() {
                    std::thread::sleep(PAUSE);
                }
            }
            // The copy below panics likewise.
            Err(Fault::Panic) => {}
        }
    }
    Arc::make_mut(shared)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::panic::resume_unwind;
    use std::sync::mpsc::channel;

    use super::*;
    use crate::fault::DeviceFault;

    /// A value; where it says so there is no memory for a copy.
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
        own(&mut value).0 += 1;
        let saved = Arc::clone(&value);
        own(&mut value).0 += 1;
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
        own(&mut value).0 += 1;
        assert_eq!((written.try_recv(), value.0), (Ok(1), 2));
        save.join().unwrap();
    }
}
