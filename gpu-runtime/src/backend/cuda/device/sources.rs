//! Outputs of `make kernels` for each source.

/// A source's PTX and machine code.
pub(crate) struct Source {
    pub(crate) name: &'static str,
    pub(crate) ptx: &'static str,
    /// Compressed cubins of the source; see [`Cubins`](super::cubins::Cubins).
    pub(crate) cubins: &'static [u8],
}

macro_rules! sources {
    ($($name:literal),* $(,)?) => {
        &[$(Source {
            name: $name,
            ptx: include_str!(concat!("../ptx/", $name, ".ptx")),
            cubins: include_bytes!(concat!("../cubin/", $name, ".zst")),
        }),*]
    };
}

/// The sources of all kernels.
pub(crate) const SOURCES: &[Source] = sources![
    "activation",
    "attention",
    "bias",
    "collective",
    "combine",
    "copies",
    "embedding",
    "gated",
    "head",
    "latent",
    "lora",
    "mixer_backward",
    "mixer_chunks",
    "mixer_convolution",
    "mixer_gate",
    "mixer_inputs",
    "norm",
    "optimizer",
    "rotary",
    "routing",
    "sampling",
    "scalar_head",
    "scale",
    "sinks",
    "tensor_attention_backward",
    "tensor_attention_forward",
    "tensor_lora_expand",
    "tensor_lora_shrink",
    "tensor_outer",
    "ungated",
    "vision",
    "vocabulary",
];
