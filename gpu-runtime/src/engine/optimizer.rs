//! Optimizer steps of several runs, in one pass over all their parameters.

use std::collections::BTreeMap;
use std::sync::Arc;

use trainyard_protocol::{AdamParams, OpError, OpResult};

use super::run::{AccumulatedGradient, TrainingRun};
use crate::backend::{AdamWStep, Backend};
use crate::fault::{Fault, guarded};
use crate::interrupt;

/// Description of the work, for panics in the log.
const WHAT: &str = "optimizer step";

/// Fails if a hyper-parameter is out of range; the error names the field.
fn validate(params: &AdamParams) -> Result<(), OpError> {
    let AdamParams { learning_rate, beta1, beta2, eps, weight_decay, grad_clip_norm } = *params;
    let error = |name: &str, value: f64, rule: &str| {
        Err(OpError::user(format!("adam_params.{name}: must be {rule}, found {value}")))
    };
    for (name, value) in [("learning_rate", learning_rate), ("eps", eps), ("weight_decay", weight_decay)] {
        if !(value.is_finite() && value >= 0.0) {
            return error(name, value, "finite and at least 0");
        }
    }
    for (name, value) in [("beta1", beta1), ("beta2", beta2)] {
        if !(0.0..1.0).contains(&value) {
            return error(name, value, "at least 0 and below 1");
        }
    }
    if !grad_clip_norm.is_finite() {
        return error("grad_clip_norm", grad_clip_norm, "finite");
    }
    Ok(())
}

/// The scale that brings a gradient of global norm `norm` down to `grad_clip_norm`, as `torch.nn.utils.clip_grad_norm_`
/// computes it: `max / (norm + 1e-6)`, at most 1. A limit that is not positive turns clipping off.
fn clip_scale(norm: f64, grad_clip_norm: f64) -> f32 {
    if grad_clip_norm > 0.0 { (grad_clip_norm / (norm + 1e-6)).min(1.0) as f32 } else { 1.0 }
}

/// The result of a step, or the fault by which its run is lost.
type Outcome = Result<Result<OpResult, OpError>, Fault>;

/// A validated step with the gradient that it consumes.
struct AcceptedStep<'a, B: Backend> {
    run: &'a mut TrainingRun<B>,
    hyper: &'a AdamParams,
    gradient: AccumulatedGradient<B>,
    /// The masters that it updates, where other replicas update the others.
    part: Option<B::Params>,
}

impl<'a, B: Backend> AcceptedStep<'a, B> {
    fn new(backend: &B, run: &'a mut TrainingRun<B>, hyper: &'a AdamParams) -> Result<Self, OpError> {
        validate(hyper)?;
        let gradient = take_gradient(backend, run)?;
        let part = run.master_part(backend);
        Ok(Self { run, hyper, gradient, part })
    }
}

/// One AdamW step of each run with its accumulated gradient, which it clears. A rejected step changes nothing; a panic, also one for
/// want of memory, fails only the step of its run. Results of a run do not depend on the other runs. Where this thread's work is
/// interrupted before the update, nothing has changed; during it, all these runs are lost.
pub(super) fn optim_steps<B: Backend>(backend: &B, runs: Vec<(&mut TrainingRun<B>, &AdamParams)>) -> Vec<Outcome> {
    let (mut outcomes, mut steps) = (Vec::new(), Vec::new());
    for (run, hyper) in runs {
        if interrupt::check().is_err() {
            outcomes.push(Some(Ok(Err(interrupt::ended()))));
            continue;
        }
        match guarded(WHAT, || AcceptedStep::new(backend, run, hyper)) {
            Ok(Ok(step)) => {
                steps.push(step);
                outcomes.push(None);
            }
            Ok(Err(error)) => outcomes.push(Some(Ok(Err(error)))),
            Err(fault) => outcomes.push(Some(Err(fault))),
        }
    }
    let updated = update(backend, &mut steps);
    let mut done = steps.into_iter().zip(updated).map(|(step, updated)| finish(backend, step, updated));
    outcomes.into_iter().filter_map(|outcome| outcome.or_else(|| done.next())).collect()
}

/// Takes the accumulated gradient from a run, or zeros. Fails, leaving it in the run, if it is not finite, as one from a
/// snapshot may be: with or without clipping it would make every parameter NaN.
fn take_gradient<B: Backend>(backend: &B, run: &mut TrainingRun<B>) -> Result<AccumulatedGradient<B>, OpError> {
    if run.gradient.as_ref().is_some_and(|gradient| !gradient.norm.is_finite()) {
        return Err(OpError::user(
            "the accumulated gradient is not finite, so no step can be taken; load a checkpoint to continue",
        ));
    }
    let zeros =
        |run: &mut TrainingRun<B>| AccumulatedGradient { sum: Arc::new(run.zero_step_gradient(backend)), norm: 0.0 };
    Ok(run.gradient.take().unwrap_or_else(|| zeros(run)))
}

/// Updates the masters and moments of all steps at once, except of those for which memory is missing.
fn update<B: Backend>(backend: &B, steps: &mut [AcceptedStep<'_, B>]) -> Vec<Result<(), Fault>> {
    let (mut outcomes, mut calls) = (Vec::new(), Vec::new());
    for AcceptedStep { run, hyper, gradient, part } in steps {
        run.step += 1;
        let (step, grad_scale) = (run.step, clip_scale(gradient.norm, hyper.grad_clip_norm));
        match guarded(WHAT, move || run.masters_and_moments(backend, part.as_mut())) {
            Ok((params, moments)) => {
                calls.push(AdamWStep { params, grads: &*gradient.sum, moments, hyper, step, grad_scale });
                outcomes.push(None);
            }
            Err(fault) => outcomes.push(Some(Err(fault))),
        }
    }
    // A device would allocate for no step too.
    let updated = if calls.is_empty() { Vec::new() } else { backend.adamw(calls) };
    let mut updated = updated.into_iter();
    outcomes.into_iter().filter_map(|outcome| outcome.or_else(|| updated.next())).collect()
}

fn finish<B: Backend>(backend: &B, step: AcceptedStep<'_, B>, updated: Result<(), Fault>) -> Outcome {
    let AcceptedStep { run, gradient: AccumulatedGradient { sum, norm }, part, .. } = step;
    updated?;
    interrupt::check().map_err(|_| Fault::Interrupted)?;
    guarded(WHAT, || {
        if let Some(part) = part {
            run.gather_masters(&part);
        }
        if let Some(grads) = Arc::into_inner(sum) {
            run.recycle_gradient(grads);
        }
        let metrics = BTreeMap::from([("grad_norm".to_owned(), norm)]);
        run.refresh(backend).map(|()| OpResult::OptimStep { metrics })
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn hyper() -> AdamParams {
        AdamParams { learning_rate: 1e-2, beta1: 0.9, beta2: 0.95, eps: 1e-12, weight_decay: 0.1, grad_clip_norm: 0.0 }
    }

    #[test]
    fn clipping_follows_torch() {
        assert_eq!(clip_scale(5.0, 0.0), 1.0);
        assert_eq!(clip_scale(5.0, -1.0), 1.0);
        assert_eq!(clip_scale(0.5, 1.0), 1.0);
        assert_eq!(clip_scale(5.0, 1.0), (1.0 / (5.0 + 1e-6)) as f32);
    }

    #[test]
    fn bad_hyper_parameters_are_named() {
        validate(&hyper()).unwrap();
        validate(&AdamParams { grad_clip_norm: -1.0, eps: 0.0, learning_rate: 0.0, ..hyper() }).unwrap();
        let cases = [
            ("learning_rate", AdamParams { learning_rate: -1.0, ..hyper() }),
            ("learning_rate", AdamParams { learning_rate: f64::NAN, ..hyper() }),
            ("beta1", AdamParams { beta1: 1.0, ..hyper() }),
            ("beta2", AdamParams { beta2: -0.1, ..hyper() }),
            ("eps", AdamParams { eps: f64::INFINITY, ..hyper() }),
            ("weight_decay", AdamParams { weight_decay: -0.1, ..hyper() }),
            ("grad_clip_norm", AdamParams { grad_clip_norm: f64::NAN, ..hyper() }),
        ];
        for (name, params) in cases {
            let error = validate(&params).unwrap_err();
            assert!(error.message.starts_with(&format!("adam_params.{name}: ")), "{error}");
        }
    }
}
