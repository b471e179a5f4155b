//! GGUF files, written here from the golden models as llama.cpp's converter would.

use std::fs::{self, File};
use std::path::Path;

use candle_core::quantized::gguf_file::{self, Value};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};
use tempfile::TempDir;

use super::{assert_reads_parts, assert_same_tensors, golden, refusal};
use crate::blocks::BlockFormat;
use crate::config::{LoadError, ModelSource, RopeScaling, TensorSource};
use crate::load::load;
use crate::model::{ParamSpec, ParamTable};

/// The metadata of a golden model.
pub(super) fn metadata(arch: &str, source: &ModelSource) -> Vec<(String, Value)> {
    let config = &source.config;
    let count = |value: usize| Value::U32(value as u32);
    let own = |key: &str| format!("{arch}.{key}");
    let theta = config.ropes.first().map(|rope| (own("rope.freq_base"), Value::F32(rope.theta as f32)));
    let common = vec![
        ("general.architecture".into(), Value::String(arch.into())),
        (own("block_count"), count(config.num_layers())),
        (own("context_length"), count(config.max_position_embeddings)),
        (own("embedding_length"), count(config.hidden_size)),
        (own("feed_forward_length"), count(config.intermediate_size)),
        (own("attention.head_count"), count(config.num_heads)),
        (own("attention.head_count_kv"), count(config.num_kv_heads)),
        (own("attention.key_length"), count(config.head_dim)),
        (own("attention.value_length"), count(config.head_dim)),
        (own("attention.layer_norm_rms_epsilon"), Value::F32(config.rms_norm_eps)),
        ("tokenizer.ggml.eos_token_id".into(), Value::U32(2)),
    ];
    common.into_iter().chain(theta).collect()
}

/// llama.cpp's name of a Hugging Face tensor.
pub(super) fn gguf_name(name: &str) -> String {
    [
        ("model.embed_tokens", "token_embd"),
        ("model.layers", "blk"),
        ("model.norm", "output_norm"),
        ("lm_head", "output"),
        ("input_layernorm", "attn_norm"),
        ("post_attention_layernorm", "ffn_norm"),
        ("self_attn.o_proj", "attn_output"),
        ("self_attn.q_proj", "attn_q"),
        ("self_attn.k_proj", "attn_k"),
        ("self_attn.v_proj", "attn_v"),
        ("self_attn.q_norm", "attn_q_norm"),
        ("self_attn.k_norm", "attn_k_norm"),
        ("mlp.gate_proj", "ffn_gate"),
        ("mlp.up_proj", "ffn_up"),
        ("mlp.down_proj", "ffn_down"),
    ]
    .iter()
    .fold(name.to_owned(), |name, (from, to)| name.replace(from, to))
}

/// All tensors of a golden model; q and k rows interleaved for the llama family.
fn tensors(arch: &str, source: &ModelSource) -> Vec<(String, Tensor)> {
    let config = &source.config;
    let convert = |name: String| {
        let shape = source.tensors.shape(&name).unwrap();
        let tensor = Tensor::from_vec(source.tensors.read(&name).unwrap(), shape.clone(), &Device::Cpu).unwrap();
        let heads = match name.rsplit('.').nth(1) {
            Some("q_proj") if arch == "llama" => config.num_heads,
            Some("k_proj") if arch == "llama" => config.num_kv_heads,
            _ => return (gguf_name(&name), tensor),
        };
        let split = [heads, 2, shape[0] / heads / 2, shape[1]];
        let interleaved = tensor.reshape(&split[..]).unwrap().transpose(1, 2).unwrap().contiguous().unwrap();
        (gguf_name(&name), interleaved.reshape(shape).unwrap())
    };
    source.tensors.names().into_iter().map(convert).collect()
}

pub(super) fn write(path: &Path, metadata: &[(String, Value)], tensors: &[(String, Tensor)]) {
    let tensors: Vec<_> =
        tensors.iter().map(|(name, t)| (name, QTensor::quantize(t, GgmlDType::F32).unwrap())).collect();
    let tensors: Vec<_> = tensors.iter().map(|(name, t)| (name.as_str(), t)).collect();
    let metadata: Vec<_> = metadata.iter().map(|(key, value)| (key.as_str(), value)).collect();
    gguf_file::write(&mut File::create(path).unwrap(), &metadata, &tensors).unwrap();
}

/// A file of a golden model of the llama family, with matrices of the types that `dtype` gives by their names in the file.
pub(crate) fn write_quantized(path: &Path, family: &str, dtype: impl Fn(&str) -> GgmlDType) {
    write_model(path, &load(&golden(family)).unwrap(), dtype);
}

/// Like [`write_quantized`], of a model whose rows are whole super-blocks.
pub(crate) fn write_wide(path: &Path, dtype: impl Fn(&str) -> GgmlDType) {
    write_model(path, &wide(), dtype);
}

fn write_model(path: &Path, source: &ModelSource, dtype: impl Fn(&str) -> GgmlDType) {
    let quantize = |(name, tensor): (String, Tensor)| {
        let dtype = if tensor.rank() == 2 { dtype(&name) } else { GgmlDType::F32 };
        (name, QTensor::quantize(&tensor, dtype).unwrap())
    };
    let all: Vec<_> = tensors("llama", source).into_iter().map(quantize).collect();
    let views: Vec<_> = all.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    let metadata = metadata("llama", source);
    let metadata: Vec<_> = metadata.iter().map(|(key, value)| (key.as_str(), value)).collect();
    gguf_file::write(&mut File::create(path).unwrap(), &metadata, &views).unwrap();
}

/// Tensors of any values, small ones in matrices and near 1 in norms.
struct AnyTensors(Vec<ParamSpec>);

impl TensorSource for AnyTensors {
    fn shape(&self, name: &str) -> Option<Vec<usize>> {
        self.0.iter().find(|spec| spec.name == name).map(|spec| spec.shape.clone())
    }

    fn read(&self, name: &str) -> Result<Vec<f32>, LoadError> {
        let shape = self.shape(name).ok_or_else(|| LoadError::MissingTensor(name.to_owned()))?;
        let mut state = crc32fast::hash(name.as_bytes());
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            ((state >> 8) as f32 / (1 << 23) as f32 - 1.0) / 8.0
        };
        let middle = if shape.len() == 1 { 1.0 } else { 0.0 };
        Ok((0..shape.iter().product()).map(|_| middle + next()).collect())
    }

    fn names(&self) -> Vec<String> {
        self.0.iter().map(|spec| spec.name.clone()).collect()
    }
}

/// A model of the llama family whose rows are whole super-blocks.
fn wide() -> ModelSource {
    let mut source = load(&golden("llama")).unwrap();
    let config = &mut source.config;
    (config.hidden_size, config.intermediate_size) = (256, 512);
    (config.num_heads, config.num_kv_heads, config.head_dim) = (16, 8, 16);
    source.tensors = Box::new(AnyTensors(ParamTable::new(&source.config).specs));
    source
}

#[test]
fn rows_are_read_in_their_blocks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    let types = [
        (GgmlDType::Q4_0, Some(BlockFormat::Q4_0)),
        (GgmlDType::Q4_1, Some(BlockFormat::Q4_1)),
        (GgmlDType::Q5_0, Some(BlockFormat::Q5_0)),
        (GgmlDType::Q5_1, Some(BlockFormat::Q5_1)),
        (GgmlDType::Q8_0, Some(BlockFormat::Q8_0)),
        (GgmlDType::F16, None),
        (GgmlDType::Q2K, None),
        (GgmlDType::Q4K, Some(BlockFormat::Q4K)),
        (GgmlDType::Q5K, Some(BlockFormat::Q5K)),
        (GgmlDType::Q6K, Some(BlockFormat::Q6K)),
    ];
    for (dtype, format) in types {
        write_model(&path, &wide(), |_| dtype);
        let source = load(&path).unwrap();
        for name in source.tensors.names() {
            let is_matrix = source.tensors.shape(&name).unwrap().len() == 2;
            assert_eq!(source.tensors.block_format(&name), format.filter(|_| is_matrix), "{name}");
            let Some(blocks) = source.tensors.read_blocks(&name).unwrap() else { continue };
            assert!(is_matrix && blocks.values(0..blocks.rows()) == source.tensors.read(&name).unwrap(), "{name}");
        }
    }
}

/// A llama file with more metadata.
pub(super) fn write_llama(path: &Path, extra: &[(String, Value)]) {
    let source = load(&golden("llama")).unwrap();
    let mut metadata = metadata("llama", &source);
    metadata.retain(|(key, _)| extra.iter().all(|(other, _)| other != key));
    metadata.extend_from_slice(extra);
    write(path, &metadata, &tensors("llama", &source));
}

/// The refusal of a llama file after a change to its metadata or tensors.
fn refused(change: impl FnOnce(&mut Vec<(String, Value)>, &mut Vec<(String, Tensor)>)) -> String {
    let folder = tempfile::tempdir().unwrap();
    let source = load(&golden("llama")).unwrap();
    let (mut metadata, mut tensors) = (metadata("llama", &source), tensors("llama", &source));
    change(&mut metadata, &mut tensors);
    let path = folder.path().join("model.gguf");
    write(&path, &metadata, &tensors);
    refusal(&path)
}

fn converted(arch: &str, family: &str) -> (TempDir, ModelSource, ModelSource) {
    let folder = tempfile::tempdir().unwrap();
    let reference = load(&golden(family)).unwrap();
    write(&folder.path().join("model.gguf"), &metadata(arch, &reference), &tensors(arch, &reference));
    let source = load(folder.path()).unwrap();
    (folder, source, reference)
}

#[test]
fn a_converted_model_is_the_model() {
    for (arch, family) in [("llama", "llama"), ("llama", "llama_tied"), ("qwen2", "qwen2"), ("qwen3", "qwen3")] {
        let (_folder, source, mut reference) = converted(arch, family);
        assert_same_tensors(&source, &reference);
        reference.config.eos_token_ids = vec![2];
        assert_eq!(source.config, reference.config, "{family}");
    }
}

#[test]
fn quantized_tensors_are_dequantized() {
    let source = load(&golden("llama")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    for dtype in [GgmlDType::Q4_0, GgmlDType::Q5_1, GgmlDType::Q8_0, GgmlDType::F16, GgmlDType::BF16] {
        let quantize = |(name, tensor): (String, Tensor)| {
            let dtype = if tensor.rank() == 2 { dtype } else { GgmlDType::F32 };
            (name, QTensor::quantize(&tensor, dtype).unwrap())
        };
        let all: Vec<_> = tensors("qwen2", &source).into_iter().map(quantize).collect();
        let views: Vec<_> = all.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
        let metadata = metadata("llama", &source);
        let metadata: Vec<_> = metadata.iter().map(|(key, value)| (key.as_str(), value)).collect();
        gguf_file::write(&mut File::create(&path).unwrap(), &metadata, &views).unwrap();
        let loaded = load(&path).unwrap();
        let name = "model.layers.1.mlp.down_proj.weight";
        let expected = &all.iter().find(|(found, _)| *found == gguf_name(name)).unwrap().1;
        let expected = expected.dequantize(&Device::Cpu).unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap();
        assert!(loaded.tensors.read(name).unwrap() == expected, "{dtype:?}");
        assert_reads_parts(&loaded);
    }
}

#[test]
fn llama3_frequency_factors_are_recognised() {
    let source = load(&golden("llama3_rope")).unwrap();
    let mut metadata = metadata("llama", &source);
    metadata.push(("llama.rope.scaling.original_context_length".into(), Value::U32(64)));
    // As llama.cpp's converter computes them, for heads of 16.
    let factors: Vec<f32> = (0..8)
        .map(|pair| {
            let wavelength = std::f64::consts::TAU * 500_000_f64.powf(f64::from(pair) / 8.0);
            let smooth = (64.0 / wavelength - 1.0) / 3.0;
            let factor = if wavelength < 16.0 {
                1.0
            } else if wavelength > 64.0 {
                8.0
            } else {
                1.0 / ((1.0 - smooth) / 8.0 + smooth)
            };
            factor as f32
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    let mut all = tensors("llama", &source);
    all.push(("rope_freqs.weight".into(), Tensor::new(factors.as_slice(), &Device::Cpu).unwrap()));
    write(&path, &metadata, &all);
    let loaded = load(&path).unwrap();
    assert_eq!(loaded.config.ropes, source.config.ropes);
    assert_same_tensors(&loaded, &source);

    let other = [1.0_f32, 1.0, 2.0, 1.0, 8.0, 8.0, 8.0, 8.0];
    all.pop();
    all.push(("rope_freqs.weight".into(), Tensor::new(&other, &Device::Cpu).unwrap()));
    write(&path, &metadata, &all);
    assert!(refusal(&path).contains("rope_freqs.weight"));
}

#[test]
fn linear_scaling_is_read() {
    let source = load(&golden("llama")).unwrap();
    let mut metadata = metadata("llama", &source);
    metadata.push(("llama.rope.scaling.type".into(), Value::String("linear".into())));
    metadata.push(("llama.rope.scaling.factor".into(), Value::F32(2.5)));
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("a.gguf"), &metadata, &tensors("llama", &source));
    assert_eq!(load(folder.path()).unwrap().config.ropes[0].scaling, RopeScaling::Linear { factor: 2.5 });
    fs::copy(folder.path().join("a.gguf"), folder.path().join("b.gguf")).unwrap();
    assert!(refusal(folder.path()).contains("2 .gguf files"));
}

#[test]
fn yarn_is_read() {
    let extra = |more: &[(&str, Value)]| {
        let common = [
            ("type", Value::String("yarn".into())),
            ("factor", Value::F32(4.0)),
            ("original_context_length", Value::U32(128)),
            ("yarn_beta_fast", Value::F32(16.0)),
        ];
        let all = common.iter().chain(more);
        all.map(|(key, value)| (format!("llama.rope.scaling.{key}"), value.clone())).collect::<Vec<_>>()
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    write_llama(&path, &extra(&[("yarn_attn_factor", Value::F32(1.0))]));
    let expected = RopeScaling::Yarn {
        factor: 4.0,
        beta_fast: 16.0,
        beta_slow: 1.0,
        truncate: true,
        attention_factor: 0.1 * 4f64.ln() + 1.0,
        original_max_position_embeddings: 128,
    };
    assert_eq!(load(&path).unwrap().config.ropes[0].scaling, expected);
    for key in ["yarn_attn_factor", "yarn_ext_factor", "yarn_log_multiplier"] {
        write_llama(&path, &extra(&[(key, Value::F32(0.5))]));
        let found = refusal(&path);
        assert!(found.contains(&format!("llama.rope.scaling.{key} 0.5 (supported: ")), "{found}");
    }
}

#[test]
fn what_is_unsupported_is_refused_by_name() {
    let set = |key: &'static str, value: Value| {
        refused(move |metadata, _| {
            metadata.retain(|(found, _)| found != key);
            metadata.push((key.to_owned(), value));
        })
    };
    let found = set("general.architecture", Value::String("mamba".into()));
    assert!(found.contains("GGUF architecture \"mamba\" (supported: "), "{found}");
    let found = set("llama.rope.scaling.type", Value::String("longrope".into()));
    assert!(found.contains("rope scaling \"longrope\""), "{found}");
    let found = set("llama.rope.scaling.type", Value::String("yarn".into()));
    assert!(found.contains("llama.rope.scaling.factor is missing"), "{found}");
    let found = set("llama.expert_count", Value::U32(8));
    assert!(found.contains("llama.expert_count 8"), "{found}");
    let found = set("llama.rope.dimension_count", Value::U32(8));
    assert!(found.contains("llama.rope.dimension_count 8"), "{found}");
    let found = set("split.count", Value::U16(3));
    assert!(found.contains("split into 3 files"), "{found}");
    let found = set("llama.context_length", Value::String("long".into()));
    assert!(found.contains("llama.context_length is not an integer"), "{found}");
    let found = set("general.alignment", Value::U32(0));
    assert!(found.contains("general.alignment is not a positive integer"), "{found}");
    let found = refused(|_, tensors| tensors.retain(|(name, _)| name != "blk.1.ffn_up.weight"));
    assert_eq!(found, "tensor model.layers.1.mlp.up_proj.weight is missing");
    let found = refused(|_, tensors| tensors[0].0 = "blk.0.ssm_conv1d.weight".into());
    assert!(found.contains("blk.0.ssm_conv1d.weight"), "{found}");
    let found = refused(|_, tensors| {
        let up = tensors.iter_mut().find(|(name, _)| name == "blk.0.ffn_up.weight").unwrap();
        up.1 = up.1.t().unwrap().contiguous().unwrap();
    });
    assert!(found.contains("up_proj.weight has shape [64, 160], expected [160, 64]"), "{found}");
}

#[test]
fn a_truncated_file_is_refused() {
    let (folder, ..) = converted("llama", "llama");
    let path = folder.path().join("model.gguf");
    let whole = fs::read(&path).unwrap();
    for length in [0, 3, 40, 300, 2000, whole.len() / 2, whole.len() - 64] {
        fs::write(&path, &whole[..length]).unwrap();
        let found = refusal(&path);
        assert!(found.contains("model.gguf"), "{length}: {found}");
    }
    assert!(refusal(&path).contains("truncated GGUF file: tensor "));
}
