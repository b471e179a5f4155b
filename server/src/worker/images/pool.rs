//! Threads that decode images.

use std::collections::BTreeSet;
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use tokio::sync::oneshot;
use trainyard_images::{DECODING_BYTES_PER_PIXEL, Limits, Patches, Preprocessor, decode, dimensions};
use trainyard_protocol::{DecodedImages, Image, ImageDigest, OpError, TenantShare};

use super::fair_queue::FairQueue;

/// Bytes per pixel after resizing that both passes of resizing and the result hold.
const RESIZED_BYTES: u64 = 6;

/// Settings of a pool.
#[derive(Clone, Copy, Debug)]
pub struct PoolSettings {
    /// Number of threads, at least 1.
    pub threads: usize,
    /// Bytes that the images being decoded may take together. An image above it is decoded alone.
    pub memory: u64,
    /// Limits on each image.
    pub limits: Limits,
}

/// A pool of threads that decode images. The threads end with the pool.
pub struct ImagePool {
    shared: Arc<Shared>,
    limits: Limits,
}

struct Shared {
    state: Mutex<State>,
    /// Notified when a job is added or ends, and at the end.
    changed: Condvar,
    memory: u64,
}

#[derive(Default)]
struct State {
    queue: FairQueue<Job>,
    /// The next job, which waits for memory. Others wait behind it, so that large images have their turn.
    next: Option<Job>,
    used: u64,
    ended: bool,
}

struct Job {
    image: Image,
    preprocessor: Arc<Preprocessor>,
    bytes: u64,
    done: oneshot::Sender<Result<Arc<Patches>, OpError>>,
}

/// An image that can't be decoded.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::worker) struct Undecodable {
    pub(in crate::worker) digest: ImageDigest,
    pub(in crate::worker) error: OpError,
}

impl ImagePool {
    /// Starts the threads.
    ///
    /// # Errors
    /// Fails if the system can't start a thread.
    pub fn start(settings: PoolSettings) -> io::Result<Self> {
        let PoolSettings { threads, memory, limits } = settings;
        let shared = Arc::new(Shared { state: Mutex::default(), changed: Condvar::new(), memory });
        // Dropped when a thread can't be started, which ends the others.
        let pool = Self { shared, limits };
        for at in 0..threads.max(1) {
            let shared = Arc::clone(&pool.shared);
            thread::Builder::new().name(format!("images-{at}")).spawn(move || shared.work(&limits))?;
        }
        Ok(pool)
    }

    /// Decodes images for a tenant. Equal images are decoded once. The images wait in the tenant's queue from the call on;
    /// those that have not begun are skipped if the future is dropped.
    ///
    /// # Errors
    /// The first image that can't be decoded, with a user error.
    pub(in crate::worker) fn decode(
        &self,
        share: &TenantShare,
        preprocessor: &Arc<Preprocessor>,
        images: &[Image],
    ) -> impl Future<Output = Result<DecodedImages, Undecodable>> + Send + use<> {
        let mut different = BTreeSet::new();
        let images = images.iter().filter(|image| different.insert(image.digest));
        let in_order: Vec<_> = images.map(|image| (image.digest, self.enqueue(share, preprocessor, image))).collect();
        async move {
            let mut decoded = DecodedImages::new();
            for (digest, enqueued) in in_order {
                let result = match enqueued {
                    Ok(done) => done.await.unwrap_or_else(|_| Err(OpError::server("the server is stopping"))),
                    Err(error) => Err(error),
                };
                decoded.insert(digest, result.map_err(|error| Undecodable { digest, error })?);
            }
            Ok(decoded)
        }
    }

    fn enqueue(
        &self,
        share: &TenantShare,
        preprocessor: &Arc<Preprocessor>,
        image: &Image,
    ) -> Result<oneshot::Receiver<Result<Arc<Patches>, OpError>>, OpError> {
        let user = |error: trainyard_images::ImageError| OpError::user(error.to_string());
        let pixels = dimensions(&image.data, image.format, &self.limits).map_err(user)?.pixels();
        let resized = preprocessor.layout(image.counted).map_err(user)?.resized().pixels();
        let bytes =
            pixels.saturating_mul(DECODING_BYTES_PER_PIXEL).saturating_add(resized.saturating_mul(RESIZED_BYTES));
        let (done, receiver) = oneshot::channel();
        let job = Job { image: image.clone(), preprocessor: Arc::clone(preprocessor), bytes, done };
        self.shared.lock().queue.push(share, pixels.max(resized), job);
        self.shared.changed.notify_all();
        Ok(receiver)
    }
}

impl Drop for ImagePool {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self, limits: &Limits) {
        while let Some(Job { image, preprocessor, bytes, done }) = self.take() {
            if !done.is_closed() {
                // The request that waited may have ended.
                let _ = done.send(decode_one(&image, &preprocessor, limits));
            }
            self.lock().used -= bytes;
            self.changed.notify_all();
        }
    }

    /// Waits for the next job and its memory; `None` at the end.
    fn take(&self) -> Option<Job> {
        let mut state = self.lock();
        loop {
            if state.ended {
                return None;
            }
            if state.next.is_none() {
                state.next = state.queue.pop();
            }
            let used = state.used;
            let fits = |job: &mut Job| used == 0 || used.saturating_add(job.bytes) <= self.memory;
            if let Some(job) = state.next.take_if(fits) {
                state.used += job.bytes;
                return Some(job);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn decode_one(image: &Image, preprocessor: &Preprocessor, limits: &Limits) -> Result<Arc<Patches>, OpError> {
    let decoded = catch_unwind(AssertUnwindSafe(|| {
        let pixels = decode(&image.data, image.format, limits)?;
        preprocessor.patches(&pixels, image.counted)
    }));
    match decoded {
        Ok(patches) => patches.map(Arc::new).map_err(|error| OpError::user(error.to_string())),
        Err(_) => {
            tracing::error!(?image, "the decoder of images panicked");
            Err(OpError::server("internal error while decoding an image; the server's log has the details"))
        }
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
