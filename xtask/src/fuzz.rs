//! Mutations of the corpora in `tests/fuzz`, guided by coverage.
//!
//! The targets are the tests that `make test` runs, compiled with counters of branches. The flags for that are stable, so this
//! needs no other toolchain. The programs are in a folder of their own, because all dependencies are compiled with counters too.

use crate::Result;
use crate::process::{all, cargo, command, run, run_quietly, step, target};

/// Seconds of processor time of each search, unless the arguments contain another number.
const SECONDS: &str = "60";

/// Counters of eight bits for every edge between basic blocks.
const COUNTERS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=3 \
                        -Cllvm-args=-sanitizer-coverage-inline-8bit-counters";

/// Kernels, which no decoder calls, take minutes to compile with optimisation and counters.
const PROFILE: &[&str] = &[
    "--config",
    "profile.dev.package.trainyard-backend.opt-level=1",
    "--config",
    "profile.test.package.trainyard-backend.opt-level=1",
];

struct Target {
    name: &'static str,
    package: &'static str,
    /// Test program of the package.
    program: &'static [&'static str],
    test: &'static str,
}

const LIB: &[&str] = &["--lib"];
const HOSTILE: &[&str] = &["--test", "hostile"];

const fn target_of(name: &'static str, package: &'static str, test: &'static str) -> Target {
    Target { name, package, program: LIB, test }
}

const fn images(name: &'static str, test: &'static str) -> Target {
    Target { name, package: "trainyard-images", program: HOSTILE, test }
}

const TARGETS: &[Target] = &[
    images("images_png", "mutated_png_files_never_panic_and_hold_no_more_than_the_limits_allow"),
    images("images_png_checksums", "mutated_png_files_with_valid_checksums_never_panic"),
    images("images_jpeg", "mutated_jpeg_files_never_panic_and_hold_no_more_than_the_limits_allow"),
    target_of("templates", "trainyard-chat", "template::fuzz::mutated_templates"),
    target_of("tokenizer", "trainyard-gpu-runtime", "tokenizer_file::tests::mutated_files"),
    target_of("tiktoken", "trainyard-gpu-runtime", "load::tiktoken::fuzz::mutated_ranks"),
    target_of("tiktoken_config", "trainyard-gpu-runtime", "load::tiktoken::fuzz::mutated_special_tokens"),
    target_of("json_schema", "trainyard-gpu-runtime", "grammar::fuzz::mutated_schemas"),
    target_of("custom_loss", "trainyard-gpu-runtime", "loss::custom::tests::fuzz::mutated_graphs"),
    target_of("custom_loss_text", "trainyard-gpu-runtime", "loss::custom::tests::fuzz::mutated_texts_of_graphs"),
    target_of("gguf", "trainyard-gpu-runtime", "load::tests::hostile::fuzz::mutated_gguf_files"),
    target_of("safetensors", "trainyard-gpu-runtime", "load::tests::hostile::fuzz::mutated_safetensors_files"),
    target_of(
        "safetensors_headers",
        "trainyard-gpu-runtime",
        "load::tests::hostile::fuzz::mutated_safetensors_headers",
    ),
    target_of("model_config", "trainyard-gpu-runtime", "load::tests::hostile::fuzz::mutated_configurations"),
    target_of("adapter", "trainyard-gpu-runtime", "checkpoint::uploaded::tests::mutated_configurations_and_tensors"),
    target_of("protobuf", "trainyard-server", "fuzz::training_requests_in_protobuf"),
    target_of("results", "trainyard-server", "fuzz::stored_results"),
    target_of("json", "trainyard-server", "fuzz::bodies_in_json"),
    target_of("json_values", "trainyard-server", "fuzz::values_in_bodies"),
    target_of("tokens", "trainyard-server", "fuzz::tokens_and_published_keys"),
    target_of("paths", "trainyard-server", "fuzz::paths_and_recipients"),
];

/// Searches for inputs that a decoder does not survive. Arguments are names of targets, by default all, and a number of seconds.
pub(crate) fn fuzz() -> Result {
    let (seconds, names): (Vec<String>, Vec<String>) =
        std::env::args().skip(2).partition(|argument| argument.parse::<u64>().is_ok());
    let known = || TARGETS.iter().map(|target| target.name).collect::<Vec<_>>().join(", ");
    if let Some(unknown) = names.iter().find(|name| TARGETS.iter().all(|target| target.name != **name)) {
        return Err(format!("unknown target {unknown:?}: expected seconds, or {}", known()));
    }
    let seconds = seconds.last().map_or(SECONDS, String::as_str);
    let host = host()?;
    let chosen = TARGETS.iter().filter(|target| names.is_empty() || names.iter().any(|name| name == target.name));
    all(chosen.map(|target| step(target.name, || search(target, &host, seconds))))
}

fn search(fuzzed: &Target, host: &str, seconds: &str) -> Result {
    let folder = target().join("fuzz");
    let found = folder.join("found");
    let mut tests = cargo(&["test", "--locked", "--package", fuzzed.package]);
    tests.args(PROFILE).args(fuzzed.program).arg(fuzzed.test);
    // With the name of a target, procedural macros and build scripts have no counters.
    tests.args(["--target", host, "--target-dir"]).arg(&folder);
    tests.args(["--", "--exact", "--nocapture", "--test-threads", "1"]);
    tests.env("RUSTFLAGS", COUNTERS).env("FUZZ_SECONDS", seconds).env("FUZZ_FOLDER", &found);
    run(tests).map_err(|error| format!("{error}\nthe input is in {}/*.current", found.display()))
}

/// Returns the platform that the compiler runs on.
fn host() -> Result<String> {
    let about = run_quietly(&mut command("rustc", &["--version", "--verbose"]))?;
    let host = about.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc does not tell its host".to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::TARGETS;
    use crate::process::root;

    /// Returns whether a source below a folder contains a text.
    fn contains(folder: &Path, text: &str) -> bool {
        fs::read_dir(folder).into_iter().flatten().flatten().any(|entry| {
            let path = entry.path();
            match path.extension() {
                _ if path.is_dir() => contains(&path, text),
                Some(kind) if kind == "rs" => fs::read_to_string(&path).is_ok_and(|source| source.contains(text)),
                _ => false,
            }
        })
    }

    /// A filter that selects no test would pass.
    #[test]
    fn targets_are_tests() {
        for target in TARGETS {
            let name = target.test.rsplit("::").next().unwrap_or_default();
            let folder = root().join(target.package.trim_start_matches("trainyard-"));
            assert!(contains(&folder, &format!("fn {name}()")), "{}: no test {}", target.name, target.test);
        }
    }
}
