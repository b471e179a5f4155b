//! Mutations of JSON schemas: checked, compiled and followed for some tokens.
#![allow(clippy::unwrap_used, reason = "tests")]

use trainyard_protocol::{Category, SamplingControls};
use trainyard_test_support::heap;
use trainyard_test_support::mutate::Corpus;

use super::tests::{compiler, on_stack};
use super::*;

/// Bytes that a grammar may hold, with what it is compiled from.
const MOST_BYTES: usize = 256 << 20;
/// Tokens that are sampled.
const STEPS: u32 = 24;

const WORDS: [&str; 40] = [
    "$ref",
    "#",
    "#/$defs/a",
    "$defs",
    "a",
    "type",
    "object",
    "array",
    "string",
    "integer",
    "number",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "uniqueItems",
    "enum",
    "const",
    "anyOf",
    "allOf",
    "oneOf",
    "not",
    "pattern",
    "^(a|aa)+$",
    "(a{1,1000}){1,1000}",
    "^(([a-z])+.)+[A-Z]([a-z])+$",
    "[^\"]*",
    "format",
    "date-time",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "multipleOf",
    "x-guidance",
    "patternProperties",
    "(?i)\\p{L}+",
];

/// Compiles a schema as the engine does, on a thread with a larger stack; and the most bytes that this held.
fn compile(compiler: &GrammarCompiler, schema: &str) -> (Result<Grammar, OpError>, usize) {
    let controls = SamplingControls { json_schema: Some(schema.to_owned()), ..SamplingControls::default() };
    let work = || heap::peak(|| controls.check().and_then(|()| compiler.compile(schema)));
    on_stack(COMPILE_STACK, work)
}

fn follow(mut grammar: Grammar, schema: &str) -> Result<(), OpError> {
    for step in 0..STEPS {
        // Another token at every step, the same ones on every run.
        let allowed: Vec<u32> = (0..300).filter(|token| grammar.allowed().allows(*token)).collect();
        let token = allowed[(step as usize * 31 + schema.len()) % allowed.len()];
        if grammar.push(token)? {
            break;
        }
    }
    Ok(())
}

#[test]
fn mutated_schemas() {
    let compiler = compiler();
    let mut followed = 0;
    Corpus::new("json_schema").inputs(1_500).words(&WORDS).each_value(|schema| {
        let schema = schema.to_string();
        let (grammar, compiling) = compile(&compiler, &schema);
        let (result, following) = heap::peak(|| grammar.and_then(|grammar| follow(grammar, &schema)));
        let peak = compiling + following;
        assert!(peak <= MOST_BYTES, "{peak} bytes held at once for {schema}");
        match result {
            Ok(()) => followed += 1,
            Err(error) => {
                assert_eq!(error.category, Category::User, "{error}: {schema}");
                assert!(error.message.starts_with("sampling_params.json_schema: "), "{error}: {schema}");
                assert!(error.message.len() < 400 && !error.message.contains("panic"), "{error}");
            }
        }
    });
    assert!(followed > 100, "{followed}: some mutations are schemas");
}
