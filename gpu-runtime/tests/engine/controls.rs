//! Penalties, biases and `min_p` of samples; their tokens while they are sampled.

use std::collections::BTreeSet;

use trainyard_gpu_runtime::Dtype;
use trainyard_protocol::{
    Engine, Operation, RequestId, SampleOperation, SampleResult, SamplerSource, SamplingControls, SamplingParams,
};

use crate::support::{Driver, golden, params, sample, sample_result, tokens};

const PROMPT: usize = 12;

fn controlled(controls: SamplingControls, temperature: f32, seed: u64) -> SampleOperation {
    let params = SamplingParams { controls, ..params(24, temperature, seed) };
    sample(SamplerSource::Base { model: "m".into() }, tokens(PROMPT, 512, 3), 3, params)
}

fn run(d: &mut Driver, operation: SampleOperation) -> SampleResult {
    sample_result(d.run(Operation::Sample(Box::new(operation))))
}

fn all() -> SamplingControls {
    SamplingControls {
        min_p: 0.02,
        presence_penalty: 0.75,
        frequency_penalty: 0.5,
        repetition_penalty: 1.2,
        logit_bias: vec![(5, 2.0), (300, -100.0)],
        json_schema: None,
        call_marks: None,
    }
}

#[test]
fn log_probabilities_are_the_models_whatever_is_penalised() {
    let d = &mut Driver::open(&golden("qwen3"), Dtype::Bf16);
    let found = run(d, controlled(all(), 1.0, 4));
    let plain = run(d, controlled(SamplingControls::default(), 1.0, 4));
    assert_ne!(found.sequences[0].tokens, plain.sequences[0].tokens);
    for sequence in &found.sequences {
        let sampled = sequence.tokens.iter().map(|token| i64::from(*token));
        let mut scored = controlled(SamplingControls::default(), 1.0, 4);
        scored.sample.prompt.extend(sampled);
        let scored = run(d, scored).prompt_logprobs.unwrap();
        let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&scored[PROMPT..]), bits(&sequence.logprobs));
    }
}

#[test]
fn a_controlled_sample_is_bit_equal_alone_and_batched_with_others() {
    let alone = run(&mut Driver::open(&golden("qwen3"), Dtype::Bf16), controlled(all(), 0.9, 11));
    let d = &mut Driver::open(&golden("qwen3"), Dtype::Bf16);
    let others: Vec<RequestId> = (0..5)
        .map(|other| {
            let controls = if other % 2 == 0 { all() } else { SamplingControls::default() };
            d.start(Operation::Sample(Box::new(controlled(controls, 1.0, other))))
        })
        .collect();
    let batched = run(d, controlled(all(), 0.9, 11));
    assert_eq!(batched.sequences, alone.sequences);
    others.iter().for_each(|other| drop(d.take(other).unwrap()));
}

#[test]
fn biases_and_penalties_decide_what_is_sampled() {
    let d = &mut Driver::open(&golden("qwen3"), Dtype::Bf16);
    let biased = SamplingControls { logit_bias: vec![(7, 100.0)], ..Default::default() };
    let greedy = run(d, controlled(biased.clone(), 0.0, 0));
    assert!(greedy.sequences.iter().all(|sequence| sequence.tokens == [7; 24]));
    // Of two tokens that are far likelier than the others, the presence penalty takes them by turns at first, and the
    // frequency penalty always.
    let two =
        SamplingControls { logit_bias: vec![(7, 100.0), (9, 100.0)], frequency_penalty: 2.0, ..Default::default() };
    let turns = run(d, controlled(two, 0.0, 0));
    let sevens = turns.sequences[0].tokens.iter().filter(|token| **token == 7).count();
    let distinct: BTreeSet<u32> = turns.sequences[0].tokens.iter().copied().collect();
    assert_eq!(distinct, BTreeSet::from([7, 9]));
    assert!((9..=15).contains(&sevens), "{sevens}");
    // With min_p 1 only the most likely token is left, as in greedy decoding.
    let narrow = SamplingControls { min_p: 1.0, ..all() };
    let narrow = run(d, controlled(narrow, 1.0, 1));
    let greedy = run(d, controlled(all(), 0.0, 1));
    assert_eq!(narrow.sequences[0].tokens, greedy.sequences[0].tokens);
}

#[test]
fn a_token_outside_the_vocabulary_is_refused() {
    let d = &mut Driver::open(&golden("qwen3"), Dtype::Bf16);
    let controls = SamplingControls { logit_bias: vec![(512, 1.0)], ..Default::default() };
    let refused = d.run(Operation::Sample(Box::new(controlled(controls, 1.0, 0)))).unwrap_err();
    assert_eq!(refused.message, "sampling_params.logit_bias: token 512 is outside the vocabulary of 512");
}

#[test]
fn tokens_can_be_read_while_they_are_sampled() {
    let d = &mut Driver::open(&golden("qwen3"), Dtype::Bf16);
    let mut operation = controlled(SamplingControls::default(), 1.0, 2);
    operation.sample.topk_sample_logprobs = 2;
    let id = d.start(Operation::Sample(Box::new(operation)));
    let mut known = vec![0; 2];
    let mut parts = Vec::new();
    for step in 0.. {
        d.tick();
        if d.engine.is_idle() {
            break;
        }
        // Not at every step, so that parts have several tokens.
        if step % 3 == 0 {
            for part in d.engine.sampled_since(&id, &known) {
                known.resize(known.len().max(part.sequence + 1), 0);
                assert_eq!(part.first_index, known[part.sequence]);
                known[part.sequence] = part.end_index();
                parts.push(part);
            }
        }
    }
    assert!(d.engine.sampled_since(&id, &[]).is_empty());
    assert!(parts.len() > 6);
    let result = sample_result(d.take(&id));
    for part in parts {
        let mut expected = result.sequences[part.sequence].progress_from(part.sequence, part.first_index).unwrap();
        expected = expected.ending_at(part.end_index());
        assert_eq!(part, expected);
    }
}
