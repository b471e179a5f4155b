//! Checks with the shapes of real models, on a GPU or on the processor.

use trainyard_gpu_runtime::Dtype;
use trainyard_gpu_runtime::backend::check::{Scale, ShapeCheck, Subjects, Verdict, check_shapes, host_backend};
use trainyard_gpu_runtime::backend::{HostBackend, HostKernels};

use super::Check;
use crate::config::{Config, Shapes};

/// The checks of the processor with its kernels as configured: with small shapes.
pub(super) fn of_processor(config: &Config, shapes: Shapes) -> Vec<Check> {
    let Some(scale) = sizes(shapes, 0.0) else { return Vec::new() };
    let kernels = config.kernels.unwrap_or_else(HostKernels::detect);
    let backend = |dtype| HostBackend::with_isa(config.threads, kernels).with_dtype(dtype);
    let (rounded, exact) = (backend(Dtype::Bf16), backend(Dtype::F32));
    check_shapes(&rounded, &exact, &host_backend(Dtype::F32), &scale).into_iter().map(result).collect()
}

/// The sizes for a device with this rate of GEMMs, in FLOP per second; `None` if there are to be none.
pub(super) fn sizes(shapes: Shapes, flops: f64) -> Option<Scale> {
    match shapes {
        Shapes::Auto => Some(Scale::for_rate(flops)),
        Shapes::Full => Some(Scale::FULL),
        Shapes::Small => Some(Scale::SMALL),
        Shapes::None => None,
    }
}

/// A line of the report.
pub(super) fn result(of: ShapeCheck) -> Check {
    let ShapeCheck { of, name, verdict, detail, error, tolerance, seconds } = of;
    let (group, advice) = match of {
        Subjects::Accuracy => (
            "shapes",
            "results of real shapes are wrong on this device: report it with the output of doctor --json, and pass --device cpu",
        ),
        Subjects::Invariance => (
            "invariance",
            "a row's bits depend on the other rows of its batch, so results are not reproducible: report it with the output of \
             doctor --json",
        ),
    };
    let check = match verdict {
        Verdict::Holds => Check::ok(group, name, detail),
        Verdict::Wrong => Check::failure(group, name, detail, advice),
        Verdict::NotRun => Check::warning(group, name, detail, "end other programs on the GPU, or pass --shapes small"),
    };
    check.took(seconds).compared(error.map(f64::from), tolerance.map(f64::from))
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    fn check(of: Subjects, verdict: Verdict) -> Check {
        let (name, detail) = ("o, 64 → 64".to_owned(), "row 1 of 2 differs".to_owned());
        result(ShapeCheck { of, name, verdict, detail, error: Some(0.5), tolerance: Some(0.25), seconds: 2.0 })
    }

    #[test]
    fn verdicts_are_statuses() {
        let wrong = check(Subjects::Invariance, Verdict::Wrong);
        assert_eq!((wrong.group, wrong.status, wrong.seconds), ("invariance", Status::Failure, Some(2.0)));
        assert_eq!((wrong.error, wrong.tolerance), (Some(0.5), Some(0.25)));
        assert!(wrong.advice.is_some_and(|advice| advice.contains("reproducible")));
        assert_eq!(check(Subjects::Accuracy, Verdict::Holds).status, Status::Ok);
        assert_eq!(check(Subjects::Accuracy, Verdict::NotRun).status, Status::Warning);
    }

    #[test]
    fn sizes_are_chosen_or_follow_the_rate() {
        let name = |shapes, flops| sizes(shapes, flops).map(|scale| scale.name);
        assert_eq!(name(Shapes::Auto, 4e14), Some("full"));
        assert_eq!(name(Shapes::Auto, 4e9), Some("small"));
        assert_eq!(
            [name(Shapes::Full, 1.0), name(Shapes::Small, 4e14), name(Shapes::None, 1.0)],
            [Some("full"), Some("small"), None]
        );
    }
}
