//! The version of `minijinja`, whose instructions `server` rewrites to meter templates.

use std::process::Command;

use serde_json::Value;

/// Instructions of a compiled template. Before a new version is pinned, whoever rewrites instructions looks at each that is
/// new or gone: whether it copies, joins or visits values without fuel.
const INSTRUCTIONS: &str = "EmitRaw StoreLocal Lookup GetAttr SetAttr GetItem Slice LoadConst BuildMap BuildKwargs \
     MergeKwargs BuildList BuildTuple UnpackList UnpackLists Add Sub Mul Div IntDiv Rem Pow Neg Eq Ne Gt Gte Lt Lte Not \
     StringConcat In CompareAndPreserve ApplyFilter PerformTest Emit PushLoop PushWith Iterate PushDidNotIterate \
     PopFrame PopLoopFrame Jump JumpIfFalse JumpIfFalseOrPop JumpIfTrueOrPop PushAutoEscape PopAutoEscape BeginCapture \
     EndCapture CallFunction CallMethod CallObject DupTop DiscardTop FastSuper FastRecurse Swap CallBlock LoadBlocks \
     Include ExportLocals BuildMacro Return IsUndefined Enclose GetClosure";

/// Returns the names of an enum's variants, from its source.
fn variants<'a>(source: &'a str, start: &str) -> Vec<&'a str> {
    let body = source.split_once(start).map_or("", |(_, rest)| rest.split_once("\n}\n").map_or("", |(body, _)| body));
    let names = body.lines().filter_map(|line| line.strip_prefix("    "));
    let names = names.filter(|line| line.starts_with(|first: char| first.is_ascii_uppercase()));
    names.map(|line| line.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default()).collect()
}

#[test]
fn the_instructions_of_templates_are_those_that_are_metered() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["metadata", "--locked", "--format-version", "1", "--filter-platform", "x86_64-unknown-linux-gnu"]);
    let output = command.current_dir(crate::sources::root()).output().unwrap();
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let manifests: Vec<_> = packages.iter().filter(|package| package["name"] == "minijinja").collect();
    assert_eq!(manifests.len(), 1, "one version renders templates");
    let manifest = std::path::Path::new(manifests[0]["manifest_path"].as_str().unwrap());
    let source = std::fs::read_to_string(manifest.with_file_name("src/compiler/instructions.rs")).unwrap();
    let found = variants(&source, "pub enum Instruction<'source> {");
    assert_eq!(found, INSTRUCTIONS.split_ascii_whitespace().collect::<Vec<_>>());
}

#[test]
fn the_version_of_the_instructions_is_pinned() {
    let text = std::fs::read_to_string(crate::sources::root().join("Cargo.toml")).unwrap();
    assert!(
        text.contains("\nminijinja = { version = \"=3.1.0\""),
        "Cargo.toml: expected an exact version of minijinja"
    );
}

#[test]
fn variants_are_read_with_and_without_fields() {
    let source = "pub enum Of<'a> {\n    /// One.\n    One,\n\n    #[cfg(x)]\n    Two(&'a str),\n    Three { x: u8 },\n}\nenum No {\n    A,\n}\n";
    assert_eq!(variants(source, "pub enum Of<'a> {"), ["One", "Two", "Three"]);
}
