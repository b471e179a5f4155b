//! Digests of complete uploads: a file of many gigabytes is hashed once, however often a client asks for its digest.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;

use crate::error::ApiError;

/// Maximum number of digests that are remembered.
const KEPT: usize = 256;

/// Names the content of a complete file.
type Content = [u8; 32];

/// Digests that were computed last, or are being computed.
#[derive(Default)]
pub(crate) struct UploadDigests(Mutex<VecDeque<(Content, SharedDigest)>>);

/// A digest that is computed once.
type SharedDigest = Arc<OnceCell<[u8; 32]>>;

/// Returns the name of the content that these objects of the storage have, which never change.
pub(crate) fn content<'a>(folder: &'a str, objects: impl Iterator<Item = &'a str>) -> Content {
    let mut hash = Sha256::new();
    for part in std::iter::once(folder).chain(objects) {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

impl UploadDigests {
    /// Returns the digest of a content. The first caller computes it; others wait for it.
    ///
    /// # Errors
    /// Fails if it can't be computed. Then the next caller tries again.
    pub(crate) async fn get<F>(&self, content: Content, compute: impl FnOnce() -> F) -> Result<[u8; 32], ApiError>
    where
        F: Future<Output = Result<[u8; 32], ApiError>>,
    {
        let cell = self.cell(content);
        cell.get_or_try_init(compute).await.copied()
    }

    fn cell(&self, content: Content) -> Arc<OnceCell<[u8; 32]>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept.iter().position(|(known, _)| *known == content).and_then(|at| kept.remove(at));
        let entry = known.unwrap_or_else(|| (content, Arc::default()));
        let cell = Arc::clone(&entry.1);
        kept.push_back(entry);
        if kept.len() > KEPT {
            kept.pop_front();
        }
        cell
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test]
    async fn a_content_is_hashed_once_also_by_callers_at_the_same_time() {
        let (digests, computed) = (UploadDigests::default(), AtomicU32::new(0));
        let compute = || async {
            computed.fetch_add(1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            Ok([7; 32])
        };
        let name = content("uploads/a", ["1", "2"].into_iter());
        let (one, other) = tokio::join!(digests.get(name, compute), digests.get(name, compute));
        assert_eq!((one.unwrap(), other.unwrap()), ([7; 32], [7; 32]));
        assert_eq!(digests.get(name, compute).await.unwrap(), [7; 32]);
        assert_eq!(computed.load(Ordering::SeqCst), 1);
        let others = [content("uploads/a", ["12"].into_iter()), content("uploads/b", ["1", "2"].into_iter())];
        for other in others {
            digests.get(other, compute).await.unwrap();
        }
        assert_eq!(computed.load(Ordering::SeqCst), 3, "they are other contents");
    }

    #[tokio::test]
    async fn a_failure_is_not_remembered_and_few_digests_are() {
        let digests = UploadDigests::default();
        let failed = digests.get([1; 32], || async { Err(ApiError::invalid("no")) }).await;
        assert!(failed.is_err());
        assert_eq!(digests.get([1; 32], || async { Ok([2; 32]) }).await.unwrap(), [2; 32]);
        for number in 0..=KEPT as u32 {
            let name = content("uploads", [number.to_string().as_str()].into_iter());
            digests.get(name, || async { Ok([3; 32]) }).await.unwrap();
        }
        assert_eq!(digests.0.lock().unwrap().len(), KEPT);
        assert_eq!(digests.get([1; 32], || async { Ok([4; 32]) }).await.unwrap(), [4; 32]);
    }
}
