//! Every family, shared by tensor parallel ranks, against the same computation on one.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::golden::{Arrays, Golden, Trained, adam, arrays, build, cpu, relative};
use crate::backend::Backend;
use crate::backend::cpu::{Cpu, Isa};
use crate::backend::reference::Reference;
use crate::collective::{LocalRank, Ranks, local_ranks};
use crate::load::tests::families;
use crate::model::{ParamSpec, Shard};

const LIMIT: Duration = Duration::from_secs(100);
/// Of results in f32 that differ in the order of sums alone.
const TOLERANCE: f64 = 1e-5;

/// What a rank computes.
#[derive(Clone, Debug, PartialEq)]
struct Outcome {
    logprobs: Vec<f32>,
    lora_logprobs: Vec<f32>,
    /// Of the adapter, then of all parameters.
    gradients: [Arrays; 2],
    /// After three optimizer steps.
    trained: [Arrays; 2],
    logprobs_after: Vec<f32>,
}

/// An [`Outcome`] with what is needed to compare it.
struct RankOutcome {
    outcome: Outcome,
    shard: Shard,
    specs: [Vec<ParamSpec>; 2],
}

fn work<B: Backend>(g: &Golden<B>) -> RankOutcome {
    let lora_spec = g.lora.clone();
    let loss = "cross_entropy";
    let logprobs = |outputs: Vec<crate::model::TrainOutput>| outputs.into_iter().flat_map(|o| o.logprobs).collect();
    let lora = g.adapter_params("lora_init.safetensors");
    let (base, gradient) = g.run(&g.weights, None, loss, true);
    let (adapted, lora_gradient) = g.run(&g.weights, Some(&lora), loss, true);
    let mut adapter = Trained::new(&g.backend, &lora);
    let mut full = Trained::new(&g.backend, &g.masters);
    let mut weights = build(&g.backend, &g.model, &g.masters);
    for _ in 0..3 {
        let (_, grads) = g.run(&g.weights, Some(&arrays(&adapter.params)), loss, true);
        adapter.step(&g.backend, grads.unwrap(), &adam(&g.json["adamw"]));
        let (_, grads) = g.run(&weights, None, loss, true);
        full.step(&g.backend, grads.unwrap(), &adam(&g.json["full_finetune"]["adamw"]));
        weights.update(&g.backend, &full.params);
    }
    g.model.ranks.check().unwrap();
    let outcome = Outcome {
        logprobs: logprobs(base),
        lora_logprobs: logprobs(adapted),
        gradients: [lora_gradient.unwrap(), gradient.unwrap()],
        trained: [arrays(&adapter.params), arrays(&full.params)],
        logprobs_after: logprobs(g.run(&weights, None, loss, false).0),
    };
    let specs = [Some(&lora_spec), None].map(|lora| g.model.table.trained(&g.model.config, lora));
    RankOutcome { outcome, shard: g.model.shard, specs }
}

/// What each of `world` ranks computes, which are threads.
fn on_ranks<B: Backend>(family: &str, world: usize, backend: fn() -> B) -> Vec<RankOutcome> {
    let run = |rank: LocalRank| work(&Golden::on_ranks(family, backend(), Ranks::new(Arc::new(rank))));
    thread::scope(|scope| {
        let running: Vec<_> =
            local_ranks(world, LIMIT).into_iter().map(|rank| scope.spawn(move || run(rank))).collect();
        running.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

fn close(what: &str, found: &Arrays, expected: &Arrays) {
    let error = relative(found, expected);
    assert!(error < TOLERANCE, "{what} off by {error}");
}

/// A rank's part of what one rank computes alone.
fn part(rank: &RankOutcome, of: usize, whole: &Arrays) -> Arrays {
    let pairs = rank.specs[of].iter().zip(whole);
    pairs.map(|(spec, values)| rank.shard.slice(spec, values.into()).into_owned()).collect()
}

fn check<B: Backend>(family: &str, world: usize, backend: fn() -> B, alone: &Outcome) {
    let ranks = on_ranks(family, world, backend);
    for (number, rank) in ranks.iter().enumerate() {
        let name = |what: &str| format!("{family}, rank {number} of {world}: {what}");
        let own = &rank.outcome;
        for (what, found, expected) in [
            ("log-probabilities", &own.logprobs, &alone.logprobs),
            ("log-probabilities with an adapter", &own.lora_logprobs, &alone.lora_logprobs),
            ("log-probabilities after training", &own.logprobs_after, &alone.logprobs_after),
        ] {
            let worst = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(f64::from(worst) < TOLERANCE, "{}: {worst}", name(what));
        }
        for (of, what) in ["the adapter", "all parameters"].into_iter().enumerate() {
            close(&name(&format!("gradient of {what}")), &own.gradients[of], &part(rank, of, &alone.gradients[of]));
            close(&name(&format!("{what} after training")), &own.trained[of], &part(rank, of, &alone.trained[of]));
        }
        // What every rank has, every rank has to the bit.
        assert_eq!(own.logprobs, ranks[0].outcome.logprobs);
        assert_eq!(own.logprobs_after, ranks[0].outcome.logprobs_after);
    }
}

#[test]
fn tensor_parallel_ranks_compute_what_one_computes() {
    for family in families().iter().filter(|family| !has_experts(family)) {
        let alone = work(&Golden::open(family, f32_cpu())).outcome;
        for world in [2, 4] {
            eprintln!("family {family}, {world} ranks");
            check(family, world, f32_cpu, &alone);
        }
    }
}

/// Latent attention alone: the first block of the golden model, which has no experts.
#[test]
fn so_do_those_of_latent_attention() {
    let folder = crate::load::tests::first_block("deepseek_v3");
    let family = folder.path().to_str().unwrap();
    let alone = work(&Golden::open(family, f32_cpu())).outcome;
    for world in [2, 4] {
        check(family, world, f32_cpu, &alone);
    }
    check(family, 2, || Reference, &work(&Golden::open(family, Reference)).outcome);
}

/// Models with experts run on one rank.
fn has_experts(family: &str) -> bool {
    crate::load::load(&super::golden::root().join(family)).unwrap().config.has_experts()
}

#[test]
fn so_do_those_of_the_reference_backend() {
    for family in ["gemma3", "qwen2"] {
        check(family, 4, || Reference, &work(&Golden::open(family, Reference)).outcome);
    }
}

#[test]
fn results_of_a_layout_are_reproducible() {
    let of = |ranks: Vec<RankOutcome>| ranks.into_iter().map(|rank| rank.outcome).collect::<Vec<_>>();
    assert!(of(on_ranks("qwen3", 2, f32_cpu)) == of(on_ranks("qwen3", 2, f32_cpu)));
}

#[test]
fn a_model_that_ranks_cannot_share_is_refused() {
    let refusals = ["llama", "qwen3_moe", "deepseek_v3"].map(|family| {
        let source = crate::load::load(&super::golden::root().join(family)).unwrap();
        Shard::of(&source.config, (0, 3)).map(drop).unwrap_err().to_string()
    });
    let expected = [
        "tp=3 does not fit the model: num_key_value_heads is 2, which 3 does not divide",
        "tp=3 does not fit the model: models with experts run on one rank",
        "tp=3 does not fit the model: models with experts run on one rank",
    ];
    assert_eq!(refusals, expected);
}

fn f32_cpu() -> Cpu {
    cpu(Isa::detect())
}
