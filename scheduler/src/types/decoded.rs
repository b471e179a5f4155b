//! Payloads that have been decoded in advance.

use std::fmt;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use trainyard_protocol::PreparedContent;

use crate::RequestKind;
use crate::context::lock::lock;

/// Decoded and checked content of a payload, which spares the worker the decoding. It can be taken once. It is dropped
/// after a restart, or when much work is queued; the bytes are then decoded again.
#[derive(Clone, Default)]
pub struct Decoded(Option<Arc<Mutex<Option<PreparedContent>>>>);

impl Decoded {
    /// Wraps the content of a payload.
    pub fn new(content: PreparedContent) -> Self {
        Self(Some(Arc::new(Mutex::new(Some(content)))))
    }

    /// Takes the content, if it is still present.
    pub fn take(&self) -> Option<PreparedContent> {
        lock(self.0.as_ref()?).take()
    }
}

/// Function that decodes and checks a prefetched payload off the worker's thread. Its arguments are the kind, the base
/// model (empty for a sample) and the bytes. Payloads that it does not decode are left to the worker.
pub type PrefetchDecoder = Arc<dyn Fn(RequestKind, &str, Bytes) -> Decoded + Send + Sync>;

impl fmt::Debug for Decoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Decoded")
    }
}

/// All values are equal, because a value contains nothing that the payload does not.
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
