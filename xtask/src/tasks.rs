//! Tasks that build, check and measure.

use std::io::Write as _;
use std::time::Duration;

use crate::Result;
use crate::postgres::Database;
use crate::process::{cache, cargo, command, root, run, run_within, step, target};
use crate::programs::programs;
use crate::{apt, browser, kernels, python};

/// Name of the test model in the server.
pub(crate) const MODEL_NAME: &str = "HuggingFaceTB/SmolLM2-135M-Instruct";

/// The SDK suite mostly waits, so its files run in three processes, in the order in which they are collected: the longest
/// first. The suite ends when one of them dies: another would be given the test that killed it, without end.
pub(crate) const PARALLEL: &[&str] = &[
    "--numprocesses",
    "3",
    "--max-worker-restart",
    "0",
    "--dist",
    "loadfile",
    "--no-loadscope-reorder",
    "--durations",
    "20",
];

/// Variable that names the folder of NVIDIA's real driver library to tests.
const LIBCUDA: &str = "TRAINYARD_TEST_LIBCUDA";

/// Kinds of deployments, and layouts of their workers, that the SDK suite runs against.
const DEPLOYMENTS: &[&[&str]] = &[
    &["--deployment", "sqlite"],
    &["--deployment", "postgres"],
    &["--deployment", "cluster"],
    &["--deployment", "cluster", "--parallel", "tp=2"],
    &["--deployment", "cluster", "--parallel", "dp=2"],
];

/// More than the SDK suite takes on two cores beside compilers. A suite that hangs must end while its output is read.
const LONGEST_SUITE: Duration = Duration::from_secs(45 * 60);

/// Flag of the SDK suite for parameters of tests that others stand for.
pub(crate) const FULL: &str = "--full";

/// Flags that run all servers on a GPU, which the driver simulates.
pub(crate) const ON_GPU: &[&str] = &["--device", "cuda"];

/// The same flags for tests that are slow on a simulated GPU: a test may take two hours.
const SIMULATED: &[&str] = &["--device", "cuda", "--full", "--timeout", "7200"];

/// Factor by which calls of such tests may take longer.
const PATIENCE: &str = "30";

/// Builds the release binary `target/release/trainyard`.
pub(crate) fn build() -> Result {
    step("release build", || run(cargo(&["build", "--release", "--locked", "--bin", "trainyard"])))
}

/// Validates the templates for deployments.
pub(crate) fn deploy_check() -> Result {
    step("templates for deployments", || run(command(python::deploy_venv()?, &["deploy/check.py"])))
}

/// Drives a real server with the unmodified SDK.
pub(crate) fn test_sdk() -> Result {
    ready()?;
    sdk_suite(&database()?, &[])
}

/// Drives every name of the SDK's surface and writes the generated part of `docs/users/compatibility.md`.
pub(crate) fn compatibility() -> Result {
    ready()?;
    sdk_tests("SDK surface", &database()?, &["tests/sdk/test_surface.py", "--write-compatibility"], &[])
}

/// Runs the SDK suite on every kind of deployment, and on workers of two ranks. Tests with a fixed duration take a
/// minute.
pub(crate) fn test_deployments() -> Result {
    ready()?;
    let database = database()?;
    DEPLOYMENTS.iter().try_for_each(|deployment| sdk_suite(&database, &[*deployment, &[FULL]].concat()))
}

/// Runs half an hour of attacks, and of mixed work under faults. Further arguments are passed to `tests/soak/soak.py`.
pub(crate) fn soak() -> Result {
    let database = database()?;
    programs()?;
    step("soak", || {
        let mut soak = command(python::venv()?, &["tests/soak/soak.py"]);
        soak.args(std::env::args().skip(2)).env("TRAINYARD_BIN", target().join("debug").join("trainyard"));
        soak.env("TRAINYARD_TEST_MODEL", python::model()?);
        database.hand_to(&mut soak);
        run(soak)
    })
}

/// Sends random requests after the API description to a server with three keys. Further arguments are passed to
/// `tests/schemathesis/run.py`.
pub(crate) fn schemathesis() -> Result {
    programs()?;
    step("schemathesis", || {
        let mut requests = command(python::venv()?, &["tests/schemathesis/run.py"]);
        requests.args(std::env::args().skip(2)).env("TRAINYARD_BIN", target().join("debug").join("trainyard"));
        requests.env("TRAINYARD_TEST_MODEL", python::model()?);
        run(requests)
    })
}

fn database() -> Result<Database> {
    eprintln!("\n==> database for tests");
    Database::open()
}

fn sdk_suite(database: &Database, deployment: &[&str]) -> Result {
    let chosen: Vec<_> = deployment.iter().filter(|word| !word.starts_with("--")).copied().collect();
    let name = if chosen.is_empty() { "SDK suite".to_owned() } else { format!("SDK suite on {}", chosen.join(", ")) };
    sdk_tests(&name, database, &[&["tests/sdk"], PARALLEL].concat(), deployment)
}

/// Builds and installs what the SDK suite needs.
fn ready() -> Result {
    programs()?;
    browser::ensure();
    Ok(())
}

/// Runs some tests of the SDK suite. The programs must have been built.
pub(crate) fn sdk_tests(name: &str, database: &Database, chosen: &[&str], deployment: &[&str]) -> Result {
    step(name, || {
        let mut tests = command(python::venv()?, &["-m", "pytest"]);
        tests.args(chosen).args(std::env::args().skip(2)).args(deployment);
        if deployment == SIMULATED {
            tests.env("TRAINYARD_TEST_PATIENCE", PATIENCE);
        }
        if deployment.contains(&"--deployment") {
            tests.env("TRAINYARD_PARTITION_SECONDS", "60").env("TRAINYARD_FAIRNESS_REQUESTS", "24");
        }
        tests.env("TRAINYARD_BIN", target().join("debug").join("trainyard"));
        tests.env("TRAINYARD_TEST_MODEL", python::model()?);
        // If the library can't be fetched, its tests are skipped.
        match apt::libcuda() {
            Ok(folder) => {
                tests.env(LIBCUDA, folder);
            }
            Err(message) => eprintln!("    without NVIDIA's driver library: {message}"),
        }
        if deployment.contains(&FULL) {
            match python::peft() {
                Ok(interpreter) => {
                    tests.env("TRAINYARD_TEST_PEFT", interpreter);
                }
                Err(message) => eprintln!("    without PEFT: {message}"),
            }
            match python::agents() {
                Ok(interpreter) => {
                    tests.env("TRAINYARD_TEST_AGENTS", interpreter);
                }
                Err(message) => eprintln!("    without agent frameworks: {message}"),
            }
        }
        database.hand_to(&mut tests);
        match deployment.contains(&FULL) {
            true => run(tests),
            false => run_within(tests, LONGEST_SUITE),
        }
    })
}

/// Tests the simulated CUDA libraries, also with the output of NVIDIA's compiler; checks the table of the kernels'
/// resources; and runs the SDK suite with all servers on a simulated GPU. Further arguments are passed to pytest.
pub(crate) fn test_cuda_sim() -> Result {
    let compiler = python::nvrtc()?;
    step("simulated CUDA libraries", || {
        let crates = ["cubin", "ptx", "driver", "cublaslt", "nccl", "harness"].map(|name| format!("cuda-sim-{name}"));
        let mut tests = cargo(&["test", "--locked"]);
        tests.args(crates.iter().flat_map(|name| ["--package", name.as_str()]));
        tests.env("CUDASIM_NVRTC", &compiler);
        run(tests)
    })?;
    kernels::check_resources()?;
    ready()?;
    let database = database()?;
    sdk_tests("SDK suite on a simulated GPU", &database, &[&["tests/sdk"], PARALLEL].concat(), SIMULATED)
}

/// Runs the cookbook's programs, unpatched, against the release binary. Further arguments are passed to
/// `tests/cookbook/run.py`.
pub(crate) fn cookbook() -> Result {
    build()?;
    let (python, sources) = python::cookbook()?;
    let mut programs = command(python, &["tests/cookbook/run.py", "--model"]);
    programs.arg(python::model()?).arg("--runs").arg(cache()?.join("cookbook")).arg("--sources").arg(sources);
    programs.args(std::env::args().skip(2)).env("TRAINYARD_BIN", target().join("release").join("trainyard"));
    step("cookbook", || run(programs))
}

/// Fetches the test model.
pub(crate) fn model() -> Result {
    eprintln!("    {}", python::model()?.display());
    Ok(())
}

/// Measures the release build, and the baseline beside it. Further arguments are passed to `bench/run.py`.
pub(crate) fn bench() -> Result {
    let binaries = ["build", "--release", "--locked", "--bin", "trainyard", "--bin", "trainyard-bench"];
    step("release build", || run(cargo(&binaries)))?;
    let python = python::venv()?;
    let mut bench = command(python, &["bench/run.py", "--no-build"]);
    let arguments: Vec<String> = std::env::args().skip(2).collect();
    // Measuring the store does not need a model.
    if !arguments.iter().any(|argument| argument == "--store") {
        bench.arg("--model").arg(format!("{MODEL_NAME}={}", python::model()?.display()));
    }
    bench.args(arguments);
    step("benchmark", || run(bench))
}

/// Writes the API description; the server's tests compare it with the code.
pub(crate) fn openapi() -> Result {
    let output = cargo(&["run", "--quiet", "--locked", "--bin", "trainyard", "--", "openapi"])
        .output()
        .map_err(|e| format!("start cargo: {e}"))?;
    if !output.status.success() {
        let _ = std::io::stderr().write_all(&output.stderr);
        return Err(format!("trainyard openapi failed ({})", output.status));
    }
    let path = root().join("openapi").join("openapi.json");
    let partial = cache()?.join("openapi.json.partial");
    std::fs::write(&partial, &output.stdout)
        .and_then(|()| std::fs::create_dir_all(root().join("openapi")))
        .and_then(|()| std::fs::rename(&partial, &path))
        .map_err(|e| format!("write {}: {e}", path.display()))?;
    eprintln!("    wrote {}", path.display());
    Ok(())
}
