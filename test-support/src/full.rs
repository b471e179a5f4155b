//! The parameters of slow tests: some stand for others, which only `make test-full` runs.

/// Whether tests run with all of their parameters, as in `make test-full`.
#[must_use]
pub fn is_full() -> bool {
    std::env::var_os("TRAINYARD_TEST_FULL").is_some()
}

/// Parameters of a test: `always`, which stand for others, and `others` with `make test-full`.
pub fn chosen<'a, T: Copy>(always: &'a [T], others: &'a [T]) -> impl Iterator<Item = T> + use<'a, T> {
    let others = if is_full() { others } else { &[] };
    always.iter().chain(others).copied()
}
