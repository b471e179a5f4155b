//! A training run's state: masters, moments, accumulated gradient, and the weights that passes read.

use std::sync::{Arc, Weak};

use trainyard_protocol::{LoraSpec, OpError, RunId, RunMemory, RunSpec};

use super::base::Base;
use super::memory::run_memory;
use super::sampler::SamplerWeights;
use crate::backend::{Backend, Params};
use crate::copy_on_write::make_mut_or_wait;
use crate::model::zero::replicas::{gather_into, part_lens, part_of, scatter_sums};
use crate::model::{Adapter, Init, ParamSpec, RunHead, Weights, gradient_norm};
use crate::rng::kaiming_uniform_fill;

/// The state of a training run. Tensors that a save in progress shares are copied before they change.
pub(super) struct TrainingRun<B: Backend> {
    pub(super) base: Arc<Base<B>>,
    pub(super) spec: RunSpec,
    /// Trained parameters in f32, in the order of [`crate::model::ParamTable::trained`]: all of them, or this replica's parts where
    /// replicas divide them.
    pub(super) masters: Arc<B::Params>,
    /// First and second moments, this replica's parts of them; `None` before the first step.
    pub(super) moments: Option<[Arc<B::Params>; 2]>,
    /// Number of optimizer steps taken.
    pub(super) step: u64,
    /// Gradient accumulated since the last optimizer step.
    pub(super) gradient: Option<AccumulatedGradient<B>>,
    /// Memory for the next gradient; only of runs that train all parameters.
    spare_gradient: Option<B::Params>,
    pass_weights: PassWeights<B>,
    /// Largest share of the memory budget that the run takes.
    pub(super) planned: RunMemory,
    /// Bytes of its packed adapter for a forward-only pass, and for one that trains.
    adapter_bytes: [usize; 2],
    /// The copy of its adapter that samplers hold; dangling after the adapter has changed.
    sampler_adapter: Weak<Adapter<B>>,
}

/// The error of an operation on a run that is not there.
pub(super) fn unknown_run(id: &RunId) -> OpError {
    OpError::server(format!("model {id} is not loaded"))
}

/// A sum of gradients for the next optimizer step.
pub(super) struct AccumulatedGradient<B: Backend> {
    /// This replica's parts of the sum.
    pub(super) sum: Arc<B::Params>,
    /// The global L2 norm of the sum: finite, unless a snapshot held a sum that is not.
    pub(super) norm: f64,
}

/// The weights that passes read; never changed while a sampler holds them.
enum PassWeights<B: Backend> {
    /// Packed when a pass or a sampler needs it.
    Lora(LoraSpec, Option<Arc<Adapter<B>>>),
    Full(Arc<Weights<B>>),
    /// All parameters, divided among replicas: passes gather them.
    Divided,
}

impl<B: Backend> TrainingRun<B> {
    /// A fresh run: A from the seed and B zero, or the base model's parameters; a scalar head is zero.
    pub(super) fn new(backend: &B, base: Arc<Base<B>>, spec: RunSpec) -> Result<Self, OpError> {
        let mut masters = match &spec.lora {
            None => base.read_masters()?,
            Some(_) => Vec::new(),
        };
        let seed = spec.lora.as_ref().map_or(0, |lora| lora.seed);
        let params = base.whole_params(&spec);
        let others = (0..).zip(&params).skip(masters.len());
        masters.extend(others.map(|(index, param)| initial_values(seed, index, param)));
        Self::from_masters(backend, base, spec, masters)
    }

    /// A run with given parameters, all of them or this rank's parts or this replica's parts of these, and no optimizer state.
    pub(super) fn from_masters(
        backend: &B,
        base: Arc<Base<B>>,
        spec: RunSpec,
        masters: Vec<Vec<f32>>,
    ) -> Result<Self, OpError> {
        if spec.lora.is_none() && base.is_in_blocks {
            return Err(OpError::user(format!(
                "base model {} has block-quantized weights, which can't be trained: train an adapter (LoRA), or ask for \
                 a server that dequantizes the weights (--weights bf16)",
                base.name
            )));
        }
        let planned = |lora, trains| Adapter::planned_bytes(backend, base.config(), lora, trains);
        let bytes = |lora| [false, true].map(|trains| planned(lora, trains));
        let adapter_bytes = spec.lora.as_ref().map_or([0; 2], bytes);
        let planned = run_memory(backend, base.config(), &spec, base.layout);
        let divides = base.divides(&spec);
        let own = if divides { base.own_parts(&spec, masters) } else { base.slices(&spec, masters) };
        let masters = backend.upload_params(own);
        let pass_weights = match &spec.lora {
            Some(lora) => PassWeights::Lora(lora.clone(), None),
            None if divides => PassWeights::Divided,
            None => PassWeights::Full(Arc::new(base.pack(backend, &masters)?)),
        };
        Ok(Self {
            base,
            spec,
            masters: Arc::new(masters),
            moments: None,
            step: 0,
            gradient: None,
            spare_gradient: None,
            pass_weights,
            planned,
            adapter_bytes,
            sampler_adapter: Weak::new(),
        })
    }

    /// A gradient with its norm, which all ranks compute together.
    pub(super) fn accumulated(&self, backend: &B, grads: B::Params) -> AccumulatedGradient<B> {
        let norm = gradient_norm(backend, &self.base.model, &self.base.replicas, &self.spec, &grads, None);
        AccumulatedGradient { sum: Arc::new(grads), norm }
    }

    /// Whether it trains all parameters; then it never shares a pass.
    pub(super) fn is_full(&self) -> bool {
        matches!(self.pass_weights, PassWeights::Full(_) | PassWeights::Divided)
    }

    /// Whether replicas divide its parameters (ZeRO stage 3). Then its gradients are parts from the start.
    pub(super) fn is_divided(&self) -> bool {
        matches!(self.pass_weights, PassWeights::Divided)
    }

    /// The packed adapter, if the run's adapter is packed.
    pub(super) fn packed(&self) -> Option<Arc<Adapter<B>>> {
        match &self.pass_weights {
            PassWeights::Lora(_, adapter) => adapter.clone(),
            PassWeights::Full(_) | PassWeights::Divided => None,
        }
    }

    /// The scalar head with the current parameters, if the run has one; `None` if passes gather it.
    pub(super) fn scalar_head(&self) -> Option<RunHead<B>> {
        (self.spec.head.is_scalar() && !self.is_divided()).then(|| RunHead::of(&self.masters))
    }

    /// Bytes that its adapter has when it is packed for a pass.
    pub(super) fn adapter_bytes(&self, trains: bool) -> usize {
        self.adapter_bytes[usize::from(trains)]
    }

    /// Bytes that a pass holds for this run: its packed adapter and, if the pass trains, its gradient.
    pub(super) fn pass_bytes(&self, trains: bool) -> usize {
        self.adapter_bytes(trains) + if trains { self.parameter_bytes() } else { 0 }
    }

    /// Whether its adapter can be packed into the memory of `recycled`.
    pub(super) fn can_use(&self, recycled: &RecycledAdapter<B>) -> bool {
        matches!(&self.pass_weights, PassWeights::Lora(lora, _) if recycled.fits(&self.base, lora))
    }

    /// Packs its adapter unless that is packed, into the memory of `recycled` if it fits. `None` if all parameters are
    /// trained.
    pub(super) fn pack(&mut self, backend: &B, recycled: &mut Option<RecycledAdapter<B>>) -> Option<Arc<Adapter<B>>> {
        let PassWeights::Lora(lora, packed) = &mut self.pass_weights else { return None };
        if packed.is_none() {
            let reused = recycled.take_if(|recycled| recycled.fits(&self.base, lora)).map(
                |RecycledAdapter { mut adapter, .. }| {
                    adapter.update(backend, &self.masters);
                    adapter
                },
            );
            let build = || Adapter::from_params(backend, self.base.config(), lora, &self.masters);
            *packed = Some(Arc::new(reused.unwrap_or_else(build)));
        }
        packed.clone()
    }

    /// Evicts the packed adapter. `None` if there is none, or if it is in use.
    pub(super) fn unpack(&mut self) -> Option<RecycledAdapter<B>> {
        let PassWeights::Lora(lora, packed) = &mut self.pass_weights else { return None };
        let adapter = Arc::into_inner(packed.take()?)?;
        Some(RecycledAdapter { base: Arc::clone(&self.base), lora: lora.clone(), adapter })
    }

    /// Bytes of its packed adapter, if it has one.
    pub(super) fn packed_bytes(&self, backend: &B) -> usize {
        match &self.pass_weights {
            PassWeights::Lora(_, Some(adapter)) => adapter.bytes(backend),
            _ => 0,
        }
    }

    /// Bytes of its arrays and of the weights that its passes read, unless these are the base model's.
    pub(super) fn bytes(&self, backend: &B) -> usize {
        let moments: usize = self.moments.iter().flatten().map(|moment| moment.bytes()).sum();
        let gradient = self.gradient.as_ref().map_or(0, |gradient| gradient.sum.bytes());
        let arrays =
            self.masters.bytes() + moments + gradient + self.spare_gradient.as_ref().map_or(0, B::Params::bytes);
        let packed = match &self.pass_weights {
            PassWeights::Lora(_, adapter) => adapter.as_ref().map_or(0, |_| self.adapter_bytes(true)),
            PassWeights::Full(weights) => weights.bytes(backend),
            PassWeights::Divided => 0,
        };
        arrays + packed
    }

    /// Bytes of its parameters, and of the gradient of a request.
    pub(super) fn parameter_bytes(&self) -> usize {
        self.masters.bytes()
    }

    /// The weights that its passes read, without the adapter. Where these gather them, those of the base model.
    pub(super) fn weights(&self) -> &Arc<Weights<B>> {
        match &self.pass_weights {
            PassWeights::Lora(..) | PassWeights::Divided => &self.base.weights,
            PassWeights::Full(weights) => weights,
        }
    }

    /// Bytes of a snapshot of it.
    pub(super) fn snapshot_bytes(&self) -> usize {
        self.planned.snapshot_bytes as usize
    }

    /// The current weights, for a sampler. The adapter is shared between calls until it changes. Where replicas divide the
    /// parameters, all of them call it together, and each gets all weights.
    pub(super) fn sampler_weights(&mut self, backend: &B) -> Result<SamplerWeights<B>, OpError> {
        if self.is_divided() {
            return self.gathered_weights(backend);
        }
        let packed = self.pack(backend, &mut None);
        let frozen = |packed: Arc<Adapter<B>>| {
            let adapter = self.sampler_adapter.upgrade().unwrap_or_else(|| Arc::new(packed.frozen(backend)));
            self.sampler_adapter = Arc::downgrade(&adapter);
            adapter
        };
        let adapter = packed.map(frozen);
        Ok(SamplerWeights { base: Arc::clone(&self.base), weights: Arc::clone(self.weights()), adapter })
    }

    /// Zeros to add a gradient to, in recycled memory where there is some.
    pub(super) fn begin_gradient(&mut self, backend: &B) -> B::Params {
        backend.begin_gradient(&self.masters.lens(), self.spare_gradient.take())
    }

    /// Whether passes add up exactly the sums that the optimizer takes: this is the only replica, or replicas exchange
    /// gradients in each pass.
    fn sums_as_stored(&self) -> bool {
        self.base.replicas.is_single() || self.is_divided()
    }

    /// Stores a consumed gradient as memory for the next one, if that has the same arrays.
    pub(super) fn recycle_gradient(&mut self, grads: B::Params) {
        if self.is_full() && self.sums_as_stored() {
            self.spare_gradient = Some(grads);
        }
    }

    /// Adds the gradient of a request; each replica computed it for a part of the examples. Fails without changes if
    /// the gradient or the sum is not finite: the run can continue without the request.
    pub(super) fn accumulate(&mut self, backend: &B, grads: B::Params) -> Result<(), OpError> {
        let grads = if self.sums_as_stored() {
            grads
        } else {
            let part = scatter_sums(backend, &self.base.replicas, &grads);
            self.spare_gradient = self.is_full().then_some(grads);
            part
        };
        let Some(gradient) = &mut self.gradient else {
            let first = self.accumulated(backend, grads);
            if !first.norm.is_finite() {
                return Err(OpError::user("the gradient is not finite: the loss or the model's weights are too large"));
            }
            self.gradient = Some(first);
            return Ok(());
        };
        let (model, replicas) = (&self.base.model, &self.base.replicas);
        let norm = gradient_norm(backend, model, replicas, &self.spec, &gradient.sum, Some(&grads));
        if !norm.is_finite() {
            return Err(OpError::user(
                "the sum of the gradients since the last optimizer step is not finite: the loss or the model's weights \
                 are too large",
            ));
        }
        backend.add_params(make_mut_or_wait(&mut gradient.sum), &grads);
        gradient.norm = norm;
        self.recycle_gradient(grads);
        Ok(())
    }

    /// Repacks the weights that passes read from the masters: in place where no sampler holds them.
    pub(super) fn refresh(&mut self, backend: &B) -> Result<(), OpError> {
        self.sampler_adapter = Weak::new();
        match &mut self.pass_weights {
            PassWeights::Lora(_, packed) => match packed.as_mut().and_then(Arc::get_mut) {
                Some(own) => own.update(backend, &self.masters),
                None => *packed = None,
            },
            PassWeights::Full(weights) => match Arc::get_mut(weights) {
                Some(own) => own.update(backend, &self.masters),
                None => *weights = Arc::new(self.base.pack(backend, &self.masters)?),
            },
            PassWeights::Divided => {}
        }
        Ok(())
    }

    /// A zero gradient as the optimizer takes it: this replica's parts.
    pub(super) fn zero_step_gradient(&mut self, backend: &B) -> B::Params {
        if self.sums_as_stored() {
            let mut zeros = self.begin_gradient(backend);
            backend.finish_gradient(&mut zeros);
            return zeros;
        }
        backend.zero_params(&part_lens(&self.masters.lens(), &self.base.replicas))
    }

    /// This replica's parts of the parameters for an optimizer step, if there are other replicas and each has all
    /// parameters.
    pub(super) fn master_part(&self, backend: &B) -> Option<B::Params> {
        (!self.sums_as_stored()).then(|| part_of(backend, &self.base.replicas, &self.masters))
    }

    /// Gathers the parameters from the parts that all replicas have updated.
    pub(super) fn gather_masters(&mut self, part: &B::Params) {
        gather_into(&self.base.replicas, part, make_mut_or_wait(&mut self.masters));
    }

    /// The parameters, or the given part of them, and their moments, mutable; arrays that a save holds are copied.
    /// Moments are zeros before the first step.
    pub(super) fn masters_and_moments<'a>(
        &'a mut self,
        backend: &B,
        part: Option<&'a mut B::Params>,
    ) -> (&'a mut B::Params, [&'a mut B::Params; 2]) {
        let moments = self.moments.take().unwrap_or_else(|| {
            let lens = part.as_ref().map_or_else(|| self.masters.lens(), |part| part.lens());
            [(); 2].map(|()| Arc::new(backend.zero_params(&lens)))
        });
        let moments = self.moments.insert(moments).each_mut().map(make_mut_or_wait);
        (part.unwrap_or_else(|| make_mut_or_wait(&mut self.masters)), moments)
    }
}

/// Initial values of a parameter that is not the base model's.
pub(crate) fn initial_values(seed: u64, index: u64, param: &ParamSpec) -> Vec<f32> {
    let mut values = vec![0f32; param.len()];
    if param.init == Init::KaimingUniform {
        let inputs = param.shape.last().copied().unwrap_or(1) as f32;
        kaiming_uniform_fill(seed, index, &mut values, 1.0 / inputs.sqrt());
    }
    values
}

/// A packed adapter that was evicted: memory for another one of its shape.
pub(super) struct RecycledAdapter<B: Backend> {
    base: Arc<Base<B>>,
    lora: LoraSpec,
    adapter: Adapter<B>,
}

impl<B: Backend> RecycledAdapter<B> {
    pub(super) fn bytes(&self, backend: &B) -> usize {
        self.adapter.bytes(backend)
    }

    fn fits(&self, base: &Arc<Base<B>>, lora: &LoraSpec) -> bool {
        Arc::ptr_eq(&self.base, base) && LoraSpec { seed: lora.seed, ..self.lora.clone() } == *lora
    }
}

#[cfg(test)]
impl TrainingRun<crate::backend::HostBackend> {
    /// Removes the elements of a parameter, so that packing panics.
    pub(super) fn poison(&mut self) {
        let mut arrays: Vec<Vec<f32>> = self.masters.iter().map(<[f32]>::to_vec).collect();
        arrays[0].clear();
        self.masters = Arc::new(crate::backend::host::HostParams::new(arrays));
    }

    /// The values of its packed adapter.
    pub(super) fn packed_values(&self, backend: &crate::backend::HostBackend) -> Option<Vec<Vec<f32>>> {
        self.packed().map(|adapter| adapter.to_host(backend, &()))
    }
}
