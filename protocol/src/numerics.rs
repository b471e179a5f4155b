//! Properties of a worker that decide the bits of results.

/// Properties that decide the bits of a base model's results on one worker. Two workers with equal properties compute
/// the same, whatever their numbers of threads and their batches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numerics {
    /// Digest of the base model's weights.
    pub weights: String,
    /// Type of the weights in GEMMs, e.g. `bf16`.
    pub dtype: String,
    /// Kernels that compute the model, e.g. `avx512-bf16`.
    pub kernels: String,
    /// Division of the model over devices; `single` if it is not divided.
    pub layout: String,
    /// Version of the numerics: the number of releases that changed bits.
    pub version: u32,
}

impl Numerics {
    /// Returns everything except the weights in one line: the way in which the model is computed.
    pub fn arithmetic(&self) -> String {
        let Self { dtype, kernels, layout, version, .. } = self;
        format!("{dtype} {kernels} {layout} v{version}")
    }
}
