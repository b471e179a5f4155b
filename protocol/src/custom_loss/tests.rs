#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;

/// `(logprobs * weights).sum()`, with further nodes before the output.
fn definition(extra: &[Value]) -> Value {
    let mut nodes = vec![
        json!({"op": "placeholder", "name": "logprobs", "target": "logprobs", "args": [], "kwargs": {}}),
        json!({"op": "placeholder", "name": "w", "target": "weights"}),
        json!({"op": "call_function", "name": "mul", "target": "operator.mul", "args": [{"ref": "logprobs"}, {"ref": "w"}]}),
        json!({"op": "call_method", "name": "sum_1", "target": "sum", "args": [{"ref": "mul"}], "kwargs": {"dim": -1}}),
    ];
    nodes.extend_from_slice(extra);
    let returned = json!({"tuple": [{"ref": "sum_1"}, {"dict": {"custom/b:mean": {"ref": "mul"}, "custom/a:sum": {"ref": "sum_1"}}}]});
    nodes.push(json!({"op": "output", "name": "output", "target": "output", "args": [returned]}));
    json!({
        "name": "neg_ll",
        "inputs": [{"name": "logprobs", "rank": 1}, {"name": "weights", "rank": 1}],
        "graph": {"format": 1, "nodes": nodes},
    })
}

fn call(target: &str, args: Value) -> Value {
    json!({"op": "call_function", "name": "x", "target": target, "args": args})
}

#[track_caller]
fn refused(definition: &Value, expected: &str) {
    let error = CustomLoss::read(definition).unwrap_err().to_string();
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn a_graph_is_read() {
    let loss = CustomLoss::read(&definition(&[])).unwrap();
    assert_eq!((loss.name.as_str(), loss.loss, loss.nodes.len()), ("neg_ll", 3, 4));
    assert_eq!(loss.nodes[1].op, Op::Input(1));
    assert_eq!(loss.nodes[2].arguments, [Argument::Node(0), Argument::Node(1)]);
    let dim = [Argument::Node(2), Argument::Int(-1), Argument::Absent, Argument::Absent];
    assert_eq!((loss.nodes[3].target.as_str(), &loss.nodes[3].arguments[..]), ("Tensor.sum", &dim[..]));
    assert_eq!(loss.metrics[0], Metric { key: "custom/a:sum".to_owned(), node: 3 });
    assert!(loss.metrics[1].is_mean());
}

#[test]
fn arguments_are_decoded() {
    let slice = json!({"slice": [null, {"ref": "w"}, 2]});
    let key = json!({"tuple": [slice, {"ellipsis": true}, null, {"float": "-inf"}, [1.5, true, "a"]]});
    let graph = definition(&[call("operator.getitem", json!([{"ref": "w"}, key]))]);
    let loss = CustomLoss::read(&graph).unwrap();
    let Argument::Tuple(items) = &loss.nodes[4].arguments[1] else { unreachable!() };
    assert_eq!(items[0], Argument::Slice(Box::new([Argument::None, Argument::Node(1), Argument::Int(2)])));
    assert_eq!(items[1..4], [Argument::Ellipsis, Argument::None, Argument::Float(f64::NEG_INFINITY)]);
    let list = vec![Argument::Float(1.5), Argument::Bool(true), Argument::Text("a".to_owned())];
    assert_eq!(items[4], Argument::List(list));
}

#[test]
fn variadic_parameters_are_one_list() {
    let reshape = |args: Value| {
        let node = json!({"op": "call_method", "name": "x", "target": "reshape", "args": args});
        CustomLoss::read(&definition(&[node])).unwrap().nodes[4].arguments[1].clone()
    };
    let expected = vec![Argument::Int(2), Argument::Int(-1)];
    assert_eq!(reshape(json!([{"ref": "w"}, 2, -1])), Argument::List(expected.clone()));
    assert_eq!(reshape(json!([{"ref": "w"}, [2, -1]])), Argument::List(expected.clone()));
    assert_eq!(reshape(json!([{"ref": "w"}, {"tuple": [2, -1]}])), Argument::Tuple(expected));
}

/// Refusals name the node and its target.
#[test]
fn hostile_nodes_are_refused_by_name_and_target() {
    let node = |op: &str, target: &str| json!({"op": op, "name": "x", "target": target});
    let deep = (0..20).fold(json!(1), |inner, _| json!([inner]));
    let cases = [
        (node("get_attr", "weight"), "get_attr weight): a custom loss can't capture tensors"),
        (node("call_module", "linear"), "call_module linear): modules are not allowed"),
        (node("eval", "x"), "eval x): op must be placeholder"),
        (node("output", "output"), "output output): the output must be the last node"),
        (node("placeholder", "other"), "placeholder other): the loss has 2 inputs"),
        (node("call_method", "item"), "call_method item): this target is not allowed"),
        (node("call_method", "backward"), "call_method backward): this target is not allowed"),
        (call("os.system", json!(["true"])), "call_function os.system): this target is not allowed"),
        (call("torch.load", json!(["a"])), "call_function torch.load): this target is not allowed"),
        (call("Tensor.exp", json!([])), "call_function Tensor.exp): this target is not allowed"),
        (call("torch.exp", json!([])), "call_function torch.exp): argument \"input\" is missing"),
        (call("torch.exp", json!([{"ref": "x"}])), "call_function torch.exp): the node refers to itself"),
        (call("torch.exp", json!([{"ref": "later"}])), "call_function torch.exp): no earlier node is called \"later\""),
        (call("torch.exp", json!([{"ref": 3}])), "call_function torch.exp): an argument {\"ref\": …} is malformed"),
        (call("torch.exp", json!([{"code": "x"}])), "call_function torch.exp): an argument of kind \"code\""),
        (
            call("torch.exp", json!([{"a": 1, "b": 2}])),
            "call_function torch.exp): an argument is an object with 2 keys, expected exactly one",
        ),
        (call("torch.exp", json!([{"dict": {}}])), "call_function torch.exp): an argument of kind \"dict\""),
        (
            call("torch.exp", json!([{"slice": [1]}])),
            "call_function torch.exp): an argument {\"slice\": …} is malformed",
        ),
        (call("torch.exp", json!([deep])), "call_function torch.exp): an argument is nested more than 8 levels"),
        (call("torch.exp", json!([u64::MAX])), "call_function torch.exp): 18446744073709551615 does not fit"),
        (call("torch.exp", json!([1, 2])), "call_function torch.exp): has more positional arguments than (input|self)"),
        (call("torch.exp", json!({})), "call_function torch.exp): args must be a list"),
    ];
    for (node, expected) in cases {
        refused(&definition(&[node]), &format!("graph.nodes[4]: node \"x\" ({expected}"));
    }
    let twice = json!({"op": "call_function", "name": "mul", "target": "torch.exp", "args": [{"ref": "w"}]});
    refused(
        &definition(&[twice]),
        "graph.nodes[4]: node \"mul\" (call_function torch.exp): an earlier node has this name",
    );
    for (key, reason) in
        [("out", "unexpected or repeated argument \"out\""), ("input", "unexpected or repeated argument \"input\"")]
    {
        let kwargs = json!({key: 1});
        let node = json!({"op": "call_function", "name": "x", "target": "torch.exp", "args": [1], "kwargs": kwargs});
        refused(&definition(&[node]), &format!("graph.nodes[4]: node \"x\" (call_function torch.exp): {reason}"));
    }
}

#[test]
fn fields_are_checked() {
    let with = |pointer: &str, value: Value| {
        let mut changed = definition(&[]);
        *changed.pointer_mut(pointer).unwrap() = value;
        changed
    };
    let input = |name: &str, rank: i64| json!({"name": name, "rank": rank});
    let returned = |value: Value| with("/graph/nodes/4/args", value);
    let cases = [
        (with("/name", json!(3)), "name: a text is required"),
        (with("/name", json!("n".repeat(300))), "name: has 300 bytes"),
        (with("/inputs", json!([])), "inputs: the first input must be logprobs"),
        (with("/inputs", json!(vec![input("logprobs", 1); 17])), "inputs: 17 inputs, at most 16"),
        (with("/inputs/0", input("logprobs", 0)), "inputs[0].rank: must be 1 or 2"),
        (with("/inputs/1", input("weights", 3)), "inputs[1].rank: must be 0, 1 or 2"),
        (with("/inputs/1", input("logprobs", 1)), "inputs[1].name: \"logprobs\" is the name of two inputs"),
        (with("/inputs/1", input("W", 1)), "inputs[1].name: \"W\" is not a name"),
        (with("/inputs/0", input("weights", 1)), "inputs[0].name: \"weights\" is misplaced"),
        (
            with("/inputs/1", input("other", 1)),
            "graph.nodes[1]: node \"w\" (placeholder weights): the placeholder of input 1",
        ),
        (with("/graph", json!([])), "graph: an object is required"),
        (with("/graph/format", json!(2)), "graph.format: 2 is not supported"),
        (with("/graph/nodes", json!([])), "graph.nodes: must contain at least an output"),
        (with("/graph/nodes", json!(vec![0; 1_025])), "graph.nodes: 1025 nodes, at most 1024"),
        (
            with("/graph/nodes/4/op", json!("call_function")),
            "graph.nodes[4]: node \"output\" (call_function output): the last",
        ),
        (with("/graph/nodes/2/name", json!("n".repeat(257))), "graph.nodes[2].name: has 257 bytes"),
        (with("/graph/nodes/2/target", json!(null)), "graph.nodes[2].target: a text is required"),
        (returned(json!([])), "graph.nodes[4]: node \"output\" (output output): must return"),
        (returned(json!([[{"ref": "sum_1"}]])), "graph.nodes[4]: node \"output\" (output output): must return"),
        (
            returned(json!([[{"ref": "sum_1"}, {"dict": {"loss:sum": {"ref": "w"}}}]])),
            "graph.nodes[4]: node \"output\" (output output): metric",
        ),
        (
            returned(json!([[{"ref": "sum_1"}, {"dict": {"custom/a:sum": 1}}]])),
            "graph.nodes[4]: node \"output\" (output output): must",
        ),
    ];
    for (definition, expected) in cases {
        refused(&definition, expected);
    }
    let mut unread = definition(&[]);
    unread["inputs"].as_array_mut().unwrap().push(input("more", 1));
    refused(&unread, "graph.nodes[4]: node \"output\" (output output): input \"more\" has no placeholder");
}

#[test]
fn arguments_are_bounded_in_all() {
    let node = call("torch.cat", json!([vec![json!({"ref": "w"}); MAX_ARGUMENTS]]));
    refused(
        &definition(&[node]),
        "graph.nodes[4]: node \"x\" (call_function torch.cat): the graph has more than 16384 arguments",
    );
}

#[test]
fn a_target_has_one_signature_of_distinct_parameters() {
    let mut seen = BTreeSet::new();
    for signature in SIGNATURES {
        for target in signature.targets {
            assert!(seen.insert(*target), "{target}");
        }
        let parameters: Vec<_> = signature.parameters().collect();
        assert!(parameters.iter().filter(|parameter| parameter.is_variadic).count() <= 1, "{}", signature.parameters);
        assert!(parameters.iter().all(|parameter| !parameter.name().is_empty()), "{}", signature.parameters);
    }
}

/// The allow-list as docs/users/compatibility.md has it: a table of modules.
fn listing() -> String {
    let groups = [
        ("methods of tensors", "Tensor."),
        ("`math`", "math."),
        ("`operator`", "operator."),
        ("`torch.nn.functional`", "torch.nn.functional."),
        ("`torch`, as it names them inside", "torch._C."),
        ("`torch`, as it names them inside", "torch.functional."),
        ("`torch`", "torch."),
        ("Python", ""),
    ];
    let targets: BTreeSet<&str> = SIGNATURES.iter().flat_map(|signature| signature.targets.iter().copied()).collect();
    let mut rows: Vec<(&str, Vec<String>)> = groups.iter().map(|(title, _)| (*title, Vec::new())).collect();
    rows.dedup_by_key(|row| row.0);
    for target in targets {
        let (title, prefix) = groups.iter().find(|(_, prefix)| target.starts_with(prefix)).unwrap();
        let shown = if title.contains("inside") { target } else { target.strip_prefix(prefix).unwrap() };
        rows.iter_mut().find(|row| row.0 == *title).unwrap().1.push(format!("`{shown}`"));
    }
    rows.iter().map(|(title, names)| format!("| {title} | {} |\n", names.join(", "))).collect()
}

#[test]
fn the_documentation_lists_the_allowed_targets() {
    let page = include_str!("../../../docs/users/compatibility.md");
    assert!(page.contains(&listing()), "docs/users/compatibility.md must contain:\n{}", listing());
}
