//! Whatever a pass keeps for its backward pass, its numbers have the same bits.

use serde_json::json;

use super::golden::{Golden, root};
use super::indexer::bits;
use crate::backend::cpu::{Cpu, Isa};
use crate::backend::{Backend, Dtype};
use crate::collective::Ranks;
use crate::load::load;
use crate::load::tests::families;
use crate::model::{PART_ROWS, Saved};
use crate::parallel::Parallel;

fn cpu(dtype: Dtype) -> Cpu {
    Cpu::with_isa(2, Isa::detect()).with_dtype(dtype)
}

#[test]
fn every_family_has_its_bits_whatever_is_kept() {
    for family in families().iter().map(String::as_str).chain(["vision/qwen3_vl", "vision/qwen3_5_vl"]) {
        let mut g = Golden::open(family, cpu(Dtype::Bf16));
        let expected = bits(&g);
        let choices = Saved::choices(g.model.config.num_layers()).skip(1);
        // With a single input, each block is computed again from the first one on.
        for saved in choices.chain([Saved { blocks: 0, inputs: 1 }]) {
            g.saved = Some(saved);
            assert!(bits(&g) == expected, "{family}, {saved:?}");
        }
    }
}

/// A model with sequences of these lengths.
fn with_lengths(family: &str, lens: &[usize]) -> Golden<Cpu> {
    let dir = root().join(family);
    let mut source = load(&dir).unwrap();
    source.config.max_position_embeddings = lens.iter().copied().max().unwrap();
    let mut g = Golden::of(source, dir, cpu(Dtype::F32), Ranks::default(), Parallel::default());
    let datum = |len: &usize| {
        let tokens: Vec<usize> = (0..*len).map(|at| (at * 7 + len) % 200).collect();
        json!({"tokens": tokens, "target_tokens": tokens, "weights": vec![1.0; *len]})
    };
    g.json["data"] = lens.iter().map(datum).collect();
    g
}

/// Bits of outputs and gradient, of an adapter or of all parameters.
fn all_bits<B: Backend>(g: &Golden<B>, full: bool) -> Vec<u32> {
    if !full {
        return bits(g);
    }
    let (outputs, gradient) = g.run(&g.weights, None, "cross_entropy", true);
    let outputs = outputs.into_iter().flat_map(|output| output.logprobs);
    outputs.chain(gradient.unwrap().into_iter().flatten()).map(f32::to_bits).collect()
}

#[test]
fn long_sequences_have_their_bits_whatever_is_kept() {
    for (family, full) in [("llama", true), ("qwen3_5", false)] {
        let mut g = with_lengths(family, &[PART_ROWS + 100, 5]);
        let expected = all_bits(&g, full);
        g.saved = Some(Saved { blocks: 0, inputs: 1 });
        assert!(all_bits(&g, full) == expected, "{family}, all parameters: {full}");
    }
}

/// The gradients of an adapter do not depend on the sequences beside its own, however long.
#[test]
fn parts_do_not_depend_on_other_sequences() {
    let of = |lens: &[usize]| {
        let mut g = with_lengths("llama", lens);
        g.saved = Some(Saved::default());
        let lora = g.adapter_params("lora_init.safetensors");
        let (outputs, _) = g.run(&g.weights, Some(&lora), "cross_entropy", true);
        outputs.into_iter().map(|output| output.logprobs).collect::<Vec<_>>()
    };
    let alone = of(&[PART_ROWS + 100]);
    let beside = of(&[100, PART_ROWS + 100, 50]);
    assert!(alone[0] == beside[1]);
}
