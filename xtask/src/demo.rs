//! Tasks `demo` and `recipes`: a server on a free port, and Python programs that use it.

use std::path::PathBuf;

use crate::Result;
use crate::process::{cache, cargo, command, run, step, target};
use crate::python;

/// Profile of the server for demonstrations: it computes as fast as a release and is compiled in less time.
const PROFILE: &str = "demo";

/// Features that the demonstration does not use are most of what it would wait for.
const MINIMAL: &[&str] = &["--no-default-features"];

/// All features, as in a release.
const COMPLETE: &[&str] = &[];

/// Starts the server and the programs; a wheel contains it too, for `trainyard demo`.
const START: &str = "client-sdk/python/src/trainyard/demo.py";

/// Program that makes tiny models, and the folder of `tests/golden` that has one with a vision tower.
const TINY_MODELS: &str = "tests/cookbook/tiny_models.py";
const VISION: &str = "vision/qwen3_vl";

/// Runs the examples of the official SDK; further arguments are flags of the demonstration.
pub(crate) fn demo() -> Result {
    with_server("demo", MINIMAL, |_| Ok(std::env::args().skip(2).collect()))
}

/// Runs each recipe in a small form, checks its effect and draws the figures of `docs/users/recipes.md`; further arguments
/// go to the program.
pub(crate) fn recipes() -> Result {
    with_server("recipes", COMPLETE, |python| {
        let images = cache()?.join("tiny-vision");
        let mut make = command(&python, &[TINY_MODELS, VISION]);
        make.arg(&images);
        run(make)?;
        let mut program: Vec<_> = ["--also".to_owned(), format!("tiny-vision={}", images.display())].into();
        program.extend(["--".to_owned(), python]);
        program.extend(["client-sdk/python/checks/run.py", "--figures", "docs/users/figures"].map(str::to_owned));
        program.extend(["--runs".to_owned(), cache()?.join("recipes").display().to_string()]);
        program.extend(std::env::args().skip(2));
        Ok(program)
    })
}

/// Builds a server, starts it with the test model, runs a program of the demonstration or another one, then stops the
/// server.
fn with_server(name: &str, features: &[&str], program: impl FnOnce(String) -> Result<Vec<String>>) -> Result {
    let binary = build(features)?;
    let mut model = PathBuf::new();
    let mut interpreter = PathBuf::new();
    step("test model and Python packages", || {
        model = python::model()?;
        interpreter = python::venv()?;
        Ok(())
    })?;
    let mut start = command(&interpreter, &[START, "--name", name, "--binary"]);
    start.arg(binary).arg("--model").arg(model).arg("--cache").arg(cache()?);
    start.arg("--python").arg(&interpreter).args(program(interpreter.display().to_string())?);
    run(start)
}

/// Builds the server for demonstrations and returns its path. Only the server's package is chosen, so that features of
/// dependencies which other packages need are not compiled.
fn build(features: &[&str]) -> Result<PathBuf> {
    let words = ["build", "--profile", PROFILE, "--locked", "--package", "trainyard-server", "--bin", "trainyard"];
    step("build for demonstrations", || run(cargo(&[&words, features].concat())))?;
    Ok(target().join(PROFILE).join("trainyard"))
}
