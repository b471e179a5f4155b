//! Samples of ranks that share the vocabulary: those of one rank, with the log-probabilities that the trainer computes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::path::Path;

use trainyard_protocol::{
    Datum, Engine as _, ForwardBackward, LoraSpec, ModelExtents, ModelHead, OpResult, Optimizer, PromptTargets,
    RawBatch, Sample, SampleOperation, SampleResult, SamplerSource, SamplingControls, SamplingParams, SaveSampler,
    SessionId, Stop, Tensor,
};

use super::*;
use crate::Dtype;
use crate::engine::fault_tests::{id, optim};
use crate::load::load;
use crate::load::tests::with_vocabulary;
use crate::loss::prepare_batch;

const PROMPT: usize = 9;

struct Driver {
    engine: ParallelEngine<HostBackend>,
    vocab: usize,
}

impl Driver {
    /// An engine with a run that has taken a step, and a snapshot of it.
    fn new(folder: &Path, layout: &str, dtype: Dtype) -> Self {
        let parallel: Parallel = layout.parse().unwrap();
        let options = EngineOptions { parallel, dtype, threads: parallel.world(), ..EngineOptions::default() };
        let models = (0..parallel.world()).map(|_| vec![("m".to_owned(), load(folder).unwrap())]).collect();
        let engine = ParallelEngine::new(models, options).unwrap();
        let vocab = engine.models()[0].vocab_size;
        let mut driver = Self { engine, vocab };
        let lora = LoraSpec::on_all(4, 1);
        let spec = RunSpec {
            base_model: "m".into(),
            lora: Some(lora),
            optimizer: Optimizer::AdamW,
            head: ModelHead::Unembedding,
        };
        driver.run(Operation::CreateRun { run: RunId::new("a"), spec });
        let tokens: Vec<i64> = (0..40).map(|t| (t * 7) % driver.vocab as i64).collect();
        driver.train(&tokens[..39], &tokens[1..], false);
        driver.run(optim("a"));
        let (run, snapshot) = (RunId::new("a"), Some("key".to_owned()));
        driver.run(Operation::SaveSampler(SaveSampler { run, snapshot, target: None }));
        driver
    }

    fn run(&mut self, operation: Operation) -> OpResult {
        self.engine.start(id("r"), TenantShare::new("t"), operation);
        let mut done = Vec::new();
        while !self.engine.is_idle() {
            done.extend(self.engine.step());
            assert_eq!(self.engine.failure(), None);
        }
        done.remove(0).result.unwrap()
    }

    /// Log-probabilities of the targets after each token.
    fn train(&mut self, tokens: &[i64], targets: &[i64], forward_only: bool) -> Vec<f32> {
        let inputs = [
            ("target_tokens".to_owned(), Tensor::i64(targets.to_vec())),
            ("weights".to_owned(), Tensor::f32(vec![1.0; targets.len()])),
        ];
        let datum = Datum { tokens: tokens.to_vec(), loss_fn_inputs: BTreeMap::from(inputs), images: Vec::new() };
        let batch = RawBatch {
            data: vec![datum],
            loss_fn: "cross_entropy".into(),
            loss_fn_config: BTreeMap::new(),
            custom_loss: None,
            decoded: Default::default(),
        };
        let batch = prepare_batch(&batch, ModelExtents { vocab_size: self.vocab, context: 512 }).unwrap();
        match self.run(Operation::ForwardBackward(ForwardBackward { run: RunId::new("a"), batch, forward_only })) {
            OpResult::ForwardBackward(result) => result.outputs[0].logprobs.clone(),
            other => panic!("{other:?}"),
        }
    }

    fn sample(&mut self, ask: &Ask) -> SampleResult {
        let prompt: Vec<i64> = (0..PROMPT as i64).map(|t| (t * 5 + 3) % self.vocab as i64).collect();
        let params = SamplingParams {
            max_tokens: Some(20),
            seed: 7,
            stop: Stop::Nothing,
            temperature: ask.temperature,
            top_k: ask.top_k,
            top_p: ask.top_p,
            controls: ask.controls.clone(),
        };
        let cells = 2 * (PROMPT - 1);
        let targets = (0..cells as i64).map(|cell| (cell * 17) % self.vocab as i64).collect();
        let sample = Sample {
            prompt,
            num_samples: 2,
            params,
            prompt_logprobs: true,
            prompt_logprobs_last_n: None,
            topk_prompt_logprobs: ask.prompt_topk,
            topk_sample_logprobs: 3,
            target_prompt_logprobs: Some(PromptTargets { shape: [PROMPT - 1, 2], ids: targets, sparse: None }),
            prompt_alt_tokens_k: ask.alternatives,
            images: Vec::new(),
        };
        let source = SamplerSource::Snapshot { key: "key".into() };
        match self.run(Operation::Sample(Box::new(SampleOperation {
            session: SessionId::new("s"),
            source,
            sample,
            images: Default::default(),
        }))) {
            OpResult::Sample(result) => SampleResult { prompt_cache_hit_tokens: 0, ..result },
            other => panic!("{other:?}"),
        }
    }
}

struct Ask {
    temperature: f32,
    top_k: Option<u32>,
    top_p: f32,
    prompt_topk: u32,
    alternatives: u32,
    controls: SamplingControls,
}

const PLAIN: SamplingControls = SamplingControls {
    min_p: 0.0,
    presence_penalty: 0.0,
    frequency_penalty: 0.0,
    repetition_penalty: 1.0,
    logit_bias: Vec::new(),
    json_schema: None,
    call_marks: None,
};

fn asks() -> Vec<Ask> {
    let greedy =
        Ask { temperature: 0.0, top_k: None, top_p: 1.0, prompt_topk: 0, alternatives: 0, controls: PLAIN.clone() };
    let penalties = SamplingControls {
        presence_penalty: 0.5,
        frequency_penalty: 0.3,
        repetition_penalty: 1.2,
        logit_bias: vec![(3, 0.5), (20, -1.0)],
        ..PLAIN.clone()
    };
    let min_p = SamplingControls { min_p: 0.02, ..PLAIN.clone() };
    vec![
        Ask { prompt_topk: 5, ..greedy_like(&greedy) },
        Ask { temperature: 1.0, ..greedy_like(&greedy) },
        Ask { temperature: 1.0, alternatives: 3, prompt_topk: 5, controls: min_p, ..greedy_like(&greedy) },
        Ask { temperature: 1.0, top_k: Some(12), top_p: 0.9, controls: penalties, ..greedy_like(&greedy) },
        greedy,
    ]
}

fn greedy_like(ask: &Ask) -> Ask {
    Ask { controls: ask.controls.clone(), ..*ask }
}

fn close(found: f32, expected: f32, what: &str) {
    assert!((found - expected).abs() < 1e-3, "{what}: {found}, {expected}");
}

fn check(folder: &Path, layouts: &[&str], dtype: Dtype) {
    let mut one = Driver::new(folder, "tp=1", dtype);
    let expected: Vec<SampleResult> = asks().iter().map(|ask| one.sample(ask)).collect();
    for layout in layouts {
        let mut ranks = Driver::new(folder, layout, dtype);
        let mut prompts = Vec::new();
        for (at, (ask, expected)) in asks().iter().zip(&expected).enumerate() {
            let what = format!("{}, {layout}, request {at}", folder.display());
            let found = ranks.sample(ask);
            // As text: the first token of a prompt has no log-probability, but NaN.
            assert_eq!(format!("{found:?}"), format!("{:?}", ranks.sample(ask)), "{what}: again");
            // In bf16 layouts differ by more than some tokens do.
            if dtype == Dtype::F32 && ask.temperature == 0.0 {
                for (found, expected) in found.sequences.iter().zip(&expected.sequences) {
                    assert_eq!(found.tokens, expected.tokens, "{what}");
                }
            }
            let pairs = found.prompt_logprobs.iter().flatten().zip(expected.prompt_logprobs.iter().flatten()).skip(1);
            pairs.filter(|_| dtype == Dtype::F32).for_each(|(found, expected)| close(*found, *expected, &what));
            // The trainer's, bit for bit.
            for sequence in &found.sequences {
                let prompt = (0..PROMPT as i64).map(|t| (t * 5 + 3) % ranks.vocab as i64);
                let tokens: Vec<i64> = prompt.chain(sequence.tokens.iter().map(|token| i64::from(*token))).collect();
                let trained = ranks.train(&tokens[..tokens.len() - 1], &tokens[1..], true);
                let (of_prompt, of_sequence) = trained.split_at(PROMPT - 1);
                assert_eq!(of_prompt, &found.prompt_logprobs.as_ref().unwrap()[1..], "{what}");
                assert_eq!(of_sequence, sequence.logprobs, "{what}");
            }
            prompts.push((found.prompt_logprobs.unwrap()[1..].to_vec(), found.target_prompt_logprobs.unwrap()));
        }
        // In whichever way they are computed: from parts, from all logits, or by the loss head.
        assert!(prompts.iter().all(|other| *other == prompts[0]), "{layout}");
    }
}

#[test]
fn ranks_sample_what_one_samples_with_the_log_probabilities_of_training() {
    let golden = |family: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden").join(family);
    for family in ["llama", "gemma3"] {
        check(&golden(family), &["tp=2", "tp=4", "tp=2,dp=2"], Dtype::F32);
    }
    check(&golden("qwen3_moe"), &["tp=2,ep=2"], Dtype::F32);
    check(with_vocabulary("llama_tied", 467).path(), &["tp=2", "tp=4"], Dtype::F32);
    check(&golden("qwen3"), &["tp=2"], Dtype::Bf16);
}
