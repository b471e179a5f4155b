//! Custom losses: graphs of tensor operations that a client traced with `torch.fx` and uploads once.
//!
//! [`CustomLoss::read`] checks the JSON form against the allow-list ([`SIGNATURES`]) and the limits below, and refuses
//! everything else by the node's name and target. Nodes of the result refer only to earlier nodes, so that one walk
//! from the first node to the last evaluates it. Shapes are known only when it runs: then the engine checks them, and
//! the cost.

mod bind;
mod error;
mod op;
mod output;
mod place;
mod read;
mod signatures;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use error::GraphError;
pub use op::{Binary, Comparison, Cumulative, Logical, MathFunction, Op, PythonOp, Reduction, Regression, Unary};
pub use signatures::{SIGNATURES, Signature};

/// Maximum number of nodes of a graph.
pub const MAX_NODES: usize = 1_024;
/// Maximum number of inputs of a graph, `logprobs` included.
pub const MAX_INPUTS: usize = 16;
/// Maximum number of metrics of a graph.
pub const MAX_METRICS: usize = 64;
/// Maximum number of arguments of all nodes, those within lists included.
pub const MAX_ARGUMENTS: usize = 16_384;
/// Maximum number of levels of lists, tuples and slices within one argument.
pub const MAX_ARGUMENT_DEPTH: usize = 8;
/// Maximum number of bytes of the name of a node, and of its target.
pub const MAX_NAME_BYTES: usize = 256;
/// Maximum number of bytes of a graph as JSON.
pub const MAX_GRAPH_BYTES: usize = 256 << 10;

/// A checked custom loss.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CustomLoss {
    /// The name of the client's function, for error texts.
    pub name: String,
    /// Inputs that the loss reads from each datum; the first is `logprobs`.
    pub inputs: Vec<CustomLossInput>,
    /// Nodes in the order of evaluation: an argument refers only to an earlier node.
    pub nodes: Vec<Node>,
    /// Index of the node whose value is the loss.
    pub loss: usize,
    /// Metrics, sorted by name.
    pub metrics: Vec<Metric>,
}

/// An input of a custom loss.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CustomLossInput {
    /// `logprobs`, or a key of `loss_fn_inputs`.
    pub name: String,
    /// Number of dimensions of every datum's value: 0, 1 or 2.
    pub rank: usize,
}

/// A metric of a custom loss.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metric {
    /// `custom/<name>:sum`, or `custom/<name>:mean`, which is divided by the number of datums.
    pub key: String,
    /// Index of the node whose value is the metric.
    pub node: usize,
}

impl Metric {
    /// Whether the sum over the datums is divided by their number.
    pub fn is_mean(&self) -> bool {
        self.key.ends_with(":mean")
    }
}

/// An operation of a graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// Name that the client gave the node, unique in its graph.
    pub name: String,
    /// Target of the client's call: a function's qualified name, or `Tensor.<method>`.
    pub target: String,
    /// Operation that the node computes.
    pub op: Op,
    /// One argument per parameter of the [`Signature`]; [`Argument::Absent`] if the client gave none. Arguments of a
    /// variadic parameter form one list.
    pub arguments: Vec<Argument>,
}

/// An argument of an operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Argument {
    /// The client gave no argument.
    Absent,
    /// The value of an earlier node, by its index.
    Node(usize),
    /// The value `None` of Python.
    None,
    /// A boolean of Python.
    Bool(bool),
    /// An integer of Python.
    Int(i64),
    /// A floating-point number, possibly not finite.
    Float(f64),
    /// A string of Python.
    Text(String),
    /// A list of arguments.
    List(Vec<Argument>),
    /// A tuple of arguments.
    Tuple(Vec<Argument>),
    /// A slice: start, stop and step.
    Slice(Box<[Argument; 3]>),
    /// The value `...` of Python.
    Ellipsis,
    /// An element type by torch's name, e.g. `float32`.
    DType(String),
    /// A device, a layout or a memory format. There is one of each, so the argument changes nothing.
    Place,
}
