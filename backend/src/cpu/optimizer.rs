//! AdamW and norms of gradients, over all parameters of several runs at once.

use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use trainyard_protocol::AdamParams;

use super::Cpu;
use super::parallel::for_each;
use super::vexp::multiversion;
use crate::fault::{Fault, guarded};
use crate::host::HostParams;
use crate::interrupt;
use crate::{AdamWStep, Params};

/// Elements that a task updates.
const CHUNK: usize = 1 << 16;
/// Chunks after which an update asks whether somebody waits for it: some hundredths of a second.
const ASK_AFTER: usize = 64;

/// Elements of one parameter, with those of its gradient and moments.
struct ParamChunk<'a> {
    /// Index of its step.
    step: usize,
    params: &'a mut [f32],
    grad: &'a [f32],
    m: &'a mut [f32],
    v: &'a mut [f32],
}

/// One step of each set of parameters, all in one parallel region. A panic is the result of the step that it happened in. Once
/// this thread's work is interrupted, what is left is not updated, and all steps fail.
pub(super) fn adamw(cpu: &Cpu, steps: Vec<AdamWStep<'_, Cpu>>) -> Vec<Result<(), Fault>> {
    let faults: Vec<Mutex<Option<Fault>>> = steps.iter().map(|_| Mutex::new(None)).collect();
    let settings: Vec<_> = steps.iter().map(|step| (step.hyper, step.step, step.grad_scale)).collect();
    let mut chunks = Vec::new();
    for (i, AdamWStep { params, grads, moments: [m, v], .. }) in steps.into_iter().enumerate() {
        for (((p, g), m), v) in params.iter_mut().zip(grads.iter()).zip(m.iter_mut()).zip(v.iter_mut()) {
            let parts = p.chunks_mut(CHUNK).zip(g.chunks(CHUNK)).zip(m.chunks_mut(CHUNK)).zip(v.chunks_mut(CHUNK));
            chunks.extend(parts.map(|(((params, grad), m), v)| ParamChunk { step: i, params, grad, m, v }));
        }
    }
    let (interrupt, updated, is_over) = (interrupt::current(), AtomicUsize::new(0), AtomicBool::new(false));
    for_each(cpu, &mut chunks, |_, chunk| {
        let asks = updated.fetch_add(1, Ordering::Relaxed) % ASK_AFTER == ASK_AFTER - 1;
        if asks && interrupt.is_set() {
            is_over.store(true, Ordering::Relaxed);
        }
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        let (hyper, step, scale) = settings[chunk.step];
        let rule = AdamWRule::new(hyper, step, scale);
        let task = || adamw_update(cpu.isa(), chunk.params, chunk.grad, chunk.m, chunk.v, rule);
        if let Err(found) = guarded("optimizer step", task) {
            *faults[chunk.step].lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
        }
    });
    if is_over.into_inner() {
        return faults.iter().map(|_| Err(Fault::Interrupted)).collect();
    }
    let outcome =
        |fault: Mutex<Option<Fault>>| fault.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err);
    faults.into_iter().map(outcome).collect()
}

/// Zeros, one array for each length.
pub(super) fn zeros(cpu: &Cpu, lens: &[usize]) -> HostParams {
    let mut params = HostParams::zeros(lens);
    write_zeros(cpu, &mut params, 0..lens.len());
    params
}

/// Writes zeros to those arrays of a range that are without elements. A fresh page of zeros from the system would be mapped when it
/// is first read, and copied when it is written to, which has to interrupt the other threads.
pub(super) fn write_zeros(cpu: &Cpu, params: &mut HostParams, range: Range<usize>) {
    let mut arrays: Vec<(&mut Vec<f32>, usize)> = params.without_elements(range).collect();
    let mut chunks: Vec<&mut [MaybeUninit<f32>]> = Vec::new();
    for (array, len) in &mut arrays {
        array.reserve_exact(*len);
        chunks.extend(array.spare_capacity_mut()[..*len].chunks_mut(CHUNK));
    }
    for_each(cpu, &mut chunks, |_, chunk| chunk.fill(MaybeUninit::new(0.0)));
    for (array, len) in arrays {
        // SAFETY: they were reserved and written.
        unsafe { array.set_len(len) };
    }
}

/// Sums of squares of the arrays of `a`, or of `a + b`: arrays in parallel.
pub(super) fn squared_norms(cpu: &Cpu, a: &HostParams, b: Option<&HostParams>) -> Vec<f64> {
    let mut sums = vec![0.0; a.len()];
    for_each(cpu, &mut sums, |i, sum| {
        *sum = match b {
            Some(b) => squares_of_sum(cpu.isa(), &a[i], &b[i]),
            None => squares(cpu.isa(), &a[i]),
        };
    });
    sums
}

/// Partial sums of a sum of squares.
const LANES: usize = 8;

multiversion! {
    /// Sum of squares in f64. The order of summation depends only on the slice's length. It is finite exactly when all
    /// values are.
    fn squares(values: &[f32]) -> f64 {
        let mut lanes = [0f64; LANES];
        let (chunks, rest) = values.as_chunks::<LANES>();
        for chunk in chunks {
            for (lane, value) in lanes.iter_mut().zip(chunk) {
                *lane += square(*value);
            }
        }
        for (lane, value) in lanes.iter_mut().zip(rest) {
            *lane += square(*value);
        }
        lanes.iter().sum()
    }
}

multiversion! {
    /// [`squares`] of `a + b`, to the bit, without writing it. Both have one length.
    fn squares_of_sum(a: &[f32], b: &[f32]) -> f64 {
        let mut lanes = [0f64; LANES];
        let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
        for (a, b) in a.iter().zip(b) {
            for ((lane, a), b) in lanes.iter_mut().zip(a).zip(b) {
                *lane += square(a + b);
            }
        }
        for ((lane, a), b) in lanes.iter_mut().zip(a_rest).zip(b_rest) {
            *lane += square(a + b);
        }
        lanes.iter().sum()
    }
}

#[inline(always)]
fn square(value: f32) -> f64 {
    f64::from(value) * f64::from(value)
}

/// Constants of a step that apply to every element.
#[derive(Clone, Copy)]
struct AdamWRule {
    grad_scale: f32,
    /// Factor of a weight after weight decay.
    keep: f32,
    blend: f32,
    beta2: f32,
    rest2: f32,
    /// Learning rate, corrected for the bias of `m`.
    step_size: f32,
    /// Square root of the correction for the bias of `v`.
    correction: f32,
    eps: f32,
}

impl AdamWRule {
    /// `step` counts from 1; the gradient is `grad * grad_scale`.
    fn new(hyper: &AdamParams, step: u64, grad_scale: f32) -> Self {
        let exponent = step.max(1) as f64;
        Self {
            grad_scale,
            keep: (1.0 - hyper.learning_rate * hyper.weight_decay) as f32,
            blend: (1.0 - hyper.beta1) as f32,
            beta2: hyper.beta2 as f32,
            rest2: (1.0 - hyper.beta2) as f32,
            step_size: (hyper.learning_rate / (1.0 - hyper.beta1.powf(exponent))) as f32,
            correction: (1.0 - hyper.beta2.powf(exponent)).sqrt() as f32,
            eps: hyper.eps as f32,
        }
    }
}

multiversion! {
    /// One AdamW step (Loshchilov & Hutter 2019, arXiv:1711.05101) on parameters of any shape, in the order of
    /// operations of `torch.optim.AdamW`: decay, moments, bias correction, update.
    ///
    /// `m` and `v` are the moments, zero before step 1. All slices have one length (only their common prefix is updated).
    /// Elements are independent, so that any split of the slices gives the same bits. Where the denominator is zero (`eps` 0
    /// and no gradient yet) the parameter only decays.
    fn adamw_update(params: &mut [f32], grad: &[f32], m: &mut [f32], v: &mut [f32], rule: AdamWRule) {
        let AdamWRule { grad_scale, keep, blend, beta2, rest2, step_size, correction, eps } = rule;
        for (((p, &g), m), v) in params.iter_mut().zip(grad).zip(m.iter_mut()).zip(v.iter_mut()) {
            let g = g * grad_scale;
            let decayed = *p * keep;
            *m = if blend < 0.5 { *m + blend * (g - *m) } else { g - (g - *m) * (1.0 - blend) };
            *v = *v * beta2 + rest2 * g * g;
            let denominator = v.sqrt() / correction + eps;
            let update = if denominator == 0.0 { 0.0 } else { step_size * *m / denominator };
            *p = decayed - update;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::cpu::Isa;
    use crate::interrupt::{Interrupt, interruptible};

    fn hyper() -> AdamParams {
        AdamParams { learning_rate: 1e-2, beta1: 0.9, beta2: 0.95, eps: 1e-12, weight_decay: 0.1, grad_clip_norm: 0.0 }
    }

    #[test]
    fn three_steps_follow_the_formula() {
        let hyper = hyper();
        let start = [0.5f32, -1.25, 0.0, 3.0];
        let grads = [[0.1f32, -2.0, 1e-6, 0.0], [0.3, 1.0, -1e-6, 0.0], [-0.7, 0.25, 5.0, 0.0]];
        let (mut p, mut m, mut v) = (start, [0f32; 4], [0f32; 4]);
        let mut expected = start.map(f64::from);
        let (mut first, mut second) = ([0f64; 4], [0f64; 4]);
        for (t, grad) in (1..).zip(&grads) {
            adamw_update(Isa::detect(), &mut p, grad, &mut m, &mut v, AdamWRule::new(&hyper, t, 0.5));
            for i in 0..4 {
                let g = f64::from(grad[i]) * 0.5;
                expected[i] -= 1e-2 * 0.1 * expected[i];
                first[i] = 0.9 * first[i] + (1.0 - 0.9) * g;
                second[i] = 0.95 * second[i] + (1.0 - 0.95) * g * g;
                let hat = (first[i] / (1.0 - 0.9f64.powi(t as i32)), second[i] / (1.0 - 0.95f64.powi(t as i32)));
                expected[i] -= 1e-2 * hat.0 / (hat.1.sqrt() + 1e-12);
            }
        }
        for i in 0..4 {
            assert!((f64::from(p[i]) - expected[i]).abs() < 1e-6, "{p:?} {expected:?}");
            assert!((f64::from(m[i]) - first[i]).abs() < 1e-6 && (f64::from(v[i]) - second[i]).abs() < 1e-5);
        }
    }

    #[test]
    fn a_long_update_that_nobody_waits_for_is_not_completed() {
        // Twice as many chunks as an update does between two questions.
        let elements = 2 * ASK_AFTER * CHUNK;
        let cpu = Cpu::with_isa(1, Isa::detect());
        let updated = |interrupt: Interrupt| {
            let arrays = || HostParams::new(vec![vec![1.0; elements]]);
            let (mut params, grads, mut m, mut v, hyper) = (arrays(), arrays(), arrays(), arrays(), hyper());
            let (params_of, moments) = (&mut params, [&mut m, &mut v]);
            let step = AdamWStep { params: params_of, grads: &grads, moments, hyper: &hyper, step: 1, grad_scale: 1.0 };
            let outcome = interruptible(interrupt, || adamw(&cpu, vec![step]));
            (outcome, params[0].iter().filter(|value| **value != 1.0).count())
        };
        assert_eq!(updated(Interrupt::new(|| false)), (vec![Ok(())], elements));
        assert_eq!(updated(Interrupt::new(|| true)), (vec![Err(Fault::Interrupted)], (ASK_AFTER - 1) * CHUNK));
    }

    #[test]
    fn any_split_gives_the_same_bits_on_every_isa() {
        let values = |scale: f32| (0..103).map(|i| ((i * 37 % 101) as f32 - 50.0) * scale).collect::<Vec<_>>();
        let grad = values(0.013);
        let rule = AdamWRule::new(&hyper(), 7, 0.3);
        let updated = |isa: Isa, part: usize| {
            let (mut p, mut m, mut v) = (values(0.1), values(1e-3), vec![0.5f32; 103]);
            for at in (0..103).step_by(part) {
                let end = (at + part).min(103);
                adamw_update(isa, &mut p[at..end], &grad[at..end], &mut m[at..end], &mut v[at..end], rule);
            }
            [p, m, v].map(|values| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>())
        };
        let expected = updated(Isa::Portable, 103);
        for isa in Isa::available() {
            assert_eq!(updated(isa, 103), expected, "{isa:?}");
            assert_eq!(updated(isa, 5), expected, "{isa:?}");
        }
    }

    #[test]
    fn zero_gradient_and_zero_eps_do_not_make_nan() {
        let (mut p, mut m, mut v) = ([2.0f32], [0f32], [0f32]);
        let rule = AdamWRule::new(&AdamParams { eps: 0.0, ..hyper() }, 1, 1.0);
        adamw_update(Isa::detect(), &mut p, &[0.0], &mut m, &mut v, rule);
        assert!((p[0] - 2.0 * 0.999).abs() < 1e-6);
    }

    #[test]
    fn norms_of_sums_are_those_of_what_is_summed() {
        let [a, b] = [0.37f32, 1e-4].map(|step| (0..21).map(|i| (i as f32 * step).sin()).collect::<Vec<_>>());
        let sum: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
        let expected = squares(Isa::Portable, &sum);
        for isa in Isa::available() {
            assert_eq!(squares(isa, &[3.0, 4.0]), 25.0);
            assert_eq!(squares(isa, &[1.0; 21]), 21.0);
            assert_eq!(squares(isa, &sum).to_bits(), expected.to_bits(), "{isa:?}");
            assert_eq!(squares_of_sum(isa, &a, &b).to_bits(), expected.to_bits(), "{isa:?}");
            assert!(squares(isa, &[f32::MAX; 99]).is_finite());
            assert!(!squares_of_sum(isa, &[0.0, 3e38], &[0.0, 3e38]).is_finite());
        }
    }
}
