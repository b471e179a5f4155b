//! The op suite: compares every op of a backend with the processor's on small inputs, and reports each error with its
//! tolerance.
//!
//! `trainyard doctor` runs it on a GPU. The functions of the other files call ops and return the results; tests compare
//! these for more inputs and backends.
//!
//! - `blocks.rs`, `attention.rs`, `head.rs`, `family.rs`, `mixers.rs`, `vision.rs`: ops of models. `storage.rs`: weights, parameters, rows. `sampling.rs`:
//!   sampled tokens and scores.
//! - `suite.rs`: which inputs the suite has. `shapes/`: checks with the shapes of real models.

pub mod access;
mod attention;
mod blocks;
mod family;
mod head;
mod mixers;
mod routing;
mod sampling;
mod shapes;
mod storage;
mod suite;
mod vision;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use access::Results;
pub use access::{HostAccess, assert_close};
pub use attention::{attention, gates, rotations};
pub use blocks::{activations, embeddings, linears, norms};
pub use family::{POSITIONS, experts, latent_heads, positions, scalar_heads, sigmoid, sinks};
pub use head::{head_parts, heads, score_parts, spread};
pub use mixers::{Convolution, Recurrence, span, values, whole};
pub use mixers::{convolutions, recurrences, scaled};
pub use routing::assert_exact_routing;
pub use shapes::{Scale, ShapeCheck, Subjects, Verdict, check_shapes};
pub use vision::{image_attention, tower_rows};

use super::{Backend, Dtype, HostBackend, HostKernels};
use crate::fault::panic_text;

/// Some ops of a device, compared with the processor's.
#[derive(Clone, Debug, PartialEq)]
pub struct OpCheck {
    /// Names of the checked ops.
    pub ops: &'static str,
    /// Element type of weights.
    pub dtype: Dtype,
    /// The result with the largest error.
    pub result: &'static str,
    /// Error of that result, relative to its largest element, or to 1 if that is smaller.
    pub error: f32,
    /// Largest error that passes.
    pub tolerance: f32,
    /// Reason why the check has no results, if it has none.
    pub failure: Option<String>,
    /// Duration of the check, on the device and on the processor.
    pub seconds: f64,
}

impl OpCheck {
    /// Returns the names of the ops and the element type.
    pub fn name(&self) -> String {
        format!("{}, {}", self.ops, self.dtype.name())
    }

    /// Returns the error and its tolerance, or the reason why results are missing.
    pub fn value(&self) -> String {
        let Self { result, error, tolerance, failure, .. } = self;
        failure.clone().unwrap_or_else(|| format!("error {error:.1e} ({result}), at most {tolerance:.0e}"))
    }

    /// Returns whether the error is within the tolerance.
    pub fn holds(&self) -> bool {
        self.failure.is_none() && self.error <= self.tolerance
    }
}

impl fmt::Display for OpCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name(), self.value())
    }
}

/// Returns the processor's backend that the suite compares with.
pub fn host_backend(dtype: Dtype) -> HostBackend {
    // Better kernels pack what gradients of weights read, and do not store its rows.
    HostBackend::with_isa(0, HostKernels::detect().min(HostKernels::Avx2)).with_dtype(dtype)
}

/// Runs every op on a device and on the processor, which must have the same element type. A device that fails entirely
/// ends the suite.
pub fn check<B: HostAccess>(device: &B, host: &HostBackend) -> Vec<OpCheck> {
    let mut checks = Vec::new();
    for (case, expected) in suite::cases::<B>().into_iter().zip(suite::cases::<HostBackend>()) {
        let start = Instant::now();
        let found = catch_unwind(AssertUnwindSafe(|| (case.run)(device)));
        let compared = found.map_err(|panic| panic_text(&*panic).to_owned());
        let compared = compared.and_then(|found| difference(&found, &(expected.run)(host)));
        let tolerance = if host.dtype() == Dtype::F32 { case.tolerance } else { case.rounded_tolerance };
        let ((result, error), failure) = match compared {
            Ok(worst) => (worst, None),
            Err(failure) => (("", f32::NAN), Some(failure)),
        };
        let seconds = start.elapsed().as_secs_f64();
        checks.push(OpCheck { ops: case.ops, dtype: host.dtype(), result, error, tolerance, failure, seconds });
        if device.failure().is_some() {
            break;
        }
    }
    checks
}

/// The result that differs most, and by how much.
fn difference(found: &Results, expected: &Results) -> Result<(&'static str, f32), String> {
    let mut worst = ("all", 0.0);
    for ((name, found), (_, expected)) in found.iter().zip(expected) {
        if found.len() != expected.len() {
            return Err(format!("{name} has {} elements, not {}", found.len(), expected.len()));
        }
        let most = expected.iter().fold(1f32, |most, x| most.max(x.abs()));
        for (found, expected) in found.iter().zip(expected) {
            let error = (found - expected).abs() / most;
            if error.is_nan() && found.to_bits() != expected.to_bits() {
                return Err(format!("{name} has {found} instead of {expected}"));
            }
            if error > worst.1 {
                worst = (name, error);
            }
        }
    }
    Ok(worst)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_agrees_with_itself() {
        for dtype in [Dtype::F32, Dtype::Bf16] {
            let host = host_backend(dtype);
            for op in check(&host, &host_backend(dtype)) {
                assert!(op.holds() && op.error == 0.0, "{op}");
            }
        }
    }

    #[test]
    fn differences_are_relative_to_the_largest_element() {
        let of = |values: &[f32]| vec![("x", vec![0.5]), ("y", values.to_vec())];
        assert_eq!(difference(&of(&[4.0, 1.0]), &of(&[4.0, 2.0])), Ok(("y", 0.25)));
        assert_eq!(difference(&of(&[0.25]), &of(&[0.5])), Ok(("y", 0.25)));
        assert_eq!(difference(&of(&[f32::NAN]), &of(&[f32::NAN])), Ok(("all", 0.0)));
        assert!(difference(&of(&[f32::NAN]), &of(&[1.0])).is_err_and(|text| text.contains("NaN instead of 1")));
        assert!(difference(&of(&[]), &of(&[1.0])).is_err_and(|text| text.contains("0 elements")));
    }

    #[test]
    fn a_result_that_is_off_does_not_hold() {
        let op = OpCheck {
            ops: "norms",
            dtype: Dtype::F32,
            result: "y",
            error: 2e-3,
            tolerance: 1e-3,
            failure: None,
            seconds: 0.0,
        };
        assert!(!op.holds());
        assert_eq!(op.to_string(), "norms, f32: error 2.0e-3 (y), at most 1e-3");
        assert!(OpCheck { error: 1e-3, ..op.clone() }.holds());
        assert!(!OpCheck { error: 0.0, failure: Some("lost".to_owned()), ..op }.holds());
    }
}
