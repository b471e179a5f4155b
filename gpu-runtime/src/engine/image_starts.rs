//! Start of requests with images: once the embeddings of their images are computed, or at once if the cache has them.

use std::sync::Arc;

use trainyard_images::Patches;
use trainyard_protocol::{ForwardBackward, ImageDigest, OpError, RequestId, TenantShare};

use super::base::Base;
use super::images::{ImageWork, ReadyRequest, SampleWork, WaitingRequest, distinct};
use super::sampler::PreparedSample;
use super::schema_compiles::LoadedSample;
use super::{Engine, unknown_run};
use crate::backend::Backend;
use crate::grammar::Grammar;
use crate::vision::Embeddings;

impl<B: Backend> Engine<B> {
    /// Starts a training request, once its images are embedded.
    pub(super) fn start_training(
        &mut self,
        id: RequestId,
        share: TenantShare,
        request: ForwardBackward,
    ) -> Result<(), OpError> {
        let run = self.runs.get(&request.run).ok_or_else(|| unknown_run(&request.run))?;
        let images = distinct(request.batch.data.iter().flat_map(|datum| &datum.images));
        if images.is_empty() {
            return self.trainer.start(id, share, run, request, Embeddings::new());
        }
        let base = Arc::clone(&run.base);
        let ready = ReadyRequest { id, share, work: ImageWork::Train(request), embeddings: Embeddings::new() };
        self.embed(base, images, ready)
    }

    /// Starts a sample, once the images of its prompt are embedded.
    pub(super) fn start_with_images(
        &mut self,
        sample: LoadedSample<B>,
        grammar: Option<Grammar>,
    ) -> Result<(), OpError> {
        let base = Arc::clone(&sample.weights.base);
        let operation = &sample.operation;
        let request = &operation.sample;
        let images = base.images.prepare("prompt", &request.prompt, &request.images, &operation.images)?;
        let missing = distinct(images.iter());
        let (id, share) = (sample.id.clone(), sample.share.clone());
        let work = ImageWork::Sample(Box::new(SampleWork { sample, grammar, images }));
        let ready = ReadyRequest { id, share, work, embeddings: Embeddings::new() };
        if missing.is_empty() { self.begin(ready) } else { self.embed(base, missing, ready) }
    }

    /// Queues a request that misses the embeddings of some images, or begins it if the cache has them.
    fn embed(
        &mut self,
        base: Arc<Base<B>>,
        missing: Vec<(ImageDigest, Arc<Patches>)>,
        ready: ReadyRequest<B>,
    ) -> Result<(), OpError> {
        if base.tower.is_none() {
            return Err(OpError::user(format!("model {} does not take images", base.name)));
        }
        match self.images.push(WaitingRequest { ready, base, missing }) {
            Some(ready) => self.begin(ready),
            None => Ok(()),
        }
    }

    fn begin(&mut self, ready: ReadyRequest<B>) -> Result<(), OpError> {
        let ReadyRequest { id, share, work, embeddings } = ready;
        match work {
            ImageWork::Train(request) => match self.runs.get(&request.run) {
                Some(run) => self.trainer.start(id, share, run, request, embeddings),
                None => Err(unknown_run(&request.run)),
            },
            ImageWork::Sample(work) => {
                let SampleWork { sample, grammar, images } = *work;
                let LoadedSample { operation, weights, .. } = sample;
                let sample = PreparedSample { operation, grammar, images, embeddings };
                let watched = self.watch.chosen(&id, &weights, &sample);
                self.sampler.start(id.clone(), share, weights, sample)?;
                self.watch.begin(id, watched);
                Ok(())
            }
        }
    }

    /// Computes images, and begins the request that waited for them.
    pub(super) fn embed_step(&mut self) {
        let begun = match self.images.step(&self.backend) {
            None => return,
            Some(Err(failed)) => Err(failed),
            Some(Ok(ready)) => {
                let id = ready.id.clone();
                self.begin(ready).map_err(|error| (id, error))
            }
        };
        if let Err((id, error)) = begun {
            self.finish(id, Err(error));
        }
    }
}
