//! The whole check: everything that must pass before a change is merged.
//!
//! Most tests of the SDK suite wait, and compilers use every core. So the compilers run behind the suite, with the lowest
//! priority: they take what it leaves. Tests that measure the machine run at the end, beside nothing.

use std::process::Command;
use std::sync::mpsc::{self, Sender};
use std::thread;

use crate::Result;
use crate::postgres::Database;
use crate::process::{BEHIND, all, cargo, joined, lower_priority, run, step};
use crate::programs::programs;
use crate::rust_tests::{self, Executable};
use crate::tasks::{FULL, ON_GPU, PARALLEL, deploy_check, sdk_tests};
use crate::{apt, browser, kernels, lint, python, sdk};

/// Runs every check that must pass before a change is merged.
pub(crate) fn test() -> Result {
    check(&[])
}

/// Runs the same, also the parameters of tests that others stand for, and checks the server without its features.
pub(crate) fn test_full() -> Result {
    step("server without its features", || {
        let package = ["--package", "trainyard-server", "--no-default-features", "--locked"];
        run(cargo(&[&["clippy", "--all-targets", "--quiet"][..], &package, &["--", "-D", "warnings"]].concat()))?;
        run(cargo(&[&["test", "--lib"][..], &package, &["--", "missing"]].concat()))
    })?;
    check(&[FULL])
}

/// Runs every check, even if some fail. `suite` has further flags for the SDK suite.
fn check(suite: &[&str]) -> Result {
    lint::sources()?;
    let database = prepare()?;
    let (compiled, tests) = mpsc::channel();
    let mut results = Vec::new();
    thread::scope(|scope| {
        let full = suite.contains(&FULL);
        let behind = scope.spawn(move || behind_tests(&compiled, full));
        let core = ["tests/sdk", "-m", "gpu_core"];
        results.push(sdk_tests("core of the SDK suite on a simulated GPU", &database, &core, ON_GPU));
        let shared = [&["tests/sdk", "-m", "not alone"], PARALLEL].concat();
        results.push(sdk_tests("SDK suite", &database, &shared, suite));
        // Nothing is received if the tests do not compile, which the other thread reports.
        if let Ok(tests) = tests.recv() {
            results.push(step("Rust tests", || rust_tests::run(&tests, |test| environment(test, &database, full))));
        }
        results.push(joined(behind));
    });
    let alone = ["tests/sdk", "-m", "alone"];
    results.push(sdk_tests("tests of the SDK suite that measure the machine", &database, &alone, suite));
    all(results)
}

/// Builds the programs. Meanwhile everything is fetched that the steps need, since downloads wait for the network.
fn prepare() -> Result<Database> {
    thread::scope(|scope| {
        let fetched = scope.spawn(fetch);
        let built = programs();
        let database = joined(fetched);
        built.and(database)
    })
}

fn fetch() -> Result<Database> {
    let mut opened = None;
    step("database, packages and test model", || {
        opened = Some(Database::open()?);
        for environment in [python::venv, python::sdk_venv, python::deploy_venv] {
            environment()?;
        }
        eprintln!("    {}", python::model()?.display());
        // If these are missing, the steps that need them report it.
        let _ = (python::nvrtc(), apt::libcuda());
        browser::ensure();
        Ok(())
    })?;
    opened.ok_or_else(|| "the database was not opened".to_owned())
}

/// Compiles the Rust tests and sends them; then checks sources. Only the full check assembles the kernels again.
fn behind_tests(compiled: &Sender<Vec<Executable>>, full: bool) -> Result {
    lower_priority(BEHIND);
    let tests = step("compilation of Rust tests", || {
        compiled.send(rust_tests::compile()?).map_err(|_| "nobody waits for the tests".to_owned())
    });
    let checks = [lint::lints, rust_tests::examples, sdk::sources, deploy_check];
    let machine_code = full.then_some(machine_code as fn() -> Result);
    all(std::iter::once(tests).chain(checks.into_iter().chain(machine_code).map(|check| check())))
}

/// Assembles the kernels. If the assembler can't be installed, only the checksums of the committed results are compared,
/// by tests.
fn machine_code() -> Result {
    match python::ptxas() {
        Ok(_) => kernels::check_resources(),
        Err(message) => {
            eprintln!("    without NVIDIA's assembler: {message}");
            Ok(())
        }
    }
}

fn environment(test: &mut Command, database: &Database, full: bool) -> Result {
    if full {
        test.env("TRAINYARD_TEST_FULL", "1");
    }
    test.env("TRAINYARD_TEST_MODEL", python::model()?);
    // If the compiler can't be installed, only its kernels are not tested, and their tests say so.
    if let Ok(compiler) = python::nvrtc() {
        test.env("CUDASIM_NVRTC", compiler);
    }
    database.hand_to(test);
    Ok(())
}
