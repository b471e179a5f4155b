//! `value_mse` by hand, its gradient by differences, and its inputs.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;

use proptest::prelude::*;
use trainyard_protocol::{Datum, LossConfigValue, LossFn, PreparedDatum, Tensor, ValueInputs};

use super::{evaluate, prepare};

const PLAIN: LossFn = LossFn::ValueMse { clip: None };
const CLIPPED: LossFn = LossFn::ValueMse { clip: Some(0.5) };

fn datum(inputs: &[(&str, Tensor)]) -> Datum {
    let loss_fn_inputs = inputs.iter().map(|(name, tensor)| ((*name).to_owned(), tensor.clone())).collect();
    Datum { tokens: vec![1, 2, 3], loss_fn_inputs, images: Vec::new() }
}

fn three(values: [f32; 3]) -> Tensor {
    Tensor::f32(values.to_vec())
}

#[test]
fn terms_are_half_squares_and_clips_stop_their_gradient() {
    let returns = ("returns", three([1.0, 0.0, 2.0]));
    let weights = ("weights", three([1.0, 0.0, 2.0]));
    let plain = prepare(&PLAIN, 0, &datum(&[returns.clone(), weights]), 9).unwrap();
    let value = evaluate(&PLAIN, &plain, &[3.0, 7.0, 1.0]).unwrap();
    assert_eq!((value.sum, value.elementwise), (3.0, vec![2.0, 0.0, 1.0]));
    assert_eq!(value.dlogprobs, vec![2.0, 0.0, -2.0]);

    let old = ("old_values", three([0.0, 0.0, 0.0]));
    let clipped = prepare(&CLIPPED, 0, &datum(&[returns, old]), 9).unwrap();
    // The first one has moved towards its return by more than the clip, the second one away from it, the third one little.
    let value = evaluate(&CLIPPED, &clipped, &[0.75, 1.0, 0.25]).unwrap();
    assert_eq!(value.elementwise, vec![0.125, 0.5, 1.53125]);
    assert_eq!(value.dlogprobs, vec![0.0, 1.0, -1.75]);
}

#[test]
fn inputs_are_checked_by_name() {
    let returns = || ("returns", three([0.0; 3]));
    let refused = |loss: &LossFn, inputs: &[(&str, Tensor)]| prepare(loss, 4, &datum(inputs), 9).unwrap_err().message;
    let field = "data[4].loss_fn_inputs.";
    assert_eq!(refused(&PLAIN, &[]), format!("{field}returns: missing; value_mse needs it"));
    assert_eq!(refused(&CLIPPED, &[returns()]), format!("{field}old_values: missing; value_mse needs it"));
    let unused = refused(&PLAIN, &[returns(), ("old_values", three([0.0; 3]))]);
    assert!(
        unused.starts_with(&format!("{field}old_values: not an input of value_mse; its inputs: returns")),
        "{unused}"
    );
    assert!(
        refused(&PLAIN, &[("returns", Tensor::f32(vec![0.0; 2]))]).contains("returns: has shape [2], expected [3]")
    );
    assert!(refused(&PLAIN, &[("returns", Tensor::i64(vec![0; 3]))]).contains("must be float32"));
    let wide = Tensor { shape: vec![3, 1], ..Tensor::i64(vec![0; 3]) };
    assert!(refused(&PLAIN, &[returns(), ("target_tokens", wide)]).contains("one target per position"));
    // Targets may be there, as recipes have them for other losses.
    prepare(&PLAIN, 0, &datum(&[returns(), ("target_tokens", Tensor::i64(vec![2, 3, 4]))]), 9).unwrap();
    let config = BTreeMap::from([("value_clip".to_owned(), LossConfigValue::Number(0.5))]);
    assert_eq!(LossFn::parse("value_mse", &config).unwrap(), CLIPPED);
}

#[test]
fn a_value_that_overflows_is_refused_with_its_position() {
    let datum = prepare(&PLAIN, 2, &datum(&[("returns", three([0.0; 3]))]), 9).unwrap();
    let error = evaluate(&PLAIN, &datum, &[0.0, 1e30, 0.0]).unwrap_err().message;
    assert!(error.starts_with("data[2]: value_mse is not finite at position 1 (value 1"), "{error}");
}

fn prepared(rows: &[(f32, f32, f32, f32)], clips: bool) -> PreparedDatum {
    let column = |of: fn(&(f32, f32, f32, f32)) -> f32| rows.iter().map(of).collect::<Vec<f32>>();
    PreparedDatum {
        index: 0,
        tokens: vec![0; rows.len()],
        targets: vec![0; rows.len()],
        k: 1,
        shape: vec![rows.len()],
        weights: Some(column(|row| row.3)),
        entropy_weights: None,
        kl_weights: None,
        policy: None,
        values: Some(ValueInputs {
            returns: column(|row| row.1),
            old_values: if clips { column(|row| row.2) } else { Vec::new() },
        }),
        custom: Vec::new(),
        images: Vec::new(),
    }
}

proptest! {
    /// The gradient is the slope of the sum.
    #[test]
    fn gradients_agree_with_differences(
        rows in prop::collection::vec((-2f32..2.0, -2f32..2.0, -2f32..2.0, -1f32..1.0), 1..6),
        clips in any::<bool>(),
    ) {
        let loss = if clips { CLIPPED } else { PLAIN };
        let datum = prepared(&rows, clips);
        let values: Vec<f32> = rows.iter().map(|row| row.0).collect();
        let found = evaluate(&loss, &datum, &values).unwrap();
        for (at, (value, wanted, old, _)) in rows.iter().enumerate() {
            // Differences say nothing across a kink: at the clip, and where both terms are equal.
            let held = old + (value - old).clamp(-0.5, 0.5);
            prop_assume!(((value - old).abs() - 0.5).abs() > 0.02);
            prop_assume!(held == *value || ((value - wanted).abs() - (held - wanted).abs()).abs() > 0.02);
            let h = 1.0 / 256.0;
            let shifted = |by: f32| {
                let mut moved = values.clone();
                moved[at] += by;
                evaluate(&loss, &datum, &moved).unwrap().sum
            };
            let slope = (shifted(h) - shifted(-h)) / f64::from(2.0 * h);
            prop_assert!((slope - f64::from(found.dlogprobs[at])).abs() < 1e-3, "{slope} {:?}", found.dlogprobs);
        }
    }
}
