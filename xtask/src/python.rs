//! The Python side: a virtual environment with pinned packages, and the test model.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::Result;
use crate::process::{cache, command, root, run, succeeds};

/// Program that fetches the test model, and the name of the model's file.
const DEMO: &str = "client-sdk/python/src/trainyard/demo.py";
const MODEL_FILE: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";

/// Program that unpacks the only archive of a folder under a temporary name, then renames it.
const UNPACK: &str = include_str!("unpack_sources.py");

/// Pinned packages that the examples need, and those that the tests need in addition.
const REQUIREMENTS: &[&str] = &["client-sdk/python/examples/requirements.txt", "tests/sdk/requirements.txt"];

/// Pinned packages that check the templates for deployments.
const DEPLOY_REQUIREMENTS: &[&str] = &["deploy/requirements.txt"];

/// Pinned packages that generate and check the Python client, and packages whose types its recipes use.
const SDK_REQUIREMENTS: &[&str] =
    &["client-sdk/python/requirements.txt", "client-sdk/python/examples/requirements.txt"];

/// Pinned packages that the cookbook needs.
const COOKBOOK_REQUIREMENTS: &[&str] = &["tests/cookbook/requirements.txt"];

/// The cookbook itself, installed without its dependencies.
const COOKBOOK: &str = "tests/cookbook/cookbook.txt";

/// Pinned packages that load exported adapters.
const PEFT_REQUIREMENTS: &[&str] = &["tests/sdk/peft.txt"];

/// Pinned frameworks for agents, whose programs are tested.
const AGENTS_REQUIREMENTS: &[&str] = &["tests/sdk/agents.txt"];

/// Pinned installer of packages.
const UV_REQUIREMENTS: &[&str] = &["xtask/requirements.txt"];

/// Pinned compiler for kernels.
const NVRTC_REQUIREMENTS: &[&str] = &["cuda-sim/requirements.txt"];

/// Pinned assembler and disassembler for kernels, and the package that compresses machine code.
const PTXAS_REQUIREMENTS: &[&str] = &["gpu-runtime/ptxas-requirements.txt"];

/// Returns the interpreter of the tests' and the examples' virtual environment.
pub(crate) fn venv() -> Result<PathBuf> {
    environment("venv", REQUIREMENTS)
}

/// Returns the interpreter of the virtual environment that checks the templates for deployments.
pub(crate) fn deploy_venv() -> Result<PathBuf> {
    environment("deploy-venv", DEPLOY_REQUIREMENTS)
}

/// Returns the interpreter of the virtual environment with PyTorch and PEFT.
pub(crate) fn peft() -> Result<PathBuf> {
    environment("peft-venv", PEFT_REQUIREMENTS)
}

/// Returns the interpreter of the virtual environment with agent frameworks.
pub(crate) fn agents() -> Result<PathBuf> {
    environment("agents-venv", AGENTS_REQUIREMENTS)
}

/// Returns the interpreter of the virtual environment that generates and checks the Python client.
pub(crate) fn sdk_venv() -> Result<PathBuf> {
    environment("sdk-venv", SDK_REQUIREMENTS)
}

/// Returns the interpreter of the virtual environment that runs the cookbook's programs, and the cookbook's sources,
/// which include its tests.
pub(crate) fn cookbook() -> Result<(PathBuf, PathBuf)> {
    let python = environment_with("cookbook-venv", COOKBOOK_REQUIREMENTS, Some(COOKBOOK))?;
    let sources = cache()?.join("cookbook-venv").join("sources");
    if !sources.exists() {
        let download = cache()?.join("cookbook-download");
        let mut fetch = command(&python, &["-m", "pip", "download", "--quiet", "--disable-pip-version-check"]);
        fetch.args(["--no-deps", "--no-binary", "tinker-cookbook", "--requirement", COOKBOOK, "--dest"]).arg(&download);
        run(fetch)?;
        let mut unpack = command(&python, &["-c", UNPACK]);
        unpack.arg(&download).arg(&sources);
        run(unpack)?;
        std::fs::remove_dir_all(&download).map_err(|e| format!("remove {}: {e}", download.display()))?;
    }
    Ok((python, sources))
}

/// Returns the folder of NVIDIA's compiler library, which does not need a GPU. A failure is final: without a network,
/// each attempt takes long.
pub(crate) fn nvrtc() -> Result<PathBuf> {
    static FOUND: OnceLock<Result<PathBuf>> = OnceLock::new();
    let find = || {
        let python = nvrtc_venv()?;
        let place = "import nvidia.cuda_nvrtc; print(list(nvidia.cuda_nvrtc.__path__)[0])";
        let output = command(python, &["-c", place]).output().map_err(|e| format!("start Python: {e}"))?;
        let folder = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Ok(PathBuf::from(folder).join("lib"))
    };
    FOUND.get_or_init(find).clone()
}

/// Returns the interpreter of a virtual environment with NVIDIA's assembler and disassembler, and their paths. Neither
/// needs a GPU. A failure is final, as of [`nvrtc`].
pub(crate) fn ptxas() -> Result<(PathBuf, [PathBuf; 2])> {
    static FOUND: OnceLock<Result<(PathBuf, [PathBuf; 2])>> = OnceLock::new();
    FOUND.get_or_init(find_ptxas).clone()
}

fn find_ptxas() -> Result<(PathBuf, [PathBuf; 2])> {
    let python = environment("kernel-tools", PTXAS_REQUIREMENTS)?;
    let tool = |module: &str, name: &str| -> Result<PathBuf> {
        let place = format!("import {module}; print(list({module}.__path__)[0])");
        let output = command(&python, &["-c", &place]).output().map_err(|e| format!("start Python: {e}"))?;
        let folder = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Ok(PathBuf::from(folder).join("bin").join(name))
    };
    let tools = [tool("nvidia.cuda_nvcc", "ptxas")?, tool("nvidia.cu13", "nvdisasm")?];
    Ok((python, tools))
}

/// Returns the interpreter of the virtual environment with NVIDIA's compiler library.
pub(crate) fn nvrtc_venv() -> Result<PathBuf> {
    environment("nvrtc", NVRTC_REQUIREMENTS)
}

/// Returns a virtual environment's interpreter. The environment is made on the first call and when its pins change.
fn environment(name: &str, requirements: &[&str]) -> Result<PathBuf> {
    environment_with(name, requirements, None)
}

/// Returns the same, and installs the packages of one more file without their dependencies.
fn environment_with(name: &str, requirements: &[&str], alone: Option<&str>) -> Result<PathBuf> {
    environment_by(install, name, requirements, alone)
}

/// Returns the same. `install` gets the interpreter and words of `pip install`.
fn environment_by(
    install: impl Fn(&Path, &[&str]) -> Result,
    name: &str,
    requirements: &[&str],
    alone: Option<&str>,
) -> Result<PathBuf> {
    let venv = cache()?.join(name);
    let python = venv.join("bin").join("python");
    let stamp = venv.join("installed.txt");
    let wanted = pins(requirements.iter().copied().chain(alone))?;
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    eprintln!("    making a virtual environment in {}", venv.display());
    let base = interpreter()?;
    ensure_venv_module(&base)?;
    let mut make = Command::new(&base);
    make.args(["-m", "venv", "--clear"]).arg(&venv);
    run(make)?;
    let files: Vec<&str> = requirements.iter().flat_map(|file| ["--requirement", *file]).collect();
    install(&python, &files)?;
    if let Some(file) = alone {
        install(&python, &["--no-deps", "--requirement", file])?;
    }
    // Written last, so that an interrupted installation is repeated.
    std::fs::write(&stamp, wanted).map_err(|e| format!("write {}: {e}", stamp.display()))?;
    Ok(python)
}

/// Installs packages. `uv` takes a tenth of the processor time of `pip`, whose configuration it does not read: where it
/// fails, `pip` tries again.
fn install(python: &Path, words: &[&str]) -> Result {
    let by_uv = || {
        let mut install = command(uv()?, &["pip", "install", "--quiet", "--python"]);
        install.arg(python).args(words);
        run(install)
    };
    by_uv().or_else(|error| {
        eprintln!("    {error}; pip installs the packages");
        install_by_pip(python, words)
    })
}

/// Python compiles modules when they are first imported, so only those that are used.
fn install_by_pip(python: &Path, words: &[&str]) -> Result {
    let pip = ["-m", "pip", "install", "--no-compile", "--quiet", "--disable-pip-version-check"];
    run(command(python, &[&pip, words].concat()))
}

/// Returns the program `uv`, which is installed on the first call. A failure is final.
fn uv() -> Result<PathBuf> {
    static FOUND: OnceLock<Result<PathBuf>> = OnceLock::new();
    let find = || Ok(environment_by(install_by_pip, "uv", UV_REQUIREMENTS, None)?.with_file_name("uv"));
    FOUND.get_or_init(find).clone()
}

/// Returns the test model's path; the model is fetched on the first call.
pub(crate) fn model() -> Result<PathBuf> {
    let cache = cache()?;
    let path = cache.join(MODEL_FILE);
    if path.exists() {
        return Ok(path);
    }
    let mut fetch = command(venv()?, &[DEMO, "--fetch-model"]);
    fetch.arg(&cache);
    // Tasks print only what concerns them.
    fetch.stdout(Stdio::null());
    run(fetch)?;
    Ok(path)
}

fn pins<'a>(requirements: impl Iterator<Item = &'a str>) -> Result<String> {
    let read = |file: &str| std::fs::read_to_string(root().join(file)).map_err(|e| format!("read {file}: {e}"));
    requirements.map(read).collect()
}

/// Returns `$PYTHON`, or the first Python 3.11 or later on the path.
fn interpreter() -> Result<PathBuf> {
    let named = std::env::var_os("PYTHON").map(PathBuf::from);
    let known = ["python3", "python3.14", "python3.13", "python3.12", "python3.11", "python"];
    let candidates = named.into_iter().chain(known.map(PathBuf::from));
    let recent = "import sys; sys.exit(sys.version_info < (3, 11))";
    candidates
        .into_iter()
        .find(|python| succeeds(command(python, &["-c", recent])))
        .ok_or_else(|| "Python 3.11 or later is needed: install it, or name it in PYTHON".into())
}

/// Installs the module `venv` if possible: Debian packages it separately from Python.
fn ensure_venv_module(python: &Path) -> Result {
    let present = || succeeds(command(python, &["-c", "import venv, ensurepip"]));
    if present() {
        return Ok(());
    }
    let root = succeeds(command("sh", &["-c", "test \"$(id -u)\" = 0"]));
    if root && succeeds(command("apt-get", &["--version"])) {
        eprintln!("    installing python3-venv");
        run(command("apt-get", &["update", "-qq"]))?;
        run(command("apt-get", &["install", "-y", "-qq", "--no-install-recommends", "python3-venv"]))?;
    }
    if present() { Ok(()) } else { Err("Python's venv module is missing: install the package python3-venv".into()) }
}
