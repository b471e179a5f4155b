//! The checks with the shapes of real models find faults that are planted in the simulated libraries.

use super::shapes::{SEED, checks};
use super::simulated::with_settings_in_full;
use crate::backend::check::{ShapeCheck, Subjects, Verdict};

/// The checks that a device with a fault fails, which has to be one of another subject than `not`.
fn failed(not: Option<Subjects>) -> Vec<ShapeCheck> {
    let wrong: Vec<_> = checks().into_iter().filter(|check| check.verdict == Verdict::Wrong).collect();
    assert!(!wrong.is_empty());
    assert!(wrong.iter().all(|check| Some(check.of) != not), "{wrong:?}");
    wrong
}

#[test]
fn another_order_of_sums_for_many_rows_is_found() {
    with_settings_in_full(&[SEED, ("CUDASIM_LT_FAULT", "order:300")], || {
        let wrong = failed(Some(Subjects::Accuracy));
        // Each weight, both directions, both types; and with adapters.
        assert!(wrong.len() >= 20, "{wrong:?}");
        let first = &wrong[0].detail;
        assert!(first.contains("row 0 of 530 differs") && first.contains("plan: "), "{first}");
    });
}

#[test]
fn a_flipped_bit_in_the_last_of_many_rows_is_found() {
    with_settings_in_full(&[SEED, ("CUDASIM_LT_FAULT", "flip:256")], || {
        let wrong = failed(Some(Subjects::Accuracy));
        let first = &wrong[0].detail;
        assert!(first.contains("row 255 of 256 differs") && first.contains("in 1 of"), "{first}");
    });
}

#[test]
fn a_row_with_results_of_another_is_found() {
    with_settings_in_full(&[SEED, ("CUDASIM_LT_FAULT", "stale:2")], || {
        let wrong = failed(None);
        assert!(wrong.iter().any(|check| check.of == Subjects::Invariance && check.detail.contains("row 1 of 2")));
        let projection = |check: &&ShapeCheck| check.name.contains("16 rows") && check.name.contains("processor");
        assert!(wrong.iter().any(|check| projection(&check)), "{wrong:?}");
    });
}
