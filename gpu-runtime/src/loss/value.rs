//! `value_mse`: `w / 2 (v - R)^2`, clipped as PPO clips it.

use trainyard_protocol::ValueInputs;

use super::term::Term;

/// Terms of positions with these values, `[N]`.
///
/// With a clip `c` a term is the larger of the plain one and of that of the value moved by no more than `c` from the old
/// one. Where the latter is the larger, the value is beyond the clip, and the term has no gradient.
pub(super) fn mse(values: &[f32], inputs: &ValueInputs, clip: Option<f64>) -> Vec<Term> {
    let plain = |(&value, &wanted): (&f32, &f32)| {
        let error = f64::from(value) - f64::from(wanted);
        Term::new(0.5 * error * error, error)
    };
    let terms = values.iter().zip(&inputs.returns).map(plain);
    let Some(clip) = clip else { return terms.collect() };
    let clipped = |((plain, &value), (&wanted, &old)): ((Term, &f32), (&f32, &f32))| {
        let old = f64::from(old);
        let error = old + (f64::from(value) - old).max(-clip).min(clip) - f64::from(wanted);
        let held = 0.5 * error * error;
        if held > plain.value { Term::new(held, 0.0) } else { plain }
    };
    terms.zip(values).zip(inputs.returns.iter().zip(&inputs.old_values)).map(clipped).collect()
}
