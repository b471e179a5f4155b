//! End-to-end tests; see the `e2e` target.
