//! Writes and checks the generated parts of the SDKs.

use std::path::PathBuf;
use std::process::Command;

use crate::Result;
use crate::process::{cache, cargo, command, root, run, step, target};
use crate::programs::programs;
use crate::python;

/// Writes the generated parts of both SDKs, and the listings of their public items.
pub(crate) fn sdk() -> Result {
    // Build only the generator: the Rust client may not compile before it is written.
    step("generator", || run(cargo(&["build", "--quiet", "--locked", "--package", "trainyard-sdk-generator"])))?;
    step("Rust client", || {
        let mut write = generator();
        write.arg("write").arg(root());
        run(write)
    })?;
    step("Python client", || run(python_tool("write")?))
}

/// Runs the checks that `cargo test` does not: the generated Python, its types and style, the wheel, and the
/// documentation of the Rust client.
pub(crate) fn check() -> Result {
    programs()?;
    sources()
}

/// Runs the same checks. The programs must have been built.
pub(crate) fn sources() -> Result {
    step("Python client", || {
        run(python_tool("check")?)?;
        for tool in [&["mypy"][..], &["ruff", "check", "--quiet"], &["ruff", "format", "--check", "--quiet"]] {
            let mut check = command(python::sdk_venv()?, &["-m"]);
            check.args(tool).current_dir(root().join("client-sdk").join("python"));
            run(check)?;
        }
        Ok(())
    })?;
    step("documentation of the Rust client", || {
        let mut doc = cargo(&["doc", "--package", "trainyard-client", "--no-deps", "--locked", "--quiet"]);
        doc.env("RUSTDOCFLAGS", "-D warnings");
        run(doc)
    })
}

/// Returns a command for the generator, which has been built.
fn generator() -> Command {
    command(target().join("debug").join("trainyard-sdk-generator"), &[])
}

/// Returns a command for the Python client's tool, with the description that it starts from.
fn python_tool(action: &str) -> Result<Command> {
    let document: PathBuf = cache()?.join("sdk-document.json");
    let mut prepare = generator();
    prepare.arg("python").arg(root()).arg(&document);
    run(prepare)?;
    let mut tool = command(python::sdk_venv()?, &["client-sdk/python/tools/generate.py", action]);
    tool.arg(document);
    Ok(tool)
}
