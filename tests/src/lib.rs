//! End-to-end tests live in `tests/sdk`: a real server process, driven by the official SDK and by raw requests;
//! `make test` runs them. `tests/golden` holds the reference numbers that they and the runtime's tests compare with.
