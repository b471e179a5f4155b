//! Gradients of losses by differences, for adapters and for all parameters.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use trainyard_protocol::LoraSpec;

use crate::backend::{Backend, Params};
use crate::collective::Ranks;
use crate::interrupt::Interrupt;
use crate::load::load;
use crate::loss::{LossFn, PreparedDatum};
use crate::model::{
    Adapter, GradientSum, Model, ParamSpec, RunHead, Saved, TrainGroup, TrainOutput, TrainWeights, TrainedParams,
    Weights, train_pass,
};
use crate::parallel::Parallel;
use crate::rng::kaiming_uniform_fill;

type Arrays = Vec<Vec<f32>>;

/// Random numbers in ±`bound`.
pub(super) fn numbers(len: usize, seed: u64, bound: f32) -> Vec<f32> {
    let mut values = vec![0.0; len];
    kaiming_uniform_fill(seed, 3, &mut values, bound);
    values
}

/// A model whose adapter, or all of it, is trained, perhaps together with a scalar head.
pub(super) struct Fixture<B: Backend> {
    backend: B,
    model: Arc<Model<B>>,
    masters: Arrays,
    lora: Option<LoraSpec>,
    scalar_head: bool,
    loss: LossFn,
    data: Vec<PreparedDatum>,
    /// Bound of random numbers by which the model differs from its base, where all of it is trained.
    distance: f32,
}

impl<B: Backend> Fixture<B> {
    pub(super) fn new(
        family: &str,
        backend: B,
        lora: Option<LoraSpec>,
        scalar_head: bool,
        loss: LossFn,
        data: Vec<PreparedDatum>,
    ) -> Self {
        let source = load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden").join(family)).unwrap();
        let model = Arc::new(Model::new(&backend, &source.config, Ranks::default(), Parallel::default()).unwrap());
        let masters = model.table.specs.iter().map(|spec| source.tensors.read(&spec.name).unwrap()).collect();
        Self { backend, model, masters, lora, scalar_head, loss, data, distance: 0.0 }
    }

    /// The same, with a model that has moved away from its base.
    pub(super) fn moved(self, distance: f32) -> Self {
        Self { distance, ..self }
    }

    fn what(&self) -> TrainedParams<'_> {
        TrainedParams { lora: self.lora.as_ref(), scalar_head: self.scalar_head }
    }

    fn specs(&self) -> Vec<ParamSpec> {
        self.model.table.trained(&self.model.config, self.what())
    }

    /// Parameters that are trained: those of the model, and random ones of adapter and head.
    pub(super) fn params(&self) -> Arrays {
        let mut own = if self.lora.is_none() { self.masters.clone() } else { Arrays::new() };
        for (i, values) in (0..).zip(&mut own).filter(|_| self.distance > 0.0) {
            let steps = numbers(values.len(), 100 + i, self.distance);
            values.iter_mut().zip(steps).for_each(|(value, step)| *value += step);
        }
        let specs = self.specs();
        let random = (own.len()..).zip(&specs[own.len()..]).map(|(i, spec)| numbers(spec.len(), i as u64, 0.2));
        own.into_iter().chain(random).collect()
    }

    pub(super) fn run(&self, params: &Arrays, trains: bool) -> (Vec<TrainOutput>, Arrays) {
        let (backend, full) = (&self.backend, self.lora.is_none());
        let load = |of: &Arrays| Weights::load(backend, &self.model, &mut |i| Ok(Cow::Borrowed(&of[i][..]))).unwrap();
        let (base, own) = (load(&self.masters), full.then(|| load(params)));
        let lens: Vec<usize> = params.iter().map(Vec::len).collect();
        let mut sum = GradientSum::new(backend.begin_gradient(&lens, None));
        let params = Arc::new(backend.upload_params(params.clone()));
        let config = &self.model.config;
        let adapter = self.lora.as_ref().map(|lora| Arc::new(Adapter::from_params(backend, config, lora, &params)));
        let mut groups = [TrainGroup {
            adapter,
            scalar_head: self.scalar_head.then(|| RunHead::of(&params)),
            loss: self.loss.clone(),
            data: self.data.iter().collect(),
            images: Vec::new(),
            evaluated: Vec::new(),
            interrupt: Interrupt::default(),
            grads: trains.then_some(&mut sum),
        }];
        let weights = TrainWeights { weights: own.as_ref().unwrap_or(&base).into(), base: &base };
        let saved = Saved::with_all_inputs(config.num_layers());
        let outputs = train_pass(backend, weights, &mut groups, full, saved).remove(0).unwrap();
        let gradient = sum.finish(backend, &self.model, self.what());
        (outputs, (0..gradient.len()).map(|i| gradient.host(i).into_owned()).collect())
    }

    fn loss_of(&self, params: &Arrays) -> f64 {
        self.run(params, false).0.iter().map(|output| output.value.sum).sum()
    }

    /// Moves each array along its gradient and back: the loss changes by the gradient's norm per length.
    pub(super) fn check_gradients(&self, what: &str) {
        let params = self.params();
        let gradients = self.run(&params, true).1;
        for (i, (spec, gradient)) in self.specs().iter().zip(&gradients).enumerate() {
            let norm = gradient.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
            if self.scalar_head && spec.name == "lm_head.weight" {
                assert_eq!(norm, 0.0, "{what}: the unembedding is not part of the model");
                continue;
            }
            assert!(norm > 1e-4, "{what}: {} has no gradient", spec.name);
            // Of an embedding only the rows of tokens that occur move.
            let moving = params[i].iter().zip(gradient).filter(|(_, g)| **g != 0.0);
            let h = 1e-3 * moving.map(|(p, _)| f64::from(*p).powi(2)).sum::<f64>().sqrt();
            let moved = |by: f64| {
                let mut params = params.clone();
                let scale = (by / norm) as f32;
                params[i].iter_mut().zip(gradient).for_each(|(p, g)| *p += scale * g);
                self.loss_of(&params)
            };
            let slope = (moved(h) - moved(-h)) / (2.0 * h);
            assert!((slope - norm).abs() < 0.02 * norm + 1e-3, "{what}: {} has {norm}, not {slope}", spec.name);
        }
    }
}
