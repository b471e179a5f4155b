//! A training run's state: masters, moments, accumulated gradient, and the weights that passes read.

use std::collections::BTreeMap;
use std::sync::Arc;

use trainyard_protocol::{AdamParams, LoraSpec, OpError, OpResult, RunSpec};

use super::base::Base;
use super::sampler::SamplerWeights;
use crate::kernels::Cpu;
use crate::kernels::elementwise::{add, for_each};
use crate::model::{Adapter, Gradients, ParamSpec, Weights};
use crate::optim::{adamw_update, clip_scale, squared_norm, validate};
use crate::rng::kaiming_uniform_fill;

/// A run.
pub(super) struct Run {
    pub(super) base: Arc<Base>,
    pub(super) spec: RunSpec,
    /// Parameters in f32, in the order of [`Run::params`].
    pub(super) masters: Gradients,
    /// First and second moments; empty before the first step.
    pub(super) moments: Option<[Gradients; 2]>,
    /// Optimizer steps taken.
    pub(super) step: u64,
    /// Sum of the gradients since the last step.
    grads: Option<Gradients>,
    trained: Trained,
}

/// What passes read; never changed while a sampler holds it.
enum Trained {
    Lora(Arc<Adapter>),
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
        let trained = match &spec.lora {
            Some(lora) => Trained::Lora(Arc::new(Adapter::build(cpu, base.dtype, &base.config, lora, &masters))),
            None => Trained::Full(Arc::new(base.pack(cpu, &masters)?)),
        };
        Ok(Self { base, spec, masters, moments: None, step: 0, grads: None, trained })
    }

    /// Its parameters.
    pub(super) fn params(&self) -> Vec<ParamSpec> {
        params(&self.base, self.spec.lora.as_ref())
    }

    pub(super) fn adapter(&self) -> Option<Arc<Adapter>> {
        match &self.trained {
            Trained::Lora(adapter) => Some(Arc::clone(adapter)),
            Trained::Full(_) => None,
        }
    }

    /// The weights that its passes run on.
    pub(super) fn weights(&self) -> &Arc<Weights> {
        match &self.trained {
            Trained::Lora(_) => &self.base.weights,
            Trained::Full(weights) => weights,
        }
    }

    pub(super) fn sampler_weights(&self) -> SamplerWeights {
        SamplerWeights { base: Arc::clone(&self.base), weights: Arc::clone(self.weights()), adapter: self.adapter() }
    }

    pub(super) fn zero_gradient(&self) -> Gradients {
        self.masters.iter().map(|p| vec![0.0; p.len()]).collect()
    }

    /// Adds a request's gradient. Fails, changing nothing, when it is not finite.
    pub(super) fn accumulate(&mut self, cpu: &Cpu, grads: Gradients) -> Result<(), OpError> {
        if !norm(cpu, &grads).is_finite() {
            return Err(OpError::user("the gradient is not finite: the loss or the model's weights are too large"));
        }
        match &mut self.grads {
            None => self.grads = Some(grads),
            Some(sum) => sum.iter_mut().zip(&grads).for_each(|(sum, grad)| add(cpu, sum, grad)),
        }
        Ok(())
    }

    /// Brings what passes read up to date with the masters: in place where nobody else holds it.
    fn refresh(&mut self, cpu: &Cpu) -> Result<(), OpError> {
        match (&mut self.trained, &self.spec.lora) {
            (Trained::Lora(adapter), Some(lora)) => match Arc::get_mut(adapter) {
                Some(own) => own.update(cpu, &self.masters),
                None => {
                    let built = Adapter::build(cpu, self.base.dtype, &self.base.config, lora, &self.masters);
                    *adapter = Arc::new(built);
                }
            },
            (Trained::Full(weights), _) => match Arc::get_mut(weights) {
                Some(own) => own.update(cpu, &self.masters),
                None => *weights = Arc::new(self.base.pack(cpu, &self.masters)?),
            },
            (Trained::Lora(_), None) => return Err(OpError::server("a LoRA run without a LoRA configuration")),
        }
        Ok(())
    }

    /// One AdamW step with the accumulated gradient, which it clears.
    pub(super) fn optim_step(&mut self, cpu: &Cpu, hyper: &AdamParams) -> Result<OpResult, OpError> {
        validate(hyper)?;
        let grads = self.grads.take().unwrap_or_else(|| self.zero_gradient());
        let norm = norm(cpu, &grads);
        let scale = clip_scale(norm, hyper.grad_clip_norm);
        let zeros = || self.masters.iter().map(|p| vec![0.0; p.len()]).collect();
        let [mut m, mut v] = self.moments.take().unwrap_or_else(|| [zeros(), zeros()]);
        self.step += 1;
        let mut parts = update_parts(&mut self.masters, &grads, &mut m, &mut v);
        let step = self.step;
        for_each(cpu, &mut parts, |_, p| adamw_update(p.0, p.1, p.2, p.3, hyper, step, scale));
        drop(parts);
        self.moments = Some([m, v]);
        self.refresh(cpu)?;
        Ok(OpResult::OptimStep { metrics: BTreeMap::from([("grad_norm".to_owned(), norm)]) })
    }
}

type Part<'a> = (&'a mut [f32], &'a [f32], &'a mut [f32], &'a mut [f32]);

/// Cuts parameters, gradients and moments into pieces for the threads.
fn update_parts<'a>(
    p: &'a mut Gradients,
    g: &'a Gradients,
    m: &'a mut Gradients,
    v: &'a mut Gradients,
) -> Vec<Part<'a>> {
    const PIECE: usize = 1 << 16;
    let mut parts = Vec::new();
    for (((p, g), m), v) in p.iter_mut().zip(g).zip(m).zip(v) {
        let pieces = p.chunks_mut(PIECE).zip(g.chunks(PIECE)).zip(m.chunks_mut(PIECE)).zip(v.chunks_mut(PIECE));
        parts.extend(pieces.map(|(((p, g), m), v)| (p, g, m, v)));
    }
    parts
}

/// The parameters that a run trains.
pub(super) fn params(base: &Base, lora: Option<&LoraSpec>) -> Vec<ParamSpec> {
    match lora {
        Some(lora) => Adapter::params(&base.config, lora),
        None => base.layout.specs.clone(),
    }
}

/// Global norm; parameters are summed in order.
fn norm(cpu: &Cpu, grads: &Gradients) -> f64 {
    let mut squares: Vec<(&Vec<f32>, f64)> = grads.iter().map(|g| (g, 0.0)).collect();
    for_each(cpu, &mut squares, |_, (grad, square)| *square = squared_norm(grad));
    squares.iter().map(|(_, square)| square).sum::<f64>().sqrt()
}
