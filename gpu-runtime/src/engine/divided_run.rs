//! A run whose parameters are divided among replicas (ZeRO stage 3), and how they are gathered.

use std::sync::Arc;

use trainyard_protocol::OpError;

use super::run::TrainingRun;
use super::sampler::SamplerWeights;
use crate::backend::Backend;
use crate::model::{GatheredPass, ParamSpec, gathered_weights};

impl<B: Backend> TrainingRun<B> {
    /// A pass over it in which replicas gather its parameters; all of them take part.
    pub(super) fn gathered_pass(&self, trains: bool) -> GatheredPass<B> {
        GatheredPass::new(&self.base.model, &self.base.replicas, &self.spec, &self.masters, trains)
    }

    /// Gathers all weights of the run in the form that passes read, for a sampler. All replicas call it together.
    pub(super) fn gathered_weights(&self, backend: &B) -> Result<SamplerWeights<B>, OpError> {
        let weights = gathered_weights(backend, &self.base.model, &self.base.replicas, &*self.masters);
        let weights = Arc::new(weights.map_err(|error| OpError::server(error.to_string()))?);
        Ok(SamplerWeights { base: Arc::clone(&self.base), weights, adapter: None })
    }

    /// Elements of the arrays on all replicas together.
    pub(super) fn whole_lens(&self) -> Vec<usize> {
        self.base.own_params(&self.spec).iter().map(ParamSpec::len).collect()
    }
}
