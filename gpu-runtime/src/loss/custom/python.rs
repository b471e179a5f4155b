//! Numbers and tuples of Python: operators, functions of `math`, attributes.

use candle_core::cpu::erf::erf_f64;
use trainyard_protocol::custom_loss::{Binary, Comparison, MathFunction, PythonOp, Unary};

use super::binary::{floor_divide, holds, remainder};
use super::error::{Failure, Result};
use super::tape::Tape;
use super::tensor::GraphTensor;
use super::value::{Arguments, Value};
use super::{index, shape};

/// A Python number; `None` for anything else.
#[derive(Clone, Copy)]
pub(super) enum Number {
    Int(i64),
    Float(f64),
}

impl Number {
    pub(super) fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Int(value) => Some(Self::Int(*value)),
            Value::Bool(value) => Some(Self::Int(i64::from(*value))),
            Value::Float(value) => Some(Self::Float(*value)),
            _ => None,
        }
    }

    fn float(self) -> f64 {
        match self {
            Self::Int(value) => value as f64,
            Self::Float(value) => value,
        }
    }
}

/// An operator of two numbers.
pub(super) fn arithmetic(op: Binary, a: Number, b: Number) -> Result<Value> {
    let overflow = || Failure::new("the result does not fit in 64 bits");
    let zero = || Failure::new("division by zero");
    if let (Number::Int(a), Number::Int(b)) = (a, b) {
        let result = match op {
            Binary::Add => a.checked_add(b),
            Binary::Sub => a.checked_sub(b),
            Binary::Rsub => b.checked_sub(a),
            Binary::Mul => a.checked_mul(b),
            Binary::FloorDivide | Binary::Remainder if b == 0 => return Err(zero()),
            Binary::FloorDivide => Some(floor_divide(a, b)),
            Binary::Remainder => Some(a.wrapping_sub(floor_divide(a, b).wrapping_mul(b))),
            Binary::Pow if b >= 0 => u32::try_from(b).ok().and_then(|exponent| a.checked_pow(exponent)),
            Binary::Div | Binary::Pow => return float_arithmetic(op, a as f64, b as f64),
            Binary::Maximum | Binary::Minimum | Binary::LogAddExp | Binary::Atan2 => return Err(needs_tensor()),
        };
        return result.map(Value::Int).ok_or_else(overflow);
    }
    float_arithmetic(op, a.float(), b.float())
}

fn float_arithmetic(op: Binary, a: f64, b: f64) -> Result<Value> {
    let divides = matches!(op, Binary::Div | Binary::FloorDivide | Binary::Remainder);
    if (divides && b == 0.0) || (op == Binary::Pow && a == 0.0 && b < 0.0) {
        return Err(Failure::new("division by zero"));
    }
    let result = match op {
        Binary::Add => a + b,
        Binary::Sub => a - b,
        Binary::Rsub => b - a,
        Binary::Mul => a * b,
        Binary::Div => a / b,
        Binary::FloorDivide => (a / b).floor(),
        Binary::Remainder => remainder(a, b),
        Binary::Pow => a.powf(b),
        Binary::Maximum | Binary::Minimum | Binary::LogAddExp | Binary::Atan2 => return Err(needs_tensor()),
    };
    if result.is_nan() && !a.is_nan() && !b.is_nan() && op == Binary::Pow {
        return Err(Failure::new("the power is a complex number"));
    }
    Ok(Value::Float(result))
}

fn needs_tensor() -> Failure {
    Failure::new("needs a tensor")
}

pub(super) fn comparison(op: Comparison, a: Number, b: Number) -> Value {
    match (a, b) {
        (Number::Int(a), Number::Int(b)) => Value::Bool(match op {
            Comparison::Eq => a == b,
            Comparison::Ne => a != b,
            Comparison::Lt => a < b,
            Comparison::Le => a <= b,
            Comparison::Gt => a > b,
            Comparison::Ge => a >= b,
        }),
        (a, b) => Value::Bool(holds(op, a.float(), b.float())),
    }
}

/// A function of one number that torch has too.
pub(super) fn unary(op: Unary, number: Number) -> Result<Value> {
    let overflow = || Failure::new("the result does not fit in 64 bits");
    match (op, number) {
        (Unary::Neg, Number::Int(value)) => value.checked_neg().map(Value::Int).ok_or_else(overflow),
        (Unary::Abs, Number::Int(value)) => value.checked_abs().map(Value::Int).ok_or_else(overflow),
        (Unary::Neg, Number::Float(value)) => Ok(Value::Float(-value)),
        (Unary::Abs, Number::Float(value)) => Ok(Value::Float(value.abs())),
        _ => Err(needs_tensor()),
    }
}

/// `&`, `|`, `^`, `~`, `+` and `not` of numbers.
pub(super) fn operator(op: PythonOp, a: Number, b: Option<Number>) -> Result<Value> {
    match (op, a, b) {
        (PythonOp::And, Number::Int(a), Some(Number::Int(b))) => Ok(Value::Int(a & b)),
        (PythonOp::Or, Number::Int(a), Some(Number::Int(b))) => Ok(Value::Int(a | b)),
        (PythonOp::Xor, Number::Int(a), Some(Number::Int(b))) => Ok(Value::Int(a ^ b)),
        (PythonOp::Invert, Number::Int(a), None) => Ok(Value::Int(!a)),
        (PythonOp::Pos, Number::Int(a), None) => Ok(Value::Int(a)),
        (PythonOp::Pos, Number::Float(a), None) => Ok(Value::Float(a)),
        (PythonOp::Not, a, None) => Ok(Value::Bool(a.float() == 0.0)),
        _ => Err(Failure::new("does not take floats")),
    }
}

/// A function of `math`. Its result has no gradient, as in torch, where it is a Python number.
pub(super) fn math(op: MathFunction, args: &Arguments) -> Result<Value> {
    let x = args.number(0)?;
    let second = if args.is_given(1) { Some(args.number(1)?) } else { None };
    let whole = |value: f64| match value {
        value if value.abs() < 9.0e18 => Ok(Value::Int(value as i64)),
        _ => Err(Failure::new("math range error: the integer does not fit in 64 bits")),
    };
    let result = match op {
        MathFunction::Floor => return whole(x.floor()),
        MathFunction::Ceil => return whole(x.ceil()),
        MathFunction::Trunc => return whole(x.trunc()),
        MathFunction::IsNan => return Ok(Value::Bool(x.is_nan())),
        MathFunction::IsInf => return Ok(Value::Bool(x.is_infinite())),
        MathFunction::IsFinite => return Ok(Value::Bool(x.is_finite())),
        MathFunction::Exp => x.exp(),
        MathFunction::Expm1 => x.exp_m1(),
        MathFunction::Log => second.map_or(x.ln(), |base| x.ln() / base.ln()),
        MathFunction::Log1p => x.ln_1p(),
        MathFunction::Log2 => x.log2(),
        MathFunction::Log10 => x.log10(),
        MathFunction::Sqrt => x.sqrt(),
        MathFunction::Pow => x.powf(second.unwrap_or(1.0)),
        MathFunction::Fabs => x.abs(),
        MathFunction::Sin => x.sin(),
        MathFunction::Cos => x.cos(),
        MathFunction::Tan => x.tan(),
        MathFunction::Tanh => x.tanh(),
        MathFunction::Atan => x.atan(),
        MathFunction::Atan2 => x.atan2(second.unwrap_or(1.0)),
        MathFunction::Erf => erf_f64(x),
    };
    let is_finite = x.is_finite() && second.is_none_or(f64::is_finite);
    if is_finite && !result.is_finite() {
        return Err(Failure::new(format!("math domain or range error at {x}")));
    }
    Ok(Value::Float(result))
}

/// The extents of a tensor as a tuple.
pub(super) fn extents(x: &GraphTensor) -> Value {
    Value::Tuple(x.shape().iter().map(|&extent| Value::Int(extent as i64)).collect())
}

/// `getattr(object, name)`: attributes of tensors, and the two of a maximum along a dimension.
pub(super) fn attribute(tape: &mut Tape, args: &Arguments) -> Result<Value> {
    let name = args.text_or(1, "")?;
    match (args.at(0), name) {
        (Value::Tensor(x), "shape") => Ok(extents(x)),
        (Value::Tensor(x), "ndim") => Ok(Value::Int(x.rank() as i64)),
        (Value::Tensor(x), "dtype") => Ok(Value::DType(x.kind())),
        (Value::Tensor(_), "device") => Ok(Value::Place),
        (Value::Tensor(x), "T" | "mT") if x.rank() == 2 => shape::transpose(tape, x, 0, 1).map(Value::Tensor),
        (Value::Tensor(x), "T") if x.rank() < 2 => Ok(Value::Tensor(x.clone())),
        (Value::Tuple(items), "values" | "indices") => {
            let at = usize::from(name == "indices");
            items.get(at).cloned().ok_or_else(|| Failure::new(format!("unknown attribute {name:?}")))
        }
        (object, _) => Err(Failure::new(format!(
            "attribute {name:?} of {} is not allowed; allowed are shape, ndim, dtype, device, T, and values and indices of a maximum",
            object.describe()
        ))),
    }
}

/// `object[key]`: a part of a tensor, or an item or a slice of a tuple.
pub(super) fn get_item(tape: &mut Tape, args: &Arguments) -> Result<Value> {
    let items = match args.at(0) {
        Value::Tensor(x) => return index::get_item(tape, x, args.at(1)).map(Value::Tensor),
        Value::Tuple(items) | Value::List(items) => items,
        other => return Err(Failure::new(format!("{} has no items", other.describe()))),
    };
    let item = |at: usize| items.get(at).cloned().unwrap_or(Value::None);
    match args.at(1) {
        Value::Slice(parts) => Ok(Value::Tuple(index::sliced(parts, items.len())?.into_iter().map(item).collect())),
        _ => Ok(item(super::value::position(args.int(1)?, items.len())?)),
    }
}
