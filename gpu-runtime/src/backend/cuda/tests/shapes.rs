//! The checks with the shapes of real models pass on the simulated device. They take minutes there, so that only
//! `make test-full` runs them.

use super::simulated::with_settings_in_full;
use crate::backend::Dtype;
use crate::backend::check::{Scale, ShapeCheck, Subjects, Verdict, check_shapes, host_backend};
use crate::backend::cuda::backend::Cuda;

/// All checks with small sizes.
pub(super) fn checks() -> Vec<ShapeCheck> {
    let [rounded, exact] = [Dtype::Bf16, Dtype::F32].map(|dtype| Cuda::open(0, dtype).unwrap());
    let found = check_shapes(&rounded, &exact, &host_backend(Dtype::F32), &Scale::SMALL);
    for ShapeCheck { name, verdict, detail, seconds, .. } in &found {
        eprintln!("{verdict:?} {seconds:.2} s {name}: {detail}");
    }
    found
}

pub(super) const SEED: (&str, &str) = ("CUDASIM_SEED", "4");

/// Algorithms differ here: one plan for every number of rows is the right choice.
#[test]
fn shapes_of_models_pass() {
    with_settings_in_full(&[SEED, ("CUDASIM_LT_ALGORITHMS", "4")], || {
        let found = checks();
        assert!(found.iter().all(|check| check.verdict == Verdict::Holds));
        for of in [Subjects::Accuracy, Subjects::Invariance] {
            assert!(found.iter().filter(|check| check.of == of).count() > 20);
        }
        // In bf16 nothing is exact: results that are the same were not compared.
        let mut rounded = found.iter().filter(|check| check.name.ends_with("bf16 against f32"));
        assert!(rounded.all(|check| check.error > Some(1e-4)));
        assert!(found.iter().any(|check| check.detail.contains("plan: 8192 outputs 0x")));
    });
}
