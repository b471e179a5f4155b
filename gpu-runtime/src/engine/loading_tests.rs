//! Memory of a rank while it loads, and afterwards.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::thread;

use serde_json::{Map, json};
use tempfile::TempDir;
use trainyard_test_support::heap;

use super::*;
use crate::Dtype;
use crate::load::load;
use crate::plan::{Device, Host, LinkKind, Network, PlannedLayout, Workload, plan};

const HIDDEN: usize = 128;
const INNER: usize = 512;
/// Matrices of it are smaller than what is allocated in pages apart, which the counter does not see.
const VOCAB: usize = 1500;
const LAYERS: usize = 6;

/// A Llama that is large beside what an engine holds besides weights.
fn model() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let config = json!({
        "model_type": "llama", "vocab_size": VOCAB, "hidden_size": HIDDEN, "intermediate_size": INNER,
        "num_hidden_layers": LAYERS, "num_attention_heads": 4, "num_key_value_heads": 4, "max_position_embeddings": 64,
        "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false,
    });
    fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
    let mut header = Map::new();
    let mut end = 0;
    let mut add = |name: String, shape: &[usize]| {
        let start = end;
        end += 4 * shape.iter().product::<usize>();
        header.insert(name, json!({"dtype": "F32", "shape": shape, "data_offsets": [start, end]}));
    };
    for name in ["model.embed_tokens", "lm_head"] {
        add(format!("{name}.weight"), &[VOCAB, HIDDEN]);
    }
    add("model.norm.weight".into(), &[HIDDEN]);
    for layer in 0..LAYERS {
        let parts: [(&str, &[usize]); 9] = [
            ("input_layernorm", &[HIDDEN]),
            ("post_attention_layernorm", &[HIDDEN]),
            ("self_attn.q_proj", &[HIDDEN, HIDDEN]),
            ("self_attn.k_proj", &[HIDDEN, HIDDEN]),
            ("self_attn.v_proj", &[HIDDEN, HIDDEN]),
            ("self_attn.o_proj", &[HIDDEN, HIDDEN]),
            ("mlp.gate_proj", &[INNER, HIDDEN]),
            ("mlp.up_proj", &[INNER, HIDDEN]),
            ("mlp.down_proj", &[HIDDEN, INNER]),
        ];
        for (name, shape) in parts {
            add(format!("model.layers.{layer}.{name}.weight"), shape);
        }
    }
    let header = serde_json::to_vec(&header).unwrap();
    let mut file = fs::File::create(folder.path().join("model.safetensors")).unwrap();
    file.write_all(&(header.len() as u64).to_le_bytes()).unwrap();
    file.write_all(&header).unwrap();
    file.write_all(&vec![0; end]).unwrap();
    folder
}

/// Bytes that a rank's engine holds once it is loaded, and the maximum before.
fn loaded(path: &Path, rank: impl crate::collective::Collective + 'static, options: &EngineOptions) -> (usize, usize) {
    let backend = host_backend(&EngineOptions { threads: 1, ..options.clone() });
    let models = vec![("m".to_owned(), load(path).unwrap())];
    let options = options.of_rank();
    let before = heap::held();
    let (engine, most) = heap::peak(|| Engine::on_ranks(backend, models, options, Ranks::new(Arc::new(rank))).unwrap());
    let held = (heap::held() - before).unsigned_abs();
    drop(engine);
    (held, most)
}

#[test]
fn a_rank_holds_its_part_and_while_it_loads_one_tensor_more() {
    let folder = model();
    let config = load(folder.path()).unwrap().config;
    for (tp, dtype) in [(1, Dtype::F32), (2, Dtype::F32), (4, Dtype::F32), (2, Dtype::Bf16)] {
        let options = EngineOptions { parallel: Parallel::with_tp(tp).unwrap(), dtype, ..EngineOptions::default() };
        let layout = PlannedLayout { tp, ..PlannedLayout::default() };
        let device = Device::host(Host { memory_bytes: 1 << 40, flops: 1e11, bandwidth: 1e10 });
        let network = Network { per_node: tp, between: LinkKind::Nvlink };
        let work = Workload {
            dtype,
            blocks: std::collections::BTreeMap::new(),
            kernels: None,
            lora: None,
            microbatch_tokens: 1,
            microbatches: 1,
            context: 1,
            sequences: 1,
        };
        let planned = plan(&config, layout, &device, &network, &work).unwrap().memory.base_weights as f64;
        let measured: Vec<_> = thread::scope(|scope| {
            let (path, options) = (folder.path(), &options);
            let run = |rank| scope.spawn(move || loaded(path, rank, options));
            let running: Vec<_> = local_ranks(tp, LIMIT).into_iter().map(run).collect();
            running.into_iter().map(|rank| rank.join().unwrap()).collect()
        });
        // Of gate and up, which are one matrix, this rank's parts before they are packed.
        let parts = 4 * 2 * INNER / tp * HIDDEN;
        let rows = VOCAB.div_ceil(tp).next_multiple_of(32);
        for (rank, (held, most)) in measured.into_iter().enumerate() {
            // The largest tensor that it reads: rank 0 for its digest whole, others the rows of their tokens, and of down all, with its
            // bytes in the file.
            let tensor = 4 * HIDDEN * if rank == 0 { VOCAB } else { rows.max(2 * INNER) };
            let what = format!("rank {rank} of {tp}, {dtype:?}: {held} held, {most} at most, {planned} planned");
            // Transposes are made by the first backward pass, on processors that need them.
            assert!(held as f64 <= planned * 1.1, "{what}");
            assert!(dtype == Dtype::Bf16 || held as f64 >= planned * 0.9, "{what}");
            assert!(most <= held + tensor + parts, "{what}");
        }
    }
}
