//! Checks production files against the tables of imports and names.

use crate::references::Source;
use crate::rules::{ImportRule, UNSAFE};
use crate::sources::ProductionFile;

/// A line that breaks a rule.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) file: String,
    pub(crate) line: usize,
    /// Path or name in the rule.
    pub(crate) forbidden: String,
    /// Path or name in the line.
    pub(crate) found: String,
    pub(crate) why: &'static str,
}

impl Violation {
    pub(crate) fn text(&self) -> String {
        let Self { file, line, found, why, .. } = self;
        format!("{file}:{line} names {found}: {why}")
    }
}

/// Returns the rule's violations in a file.
pub(crate) fn check(rule: &ImportRule, file: &ProductionFile) -> Vec<Violation> {
    if !rule.folders.iter().any(|folder| is_within(&file.path, folder)) {
        return Vec::new();
    }
    let module: Vec<_> = file.module.iter().map(String::as_str).collect();
    let source = Source::parse(&file.text);
    let violation = |line, forbidden: &str, found: &str| Violation {
        file: file.path.clone(),
        line,
        forbidden: forbidden.to_owned(),
        found: found.to_owned(),
        why: rule.why,
    };
    let mut violations = Vec::new();
    for reference in source.references(&module) {
        let forbidden = rule.paths.iter().find(|path| is_below(&reference.path, path));
        violations.extend(forbidden.map(|path| violation(reference.line, path, &reference.path)));
    }
    for name in source.names() {
        let forbidden = rule.names.iter().find(|pattern| matches(name.text, pattern));
        violations.extend(forbidden.map(|pattern| violation(name.line, pattern, name.text)));
    }
    violations
}

/// Returns uses of `unsafe` outside the places that may contain it.
pub(crate) fn check_unsafe(file: &ProductionFile) -> Vec<Violation> {
    if UNSAFE.iter().any(|(place, _)| is_within(&file.path, place)) {
        return Vec::new();
    }
    let rule = ImportRule {
        folders: &[""],
        paths: &[],
        names: &["unsafe"],
        why: "`unsafe` belongs to the backends of gpu-runtime",
    };
    check(&rule, file)
}

/// Returns whether a file is the place itself or below it.
fn is_within(path: &str, place: &str) -> bool {
    place.is_empty() || path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn is_below(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

fn matches(name: &str, pattern: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix)),
        None => name == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::{check, check_unsafe};
    use crate::rules::{DEVICE_INDEPENDENT, IMPORTS, ImportRule};
    use crate::sources::ProductionFile;

    fn file(path: &str, module: &[&str], text: &str) -> ProductionFile {
        let module = module.iter().map(|&name| name.to_owned()).collect();
        ProductionFile { path: path.to_owned(), module, text: text.to_owned() }
    }

    fn found(rule: &ImportRule, file: &ProductionFile) -> Vec<(usize, String)> {
        check(rule, file).into_iter().map(|violation| (violation.line, violation.found)).collect()
    }

    fn model(text: &str) -> Vec<(usize, String)> {
        found(
            &DEVICE_INDEPENDENT,
            &file("gpu-runtime/src/model/forward.rs", &["trainyard_gpu_runtime", "model", "forward"], text),
        )
    }

    #[test]
    fn a_planted_import_is_found_wherever_it_hides() {
        let cpu = |line| vec![(line, "trainyard_gpu_runtime::backend::cpu::Gemm".to_owned())];
        assert_eq!(model("use crate::backend::cpu::Gemm;"), cpu(1));
        assert_eq!(
            model("use crate::{\n    config,\n    backend::{\n        Backend,\n        cpu::{Gemm},\n    },\n};"),
            cpu(5)
        );
        assert_eq!(model("fn f() {\n    super::super::backend::cpu::Gemm\n}"), cpu(2));
        assert_eq!(model("use crate::backend as b;\ntype G = b::cpu::Gemm;"), cpu(2));
        assert_eq!(model("use crate::backend::{self, Backend};\ntype G = backend::cpu::Gemm;"), cpu(2));
        assert_eq!(model("use super::super::{backend::{cpu::Gemm as Product}};"), cpu(1));
    }

    #[test]
    fn names_of_devices_and_instruction_sets_are_found() {
        let names = |text| model(text).into_iter().map(|(_, name)| name).collect::<Vec<_>>();
        assert_eq!(names("fn f<B>(b: B) -> Engine<Cpu> {}"), ["Cpu"]);
        assert_eq!(
            names("#[cfg(target_arch = \"x\")] fn avx2_dot() { _mm256_add_ps(); Avx512 }"),
            ["avx2_dot", "_mm256_add_ps", "Avx512"]
        );
        assert!(names("// Cpu and avx2\nfn f() -> &'static str { \"Cpu avx2\" }").is_empty());
        assert!(names("#[cfg(test)]\nmod tests { use crate::backend::cpu::Cpu; }").is_empty());
        assert!(names("use crate::backend::{Backend, cpus::X};").is_empty());
    }

    #[test]
    fn a_rule_covers_its_folder_alone() {
        let text = "use trainyard_gpu_runtime::loss::Loss;";
        let api = IMPORTS.iter().find(|rule| rule.folders == ["server/src/api"]).unwrap();
        let found = |path| found(api, &file(path, &["trainyard_server", "api", "forward"], text)).len();
        assert_eq!(
            (found("server/src/api/training/forward.rs"), found("server/src/apis.rs"), found("server/src/engine.rs")),
            (1, 0, 0)
        );
    }

    #[test]
    fn planted_unsafe_code_is_found_outside_the_backends() {
        let lines =
            |path| check_unsafe(&file(path, &["trainyard_x"], "// unsafe\nfn f() {\n    unsafe { g() }\n}")).len();
        assert_eq!(
            (lines("backend/src/cpu/pool.rs"), lines("gpu-runtime/src/model/mod.rs"), lines("server/src/lib.rs")),
            (0, 1, 1)
        );
    }
}
