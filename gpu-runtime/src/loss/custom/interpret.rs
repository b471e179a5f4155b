//! One node of a graph: from its arguments to its value.

use trainyard_protocol::custom_loss::{Argument, Logical, Op, PythonOp, Unary};

use super::error::{Failure, Result};
use super::python::Number;
use super::statistics::Extreme;
use super::tape::Tape;
use super::tensor::{GraphTensor, Kind};
use super::value::{Arguments, Value, position};
use super::{activation, binary, create, parts, python, reduce, scan, select, shape, statistics, unary};

/// The value of an argument, given those of the earlier nodes.
pub(super) fn resolve(argument: &Argument, values: &[Value]) -> Result<Value> {
    let all = |items: &[Argument]| items.iter().map(|item| resolve(item, values)).collect::<Result<Vec<_>>>();
    Ok(match argument {
        Argument::Absent => Value::Absent,
        Argument::Node(index) => values.get(*index).cloned().ok_or_else(|| Failure::new("a node has no value yet"))?,
        Argument::None => Value::None,
        Argument::Bool(value) => Value::Bool(*value),
        Argument::Int(value) => Value::Int(*value),
        Argument::Float(value) => Value::Float(*value),
        Argument::Text(text) => Value::Text(text.clone()),
        Argument::List(items) => Value::List(all(items)?),
        Argument::Tuple(items) => Value::Tuple(all(items)?),
        Argument::Slice(parts) => {
            let [start, stop, step] = &**parts;
            let part = |argument| resolve(argument, values);
            Value::Slice(Box::new([part(start)?, part(stop)?, part(step)?]))
        }
        Argument::Ellipsis => Value::Ellipsis,
        Argument::DType(name) => Value::DType(Kind::of_torch(name)?),
        Argument::Place => Value::Place,
    })
}

/// The value of an operation.
pub(super) fn apply(tape: &mut Tape, op: Op, args: &Arguments, inputs: &[GraphTensor]) -> Result<Value> {
    let numbers = || Number::of(args.at(0)).zip(Number::of(args.at(1)));
    match op {
        Op::Unary(op) => match Number::of(args.at(0)) {
            Some(number) => python::unary(op, number),
            None => unary::unary(tape, op, args.tensor(0)?).map(Value::Tensor),
        },
        Op::Binary(op) => match numbers() {
            Some((a, b)) => python::arithmetic(op, a, b),
            None => binary::binary(tape, op, args).map(Value::Tensor),
        },
        Op::Compare(op) => match numbers() {
            Some((a, b)) => Ok(python::comparison(op, a, b)),
            None => binary::compare(tape, op, args.at(0), args.at(1)).map(Value::Tensor),
        },
        Op::Python(op) => python_operator(tape, op, args),
        Op::Math(op) => python::math(op, args),
        Op::Max => statistics::extreme(tape, Extreme::Largest, args),
        Op::Min => statistics::extreme(tape, Extreme::Smallest, args),
        Op::Split => parts::split(tape, args),
        Op::Chunk => parts::chunk(tape, args),
        Op::Unbind => parts::unbind(tape, args),
        Op::GetAttribute => python::attribute(tape, args),
        Op::GetItem => python::get_item(tape, args),
        Op::Size => size(args),
        Op::Dim => Ok(Value::Int(args.tensor(0)?.rank() as i64)),
        Op::Numel => Ok(Value::Int(args.tensor(0)?.len() as i64)),
        op => tensor(tape, op, args, inputs).map(Value::Tensor),
    }
}

fn python_operator(tape: &mut Tape, op: PythonOp, args: &Arguments) -> Result<Value> {
    let second = Number::of(args.at(1));
    if let Some(first) = Number::of(args.at(0))
        && (second.is_some() || !args.is_given(1))
    {
        return python::operator(op, first, second);
    }
    let (a, b) = (args.at(0), args.at(1));
    let tensor = match op {
        PythonOp::And => binary::bitwise(tape, Logical::And, a, b),
        PythonOp::Or => binary::bitwise(tape, Logical::Or, a, b),
        PythonOp::Xor => binary::bitwise(tape, Logical::Xor, a, b),
        PythonOp::Pos => args.tensor(0).cloned(),
        PythonOp::Invert => match args.tensor(0)?.kind() {
            Kind::Bool => unary::unary(tape, Unary::LogicalNot, args.tensor(0)?),
            Kind::Int => {
                let x = args.tensor(0)?;
                GraphTensor::ints(x.to_ints()?.into_iter().map(|value| !value).collect(), x.shape())
            }
            Kind::Float => Err(Failure::new("does not take floats, only bools and integers")),
        },
        PythonOp::Not => return Ok(Value::Bool(args.tensor(0)?.item()? == 0.0)),
    };
    tensor.map(Value::Tensor)
}

fn size(args: &Arguments) -> Result<Value> {
    let x = args.tensor(0)?;
    if !args.is_given(1) {
        return Ok(python::extents(x));
    }
    let extent = x.shape().get(args.dim(1, x.rank())?).copied();
    extent
        .map(|extent| Value::Int(extent as i64))
        .ok_or_else(|| Failure::new("a tensor without dimensions has no size"))
}

/// Operations whose value is one tensor.
fn tensor(tape: &mut Tape, op: Op, args: &Arguments, inputs: &[GraphTensor]) -> Result<GraphTensor> {
    match op {
        Op::Input(at) => inputs.get(at).cloned().ok_or_else(|| Failure::new("the datum has no such input")),
        Op::Logical(op) => binary::logical(tape, op, args.at(0), args.at(1)),
        Op::Reduce(op) => reduce::reduce(tape, op, args),
        Op::Cumulative(op) => {
            let x = args.tensor(0)?;
            let x = args.kind(2)?.map_or_else(|| Ok(x.clone()), |kind| x.to_kind(kind))?;
            scan::scan(tape, op, &x, args.dim(1, x.rank())?)
        }
        Op::LeakyRelu => activation::leaky_relu(tape, args),
        Op::Elu => activation::elu(tape, args),
        Op::Softplus => activation::softplus(tape, args),
        Op::Gelu => activation::gelu(tape, args),
        Op::NanToNum => activation::nan_to_num(tape, args),
        Op::Hardtanh => activation::hardtanh(tape, args),
        Op::Regression(op) => select::regression(tape, op, args),
        Op::Clamp => select::clamp(tape, args.tensor(0)?, args.at(1), args.at(2)),
        Op::ClampMin => select::clamp(tape, args.tensor(0)?, args.at(1), &Value::None),
        Op::ClampMax => select::clamp(tape, args.tensor(0)?, &Value::None, args.at(1)),
        Op::Where => select::choose(tape, args.tensor(0)?, args.at(1), args.at(2)),
        Op::WhereMethod => select::choose(tape, args.tensor(1)?, args.at(0), args.at(2)),
        Op::MaskedFill => select::masked_fill(tape, args),
        Op::Lerp => select::lerp(tape, args),
        Op::Argmax => statistics::place(tape, Extreme::Largest, args),
        Op::Argmin => statistics::place(tape, Extreme::Smallest, args),
        Op::Var => statistics::spread(tape, args, false),
        Op::Std => statistics::spread(tape, args, true),
        Op::Norm => statistics::norm(tape, args),
        Op::Softmax => statistics::softmax(tape, args.tensor(0)?, args.dim(1, args.tensor(0)?.rank())?, false),
        Op::LogSoftmax => statistics::softmax(tape, args.tensor(0)?, args.dim(1, args.tensor(0)?.rank())?, true),
        Op::MaskedSelect | Op::Diff | Op::Repeat | Op::Narrow | Op::Select | Op::IndexSelect | Op::Gather => {
            parts::part(tape, op, args)
        }
        Op::Flip | Op::Roll | Op::Tril | Op::Triu => parts::part(tape, op, args),
        Op::Outer | Op::Dot | Op::Matmul => products(tape, op, args.tensor(0)?, args.tensor(1)?),
        Op::To => create::to(args),
        Op::TypeAs => args.tensor(0)?.to_kind(args.tensor(1)?.kind()),
        Op::ToFloat => args.floats(0),
        Op::ToInt => args.tensor(0)?.to_kind(Kind::Int),
        Op::ToBool => args.tensor(0)?.to_kind(Kind::Bool),
        Op::Identity => args.tensor(0).cloned(),
        Op::Detach => Ok(GraphTensor::constant(args.tensor(0)?.data.clone())),
        Op::NewTensor => create::of_data(args),
        Op::Arange => create::arange(tape, args),
        Op::Zeros | Op::Ones | Op::Full | Op::ZerosLike | Op::OnesLike | Op::FullLike => create::new(tape, op, args),
        Op::NewZeros | Op::NewOnes | Op::NewFull => create::new(tape, op, args),
        op => reshaped(tape, op, args),
    }
}

/// Operations that only change the shape, or join tensors.
fn reshaped(tape: &mut Tape, op: Op, args: &Arguments) -> Result<GraphTensor> {
    match op {
        Op::Cat => return shape::cat(tape, args),
        Op::Stack => return shape::stack(tape, args),
        _ => {}
    }
    let x = args.tensor(0)?;
    match op {
        Op::Reshape => shape::reshape(tape, x, &args.ints(1)?),
        Op::ReshapeAs => shape::to_shape(tape, x, args.tensor(1)?.shape()),
        Op::Flatten => shape::flatten(tape, args),
        Op::Squeeze => shape::squeeze(tape, args),
        Op::Unsqueeze => shape::unsqueeze(tape, x, args.int(1)?),
        Op::Transpose => shape::transpose(tape, x, args.dim(1, x.rank())?, args.dim(2, x.rank())?),
        Op::T if x.rank() <= 2 => shape::transpose(tape, x, 0, 1),
        Op::T => Err(Failure::new(format!("t() of a tensor of {} dimensions", x.rank()))),
        Op::Permute => {
            let order = args.ints(1)?.into_iter().map(|dim| position(dim, x.rank())).collect::<Result<Vec<_>>>()?;
            shape::permute(tape, x, &order)
        }
        Op::Expand => shape::expand(tape, x, &args.ints(1)?),
        Op::ExpandAs => shape::expand_to(tape, x, args.tensor(1)?.shape()),
        op => Err(Failure::new(format!("the value of {op:?} is not a tensor"))),
    }
}

fn products(tape: &mut Tape, op: Op, a: &GraphTensor, b: &GraphTensor) -> Result<GraphTensor> {
    let is_allowed = op == Op::Matmul || (a.rank() == 1 && b.rank() == 1);
    if !is_allowed {
        return Err(Failure::new(format!("needs two vectors, not shapes {:?} and {:?}", a.shape(), b.shape())));
    }
    if op != Op::Outer {
        return shape::matmul(tape, a, b);
    }
    let column = shape::unsqueeze(tape, a, 1)?;
    let pair = Arguments::new(vec![Value::Tensor(column), Value::Tensor(b.clone())]);
    binary::binary(tape, trainyard_protocol::custom_loss::Binary::Mul, &pair)
}
