//! Models with images against reference numbers from PyTorch (`tests/golden/README.md`), and independence of neighbours.

use trainyard_images::{Patches, Preprocessor, RgbImage, Size};

use super::golden::{Golden, adapter_training, cpu, full_parameter_training, logprobs, lora_gradients, root, tensors};
use crate::backend::check::{HostAccess, assert_close};
use crate::backend::cpu::{Cpu, Isa};
use crate::backend::reference::Reference;
use crate::backend::{Dtype, Passes};
use crate::load::load;
use crate::vision::{ImageEmbedding, Tower};

pub(super) const FAMILIES: [&str; 4] = ["qwen3_vl", "qwen3_vl_moe", "qwen3_5_vl", "kimi_k25"];

pub(super) fn folder(family: &str) -> String {
    format!("vision/{family}")
}

fn values<B: HostAccess>(b: &B, embedding: &ImageEmbedding<B>) -> Vec<Vec<f32>> {
    std::iter::once(&embedding.rows).chain(&embedding.deepstack).map(|rows| b.values(rows)).collect()
}

pub(super) fn embeddings<B: HostAccess>(family: &str, backend: B) {
    let expected = tensors(&root().join(folder(family)).join("vision.safetensors"));
    let g = Golden::open(&folder(family), backend);
    assert_eq!(g.images.len(), 3);
    for (name, image) in &g.images {
        for (at, found) in values(&g.backend, &image.embedding).into_iter().enumerate() {
            let key = at.checked_sub(1).map_or(format!("{name}.embeddings"), |k| format!("{name}.deepstack.{k}"));
            assert_close(&key, &vec![("rows", found)], &vec![("rows", expected[&key].clone())], 2e-5);
        }
        let features = expected.keys().filter(|key| key.starts_with(&format!("{name}.deepstack"))).count();
        assert_eq!(image.embedding.deepstack.len(), features, "{family}");
    }
}

#[test]
fn embeddings_of_images() {
    for family in FAMILIES {
        for isa in Isa::available() {
            embeddings(family, cpu(isa));
        }
        embeddings(family, Reference);
    }
}

#[test]
fn logprobs_of_models_with_images() {
    for family in FAMILIES {
        logprobs(&Golden::open(&folder(family), cpu(Isa::detect())));
        logprobs(&Golden::open(&folder(family), Reference));
    }
}

#[test]
fn gradients_of_models_with_images() {
    for family in FAMILIES {
        lora_gradients(&Golden::open(&folder(family), cpu(Isa::detect())), &["cross_entropy", "ppo"]);
        lora_gradients(&Golden::open(&folder(family), Reference), &["cross_entropy"]);
        adapter_training(&Golden::open(&folder(family), cpu(Isa::detect())));
    }
}

#[test]
fn all_parameters_of_models_with_images() {
    for family in FAMILIES {
        full_parameter_training(&Golden::open(&folder(family), cpu(Isa::detect())));
    }
}

/// In a pass with others, in another order, and several times, an image has the bits that it has alone.
#[test]
fn an_image_does_not_depend_on_its_neighbours() {
    for family in FAMILIES {
        let source = load(&root().join(folder(family))).unwrap();
        let images = Golden::open(&folder(family), cpu(Isa::detect())).images;
        let patches: Vec<&Patches> = images.values().map(|image| &*image.patches).collect();
        for isa in Isa::available() {
            let b = Cpu::with_isa(2, isa).with_dtype(Dtype::Bf16);
            let vision = source.config.vision.as_ref().unwrap();
            let tower = Tower::load(&b, vision, &*source.tensors, &mut |_, _| {}).unwrap();
            let alone: Vec<_> = patches.iter().map(|image| values(&b, &tower.embed(&b, &[image])[0])).collect();
            let order = [2, 0, 0, 1, 2, 0];
            let together = tower.embed(&b, &order.map(|at| patches[at]));
            for (at, embedding) in order.into_iter().zip(&together) {
                assert_eq!(values(&b, embedding), alone[at], "{family}, {}", isa.name());
            }
        }
    }
}

/// A pass over a larger image than those of the folder takes what is planned for it, and not a small part of that.
#[test]
fn a_pass_takes_at_most_the_planned_memory() {
    // Limits of preprocessors, and those that allow so large an image.
    let qwen: &[_] = &[("\"longest_edge\": 3072", "\"longest_edge\": 65536")];
    let kimi: &[_] = &[
        ("\"max_patches\": 32", "\"max_patches\": 1024"),
        ("\"max_height\": 16", "\"max_height\": 32"),
        ("\"max_width\": 16", "\"max_width\": 32"),
    ];
    for (family, limits) in [("qwen3_vl", qwen), ("kimi_k25", kimi)] {
        let source = load(&root().join(folder(family))).unwrap();
        let vision = source.config.vision.as_ref().unwrap();
        let settings = limits.iter().fold(vision.preprocessor.clone(), |text, (from, to)| text.replace(from, to));
        let size = Size::new(256, 256);
        let pixels = RgbImage::new(size, (0..256 * 256 * 3).map(|at| (at * 7 % 251) as u8).collect()).unwrap();
        let image = Preprocessor::from_json(&settings).unwrap().patches(&pixels, size).unwrap();
        assert_eq!(image.layout().patches(), 1024);
        let b = cpu(Isa::detect());
        let tower = Tower::load(&b, vision, &*source.tensors, &mut |_, _| {}).unwrap();
        let planned = source.config.tower_bytes(Dtype::F32.bytes());
        assert!(tower.bytes() >= planned && tower.bytes() < 2 * planned, "{} of {planned}", tower.bytes());
        let held = b.buffer_bytes().used;
        b.reset_peak();
        drop(tower.embed(&b, &[&image]));
        let (taken, planned) = (b.buffer_bytes().peak - held, vision.pass_elements(1024) * size_of::<f32>());
        assert!(taken <= planned && 4 * taken > planned, "{family}: {taken} of {planned}");
    }
}
