//! Tasks of the repository, for `make` and for people: `cargo run -p xtask -- help`.
//!
//! Every task does its own setup and can be repeated at any time. Tasks download and build only into `.cache/` and
//! `target/`.

mod apt;
mod browser;
mod check;
mod demo;
mod dist;
mod fuzz;
mod gpu;
mod kernels;
mod lint;
mod postgres;
mod postgres_install;
mod process;
mod programs;
mod python;
mod rust_tests;
mod sdk;
mod tasks;

use std::process::ExitCode;

pub(crate) use process::Result;

/// Name, description and implementation of a task.
type Task = (&'static str, &'static str, fn() -> Result);

const TASKS: &[Task] = &[
    ("build", "build the release binary", tasks::build),
    ("dist", "package the release binary: wheels, archive, Debian package, bill of materials", dist::dist),
    ("lint", "check formatting, the wording of comments and messages, and lints", lint::lint),
    ("test", "all lints and tests: those of Rust, and the SDK suite against a real server", check::test),
    (
        "test-full",
        "the same, with the parameters of tests that others stand for, and the server without its features",
        check::test_full,
    ),
    ("deploy-check", "validate the templates for deployments", tasks::deploy_check),
    ("test-sdk", "only the SDK suite", tasks::test_sdk),
    (
        "test-deployments",
        "the SDK suite on every kind of deployment and on workers of two ranks",
        tasks::test_deployments,
    ),
    ("compatibility", "drive every name of the SDK and write docs/users/compatibility.md", tasks::compatibility),
    ("soak", "half an hour of attacks, and of mixed work under faults", tasks::soak),
    ("fuzz", "search for inputs that a decoder does not survive", fuzz::fuzz),
    ("schemathesis", "random requests after the API description, with three keys", tasks::schemathesis),
    ("test-cuda-sim", "the simulated CUDA libraries, and the SDK suite on a simulated GPU", tasks::test_cuda_sim),
    ("test-gpu", "the tests of CUDA on the GPU of this machine", gpu::test),
    ("kernels", "compile the CUDA kernels to PTX with NVIDIA's compiler", kernels::kernels),
    ("postgres", "run a command with a private PostgreSQL server, or keep one until interrupted", postgres::postgres),
    ("demo", "train a real model through the official SDK and show what it learned", demo::demo),
    ("recipes", "train with each recipe on the test model and check its effect", demo::recipes),
    ("cookbook", "run the cookbook's programs, unpatched, against a server", tasks::cookbook),
    ("bench", "measure training and sampling on the test model", tasks::bench),
    ("model", "fetch the test model into .cache/", tasks::model),
    ("openapi", "write openapi/openapi.json from the server's code", tasks::openapi),
    ("sdk", "write the generated parts of the SDKs from openapi/openapi.json", sdk::sdk),
    ("check-sdk", "check the generated parts of the SDKs, their types and their documentation", sdk::check),
];

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_else(|| "help".into());
    match TASKS.iter().find(|(task, ..)| *task == name) {
        Some((_, _, run)) => {
            let done = run();
            process::print_steps();
            match done {
                Ok(()) => ExitCode::SUCCESS,
                Err(message) => {
                    eprintln!("\nxtask {name}: {message}");
                    ExitCode::FAILURE
                }
            }
        }
        None => help(&name),
    }
}

fn help(name: &str) -> ExitCode {
    eprintln!("Tasks:");
    for (task, about, _) in TASKS {
        eprintln!("  {task:<10} {about}");
    }
    if name == "help" { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
