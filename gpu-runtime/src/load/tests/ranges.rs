//! Ranks read their rows and columns of the files, and little else.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use candle_core::quantized::GgmlDType;
use half::{bf16, f16};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, serialize};
use serde_json::json;
use tempfile::TempDir;

use super::{fp8, golden, write_wide};
use crate::load::load;
use crate::model::{ParamTable, Shard, ShardAxis};
use crate::parallel::Parallel;

/// A model whose rows have 4,096 elements or more where ranks divide them.
fn wide(dtype: Dtype) -> TempDir {
    const HIDDEN: usize = 64;
    const WIDTH: usize = 4_096;
    let folder = tempfile::tempdir().unwrap();
    let config = json!({
        "model_type": "llama", "hidden_size": HIDDEN, "intermediate_size": 2 * WIDTH, "num_hidden_layers": 1,
        "num_attention_heads": 32, "num_key_value_heads": 32, "head_dim": WIDTH / 32, "vocab_size": 48,
        "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
        "tie_word_embeddings": true, "eos_token_id": 2,
    });
    fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
    let layer = |name: &str| format!("model.layers.0.{name}.weight");
    let mut shapes = vec![("model.embed_tokens.weight".to_owned(), vec![48, HIDDEN])];
    shapes.push(("model.norm.weight".to_owned(), vec![HIDDEN]));
    shapes.extend(["input_layernorm", "post_attention_layernorm"].map(|norm| (layer(norm), vec![HIDDEN])));
    shapes.extend(["q", "k", "v"].map(|name| (layer(&format!("self_attn.{name}_proj")), vec![WIDTH, HIDDEN])));
    shapes.push((layer("self_attn.o_proj"), vec![HIDDEN, WIDTH]));
    shapes.extend(["gate", "up"].map(|name| (layer(&format!("mlp.{name}_proj")), vec![2 * WIDTH, HIDDEN])));
    shapes.push((layer("mlp.down_proj"), vec![HIDDEN, 2 * WIDTH]));
    let bytes = |shape: &[usize]| -> Vec<u8> {
        let value = |at: usize| (at % 509) as f32 / 256.0 - 1.0;
        let len: usize = shape.iter().product();
        match dtype {
            Dtype::BF16 => (0..len).flat_map(|at| bf16::from_f32(value(at)).to_le_bytes()).collect(),
            Dtype::F16 => (0..len).flat_map(|at| f16::from_f32(value(at)).to_le_bytes()).collect(),
            _ => (0..len).flat_map(|at| value(at).to_le_bytes()).collect(),
        }
    };
    let tensors: BTreeMap<_, _> = shapes.iter().map(|(name, shape)| (name, (shape, bytes(shape)))).collect();
    let views = tensors
        .iter()
        .map(|(name, (shape, data))| (name.as_str(), TensorView::new(dtype, (*shape).clone(), data).unwrap()));
    fs::write(folder.path().join("model.safetensors"), serialize(views.collect::<Vec<_>>(), None).unwrap()).unwrap();
    folder
}

/// Bytes that a rank reads of parameters along one axis, with those of all of these parameters in the files.
#[derive(Default)]
struct Bytes {
    read: u64,
    of_all: u64,
}

impl Bytes {
    /// The part that was read.
    fn share(&self) -> f64 {
        self.read as f64 / self.of_all as f64
    }
}

/// Reads all parameters of a rank, compares them with the parts of the whole ones, and counts.
fn read(path: &Path, rank: usize, layout: Parallel) -> Vec<(ShardAxis, Bytes)> {
    let (source, whole) = (load(path).unwrap(), load(path).unwrap());
    let (shard, own) = Shard::of(&source.config, rank, layout).unwrap();
    let mut bytes: Vec<(ShardAxis, Bytes)> = Vec::new();
    for own in &ParamTable::new(&own).specs {
        let before = (source.tensors.bytes_read(), whole.tensors.bytes_read());
        let (part, all) = (shard.read(own, &*source.tensors).unwrap(), whole.tensors.read(&own.name).unwrap());
        assert!(part == *shard.slice(own, Cow::Borrowed(&all)), "{} of rank {rank}", own.name);
        let at = bytes.iter().position(|(axis, _)| *axis == own.shard).unwrap_or_else(|| {
            bytes.push((own.shard, Bytes::default()));
            bytes.len() - 1
        });
        bytes[at].1.read += source.tensors.bytes_read() - before.0;
        bytes[at].1.of_all += whole.tensors.bytes_read() - before.1;
    }
    bytes
}

#[test]
fn ranks_read_their_part_of_safetensors() {
    for dtype in [Dtype::F32, Dtype::BF16, Dtype::F16] {
        let folder = wide(dtype);
        for ranks in [2, 4] {
            for rank in 0..ranks {
                let mut all = Bytes::default();
                for (axis, bytes) in read(folder.path(), rank, Parallel::with_tp(ranks).unwrap()) {
                    if axis != ShardAxis::Replicated {
                        all.read += bytes.read;
                        all.of_all += bytes.of_all;
                    }
                }
                let share = all.share();
                assert!(share <= 1.0 / ranks as f64 + 0.05, "{dtype:?}: rank {rank} of {ranks} reads {share}");
                assert!(share > 0.2, "{dtype:?}: {share}");
            }
        }
    }
}

/// Whole blocks of columns; what begins within one is read with the rest of its row.
#[test]
fn ranks_read_their_blocks_of_other_files() {
    let folder = tempfile::tempdir().unwrap();
    let of_type = |dtype: GgmlDType| {
        let path = folder.path().join(format!("{dtype:?}.gguf"));
        write_wide(&path, move |name| if name.contains("norm") { GgmlDType::F32 } else { dtype });
        path
    };
    let fp8 = fp8();
    for (path, most) in [
        (of_type(GgmlDType::Q8_0), 0.5),
        (of_type(GgmlDType::F16), 0.5),
        (of_type(GgmlDType::Q4K), 1.0),
        (fp8.path().to_owned(), 0.6),
    ] {
        for rank in 0..2 {
            let all = read(&path, rank, Parallel::with_tp(2).unwrap());
            let (_, bytes) = all.iter().find(|(axis, _)| *axis == ShardAxis::Inputs).unwrap();
            assert!(bytes.share() <= most, "{}: rank {rank} reads {}", path.display(), bytes.share());
        }
    }
}

#[test]
fn ranks_read_what_they_hold_of_every_family() {
    for family in ["llama", "gemma3", "gpt_oss", "deepseek_v3", "lfm2", "qwen3_moe"] {
        for layout in ["tp=2", "tp=2,ep=2"] {
            let layout: Parallel = layout.parse().unwrap();
            let source = load(&golden(family)).unwrap();
            if layout.ep() > 1 && !source.config.has_experts() {
                continue;
            }
            (0..layout.replica()).for_each(|rank| drop(read(&golden(family), rank, layout)));
        }
    }
}
