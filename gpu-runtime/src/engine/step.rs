//! Optimizer steps of several runs, in one pass over all their parameters.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use trainyard_protocol::{AdamParams, OpError, OpResult};

use super::fault::{Fault, guarded};
use super::run::{Pending, Run};
use crate::kernels::Cpu;
use crate::kernels::elementwise::for_each;
use crate::model::Gradients;
use crate::optim::{adamw_update, clip_scale, validate};

/// Elements that a task updates.
const PIECE: usize = 1 << 16;

/// A step on its way.
struct Step<'a> {
    run: &'a mut Run,
    hyper: &'a AdamParams,
    grads: Arc<Gradients>,
    norm: f64,
    fault: Mutex<Option<Fault>>,
}

/// Elements of one parameter: of the run's, its gradient's and its moments'.
struct Piece<'a> {
    step: usize,
    params: &'a mut [f32],
    grad: &'a [f32],
    m: &'a mut [f32],
    v: &'a mut [f32],
}

/// One AdamW step of each run with its accumulated gradient, which it clears. Steps that are refused change nothing; a
/// panic concerns the run alone on which it happened. Each run's numbers are those that it has alone.
pub(super) fn optim_steps(
    cpu: &Cpu,
    runs: Vec<(&mut Run, &AdamParams)>,
) -> Vec<Result<Result<OpResult, OpError>, Fault>> {
    let mut outcomes: Vec<Option<_>> = Vec::new();
    let mut steps = Vec::new();
    for (run, hyper) in runs {
        match validate(hyper).and_then(|()| gradient(cpu, run)) {
            Err(error) => outcomes.push(Some(Ok(Err(error)))),
            Ok(Pending { sum, norm }) => {
                steps.push(Step { run, hyper, grads: sum, norm, fault: Mutex::new(None) });
                outcomes.push(None);
            }
        }
    }
    update(cpu, &mut steps);
    let mut done = steps.into_iter().map(|step| finish(cpu, step));
    let refused = |outcome: Option<_>| outcome.or_else(|| done.next());
    outcomes.into_iter().filter_map(refused).collect()
}

/// Takes a run's gradient. One that is not finite, which a snapshot may hold, stays: with it, clipping or not, every
/// parameter would become NaN.
fn gradient(cpu: &Cpu, run: &mut Run) -> Result<Pending, OpError> {
    if run.pending.as_ref().is_some_and(|pending| !pending.norm.is_finite()) {
        return Err(OpError::user(
            "the accumulated gradient is not finite, so that no step can be taken with it; load a checkpoint to go on",
        ));
    }
    let zeros = |run: &mut Run| Pending { sum: Arc::new(run.zero_gradient(cpu)), norm: 0.0 };
    Ok(run.pending.take().unwrap_or_else(|| zeros(run)))
}

fn finish(cpu: &Cpu, step: Step<'_>) -> Result<Result<OpResult, OpError>, Fault> {
    let Step { run, grads, norm, fault, .. } = step;
    if let Some(fault) = fault.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(fault);
    }
    if let Some(grads) = Arc::into_inner(grads) {
        run.reuse(grads);
    }
    let metrics = BTreeMap::from([("grad_norm".to_owned(), norm)]);
    guarded("optimizer step", || run.refresh(cpu).map(|()| OpResult::OptimStep { metrics }))
}

fn update(cpu: &Cpu, steps: &mut [Step<'_>]) {
    let mut settings = Vec::new();
    let mut pieces = Vec::new();
    for (i, step) in steps.iter_mut().enumerate() {
        let Step { run, hyper, grads, norm, fault } = step;
        run.step += 1;
        settings.push((*hyper, run.step, clip_scale(*norm, hyper.grad_clip_norm), &*fault));
        let (masters, [m, v]) = run.masters_and_moments();
        for (((p, g), m), v) in masters.iter_mut().zip(grads.iter()).zip(m).zip(v) {
            let parts = p.chunks_mut(PIECE).zip(g.chunks(PIECE)).zip(m.chunks_mut(PIECE)).zip(v.chunks_mut(PIECE));
            pieces.extend(parts.map(|(((params, grad), m), v)| Piece { step: i, params, grad, m, v }));
        }
    }
    for_each(cpu, &mut pieces, |_, piece| {
        let (hyper, step, scale, fault) = settings[piece.step];
        let task = || adamw_update(piece.params, piece.grad, piece.m, piece.v, hyper, step, scale);
        if let Err(found) = guarded("optimizer step", task) {
            *fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
        }
    });
}
