//! Graphs that pass the reader and fail when they run, or would take for ever.

use proptest::prelude::*;
use serde_json::{Value as Json, json};
use trainyard_protocol::custom_loss::SIGNATURES;
use trainyard_protocol::{Category, OpError};

use super::Case;
use crate::loss::LossValue;

/// The sum of the log-probabilities after some nodes, on six targets; the last node is the loss if `is_result`.
pub(super) fn case(nodes: &[Json], is_result: bool) -> Json {
    let mut all = vec![
        json!({"op": "placeholder", "name": "logprobs", "target": "logprobs"}),
        json!({"op": "placeholder", "name": "mask", "target": "mask"}),
    ];
    all.extend_from_slice(nodes);
    all.push(json!({"op": "call_method", "name": "total", "target": "sum", "args": [{"ref": "logprobs"}]}));
    let result = if is_result { nodes.last().unwrap()["name"].clone() } else { json!("total") };
    let returned = json!([[{"ref": result}, {"dict": {"custom/metric:sum": {"ref": result}}}]]);
    all.push(json!({"op": "output", "name": "output", "target": "output", "args": returned}));
    json!({
        "definition": {
            "name": "f",
            "inputs": [{"name": "logprobs", "rank": 1}, {"name": "mask", "rank": 1}],
            "graph": {"format": 1, "nodes": all},
        },
        "logprobs": {"shape": [6], "dtype": "float32", "data": [-1.0, -2.0, -0.5, -0.25, -3.0, -1.5]},
        "inputs": [{"shape": [6], "dtype": "float32", "data": [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]}],
    })
}

fn run(nodes: &[Json], is_result: bool) -> Result<LossValue, OpError> {
    Case::of(&case(nodes, is_result)).evaluate()
}

pub(super) fn node(name: &str, target: &str, args: Json) -> Json {
    match target.strip_prefix("Tensor.") {
        Some(method) => json!({"op": "call_method", "name": name, "target": method, "args": args}),
        None => json!({"op": "call_function", "name": name, "target": target, "args": args}),
    }
}

#[track_caller]
fn refused(nodes: &[Json], is_result: bool, expected: &str) {
    let error = run(nodes, is_result).unwrap_err();
    assert_eq!(error.category, Category::User, "{error}");
    assert!(error.message.contains(expected), "{error}");
}

pub(super) fn logprobs() -> Json {
    json!({"ref": "logprobs"})
}

#[test]
fn what_would_be_too_large_is_never_allocated() {
    let huge = 1_i64 << 40;
    for (target, args) in [
        ("torch.zeros", json!([huge, huge])),
        ("torch.full", json!([[huge], 1.0])),
        ("torch.arange", json!([1e18])),
        ("torch.arange", json!([0, 1, 1e-18])),
        ("Tensor.expand", json!([logprobs(), huge, huge, 6])),
        ("Tensor.repeat", json!([logprobs(), huge])),
        ("Tensor.repeat", json!([logprobs(), huge, huge, huge])),
        ("Tensor.new_zeros", json!([logprobs(), huge, huge, huge])),
        ("torch.diff", json!([logprobs(), huge])),
    ] {
        let found = run(&[node("x", target, args.clone())], false);
        match found {
            Err(error) => {
                assert!(error.message.contains("node \"x\"") && error.message.contains("costs more"), "{error}");
            }
            // Differences of so few elements end soon.
            Ok(_) => assert_eq!(target, "torch.diff"),
        }
    }
}

/// Each node doubles the size of the one before.
#[test]
fn growth_is_bounded() {
    let mut nodes = vec![node("n0", "torch.cat", json!([[logprobs(), logprobs()]]))];
    for at in 1..200 {
        let before = json!({"ref": format!("n{}", at - 1)});
        nodes.push(node(&format!("n{at}"), "torch.cat", json!([[before, before]])));
    }
    refused(&nodes, false, "torch.cat): the loss costs more than");
    let outer = node("a", "torch.zeros", json!([1_000]));
    let square = node("b", "torch.outer", json!([{"ref": "a"}, {"ref": "a"}]));
    let product = node("c", "torch.matmul", json!([{"ref": "b"}, {"ref": "b"}]));
    refused(&[outer, square, product], false, "node \"c\" (torch.matmul): the loss costs more than");
}

/// A long chain is walked back without recursion.
#[test]
fn long_chains_are_differentiated() {
    let mut nodes = vec![node("n0", "torch.exp", json!([logprobs()]))];
    for at in 1..1_000 {
        let target = if at % 2 == 0 { "torch.tanh" } else { "Tensor.contiguous" };
        nodes.push(node(&format!("n{at}"), target, json!([{"ref": format!("n{}", at - 1)}])));
    }
    nodes.push(node("loss", "torch.sum", json!([{"ref": "n999"}])));
    assert!(run(&nodes, true).unwrap().sum.is_finite());
}

#[test]
fn operands_that_do_not_fit_are_named() {
    let cases = [
        ("torch.exp", json!([[1, 2]]), "argument 0 must be a tensor, not a list"),
        ("torch.add", json!([logprobs(), "a"]), "expected a tensor or a number, found a text"),
        ("operator.getitem", json!([logprobs(), 6]), "index 6 is out of range for an extent of 6"),
        ("operator.getitem", json!([logprobs(), {"tuple": [0, 0]}]), "2 indices into a tensor of 1 dimensions"),
        ("operator.getitem", json!([logprobs(), {"slice": [null, null, -1]}]), "the step of a slice must be positive"),
        ("operator.getitem", json!([logprobs(), 1.5]), "a float is not an index"),
        ("operator.floordiv", json!([1, 0]), "division by zero"),
        ("operator.mul", json!([i64::MAX, 2]), "does not fit in 64 bits"),
        ("operator.matmul", json!([logprobs(), 2]), "argument 1 must be a tensor"),
        ("math.log", json!([0]), "math domain or range error at 0"),
        ("math.exp", json!([1e9]), "math domain or range error"),
        ("math.exp", json!([logprobs()]), "expected a tensor of one element, found 6 elements"),
        (
            "getattr",
            json!([logprobs(), "grad_fn"]),
            "attribute \"grad_fn\" of a float32 tensor of shape [6] is not allowed",
        ),
        ("Tensor.reshape", json!([logprobs(), 4, -1]), "cannot reshape a tensor of 6 elements to [4, -1]"),
        ("Tensor.reshape", json!([logprobs(), 0, -1]), "cannot reshape"),
        ("Tensor.expand", json!([logprobs(), 7]), "does not expand to [7]"),
        ("torch.sum", json!([logprobs(), 1]), "dimension 1 is out of range for a tensor of 1 dimensions"),
        ("torch.sum", json!([logprobs(), [0, -1]]), "a dimension is listed twice"),
        ("torch.cat", json!([[]]), "expected a list of at least one tensor"),
        ("torch.stack", json!([[logprobs(), 1]]), "expected a list of tensors, found an int in it"),
        ("torch.where", json!([logprobs(), 1, 2]), "the condition must be a bool tensor, not float32"),
        ("Tensor.to", json!([logprobs(), {"dtype": "float16"}]), "dtype float16 is not supported"),
        ("torch.clamp", json!([logprobs()]), "min and max are both missing"),
        ("Tensor.split", json!([logprobs(), 0]), "the size of a piece must be positive"),
        ("torch.gather", json!([logprobs(), 0, logprobs()]), "an index of shape [6] into shape [6]"),
        ("torch.norm", json!([logprobs(), 3]), "p must be 1, 2 or inf"),
        ("torch.div", json!([logprobs(), 2, "up"]), "rounding_mode must be"),
    ];
    for (target, args, expected) in cases {
        let nodes = [node("x", target, args)];
        refused(&nodes, false, &format!("data[0]: custom loss \"f\": node \"x\" ({target}): "));
        refused(&nodes, false, expected);
    }
}

#[test]
fn long_texts_of_a_graph_are_cut_in_errors() {
    let text = "\u{e9}".repeat(5_000);
    for (target, args) in [("getattr", json!([logprobs(), text])), ("torch.div", json!([logprobs(), 2, text]))] {
        let error = run(&[node("x", target, args)], false).unwrap_err();
        assert!(error.message.len() < 800, "{} bytes", error.message.len());
        assert!(error.message.starts_with("data[0]: custom loss \"f\": node \"x\""), "{error}");
    }
}

#[test]
fn a_loss_must_be_a_finite_number_with_a_gradient() {
    refused(
        &[node("x", "torch.exp", json!([logprobs()]))],
        true,
        "must be a tensor of no dimensions, not a float32 tensor",
    );
    refused(&[node("x", "math.exp", json!([1]))], true, "must be a tensor of no dimensions, not a float");
    refused(&[node("x", "torch.sum", json!([{"ref": "mask"}]))], true, "it does not depend on logprobs");
    let detached = node("d", "Tensor.detach", json!([logprobs()]));
    refused(&[detached, node("x", "torch.sum", json!([{"ref": "d"}]))], true, "it does not depend on logprobs");
    let scaled = node("s", "operator.mul", json!([logprobs(), -1e30]));
    let powers = node("p", "torch.exp", json!([{"ref": "s"}]));
    refused(&[scaled, powers, node("x", "torch.sum", json!([{"ref": "p"}]))], true, "the loss is inf");
    let roots = node("r", "torch.sqrt", json!([{"ref": "z"}]));
    let zeros = node("z", "operator.mul", json!([logprobs(), {"ref": "mask"}]));
    refused(&[zeros, roots, node("x", "torch.sum", json!([{"ref": "r"}]))], true, "not finite at position 0");
}

/// A mask without true elements, as the first steps of a run have them.
#[test]
fn empty_tensors_are_tensors() {
    let mask = node("m", "operator.gt", json!([{"ref": "mask"}, 0]));
    let none = node("n", "operator.getitem", json!([logprobs(), {"ref": "m"}]));
    let sum = node("x", "torch.sum", json!([{"ref": "n"}]));
    let value = run(&[mask.clone(), none.clone(), sum], true).unwrap();
    assert_eq!((value.sum, value.dlogprobs), (0.0, vec![0.0; 6]));
    for target in ["torch.exp", "Tensor.contiguous", "torch.flatten", "torch.diff", "torch.ravel"] {
        run(&[mask.clone(), none.clone(), node("x", target, json!([{"ref": "n"}]))], false).unwrap();
    }
    for target in ["torch.cumsum", "torch.softmax", "torch.logsumexp", "torch.unsqueeze", "torch.unbind"] {
        run(&[mask.clone(), none.clone(), node("x", target, json!([{"ref": "n"}, 0]))], false).unwrap();
    }
    let parts = json!([[{"ref": "n"}, logprobs(), {"ref": "n"}]]);
    run(&[mask.clone(), none.clone(), node("x", "torch.cat", parts)], false).unwrap();
    refused(&[mask.clone(), none.clone(), node("x", "torch.mean", json!([{"ref": "n"}]))], true, "the loss is NaN");
    refused(&[mask, none, node("x", "torch.amax", json!([{"ref": "n"}]))], true, "no largest or smallest element");
}

/// Any argument: earlier nodes, numbers at the edges, lists, slices.
fn argument() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        4 => prop::sample::select(vec!["logprobs", "mask", "n0", "n1", "n2"]).prop_map(|name| json!({"ref": name})),
        2 => (-3_i64..7).prop_map(|value| json!(value)),
        1 => prop::sample::select(vec![i64::MIN, i64::MAX, 1 << 33]).prop_map(|value| json!(value)),
        1 => prop::sample::select(vec![0.0, -0.5, 2.5, 1e300]).prop_map(|value| json!(value)),
        1 => prop::sample::select(vec!["inf", "nan"]).prop_map(|value| json!({"float": value})),
        1 => prop::sample::select(vec![json!(null), json!(true), json!({"ellipsis": true}), json!({"dtype": "int64"})]),
        1 => prop::sample::select(vec!["shape", "T", "values", "sum", "trunc"]).prop_map(|text| json!(text)),
    ];
    leaf.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(|items| json!(items)),
            prop::collection::vec(inner.clone(), 0..3).prop_map(|items| json!({"tuple": items})),
            prop::collection::vec(inner, 3).prop_map(|items| json!({"slice": items})),
        ]
    })
}

fn call() -> impl Strategy<Value = (String, Vec<Json>)> {
    let targets: Vec<&str> = SIGNATURES.iter().flat_map(|signature| signature.targets.iter().copied()).collect();
    (prop::sample::select(targets), prop::collection::vec(argument(), 0..4))
        .prop_map(|(target, args)| (target.to_owned(), args))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is called with whatever: a value, or the user's error. A panic would be the server's.
    #[test]
    fn no_graph_breaks_the_interpreter(calls in prop::collection::vec(call(), 3..7)) {
        let nodes: Vec<Json> =
            calls.iter().enumerate().map(|(at, (target, args))| node(&format!("n{at}"), target, json!(args))).collect();
        let definition = &case(&nodes, false)["definition"];
        if trainyard_protocol::custom_loss::CustomLoss::read(definition).is_ok()
            && let Err(error) = run(&nodes, false)
        {
            prop_assert_eq!(error.category, Category::User, "{}", error);
        }
    }
}
