//! A training run's state: masters, moments, accumulated gradient, and the weights that passes read.

use std::sync::{Arc, Weak};

use trainyard_protocol::{LoraSpec, OpError, RunSpec};

use super::base::Base;
use super::sampler::SamplerWeights;
use super::saves::Frozen;
use crate::kernels::elementwise::{add, for_each};
use crate::kernels::{Cpu, par_chunks};
use crate::model::{Adapter, Gradients, ParamSpec, Weights};
use crate::optim::{squared_norm, squared_norm_of_sum};
use crate::rng::kaiming_uniform_fill;

/// A run. A save in the background may hold parts of it: they are copied before they change.
pub(super) struct Run {
    pub(super) base: Arc<Base>,
    pub(super) spec: RunSpec,
    /// Parameters in f32, in the order of [`Run::params`].
    masters: Arc<Gradients>,
    /// First and second moments; empty before the first step.
    pub(super) moments: Option<Arc<[Gradients; 2]>>,
    /// Optimizer steps taken.
    pub(super) step: u64,
    /// Sum of the gradients since the last step.
    pub(super) pending: Option<Pending>,
    /// Memory for the next gradient, where that is much: of runs that train all parameters.
    spare: Option<Gradients>,
    trained: Trained,
    /// Bytes of its packed adapter: of what every pass needs, and of what one that trains needs.
    adapter_bytes: [usize; 2],
    /// Its adapter as samplers have it, until it changes.
    sampled: Weak<Adapter>,
}

/// Gradients that were added up, for the next step.
pub(super) struct Pending {
    pub(super) sum: Arc<Gradients>,
    /// Its global norm: finite, unless a snapshot held a sum that is not.
    pub(super) norm: f64,
}

impl Pending {
    pub(super) fn new(cpu: &Cpu, grads: Gradients) -> Self {
        let norm = norm(cpu, &grads, |_, grad| squared_norm(grad));
        Self { sum: Arc::new(grads), norm }
    }
}

/// What passes read; never changed while a sampler holds it.
enum Trained {
    /// Packed when a pass or a sampler needs it.
    Lora(LoraSpec, Option<Arc<Adapter>>),
    Full(Arc<Weights>),
}

impl Run {
    /// A fresh run: A from the seed and B zero, or the base model's parameters.
    pub(super) fn new(cpu: &Cpu, base: Arc<Base>, spec: RunSpec) -> Result<Self, OpError> {
        let masters = match &spec.lora {
            None => base.read_masters()?,
            Some(lora) => Adapter::params(&base.config, lora)
                .iter()
                .enumerate()
                .map(|(i, param)| {
                    let mut values = vec![0f32; param.len()];
                    if i % 2 == 0 {
                        let inputs = param.shape[1] as f32;
                        kaiming_uniform_fill(lora.seed, i as u64, &mut values, 1.0 / inputs.sqrt());
                    }
                    values
                })
                .collect(),
        };
        Self::from_masters(cpu, base, spec, masters)
    }

    /// A run with given parameters and no optimizer state.
    pub(super) fn from_masters(cpu: &Cpu, base: Arc<Base>, spec: RunSpec, masters: Gradients) -> Result<Self, OpError> {
        let bytes = |lora| [false, true].map(|trains| Adapter::bytes_of(cpu, base.dtype, &base.config, lora, trains));
        let adapter_bytes = spec.lora.as_ref().map_or([0; 2], bytes);
        let trained = match &spec.lora {
            Some(lora) => Trained::Lora(lora.clone(), None),
            None => Trained::Full(Arc::new(base.pack(cpu, &masters)?)),
        };
        Ok(Self {
            base,
            spec,
            masters: Arc::new(masters),
            moments: None,
            step: 0,
            pending: None,
            spare: None,
            trained,
            adapter_bytes,
            sampled: Weak::new(),
        })
    }

    /// What it is now, for a save.
    pub(super) fn freeze(&self) -> Frozen {
        Frozen {
            base: Arc::clone(&self.base),
            spec: self.spec.clone(),
            masters: Arc::clone(&self.masters),
            moments: self.moments.clone(),
            grads: self.pending.as_ref().map(|pending| Arc::clone(&pending.sum)),
            step: self.step,
        }
    }

    /// Whether it trains all parameters: its passes are its own.
    pub(super) fn is_full(&self) -> bool {
        matches!(self.trained, Trained::Full(_))
    }

    /// Its adapter as it was packed, if it was.
    pub(super) fn packed(&self) -> Option<Arc<Adapter>> {
        match &self.trained {
            Trained::Lora(_, adapter) => adapter.clone(),
            Trained::Full(_) => None,
        }
    }

    /// Bytes of its adapter when it is packed for a pass.
    pub(super) fn adapter_bytes(&self, trains: bool) -> usize {
        self.adapter_bytes[usize::from(trains)]
    }

    /// Bytes that a pass holds for it alone: of its packed adapter and, when it trains, of its gradient.
    pub(super) fn pass_bytes(&self, trains: bool) -> usize {
        let gradient = || self.masters.iter().map(|values| size_of_val(&values[..])).sum();
        self.adapter_bytes(trains) + if trains { gradient() } else { 0 }
    }

    /// Whether what was left is memory for its adapter.
    pub(super) fn can_use(&self, left: &LeftAdapter) -> bool {
        matches!(&self.trained, Trained::Lora(lora, _) if left.fits(&self.base, lora))
    }

    /// Packs its adapter, in memory that another one left if there is any.
    pub(super) fn pack(&mut self, cpu: &Cpu, left: &mut Option<LeftAdapter>) -> Option<Arc<Adapter>> {
        let Trained::Lora(lora, packed) = &mut self.trained else { return None };
        if packed.is_none() {
            let reused = left.take_if(|left| left.fits(&self.base, lora)).map(|LeftAdapter { mut adapter, .. }| {
                adapter.update(cpu, &self.masters);
                adapter
            });
            let build = || Adapter::build(cpu, self.base.dtype, &self.base.config, lora, &self.masters);
            *packed = Some(Arc::new(reused.unwrap_or_else(build)));
        }
        packed.clone()
    }

    /// Lets its packed adapter go.
    pub(super) fn unpack(&mut self) -> Option<LeftAdapter> {
        let Trained::Lora(lora, packed) = &mut self.trained else { return None };
        let adapter = Arc::into_inner(packed.take()?)?;
        Some(LeftAdapter { base: Arc::clone(&self.base), lora: lora.clone(), adapter })
    }

    /// Bytes of its packed adapter, if it has one.
    pub(super) fn packed_bytes(&self) -> usize {
        match &self.trained {
            Trained::Lora(_, Some(adapter)) => adapter.bytes(),
            _ => 0,
        }
    }

    /// The weights that its passes run on.
    pub(super) fn weights(&self) -> &Arc<Weights> {
        match &self.trained {
            Trained::Lora(..) => &self.base.weights,
            Trained::Full(weights) => weights,
        }
    }

    /// Its weights as they are now, for a sampler.
    pub(super) fn sampler_weights(&mut self, cpu: &Cpu) -> SamplerWeights {
        let packed = self.pack(cpu, &mut None);
        let share = |packed: Arc<Adapter>| {
            let adapter = self.sampled.upgrade().unwrap_or_else(|| Arc::new(packed.frozen()));
            self.sampled = Arc::downgrade(&adapter);
            adapter
        };
        let adapter = packed.map(share);
        SamplerWeights { base: Arc::clone(&self.base), weights: Arc::clone(self.weights()), adapter }
    }

    /// A gradient to add to.
    pub(super) fn zero_gradient(&mut self, cpu: &Cpu) -> Gradients {
        match self.spare.take() {
            Some(mut spare) => {
                for values in &mut spare {
                    par_chunks(&cpu.pool, values, 1 << 16, |_, values| values.fill(0.0));
                }
                spare
            }
            None => self.masters.iter().map(|p| vec![0.0; p.len()]).collect(),
        }
    }

    /// Keeps the memory of a gradient that is done with.
    pub(super) fn reuse(&mut self, grads: Gradients) {
        if self.is_full() {
            self.spare = Some(grads);
        }
    }

    /// Adds a request's gradient. Fails, changing nothing, when it is not finite or when the sum would not be: the run
    /// can go on without it.
    pub(super) fn accumulate(&mut self, cpu: &Cpu, grads: Gradients) -> Result<(), OpError> {
        let Some(pending) = &mut self.pending else {
            let first = Pending::new(cpu, grads);
            if !first.norm.is_finite() {
                return Err(OpError::user("the gradient is not finite: the loss or the model's weights are too large"));
            }
            self.pending = Some(first);
            return Ok(());
        };
        let norm = norm(cpu, &grads, |i, grad| squared_norm_of_sum(&pending.sum[i], grad));
        if !norm.is_finite() {
            return Err(OpError::user(
                "the sum of the gradients since the last optimizer step is not finite: the loss or the model's weights \
                 are too large",
            ));
        }
        Arc::make_mut(&mut pending.sum).iter_mut().zip(&grads).for_each(|(sum, grad)| add(cpu, sum, grad));
        pending.norm = norm;
        self.reuse(grads);
        Ok(())
    }

    /// Brings what passes read up to date with the masters: in place where nobody else holds it.
    pub(super) fn refresh(&mut self, cpu: &Cpu) -> Result<(), OpError> {
        self.sampled = Weak::new();
        match &mut self.trained {
            Trained::Lora(_, packed) => match packed.as_mut().and_then(Arc::get_mut) {
                Some(own) => own.update(cpu, &self.masters),
                None => *packed = None,
            },
            Trained::Full(weights) => match Arc::get_mut(weights) {
                Some(own) => own.update(cpu, &self.masters),
                None => *weights = Arc::new(self.base.pack(cpu, &self.masters)?),
            },
        }
        Ok(())
    }

    /// Its parameters and moments, to be changed: copied where a save holds them, zeros where there were none.
    pub(super) fn masters_and_moments(&mut self) -> (&mut Gradients, &mut [Gradients; 2]) {
        let zeros = || self.masters.iter().map(|p| vec![0.0; p.len()]).collect();
        let moments = self.moments.get_or_insert_with(|| Arc::new([zeros(), zeros()]));
        (Arc::make_mut(&mut self.masters), Arc::make_mut(moments))
    }
}

/// A packed adapter whose run needs it no more: memory for another one of its shape.
pub(super) struct LeftAdapter {
    base: Arc<Base>,
    lora: LoraSpec,
    adapter: Adapter,
}

impl LeftAdapter {
    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        self.adapter.bytes()
    }

    fn fits(&self, base: &Arc<Base>, lora: &LoraSpec) -> bool {
        Arc::ptr_eq(&self.base, base) && LoraSpec { seed: lora.seed, ..self.lora.clone() } == *lora
    }
}

/// The parameters that a run trains.
pub(super) fn params(base: &Base, lora: Option<&LoraSpec>) -> Vec<ParamSpec> {
    match lora {
        Some(lora) => Adapter::params(&base.config, lora),
        None => base.layout.specs.clone(),
    }
}

/// Global norm, given the sum of squares of each parameter; parameters are summed in order.
fn norm(cpu: &Cpu, grads: &Gradients, squares_of: impl Fn(usize, &[f32]) -> f64 + Sync) -> f64 {
    let mut squares = vec![0.0; grads.len()];
    for_each(cpu, &mut squares, |i, square| *square = squares_of(i, &grads[i]));
    squares.iter().sum::<f64>().sqrt()
}

#[cfg(test)]
impl Run {
    /// Takes a parameter away, without which it cannot be packed.
    pub(super) fn poison(&mut self) {
        Arc::make_mut(&mut self.masters)[0].clear();
    }

    /// What its packed adapter holds.
    pub(super) fn packed_values(&self) -> Option<Gradients> {
        self.packed().map(|adapter| adapter.params_of())
    }
}
