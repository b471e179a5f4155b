//! MoonViT, the tower of Kimi-K2.5: both spellings of its settings, what makes a text model of one, and what is refused.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::{config_of, folder, golden, load, refusal};
use crate::config::{ModelConfig, PatchRotation, PositionGrid, Resampling};
use crate::load::describe_json;

const FAMILY: &str = "vision/kimi_k25";
const PREPROCESSOR: &str = "preprocessor_config.json";

/// A folder with the golden model's weights and preprocessor, and this configuration.
fn with_preprocessor(config: &Map<String, Value>) -> TempDir {
    let folder = folder(FAMILY, config);
    fs::copy(golden(FAMILY).join(PREPROCESSOR), folder.path().join(PREPROCESSOR)).unwrap();
    folder
}

fn read(folder: &Path) -> ModelConfig {
    load(folder).unwrap().config
}

/// The golden model's configuration with the keys of released files.
fn released() -> Map<String, Value> {
    let mut config = config_of(FAMILY);
    let settings = json!({
        "init_pos_emb_height": 5, "init_pos_emb_width": 5, "init_pos_emb_time": 4, "merge_kernel_size": [2, 2],
        "merge_type": "sd2_tpool", "mm_hidden_size": 32, "mm_projector_type": "patchmerger", "model_type": "", "patch_size": 8,
        "pos_emb_type": "divided_fixed", "projector_hidden_act": "gelu", "projector_ln_eps": 1e-5, "text_hidden_size": 64,
        "video_attn_type": "spatial_temporal", "vt_hidden_size": 32, "vt_intermediate_size": 48, "vt_num_attention_heads": 2,
        "vt_num_hidden_layers": 2,
    });
    config.insert("vision_config".into(), settings);
    for key in ["image_token_id", "video_token_id", "projection_hidden_size", "projection_layer_norm_eps"] {
        config.remove(key);
    }
    config.insert("media_placeholder_token_id".into(), json!(505));
    config
}

#[test]
fn a_tower_is_read_with_its_preprocessor() {
    let config = read(&golden(FAMILY));
    assert_eq!((config.arch, config.rope_sections), ("kimi_k25", None));
    let vision = config.vision.unwrap();
    assert_eq!((vision.hidden, vision.heads, vision.depth, vision.patch_dim), (32, 2, 2, 192));
    let grid = PositionGrid { rows: 5, columns: 5, is_list: false, resampling: Resampling::Bicubic };
    assert_eq!((vision.positions, vision.rotation), (grid, PatchRotation::Neighbours));
    assert_eq!((vision.merge, vision.out, vision.image_token), (2, 64, 505));
    assert_eq!((vision.placeholders, vision.deepstack), (vec![505, 506], vec![]));
    assert!(vision.preprocessor.contains("Kimi_K25ImageProcessor"));
}

#[test]
fn keys_of_released_files_describe_the_same_tower() {
    let found = read(with_preprocessor(&released()).path()).vision.unwrap();
    let mut expected = read(&golden(FAMILY)).vision.unwrap();
    // They have no token for videos.
    expected.placeholders = vec![505];
    assert_eq!(found, expected);
    // Nor is there one that transformers numbers behind the vocabulary.
    let mut config = config_of(FAMILY);
    config.insert("video_token_id".into(), json!(512));
    assert_eq!(read(with_preprocessor(&config).path()).vision.unwrap(), expected);
}

/// The tower of Kimi-K2.5 and K2.6 has 0.4 billion parameters.
#[test]
fn the_released_tower_has_the_tensors_of_its_files() {
    let mut config = released();
    let own = json!({
        "init_pos_emb_height": 64, "init_pos_emb_width": 64, "patch_size": 14, "text_hidden_size": 64, "vt_hidden_size": 1152,
        "mm_hidden_size": 1152, "vt_intermediate_size": 4304, "vt_num_attention_heads": 16, "vt_num_hidden_layers": 27,
    });
    config["vision_config"].as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
    let config = describe_json("config.json", &json!(config).to_string()).unwrap();
    let vision = config.vision.as_ref().unwrap();
    let tensors = vision.tensors();
    let of = |name: &str| tensors.iter().find(|tensor| tensor.name == name).unwrap().shape.clone();
    assert_eq!(tensors.len(), 3 + 27 * 12 + 2 + 6);
    assert_eq!(of("vision_tower.patch_embed.pos_emb.weight"), [64, 64, 1152]);
    assert_eq!(of("vision_tower.patch_embed.proj.weight"), [1152, 588]);
    assert_eq!(of("vision_tower.encoder.blocks.26.mlp.fc0.weight"), [4304, 1152]);
    assert_eq!(of("mm_projector.proj.0.weight"), [4608, 4608]);
    let elements: usize = tensors.iter().map(crate::config::VisionTensor::elements).sum();
    // Without the projector, whose output is the text model's width.
    let projector: usize =
        tensors.iter().filter(|tensor| tensor.name.starts_with("mm_")).map(crate::config::VisionTensor::elements).sum();
    assert!((elements - projector).abs_diff(417_000_000) < 2_000_000, "{}", elements - projector);
    assert_eq!(vision.most_patches(1 << 20), 36 * 498);
    // Matrices in bf16, norms, biases and positions in f32.
    let narrow: usize = tensors.iter().filter(|t| t.shape.len() == 2).map(crate::config::VisionTensor::elements).sum();
    assert_eq!(config.tower_bytes(2), 4 * elements - 2 * narrow);
}

#[test]
fn a_folder_without_a_preprocessor_has_a_text_model() {
    assert_eq!(read(folder(FAMILY, &config_of(FAMILY)).path()).vision, None);
    // So has one whose files have no tower.
    assert_eq!(read(&golden("kimi_k25")).vision, None);
}

#[test]
fn settings_that_do_not_fit_are_refused_by_name() {
    let cases: [(&str, Value, &str); 12] = [
        ("vt_num_attention_heads", json!(3), "hidden_size 32 must be a multiple of the number of heads, 3"),
        ("vt_hidden_size", Value::Null, "vt_hidden_size is missing"),
        ("vt_num_hidden_layers", json!(5000), "the number of its blocks is 5000, expected 1 to 4096"),
        ("mm_hidden_size", json!(33), "mm_hidden_size is 33, expected 32"),
        ("text_hidden_size", json!(65), "text_hidden_size is 65, expected 64"),
        ("merge_kernel_size", json!([2, 1]), "merge_kernel_size is [2,1], expected two equal sides"),
        ("merge_kernel_size", json!(9), "the side of a token in patches is 9, expected 1 to 8"),
        ("merge_type", json!("sd2"), "vision_config.merge_type \"sd2\" (supported: sd2_tpool)"),
        ("mm_projector_type", json!("identity"), "mm_projector_type \"identity\""),
        ("pos_emb_type", json!("learned"), "pos_emb_type \"learned\""),
        ("rope_parameters", json!({"rope_type": "yarn"}), "rope_type \"yarn\" (supported: axial)"),
        ("rope_parameters", json!({"rope_theta": 0}), "rope_theta is 0"),
    ];
    for (key, value, expected) in cases {
        let mut config = released();
        config["vision_config"][key] = value;
        let error = refusal(with_preprocessor(&config).path());
        assert!(error.contains(expected), "{key}: {error}");
    }
    let refused = |change: &dyn Fn(&mut Map<String, Value>)| {
        let mut config = released();
        change(&mut config);
        refusal(with_preprocessor(&config).path())
    };
    let error = refused(&|config| drop(config["vision_config"].as_object_mut().unwrap().remove("vt_hidden_size")));
    assert!(error.contains("vision_config: vt_hidden_size (or hidden_size) is missing"), "{error}");
    let error = refused(&|config| drop(config.remove("media_placeholder_token_id")));
    assert!(error.contains("media_placeholder_token_id (or image_token_id) is missing"), "{error}");
    let error = refused(&|config| drop(config.insert("media_placeholder_token_id".into(), json!(512))));
    assert!(error.contains("media_placeholder_token_id is 512, outside the vocabulary of 512"), "{error}");
    let error = refused(&|config| config["vision_config"]["init_pos_emb_height"] = json!(25));
    assert!(error.contains("pos_emb.weight has shape [5, 5, 32], expected [25, 5, 32]"), "{error}");
}

#[test]
fn a_preprocessor_of_other_patches_is_refused() {
    let folder = with_preprocessor(&released());
    let own = fs::read_to_string(golden(FAMILY).join(PREPROCESSOR)).unwrap();
    fs::write(folder.path().join(PREPROCESSOR), own.replace("\"patch_size\": 8", "\"patch_size\": 14")).unwrap();
    let error = refusal(folder.path());
    assert!(error.contains("patches have 588 values") && error.contains("expected 192"), "{error}");
}
