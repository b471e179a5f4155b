//! Ops on rows, each with its gradient: checks of extents, then launches of kernels.

pub(crate) mod activation;
pub(crate) mod attention;
pub(crate) mod attention_tiles;
pub(crate) mod bias;
pub(crate) mod combine;
pub(crate) mod copies;
pub(crate) mod embedding;
pub(crate) mod head;
pub(crate) mod latent;
pub(crate) mod logits;
pub(crate) mod lora;
pub(crate) mod matmul;
pub(crate) mod norm;
pub(crate) mod optimizer;
pub(crate) mod outer;
pub(crate) mod product;
pub(crate) mod ranks;
pub(crate) mod rotary;
pub(crate) mod routing;
pub(crate) mod rows;
pub(crate) mod sampling;
pub(crate) mod scalar_head;
pub(crate) mod sinks;
pub(crate) mod squares;
pub(crate) mod tensor_attention;
pub(crate) mod vocabulary;
