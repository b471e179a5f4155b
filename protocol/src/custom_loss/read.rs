//! Reads the JSON form of a graph and checks it.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::error::shortened;
use super::output::read_output;
use super::place::{Given, Place, text};
use super::signatures::Signature;
use super::{
    Argument, CustomLoss, CustomLossInput, GraphError, MAX_ARGUMENT_DEPTH, MAX_ARGUMENTS, MAX_INPUTS, MAX_NAME_BYTES,
    MAX_NODES, Node, Op, bind,
};

const NOT_ALLOWED: &str =
    "this target is not allowed in a custom loss; docs/users/compatibility.md lists those that are";
/// Maximum number of bytes of an input's name.
const MAX_INPUT_NAME: usize = 64;

impl CustomLoss {
    /// Reads `{"name", "inputs": [{"name", "rank"}], "graph": {"format": 1, "nodes":
    /// […]}}`, the body of `create_custom_loss`.
    ///
    /// # Errors
    /// The error names the field, or the node with its target, that is malformed, not allowed or beyond a limit.
    pub fn read(definition: &Value) -> Result<Self, GraphError> {
        let name = text(definition.get("name"), "name")?;
        if name.len() > MAX_NAME_BYTES {
            return Err(GraphError::field(
                "name",
                format!("has {} bytes, at most {MAX_NAME_BYTES} are allowed", name.len()),
            ));
        }
        let inputs = read_inputs(definition.get("inputs"))?;
        let graph = definition.get("graph").and_then(Value::as_object);
        let graph = graph.ok_or_else(|| GraphError::field("graph", "an object is required"))?;
        match graph.get("format") {
            None | Some(Value::Null) => {}
            Some(format) if format.as_u64() == Some(1) => {}
            Some(format) => {
                let found = shortened(&format.to_string());
                return Err(GraphError::field("graph.format", format!("{found} is not supported; it must be 1")));
            }
        }
        let nodes = graph.get("nodes").and_then(Value::as_array);
        let nodes = nodes.ok_or_else(|| GraphError::field("graph.nodes", "a list is required"))?;
        if nodes.len() > MAX_NODES {
            let found = nodes.len();
            return Err(GraphError::field("graph.nodes", format!("{found} nodes, at most {MAX_NODES} are allowed")));
        }
        Reader::new(name, inputs).read(nodes)
    }
}

fn read_inputs(value: Option<&Value>) -> Result<Vec<CustomLossInput>, GraphError> {
    let list = value.and_then(Value::as_array).ok_or_else(|| GraphError::field("inputs", "a list is required"))?;
    if list.len() > MAX_INPUTS {
        let found = list.len();
        return Err(GraphError::field("inputs", format!("{found} inputs, at most {MAX_INPUTS} are allowed")));
    }
    let mut inputs: Vec<CustomLossInput> = Vec::with_capacity(list.len());
    for (index, input) in list.iter().enumerate() {
        let field = format!("inputs[{index}]");
        let name = text(input.get("name"), &format!("{field}.name"))?;
        let refused =
            |reason: &str| GraphError::field(format!("{field}.name"), format!("{:?} {reason}", shortened(name)));
        if !is_input_name(name) {
            return Err(refused("is not a name of 1 to 64 lower-case letters, digits and underscores"));
        }
        if inputs.iter().any(|other| other.name == name) {
            return Err(refused("is the name of two inputs"));
        }
        if (index == 0) != (name == "logprobs") {
            return Err(refused("is misplaced: the first input, and no other, must be logprobs"));
        }
        let rank = input.get("rank").and_then(Value::as_u64).filter(|rank| *rank <= 2 && (index > 0 || *rank > 0));
        let Some(rank) = rank else {
            let allowed = if index == 0 { "1 or 2" } else { "0, 1 or 2" };
            return Err(GraphError::field(format!("{field}.rank"), format!("must be {allowed}")));
        };
        inputs.push(CustomLossInput { name: name.to_owned(), rank: usize::try_from(rank).unwrap_or(2) });
    }
    if inputs.is_empty() {
        return Err(GraphError::field("inputs", "the first input must be logprobs"));
    }
    Ok(inputs)
}

fn is_input_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    let first = bytes.next().is_some_and(|byte| byte.is_ascii_lowercase() || byte == b'_');
    first && name.len() <= MAX_INPUT_NAME && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

/// A graph of which the first nodes have been read.
struct Reader {
    loss: CustomLoss,
    /// Indices of the nodes read so far, by name.
    by_name: BTreeMap<String, usize>,
    /// Number of inputs that have a placeholder.
    placeholders: usize,
    /// Number of arguments read so far.
    arguments: usize,
}

impl Reader {
    fn new(name: &str, inputs: Vec<CustomLossInput>) -> Self {
        let loss = CustomLoss { name: name.to_owned(), inputs, nodes: Vec::new(), loss: 0, metrics: Vec::new() };
        Self { loss, by_name: BTreeMap::new(), placeholders: 0, arguments: 0 }
    }

    fn read(mut self, nodes: &[Value]) -> Result<CustomLoss, GraphError> {
        let Some((output, computed)) = nodes.split_last() else {
            return Err(GraphError::field("graph.nodes", "must contain at least an output"));
        };
        for (index, value) in computed.iter().enumerate() {
            let place = Place::of(index, value)?;
            let node = self.node(&place, value)?;
            if self.by_name.insert(node.name.clone(), index).is_some() {
                return Err(place.refused("an earlier node has this name"));
            }
            self.loss.nodes.push(node);
        }
        let place = Place::of(computed.len(), output)?;
        if place.kind != "output" {
            return Err(place.refused("the last node must be the output"));
        }
        if let Some(unread) = self.loss.inputs.get(self.placeholders) {
            return Err(place.refused(format!("input {:?} has no placeholder", unread.name)));
        }
        let returned = self.arguments(&place, output)?;
        (self.loss.loss, self.loss.metrics) = read_output(&place, returned)?;
        Ok(self.loss)
    }

    fn node(&mut self, place: &Place<'_>, value: &Value) -> Result<Node, GraphError> {
        let target = match place.kind {
            "placeholder" => return self.placeholder(place),
            "call_function" if !place.target.starts_with("Tensor.") => place.target.to_owned(),
            "call_function" => return Err(place.refused(NOT_ALLOWED)),
            "call_method" => format!("Tensor.{}", place.target),
            "output" => return Err(place.refused("the output must be the last node")),
            "get_attr" => return Err(place.refused("a custom loss can't capture tensors, only read its inputs")),
            "call_module" => return Err(place.refused("modules are not allowed, only functions and methods")),
            _ => return Err(place.refused("op must be placeholder, call_function, call_method or output")),
        };
        let Some(signature) = Signature::of(&target) else {
            return Err(place.refused(
                "this target is not allowed in a custom loss; docs/users/compatibility.md lists those that are",
            ));
        };
        let given = self.arguments(place, value)?;
        let arguments = bind::bind(place, signature, given)?;
        Ok(Node { name: place.name.to_owned(), target, op: signature.op, arguments })
    }

    fn placeholder(&mut self, place: &Place<'_>) -> Result<Node, GraphError> {
        let index = self.placeholders;
        let Some(input) = self.loss.inputs.get(index) else {
            return Err(place.refused(format!("the loss has {} inputs, and each already has a placeholder", index)));
        };
        if input.name != place.target {
            return Err(place.refused(format!("the placeholder of input {index} must be {:?}", input.name)));
        }
        self.placeholders += 1;
        let (name, target) = (place.name.to_owned(), place.target.to_owned());
        Ok(Node { name, target, op: Op::Input(index), arguments: Vec::new() })
    }

    fn arguments(&mut self, place: &Place<'_>, node: &Value) -> Result<Given, GraphError> {
        let mut given = Given::default();
        match node.get("args") {
            None => {}
            Some(Value::Array(args)) => {
                for arg in args {
                    given.positional.push(self.argument(place, arg, 0)?);
                }
            }
            Some(_) => return Err(place.refused("args must be a list")),
        }
        match node.get("kwargs") {
            None => {}
            Some(Value::Object(kwargs)) => {
                for (key, arg) in kwargs {
                    given.named.push((key.clone(), self.argument(place, arg, 0)?));
                }
            }
            Some(_) => return Err(place.refused("kwargs must be an object")),
        }
        Ok(given)
    }

    fn argument(&mut self, place: &Place<'_>, value: &Value, depth: usize) -> Result<Argument, GraphError> {
        self.arguments += 1;
        if self.arguments > MAX_ARGUMENTS {
            return Err(place.refused(format!("the graph has more than {MAX_ARGUMENTS} arguments in all")));
        }
        if depth > MAX_ARGUMENT_DEPTH {
            return Err(place.refused(format!("an argument is nested more than {MAX_ARGUMENT_DEPTH} levels deep")));
        }
        Ok(match value {
            Value::Null => Argument::None,
            Value::Bool(flag) => Argument::Bool(*flag),
            Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(integer), _) => Argument::Int(integer),
                (None, Some(float)) if !number.is_u64() => Argument::Float(float),
                _ => return Err(place.refused(format!("{number} does not fit in 64 bits"))),
            },
            Value::String(text) => Argument::Text(text.clone()),
            Value::Array(items) => Argument::List(self.list(place, items, depth)?),
            Value::Object(fields) => self.tagged(place, fields, depth)?,
        })
    }

    fn list(&mut self, place: &Place<'_>, items: &[Value], depth: usize) -> Result<Vec<Argument>, GraphError> {
        items.iter().map(|item| self.argument(place, item, depth + 1)).collect()
    }

    /// Reads an object with one key, which names the kind of argument.
    fn tagged(&mut self, place: &Place<'_>, fields: &Map<String, Value>, depth: usize) -> Result<Argument, GraphError> {
        let mut entries = fields.iter();
        let (Some((tag, value)), None) = (entries.next(), entries.next()) else {
            return Err(
                place.refused(format!("an argument is an object with {} keys, expected exactly one", fields.len()))
            );
        };
        let malformed = || place.refused(format!("an argument {{{:?}: …}} is malformed", shortened(tag)));
        match (tag.as_str(), value) {
            ("ref", Value::String(name)) => match self.by_name.get(name) {
                Some(&index) => Ok(Argument::Node(index)),
                None if name == place.name => Err(place.refused("the node refers to itself")),
                None => Err(place.refused(format!("no earlier node is called {:?}", shortened(name)))),
            },
            ("float", Value::String(text)) => match text.as_str() {
                "inf" => Ok(Argument::Float(f64::INFINITY)),
                "-inf" => Ok(Argument::Float(f64::NEG_INFINITY)),
                "nan" => Ok(Argument::Float(f64::NAN)),
                _ => Err(malformed()),
            },
            ("tuple", Value::Array(items)) => Ok(Argument::Tuple(self.list(place, items, depth)?)),
            ("slice", Value::Array(parts)) => {
                let parts = self.list(place, parts, depth)?;
                let parts: [Argument; 3] = parts.try_into().map_err(|_| malformed())?;
                Ok(Argument::Slice(Box::new(parts)))
            }
            ("ellipsis", Value::Bool(true)) => Ok(Argument::Ellipsis),
            ("dtype", Value::String(name)) => Ok(Argument::DType(shortened(name))),
            ("device" | "layout" | "memory_format", Value::String(_)) => Ok(Argument::Place),
            // Only the output has a dictionary; it is read as a list of pairs.
            ("dict", Value::Object(entries)) if place.kind == "output" => {
                let pair = |(key, value): (&String, &Value)| {
                    Ok(Argument::List(vec![Argument::Text(key.clone()), self.argument(place, value, depth + 1)?]))
                };
                let pairs: Result<_, GraphError> = entries.iter().map(pair).collect();
                Ok(Argument::List(pairs?))
            }
            ("ref" | "float" | "tuple" | "slice" | "ellipsis" | "dtype" | "device" | "layout" | "memory_format", _) => {
                Err(malformed())
            }
            _ => Err(place.refused(format!("an argument of kind {:?} is not allowed", shortened(tag)))),
        }
    }
}
