//! The real SmolLM2-135M-Instruct with weights in blocks.

use std::ops::Range;

use trainyard_gpu_runtime::backend::HostKernels;
use trainyard_gpu_runtime::blocks::PackedForm;
use trainyard_gpu_runtime::config::{LoadError, ModelSource, TensorSource};
use trainyard_gpu_runtime::load::load;
use trainyard_gpu_runtime::{CpuEngine, EngineOptions, WeightStorage};
use trainyard_protocol::{Operation, SampleResult, SamplerSource};

use crate::equality::check;
use crate::smollm2::model;
use crate::support::{Driver, datum, lora, params, sample, sample_result, tokens};

const VOCABULARY: usize = 49_152;

fn options(kernels: HostKernels, weights: WeightStorage) -> EngineOptions {
    EngineOptions { kernels: Some(kernels), threads: 2, weights, ..EngineOptions::default() }
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|x| x.to_bits()).collect()
}

/// Samples of two prompts at once, so that tokens are computed in passes of one to three rows.
fn samples(d: &mut Driver) -> Vec<(Vec<i64>, SampleResult)> {
    let requests: Vec<_> = [(70, 1), (9, 2)]
        .into_iter()
        .map(|(length, count)| {
            let prompt = tokens(length, VOCABULARY, length);
            let source = SamplerSource::Base { model: "m".into() };
            let request = sample(source, prompt.clone(), count, params(4 + count * 6, 1.0, 3));
            (prompt, d.start(Operation::Sample(Box::new(request))))
        })
        .collect();
    requests.into_iter().map(|(prompt, id)| (prompt, sample_result(d.take(&id)))).collect()
}

/// Log-probabilities of a forward pass and of samples, and the sampled tokens, as numbers.
fn results(d: &mut Driver) -> Vec<Vec<u32>> {
    d.create("run", Some(lora(2, 1)));
    let data = [100, 17, 2].map(|length| datum(&tokens(length, VOCABULARY, length + 5)));
    let forward = d.forward("run", data.to_vec());
    let mut results: Vec<Vec<u32>> = forward.outputs.iter().map(|output| bits(&output.logprobs)).collect();
    for (_, result) in samples(d) {
        results.push(bits(&result.prompt_logprobs.unwrap()[1..]));
        for sequence in result.sequences {
            results.extend([sequence.tokens, bits(&sequence.logprobs)]);
        }
    }
    results
}

#[test]
fn blocks_of_the_file_give_the_bits_of_widened_weights() {
    for kernels in HostKernels::available().into_iter().filter(|kernels| *kernels > HostKernels::Portable) {
        let [widened, kept] = [WeightStorage::Widened, WeightStorage::Blocks]
            .map(|weights| results(&mut Driver::with_options(&model(), options(kernels, weights))));
        assert!(widened.len() > 8 && widened.iter().flatten().any(|bits| *bits != 0));
        for (at, (widened, kept)) in widened.iter().zip(&kept).enumerate() {
            assert!(widened == kept, "{kernels:?}: result {at}");
        }
        assert_eq!(widened.len(), kept.len());
    }
}

/// A model without blocks: its tensors are widened, so that they are packed again.
struct Wide(Box<dyn TensorSource>);

impl TensorSource for Wide {
    fn shape(&self, name: &str) -> Option<Vec<usize>> {
        self.0.shape(name)
    }

    fn read(&self, name: &str) -> Result<Vec<f32>, LoadError> {
        self.0.read(name)
    }

    fn read_part(&self, name: &str, elements: Range<usize>) -> Result<Vec<f32>, LoadError> {
        self.0.read_part(name, elements)
    }

    fn names(&self) -> Vec<String> {
        self.0.names()
    }
}

/// The model with wide tensors.
fn wide() -> ModelSource {
    let source = load(&model()).unwrap();
    ModelSource { tensors: Box::new(Wide(source.tensors)), ..source }
}

#[test]
fn packed_weights_take_a_part_of_the_memory() {
    // Bytes of the model's 134,515,008 parameters in bf16. The bytes that an engine holds are those of its plan: see the tests of
    // `block_weights_tests.rs`.
    let bf16 = 2 * 134_515_008;
    for (form, most) in [(PackedForm::Q4, 35), (PackedForm::Q8, 60)] {
        for kernels in HostKernels::available() {
            let plan = CpuEngine::memory_plan(&[wide()], &options(kernels, WeightStorage::Packed(form))).unwrap();
            assert!(plan.weights * 100 <= bf16 * most, "{form:?}: {} of {bf16} bytes", plan.weights);
        }
    }
}

#[test]
fn samples_of_q4_have_the_trainers_logprobs() {
    for kernels in HostKernels::available().into_iter().filter(|kernels| *kernels > HostKernels::Portable) {
        let options = options(kernels, WeightStorage::Packed(PackedForm::Q4));
        let d = &mut Driver::over(CpuEngine::new(vec![("m".into(), wide())], options).unwrap());
        d.create("run", Some(lora(2, 1)));
        for (prompt, result) in samples(d) {
            check(d, "run", &prompt, &result);
        }
    }
}
