//! Images: equal ones have equal bits, alone, together, in the trainer and in the sampler.

use std::sync::Arc;

use trainyard_gpu_runtime::{Dtype, EngineOptions};
use trainyard_images::{Format, Limits, Preprocessor, decode};
use trainyard_protocol::{
    Category, DecodedImages, Engine, ForwardBackward, Image, ImageDigest, ImageSpan, LoraSpec, OpError, Operation,
    RawBatch, RunId, SampleOperation, SampleResult, SamplerSource, SaveExternal, SaveTarget, Vision,
};

use crate::support::{
    Driver, RankDriver, datum, golden, layout_options, lora, loss_result, params, sample, sample_result, tokens,
};

pub(crate) const FAMILIES: [&str; 4] =
    ["vision/qwen3_vl", "vision/qwen3_vl_moe", "vision/qwen3_5_vl", "vision/kimi_k25"];
const IMAGES: [(&str, Format); 3] = [("a.png", Format::Png), ("b.png", Format::Png), ("c.jpg", Format::Jpeg)];
/// Tokens of clients are below the placeholders of these models.
const TEXT: usize = 500;

fn open(family: &str, options: EngineOptions) -> Driver {
    Driver::with_options(&golden(family), EngineOptions { threads: 2, ..options })
}

fn vision<E: Engine>(d: &Driver<E>) -> Vision {
    d.engine.models()[0].vision.clone().unwrap()
}

/// A model input: text, with images in between.
#[derive(Clone, Default)]
struct Input {
    tokens: Vec<i64>,
    images: Vec<ImageSpan>,
    decoded: DecodedImages,
}

impl Input {
    fn text(mut self, count: usize, seed: usize) -> Self {
        self.tokens.extend(tokens(count, TEXT, seed));
        self
    }

    /// Appends an image of a family's folder, by its number.
    fn image(mut self, family: &str, vision: &Vision, number: usize) -> Self {
        let (name, format) = IMAGES[number];
        let data = std::fs::read(golden(family).join(name)).unwrap();
        let pixels = decode(&data, format, &Limits::default()).unwrap();
        let preprocessor = Preprocessor::from_json(&vision.preprocessor).unwrap();
        let patches = preprocessor.patches(&pixels, pixels.size()).unwrap();
        let (start, tokens, digest) = (self.tokens.len(), patches.layout().tokens(), ImageDigest([number as u8; 32]));
        self.tokens.extend(vec![i64::from(vision.image_token); tokens]);
        let image = Image { format, data: data.into(), counted: pixels.size(), digest };
        self.images.push(ImageSpan { start, tokens, image });
        self.decoded.insert(digest, Arc::new(patches));
        self
    }

    fn with_tokens(&self, sampled: &[u32]) -> Self {
        let mut all = self.clone();
        all.tokens.extend(sampled.iter().map(|token| i64::from(*token)));
        all
    }

    /// Positions of images.
    fn is_image(&self, at: usize) -> bool {
        self.images.iter().any(|image| (image.start..image.start + image.tokens).contains(&at))
    }
}

fn prepared<E: Engine>(d: &Driver<E>, inputs: &[Input], forward_only: bool) -> Result<Operation, OpError> {
    let data = inputs.iter().map(|input| {
        let images = input.images.iter().filter(|image| image.start + image.tokens < input.tokens.len()).cloned();
        trainyard_protocol::Datum { images: images.collect(), ..datum(&input.tokens) }
    });
    let batch = RawBatch {
        data: data.collect(),
        loss_fn: "cross_entropy".into(),
        loss_fn_config: Default::default(),
        custom_loss: None,
        decoded: inputs.iter().flat_map(|input| input.decoded.clone()).collect(),
    };
    let batch = d.engine.preparer().prepare("m", batch)?;
    Ok(Operation::ForwardBackward(ForwardBackward { run: RunId::new("run"), batch, forward_only }))
}

/// Bits of the log-probabilities of each input's tokens, in one request.
fn forward<E: Engine>(d: &mut Driver<E>, inputs: &[Input]) -> Vec<Vec<u32>> {
    let operation = prepared(d, inputs, true).unwrap();
    let outputs = loss_result(d.run(operation)).outputs;
    outputs.iter().map(|output| output.logprobs.iter().map(|x| x.to_bits()).collect()).collect()
}

fn request(source: SamplerSource, input: &Input, num_samples: u32, max_tokens: u32, seed: u64) -> SampleOperation {
    let mut request = sample(source, input.tokens.clone(), num_samples, params(max_tokens, 1.0, seed));
    request.sample.images = input.images.clone();
    request.images = input.decoded.clone();
    request
}

fn base() -> SamplerSource {
    SamplerSource::Base { model: "m".into() }
}

fn run<E: Engine>(d: &mut Driver<E>, request: SampleOperation) -> SampleResult {
    sample_result(d.run(Operation::Sample(Box::new(request))))
}

/// A driver with a trained run and a snapshot of it.
fn trained(family: &str, options: EngineOptions) -> Driver {
    let mut d = open(family, options);
    train(&mut d, family, Some(lora(4, 1)));
    d
}

/// Creates and trains a run, and makes a snapshot of it.
pub(crate) fn train<E: Engine>(d: &mut Driver<E>, family: &str, adapter: Option<LoraSpec>) {
    d.create("run", adapter);
    let vision = vision(d);
    for seed in 0..2 {
        let input = |number| Input::default().text(9, seed + number).image(family, &vision, number).text(20, seed + 5);
        let operation = prepared(d, &[input(seed), input(2)], false).unwrap();
        loss_result(d.run(operation));
        d.step("run", 1e-2);
    }
    d.snapshot("run", "snap");
}

/// The report of users: the same datum with an image three times in one call, alone, between others, and in small microbatches.
#[test]
fn equal_images_give_equal_log_probabilities() {
    for family in FAMILIES {
        for dtype in [Dtype::Bf16, Dtype::F32] {
            let options = EngineOptions { dtype, ..EngineOptions::default() };
            let mut d = trained(family, options.clone());
            let vision = vision(&d);
            let image =
                |number, seed| Input::default().text(12, seed).image(family, &vision, number).text(30, seed + 1);
            let two = Input::default().image(family, &vision, 2).text(3, 9).image(family, &vision, 0).text(40, 4);
            let text = Input::default().text(70, 3);
            let own = image(0, 20);
            let alone = forward(&mut d, std::slice::from_ref(&own)).remove(0);
            let (of_two, of_text) =
                (forward(&mut d, std::slice::from_ref(&two)), forward(&mut d, std::slice::from_ref(&text)));
            let together = [own.clone(), image(1, 30), own.clone(), text, two, own.clone()];
            for all in [forward(&mut d, &together), {
                let options = EngineOptions { microbatch_tokens: Some(50), image_cache_bytes: 0, ..options };
                forward(&mut trained(family, options), &together)
            }] {
                for at in [0, 2, 5] {
                    assert_eq!(all[at], alone, "{family}, {dtype:?}, datum {at}");
                }
                assert_eq!((&all[3], &all[4]), (&of_text[0], &of_two[0]), "{family}, {dtype:?}");
            }
        }
    }
}

/// A checkpoint of all parameters is served as a model of its own, with the tower of the base model.
#[test]
fn checkpoints_of_all_parameters_have_the_tower() {
    for family in FAMILIES {
        let options = EngineOptions { dtype: Dtype::F32, ..EngineOptions::default() };
        let mut d = open(family, options.clone());
        d.create("run", None);
        let folder = tempfile::tempdir().unwrap();
        let target = SaveTarget { dir: folder.path().join("saved"), overwrite: false };
        d.run(Operation::SaveExternal(SaveExternal { run: RunId::new("run"), target: target.clone() })).unwrap();
        let input = Input::default().text(5, 1).image(family, &vision(&d), 0).text(9, 2);
        let expected = forward(&mut d, std::slice::from_ref(&input));
        let mut saved = Driver::with_options(&target.dir, EngineOptions { threads: 2, ..options });
        saved.create("run", None);
        assert_eq!(forward(&mut saved, &[input]), expected, "{family}");
    }
}

/// Samples behind images, batched, have the bits that the trainer computes for the same tokens.
#[test]
fn sampler_and_trainer_are_bit_equal_behind_images() {
    for family in FAMILIES {
        let mut d = trained(family, EngineOptions { dtype: Dtype::Bf16, ..EngineOptions::default() });
        parity(&mut d, family);
    }
}

/// Bits of a datum with an image are the same alone, several times in a call, and between others.
pub(crate) fn equal_bits<E: Engine>(d: &mut Driver<E>, family: &str) {
    let vision = vision(d);
    let image = |number, seed| Input::default().text(12, seed).image(family, &vision, number).text(9, seed + 1);
    let own = image(0, 20);
    let alone = forward(d, std::slice::from_ref(&own)).remove(0);
    let all = forward(d, &[own.clone(), image(2, 30), Input::default().text(17, 3), own]);
    assert_eq!((&all[0], &all[3]), (&alone, &alone), "{family}");
}

/// Log-probabilities of a few samples behind images differ by at most `tolerance` from the trainer's.
pub(crate) fn few_samples_agree<E: Engine>(d: &mut Driver<E>, family: &str, tolerance: f32) {
    let vision = vision(d);
    let inputs = [
        Input::default().text(5, 1).image(family, &vision, 0).text(1, 2),
        Input::default().image(family, &vision, 1).image(family, &vision, 1).text(2, 3),
    ];
    samples_agree(d, family, &inputs, [true, false], tolerance);
}

/// Samples from the snapshot `snap` of the run `run`, and computes the same tokens with the trainer.
pub(crate) fn parity<E: Engine>(d: &mut Driver<E>, family: &str) {
    let vision = vision(d);
    let inputs = [
        Input::default().text(5, 1).image(family, &vision, 0).text(1, 2),
        Input::default().image(family, &vision, 1).image(family, &vision, 1).text(2, 3),
        Input::default().text(29, 4).image(family, &vision, 2).text(40, 5).image(family, &vision, 0).text(9, 6),
        Input::default().text(40, 7),
        Input::default().text(5, 1).image(family, &vision, 2).text(30, 2),
    ];
    // Twice: the second time prefixes and embeddings are cached.
    samples_agree(d, family, &inputs, [true, false], 0.0);
}

/// Compares samples with the trainer, once for each of `rounds`, which say whether scores of prompts are wanted.
fn samples_agree<E: Engine>(d: &mut Driver<E>, family: &str, inputs: &[Input], rounds: [bool; 2], tolerance: f32) {
    let near = |a: u32, b: u32| a == b || (f32::from_bits(a) - f32::from_bits(b)).abs() <= tolerance;
    for (round, prompt_logprobs) in rounds.into_iter().enumerate() {
        let start = |(at, input): (usize, &Input)| {
            let source = SamplerSource::Snapshot { key: "snap".into() };
            let mut request = request(source, input, 1 + at as u32 % 2, 6 + at as u32, at as u64);
            // Scores of a prompt are computed and not taken from the cache.
            request.sample.prompt_logprobs = prompt_logprobs;
            Operation::Sample(Box::new(request))
        };
        let ids: Vec<_> = inputs.iter().enumerate().map(start).map(|operation| d.start(operation)).collect();
        for (input, id) in inputs.iter().zip(ids) {
            let result = sample_result(d.take(&id));
            let scores = result.prompt_logprobs.clone().unwrap_or_default();
            for sequence in &result.sequences {
                let all = forward(d, &[input.with_tokens(&sequence.tokens)]).remove(0);
                let sampled: Vec<u32> = sequence.logprobs.iter().map(|x| x.to_bits()).collect();
                let trained = &all[input.tokens.len() - 1..];
                let agree = trained.len() == sampled.len() && trained.iter().zip(&sampled).all(|(a, b)| near(*a, *b));
                assert!(agree, "{family}, round {round}: {trained:?}, {sampled:?}");
                for (at, score) in scores.iter().enumerate().skip(1) {
                    match input.is_image(at) {
                        true => assert!(score.is_nan(), "{family}: position {at} is of an image"),
                        false => assert!(near(all[at - 1], score.to_bits()), "{family}, round {round}, {at}"),
                    }
                }
            }
        }
    }
}

/// Every rank computes the whole tower. A cache without room evicts all embeddings that no request uses, on all ranks at once.
#[test]
fn ranks_compute_of_images_what_one_rank_computes() {
    for (family, layout, full) in [
        ("vision/qwen3_vl", "tp=2", false),
        ("vision/qwen3_vl", "dp=2", false),
        ("vision/qwen3_vl", "dp=2,zero=3", true),
        ("vision/qwen3_vl_moe", "tp=2,ep=2", true),
        ("vision/qwen3_5_vl", "dp=2", false),
        ("vision/kimi_k25", "tp=2,ep=2", false),
        ("vision/kimi_k25", "dp=2", true),
    ] {
        let options = EngineOptions { image_cache_bytes: 0, ..layout_options(layout, Dtype::F32) };
        let mut ranks = RankDriver::on_layout(&golden(family), options);
        let adapter = || (!full).then(|| lora(4, 1));
        train(&mut ranks, family, adapter());
        parity(&mut ranks, family);
        let mut one = open(family, EngineOptions { dtype: Dtype::F32, ..EngineOptions::default() });
        train(&mut one, family, adapter());
        let vision = vision(&one);
        let inputs = [0, 1, 2].map(|at| Input::default().text(12, at).image(family, &vision, at).text(30, at + 1));
        let (of_ranks, of_one) = (forward(&mut ranks, &inputs), forward(&mut one, &inputs));
        for (at, (a, b)) in of_ranks.concat().into_iter().zip(of_one.concat()).enumerate() {
            let (a, b) = (f32::from_bits(a), f32::from_bits(b));
            assert!((a - b).abs() < 1e-4, "{family}, {layout}, {at}: {a} and {b}");
        }
    }
}

#[test]
fn other_images_under_the_same_tokens_are_not_taken_from_the_cache() {
    for family in FAMILIES {
        let mut d = trained(family, EngineOptions::default());
        let vision = vision(&d);
        // Two images of as many tokens, in the first of two full blocks.
        let [one, other] = if family == "vision/kimi_k25" { [1, 2] } else { [0, 1] };
        let input = |number| Input::default().text(9, 1).image(family, &vision, number).text(55, 2);
        assert_eq!(input(one).tokens, input(other).tokens);
        let sampled = |d: &mut Driver, number| {
            let mut request = request(SamplerSource::Snapshot { key: "snap".into() }, &input(number), 1, 5, 3);
            request.sample.prompt_logprobs = false;
            let result = run(d, request);
            (result.prompt_cache_hit_tokens, result.sequences)
        };
        let (first, second) = (sampled(&mut d, one), sampled(&mut d, other));
        assert_eq!((first.0, second.0), (0, 0), "{family}");
        assert_ne!(first.1, second.1);
        assert_eq!(second.1, sampled(&mut trained(family, EngineOptions::default()), other).1);
        for (number, expected) in [(one, first.1), (other, second.1)] {
            let (hits, again) = sampled(&mut d, number);
            assert!(hits >= 64, "{family}: {hits} hits");
            assert_eq!(again, expected, "{family}");
        }
    }
}

#[test]
fn placeholders_are_never_sampled() {
    let family = FAMILIES[2];
    let mut d = open(family, EngineOptions::default());
    let vision = vision(&d);
    let input = Input::default().text(4, 1).image(family, &vision, 0).text(3, 2);
    let mut biased = request(base(), &input, 2, 8, 1);
    biased.sample.params.controls.logit_bias = vision.placeholders.iter().map(|token| (*token, 100.0)).collect();
    let result = run(&mut d, biased);
    let sampled: Vec<u32> = result.sequences.iter().flat_map(|sequence| sequence.tokens.clone()).collect();
    assert_eq!(sampled.len(), 16);
    assert!(sampled.iter().all(|token| !vision.placeholders.contains(token)), "{sampled:?}");
    let plain = run(&mut d, request(base(), &input, 2, 8, 1));
    assert_eq!(result.sequences, plain.sequences, "no other token changes");
}

#[test]
fn images_are_refused_where_a_model_does_not_take_them() {
    let vision = vision(&open(FAMILIES[0], EngineOptions::default()));
    let input = Input::default().text(4, 1).image(FAMILIES[0], &vision, 0).text(3, 2);
    let mut d = open("llama", EngineOptions::default());
    assert_eq!(d.engine.models()[0].vision, None);
    d.create("run", Some(lora(2, 1)));
    let refusals = [
        prepared(&d, std::slice::from_ref(&input), true).unwrap_err(),
        d.run(Operation::Sample(Box::new(request(base(), &input, 1, 1, 1)))).unwrap_err(),
    ];
    for error in refusals {
        assert_eq!(error.category, Category::User);
        assert!(error.message.ends_with("model m does not take images"), "{error}");
    }
}

#[test]
fn placeholders_of_clients_are_refused() {
    let family = FAMILIES[0];
    let mut d = open(family, EngineOptions::default());
    let vision = vision(&d);
    let mut input = Input::default().text(4, 1).image(family, &vision, 0).text(3, 2);
    input.tokens.push(i64::from(vision.placeholders[1]));
    let error = d.run(Operation::Sample(Box::new(request(base(), &input, 1, 1, 1)))).unwrap_err();
    assert!(error.message.starts_with("prompt: token 506 at position 13 stands for an image"), "{error}");
    input.tokens.pop();
    input.decoded.clear();
    let error = d.run(Operation::Sample(Box::new(request(base(), &input, 1, 1, 1)))).unwrap_err();
    assert_eq!(error.category, Category::Server);
}

/// Cancelled requests leave nothing, and those behind them go on.
#[test]
fn requests_that_wait_for_images_can_be_cancelled() {
    let family = FAMILIES[0];
    let mut d = open(family, EngineOptions::default());
    let vision = vision(&d);
    let input = |number| Input::default().text(4, 1).image(family, &vision, number).text(3, 2);
    let start = |d: &mut Driver, number| d.start(Operation::Sample(Box::new(request(base(), &input(number), 1, 4, 1))));
    let (first, second) = (start(&mut d, 0), start(&mut d, 1));
    assert!(!d.engine.is_idle());
    d.engine.cancel(&[first.clone()].into());
    assert_eq!(sample_result(d.take(&second)).sequences[0].tokens.len(), 4);
    assert!(!d.is_done(&first) && d.engine.is_idle());
}
