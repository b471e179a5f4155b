//! Files that are read, and files that are refused.

#![allow(clippy::unwrap_used, reason = "tests")]

use serde_json::json;

use super::*;
use crate::Size;

fn qwen_file() -> Value {
    json!({
        "image_processor_type": "Qwen2VLImageProcessorFast",
        "processor_class": "Qwen3VLProcessor",
        "size": {"longest_edge": 16_777_216, "shortest_edge": 65_536},
        "patch_size": 16,
        "temporal_patch_size": 2,
        "merge_size": 2,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
    })
}

fn kimi_file() -> Value {
    json!({
        "auto_map": {"AutoImageProcessor": "kimi_k25_vision_processing.KimiK25VisionProcessor"},
        "media_proc_cfg": {
            "in_patch_limit": 16_384,
            "patch_size": 14,
            "image_mean": [0.5, 0.5, 0.5],
            "image_std": [0.5, 0.5, 0.5],
            "merge_kernel_size": 2,
            "fixed_output_tokens": null,
            "patch_limit_on_one_side": 512,
            "in_patch_limit_each_frame": 4096,
            "in_patch_limit_video": null,
            "sample_fps": 2.0,
            "max_num_frames_each_video": null,
            "temporal_merge_kernel_size": 4,
            "timestamp_mode": "hh:mm:ss.fff",
            "config_type": "media_proc.processors.moonvit.MoonViTMediaProcessorConfig",
        },
    })
}

fn tokens(file: &Value) -> usize {
    let preprocessor = read(&file.to_string()).unwrap();
    preprocessor.layout(Size::new(1920, 1080)).unwrap().tokens()
}

/// Reads a file with some settings changed, and returns the text of the refusal.
fn message(mut file: Value, changes: Value) -> String {
    file.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    read(&file.to_string()).unwrap_err().to_string().replace("preprocessor_config.json: ", "")
}

#[test]
fn files_of_both_families_are_read() {
    assert_eq!(tokens(&qwen_file()), 60 * 34);
    assert_eq!(tokens(&kimi_file()), 69 * 39);
    let transformers = json!({
        "image_processor_type": "Kimi_K25ImageProcessor", "max_patches": 16_384, "merge_size": 2, "patch_size": 14,
        "size": {"max_height": 512, "max_width": 512}, "image_mean": 0.5, "image_std": 0.5, "do_pad": null,
    });
    assert_eq!(read(&transformers.to_string()), read(&kimi_file().to_string()));
}

#[test]
fn older_names_of_the_range_win() {
    let mut file = qwen_file();
    file["min_pixels"] = json!(1024);
    file["max_pixels"] = json!(1024 * 100);
    assert!(tokens(&file) <= 100);
}

#[test]
fn missing_settings_have_the_defaults_of_the_reference() {
    let file = json!({"image_processor_type": "Qwen2VLImageProcessor"});
    // 1,003,520 pixels in tokens of 28 × 28.
    assert_eq!(tokens(&file), 47 * 26);
}

#[test]
fn settings_that_would_change_numbers_are_refused_by_name() {
    let qwen = |changes| message(qwen_file(), changes);
    assert_eq!(qwen(json!({"do_resize": false})), "`do_resize`: expected true, found false");
    assert_eq!(qwen(json!({"do_normalize": null})), "`do_normalize`: expected true, found null");
    assert_eq!(qwen(json!({"do_center_crop": true})), "`do_center_crop`: expected false, found true");
    assert_eq!(qwen(json!({"resample": 2})), "`resample`: expected 3 (bicubic), found 2");
    assert_eq!(
        qwen(json!({"crop_size": {"height": 8}})),
        "`crop_size`: expected no such setting, found {\"height\":8}"
    );
    let size = json!({"size": {"shortest_edge": 1, "longest_edge": 2, "height": 3}});
    assert_eq!(qwen(size), "`size.height`: expected no such setting, found 3");
    let mut kimi = kimi_file();
    kimi["media_proc_cfg"]["fixed_output_tokens"] = json!(64);
    let fixed = "`media_proc_cfg.fixed_output_tokens`: expected no such setting, found 64";
    assert_eq!(message(kimi, json!({})), fixed);
    assert_eq!(message(kimi_file(), json!({"patch_size": 14})), "`patch_size`: expected no such setting, found 14");
}

#[test]
fn values_outside_their_range_are_refused() {
    let qwen = |changes| message(qwen_file(), changes);
    assert_eq!(qwen(json!({"patch_size": 0})), "`patch_size`: expected a whole number from 1 to 64, found 0");
    assert_eq!(qwen(json!({"merge_size": 2.5})), "`merge_size`: expected a whole number from 1 to 8, found 2.5");
    assert!(qwen(json!({"size": {"shortest_edge": 5}})).starts_with("`size.longest_edge`: expected a whole number"));
    assert!(qwen(json!({"size": 448})).starts_with("`size`: expected an object, found 448"));
    assert!(qwen(json!({"image_std": [0.5, 0.0, 0.5]})).starts_with("`image_std`: expected three numbers"));
    assert!(qwen(json!({"image_mean": [0.5, 0.5]})).starts_with("`image_mean`: expected three numbers"));
    assert!(qwen(json!({"rescale_factor": "x"})).starts_with("`rescale_factor`: expected a number"));
    let range = "`size`: expected a minimum of at most 9 pixels, the maximum, found 65536";
    assert_eq!(qwen(json!({"max_pixels": 9})), range);
    let type_ = "`image_processor_type`: expected Qwen2VLImageProcessor or Kimi_K25ImageProcessor, found \"SigLIP\"";
    assert_eq!(qwen(json!({"image_processor_type": "SigLIP"})), type_);
    let sides =
        json!({"image_processor_type": "Kimi_K25ImageProcessor", "size": {"max_height": 512, "max_width": 256}});
    assert_eq!(message(sides, json!({})), "`size.max_width`: expected 512 as in `max_height`, found 256");
    assert_eq!(read("[]").unwrap_err().to_string(), "preprocessor_config.json: expected a JSON object");
    assert!(read("{").is_err());
}
