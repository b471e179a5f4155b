//! The machine and the program in a report, as far as they matter to whoever reads it elsewhere.

use std::collections::BTreeMap;
use std::env;
use std::fs;

use serde::Serialize;

/// Variables that change how CUDA's libraries are found or work. No secret is in any of them.
const VARIABLES: [&str; 10] = [
    "CUDA_CACHE_DISABLE",
    "CUDA_CACHE_PATH",
    "CUDA_DEVICE_ORDER",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MODULE_LOADING",
    "CUDA_VISIBLE_DEVICES",
    "LD_LIBRARY_PATH",
    "NVIDIA_DRIVER_CAPABILITIES",
    "NVIDIA_TF32_OVERRIDE",
    "NVIDIA_VISIBLE_DEVICES",
];

/// Beginnings of names of further ones: of NCCL, and of the simulated driver.
const PREFIXES: [&str; 2] = ["NCCL_", "CUDASIM_"];

/// The machine that a report is about. What the system does not tell is `None`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Machine {
    /// Name and version of the system.
    system: Option<String>,
    /// Version of the kernel.
    kernel: Option<String>,
    /// Architecture that the program was built for.
    architecture: &'static str,
    /// Model of the processor.
    processor: Option<String>,
    /// Version of NVIDIA's kernel module.
    nvidia_driver: Option<String>,
    /// Cargo features of the program.
    features: Vec<&'static str>,
    /// Variables of the environment that concern GPUs.
    environment: BTreeMap<String, String>,
}

impl Machine {
    /// Reads what the system tells.
    pub(super) fn detect() -> Self {
        let read = |path: &str| fs::read_to_string(path).ok();
        let processor = |text: String| after(&text, "model name", ':');
        let system = |text: String| after(&text, "PRETTY_NAME", '=').map(|name| name.trim_matches('"').to_owned());
        Self {
            system: read("/etc/os-release").and_then(system),
            kernel: read("/proc/sys/kernel/osrelease").map(|text| text.trim().to_owned()),
            architecture: env::consts::ARCH,
            processor: read("/proc/cpuinfo").and_then(processor),
            nvidia_driver: read("/proc/driver/nvidia/version")
                .and_then(|text| Some(text.lines().next()?.split_whitespace().collect::<Vec<_>>().join(" "))),
            features: features(),
            environment: chosen(
                env::vars_os()
                    .filter_map(|(name, value)| Some((name.into_string().ok()?, value.to_string_lossy().into_owned()))),
            ),
        }
    }
}

/// The value behind a name in lines of `name SEPARATOR value`.
fn after(text: &str, name: &str, separator: char) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(separator)?.1.trim().to_owned())
}

fn chosen(variables: impl Iterator<Item = (String, String)>) -> BTreeMap<String, String> {
    let counts = |name: &str| VARIABLES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    variables.filter(|(name, _)| counts(name)).collect()
}

fn features() -> Vec<&'static str> {
    let all = [
        ("cuda", cfg!(feature = "cuda")),
        ("docs-page", cfg!(feature = "docs-page")),
        ("grammar", cfg!(feature = "grammar")),
        ("otlp", cfg!(feature = "otlp")),
        ("s3", cfg!(feature = "s3")),
        ("top", cfg!(feature = "top")),
    ];
    all.into_iter().filter_map(|(name, is_there)| is_there.then_some(name)).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn values_are_found_behind_their_names() {
        let text = "NAME=\"D\"\nPRETTY_NAME=\"Debian 12\"\n";
        assert_eq!(after(text, "PRETTY_NAME", '=').unwrap(), "\"Debian 12\"");
        assert_eq!(after("model name\t: Xeon\n", "model name", ':').unwrap(), "Xeon");
        assert_eq!(after("", "x", '='), None);
        let machine = Machine::detect();
        assert!(!machine.architecture.is_empty() && !machine.system.is_some_and(|name| name.contains('"')));
    }

    #[test]
    fn only_variables_of_gpus_are_reported() {
        let given = ["NCCL_DEBUG", "AWS_SECRET_ACCESS_KEY", "CUDA_VISIBLE_DEVICES", "TRAINYARD_API_KEY", "PATH"];
        let found = chosen(given.into_iter().map(|name| (name.to_owned(), "x".to_owned())));
        assert_eq!(found.into_keys().collect::<Vec<_>>(), ["CUDA_VISIBLE_DEVICES", "NCCL_DEBUG"]);
    }
}
