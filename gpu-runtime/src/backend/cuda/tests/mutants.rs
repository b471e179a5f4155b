//! Mutants of the kernels: a barrier, a wait or a fence of a warp is removed, a store goes to the next element, a bound is off by one.
//! A test of the kernel has to fail with each. The host's counterpart, a missing event wait, is planted in the tests of `cuda-sim/`.

use std::borrow::Cow;
use std::collections::BTreeSet;

use trainyard_test_support::full::is_full;

use super::simulated::fails_with_mutant;
use crate::backend::cuda::device::sources::SOURCES;

/// Set to a mutant's index in processes that run with it.
pub(super) const MUTANT: &str = "TRAINYARD_TEST_MUTANT";

/// A change to the n-th instruction, counted from 0, that begins with the given text.
#[derive(Clone, Copy, Debug)]
enum Change {
    Delete(&'static str, usize),
    /// Adds bytes to the instruction's address.
    Shift(&'static str, usize, usize),
    /// Replaces the beginning of the instruction.
    Replace(&'static str, usize, &'static str),
}

use Change::{Delete, Replace, Shift};

const BARRIER: &str = "bar.sync";
const WARP: &str = "bar.warp.sync";
const WAIT: &str = "cp.async.wait_group";
const COMMIT: &str = "cp.async.commit_group";
const FLOAT: &str = "st.global.f32";
const HALF: &str = "st.global.u16";
const FOUR_WORDS: &str = "ld.global.v4.u32";

/// A kernel, what is wrong with it, and the test that has to fail.
type Mutant = (&'static str, Change, &'static str);

const MUTANTS: &[Mutant] = &[
    ("activate_f32", Shift(FLOAT, 0, 4), "activation::gates_are_activated"),
    ("activate_backward_f32", Shift(FLOAT, 0, 4), "activation::gradients_are_those_of_the_formula"),
    ("attention", Delete(BARRIER, 0), "attention::attention_and_its_gradient"),
    ("attention", Delete(BARRIER, 1), "attention::attention_and_its_gradient"),
    ("attention_backward_q", Delete(BARRIER, 1), "attention::attention_and_its_gradient"),
    ("attention_backward_kv", Delete(BARRIER, 0), "attention::attention_and_its_gradient"),
    ("attention_backward_kv", Delete(BARRIER, 1), "attention::attention_and_its_gradient"),
    ("kv_write_f32", Shift(FLOAT, 0, 4), "attention::attention_and_its_gradient"),
    ("add_bias", Replace("setp.ge.u32", 0, "setp.gt.u32"), "bias::biases_are_added_to_the_first_rows"),
    ("bias_backward", Shift(FLOAT, 0, 4), "bias::gradients_have_the_bits_of_rows_in_order"),
    ("combine", Replace("setp.ge.u32", 0, "setp.gt.u32"), "combine::sums_of_experts_and_their_gradients"),
    ("combine_backward", Delete(BARRIER, 1), "combine::sums_of_experts_and_their_gradients"),
    ("gather_rows", Replace("setp.ge.u32", 0, "setp.gt.u32"), "copies::rows_are_gathered_and_scattered"),
    ("round_to_bf16", Shift(HALF, 0, 2), "copies::elements_are_rounded_and_shifted"),
    ("embed_f32", Shift(FLOAT, 0, 4), "embedding::rows_are_those_of_the_tokens"),
    ("split_gates", Replace("setp.ge.u32", 0, "setp.gt.u32"), "gated::gates_are_split_off_joined_and_applied"),
    ("gate_heads_backward", Shift(FLOAT, 0, 4), "gated::gates_are_split_off_joined_and_applied"),
    ("head_chunk", Delete(BARRIER, 1), "head::log_probabilities_and_their_gradients"),
    ("head_chunk", Delete(BARRIER, 2), "head::log_probabilities_and_their_gradients"),
    ("head_gradient_bf16", Shift(HALF, 0, 2), "head::log_probabilities_and_their_gradients_in_bf16"),
    ("sum_ranks", Replace("setp.ge.u64", 0, "setp.gt.u64"), "ranks::three_ranks_agree"),
    ("copy_columns", Replace("setp.ge.u32", 0, "setp.gt.u32"), "latent::heads_are_joined_and_split"),
    ("split_heads", Shift(FLOAT, 0, 4), "latent::heads_are_joined_and_split"),
    ("edit_logits", Replace("setp.ge.u32", 0, "setp.gt.u32"), "logits::logits_are_changed_as_on_the_processor"),
    ("row_log_sums", Delete(BARRIER, 2), "logits::scores_are_those_of_the_reference"),
    ("top_tokens", Delete(BARRIER, 0), "logits::scores_are_those_of_the_reference"),
    ("lora_shrink_backward", Delete(BARRIER, 0), "lora::rows_get_what_their_adapters_add"),
    ("lora_expand", Replace("setp.ge.u32", 0, "setp.gt.u32"), "lora::rows_get_what_their_adapters_add"),
    ("chunk_scan", Delete(BARRIER, 1), "mixers::recurrences_and_their_gradients"),
    ("chunk_scan", Delete(BARRIER, 3), "mixers::recurrences_and_their_gradients"),
    ("chunk_dots", Shift(FLOAT, 0, 4), "mixers::recurrences_and_their_gradients"),
    ("chunk_scan_backward", Delete(BARRIER, 1), "mixers::recurrences_and_their_gradients"),
    ("chunk_gradients", Delete(BARRIER, 0), "mixers::recurrences_and_their_gradients"),
    ("recurrent_inputs", Shift(FLOAT, 0, 4), "mixers::recurrences_and_their_gradients"),
    ("recurrent_keep", Replace("setp.ge.u32", 0, "setp.gt.u32"), "mixers::bits_of_mixers_do_not_depend_on_passes"),
    ("gate_norm_backward", Delete(BARRIER, 1), "mixers::recurrences_and_their_gradients"),
    ("convolve_backward", Shift(FLOAT, 0, 4), "mixers::convolutions_and_their_gradients"),
    ("add_scaled", Shift(FLOAT, 0, 4), "mixers::scaled_sums_and_activations_without_a_gate"),
    (
        "squared_relu_f32",
        Replace("setp.ge.u64", 0, "setp.gt.u64"),
        "mixers::scaled_sums_and_activations_without_a_gate",
    ),
    ("norm_f32", Delete(BARRIER, 1), "norm::rows_are_normalised"),
    ("norm_bf16", Shift(HALF, 0, 2), "norm::rows_are_normalised"),
    ("norm_backward", Delete(BARRIER, 2), "norm::gradients_are_those_of_the_formula"),
    ("squares", Delete(BARRIER, 1), "squares::squares_are_summed_in_f64"),
    ("rotate", Shift(FLOAT, 0, 4), "rotary::heads_are_normalised_and_rotated"),
    ("rotate_back_rounded", Shift(HALF, 0, 2), "rotary::heads_are_normalised_and_rotated"),
    (
        "joint_norm_scales",
        Delete(BARRIER, 1),
        "rotary::heads_are_rotated_in_part_by_two_tables_and_normalised_together",
    ),
    (
        "joint_norm_backward",
        Delete(BARRIER, 1),
        "rotary::heads_are_rotated_in_part_by_two_tables_and_normalised_together",
    ),
    ("rotate_parts", Shift(FLOAT, 0, 4), "rotary::heads_are_rotated_in_part_by_two_tables_and_normalised_together"),
    (
        "rotate_parts_back",
        Shift(FLOAT, 0, 4),
        "rotary::heads_are_rotated_in_part_by_two_tables_and_normalised_together",
    ),
    ("route", Delete(WARP, 2), "routing::experts_by_sigmoids_of_groups"),
    ("route_backward", Delete(WARP, 0), "routing::experts_by_softmax"),
    ("sample", Delete(BARRIER, 1), "sampling::tokens_without_cuts_are_those_of_the_processor"),
    ("scalar_head", Delete(BARRIER, 1), "scalar_head::values_and_their_gradients"),
    ("scalar_head_gradients", Replace("setp.gt.u32", 0, "setp.ge.u32"), "scalar_head::values_and_their_gradients"),
    ("add_sinks", Delete(BARRIER, 0), "sinks::sinks_and_their_gradient"),
    ("tensor_attention_split_64", Delete(BARRIER, 2), "tensor_attention::attention_and_its_gradient"),
    ("tensor_attention_join", Shift(FLOAT, 0, 4), "tensor_attention::attention_and_its_gradient"),
    ("tensor_attention_64", Delete(WAIT, 0), "tensor_attention::attention_and_its_gradient"),
    ("tensor_attention_64", Delete(BARRIER, 1), "tensor_attention::attention_and_its_gradient"),
    ("tensor_attention_128", Delete(BARRIER, 2), "tensor_attention::attention_and_its_gradient"),
    ("tensor_attention_128", Delete(BARRIER, 3), "tensor_attention::attention_and_its_gradient"),
    ("tensor_attention_backward_q_64", Delete(COMMIT, 0), "tensor_attention::attention_and_its_gradient"),
    ("tensor_attention_backward_kv_64", Delete(WAIT, 0), "tensor_attention::attention_and_its_gradient"),
    ("tensor_attention_backward_kv_128", Delete(BARRIER, 1), "tensor_attention::attention_and_its_gradient"),
    ("tensor_lora_shrink", Delete(WAIT, 0), "lora::many_rows_get_what_their_adapters_add"),
    ("tensor_lora_shrink", Delete(BARRIER, 0), "lora::many_rows_get_what_their_adapters_add"),
    ("tensor_lora_shrink_few", Delete(BARRIER, 0), "lora::rows_get_what_their_adapters_add"),
    ("tensor_lora_shrink_few", Delete(BARRIER, 1), "lora::rows_get_what_their_adapters_add"),
    ("tensor_lora_shrink_few", Delete(WARP, 1), "lora::rows_get_what_their_adapters_add"),
    // A fetch that ends within a split, a whole one, and the third one of either kind.
    ("tensor_lora_shrink_few", Shift(FOUR_WORDS, 1, 16), "lora::rows_get_what_their_adapters_add"),
    ("tensor_lora_shrink_few", Shift(FOUR_WORDS, 11, 16), "lora::rows_get_what_their_adapters_add"),
    ("tensor_lora_shrink_few", Shift(FOUR_WORDS, 16, 16), "lora::rows_get_what_their_adapters_add"),
    ("tensor_lora_shrink_few", Shift(FOUR_WORDS, 24, 16), "lora::rows_get_what_their_adapters_add"),
    ("tensor_lora_shrink_backward", Delete(WAIT, 0), "lora::rows_get_what_their_adapters_add"),
    ("tensor_lora_expand", Delete(BARRIER, 0), "lora::rows_get_what_their_adapters_add"),
    ("tensor_lora_expand_backward", Delete(BARRIER, 1), "lora::rows_get_what_their_adapters_add"),
    ("tensor_outer_products", Delete(BARRIER, 0), "outer::gradients_on_tensor_cores"),
    ("tensor_outer_products", Delete(WAIT, 0), "outer::gradients_on_tensor_cores"),
    ("tensor_outer_products", Delete(WARP, 0), "outer::gradients_on_tensor_cores"),
    ("tensor_outer_products", Delete(BARRIER, 1), "outer::gradients_on_tensor_cores"),
    ("tensor_attention_all_64", Delete(WAIT, 0), "vision::rows_attend_to_all_rows_of_their_image_on_tensor_cores"),
    ("tensor_attention_all_128", Delete(BARRIER, 2), "vision::rows_attend_to_all_rows_of_their_image_on_tensor_cores"),
    ("layer_norm_f32", Delete(BARRIER, 1), "vision::rows_are_normalised_around_their_means"),
    ("layer_norm_bf16", Shift(HALF, 0, 2), "vision::rows_are_normalised_around_their_means"),
    ("gelu_f32", Replace("setp.ge.u32", 0, "setp.gt.u32"), "vision::elements_are_activated"),
    ("mix_rows", Shift(FLOAT, 0, 4), "vision::rows_are_mixed_and_added"),
    ("add_rows", Replace("setp.ge.u32", 0, "setp.gt.u32"), "vision::rows_are_mixed_and_added"),
    ("spread", Shift(FLOAT, 0, 4), "vocabulary::rows_are_spread"),
];

/// PTX with a change of one of its kernels; `None` where it has no such instruction.
fn changed(ptx: &str, kernel: &str, change: Change) -> Option<String> {
    let (Delete(opcode, nth) | Shift(opcode, nth, _) | Replace(opcode, nth, _)) = change;
    let mut lines: Vec<Cow<'_, str>> = ptx.lines().map(Cow::Borrowed).collect();
    let first = lines.iter().position(|line| line.contains(&format!(".entry {kernel}(")))?;
    let end = first + lines[first..].iter().position(|line| *line == "}")?;
    let begins = |line: &str| {
        let line = line.trim_start();
        let instruction = if line.starts_with('@') { line.split_once(' ').map_or("", |(_, rest)| rest) } else { line };
        instruction.trim_start().starts_with(opcode)
    };
    let at = (first..end).filter(|at| begins(&lines[*at])).nth(nth)?;
    lines[at] = match change {
        Delete(..) => Cow::Borrowed(""),
        Replace(from, _, to) => Cow::Owned(lines[at].replacen(from, to, 1)),
        Shift(_, _, bytes) => {
            let (before, rest) = lines[at].split_once('[')?;
            let (address, after) = rest.split_once(']')?;
            let (base, offset) = address.split_once('+').unwrap_or((address, "0"));
            let offset = offset.parse::<usize>().ok()? + bytes;
            Cow::Owned(format!("{before}[{base}+{offset}]{after}"))
        }
    };
    Some(lines.join("\n"))
}

/// The PTX that a process loads for a source: with the change of its mutant, if it runs with one of this source.
pub(in crate::backend::cuda) fn mutated(ptx: &'static str) -> Cow<'static, str> {
    let index = std::env::var(MUTANT).ok().map(|index| index.parse::<usize>().unwrap());
    let mutant = index.and_then(|index| changed(ptx, MUTANTS[index].0, MUTANTS[index].1));
    mutant.map_or(Cow::Borrowed(ptx), Cow::Owned)
}

/// The source that a mutant changes.
fn source_of(&(kernel, change, _): &Mutant) -> &'static str {
    let sources: Vec<_> = SOURCES.iter().filter(|source| changed(source.ptx, kernel, change).is_some()).collect();
    assert_eq!(sources.len(), 1, "sources whose {kernel} has an instruction for {change:?}");
    sources[0].name
}

/// Mutants by their index: the first one of each source, or all with `make test-full`.
fn run_mutants() -> Vec<usize> {
    let mut sources = BTreeSet::new();
    let is_run = |index: &usize| sources.insert(source_of(&MUTANTS[*index])) || is_full();
    (0..MUTANTS.len()).filter(is_run).collect()
}

#[test]
fn every_mutant_is_caught() {
    let run = run_mutants();
    let survives = |index: &usize| {
        let (kernel, change, test) = MUTANTS[*index];
        (!fails_with_mutant(test, *index)).then(|| format!("{kernel} {change:?}"))
    };
    // Two processes at a time.
    let some = |first: usize| run.iter().skip(first).step_by(2).filter_map(survives).collect();
    let survivors: Vec<String> = std::thread::scope(|scope| {
        let others = scope.spawn(|| some(1));
        let own: Vec<String> = some(0);
        [own, others.join().unwrap()].concat()
    });
    assert!(survivors.is_empty(), "{} of {} mutants survive: {survivors:#?}", survivors.len(), run.len());
}

#[test]
fn each_source_of_kernels_has_a_mutant() {
    let changed: BTreeSet<_> = MUTANTS.iter().map(source_of).collect();
    assert_eq!(changed, SOURCES.iter().map(|source| source.name).collect());
}
