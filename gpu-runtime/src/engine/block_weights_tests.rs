//! Base weights in the blocks of their file give the bits of widened weights.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use candle_core::quantized::GgmlDType;
use trainyard_protocol::{Category, Engine as _, ModelHead, Operation, Optimizer, RunId, RunSpec};

use crate::Dtype;
use crate::backend::{HostBackend, HostKernels, Params};
use crate::blocks::PackedForm;
use crate::config::{LoadError, TensorSource};
use crate::engine::fault_tests::{ask, create, drain, optim, pass, start};
use crate::engine::{CpuEngine, Engine, EngineOptions, WeightStorage, block_formats};
use crate::load::load;
use crate::load::tests::{write_quantized, write_wide};
use crate::model::{ParamSpec, ParamTable, Weights};
use crate::parallel::Parallel;

/// Matrices of every format, side by side in fused layers, and one that is not in blocks.
fn mixed(name: &str) -> GgmlDType {
    match name.rsplit('.').nth(1) {
        Some("attn_q" | "ffn_down") => GgmlDType::Q4_0,
        Some("attn_k") => GgmlDType::Q4_1,
        Some("ffn_gate") => GgmlDType::Q5_0,
        Some("ffn_up") => GgmlDType::Q5_1,
        Some("attn_v") => GgmlDType::F16,
        _ => GgmlDType::Q8_0,
    }
}

fn engine(path: &Path, kernels: HostKernels, dtype: Dtype, weights: WeightStorage) -> CpuEngine {
    let options = EngineOptions { weights, ..EngineOptions::default() };
    let backend = HostBackend::with_isa(2, kernels).with_dtype(dtype);
    Engine::on(backend, vec![("m".into(), load(path).unwrap())], options).unwrap()
}

/// Losses, gradients and samples before and after a step, as text, which tells all finite floats apart.
fn results(engine: &mut CpuEngine) -> Vec<String> {
    let mut results = vec![format!("{:?}", engine.numerics())];
    create(engine, "a", 3);
    for _ in 0..2 {
        start(engine, "a", pass("a", 4));
        results.push(format!("{:?}", drain(engine)["a"].result));
        let sum = &engine.runs[&RunId::new("a")].gradient.as_ref().unwrap().sum;
        results.extend((0..sum.len()).map(|i| format!("{:?}", sum.host(i))));
        start(engine, "a", optim("a"));
        assert!(drain(engine)["a"].result.is_ok());
    }
    for prompt in [3, 40] {
        start(engine, "s", ask(prompt));
        let done = drain(engine);
        assert!(done["s"].result.is_ok(), "{:?}", done["s"].result);
        results.push(format!("{:?}", done["s"].result));
    }
    results
}

/// Super-blocks of every format, side by side in fused layers, and blocks.
fn mixed_super_blocks(name: &str) -> GgmlDType {
    match name.rsplit('.').nth(1) {
        Some("attn_q" | "ffn_down" | "token_embd") => GgmlDType::Q4K,
        Some("attn_k" | "ffn_gate" | "output") => GgmlDType::Q6K,
        Some("ffn_up" | "attn_output") => GgmlDType::Q5K,
        _ => GgmlDType::Q8_0,
    }
}

/// The results of weights in their blocks and widened, whose bytes they also compare.
fn check_bits(path: &Path) {
    for kernels in HostKernels::available() {
        for dtype in [Dtype::Bf16, Dtype::F32] {
            let mut widened = engine(path, kernels, dtype, WeightStorage::Widened);
            let mut kept = engine(path, kernels, dtype, WeightStorage::Blocks);
            let (expected, found) = (results(&mut widened), results(&mut kept));
            assert_eq!(expected.len(), found.len());
            for (at, (expected, found)) in expected.iter().zip(&found).enumerate() {
                assert!(expected == found, "{kernels:?} {dtype:?}: result {at}");
            }
            let bytes = |engine: &CpuEngine| engine.bases[0].weights.bytes(&engine.backend);
            assert!(bytes(&kept) * 10 < bytes(&widened) * 7, "{} of {}", bytes(&kept), bytes(&widened));
            let planned = kept.budget.plan.weights;
            assert!(planned < widened.budget.plan.weights, "{planned}");
            check_plan(&kept, path, WeightStorage::Blocks);
        }
    }
}

/// The planned bytes of the matrices are those that an engine holds after it has trained.
fn check_plan(engine: &CpuEngine, path: &Path, storage: WeightStorage) {
    let source = load(path).unwrap();
    let formats = block_formats(&source.config, Some(&*source.tensors), storage);
    let planned = Weights::planned_bytes_in(&*engine.backend, &source.config, true, &formats);
    // Of norms and biases, which are planned twice.
    let vectors: usize =
        ParamTable::new(&source.config).specs.iter().filter(|spec| spec.shape.len() == 1).map(ParamSpec::len).sum();
    let held = engine.bases[0].weights.bytes(&engine.backend);
    assert_eq!(planned, held + 2 * size_of::<f32>() * vectors, "{storage:?}, kept: {formats:?}");
}

#[test]
fn blocks_give_the_bits_of_widened_weights() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    for family in ["llama", "llama_tied"] {
        write_quantized(&path, family, mixed);
        check_bits(&path);
    }
    write_wide(&path, mixed_super_blocks);
    check_bits(&path);
}

/// A GGUF file of blocks of the formats that a model of wide weights is packed in.
fn packed_types(name: &str) -> GgmlDType {
    match name.rsplit('.').nth(1) {
        Some("token_embd" | "output") => GgmlDType::Q8_0,
        _ => GgmlDType::Q4_0,
    }
}

#[test]
fn packed_weights_are_those_of_a_file_in_these_blocks() {
    let folder = tempfile::tempdir().unwrap();
    let (path, wide) = (folder.path().join("model.gguf"), folder.path().join("wide.gguf"));
    for family in ["llama", "llama_tied"] {
        write_quantized(&path, family, packed_types);
        write_quantized(&wide, family, |_| GgmlDType::F32);
        for (form, smaller) in [(PackedForm::Q4, 45), (PackedForm::Q8, 65)] {
            for dtype in [Dtype::Bf16, Dtype::F32] {
                let own = HostKernels::detect();
                let mut packed = engine(&wide, own, dtype, WeightStorage::Packed(form));
                let mut unpacked = engine(&wide, own, dtype, WeightStorage::Widened);
                let (expected, found) = (results(&mut unpacked), results(&mut packed));
                assert!(expected[0] != found[0], "the digest is that of the packed values");
                assert!(expected[1] != found[1]);
                if form == PackedForm::Q4 {
                    // The reference quantizes as the packing does.
                    let mut reference = engine(&path, own, dtype, WeightStorage::Widened);
                    assert!(results(&mut reference) == found, "{family} {dtype:?}");
                }
                let bytes = |engine: &CpuEngine| engine.bases[0].weights.bytes(&engine.backend);
                assert!(
                    bytes(&packed) * 100 < bytes(&unpacked) * smaller,
                    "{} of {}",
                    bytes(&packed),
                    bytes(&unpacked)
                );
                let planned = packed.budget.plan.weights;
                assert!(planned < unpacked.budget.plan.weights, "{planned}");
                check_plan(&packed, &wide, WeightStorage::Packed(form));
            }
        }
        // Tensors that the file has in blocks stay as they are.
        let own = HostKernels::detect();
        let [kept, file] = [WeightStorage::Packed(PackedForm::Q8), WeightStorage::Blocks]
            .map(|storage| engine(&path, own, Dtype::Bf16, storage));
        assert_eq!(format!("{:?}", kept.numerics()), format!("{:?}", file.numerics()));
        assert_eq!(kept.bases[0].weights.bytes(&kept.backend), file.bases[0].weights.bytes(&file.backend));
    }
}

#[test]
fn elements_that_cannot_be_packed_are_refused_by_name() {
    struct Infinite(Box<dyn TensorSource>);
    impl TensorSource for Infinite {
        fn shape(&self, name: &str) -> Option<Vec<usize>> {
            self.0.shape(name)
        }
        fn read(&self, name: &str) -> Result<Vec<f32>, LoadError> {
            let mut values = self.0.read(name)?;
            if name == "model.layers.0.mlp.up_proj.weight" {
                values[7] = f32::INFINITY;
            }
            Ok(values)
        }
        fn names(&self) -> Vec<String> {
            self.0.names()
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    write_quantized(&path, "llama", |_| GgmlDType::F32);
    let mut source = load(&path).unwrap();
    source.tensors = Box::new(Infinite(source.tensors));
    let options = EngineOptions { weights: WeightStorage::Packed(PackedForm::Q4), ..EngineOptions::default() };
    let error = CpuEngine::new(vec![("m".into(), source)], options).err().unwrap().to_string();
    assert!(error.contains("tensor model.layers.0.mlp.up_proj.weight has the element inf"), "{error}");
}

#[test]
fn runs_of_all_parameters_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    let create = |engine: &mut CpuEngine| {
        let spec =
            RunSpec { base_model: "m".into(), lora: None, optimizer: Optimizer::AdamW, head: ModelHead::Unembedding };
        start(engine, "a", Operation::CreateRun { run: RunId::new("a"), spec });
        drain(engine).remove("a").unwrap().result
    };
    let own = HostKernels::detect();
    write_quantized(&path, "llama", mixed);
    let error = create(&mut engine(&path, own, Dtype::Bf16, WeightStorage::Blocks)).unwrap_err();
    assert_eq!(error.category, Category::User);
    assert!(error.message.contains("base model m has block-quantized weights"), "{error}");
    assert!(error.message.contains("--weights bf16"), "{error}");
    assert!(create(&mut engine(&path, own, Dtype::Bf16, WeightStorage::Widened)).is_ok());
    // Nothing of this file is in blocks.
    write_quantized(&path, "llama", |_| GgmlDType::F16);
    assert!(create(&mut engine(&path, own, Dtype::Bf16, WeightStorage::Blocks)).is_ok());
}

#[test]
fn ranks_that_share_a_model_widen_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    write_quantized(&path, "llama", mixed);
    let models = || vec![("m".to_owned(), load(&path).unwrap())];
    let options = |parallel: &str| EngineOptions {
        parallel: parallel.parse::<Parallel>().unwrap(),
        threads: 1,
        weights: WeightStorage::Blocks,
        ..EngineOptions::default()
    };
    let error = crate::ParallelEngine::new(vec![models(), models()], options("tp=2")).err().unwrap().to_string();
    assert!(error.contains("weights cannot stay block-quantized"), "{error}");
    assert!(error.contains("2 ranks share the model"), "{error}");
    assert!(crate::ParallelEngine::new(vec![models(), models()], options("dp=2")).is_ok());
}
