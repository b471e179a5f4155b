//! Custom losses: graphs of tensor operations that a client traced with `torch.fx` and uploads once.
//!
//! [`CustomLoss::read`] checks the JSON form against the allow-list ([`SIGNATURES`]) and the limits below, and refuses
//! everything else by the node's name and target. What it returns refers to earlier nodes alone, so that one walk from the
//! first node to the last evaluates it. Shapes are known when it runs: the engine checks them, and the cost.

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

/// Nodes of a graph.
pub const MAX_NODES: usize = 1_024;
/// Inputs of a graph, `logprobs` included.
pub const MAX_INPUTS: usize = 16;
/// Metrics of a graph.
pub const MAX_METRICS: usize = 64;
/// Arguments of all nodes, those within lists included.
pub const MAX_ARGUMENTS: usize = 16_384;
/// Levels of lists, tuples and slices within one argument.
pub const MAX_ARGUMENT_DEPTH: usize = 8;
/// Bytes of the name of a node, and of its target.
pub const MAX_NAME_BYTES: usize = 256;
/// Bytes of a graph as JSON.
pub const MAX_GRAPH_BYTES: usize = 256 << 10;

/// A checked custom loss.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CustomLoss {
    /// The name of the client's function, for error texts.
    pub name: String,
    /// What it reads of each datum; the first is `logprobs`.
    pub inputs: Vec<CustomLossInput>,
    /// In the order of evaluation. An argument refers to a node before its own.
    pub nodes: Vec<Node>,
    /// The node whose value is the loss.
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
    /// The node whose value it is.
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
    /// The client's name for it, unique in its graph.
    pub name: String,
    /// What the client called: a function's qualified name, or `Tensor.<method>`.
    pub target: String,
    /// What it computes.
    pub op: Op,
    /// One per parameter of the [`Signature`]; [`Argument::Absent`] where the client gave none. Those of a variadic
    /// parameter are one list.
    pub arguments: Vec<Argument>,
}

/// An argument of an operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Argument {
    /// Not given.
    Absent,
    /// The value of an earlier node.
    Node(usize),
    /// Python's `None`.
    None,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A number, possibly not finite.
    Float(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Argument>),
    /// A tuple.
    Tuple(Vec<Argument>),
    /// Start, stop and step.
    Slice(Box<[Argument; 3]>),
    /// `...`
    Ellipsis,
    /// An element type by torch's name, e.g. `float32`.
    DType(String),
    /// A device, a layout or a memory format: there is one of each, so that it changes nothing.
    Place,
}
