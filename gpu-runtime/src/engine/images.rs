//! Requests with images, which start once the embeddings of their images are computed, in passes of the tower that
//! tenants share.
//!
//! Embeddings are cached for their tenant ([`EmbeddingCache`]). A pass computes images of one request, so that an error
//! in it concerns only that request. Results do not depend on passes or the cache: an image's bits depend only on the
//! image.

use std::collections::BTreeSet;
use std::sync::Arc;

use trainyard_images::Patches;
use trainyard_protocol::{ForwardBackward, ImageDigest, OpError, PreparedImage, RequestId, RunId, TenantShare};

use super::base::Base;
use super::fair_share::FairShare;
use super::schema_compiles::LoadedSample;
use crate::backend::Backend;
use crate::fault::{Fault, guarded};
use crate::grammar::Grammar;
use crate::vision::{EmbeddingCache, Embeddings, ImageKey};

/// Patches of a pass, unless one image has more.
const PASS_PATCHES: usize = 4096;

/// A request that needs embeddings.
pub(super) enum ImageWork<B: Backend> {
    Train(ForwardBackward),
    Sample(Box<SampleWork<B>>),
}

/// A sample that waits for embeddings.
pub(super) struct SampleWork<B: Backend> {
    pub(super) sample: LoadedSample<B>,
    pub(super) grammar: Option<Grammar>,
    /// Images of the prompt, in order.
    pub(super) images: Vec<PreparedImage>,
}

/// A request whose embeddings are complete.
pub(super) struct ReadyRequest<B: Backend> {
    pub(super) id: RequestId,
    pub(super) share: TenantShare,
    pub(super) work: ImageWork<B>,
    pub(super) embeddings: Embeddings<B>,
}

/// A request some of whose embeddings are missing.
pub(super) struct WaitingRequest<B: Backend> {
    pub(super) ready: ReadyRequest<B>,
    pub(super) base: Arc<Base<B>>,
    /// Images without an embedding, in order.
    pub(super) missing: Vec<(ImageDigest, Arc<Patches>)>,
}

impl<B: Backend> WaitingRequest<B> {
    fn key(&self, digest: ImageDigest) -> ImageKey {
        let (tenant, model) = (Arc::clone(&self.ready.share.name), Arc::clone(&self.base.fingerprint));
        ImageKey { tenant, model, digest }
    }

    /// Takes embeddings that the cache has.
    fn take_cached(&mut self, cache: &mut EmbeddingCache<B>) {
        for (digest, patches) in std::mem::take(&mut self.missing) {
            match cache.get(&self.key(digest)) {
                Some(embedding) => drop(self.ready.embeddings.insert(digest, embedding)),
                None => self.missing.push((digest, patches)),
            }
        }
    }

    /// Number of images of the next pass, and the tokens that they are charged for.
    fn next_pass(&self) -> (usize, usize) {
        let (mut patches, mut tokens, mut count) = (0, 0, 0);
        for (_, image) in &self.missing {
            let layout = image.layout();
            if count > 0 && patches + layout.patches() > PASS_PATCHES {
                break;
            }
            patches += layout.patches();
            tokens += layout.tokens();
            count += 1;
        }
        (count, tokens)
    }

    /// Computes the images of the next pass.
    fn compute(&mut self, backend: &B, cache: &mut EmbeddingCache<B>) -> Result<(), OpError> {
        let Some(tower) = self.base.tower.clone() else {
            return Err(OpError::server("a request with images for a model without a tower"));
        };
        let (count, _) = self.next_pass();
        let images: Vec<&Patches> = self.missing[..count].iter().map(|(_, patches)| &**patches).collect();
        let embedded = guarded("vision pass", || tower.embed(backend, &images)).map_err(Fault::error)?;
        let computed: Vec<_> = self.missing.drain(..count).map(|(digest, _)| digest).zip(embedded).collect();
        for (digest, embedding) in computed {
            let embedding = Arc::new(embedding);
            cache.insert(self.key(digest), Arc::clone(&embedding));
            self.ready.embeddings.insert(digest, embedding);
        }
        Ok(())
    }
}

/// Requests that wait for embeddings, in order of arrival, and the cache of these.
pub(super) struct ImageQueue<B: Backend> {
    waiting: Vec<WaitingRequest<B>>,
    cache: EmbeddingCache<B>,
    fair_share: FairShare,
    /// Whether images had the last turn of training and images.
    pub(super) had_turn: bool,
}

impl<B: Backend> ImageQueue<B> {
    /// A queue with a cache of at most `cache_bytes` bytes beside entries in use.
    pub(super) fn new(cache_bytes: usize) -> Self {
        let fair_share = FairShare::new(PASS_PATCHES / 4);
        Self { waiting: Vec::new(), cache: EmbeddingCache::new(cache_bytes), fair_share, had_turn: false }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Shares of the requests that wait.
    pub(super) fn shares(&self) -> impl Iterator<Item = &TenantShare> {
        self.waiting.iter().map(|request| &request.ready.share)
    }

    pub(super) fn cancel(&mut self, ids: &BTreeSet<RequestId>) {
        self.waiting.retain(|request| !ids.contains(&request.ready.id));
    }

    /// Drops the requests of a run.
    pub(super) fn drop_requests(&mut self, run: &RunId) {
        self.waiting.retain(|request| !matches!(&request.ready.work, ImageWork::Train(own) if own.run == *run));
    }

    /// Queues a request; returns it if the cache has all of its embeddings.
    pub(super) fn push(&mut self, mut request: WaitingRequest<B>) -> Option<ReadyRequest<B>> {
        request.take_cached(&mut self.cache);
        if request.missing.is_empty() {
            return Some(request.ready);
        }
        self.waiting.push(request);
        None
    }

    /// Computes images of the request whose turn it is: of the tenant's oldest one. Returns the request if it is complete, or fails.
    pub(super) fn step(&mut self, backend: &B) -> Option<Result<ReadyRequest<B>, (RequestId, OpError)>> {
        let Self { waiting, cache, fair_share, .. } = self;
        let mut chosen = None;
        fair_share.fill(waiting.iter().map(|request| &request.ready.share), |tenant| {
            let at = waiting.iter().position(|request| request.ready.share.name == *tenant)?;
            chosen.is_none().then(|| {
                chosen = Some(at);
                waiting[at].next_pass().1
            })
        });
        let at = chosen?;
        waiting[at].take_cached(cache);
        let computed = waiting[at].compute(backend, cache);
        if computed.is_ok() && !waiting[at].missing.is_empty() {
            return None;
        }
        let ready = waiting.remove(at).ready;
        Some(match computed {
            Ok(()) => Ok(ready),
            Err(error) => Err((ready.id, error)),
        })
    }

    /// Removes cached embeddings beyond the limit that nothing uses any longer.
    pub(super) fn evict_unused(&mut self) {
        self.cache.evict();
    }
}

/// Images of a request, each once.
pub(super) fn distinct<'a>(images: impl Iterator<Item = &'a PreparedImage>) -> Vec<(ImageDigest, Arc<Patches>)> {
    let mut seen = BTreeSet::new();
    let new = images.filter(|image| seen.insert(image.digest));
    new.map(|image| (image.digest, Arc::clone(&image.patches))).collect()
}
