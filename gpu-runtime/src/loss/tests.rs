#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;

use proptest::prelude::*;
use trainyard_protocol::{Category, ClipRange, Datum, LossConfig, LossConfigValue, PolicyInputs, Tensor, TensorValues};

use super::inputs::is_policy_gradient;
use super::*;

const VOCAB: usize = 512;

fn config(entries: &[(&str, f64)]) -> LossConfig {
    entries.iter().map(|&(key, value)| (key.to_owned(), LossConfigValue::Number(value))).collect()
}

fn policy_datum(n: usize) -> Datum {
    let inputs = [
        ("target_tokens", Tensor::i64(vec![2; n])),
        ("logprobs", Tensor::f32(vec![-1.0; n])),
        ("advantages", Tensor::f32(vec![0.5; n])),
    ];
    Datum {
        tokens: vec![1; n],
        loss_fn_inputs: inputs.map(|(name, tensor)| (name.to_owned(), tensor)).into(),
        images: Vec::new(),
    }
}

fn with(mut datum: Datum, name: &str, tensor: Tensor) -> Datum {
    datum.loss_fn_inputs.insert(name.to_owned(), tensor);
    datum
}

fn refusal(loss: &LossFn, datum: &Datum) -> String {
    let error = prepare(loss, 3, datum, VOCAB).unwrap_err();
    assert_eq!(error.category, Category::User);
    error.message
}

const PPO: LossFn = LossFn::Ppo(ClipRange { low: 0.8, high: 1.2 });
const GSPO: LossFn = LossFn::Gspo(ClipRange { low: 0.8, high: 1.2 });

#[test]
fn a_good_datum_is_taken_apart() {
    let datum = with(policy_datum(2), "weights", Tensor::f32(vec![1.0, 0.5]));
    let prepared = prepare(&PPO, 0, &datum, VOCAB).unwrap();
    assert_eq!((prepared.tokens, prepared.targets, prepared.k), (vec![1, 1], vec![2, 2], 1));
    assert_eq!((prepared.shape, prepared.weights), (vec![2], Some(vec![1.0, 0.5])));
    let policy = PolicyInputs { logprobs: vec![-1.0; 2], advantages: vec![0.5; 2], ratio_mask: vec![] };
    assert_eq!(prepared.policy, Some(policy));

    let datum = with(policy_datum(3), "sequence_ratio_mask", Tensor::f32(vec![0.0, 1.0, 0.5]));
    let policy = prepare(&GSPO, 0, &datum, VOCAB).unwrap().policy.unwrap();
    assert_eq!(policy.ratio_mask, [false, true, true]);

    let grid = Tensor { shape: vec![2, 3], values: TensorValues::I64(vec![0, 1, 2, 3, 4, 5]) };
    let datum =
        Datum { tokens: vec![7, 8], loss_fn_inputs: [("target_tokens".to_owned(), grid)].into(), images: Vec::new() };
    let prepared = prepare(&LossFn::CrossEntropy, 0, &datum, VOCAB).unwrap();
    assert_eq!((prepared.k, prepared.shape, prepared.weights), (3, vec![2, 3], None));
    assert_eq!(prepared.policy, None);
}

#[test]
fn bad_datums_are_refused_by_name() {
    let f32s = |n: usize, value: f32| Tensor::f32(vec![value; n]);
    let grid =
        |shape: &[usize]| Tensor { shape: shape.to_vec(), values: TensorValues::I64(vec![0; shape.iter().product()]) };
    let missing = |name: &str| {
        let mut datum = policy_datum(2);
        datum.loss_fn_inputs.remove(name);
        datum
    };
    let tokens = |ids: &[i64]| Datum { tokens: ids.to_vec(), ..policy_datum(ids.len()) };
    let lying = Tensor { shape: vec![2], values: TensorValues::F32(vec![1.0; 3]) };
    let field = |name: &str| format!("data[3].loss_fn_inputs.{name}: ");
    let cases = [
        (tokens(&[]), "data[3].model_input: at least one token is required".to_owned()),
        (tokens(&[1, -1]), "data[3].model_input: element 1 is token -1, outside the vocabulary of 512".to_owned()),
        (tokens(&[512, 1]), "data[3].model_input: element 0 is token 512".to_owned()),
        (missing("target_tokens"), field("target_tokens") + "missing"),
        (missing("logprobs"), field("logprobs") + "missing"),
        (missing("advantages"), field("advantages") + "missing"),
        (with(policy_datum(2), "mask", f32s(2, 1.0)), field("mask") + "not an input of ppo; its inputs: target_tokens"),
        (with(policy_datum(2), "target_tokens", f32s(2, 1.0)), field("target_tokens") + "is float32, must be int64"),
        (with(policy_datum(2), "advantages", Tensor::i64(vec![1, 2])), field("advantages") + "is int64"),
        (with(policy_datum(2), "weights", Tensor::i64(vec![1, 2])), field("weights") + "is int64, must be float32"),
        (with(policy_datum(2), "weights", f32s(3, 1.0)), field("weights") + "has shape [3], expected [2]"),
        (with(policy_datum(2), "weights", lying), field("weights") + "has 3 elements"),
        (with(policy_datum(2), "logprobs", f32s(1, 1.0)), field("logprobs") + "has shape [1]"),
        (with(policy_datum(2), "logprobs", f32s(2, f32::NAN)), field("logprobs") + "element 0 is NaN"),
        (with(policy_datum(2), "advantages", f32s(2, f32::INFINITY)), field("advantages") + "element 0 is inf"),
        (with(policy_datum(2), "target_tokens", Tensor::i64(vec![1])), field("target_tokens") + "has 1 rows"),
        (with(policy_datum(2), "target_tokens", Tensor::i64(vec![1, 999])), field("target_tokens") + "element 1 is"),
        (with(policy_datum(2), "target_tokens", grid(&[2, 2])), field("target_tokens") + "ppo takes one target"),
        (with(policy_datum(2), "target_tokens", grid(&[2, 1, 1])), field("target_tokens") + "has 3 dimensions"),
        (with(policy_datum(2), "target_tokens", grid(&[])), field("target_tokens") + "has 0 dimensions"),
    ];
    for (datum, expected) in cases {
        let message = refusal(&PPO, &datum);
        assert!(message.starts_with(&expected), "{message} / {expected}");
    }
    let unmasked = refusal(&GSPO, &policy_datum(2));
    assert_eq!(unmasked, field("sequence_ratio_mask") + "missing; gspo needs it");
    let short = with(policy_datum(2), "sequence_ratio_mask", f32s(1, 1.0));
    assert!(refusal(&GSPO, &short).starts_with(&(field("sequence_ratio_mask") + "has shape [1], expected [2]")));
    let columns = Datum {
        tokens: vec![1, 1],
        loss_fn_inputs: [("target_tokens".to_owned(), grid(&[2, 0]))].into(),
        images: Vec::new(),
    };
    assert!(refusal(&LossFn::CrossEntropy, &columns).ends_with("has no columns"));
    let wide = |k| Datum {
        tokens: vec![1, 1],
        loss_fn_inputs: [("target_tokens".to_owned(), grid(&[2, k]))].into(),
        images: Vec::new(),
    };
    assert!(
        refusal(&LossFn::CrossEntropy, &wide(513)).ends_with("target_tokens: 513 columns, at most 512 are allowed")
    );
    assert!(prepare(&LossFn::CrossEntropy, 3, &wide(512), VOCAB).is_ok());
    let refused = prepare(&LossFn::CrossEntropy, 3, &wide(1_025), 50_000).unwrap_err();
    assert!(refused.message.ends_with("target_tokens: 1025 columns, at most 1024 are allowed"));
    assert!(refusal(&LossFn::CrossEntropy, &policy_datum(2)).contains("advantages: not an input of cross_entropy"));
}

/// A datum of `n` positions; without advantages it has no policy inputs.
fn prepared(weights: Option<Vec<f32>>, logprobs: Vec<f32>, advantages: Vec<f32>, n: usize) -> PreparedDatum {
    let ratio_mask = vec![true; advantages.len()];
    PreparedDatum {
        index: 0,
        tokens: vec![0; n],
        targets: vec![0; n],
        k: 1,
        shape: vec![n],
        weights,
        entropy_weights: None,
        kl_weights: None,
        policy: (!advantages.is_empty()).then_some(PolicyInputs { logprobs, advantages, ratio_mask }),
        values: None,
        custom: Vec::new(),
        images: Vec::new(),
    }
}

#[test]
fn overflow_is_refused_and_masked_positions_are_not_touched() {
    let far = prepared(None, vec![-1.0, -1000.0], vec![1.0, -1.0], 2);
    let error = evaluate(&PPO, &far, &[-1.0, -1.0]).unwrap_err();
    assert!(error.message.starts_with("data[0]: ppo is not finite at position 1"), "{error}");
    let masked = prepared(Some(vec![1.0, 0.0]), vec![-1.0, -1000.0], vec![1.0, -1.0], 2);
    let value = evaluate(&PPO, &masked, &[-1.0, f32::NEG_INFINITY]).unwrap();
    assert_eq!((value.sum, value.dlogprobs), (-1.0, vec![-1.0, 0.0]));
    let clipped = prepared(None, vec![-1000.0], vec![1.0], 1);
    assert_eq!(evaluate(&PPO, &clipped, &[-1.0]).unwrap().dlogprobs, vec![0.0]);
}

#[test]
fn cross_entropy_takes_negative_weights_and_columns() {
    let mut datum = prepared(Some(vec![1.0, -2.0, 0.0, 0.5]), vec![], vec![], 4);
    (datum.k, datum.shape) = (2, vec![2, 2]);
    let value = evaluate(&LossFn::CrossEntropy, &datum, &[-1.0, -2.0, -3.0, -4.0]).unwrap();
    assert_eq!((value.sum, value.elementwise), (-1.0, vec![1.0, -4.0, 0.0, 2.0]));
    assert_eq!(value.dlogprobs, vec![-1.0, 2.0, 0.0, -0.5]);
}

fn losses() -> impl Strategy<Value = LossFn> {
    prop_oneof![
        Just(LossFn::CrossEntropy),
        Just(LossFn::ImportanceSampling),
        Just(PPO),
        Just(LossFn::Cispo(ClipRange { low: 0.5, high: 1.5 })),
        Just(LossFn::Dro { beta: 0.3 }),
    ]
}

proptest! {
    /// The gradient is the slope of the sum; for cispo, of the sum with the clipped ratio held constant.
    #[test]
    fn gradients_agree_with_differences(
        loss in losses(),
        rows in prop::collection::vec((-5f32..-0.1, -1f32..1.0, -2f32..2.0, -1f32..1.0), 1..6),
        weighted in any::<bool>(),
    ) {
        let n = rows.len();
        let lp: Vec<f32> = rows.iter().map(|row| row.0).collect();
        let q: Vec<f32> = rows.iter().map(|row| row.0 + row.1).collect();
        let advantages: Vec<f32> = rows.iter().map(|row| row.2).collect();
        let weights = weighted.then(|| rows.iter().map(|row| row.3).collect());
        let policy = is_policy_gradient(&loss);
        let take = |values: &Vec<f32>| if policy { values.clone() } else { vec![] };
        let datum = prepared(weights, take(&q), take(&advantages), n);
        let value = evaluate(&loss, &datum, &lp).unwrap();
        let total: f64 = value.elementwise.iter().map(|&x| f64::from(x)).sum();
        prop_assert!((total - value.sum).abs() < 1e-4);
        for at in 0..n {
            let ratio = f64::from(lp[at] - q[at]).exp();
            // Differences say nothing across a kink.
            prop_assume!(![0.5, 0.8, 1.2, 1.5].iter().any(|edge| (ratio - edge).abs() < 0.02));
            let h = 1.0 / 256.0;
            let shifted = |by: f32| {
                let mut moved = lp.clone();
                moved[at] += by;
                let mut datum = datum.clone();
                if let (LossFn::Cispo(_), Some(policy)) = (&loss, &mut datum.policy) {
                    policy.logprobs[at] += by;
                }
                evaluate(&loss, &datum, &moved).unwrap().sum
            };
            let slope = (shifted(h) - shifted(-h)) / f64::from(2.0 * h);
            prop_assert!((slope - f64::from(value.dlogprobs[at])).abs() < 2e-3, "{slope} {:?}", value.dlogprobs);
        }
    }

    /// Weights multiply each token's term, in every loss.
    #[test]
    fn weights_scale_terms(loss in losses(), lp in -5f32..-0.1, q in -5f32..-0.1, a in -2f32..2.0, w in -2f32..2.0) {
        let take = |x: f32| if is_policy_gradient(&loss) { vec![x] } else { vec![] };
        let plain = evaluate(&loss, &prepared(None, take(q), take(a), 1), &[lp]).unwrap();
        let scaled = evaluate(&loss, &prepared(Some(vec![w]), take(q), take(a), 1), &[lp]).unwrap();
        prop_assert!((scaled.sum - f64::from(w) * plain.sum).abs() < 1e-9 * (1.0 + plain.sum.abs()));
        prop_assert!((scaled.dlogprobs[0] - w * plain.dlogprobs[0]).abs() < 1e-4 * (1.0 + plain.dlogprobs[0].abs()));
    }
}

#[derive(serde::Deserialize)]
struct Golden {
    data: Vec<GoldenDatum>,
    lora_logprobs: Vec<Vec<f32>>,
    clip: BTreeMap<String, f64>,
    losses: BTreeMap<String, GoldenLoss>,
}

#[derive(serde::Deserialize)]
struct GoldenDatum {
    tokens: Vec<i64>,
    target_tokens: Vec<i64>,
    weights: Vec<f32>,
    advantages: Vec<f32>,
    logprobs: Vec<f32>,
}

#[derive(serde::Deserialize)]
struct GoldenLoss {
    loss_sum: f64,
}

impl GoldenDatum {
    fn datum(&self, loss: &LossFn) -> Datum {
        let mut inputs = BTreeMap::from([("target_tokens".to_owned(), Tensor::i64(self.target_tokens.clone()))]);
        if is_policy_gradient(loss) {
            inputs.insert("logprobs".to_owned(), Tensor::f32(self.logprobs.clone()));
            inputs.insert("advantages".to_owned(), Tensor::f32(self.advantages.clone()));
        } else {
            inputs.insert("weights".to_owned(), Tensor::f32(self.weights.clone()));
        }
        Datum { tokens: self.tokens.clone(), loss_fn_inputs: inputs, images: Vec::new() }
    }
}

#[test]
fn sums_agree_with_pytorch() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden/llama/golden.json");
    let golden: Golden = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert_eq!(golden.losses.len(), 4);
    for (name, expected) in &golden.losses {
        let clipped = matches!(name.as_str(), "ppo" | "cispo");
        let settings =
            if clipped { golden.clip.iter().map(|(key, value)| (key.as_str(), *value)).collect() } else { vec![] };
        let loss = LossFn::parse(name, &config(&settings)).unwrap();
        let sums = golden.data.iter().zip(&golden.lora_logprobs).enumerate().map(|(index, (datum, logprobs))| {
            let datum = prepare(&loss, index, &datum.datum(&loss), VOCAB).unwrap();
            evaluate(&loss, &datum, logprobs).unwrap().sum
        });
        let sum: f64 = sums.sum();
        assert!((sum - expected.loss_sum).abs() < 1e-3, "{name}: {sum}, expected {}", expected.loss_sum);
    }
}
