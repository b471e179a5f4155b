//! Ranks that share the vocabulary look up, score, sample and train like one rank, also if its size is not a multiple
//! of their number.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use trainyard_protocol::{Datum, LoraSpec, Tensor, TensorValues};

use crate::backend::cpu::{Cpu, Isa};
use crate::backend::{
    Backend, Dtype, Params, RowScores, SampledToken, SamplingRule, ScoreRequest, Targets, TokenRequest,
};
use crate::collective::{Ranks, local_ranks};
use crate::interrupt::Interrupt;
use crate::load::load;
use crate::load::tests::with_vocabulary;
use crate::loss::{LossFn, PreparedDatum, prepare};
use crate::model::{
    Adapter, GradientSum, LastRows, LogitBuffer, Model, ParamSpec, ParamTable, PassMemory, RowGroup, Saved, Shard,
    TrainGroup, Weights, target_logprobs, train_pass,
};
use crate::parallel::Parallel;
use crate::rng::kaiming_uniform_fill;

const SPEC: LoraSpec = LoraSpec::on_all(3, 1);
const LIMIT: Duration = Duration::from_secs(60);
/// Targets of a position.
const TARGETS: usize = 3;

type Arrays = Vec<Vec<f32>>;

fn datum(length: usize, seed: i64, vocab: i64) -> PreparedDatum {
    let token = |t: i64| (t * 37 + seed * 11 + t * t) % vocab;
    let tokens: Vec<i64> = (0..length as i64).map(token).collect();
    let targets: Vec<i64> = (0..(length * TARGETS) as i64).map(|t| token(3 * t + 1)).collect();
    let shape = vec![length, TARGETS];
    let weights = (0..length * TARGETS).map(|i| 0.1 * (i % 7) as f32).collect();
    let inputs = [
        ("target_tokens".to_owned(), Tensor { shape: shape.clone(), values: TensorValues::I64(targets) }),
        ("weights".to_owned(), Tensor { shape, values: TensorValues::F32(weights) }),
        ("entropy_weights".to_owned(), Tensor::f32((0..length).map(|i| 0.2 * (i % 3) as f32).collect())),
        ("kl_weights".to_owned(), Tensor::f32((0..length).map(|i| 0.3 * (i % 2) as f32).collect())),
    ];
    let loss = LossFn::parse("cross_entropy", &BTreeMap::new()).unwrap();
    prepare(&loss, 0, &Datum { tokens, loss_fn_inputs: BTreeMap::from(inputs), images: Vec::new() }, vocab as usize)
        .unwrap()
}

/// A rank's part of a model, with an adapter on every module.
struct Rank {
    backend: Cpu,
    model: Arc<Model<Cpu>>,
    weights: Weights<Cpu>,
    masters: Arrays,
    adapter: Arrays,
}

/// Results of a rank.
struct Outcome {
    shard: Shard,
    specs: [Vec<ParamSpec>; 2],
    embeddings: Vec<f32>,
    logprobs: Vec<f32>,
    /// Gradients of the adapter, then of all parameters.
    gradients: [Arrays; 2],
    scores: Scores,
    /// Bytes of packed weights, of the adapter, and of a training pass.
    bytes: [usize; 3],
}

/// Scores of the same rows by different calls.
#[derive(Clone, Debug, PartialEq)]
struct Scores {
    /// Log-probabilities of two targets of each row, as a prompt's are computed.
    targets: Vec<f32>,
    /// Scores of the same targets with the most likely tokens, and with alternatives.
    scores: [Vec<RowScores>; 2],
    greedy: Vec<SampledToken>,
    sampled: Vec<SampledToken>,
}

impl Rank {
    fn new(folder: &Path, backend: Cpu, ranks: Ranks, layout: Parallel) -> Self {
        let source = load(folder).unwrap();
        let model = Arc::new(Model::new(&backend, &source.config, ranks, layout).unwrap());
        let mut masters: Arrays =
            model.table.specs.iter().map(|spec| model.shard.read(spec, &*source.tensors).unwrap()).collect();
        // A zero keeps its sign; token 0 is on rank 0, the last one on another.
        if model.config.held_tokens().contains(&0) {
            masters[model.table.embed][0] = -0.0;
        }
        let last = model.config.vocab_size - 1;
        if model.config.held_tokens().contains(&last) {
            let row = last - model.config.held_tokens().start;
            masters[model.table.embed][row * model.config.hidden_size] = -0.0;
        }
        let weights = Weights::load(&backend, &model, &mut |i| Ok(Cow::Borrowed(&masters[i][..]))).unwrap();
        let whole = ParamTable::of_adapter(&model.whole.config, &SPEC);
        let own = ParamTable::of_adapter(&model.config, &SPEC);
        let random = |(i, (own, whole)): (u64, (&ParamSpec, &ParamSpec))| {
            let mut values = vec![0.0; whole.len()];
            kaiming_uniform_fill(9, i, &mut values, 0.03);
            model.shard.slice(own, Cow::Owned(values)).into_owned()
        };
        let adapter = (0..).zip(own.iter().zip(&whole)).map(random).collect();
        Self { backend, model, weights, masters, adapter }
    }

    fn packed(&self) -> Arc<Adapter<Cpu>> {
        let params = self.backend.upload_params(self.adapter.clone());
        Arc::new(Adapter::from_params(&self.backend, &self.model.config, &SPEC, &params))
    }

    /// Log-probabilities, entropies and divergences, and the gradient of the adapter, or of all parameters.
    fn train(&self, lora: bool) -> (Vec<f32>, Arrays) {
        let vocab = self.model.config.vocab_size as i64;
        let data = [datum(20, 1, vocab), datum(7, 2, vocab)];
        let lens: Vec<usize> = if lora { &self.adapter } else { &self.masters }.iter().map(Vec::len).collect();
        let mut sum = GradientSum::new(self.backend.begin_gradient(&lens, None));
        let loss = LossFn::parse("cross_entropy", &BTreeMap::new()).unwrap();
        let (adapter, data) = (lora.then(|| self.packed()), data.iter().collect());
        let group = TrainGroup {
            adapter,
            scalar_head: None,
            loss,
            data,
            images: Vec::new(),
            evaluated: Vec::new(),
            interrupt: Interrupt::default(),
            grads: Some(&mut sum),
        };
        let saved = Saved::with_all_inputs(self.model.config.num_layers());
        let outputs = train_pass(&self.backend, &self.weights, &mut [group], !lora, saved).remove(0).unwrap();
        let gradient = sum.finish(&self.backend, &self.model, lora.then_some(&SPEC));
        let gradient = (0..gradient.len()).map(|i| gradient.host(i).into_owned()).collect();
        let values = outputs
            .into_iter()
            .flat_map(|output| [output.logprobs, output.entropies.unwrap(), output.kl.unwrap()].concat());
        (values.collect(), gradient)
    }

    /// Scores and samples of a few rows, half of them with the adapter.
    fn scores(&self) -> Scores {
        let (backend, weights, c) = (&self.backend, &self.weights, &self.model.config);
        const ROWS: usize = 9;
        let mut values = vec![0.0; ROWS * c.hidden_size];
        kaiming_uniform_fill(5, 0, &mut values, 1.0);
        let mut x = backend.alloc(ROWS, c.hidden_size);
        x.copy_from_slice(&values);
        let groups = [
            RowGroup { rows: 0..ROWS / 2, adapter: None },
            RowGroup { rows: ROWS / 2..ROWS, adapter: Some(self.packed()) },
        ];
        let ids = |row: usize| [row * 53 % c.vocab_size, c.vocab_size - 1 - row].map(|id| id as u32);
        let mut targets = Targets::empty();
        (0..ROWS).for_each(|row| targets.push(ids(row)));
        let last = LastRows { weights, x: &x, groups: &groups };
        let mut logits = LogitBuffer::new(16);
        let score = |alternatives: Option<(f32, Vec<f64>)>| {
            let of = |row| ScoreRequest { row, targets: ids(row).into(), topk: 12, alternatives: alternatives.clone() };
            (0..ROWS).map(of).collect::<Vec<_>>()
        };
        let rule =
            |temperature, u| SamplingRule { temperature, min_p: 0.0, top_k: Some(40), top_p: 0.95, u, changes: None };
        let sample = |temperature, u| {
            (0..ROWS).map(|row| TokenRequest { row, rule: rule(temperature, u), report: 3 }).collect::<Vec<_>>()
        };
        Scores {
            targets: target_logprobs(backend, weights, &x, &groups, &targets),
            scores: [None, Some((0.7, vec![0.25, 0.75]))].map(|of| logits.score(backend, last, &score(of))),
            greedy: logits.sample(backend, last, &sample(0.0, 0.0)),
            sampled: logits.sample(backend, last, &sample(1.0, 0.5)),
        }
    }

    fn outcome(&self) -> Outcome {
        let vocab = self.model.config.vocab_size as u32;
        let tokens: Vec<u32> = (0..40).map(|t| (t * 31) % vocab).chain([0, vocab - 1]).collect();
        let embeddings = self.weights.embed(&self.backend, &tokens).to_vec();
        let (logprobs, of_adapter) = self.train(true);
        let (_, of_all) = self.train(false);
        let scores = self.scores();
        self.model.ranks.check().unwrap();
        let specs = [Some(&SPEC), None].map(|lora| self.model.table.trained(&self.model.config, lora));
        let gradients = [of_adapter, of_all];
        let pass = PassMemory::of(&self.model, std::iter::once(&SPEC)).bytes(100, Saved::with_all_inputs(1));
        let bytes = [self.weights.bytes(&self.backend), self.packed().bytes(&self.backend), pass];
        Outcome { shard: self.model.shard, specs, embeddings, logprobs, gradients, scores, bytes }
    }
}

fn on_ranks(folder: &Path, layout: &str, dtype: Dtype) -> Vec<Outcome> {
    let layout: Parallel = layout.parse().unwrap();
    let run = |rank| {
        let backend = Cpu::with_isa(1, Isa::detect()).with_dtype(dtype);
        Rank::new(folder, backend, Ranks::new(Arc::new(rank)), layout).outcome()
    };
    thread::scope(|scope| {
        let ranks = local_ranks(layout.world(), LIMIT).into_iter();
        let running: Vec<_> = ranks.map(|rank| scope.spawn(move || run(rank))).collect();
        running.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

fn relative(found: &Arrays, expected: &Arrays) -> f64 {
    let (mut d, mut n) = (0.0, 0.0);
    for (a, b) in found.iter().flatten().zip(expected.iter().flatten()) {
        d += f64::from(a - b).powi(2);
        n += f64::from(*b).powi(2);
    }
    (d / n.max(f64::MIN_POSITIVE)).sqrt()
}

fn close(what: &str, found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let worst = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    let most = expected.iter().fold(1f32, |most, value| most.max(value.abs()));
    assert!(worst < 1e-5 * most, "{what}: off by {worst}");
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Checks that values computed in different ways are equal.
fn assert_consistent(scores: &Scores, what: &str) {
    let [plain, with_alternatives] = &scores.scores;
    let targets: Vec<f32> = plain.iter().flat_map(|row| row.targets.clone()).collect();
    assert_eq!(bits(&targets), bits(&scores.targets), "{what}: of prompts and of rows with candidates");
    for (row, (plain, other)) in plain.iter().zip(with_alternatives).enumerate() {
        let other = RowScores { alternatives: Vec::new(), ..other.clone() };
        assert_eq!(*plain, other, "{what}, row {row}: of parts and of all logits");
        let (greedy, sampled) = (&scores.greedy[row], &scores.sampled[row]);
        assert_eq!((greedy.token, greedy.logprob), plain.topk[0], "{what}, row {row}");
        assert_eq!(greedy.topk, plain.topk[..3]);
        assert_eq!(sampled.topk, plain.topk[..3]);
    }
}

fn check(folder: &Path, layouts: &[&str]) {
    let alone = on_ranks(folder, "tp=1", Dtype::F32).remove(0);
    assert_consistent(&alone.scores, "one rank");
    for layout in layouts {
        let ranks = on_ranks(folder, layout, Dtype::F32);
        for (number, rank) in ranks.iter().enumerate() {
            let what = format!("{}, rank {number} of {layout}", folder.display());
            assert_eq!(bits(&rank.embeddings), bits(&alone.embeddings), "{what}");
            // All ranks decide alike what fits.
            assert_eq!(rank.bytes, ranks[0].bytes, "{what}");
            close(&what, &rank.logprobs, &alone.logprobs);
            for of in [0, 1] {
                let part = |(spec, values): (&ParamSpec, &Vec<f32>)| {
                    rank.shard.slice(spec, Cow::Borrowed(values)).into_owned()
                };
                let expected: Arrays = rank.specs[of].iter().zip(&alone.gradients[of]).map(part).collect();
                for ((spec, found), expected) in rank.specs[of].iter().zip(&rank.gradients[of]).zip(&expected) {
                    assert_eq!(found.len(), expected.len(), "{what}, {}", spec.name);
                }
                let error = relative(&rank.gradients[of], &expected);
                assert!(error < 1e-5, "{what}: gradients {of} off by {error}");
                // The same for ranks that share only in this way.
                for (spec, (found, expected)) in
                    rank.specs[of].iter().zip(rank.gradients[of].iter().zip(&expected)).filter(|(spec, _)| {
                        ["lm_head", "model.embed_tokens"].iter().any(|name| spec.name.starts_with(name))
                    })
                {
                    let error = relative(&vec![found.clone()], &vec![expected.clone()]);
                    assert!(error < 1e-4, "{what}: gradient of {} off by {error}", spec.name);
                }
            }
            let (found, expected) = (&rank.scores, &alone.scores);
            assert_consistent(found, &what);
            close(&what, &found.targets, &expected.targets);
            let tokens = |sampled: &[SampledToken]| sampled.iter().map(|sampled| sampled.token).collect::<Vec<_>>();
            assert_eq!(tokens(&found.greedy), tokens(&expected.greedy), "{what}");
            assert_eq!(tokens(&found.sampled), tokens(&expected.sampled), "{what}");
            assert!(found == &ranks[0].scores && bits(&rank.logprobs) == bits(&ranks[0].logprobs), "{what}");
        }
    }
}

fn golden(family: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden").join(family)
}

#[test]
fn ranks_that_share_the_vocabulary_compute_what_one_computes() {
    for family in ["llama", "gemma3", "qwen3"] {
        check(&golden(family), &["tp=2", "tp=4"]);
    }
    check(&golden("qwen3_moe"), &["tp=2,ep=2"]);
}

/// The last of four ranks holds none of 129 tokens, and the one before it holds one.
#[test]
fn so_do_ranks_whose_parts_are_not_full() {
    for (family, vocab) in [("llama", 509), ("llama_tied", 509), ("llama", 129), ("gemma3", 129), ("qwen2", 21)] {
        check(with_vocabulary(family, vocab).path(), &["tp=2", "tp=4"]);
    }
}

/// Rounding to bf16 is of what each rank has, so that sums differ, but what ranks compute in several ways is the same still.
#[test]
fn scores_and_samples_agree_to_the_bit_in_bf16() {
    for rank in on_ranks(with_vocabulary("llama_tied", 509).path(), "tp=2", Dtype::Bf16) {
        assert_consistent(&rank.scores, "bf16");
    }
}

#[test]
fn ranks_read_the_rows_of_their_tokens() {
    let folder = with_vocabulary("llama", 129);
    let source = load(folder.path()).unwrap();
    let all = source.tensors.read("lm_head.weight").unwrap();
    let hidden = source.config.hidden_size;
    for (rank, held) in [0..64, 64..128, 128..129, 129..129].into_iter().enumerate() {
        let (shard, own) = Shard::of(&source.config, rank, "tp=4".parse().unwrap()).unwrap();
        let table = ParamTable::new(&own);
        let part = shard.read(&table.specs[table.head], &*source.tensors).unwrap();
        assert_eq!((own.held_tokens(), part.len()), (held.clone(), 64 * hidden));
        let (tokens, rest) = part.split_at(held.len() * hidden);
        assert_eq!(tokens, &all[held.start * hidden..held.end * hidden]);
        assert!(rest.iter().all(|value| *value == 0.0));
    }
}
