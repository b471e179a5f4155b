//! Checksums of everything that the CPU engine computes, recorded once: a change that is not meant to change numbers must
//! keep them, to the bit, on every kernel class.
//!
//! `tests/golden/checksums.json` holds them by kernel class, family and type. A class that this processor lacks is not
//! checked. After a change that is meant to change bits, record them anew on a machine that has all classes:
//! `TRAINYARD_RECORD_CHECKSUMS=1 cargo test -p trainyard-gpu-runtime --test engine checksums`. With names of families instead of 1,
//! separated by commas, only those are recorded.

use std::collections::BTreeMap;
use std::path::Path;

use amx_emulator::{is_rerun, rerun, skipped};
use trainyard_gpu_runtime::backend::cpu::{Cpu, Isa, assume_emulated_amx};
use trainyard_gpu_runtime::load::load;
use trainyard_gpu_runtime::{CpuEngine, Dtype, EngineOptions};
use trainyard_protocol::{
    Datum, ForwardBackwardResult, LoraSpec, Operation, RunId, SampleResult, SamplerSource, SaveRun, SaveTarget, Tensor,
};
use trainyard_test_support::full::is_full;

use crate::smollm2;
use crate::support::*;

/// SmolLM2-135M-Instruct: large enough that GEMMs are cut along k, and that attention has heads in groups.
const REAL: &str = "smollm2";
/// Families that are checked with emulated tiles: with windows, norms of heads and other activations; with biases.
const EMULATED: [&str; 2] = ["gemma3", "qwen2"];
/// Families whose checksums are compared on classes other than the processor's best one, unless all are.
const ON_OTHERS: [&str; 8] = ["gemma3", "gpt_oss", "kimi_k25", "lfm2", "llama", "nemotron_h", "qwen2", "qwen3_5"];
/// Families with latent attention, on which adapters have two placements.
const LATENT: [&str; 2] = ["deepseek_v3", "kimi_k25"];
const RECORD: &str = "TRAINYARD_RECORD_CHECKSUMS";

/// Name of a result to its checksum, of one family, type and kernel class.
type Checksums = BTreeMap<String, String>;

/// State of the FNV-1a hash with 64 bits.
struct Hash(u64);

impl Hash {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self
    }

    fn floats(&mut self, values: &[f32]) -> &mut Self {
        for x in values {
            self.bytes(&x.to_bits().to_le_bytes());
        }
        self
    }

    fn tokens(&mut self, ids: &[u32]) -> &mut Self {
        for id in ids {
            self.bytes(&id.to_le_bytes());
        }
        self
    }

    fn text(&self) -> String {
        format!("{:016x}", self.0)
    }
}

fn of_losses(result: &ForwardBackwardResult) -> String {
    let mut hash = Hash::new();
    for output in &result.outputs {
        hash.floats(&output.logprobs).floats(&output.elementwise_loss);
    }
    for (name, value) in &result.metrics {
        hash.bytes(name.as_bytes()).bytes(&value.to_le_bytes());
    }
    hash.text()
}

fn of_samples(result: &SampleResult) -> String {
    let mut hash = Hash::new();
    for sequence in &result.sequences {
        hash.tokens(&sequence.tokens).floats(&sequence.logprobs);
        let topk = sequence.topk.as_ref().unwrap();
        hash.tokens(&topk.token_ids).floats(&topk.logprobs);
    }
    hash.floats(result.prompt_logprobs.as_ref().unwrap());
    let topk = result.topk_prompt_logprobs.as_ref().unwrap();
    hash.tokens(&topk.token_ids).floats(&topk.logprobs).text()
}

/// Folders of golden models.
fn families() -> Vec<String> {
    let entries = std::fs::read_dir(golden("")).unwrap().map(|entry| entry.unwrap());
    let models = entries.filter(|entry| entry.path().join("config.json").is_file());
    let names = models.map(|entry| entry.file_name().into_string().unwrap());
    names.collect()
}

/// Checksum of each file of tensors of a run's snapshot: masters, moments, gradient.
fn of_run(d: &mut Driver, run: &str, when: &str, sums: &mut Checksums) {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    let target = SaveTarget { dir: dir.clone(), overwrite: false };
    d.run(Operation::SaveRun(SaveRun { run: RunId::new(run), target })).unwrap();
    let mut files: Vec<_> = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files.iter().filter(|file| file.extension().is_some_and(|e| e == "safetensors")) {
        let kind = file.file_stem().unwrap().to_string_lossy();
        sums.insert(format!("{run} {when}: {kind}"), of_tensors(file));
    }
}

fn of_tensors(file: &Path) -> String {
    let bytes = std::fs::read(file).unwrap();
    let mut tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap().tensors();
    tensors.sort_by(|a, b| a.0.cmp(&b.0));
    let mut hash = Hash::new();
    for (name, tensor) in &tensors {
        hash.bytes(name.as_bytes()).bytes(tensor.data());
    }
    hash.text()
}

/// Examples of several lengths: more than a block of keys, a whole one, and few tokens.
fn data(vocab: usize) -> Vec<Datum> {
    [70, 33, 8].iter().enumerate().map(|(i, n)| datum(&tokens(*n, vocab, 3 + i))).collect()
}

/// The same examples with the inputs of a policy-gradient loss.
fn rollouts(vocab: usize) -> Vec<Datum> {
    let with_inputs = |mut datum: Datum| {
        let n = datum.tokens.len();
        datum.loss_fn_inputs.remove("weights");
        let values = |scale: f32| (0..n).map(|i| ((i * 37 % 19) as f32 - 9.0) * scale).collect();
        datum.loss_fn_inputs.insert("advantages".into(), Tensor::f32(values(0.1)));
        let logprobs: Vec<f32> = values(0.02);
        datum.loss_fn_inputs.insert("logprobs".into(), Tensor::f32(logprobs.iter().map(|x| x - 6.0).collect()));
        datum
    };
    data(vocab).into_iter().map(with_inputs).collect()
}

fn train(d: &mut Driver, run: &str, adapter: Option<LoraSpec>, vocab: usize, sums: &mut Checksums) {
    d.create(run, adapter);
    let first = d.forward_backward(run, data(vocab));
    sums.insert(format!("{run}: first loss"), of_losses(&first));
    of_run(d, run, "before a step", sums);
    d.step(run, 1e-2);
    let operation = d.loss_op(run, "ppo", rollouts(vocab), false);
    let second = loss_result(d.run(operation));
    sums.insert(format!("{run}: second loss"), of_losses(&second));
    d.step(run, 1e-2);
    of_run(d, run, "after two steps", sums);
    sums.insert(format!("{run}: last loss"), of_losses(&d.forward(run, data(vocab))));
}

fn sampled(d: &mut Driver, source: SamplerSource, vocab: usize) -> String {
    let mut request = sample(source, tokens(45, vocab, 11), 3, params(20, 0.8, 5));
    (request.sample.topk_sample_logprobs, request.sample.topk_prompt_logprobs) = (4, 3);
    of_samples(&sample_result(d.run(Operation::Sample(Box::new(request)))))
}

fn checksums(isa: Isa, dtype: Dtype, family: &str) -> Checksums {
    let options = EngineOptions { dtype, threads: 2, ..EngineOptions::default() };
    let is_real = family == REAL;
    let path = if is_real { smollm2::model() } else { golden(family) };
    let models = vec![("m".into(), load(&path).unwrap())];
    let mut d = Driver::over(CpuEngine::on(Cpu::with_isa(2, isa).with_dtype(dtype), models, options).unwrap());
    let vocab = trainyard_protocol::Engine::models(&d.engine)[0].vocab_size;
    let mut sums = Checksums::new();
    let adapter = |rank, seed| LoraSpec { latent_up: true, ..lora(rank, seed) };
    train(&mut d, "lora", Some(adapter(8, 5)), vocab, &mut sums);
    if LATENT.contains(&family) {
        train(&mut d, "hosted placement", Some(lora(8, 5)), vocab, &mut sums);
    }
    if !is_real {
        let attention = LoraSpec { train_mlp: false, train_unembed: false, ..adapter(3, 9) };
        train(&mut d, "attention", Some(attention), vocab, &mut sums);
        train(&mut d, "full", None, vocab, &mut sums);
    }
    for run in if is_real { &["lora"][..] } else { &["lora", "full"] } {
        d.snapshot(run, run);
        let samples = sampled(&mut d, SamplerSource::Snapshot { key: (*run).into() }, vocab);
        sums.insert(format!("{run}: samples"), samples);
    }
    let base = sampled(&mut d, SamplerSource::Base { model: "m".into() }, vocab);
    sums.insert("base: samples".into(), base);
    sums
}

/// The kernel classes that are there; where this process emulates tiles, the one that uses them.
fn classes() -> Vec<Isa> {
    if !is_rerun() {
        return Isa::available();
    }
    #[expect(unsafe_code, reason = "tests without AMX")]
    // SAFETY: the emulator is installed.
    unsafe {
        assume_emulated_amx();
    }
    vec![Isa::AmxBf16]
}

#[test]
fn emulated_tiles_give_the_bits_that_were_recorded_on_hardware() {
    if !Isa::available().contains(&Isa::Avx512Bf16) {
        return skipped(
            "checksums with emulated tiles, beside which kernels use AVX-512 BF16: this processor has none",
        );
    }
    match rerun(&["checksums::every_number_has_the_bits_that_were_recorded"]) {
        Err(error) => skipped(error),
        Ok(rerun) => assert!(rerun.success && rerun.passed == 1, "{}", rerun.output),
    }
}

#[test]
fn every_number_has_the_bits_that_were_recorded() {
    let path = golden("checksums.json");
    let mut recorded: BTreeMap<String, BTreeMap<String, Checksums>> =
        std::fs::read(&path).map_or_else(|_| BTreeMap::new(), |json| serde_json::from_slice(&json).unwrap());
    let chosen = std::env::var(RECORD).ok();
    let named =
        |family: &str| chosen.as_deref().is_none_or(|all| all == "1" || all.split(',').any(|one| one == family));
    let record = chosen.is_some();
    let emulated = is_rerun();
    let all_on_all = record || emulated || is_full();
    for isa in classes() {
        let is_best = all_on_all || isa == Isa::detect();
        let class = recorded.entry(isa.name().into()).or_default();
        // Plain Rust takes minutes for the real model, and emulation a second for each family.
        let real = (isa != Isa::Portable).then(|| REAL.to_owned());
        let all = families().into_iter().chain(real).filter(|family| named(family));
        let all = all.filter(|family| is_best || ON_OTHERS.contains(&&**family));
        for family in &all.filter(|family| !emulated || EMULATED.contains(&&**family)).collect::<Vec<_>>() {
            // With f32 there are no tiles.
            for dtype in [Dtype::Bf16, Dtype::F32].into_iter().filter(|dtype| !emulated || *dtype == Dtype::Bf16) {
                let name = format!("{family} {}", dtype.name());
                let found = checksums(isa, dtype, family);
                if record {
                    class.insert(name, found);
                    continue;
                }
                let expected = class.get(&name).unwrap_or_else(|| panic!("{} {name} was not recorded", isa.name()));
                for (what, sum) in expected {
                    assert_eq!(found.get(what), Some(sum), "{}, {name}, {what}", isa.name());
                }
                assert_eq!(found.len(), expected.len(), "{}, {name}", isa.name());
            }
        }
    }
    if record {
        std::fs::write(path, serde_json::to_string_pretty(&recorded).unwrap() + "\n").unwrap();
    }
}
