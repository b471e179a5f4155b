//! Files that are written have the tensors of those that were read.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use safetensors::tensor::{SafeTensors, TensorView};
use safetensors::{Dtype, serialize};
use tempfile::TempDir;

use super::{NamedTensor, kept_tensors, stored_tensors, write_tensors};
use crate::config::{ExpertStorage, FusedRows, ModelConfig, ModelSource, Rename, Spelling};
use crate::load::load;
use crate::load::tests::families;
use crate::model::ParamTable;

const FILE: &str = "model.safetensors";

fn golden(family: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden").join(family)
}

/// A file's tensors: extents and elements by name.
type Tensors = BTreeMap<String, (Vec<usize>, Vec<f32>)>;

fn read(folder: &Path) -> Tensors {
    let bytes = fs::read(folder.join(FILE)).unwrap();
    let floats = |view: &TensorView<'_>| view.data().as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    file.tensors().into_iter().map(|(name, view)| (name, (view.shape().to_vec(), floats(&view)))).collect()
}

fn write(folder: &Path, tensors: &Tensors) {
    let bytes = |values: &Vec<f32>| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let data: Vec<_> = tensors.iter().map(|(name, (shape, values))| (name, shape.clone(), bytes(values))).collect();
    let view = |(name, shape, data)| (name, TensorView::new(Dtype::F32, shape, data).unwrap());
    let views: BTreeMap<_, _> = data.iter().map(|(name, shape, data)| view((*name, shape.clone(), data))).collect();
    fs::write(folder.join(FILE), serialize(views, None).unwrap()).unwrap();
}

fn parameters(source: &ModelSource) -> Vec<Vec<f32>> {
    ParamTable::new(&source.config).specs.iter().map(|spec| source.tensors.read(&spec.name).unwrap()).collect()
}

/// Writes a model's parameters as files of `c` hold them.
fn stored(c: &ModelConfig, source: &ModelSource) -> Tensors {
    let (folder, values) = (tempfile::tempdir().unwrap(), parameters(source));
    let stored = stored_tensors(c, &ParamTable::new(c).specs, &values);
    let named: Vec<NamedTensor<'_, _>> =
        stored.iter().map(|(name, shape, v)| (name.clone(), shape.clone(), v)).collect();
    write_tensors(&folder.path().join(FILE), &named).unwrap();
    read(folder.path())
}

/// Writes a model's parameters, and what else belongs to it, as a checkpoint has them.
fn whole(source: ModelSource) -> Tensors {
    let (folder, values) = (tempfile::tempdir().unwrap(), parameters(&source));
    let ModelSource { config, tensors, .. } = source;
    let tensors = Mutex::new(tensors);
    let specs = ParamTable::new(&config).specs;
    let mut stored = stored_tensors(&config, &specs, &values);
    stored.extend(kept_tensors(&config, &tensors));
    let named: Vec<NamedTensor<'_, _>> =
        stored.iter().map(|(name, shape, v)| (name.clone(), shape.clone(), v)).collect();
    write_tensors(&folder.path().join(FILE), &named).unwrap();
    read(folder.path())
}

#[test]
fn every_family_is_written_as_it_was_read() {
    // These have tensors that no run trains.
    let frozen = [
        "indexed/deepseek_v32",
        "indexed/glm_moe_dsa",
        "vision/qwen3_vl",
        "vision/qwen3_vl_moe",
        "vision/qwen3_5_vl",
        "vision/kimi_k25",
    ];
    for family in families().iter().map(String::as_str).chain(frozen) {
        let source = load(&golden(family)).unwrap();
        let (found, mut expected) = (whole(source), read(&golden(family)));
        let source = load(&golden(family)).unwrap();
        // What the model does not use is not written.
        expected.retain(|name, _| source.config.spelling.canonical(name).is_some());
        assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{family}");
        for (name, (shape, values)) in expected {
            assert_eq!(found[&name].0, shape, "{family} {name}");
            assert!(found[&name].1 == values, "{family} {name}");
        }
    }
}

/// A golden model in another form, written by the form's description.
fn in_form(family: &str, change: impl Fn(&mut ModelConfig)) -> (TempDir, ModelSource, ModelConfig) {
    let source = load(&golden(family)).unwrap();
    let mut config = source.config.clone();
    change(&mut config);
    let folder = tempfile::tempdir().unwrap();
    fs::copy(golden(family).join("config.json"), folder.path().join("config.json")).unwrap();
    write(folder.path(), &stored(&config, &source));
    (folder, source, config)
}

fn with_storage(storage: ExpertStorage) -> impl Fn(&mut ModelConfig) {
    move |config| {
        config.blocks.iter_mut().filter_map(|b| b.experts.as_mut()).for_each(|experts| experts.storage = storage)
    }
}

/// Files of other programs stack experts of families whose own files have them apart, and reverse.
#[test]
fn experts_are_found_however_they_are_stored() {
    for family in families() {
        let own = load(&golden(&family)).unwrap().config;
        let storages: Vec<_> = own.blocks.iter().filter_map(|b| b.experts.as_ref()).map(|e| e.storage).collect();
        if storages.is_empty() || storages.contains(&ExpertStorage::Interleaved) {
            continue;
        }
        for storage in [ExpertStorage::Apart, ExpertStorage::Rows, ExpertStorage::Columns] {
            let (folder, source, _) = in_form(&family, with_storage(storage));
            let names = read(folder.path());
            let is_apart = names.keys().any(|name| name.contains("experts.0.up_proj"));
            assert_eq!(is_apart, storage == ExpertStorage::Apart, "{family} {storage:?}");
            let found = load(folder.path()).unwrap();
            assert_eq!(found.config, source.config);
            assert_eq!(found.tensors.names(), source.tensors.names(), "{family} {storage:?}");
            assert!(parameters(&found) == parameters(&source), "{family} {storage:?}");
            for name in found.tensors.names() {
                let (all, len) =
                    (found.tensors.read(&name).unwrap(), found.tensors.shape(&name).unwrap().iter().product());
                for part in [0..len, len / 4..len / 2, len / 2..len] {
                    assert!(
                        found.tensors.read_part(&name, part.clone()).unwrap() == all[part.clone()],
                        "{name} {part:?}"
                    );
                }
                let error = found.tensors.read_part(&name, 0..len + 1).unwrap_err().to_string();
                assert!(error.contains(&name), "{error}");
            }
        }
    }
}

/// The layouts of transformers 5, from their description: gate rows before up rows, and for some families transposed.
#[test]
fn stacks_are_those_of_their_format() {
    let (folder, source, _) = in_form("qwen3_moe", with_storage(ExpertStorage::Rows));
    let rows = read(folder.path());
    let (folder, ..) = in_form("qwen3_moe", with_storage(ExpertStorage::Columns));
    let columns = read(folder.path());
    let name = |part: &str| format!("model.layers.1.mlp.experts.{part}");
    assert_eq!((&rows[&name("gate_up_proj")].0, &rows[&name("down_proj")].0), (&vec![8, 96, 64], &vec![8, 64, 48]));
    assert_eq!(
        (&columns[&name("gate_up_proj")].0, &columns[&name("down_proj")].0),
        (&vec![8, 64, 96], &vec![8, 48, 64])
    );
    let of_expert = |part: &str| source.tensors.read(&name(&format!("5.{part}.weight"))).unwrap();
    let (gate, up, down) = (of_expert("gate_proj"), of_expert("up_proj"), of_expert("down_proj"));
    let [rows_in, columns_in] = [&rows, &columns].map(|file| &file[&name("gate_up_proj")].1);
    let [rows_out, columns_out] = [&rows, &columns].map(|file| &file[&name("down_proj")].1);
    for (output, input) in (0..48).flat_map(|output| (0..64).map(move |input| (output, input))) {
        let at = output * 64 + input;
        assert_eq!((rows_in[5 * 96 * 64 + at], rows_in[5 * 96 * 64 + 48 * 64 + at]), (gate[at], up[at]));
        let column = |output: usize| columns_in[5 * 96 * 64 + input * 96 + output];
        assert_eq!((column(output), column(48 + output)), (gate[at], up[at]));
        // Of down, `input` counts its outputs.
        let at = input * 48 + output;
        assert_eq!((rows_out[5 * 48 * 64 + at], columns_out[5 * 48 * 64 + output * 64 + input]), (down[at], down[at]));
    }
}

#[test]
fn stacks_of_other_extents_are_refused_by_name() {
    let refusal = |change: &dyn Fn(&mut Tensors)| {
        let (folder, ..) = in_form("qwen3_moe", with_storage(ExpertStorage::Rows));
        let mut tensors = read(folder.path());
        change(&mut tensors);
        write(folder.path(), &tensors);
        load(folder.path()).err().unwrap().to_string()
    };
    let [gate_up, down] = ["gate_up_proj", "down_proj"].map(|part| format!("model.layers.0.mlp.experts.{part}"));
    assert_eq!(refusal(&|tensors| drop(tensors.remove(&down))), format!("tensor {down} is missing"));
    let found = refusal(&|tensors| drop(tensors.insert(gate_up.clone(), (vec![8, 95, 64], vec![0.0; 8 * 95 * 64]))));
    assert_eq!(found, format!("tensor {gate_up} has shape [8, 95, 64], expected [8, 96, 64]"));
    // One of both transposed.
    let found = refusal(&|tensors| tensors.get_mut(&gate_up).unwrap().0 = vec![8, 64, 96]);
    assert_eq!(found, format!("tensor {gate_up} has shape [8, 64, 96], expected [8, 96, 64]"));
    let found = refusal(&|tensors| drop(tensors.remove(&gate_up)));
    assert_eq!(found, "tensor model.layers.0.mlp.experts.0.gate_proj.weight is missing");
}

/// A spelling with all that descriptions offer.
fn another() -> Spelling {
    const BLOCK: &[Rename] = &[
        Rename::new("self_attn.o_proj.", "attn.out."),
        Rename::new("self_attn.", "attn."),
        Rename::new("mlp.down_proj.", "feed_forward.w2."),
        Rename::new("mlp.", "feed_forward."),
        Rename::new("input_layernorm.", "norm."),
    ];
    const PREFIXES: &[Rename] = &[
        Rename::new("lm_head.", "backbone.head."),
        Rename::new("model.embed_tokens.", "backbone.embeddings."),
        Rename::new("model.", "backbone."),
    ];
    Spelling {
        prefixes: PREFIXES,
        blocks: vec![BLOCK; 2],
        fused: &[
            FusedRows {
                module: "self_attn.qkv_proj",
                parts: &["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
            },
            FusedRows { module: "mlp.gate_up_proj", parts: &["mlp.gate_proj", "mlp.up_proj"] },
        ],
        unused: &["mtp."],
        kept: &[],
        kept_in_blocks: &[],
        block_limit: Some(2),
    }
}

#[test]
fn any_spelling_is_read_as_it_is_written() {
    for family in ["llama", "qwen2", "qwen3_moe"] {
        let (folder, source, config) = in_form(family, |config| config.spelling = another());
        let file = read(folder.path());
        assert!(
            file.contains_key("backbone.layers.1.attn.qkv_proj.weight")
                && file.contains_key("backbone.layers.0.norm.weight")
        );
        assert_eq!(file.contains_key("backbone.layers.1.attn.qkv_proj.bias"), family == "qwen2");
        assert_eq!(file.contains_key("backbone.layers.1.feed_forward.gate_up_proj.weight"), family != "qwen3_moe");
        assert!(file.keys().all(|name| name.starts_with("backbone.") && !name.contains("self_attn")), "{file:?}");
        let paths = [folder.path().join(FILE)];
        let tensors = crate::load::tests::open(&paths, &config).unwrap();
        assert_eq!(tensors.names(), source.tensors.names());
        for spec in ParamTable::new(&config).specs {
            let all = source.tensors.read(&spec.name).unwrap();
            assert_eq!(tensors.shape(&spec.name), Some(spec.shape));
            assert!(tensors.read(&spec.name).unwrap() == all, "{}", spec.name);
            let len = all.len();
            for part in [0..len / 2, len / 2..len, len / 3..len / 2] {
                assert!(tensors.read_part(&spec.name, part.clone()).unwrap() == all[part], "{}", spec.name);
            }
            assert!(tensors.read_part(&spec.name, 1..len + 1).is_err());
        }
    }
}

#[test]
fn fused_rows_of_other_extents_are_refused_by_their_names_in_files() {
    let refusal = |change: &dyn Fn(&mut Tensors)| {
        let (folder, _, config) = in_form("llama", |config| config.spelling = another());
        let mut tensors = read(folder.path());
        change(&mut tensors);
        write(folder.path(), &tensors);
        crate::load::tests::open(&[folder.path().join(FILE)], &config).err().unwrap().to_string()
    };
    let qkv = "backbone.layers.0.attn.qkv_proj.weight";
    assert_eq!(refusal(&|tensors| drop(tensors.remove(qkv))), format!("tensor {qkv} is missing"));
    let found = refusal(&|tensors| drop(tensors.insert(qkv.to_owned(), (vec![96, 64], vec![0.0; 96 * 64]))));
    assert_eq!(found, format!("tensor {qkv} has shape [96, 64], expected [128, 64]"));
    let [norm, missing] = ["backbone.layers.1.norm.weight", "tensor backbone.layers.1.norm.weight is missing"];
    assert_eq!(refusal(&|tensors| drop(tensors.remove(norm))), missing);
}
