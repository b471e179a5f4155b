//! Payloads that were decoded already.

use std::fmt;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use trainyard_protocol::PreparedContent;

use crate::RequestKind;
use crate::context::lock::lock;

/// The content of a payload, decoded and checked, for the worker to use in place of the bytes, so that decoding costs it no
/// time. It can be taken once, and is gone after a restart or when much waits; then the bytes are decoded.
#[derive(Clone, Default)]
pub struct Decoded(Option<Arc<Mutex<Option<PreparedContent>>>>);

impl Decoded {
    /// Holds a payload's content.
    pub fn new(content: PreparedContent) -> Self {
        Self(Some(Arc::new(Mutex::new(Some(content)))))
    }

    /// The content, if it is still there.
    pub fn take(&self) -> Option<PreparedContent> {
        lock(self.0.as_ref()?).take()
    }
}

/// Decodes and checks a prefetched payload of a request to a base model (of a sample: to none), off the worker's thread.
/// Payloads that it does not decode are left to the worker.
pub type PrefetchDecoder = Arc<dyn Fn(RequestKind, &str, Bytes) -> Decoded + Send + Sync>;

impl fmt::Debug for Decoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Decoded")
    }
}

/// All are equal: it holds nothing that the payload does not.
impl PartialEq for Decoded {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use trainyard_protocol::{OpError, PreparedContent};

    use super::Decoded;

    #[test]
    fn content_is_taken_once() {
        let content = PreparedContent::Batch(Err(OpError::user("data: wrong")));
        let decoded = Decoded::new(content.clone());
        let clone = decoded.clone();
        assert_eq!((clone.take(), decoded.take()), (Some(content), None));
        assert_eq!(Decoded::default().take(), None);
    }
}
