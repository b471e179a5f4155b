//! Functions of two tensors or numbers, broadcast to one shape.

use trainyard_protocol::custom_loss::{Binary, Comparison, Logical};

use super::error::{Failure, Result};
use super::tape::Tape;
use super::tensor::{GraphTensor, Kind, broadcast, elements, volume};
use super::value::{Arguments, Value};

/// Two operands in one shape.
pub(super) struct Pair {
    a: GraphTensor,
    b: GraphTensor,
    pub(super) shape: Vec<usize>,
    kind: Kind,
}

impl Pair {
    /// Joins the operands, of which one should be a tensor: Python computes with two numbers itself.
    pub(super) fn of(tape: &Tape, a: &Value, b: &Value) -> Result<Self> {
        let kind = a.to_tensor()?.kind().max(b.to_tensor()?.kind());
        let operand = |value: &Value| match value {
            // As torch does it: a number takes the precision of the tensor.
            Value::Float(number) => GraphTensor::floats(vec![f64::from(*number as f32)], &[]),
            value => value.to_tensor(),
        };
        let (a, b) = (operand(a)?, operand(b)?);
        let shape = broadcast(a.shape(), b.shape())?;
        tape.reserve(volume(&shape))?;
        Ok(Self { a, b, shape, kind })
    }

    fn wide(&self, operand: &GraphTensor) -> Result<GraphTensor> {
        Ok(GraphTensor { data: operand.data.broadcast_as(self.shape.as_slice())?, id: operand.id })
    }

    pub(super) fn floats(&self) -> Result<(Vec<f64>, Vec<f64>)> {
        Ok((self.wide(&self.a)?.to_floats()?, self.wide(&self.b)?.to_floats()?))
    }

    fn ints(&self) -> Result<(Vec<i64>, Vec<i64>)> {
        Ok((self.wide(&self.a)?.to_ints()?, self.wide(&self.b)?.to_ints()?))
    }

    fn bools(&self) -> Result<(Vec<bool>, Vec<bool>)> {
        Ok((self.wide(&self.a)?.to_bools()?, self.wide(&self.b)?.to_bools()?))
    }

    /// A float function with its derivatives with respect to both operands.
    pub(super) fn map(
        &self,
        tape: &mut Tape,
        value: impl Fn(f64, f64) -> f64,
        derivatives: impl Fn(f64, f64, f64) -> (f64, f64),
    ) -> Result<GraphTensor> {
        let (a, b) = self.floats()?;
        let results: Vec<f64> = a.iter().zip(&b).map(|(&a, &b)| value(a, b)).collect();
        let output = GraphTensor::floats(results.clone(), &self.shape)?;
        if self.a.id.is_none() && self.b.id.is_none() {
            return Ok(output);
        }
        let slopes = a.iter().zip(&b).zip(&results).map(|((&a, &b), &y)| derivatives(a, b, y));
        let (of_a, of_b): (Vec<f64>, Vec<f64>) = slopes.unzip();
        tape.pointwise(output, vec![(&self.a, of_a), (&self.b, of_b)])
    }
}

/// An arithmetic function; `setting` is `alpha` of a sum or `rounding_mode` of a quotient.
pub(super) fn binary(tape: &mut Tape, op: Binary, args: &Arguments) -> Result<GraphTensor> {
    let scaled;
    let (a, mut b) = (args.at(0), args.at(1));
    let takes_alpha = matches!(op, Binary::Add | Binary::Sub | Binary::Rsub);
    if takes_alpha && args.is_given(2) {
        let pair = Arguments::new(vec![b.clone(), args.at(2).clone()]);
        scaled = Value::Tensor(binary(tape, Binary::Mul, &pair)?);
        b = &scaled;
    }
    let (op, a, b) = if op == Binary::Rsub { (Binary::Sub, b, a) } else { (op, a, b) };
    let pair = Pair::of(tape, a, b)?;
    let op = match (op, args.at(2)) {
        (Binary::Div, Value::Text(mode)) if mode == "trunc" => return truncated(tape, &pair),
        (Binary::Div, Value::Text(mode)) if mode == "floor" => Binary::FloorDivide,
        (Binary::Div, given) if !matches!(given, Value::Absent | Value::None) => {
            return Err(Failure::new("rounding_mode must be None, \"floor\" or \"trunc\""));
        }
        _ => op,
    };
    match pair.kind {
        Kind::Bool => of_bools(op, &pair),
        Kind::Int if !matches!(op, Binary::Div | Binary::LogAddExp | Binary::Atan2) => of_ints(op, &pair),
        _ => of_floats(tape, op, &pair),
    }
}

fn truncated(tape: &mut Tape, pair: &Pair) -> Result<GraphTensor> {
    let quotient = pair.map(tape, |a, b| (a / b).trunc(), |_, _, _| (0.0, 0.0))?;
    match pair.kind {
        Kind::Float => Ok(quotient),
        Kind::Int | Kind::Bool => match pair.ints()?.1.contains(&0) {
            true => Err(Failure::new("division by zero")),
            false => quotient.to_kind(Kind::Int),
        },
    }
}

fn of_bools(op: Binary, pair: &Pair) -> Result<GraphTensor> {
    let (a, b) = pair.bools()?;
    let function: fn(bool, bool) -> bool = match op {
        Binary::Add | Binary::Maximum => |a, b| a | b,
        Binary::Mul | Binary::Minimum => |a, b| a & b,
        Binary::Div => return of_floats(&mut Tape::new(0), op, pair),
        _ => return Err(Failure::new("does not take two bools; convert them first, with .float() or .long()")),
    };
    GraphTensor::bools(a.into_iter().zip(b).map(|(a, b)| function(a, b)), &pair.shape)
}

fn of_ints(op: Binary, pair: &Pair) -> Result<GraphTensor> {
    let (a, b) = pair.ints()?;
    let zero = || Failure::new("division of integers by zero");
    let apply = |a: i64, b: i64| match op {
        Binary::Add => Ok(a.wrapping_add(b)),
        Binary::Sub => Ok(a.wrapping_sub(b)),
        Binary::Mul => Ok(a.wrapping_mul(b)),
        Binary::Maximum => Ok(a.max(b)),
        Binary::Minimum => Ok(a.min(b)),
        Binary::FloorDivide if b != 0 => Ok(floor_divide(a, b)),
        Binary::Remainder if b != 0 => Ok(a.wrapping_sub(floor_divide(a, b).wrapping_mul(b))),
        Binary::FloorDivide | Binary::Remainder => Err(zero()),
        Binary::Pow => match u32::try_from(b) {
            Ok(exponent) => Ok(a.wrapping_pow(exponent)),
            Err(_) => Err(Failure::new(format!("an integer to the power of {b}"))),
        },
        _ => Err(Failure::new("does not take integers")),
    };
    let results: Result<Vec<i64>> = a.into_iter().zip(b).map(|(a, b)| apply(a, b)).collect();
    GraphTensor::ints(results?, &pair.shape)
}

/// The quotient, rounded down. `b` is not 0.
pub(super) fn floor_divide(a: i64, b: i64) -> i64 {
    let quotient = a.wrapping_div(b);
    if a.wrapping_rem(b) != 0 && ((a < 0) != (b < 0)) { quotient.wrapping_sub(1) } else { quotient }
}

/// The remainder of a division rounded down, with the sign of the divisor.
pub(super) fn remainder(a: f64, b: f64) -> f64 {
    let rest = a % b;
    if rest != 0.0 && ((rest < 0.0) != (b < 0.0)) { rest + b } else { rest }
}

fn of_floats(tape: &mut Tape, op: Binary, pair: &Pair) -> Result<GraphTensor> {
    match op {
        Binary::Add => pair.map(tape, |a, b| a + b, |_, _, _| (1.0, 1.0)),
        Binary::Sub | Binary::Rsub => pair.map(tape, |a, b| a - b, |_, _, _| (1.0, -1.0)),
        Binary::Mul => pair.map(tape, |a, b| a * b, |a, b, _| (b, a)),
        Binary::Div => pair.map(tape, |a, b| a / b, |_, b, y| (1.0 / b, -y / b)),
        Binary::FloorDivide => pair.map(tape, |a, b| (a / b).floor(), |_, _, _| (0.0, 0.0)),
        Binary::Remainder => pair.map(tape, remainder, |a, b, _| (1.0, -(a / b).floor())),
        Binary::Pow => pair.map(tape, f64::powf, power_slopes),
        Binary::Maximum => pair.map(tape, |a, b| nan_or(a, b, f64::max), |a, b, _| shared(a, b, a > b)),
        Binary::Minimum => pair.map(tape, |a, b| nan_or(a, b, f64::min), |a, b, _| shared(a, b, a < b)),
        Binary::LogAddExp => pair.map(tape, log_add_exp, |a, b, y| match y.is_infinite() {
            true if a == b => (0.5, 0.5),
            true => shared(a, b, a > b),
            false => ((a - y).exp(), (b - y).exp()),
        }),
        Binary::Atan2 => pair.map(tape, f64::atan2, |a, b, _| (b / (a * a + b * b), -a / (a * a + b * b))),
    }
}

/// Derivatives of `a^b = y`; where the base is 0 those with respect to base and exponent are torch's.
fn power_slopes(a: f64, b: f64, y: f64) -> (f64, f64) {
    let of_base = if b == 0.0 { 0.0 } else { b * a.powf(b - 1.0) };
    let of_exponent = if a == 0.0 && b >= 0.0 { 0.0 } else { y * a.ln() };
    (of_base, of_exponent)
}

fn nan_or(a: f64, b: f64, function: fn(f64, f64) -> f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { function(a, b) }
}

/// The gradient goes to the chosen operand, and half of it to each of two equal ones.
fn shared(a: f64, b: f64, first: bool) -> (f64, f64) {
    match (a == b, first) {
        (true, _) => (0.5, 0.5),
        (false, true) => (1.0, 0.0),
        (false, false) => (0.0, 1.0),
    }
}

pub(super) fn log_add_exp(a: f64, b: f64) -> f64 {
    if a == b && a.is_infinite() {
        return a;
    }
    a.max(b) + (-(a - b).abs()).exp().ln_1p()
}

pub(super) fn compare(tape: &Tape, op: Comparison, a: &Value, b: &Value) -> Result<GraphTensor> {
    let pair = Pair::of(tape, a, b)?;
    let (a, b) = pair.floats()?;
    GraphTensor::bools(a.into_iter().zip(b).map(|(a, b)| holds(op, a, b)), &pair.shape)
}

/// Whether a comparison holds.
pub(super) fn holds(op: Comparison, a: f64, b: f64) -> bool {
    match op {
        Comparison::Eq => a == b,
        Comparison::Ne => a != b,
        Comparison::Lt => a < b,
        Comparison::Le => a <= b,
        Comparison::Gt => a > b,
        Comparison::Ge => a >= b,
    }
}

pub(super) fn logical(tape: &Tape, op: Logical, a: &Value, b: &Value) -> Result<GraphTensor> {
    let pair = Pair::of(tape, a, b)?;
    let (a, b) = pair.bools()?;
    let function: fn(bool, bool) -> bool = match op {
        Logical::And => |a, b| a & b,
        Logical::Or => |a, b| a | b,
        Logical::Xor => |a, b| a ^ b,
    };
    GraphTensor::bools(a.into_iter().zip(b).map(|(a, b)| function(a, b)), &pair.shape)
}

/// `&`, `|` and `^`: of truth values, or of the bits of integers.
pub(super) fn bitwise(tape: &Tape, op: Logical, a: &Value, b: &Value) -> Result<GraphTensor> {
    let pair = Pair::of(tape, a, b)?;
    let function: fn(i64, i64) -> i64 = match op {
        Logical::And => |a, b| a & b,
        Logical::Or => |a, b| a | b,
        Logical::Xor => |a, b| a ^ b,
    };
    match pair.kind {
        Kind::Bool => logical(tape, op, a, b),
        Kind::Int => {
            let (a, b) = pair.ints()?;
            GraphTensor::ints(a.into_iter().zip(b).map(|(a, b)| function(a, b)).collect(), &pair.shape)
        }
        Kind::Float => Err(Failure::new("does not take floats, only bools and integers")),
    }
}

/// Elements of a truth-valued tensor in a shape that it broadcasts to.
pub(super) fn mask_in(mask: &GraphTensor, shape: &[usize]) -> Result<Vec<bool>> {
    if mask.kind() != Kind::Bool {
        return Err(Failure::new(format!("the condition must be a bool tensor, not {}", mask.kind().name())));
    }
    let wide = mask.data.broadcast_as(shape)?;
    Ok(elements::<u8>(&wide)?.into_iter().map(|value| value != 0).collect())
}
