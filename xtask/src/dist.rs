//! Packages of a release: wheels, an archive, a Debian package, a bill of materials and checksums, in `dist/`.

use crate::process::{command, root, run, step, target};
use crate::{Result, python, tasks};

/// The program that makes the packages; the modules that it uses, and their tests, are beside it.
const DIST: &str = "xtask/dist/dist.py";

/// Builds the release binary and packages it. Only `SOURCE_DATE_EPOCH`, or else the commit, decides the times in packages.
pub(crate) fn dist() -> Result {
    tasks::build()?;
    // It has what builds the Python client, and zstd.
    let python = python::sdk_venv()?;
    step("packages", || {
        let mut dist = command(python, &[DIST, "--binary"]);
        dist.arg(target().join("release").join("trainyard")).arg("--out").arg(root().join("dist"));
        run(dist)
    })
}
