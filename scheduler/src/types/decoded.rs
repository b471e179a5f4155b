//! Payloads that were read already.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex};

use bytes::Bytes;

use crate::RequestKind;
use crate::waiters::lock;

/// What a payload says, read at its submission: for the worker to use in place of the bytes, so that reading costs
/// it no time. It can be taken once, and is gone after a restart or when much waits; then the bytes are read.
#[derive(Clone, Default)]
pub struct Decoded(Option<Shared>);

type Shared = Arc<Mutex<Option<Box<dyn Any + Send>>>>;

impl Decoded {
    /// Keeps a value of any type.
    pub fn new<T: Any + Send>(value: T) -> Self {
        Self(Some(Arc::new(Mutex::new(Some(Box::new(value))))))
    }

    /// The value, if it is still there and of this type.
    pub fn take<T: Any>(&self) -> Option<T> {
        let value = lock(self.0.as_ref()?).take()?;
        value.downcast().ok().map(|value| *value)
    }
}

/// Reads a payload of a request to a base model (of a sample: to none) before its turn, off the worker's thread. What it
/// can't read it leaves to the worker.
pub type ReadAhead = Arc<dyn Fn(RequestKind, &str, Bytes) -> Decoded + Send + Sync>;

impl fmt::Debug for Decoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Decoded")
    }
}

/// It says nothing that the payload does not.
impl PartialEq for Decoded {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::Decoded;

    #[test]
    fn a_value_is_taken_once_and_by_its_type() {
        let decoded = Decoded::new(7_u32);
        let clone = decoded.clone();
        assert_eq!((clone.take::<u32>(), decoded.take::<u32>()), (Some(7), None));
        assert_eq!(Decoded::new(7_u32).take::<u64>(), None);
        assert_eq!(Decoded::default().take::<u32>(), None);
    }
}
