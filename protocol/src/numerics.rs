//! What decides the bits of results.

/// What decides the bits of a base model's results on one worker: two workers that agree in it compute the same, whatever
/// their numbers of threads and their batches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numerics {
    /// A digest of the base model's weights.
    pub weights: String,
    /// Type of the weights in GEMMs, e.g. `bf16`.
    pub dtype: String,
    /// Kernels that compute, e.g. `avx512-bf16`.
    pub kernels: String,
    /// How the model is divided over devices; `single` where it is not.
    pub layout: String,
    /// Counts the releases that changed bits.
    pub version: u32,
}

impl Numerics {
    /// Everything but the weights, in one line: how they are computed with.
    pub fn arithmetic(&self) -> String {
        let Self { dtype, kernels, layout, version, .. } = self;
        format!("{dtype} {kernels} {layout} v{version}")
    }
}
