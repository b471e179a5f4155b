//! AdamW on plain slices.

use trainyard_protocol::{AdamParams, OpError};

/// Checks the hyper-parameters of a step; the error names the field.
pub fn validate(params: &AdamParams) -> Result<(), OpError> {
    let AdamParams { learning_rate, beta1, beta2, eps, weight_decay, grad_clip_norm } = *params;
    let error = |name: &str, value: f64, rule: &str| {
        Err(OpError::user(format!("adam_params.{name}: {value} is refused, it must be {rule}")))
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

/// Partial sums of a sum of squares.
const LANES: usize = 8;

/// Sum of squares in f64. The order of summation depends on the slice's length alone. It is finite exactly when all
/// values are.
pub fn squared_norm(values: &[f32]) -> f64 {
    let mut lanes = [0f64; LANES];
    let chunks = values.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks.chain([rest]) {
        for (lane, &value) in lanes.iter_mut().zip(chunk) {
            *lane += f64::from(value) * f64::from(value);
        }
    }
    lanes.iter().sum()
}

/// [`squared_norm`] of `a + b`, to the bit, without writing it. Both have one length.
pub fn squared_norm_of_sum(a: &[f32], b: &[f32]) -> f64 {
    let mut lanes = [0f64; LANES];
    let (a, b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest = [(a.remainder(), b.remainder())];
    for (a, b) in a.zip(b).chain(rest) {
        for ((lane, a), b) in lanes.iter_mut().zip(a).zip(b) {
            let value = f64::from(a + b);
            *lane += value * value;
        }
    }
    lanes.iter().sum()
}

/// The factor that brings a gradient of global norm `norm` down to `grad_clip_norm`, as
/// `torch.nn.utils.clip_grad_norm_` computes it: `max / (norm + 1e-6)`, at most 1. A limit that is not
/// positive is none.
pub fn clip_scale(norm: f64, grad_clip_norm: f64) -> f32 {
    if grad_clip_norm > 0.0 { (grad_clip_norm / (norm + 1e-6)).min(1.0) as f32 } else { 1.0 }
}

/// One AdamW step (Loshchilov & Hutter 2019, arXiv:1711.05101) on parameters of any shape, in the order of
/// operations of `torch.optim.AdamW`: decay, moments, bias correction, update.
///
/// `step` counts from 1; the gradient is `grad * grad_scale`; `m` and `v` are the moments, zero before step 1.
/// All slices have one length (only their common prefix is updated). Elements are independent, so that
/// any split of the slices gives the same bits. Where the denominator is zero (`eps` 0 and no gradient yet) the
/// parameter only decays.
pub fn adamw_update(
    params: &mut [f32],
    grad: &[f32],
    m: &mut [f32],
    v: &mut [f32],
    hyper: &AdamParams,
    step: u64,
    grad_scale: f32,
) {
    let exponent = step.max(1) as f64;
    let keep = (1.0 - hyper.learning_rate * hyper.weight_decay) as f32;
    let blend = (1.0 - hyper.beta1) as f32;
    let (beta2, rest2) = (hyper.beta2 as f32, (1.0 - hyper.beta2) as f32);
    let step_size = (hyper.learning_rate / (1.0 - hyper.beta1.powf(exponent))) as f32;
    let correction = (1.0 - hyper.beta2.powf(exponent)).sqrt() as f32;
    let eps = hyper.eps as f32;
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

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
            adamw_update(&mut p, grad, &mut m, &mut v, &hyper, t, 0.5);
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
    fn any_split_gives_the_same_bits() {
        let values = |scale: f32| (0..103).map(|i| ((i * 37 % 101) as f32 - 50.0) * scale).collect::<Vec<_>>();
        let grad = values(0.013);
        let (mut p, mut m, mut v) = (values(0.1), values(1e-3), vec![0.5f32; 103]);
        let (mut p2, mut m2, mut v2) = (p.clone(), m.clone(), v.clone());
        adamw_update(&mut p, &grad, &mut m, &mut v, &hyper(), 7, 0.3);
        for at in (0..103).step_by(5) {
            let end = (at + 5).min(103);
            adamw_update(&mut p2[at..end], &grad[at..end], &mut m2[at..end], &mut v2[at..end], &hyper(), 7, 0.3);
        }
        let bits = |v: &[f32]| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!((bits(&p), bits(&m), bits(&v)), (bits(&p2), bits(&m2), bits(&v2)));
    }

    #[test]
    fn zero_gradient_and_zero_eps_do_not_make_nan() {
        let (mut p, mut m, mut v) = ([2.0f32], [0f32], [0f32]);
        adamw_update(&mut p, &[0.0], &mut m, &mut v, &AdamParams { eps: 0.0, ..hyper() }, 1, 1.0);
        assert!((p[0] - 2.0 * 0.999).abs() < 1e-6);
    }

    #[test]
    fn clipping_follows_torch() {
        assert_eq!(squared_norm(&[3.0, 4.0]), 25.0);
        assert_eq!(squared_norm(&[1.0; 21]), 21.0);
        let [a, b] = [0.37f32, 1e-4].map(|step| (0..21).map(|i| (i as f32 * step).sin()).collect::<Vec<_>>());
        let sum: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
        assert_eq!(squared_norm_of_sum(&a, &b).to_bits(), squared_norm(&sum).to_bits());
        assert!(squared_norm(&[f32::MAX; 99]).is_finite());
        assert!(!squared_norm_of_sum(&[0.0, 3e38], &[0.0, 3e38]).is_finite());
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
