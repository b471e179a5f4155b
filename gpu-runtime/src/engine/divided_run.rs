//! A run whose parameters replicas divide (ZeRO stage 3): this replica's parts, and how all of them are gathered.

use std::borrow::Cow;
use std::sync::Arc;

use trainyard_protocol::{OpError, RunSpec};

use super::base::Base;
use super::run::TrainingRun;
use super::sampler::SamplerWeights;
use crate::backend::Backend;
use crate::collective::slice_of;
use crate::model::{GatheredPass, ParamSpec, gathered_weights};

impl<B: Backend> TrainingRun<B> {
    /// A pass over it in which replicas gather its parameters; all of them take part.
    pub(super) fn gathered_pass(&self, trains: bool) -> GatheredPass<B> {
        GatheredPass::new((&self.base.model, &self.base.replicas), &self.spec, &self.masters, trains)
    }

    /// Its weights in the form that passes read, all of them, for a sampler. All replicas call it together.
    pub(super) fn gathered_weights(&self, backend: &B) -> Result<SamplerWeights<B>, OpError> {
        let weights = gathered_weights(backend, (&self.base.model, &self.base.replicas), &*self.masters);
        let weights = Arc::new(weights.map_err(|error| OpError::server(error.to_string()))?);
        Ok(SamplerWeights { base: Arc::clone(&self.base), weights, adapter: None })
    }

    /// Elements of its arrays, those of all replicas together.
    pub(super) fn whole_lens(&self) -> Vec<usize> {
        self.base.own_params(&self.spec).iter().map(ParamSpec::len).collect()
    }
}

/// This replica's parts of the arrays of a run that trains all parameters, from the whole arrays, from this rank's parts of these, or
/// from what they are already.
pub(super) fn own_parts<B: Backend>(base: &Base<B>, spec: &RunSpec, arrays: Vec<Vec<f32>>) -> Vec<Vec<f32>> {
    let of = |(param, values): (&ParamSpec, Vec<f32>)| {
        let own = slice_of(param.len(), base.replicas.world(), base.replicas.rank());
        if values.len() == own.len() {
            return values;
        }
        base.model.shard.slice(param, Cow::Owned(values))[own].to_vec()
    };
    base.own_params(spec).iter().zip(arrays).map(of).collect()
}
