//! Mutations of recorded graphs: read, bound to a datum and evaluated.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;
use trainyard_protocol::custom_loss::{CustomLoss, SIGNATURES};
use trainyard_protocol::{Category, Datum, LossFn, OpError, Tensor, TensorValues};
use trainyard_test_support::heap;
use trainyard_test_support::mutate::Corpus;

use crate::loss::{evaluate, prepare};

/// Bytes that a loss may hold on a datum: what it may cost bounds what it may make.
const MOST_BYTES: usize = 256 << 20;

/// Targets of a datum.
const ROWS: usize = 6;

fn tensor(rank: usize, values: impl Fn(usize) -> TensorValues) -> Tensor {
    let shape = match rank {
        0 => vec![1],
        1 => vec![ROWS],
        _ => vec![ROWS, 3],
    };
    Tensor { values: values(shape.iter().product()), shape }
}

/// Parses and uses a definition as the server does for a client.
fn run(definition: &Json) -> Result<(), OpError> {
    let loss = Arc::new(CustomLoss::read(definition).map_err(|error| error.refusal())?);
    let targets = tensor(loss.inputs[0].rank, |count| TensorValues::I64(vec![1; count]));
    let logprobs: Vec<f32> = (1..=targets.len()).map(|at| at as f32 / -4.0).collect();
    let mut inputs = BTreeMap::from([("target_tokens".to_owned(), targets)]);
    for input in &loss.inputs[1..] {
        let values = |count| TensorValues::F32((0..count).map(|value| value as f32 / 8.0).collect());
        inputs.insert(input.name.clone(), tensor(input.rank, values));
    }
    let loss = LossFn::Custom(loss);
    let datum = Datum { tokens: vec![1; ROWS], loss_fn_inputs: inputs, images: Vec::new() };
    let prepared = prepare(&loss, 0, &datum, 8)?;
    evaluate(&loss, &prepared, &logprobs).map(drop)
}

fn understood(definition: &Json) -> bool {
    let (result, peak) = heap::peak(|| run(definition));
    assert!(peak <= MOST_BYTES, "{peak} bytes held at once for {definition}");
    // A panic would be the server's.
    if let Err(error) = &result {
        assert_eq!(error.category, Category::User, "{error}: {definition}");
        assert!(!error.message.is_empty() && error.message.len() < 1_000, "{error}");
    }
    result.is_ok()
}

#[test]
fn mutated_graphs() {
    let mut words: Vec<&str> = SIGNATURES.iter().flat_map(|signature| signature.targets.iter().copied()).collect();
    words.extend(["ref", "tuple", "slice", "ellipsis", "dtype", "float", "logprobs", "args", "kwargs", "int64", "dim"]);
    let mut evaluated = 0;
    let corpus = Corpus::new("custom_loss").changes(2).words(&words);
    corpus.each_value(|definition| evaluated += usize::from(understood(definition)));
    assert!(evaluated > 100, "{evaluated}: some mutations are graphs that can be computed");
}

/// Mutates texts of graphs as a client's body contains them.
#[test]
fn mutated_texts_of_graphs() {
    Corpus::new("custom_loss").each(|input| {
        if let Ok(definition) = serde_json::from_slice(input) {
            understood(&definition);
        }
    });
}
