//! Every family, shared by tensor parallel and expert parallel ranks and computed by data parallel replicas, against the same
//! computation on one rank.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use trainyard_protocol::AdamParams;

use super::golden::{Arrays, Golden, Trained, adam, arrays, build, cpu, relative};
use crate::backend::cpu::{Cpu, Isa};
use crate::backend::reference::Reference;
use crate::backend::{Backend, Dtype};
use crate::collective::{LocalRank, Ranks, local_ranks};
use crate::config::HeadNorms;
use crate::load::tests::families;
use crate::model::zero::replicas::gather_into;
use crate::model::{ParamSpec, Shard, Weights};
use crate::parallel::Parallel;

pub(super) const LIMIT: Duration = Duration::from_secs(100);
/// Tolerance of results in f32 that differ only in the order of sums.
const TOLERANCE: f64 = 1e-5;
/// Where recurrences follow each other, the difference that another order of sums makes grows from one to the next.
const OF_RECURRENCES: f64 = 1e-3;

/// Relative error of gradients and parameters, and error of log-probabilities, that another order of sums may make.
pub(super) fn tolerance(family: &str) -> f64 {
    let config = crate::load::load(&super::golden::root().join(family)).unwrap().config;
    if config.recurrences().next().is_some() { OF_RECURRENCES } else { TOLERANCE }
}

/// Adam's epsilon for models with experts. The reference numbers' 1e-12 is too small for a weight whose gradient is a
/// sum of few cancelling tokens: rounding moves it by the learning rate in an arbitrary direction (deepseek_v3 with
/// `tp`).
pub(super) const EPS: f64 = 1e-4;

/// Results of a rank.
#[derive(Clone, Debug, PartialEq)]
struct Outcome {
    logprobs: Vec<f32>,
    lora_logprobs: Vec<f32>,
    /// Gradients of the adapter, then of all parameters.
    gradients: [Arrays; 2],
    /// Parameters after three optimizer steps.
    trained: [Arrays; 2],
    logprobs_after: Vec<f32>,
    /// Tokens that each expert of each block got, with the adapter: by example.
    routed: Vec<Vec<Vec<u32>>>,
}

/// An [`Outcome`] with what is needed to compare it.
struct RankOutcome {
    outcome: Outcome,
    shard: Shard,
    specs: [Vec<ParamSpec>; 2],
    /// Bytes of a moment of all parameters.
    moment_bytes: usize,
}

fn work<B: Backend>(g: &Golden<B>, replicas: &Ranks) -> RankOutcome {
    let lora_spec = g.lora.clone();
    let loss = "cross_entropy";
    let logprobs = |outputs: Vec<crate::model::TrainOutput>| outputs.into_iter().flat_map(|o| o.logprobs).collect();
    let lora = g.adapter_params("lora_init.safetensors");
    let run = |w: &Weights<B>, adapter: Option<&Arrays>, trains| g.run_on(replicas, w, adapter, (loss, trains));
    let (base, gradient) = run(&g.weights, None, true);
    let (adapted, lora_gradient) = run(&g.weights, Some(&lora), true);
    let whole = |parts: Arrays, like: &Arrays| {
        let mut whole = g.backend.upload_params(like.clone());
        gather_into(replicas, &g.backend.upload_params(parts), &mut whole);
        arrays(&whole)
    };
    let gradients = [whole(lora_gradient.unwrap(), &lora), whole(gradient.unwrap(), &g.masters)];
    let mut adapter = Trained::on(replicas, &g.backend, &lora);
    let mut full = Trained::on(replicas, &g.backend, &g.masters);
    let mut weights = build(&g.backend, &g.model, &g.masters);
    let hyper = |json: &serde_json::Value| {
        let hyper = adam(json);
        AdamParams { eps: if g.model.config.has_experts() { EPS } else { hyper.eps }, ..hyper }
    };
    for _ in 0..3 {
        let (_, grads) = run(&g.weights, Some(&arrays(&adapter.params)), true);
        adapter.step(&g.backend, grads.unwrap(), &hyper(&g.json["adamw"]));
        let (_, grads) = run(&weights, None, true);
        full.step(&g.backend, grads.unwrap(), &hyper(&g.json["full_finetune"]["adamw"]));
        weights.update(&g.backend, &full.params);
    }
    g.model.ranks.check().unwrap();
    let routed = adapted.iter().map(|output| output.expert_tokens.clone()).collect();
    let outcome = Outcome {
        logprobs: logprobs(base),
        lora_logprobs: logprobs(adapted),
        gradients,
        trained: [arrays(&adapter.params), arrays(&full.params)],
        logprobs_after: logprobs(run(&weights, None, false).0),
        routed,
    };
    let specs = [Some(&lora_spec), None].map(|lora| g.model.table.trained(&g.model.config, lora));
    RankOutcome { outcome, shard: g.model.shard, specs, moment_bytes: full.moment_bytes() }
}

/// Results of each rank of a layout; the ranks are threads.
fn on_ranks<B: Backend>(family: &str, layout: &str, backend: fn() -> B) -> Vec<RankOutcome> {
    let layout: Parallel = layout.parse().unwrap();
    let run = |(number, rank): (usize, LocalRank)| {
        let all = Ranks::new(Arc::new(rank));
        let [model, replicas] =
            [layout.replica_group(number).collect(), layout.dp_group(number)].map(|of| all.among(of));
        let outcome = work(&Golden::on_ranks(family, backend(), model, layout), &replicas);
        // A rank that ends while others wait for their devices is one that they miss.
        all.all_of(());
        all.check().unwrap();
        outcome
    };
    thread::scope(|scope| {
        let ranks = local_ranks(layout.world(), LIMIT).into_iter().enumerate();
        let running: Vec<_> = ranks.map(|rank| scope.spawn(move || run(rank))).collect();
        running.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

fn alone<B: Backend>(family: &str, backend: B) -> RankOutcome {
    work(&Golden::open(family, backend), &Ranks::default())
}

pub(super) fn close(tolerance: f64, what: &str, found: &Arrays, expected: &Arrays) {
    let error = relative(found, expected);
    assert!(error < tolerance, "{what} off by {error}");
}

/// The part of one rank's results that a rank of several computes.
fn part(rank: &RankOutcome, of: usize, whole: &Arrays) -> Arrays {
    let pairs = rank.specs[of].iter().zip(whole);
    pairs.map(|(spec, values)| rank.shard.slice(spec, values.into()).into_owned()).collect()
}

fn check<B: Backend>(family: &str, layout: &str, backend: fn() -> B, alone: &RankOutcome) {
    eprintln!("family {family}, {layout}");
    let ranks = on_ranks(family, layout, backend);
    let layout: Parallel = layout.parse().unwrap();
    let (replica, dp, world) = (layout.replica(), layout.dp(), layout.world());
    let (alone, moment_bytes) = (&alone.outcome, alone.moment_bytes);
    for (number, rank) in ranks.iter().enumerate() {
        let name = |what: &str| format!("{family}, rank {number} of {layout}: {what}");
        let own = &rank.outcome;
        for (what, found, expected) in [
            ("log-probabilities", &own.logprobs, &alone.logprobs),
            ("log-probabilities with an adapter", &own.lora_logprobs, &alone.lora_logprobs),
            ("log-probabilities after training", &own.logprobs_after, &alone.logprobs_after),
        ] {
            let worst = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(f64::from(worst) < tolerance(family), "{}: {worst}", name(what));
        }
        for (of, what) in ["the adapter", "all parameters"].into_iter().enumerate() {
            close(
                tolerance(family),
                &name(&format!("gradient of {what}")),
                &own.gradients[of],
                &part(rank, of, &alone.gradients[of]),
            );
            close(
                tolerance(family),
                &name(&format!("{what} after training")),
                &own.trained[of],
                &part(rank, of, &alone.trained[of]),
            );
        }
        // What every rank has, every rank has to the bit.
        assert_eq!(own.logprobs, ranks[0].outcome.logprobs);
        assert_eq!(own.logprobs_after, ranks[0].outcome.logprobs_after);
        assert_eq!(own.routed, alone.routed, "{}", name("tokens of experts"));
        // Replicas have the same parameters to the bit, and rows have the same bits as on one rank.
        assert_eq!(own.trained, ranks[number % replica].outcome.trained);
        if replica == 1 {
            assert_eq!(own.logprobs, alone.logprobs);
            assert!(moment_bytes.abs_diff(dp * rank.moment_bytes) <= world * size_of::<f32>() * own.trained[1].len());
        }
    }
}

#[test]
fn tensor_parallel_ranks_compute_what_one_computes() {
    for family in families().iter().filter(|family| !has_experts(family)) {
        let alone = alone(family, f32_cpu());
        for layout in ["tp=2", "tp=4", "tp=2,dp=2"].into_iter().filter(|layout| is_shared(family, layout)) {
            check(family, layout, f32_cpu, &alone);
        }
    }
}

/// Whether ranks can share a family: recurrences have no heads that several ranks hold, and no rank has all heads to normalise.
pub(super) fn is_shared(family: &str, layout: &str) -> bool {
    let config = crate::load::load(&super::golden::root().join(family)).unwrap().config;
    let is_recurrent = config.recurrences().next().is_some();
    let mut attention = config.blocks.iter().filter_map(|block| block.attention());
    let is_normed = attention.any(|attention| attention.head_norms == HeadNorms::Projections);
    let shared = Shard::of(&config, 0, layout.parse().unwrap());
    assert!(is_recurrent || is_normed || shared.is_ok(), "{family} {layout}");
    shared.is_ok()
}

#[test]
fn ranks_that_share_experts_compute_what_one_computes() {
    let families: Vec<_> = families().into_iter().filter(|family| has_experts(family)).collect();
    let expected = [
        "deepseek_v3",
        "glm4_moe",
        "gpt_oss",
        "granitemoehybrid_moe",
        "kimi_k25",
        "nemotron_h",
        "nemotron_h_latent",
        "qwen3_5_moe",
        "qwen3_moe",
    ];
    assert_eq!(families, expected);
    for family in &families {
        let alone = alone(family, f32_cpu());
        let layouts = ["tp=2", "tp=4", "tp=2,ep=2", "dp=2,ep=2"];
        for layout in layouts.into_iter().filter(|layout| is_shared(family, layout)) {
            check(family, layout, f32_cpu, &alone);
        }
    }
}

/// Experts' outputs are added up in the order in which one rank adds them, so nothing differs.
#[test]
fn expert_parallel_ranks_compute_the_bits_of_one() {
    for family in ["qwen3_moe", "gpt_oss", "deepseek_v3"] {
        for dtype in [Dtype::F32, Dtype::Bf16] {
            let backend = match dtype {
                Dtype::F32 => f32_cpu,
                Dtype::Bf16 => || Cpu::with_isa(2, Isa::detect()).with_dtype(Dtype::Bf16),
            };
            let alone = alone(family, backend()).outcome;
            for layout in ["ep=2", "ep=4"] {
                for rank in on_ranks(family, layout, backend) {
                    let expected = Outcome {
                        gradients: [0, 1].map(|of| part(&rank, of, &alone.gradients[of])),
                        trained: [0, 1].map(|of| part(&rank, of, &alone.trained[of])),
                        ..alone.clone()
                    };
                    assert!(rank.outcome == expected, "{family}, {layout}, {}", dtype.name());
                }
            }
        }
    }
}

#[test]
fn replicas_compute_what_one_computes() {
    for family in &families() {
        let alone = alone(family, f32_cpu());
        for layout in ["dp=2", "dp=4"] {
            check(family, layout, f32_cpu, &alone);
        }
    }
}

/// Latent attention by itself: the first block of the golden model, which has no experts.
#[test]
fn so_do_those_of_latent_attention() {
    let folder = crate::load::tests::first_block("deepseek_v3");
    let family = folder.path().to_str().unwrap();
    let of_cpu = alone(family, f32_cpu());
    for layout in ["tp=2", "tp=4", "tp=2,dp=2"] {
        check(family, layout, f32_cpu, &of_cpu);
    }
    check(family, "tp=2", || Reference, &alone(family, Reference));
}

fn has_experts(family: &str) -> bool {
    crate::load::load(&super::golden::root().join(family)).unwrap().config.has_experts()
}

#[test]
fn so_do_those_of_the_reference_backend() {
    for family in ["gemma3", "qwen2"] {
        let alone = alone(family, Reference);
        for layout in ["tp=4", "dp=2"] {
            check(family, layout, || Reference, &alone);
        }
    }
    for (family, layout) in [("qwen3_moe", "ep=2"), ("gpt_oss", "ep=4"), ("deepseek_v3", "tp=2,ep=2")] {
        check(family, layout, || Reference, &alone(family, Reference));
    }
}

#[test]
fn results_of_a_layout_are_reproducible() {
    let of = |ranks: Vec<RankOutcome>| ranks.into_iter().map(|rank| rank.outcome).collect::<Vec<_>>();
    for (family, layout) in [
        ("qwen3", "tp=2"),
        ("qwen3", "dp=2"),
        ("qwen3", "tp=2,dp=2"),
        ("deepseek_v3", "tp=2,ep=2"),
        ("gpt_oss", "dp=2,ep=2"),
    ] {
        assert!(of(on_ranks(family, layout, f32_cpu)) == of(on_ranks(family, layout, f32_cpu)), "{family}, {layout}");
    }
}

#[test]
fn a_model_that_ranks_cannot_share_is_refused() {
    for (family, layout, expected) in [
        ("llama", "tp=3", "tp=3 does not fit the model: num_key_value_heads is 2, which 3 does not divide"),
        ("llama", "tp=2,ep=2", "ep=2 does not fit the model: it has no experts"),
        ("qwen3_moe", "tp=3", "tp=3 does not fit the model: num_key_value_heads is 2, which 3 does not divide"),
        ("qwen3_moe", "ep=3", "ep=3 does not fit the model: its 3 ranks do not divide the 8 experts of a block"),
        (
            "gpt_oss",
            "tp=2,ep=4",
            "tp=2,ep=4 does not fit the model: its 8 ranks do not divide the 4 experts of a block",
        ),
        ("deepseek_v3", "tp=3", "tp=3 does not fit the model: num_key_value_heads is 4, which 3 does not divide"),
        (
            "granitemoehybrid",
            "tp=2",
            "tp=2 does not fit the model: the number of modules of a recurrence's inputs is 1, which 2 does not divide",
        ),
        ("lfm2", "tp=3", "tp=3 does not fit the model: num_key_value_heads is 2, which 3 does not divide"),
    ] {
        let source = crate::load::load(&super::golden::root().join(family)).unwrap();
        let refusal = Shard::of(&source.config, 0, layout.parse().unwrap()).map(drop).unwrap_err();
        assert_eq!(refusal.to_string(), expected);
    }
}

pub(super) fn f32_cpu() -> Cpu {
    cpu(Isa::detect())
}
