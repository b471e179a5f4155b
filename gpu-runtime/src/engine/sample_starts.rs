//! Start of a sample: its weights may have to be read, and the grammar of its text may have to be compiled. Neither
//! delays the engine.

use std::time::Duration;

use trainyard_protocol::{OpError, RequestId, SampleOperation, SamplerSource, TenantShare};

use super::Engine;
use super::sampler::SamplerWeights;
use super::saves::loads::CheckpointSample;
use super::schema_compiles::LoadedSample;
use crate::backend::Backend;

impl<B: Backend> Engine<B> {
    pub(super) fn start_sample(
        &mut self,
        id: RequestId,
        share: TenantShare,
        operation: SampleOperation,
    ) -> Result<(), OpError> {
        let weights = match &operation.source {
            SamplerSource::Base { model } => SamplerWeights::of_base(self.base(model)?),
            SamplerSource::Snapshot { key } => {
                let gone = || OpError::user("the sampling session's weights are gone; save them for sampling again");
                self.snapshots.get(key).ok_or_else(gone)?
            }
            SamplerSource::Checkpoint { base_model, dir } => {
                let (base, dir) = (self.base(base_model)?, dir.clone());
                self.checkpoints.push(base, dir, CheckpointSample { id, share, operation });
                self.start_waiting(Duration::ZERO);
                return Ok(());
            }
        };
        self.start_loaded(LoadedSample { id, share, operation, weights })
    }

    fn start_loaded(&mut self, sample: LoadedSample<B>) -> Result<(), OpError> {
        if sample.operation.sample.params.controls.json_schema.is_some() {
            self.schemas.push(sample);
            self.start_compiled(Duration::ZERO);
            return Ok(());
        }
        self.start_with_images(sample, None)
    }

    /// Starts the samples whose checkpoint is in memory now and whose schema is compiled, waiting for one of each for up to
    /// `wait`.
    pub(super) fn start_waiting(&mut self, wait: Duration) {
        for (CheckpointSample { id, share, operation }, weights) in self.checkpoints.advance(&self.backend, wait) {
            let sample = |weights| LoadedSample { id: id.clone(), share, operation, weights };
            if let Err(error) = weights.and_then(|weights| self.start_loaded(sample(weights))) {
                self.finish(id, Err(error));
            }
        }
        self.start_compiled(wait);
    }

    fn start_compiled(&mut self, wait: Duration) {
        for (sample, grammar) in self.schemas.advance(wait) {
            let id = sample.id.clone();
            if let Err(error) = grammar.and_then(|grammar| self.start_with_images(sample, Some(grammar))) {
                self.finish(id, Err(error));
            }
        }
    }
}
