//! Vision towers of Qwen's models: what is read, what makes a text model of one, and what is refused.

use std::fs;

use serde_json::{Value, json};

use super::{config_of, folder, golden, load, refusal};
use crate::config::RopeSections;

const FAMILY: &str = "vision/qwen3_vl";
const PREPROCESSOR: &str = "preprocessor_config.json";

#[test]
fn a_tower_is_read_with_its_preprocessor() {
    let config = load(&golden(FAMILY)).unwrap().config;
    let vision = config.vision.unwrap();
    assert_eq!((vision.hidden, vision.heads, vision.depth, vision.patch_dim), (32, 2, 3, 384));
    assert_eq!(([vision.positions.rows, vision.positions.columns], vision.merge, vision.out), ([4, 4], 2, 64));
    assert_eq!((vision.deepstack, vision.image_token, vision.placeholders), (vec![0, 1], 505, vec![505, 506]));
    assert_eq!(config.rope_sections, Some(RopeSections([6, 5, 5])));
    assert!(vision.preprocessor.contains("Qwen2VLImageProcessor"));
    let hybrid = load(&golden("vision/qwen3_5_vl")).unwrap().config;
    assert_eq!(hybrid.vision.unwrap().deepstack, Vec::<usize>::new());
}

#[test]
fn a_folder_without_a_preprocessor_has_a_text_model() {
    let source = load(folder(FAMILY, &config_of(FAMILY)).path()).unwrap();
    assert_eq!(source.config.vision, None);
    assert_eq!(source.config.rope_sections, Some(RopeSections([6, 5, 5])));
}

#[test]
fn settings_that_do_not_fit_are_refused_by_name() {
    let cases: [(&str, &str, Value, &str); 11] = [
        ("vision_config", "out_hidden_size", json!(63), "out_hidden_size is 63, expected 64"),
        ("vision_config", "num_heads", json!(3), "hidden_size 32 must be a multiple of the number of heads, 3"),
        ("vision_config", "num_position_embeddings", json!(15), "num_position_embeddings is 15, expected a square"),
        ("vision_config", "deepstack_visual_indexes", json!([1, 0]), "deepstack_visual_indexes"),
        ("vision_config", "deepstack_visual_indexes", json!([3]), "rising blocks below 3"),
        ("vision_config", "hidden_act", json!("relu"), "vision_config.hidden_act \"relu\""),
        ("vision_config", "in_channels", json!(1), "in_channels 1"),
        (
            "vision_config",
            "spatial_merge_size",
            json!(1 << 20),
            "the side of a token in patches is 1048576, expected 1 to 8",
        ),
        ("vision_config", "hidden_size", json!(1 << 28), "the tower's width is 268435456, expected 1 to 65536"),
        ("vision_config", "patch_size", json!(1 << 20), "1048576 pixels a side, expected 1 to 4 and 1 to 64"),
        ("text_config", "rope_parameters", json!({"mrope_section": [17, 0, 0]}), "at most 16 frequencies"),
    ];
    for (object, key, value, expected) in cases {
        let mut config = config_of(FAMILY);
        config[object][key] = value;
        let error = refusal(folder(FAMILY, &config).path());
        assert!(error.contains(expected), "{key}: {error}");
    }
    let mut config = config_of(FAMILY);
    config.insert("image_token_id".into(), json!(512));
    assert!(refusal(folder(FAMILY, &config).path()).contains("image_token_id is 512, outside the vocabulary of 512"));
}

#[test]
fn a_preprocessor_of_other_patches_is_refused() {
    let folder = folder(FAMILY, &config_of(FAMILY));
    let own = fs::read_to_string(golden(FAMILY).join(PREPROCESSOR)).unwrap();
    let other = own.replace("\"patch_size\": 8", "\"patch_size\": 16");
    assert_ne!(own, other);
    fs::write(folder.path().join(PREPROCESSOR), other).unwrap();
    let error = refusal(folder.path());
    assert!(error.contains("patches have 1536 values") && error.contains("expected 384"), "{error}");
    fs::write(folder.path().join(PREPROCESSOR), "[]").unwrap();
    assert!(refusal(folder.path()).contains("expected a JSON object"));
}
