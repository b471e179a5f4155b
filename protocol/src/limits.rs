//! Limits that more than one crate enforces or reports.

/// `ttl_seconds` of a checkpoint: one hour at least.
pub const MIN_TTL_SECONDS: i64 = 3_600;
/// `ttl_seconds` of a checkpoint: ten years at most.
pub const MAX_TTL_SECONDS: i64 = 315_360_000;
/// Samples that one request may ask for.
pub const MAX_NUM_SAMPLES: u32 = 1_024;
/// Candidates per position that one request may ask for.
pub const MAX_TOPK_LOGPROBS: u32 = 1_024;
/// Largest LoRA rank.
pub const MAX_LORA_RANK: u32 = 4_096;
/// LoRA scale is `LORA_ALPHA / rank`.
pub const LORA_ALPHA: f32 = 32.0;
/// Datums in one `forward_backward` request.
pub const MAX_DATUMS: usize = 65_536;
/// Chunks of one input; as many provenance spans of one example.
pub const MAX_CHUNKS: usize = 16_384;
/// Inputs of the loss function of one example.
pub const MAX_LOSS_INPUTS: usize = 64;
/// Settings of the loss function in one request.
pub const MAX_LOSS_SETTINGS: usize = 1_024;
/// Chunks, loss inputs and provenance spans of one `forward_backward` request together.
pub const MAX_PARTS: usize = 524_288;
/// Stop strings in one request.
pub const MAX_STOP_STRINGS: usize = 64;
/// Bytes of one stop string.
pub const MAX_STOP_STRING_BYTES: usize = 1_024;
/// Lowest temperature but 0, so that logits divided by it stay finite; lower ones mean greedy decoding.
pub const MIN_TEMPERATURE: f32 = 1e-6;
