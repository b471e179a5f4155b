//! The backend for GPUs on a simulated device: its ops against the reference backend, and every family against PyTorch.

use trainyard_test_support::full::chosen;

use super::golden::{Golden, adapter_training, full_parameter_steps, logprobs, lora_gradients, rounding_errors};
use super::vision;
use crate::backend::check;
use crate::backend::check::assert_close;
use crate::backend::cpu::{Cpu, Isa};
use crate::backend::cuda::Cuda;
use crate::backend::cuda::tests::simulated::{on_backend, on_backend_with};
use crate::backend::reference::Reference;
use crate::backend::{Activation, AttentionShape, Backend as _, Dtype, IndexKeys, LatentHeads, RouterRule};
use crate::load::tests::families;

/// Results are those of the reference backend.
macro_rules! compare {
    ($cuda:expr, $op:path, $($arg:expr),*) => {
        assert_close("cuda", &$op($cuda, $($arg),*), &$op(&Reference, $($arg),*), 2e-5);
    };
}

#[test]
fn ops_agree() {
    on_backend(Dtype::F32, |cuda| {
        let cuda = &cuda;
        compare!(cuda, check::norms, 5, 70, 1);
        for kind in [Activation::Silu, Activation::GeluTanh, Activation::ClampedSwish, Activation::SquaredRelu] {
            compare!(cuda, check::activations, kind, 5, 33, 2);
        }
        compare!(cuda, check::linears, 9, 40, [33, 7], 5, 3);
        compare!(cuda, check::linears, 2, 1, [1, 1], 1, 4);
        compare!(cuda, check::embeddings, 33, 5);
        let shape =
            AttentionShape { layers: 2, heads: 4, kv_heads: 2, head_dim: 6, scale: 0.7, index: IndexKeys::NONE };
        compare!(cuda, check::attention, shape, [40, 7], None, 6);
        compare!(cuda, check::attention, shape, [40, 7], Some(5), 7);
        for (rotated, whole_norms) in [(2, false), (4, true), (6, true)] {
            compare!(cuda, check::rotations, shape, rotated, whole_norms, 5, 18);
        }
        compare!(cuda, check::gates, shape, 5, 19);
    });
}

#[test]
fn loss_heads_agree() {
    on_backend(Dtype::F32, |cuda| {
        // Chunks of the vocabulary: several, and one.
        let cuda = &cuda.with_chunk(64);
        for (keep, full) in [(false, false), (false, true), (true, false), (true, true)] {
            compare!(cuda, check::heads, 9, 20, 150, keep, full, 8);
            compare!(cuda, check::head_parts, 6, 20, 100, 9, full, keep, 9);
        }
        compare!(cuda, check::heads, 4, 8, 64, false, false, 10);
        compare!(cuda, check::score_parts, 3, 150, 140, 11);
        for at in [&[4, 0, 2][..], &[]] {
            let bits = |results: check::access::Results| results[0].1.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(check::spread(cuda, at, 6, 7)), bits(check::spread(&Reference, at, 6, 7)));
        }
    });
}

#[test]
fn ops_of_families_agree() {
    on_backend(Dtype::F32, |cuda| {
        let cuda = &cuda;
        compare!(cuda, check::experts, RouterRule::softmax(2, true), 7, 5, 33, 12);
        compare!(cuda, check::experts, RouterRule::softmax(3, false), 7, 5, 33, 13);
        compare!(cuda, check::experts, check::sigmoid(2, true, 4, 2, 2.5), 7, 8, 33, 14);
        compare!(cuda, check::sinks, 7, 3, 10, 15);
        compare!(cuda, check::scalar_heads, 7, 70, 16);
        let heads = LatentHeads { heads: 3, nope: 6, rope: 4, value: 8, width: 10, interleaved: true };
        compare!(cuda, check::latent_heads, heads, 5, 17);
    });
}

#[test]
fn the_op_suite_passes() {
    for dtype in [Dtype::F32, Dtype::Bf16] {
        on_backend_with(SEED, dtype, |cuda| {
            let host = check::host_backend(cuda.dtype());
            let found = check::check(&cuda, &host);
            found.iter().for_each(|op| eprintln!("{op}"));
            assert!(found.iter().all(check::OpCheck::holds));
            assert_eq!(cuda.failure(), None);
        });
    }
}

/// One order of blocks, warps and streams.
const SEED: (&str, &str) = ("CUDASIM_SEED", "3");

/// Log-probabilities, and gradients of adapters and of all parameters, are PyTorch's.
fn is_golden(family: &str, cuda: Cuda, steps: usize) -> Golden<Cuda> {
    let g = Golden::open(family, cuda);
    logprobs(&g);
    lora_gradients(&g, &["cross_entropy"]);
    full_parameter_steps(&g, steps);
    g
}

#[test]
fn training_is_golden() {
    on_backend_with(SEED, Dtype::F32, |cuda| {
        let g = is_golden("llama", cuda, 3);
        adapter_training(&g);
        g.backend.gpu().synchronize().unwrap();
    });
}

/// Families of a test: those that stand for others, and those others with `make test-full`.
struct Chosen {
    always: &'static [&'static str],
    in_full: &'static [&'static str],
}

impl Chosen {
    fn families(&self) -> impl Iterator<Item = &'static str> {
        chosen(self.always, self.in_full)
    }

    /// Compares each family with PyTorch, on a device of its own.
    fn are_golden(&self) {
        for family in self.families() {
            eprintln!("family {family}");
            let g = is_golden(family, Cuda::open(0, Dtype::F32).unwrap(), 1);
            g.backend.gpu().synchronize().unwrap();
        }
    }
}

const DENSE: Chosen = Chosen {
    always: &["llama3_rope", "mistral_swa", "gemma3"],
    in_full: &["llama", "llama_tied", "qwen2", "qwen3", "smollm3"],
};

/// Heads that are rotated in part or scaled by position, and norms over all heads.
const OTHER_ROTATIONS: Chosen = Chosen { always: &["phi3", "olmo3"], in_full: &["ministral3"] };

const EXPERTS: Chosen = Chosen { always: &["gpt_oss", "deepseek_v3"], in_full: &["qwen3_moe", "kimi_k25", "glm4_moe"] };

/// Delta nets and short convolutions are compared in bf16 always.
const STATES: Chosen = Chosen {
    always: &["nemotron_h"],
    in_full: &["qwen3_5", "lfm2", "granitemoehybrid", "granitemoehybrid_moe", "nemotron_h_latent", "qwen3_5_moe"],
};

#[test]
fn dense_families_are_golden() {
    on_backend_with(SEED, Dtype::F32, |_| DENSE.are_golden());
}

#[test]
fn families_with_other_rotations_are_golden() {
    on_backend_with(SEED, Dtype::F32, |_| OTHER_ROTATIONS.are_golden());
}

#[test]
fn families_with_experts_are_golden() {
    on_backend_with(SEED, Dtype::F32, |_| EXPERTS.are_golden());
}

#[test]
fn families_with_states_are_golden() {
    on_backend_with(SEED, Dtype::F32, |_| STATES.are_golden());
}

/// The families of lists, in order of their names.
fn listed(lists: &[Chosen]) -> Vec<&'static str> {
    let mut all: Vec<_> = lists.iter().flat_map(|list| list.always.iter().chain(list.in_full)).copied().collect();
    all.sort_unstable();
    all
}

#[test]
fn every_family_is_in_one_of_the_lists() {
    assert_eq!(listed(&[DENSE, OTHER_ROTATIONS, EXPERTS, STATES]), families());
    let mut with_images = vision::FAMILIES;
    with_images.sort_unstable();
    assert_eq!(listed(&[WITH_IMAGES]), with_images);
}

#[test]
fn ops_of_towers_agree() {
    on_backend(Dtype::F32, |cuda| {
        let cuda = &cuda;
        compare!(cuda, check::tower_rows, 7, 33, 20);
        compare!(cuda, check::image_attention, &[40, 1, 33], 2, 12, 21);
        compare!(cuda, check::image_attention, &[5], 1, 64, 22);
    });
}

/// One of each tower; the others have experts and states besides, which families without images have too.
const WITH_IMAGES: Chosen = Chosen { always: &["qwen3_vl", "kimi_k25"], in_full: &["qwen3_vl_moe", "qwen3_5_vl"] };

/// Embeddings of images are PyTorch's, and so are log-probabilities and gradients behind them.
#[test]
fn models_with_images_are_golden() {
    on_backend_with(SEED, Dtype::F32, |_| {
        for family in WITH_IMAGES.families() {
            vision::embeddings(family, Cuda::open(0, Dtype::F32).unwrap());
            let g = is_golden(&vision::folder(family), Cuda::open(0, Dtype::F32).unwrap(), 1);
            g.backend.gpu().synchronize().unwrap();
        }
    });
}

/// Weights rounded to bf16 alone change a family's numbers, some a lot. Sums of bf16 products add less than that again.
#[test]
fn families_are_golden_in_bf16() {
    // Of other families a token's experts are others where weights are rounded: two are as good.
    const ROUNDED: Chosen = Chosen {
        always: &["llama", "gemma3", "gpt_oss", "deepseek_v3", "lfm2", "qwen3_5"],
        in_full: &[
            "llama3_rope",
            "llama_tied",
            "mistral_swa",
            "qwen2",
            "qwen3",
            "smollm3",
            "phi3",
            "olmo3",
            "ministral3",
            "glm4_moe",
            "granitemoehybrid",
            "qwen3_5_moe",
        ],
    };
    on_backend_with(SEED, Dtype::Bf16, |_| {
        let mut wrong = Vec::new();
        for family in ROUNDED.families() {
            let g = Golden::open(family, Cuda::open(0, Dtype::Bf16).unwrap());
            let errors = rounding_errors(&g);
            let weights = rounding_errors(&Golden::open(family, Cpu::with_isa(1, Isa::Portable)));
            eprintln!("family {family}: {errors:?}, with rounded weights alone {weights:?}");
            if !(errors.mean < 2.0 * weights.mean && errors.gradient < 2.0 * weights.gradient && errors.mean < 3e-2) {
                wrong.push(family);
            }
            g.backend.gpu().synchronize().unwrap();
        }
        assert!(wrong.is_empty(), "{wrong:?}");
    });
}
