//! Every family with all its parameters divided among replicas (ZeRO stage 3), against the same computation on one rank and on
//! replicas that have all parameters each.

use std::sync::Arc;
use std::thread;

use trainyard_protocol::{AdamParams, LoraSpec};

use super::golden::{Arrays, Golden, Trained, adam, arrays};
use super::sharded::{EPS, LIMIT, close, f32_cpu, is_shared, tolerance};
use crate::backend::reference::Reference;
use crate::backend::{AdamWStep, Backend, Params};
use crate::collective::{CollectiveKind, LocalRank, Ranks, local_ranks};
use crate::interrupt::Interrupt;
use crate::load::tests::families;
use crate::loss::PreparedDatum;
use crate::model::zero::replicas::{divide, gather_into, part_lens, part_of};
use crate::model::{
    EarlyEnd, GatheredPass, GradientSum, ParamSpec, Saved, Shard, TrainGroup, TrainOutput, TrainWeights, Units,
    gathered_weights, train_pass,
};
use crate::parallel::Parallel;

/// All parameters, which are trained.
const ALL: Option<&LoraSpec> = None;

/// Results of a rank for a run that trains all parameters.
#[derive(Clone, Debug, PartialEq)]
struct Outcome {
    logprobs: Vec<f32>,
    /// The whole gradient of the first step, and parameters after three: of this rank's part of the model.
    gradient: Arrays,
    trained: Arrays,
    logprobs_after: Vec<f32>,
}

struct RankOutcome {
    outcome: Outcome,
    shard: Shard,
    specs: Vec<ParamSpec>,
}

/// A run with parameters that are all on every replica, or divided.
trait Run<B: Backend> {
    fn pass(&self, g: &Golden<B>, trains: bool) -> (Vec<TrainOutput>, Option<Arrays>);
    fn step(&mut self, g: &Golden<B>, grads: Arrays, hyper: &AdamParams);
    fn parameters(&self, g: &Golden<B>) -> Arrays;
}

/// Training on one rank, or on replicas with all parameters.
struct Whole<B: Backend> {
    trained: Trained<B>,
    replicas: Ranks,
}

impl<B: Backend> Run<B> for Whole<B> {
    fn pass(&self, g: &Golden<B>, trains: bool) -> (Vec<TrainOutput>, Option<Arrays>) {
        let weights = super::golden::build(&g.backend, &g.model, &arrays(&self.trained.params));
        g.run_on(&self.replicas, &weights, None, ("cross_entropy", trains))
    }

    fn step(&mut self, g: &Golden<B>, grads: Arrays, hyper: &AdamParams) {
        self.trained.step(&g.backend, grads, hyper);
    }

    fn parameters(&self, _: &Golden<B>) -> Arrays {
        arrays(&self.trained.params)
    }
}

/// Training on replicas that divide parameters.
struct Divided<B: Backend> {
    masters: Arc<B::Params>,
    moments: [B::Params; 2],
    replicas: Ranks,
    steps: u64,
}

impl<B: Backend> Divided<B> {
    fn new(g: &Golden<B>, replicas: &Ranks) -> Self {
        let masters = part_of(&g.backend, replicas, &g.backend.upload_params(g.masters.clone()));
        let moments = [0, 1].map(|_| g.backend.zero_params(&masters.lens()));
        Self { masters: Arc::new(masters), moments, replicas: replicas.clone(), steps: 0 }
    }
}

impl<B: Backend> Run<B> for Divided<B> {
    fn pass(&self, g: &Golden<B>, trains: bool) -> (Vec<TrainOutput>, Option<Arrays>) {
        let (loss, data) = g.loss("cross_entropy");
        let replicas = &self.replicas;
        let divided = divide(data.iter().map(|datum| datum.tokens.len()), replicas.world());
        let own: Vec<&PreparedDatum> = divided[replicas.rank()].iter().map(|index| &data[*index]).collect();
        let mut sum = trains.then(|| GradientSum::new(g.backend.begin_gradient(&self.masters.lens(), None)));
        let before = replicas.used();
        let mut pass = GatheredPass::new(&g.model, replicas, ALL, &self.masters, trains);
        let mut outputs = Vec::new();
        if !own.is_empty() {
            // The first block is computed again in the backward pass.
            let saved = Saved::with_all_inputs(g.model.config.num_layers() - 1);
            let mut groups = [TrainGroup {
                adapter: None,
                scalar_head: None,
                loss,
                data: own,
                images: Vec::new(),
                evaluated: Vec::new(),
                interrupt: Interrupt::default(),
                grads: sum.as_mut(),
            }];
            let weights = TrainWeights { weights: (&mut pass).into(), base: &g.weights };
            outputs = train_pass(&g.backend, weights, &mut groups, true, saved).remove(0).unwrap();
        }
        pass.finish(sum.as_mut(), &EarlyEnd::default());
        if trains && g.model.ranks.is_single() && replicas.rank() == 0 {
            let sent = replicas.used().since(&before);
            let trained = g.model.table.trained(&g.model.config, ALL);
            for traffic in Units::of(&g.model.table, &trained).traffic(replicas.world()) {
                assert_eq!(sent.sent(traffic.kind), 4 * traffic.elements as u64, "{:?}", traffic.kind);
                // Parts differ by an element.
                let slack = (trained.len() * replicas.world() * 3) as f64;
                assert!((traffic.elements as f64 - traffic.least).abs() <= slack, "{traffic:?}");
            }
            assert_eq!(sent.sent(CollectiveKind::AllReduce), 0);
        }
        let gradient = sum.map(|sum| arrays(&sum.finish(&g.backend, &g.model, ALL)));
        let computed = replicas.all_of(outputs).into_iter().flatten();
        let mut outputs: Vec<_> = divided.into_iter().flatten().zip(computed).collect();
        outputs.sort_by_key(|(index, _)| *index);
        (outputs.into_iter().map(|(_, output)| output).collect(), gradient)
    }

    fn step(&mut self, g: &Golden<B>, grads: Arrays, hyper: &AdamParams) {
        self.steps += 1;
        let grads = g.backend.upload_params(grads);
        let [m, v] = &mut self.moments;
        let (params, step) = (Arc::get_mut(&mut self.masters).unwrap(), self.steps);
        let step = AdamWStep { params, grads: &grads, moments: [m, v], hyper, step, grad_scale: 1.0 };
        assert!(g.backend.adamw(vec![step]).iter().all(Result::is_ok));
    }

    fn parameters(&self, g: &Golden<B>) -> Arrays {
        let held: usize = self.masters.lens().iter().sum();
        let most = g.masters.iter().map(|whole| whole.len().div_ceil(self.replicas.world())).sum();
        assert!(held <= most, "a replica has only its parts");
        // A sampler's weights are the parameters themselves in f32.
        gathered_weights(&g.backend, &g.model, &self.replicas, &*self.masters)
            .unwrap()
            .to_host(&g.backend, &g.backend.fence())
    }
}

fn train<B: Backend>(g: &Golden<B>, replicas: &Ranks, mut run: impl Run<B>) -> RankOutcome {
    let logprobs = |outputs: Vec<TrainOutput>| outputs.into_iter().flat_map(|o| o.logprobs).collect::<Vec<_>>();
    let before = logprobs(run.pass(g, false).0);
    let hyper = adam(&g.json["full_finetune"]["adamw"]);
    let hyper = AdamParams { eps: if g.model.config.has_experts() { EPS } else { hyper.eps }, ..hyper };
    let mut first = None;
    for _ in 0..3 {
        let (outputs, grads) = run.pass(g, true);
        let grads = grads.unwrap();
        if first.is_none() {
            assert_eq!(logprobs(outputs), before);
            let mut whole = g.backend.upload_params(g.masters.clone());
            assert_eq!(
                grads.iter().map(Vec::len).collect::<Vec<_>>(),
                part_lens(&g.masters.iter().map(Vec::len).collect::<Vec<_>>(), replicas)
            );
            gather_into(replicas, &g.backend.upload_params(grads.clone()), &mut whole);
            first = Some(arrays(&whole));
        }
        run.step(g, grads, &hyper);
    }
    let logprobs_after = logprobs(run.pass(g, false).0);
    let trained = run.parameters(g);
    g.model.ranks.check().unwrap();
    let outcome = Outcome { logprobs: before, gradient: first.unwrap(), trained, logprobs_after };
    RankOutcome { outcome, shard: g.model.shard, specs: g.model.table.specs.clone() }
}

/// Results of each rank of a layout; the ranks are threads.
fn on_ranks<B: Backend>(family: &str, layout: &str, backend: fn() -> B) -> Vec<RankOutcome> {
    let layout: Parallel = layout.parse().unwrap();
    let run = |(number, rank): (usize, LocalRank)| {
        let all = Ranks::new(Arc::new(rank));
        let [model, replicas] =
            [layout.replica_group(number).collect(), layout.dp_group(number)].map(|of| all.among(of));
        let g = Golden::on_ranks(family, backend(), model, layout);
        let outcome = match layout.divides_parameters() {
            true => train(&g, &replicas, Divided::new(&g, &replicas)),
            false => {
                let trained = Trained::on(&replicas, &g.backend, &g.masters);
                train(&g, &replicas, Whole { trained, replicas: replicas.clone() })
            }
        };
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

/// Compares a layout with one rank, and where replicas have one rank each with the same replicas without division: then the order
/// of sums is the same, and so are the bits.
fn check<B: Backend>(family: &str, layout: &str, backend: fn() -> B, alone: &Outcome) {
    eprintln!("family {family}, {layout}");
    let ranks = on_ranks(family, layout, backend);
    for (number, rank) in ranks.iter().enumerate() {
        let own = &rank.outcome;
        let part = |whole: &Arrays| -> Arrays {
            let pairs = rank.specs.iter().zip(whole);
            pairs.map(|(spec, values)| rank.shard.slice(spec, values.into()).into_owned()).collect()
        };
        let name = |what: &str| format!("{family}, rank {number} of {layout}: {what}");
        for (what, found, expected) in [
            ("log-probabilities", &own.logprobs, &alone.logprobs),
            ("log-probabilities after training", &own.logprobs_after, &alone.logprobs_after),
        ] {
            let worst = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(f64::from(worst) < tolerance(family), "{}: {worst}", name(what));
        }
        close(tolerance(family), &name("gradient"), &own.gradient, &part(&alone.gradient));
        close(tolerance(family), &name("parameters after training"), &own.trained, &part(&alone.trained));
    }
    if let Some(undivided) = layout.strip_suffix(",zero=3").filter(|layout| layout.starts_with("dp")) {
        for (divided, whole) in ranks.iter().zip(on_ranks(family, undivided, backend)) {
            assert!(divided.outcome == whole.outcome, "{family}: {layout} and {undivided} differ");
        }
    }
}

#[test]
fn replicas_that_divide_parameters_compute_what_one_rank_computes() {
    for family in &families() {
        let alone = on_ranks(family, "dp=1", f32_cpu).remove(0).outcome;
        let layouts: &[&str] =
            match crate::load::load(&super::golden::root().join(family)).unwrap().config.has_experts() {
                true => &["dp=2,zero=3", "dp=4,zero=3", "tp=2,dp=2,zero=3", "dp=2,ep=2,zero=3"],
                false => &["dp=2,zero=3", "dp=4,zero=3", "tp=2,dp=2,zero=3"],
            };
        for layout in layouts.iter().filter(|layout| is_shared(family, layout)) {
            check(family, layout, f32_cpu, &alone);
        }
    }
}

#[test]
fn so_do_those_of_the_reference_backend() {
    for family in ["gemma3", "llama_tied"] {
        let alone = on_ranks(family, "dp=1", || Reference).remove(0).outcome;
        check(family, "dp=2,zero=3", || Reference, &alone);
    }
}

#[test]
fn results_are_reproducible() {
    for layout in ["dp=2,zero=3", "tp=2,dp=2,zero=3"] {
        let [first, second] = [0, 1].map(|_| on_ranks("qwen3", layout, f32_cpu));
        assert!(first.iter().zip(&second).all(|(a, b)| a.outcome == b.outcome), "{layout}");
    }
}
