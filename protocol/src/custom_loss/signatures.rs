//! The allow-list: targets that a node may call, and their parameters.

use super::op::Op::{self, *};
use super::op::{Binary, Comparison, Cumulative, Logical, MathFunction, PythonOp, Reduction, Regression, Unary};

/// An operation under the names that torch and Python give it.
#[derive(Clone, Copy, Debug)]
pub struct Signature {
    /// Operation that these targets compute.
    pub op: Op,
    /// Parameters in order. `=` after a name marks it as optional. `*` before a name marks it as variadic: it takes all
    /// remaining positional arguments, or one list. `a|b` accepts either name.
    pub parameters: &'static str,
    /// Qualified names of functions, and `Tensor.<name>` for methods.
    pub targets: &'static [&'static str],
}

const fn allow(op: Op, parameters: &'static str, targets: &'static [&'static str]) -> Signature {
    Signature { op, parameters, targets }
}

const fn unary(op: Unary, targets: &'static [&'static str]) -> Signature {
    allow(Unary(op), "input|self", targets)
}

const fn binary(op: Binary, targets: &'static [&'static str]) -> Signature {
    allow(Binary(op), "input|self, other", targets)
}

const fn compare(op: Comparison, targets: &'static [&'static str]) -> Signature {
    allow(Compare(op), "input|self, other", targets)
}

const fn reduce(op: Reduction, targets: &'static [&'static str]) -> Signature {
    allow(Reduce(op), "input|self, dim|axis=, keepdim=, dtype=", targets)
}

const fn regression(op: Regression, parameters: &'static str, target: &'static [&'static str]) -> Signature {
    allow(Regression(op), parameters, target)
}

const fn math(op: MathFunction, targets: &'static [&'static str]) -> Signature {
    allow(Math(op), "x", targets)
}

/// Every allowed target, by operation. Anything else is refused.
pub const SIGNATURES: &[Signature] = &[
    // Elementwise.
    unary(Unary::Abs, &["torch.abs", "torch.absolute", "Tensor.abs", "Tensor.absolute", "operator.abs"]),
    unary(Unary::Neg, &["torch.neg", "torch.negative", "Tensor.neg", "Tensor.negative", "operator.neg"]),
    unary(Unary::Exp, &["torch.exp", "Tensor.exp"]),
    unary(Unary::Exp2, &["torch.exp2", "Tensor.exp2"]),
    unary(Unary::Expm1, &["torch.expm1", "Tensor.expm1"]),
    unary(Unary::Log, &["torch.log", "Tensor.log"]),
    unary(Unary::Log2, &["torch.log2", "Tensor.log2"]),
    unary(Unary::Log10, &["torch.log10", "Tensor.log10"]),
    unary(Unary::Log1p, &["torch.log1p", "Tensor.log1p"]),
    unary(Unary::Sqrt, &["torch.sqrt", "Tensor.sqrt"]),
    unary(Unary::Rsqrt, &["torch.rsqrt", "Tensor.rsqrt"]),
    unary(Unary::Square, &["torch.square", "Tensor.square"]),
    unary(Unary::Reciprocal, &["torch.reciprocal", "Tensor.reciprocal"]),
    unary(
        Unary::Sigmoid,
        &["torch.sigmoid", "Tensor.sigmoid", "torch.nn.functional.sigmoid", "torch._C._special.special_expit"],
    ),
    unary(Unary::LogSigmoid, &["torch._C._nn.log_sigmoid", "torch.nn.functional.logsigmoid"]),
    unary(Unary::Tanh, &["torch.tanh", "Tensor.tanh", "torch.nn.functional.tanh"]),
    unary(Unary::Sin, &["torch.sin", "Tensor.sin"]),
    unary(Unary::Cos, &["torch.cos", "Tensor.cos"]),
    unary(Unary::Tan, &["torch.tan", "Tensor.tan"]),
    unary(Unary::Sinh, &["torch.sinh", "Tensor.sinh"]),
    unary(Unary::Cosh, &["torch.cosh", "Tensor.cosh"]),
    unary(Unary::Atan, &["torch.atan", "torch.arctan", "Tensor.atan"]),
    unary(Unary::Erf, &["torch.erf", "Tensor.erf", "torch._C._special.special_erf"]),
    unary(Unary::Erfc, &["torch.erfc", "Tensor.erfc", "torch._C._special.special_erfc"]),
    allow(Unary(Unary::Relu), "input|self, inplace=", &["torch.relu", "Tensor.relu", "torch.nn.functional.relu"]),
    allow(Unary(Unary::Silu), "input|self, inplace=", &["torch.nn.functional.silu"]),
    unary(Unary::Sign, &["torch.sign", "torch.sgn", "Tensor.sign", "Tensor.sgn"]),
    unary(Unary::Floor, &["torch.floor", "Tensor.floor"]),
    unary(Unary::Ceil, &["torch.ceil", "Tensor.ceil"]),
    unary(Unary::Round, &["torch.round", "Tensor.round"]),
    unary(Unary::Trunc, &["torch.trunc", "torch.fix", "Tensor.trunc", "Tensor.fix"]),
    unary(Unary::IsNan, &["torch.isnan", "Tensor.isnan"]),
    unary(Unary::IsInf, &["torch.isinf", "Tensor.isinf"]),
    unary(Unary::IsFinite, &["torch.isfinite", "Tensor.isfinite"]),
    unary(Unary::LogicalNot, &["torch.logical_not", "Tensor.logical_not"]),
    allow(LeakyRelu, "input|self, negative_slope=, inplace=", &["torch.nn.functional.leaky_relu"]),
    allow(Elu, "input|self, alpha=, inplace=", &["torch.nn.functional.elu"]),
    allow(Softplus, "input|self, beta=, threshold=", &["torch._C._nn.softplus", "torch.nn.functional.softplus"]),
    allow(Gelu, "input|self, approximate=", &["torch._C._nn.gelu", "torch.nn.functional.gelu"]),
    allow(NanToNum, "input|self, nan=, posinf=, neginf=", &["torch.nan_to_num", "Tensor.nan_to_num"]),
    // Two tensors or numbers.
    allow(Binary(Binary::Add), "input|self, other, alpha=", &["torch.add", "Tensor.add", "operator.add"]),
    allow(
        Binary(Binary::Sub),
        "input|self, other, alpha=",
        &["torch.sub", "torch.subtract", "Tensor.sub", "Tensor.subtract", "operator.sub"],
    ),
    allow(Binary(Binary::Rsub), "input|self, other, alpha=", &["torch.rsub"]),
    binary(Binary::Mul, &["torch.mul", "torch.multiply", "Tensor.mul", "Tensor.multiply", "operator.mul"]),
    allow(
        Binary(Binary::Div),
        "input|self, other, rounding_mode=",
        &["torch.div", "torch.divide", "Tensor.div", "Tensor.divide"],
    ),
    binary(Binary::Div, &["torch.true_divide", "Tensor.true_divide", "operator.truediv"]),
    binary(Binary::FloorDivide, &["torch.floor_divide", "Tensor.floor_divide", "operator.floordiv"]),
    binary(Binary::Remainder, &["torch.remainder", "Tensor.remainder", "operator.mod"]),
    allow(Binary(Binary::Pow), "input|self, exponent", &["torch.pow", "Tensor.pow", "operator.pow"]),
    binary(Binary::Maximum, &["torch.maximum", "Tensor.maximum"]),
    binary(Binary::Minimum, &["torch.minimum", "Tensor.minimum"]),
    binary(Binary::LogAddExp, &["torch.logaddexp", "Tensor.logaddexp"]),
    binary(Binary::Atan2, &["torch.atan2", "torch.arctan2", "Tensor.atan2"]),
    compare(Comparison::Eq, &["torch.eq", "Tensor.eq", "operator.eq"]),
    compare(Comparison::Ne, &["torch.ne", "torch.not_equal", "Tensor.ne", "Tensor.not_equal", "operator.ne"]),
    compare(Comparison::Lt, &["torch.lt", "torch.less", "Tensor.lt", "Tensor.less", "operator.lt"]),
    compare(Comparison::Le, &["torch.le", "torch.less_equal", "Tensor.le", "Tensor.less_equal", "operator.le"]),
    compare(Comparison::Gt, &["torch.gt", "torch.greater", "Tensor.gt", "Tensor.greater", "operator.gt"]),
    compare(Comparison::Ge, &["torch.ge", "torch.greater_equal", "Tensor.ge", "Tensor.greater_equal", "operator.ge"]),
    allow(Logical(Logical::And), "input|self, other", &["torch.logical_and", "Tensor.logical_and"]),
    allow(Logical(Logical::Or), "input|self, other", &["torch.logical_or", "Tensor.logical_or"]),
    allow(Logical(Logical::Xor), "input|self, other", &["torch.logical_xor", "Tensor.logical_xor"]),
    allow(Python(PythonOp::And), "input|self, other", &["operator.and_", "torch.bitwise_and", "Tensor.bitwise_and"]),
    allow(Python(PythonOp::Or), "input|self, other", &["operator.or_", "torch.bitwise_or", "Tensor.bitwise_or"]),
    allow(Python(PythonOp::Xor), "input|self, other", &["operator.xor", "torch.bitwise_xor", "Tensor.bitwise_xor"]),
    allow(
        Python(PythonOp::Invert),
        "input|self",
        &["operator.invert", "operator.inv", "torch.bitwise_not", "Tensor.bitwise_not"],
    ),
    allow(Python(PythonOp::Pos), "input|self", &["operator.pos", "torch.positive", "Tensor.positive"]),
    allow(Python(PythonOp::Not), "input", &["operator.not_"]),
    allow(Clamp, "input|self, min=, max=", &["torch.clamp", "torch.clip", "Tensor.clamp", "Tensor.clip"]),
    allow(ClampMin, "input|self, min", &["torch.clamp_min", "Tensor.clamp_min"]),
    allow(ClampMax, "input|self, max", &["torch.clamp_max", "Tensor.clamp_max"]),
    allow(Where, "condition, input|self, other", &["torch.where"]),
    allow(WhereMethod, "input|self, condition, other", &["Tensor.where"]),
    allow(MaskedFill, "input|self, mask, value", &["torch.masked_fill", "Tensor.masked_fill"]),
    allow(MaskedSelect, "input|self, mask", &["torch.masked_select", "Tensor.masked_select"]),
    allow(Lerp, "input|self, end, weight", &["torch.lerp", "Tensor.lerp"]),
    allow(Hardtanh, "input|self, min_val=, max_val=, inplace=", &["torch.nn.functional.hardtanh"]),
    regression(Regression::Mse, "input, target, reduction=", &["torch.nn.functional.mse_loss"]),
    regression(Regression::L1, "input, target, reduction=", &["torch.nn.functional.l1_loss"]),
    regression(Regression::Huber, "input, target, reduction=, delta=", &["torch.nn.functional.huber_loss"]),
    regression(Regression::SmoothL1, "input, target, reduction=, beta=", &["torch.nn.functional.smooth_l1_loss"]),
    // Python numbers.
    math(MathFunction::Exp, &["math.exp"]),
    math(MathFunction::Expm1, &["math.expm1"]),
    allow(Math(MathFunction::Log), "x, base=", &["math.log"]),
    math(MathFunction::Log1p, &["math.log1p"]),
    math(MathFunction::Log2, &["math.log2"]),
    math(MathFunction::Log10, &["math.log10"]),
    math(MathFunction::Sqrt, &["math.sqrt"]),
    allow(Math(MathFunction::Pow), "x, y", &["math.pow"]),
    math(MathFunction::Fabs, &["math.fabs"]),
    math(MathFunction::Floor, &["math.floor"]),
    math(MathFunction::Ceil, &["math.ceil"]),
    math(MathFunction::Trunc, &["math.trunc"]),
    math(MathFunction::Sin, &["math.sin"]),
    math(MathFunction::Cos, &["math.cos"]),
    math(MathFunction::Tan, &["math.tan"]),
    math(MathFunction::Tanh, &["math.tanh"]),
    math(MathFunction::Atan, &["math.atan"]),
    allow(Math(MathFunction::Atan2), "y, x", &["math.atan2"]),
    math(MathFunction::Erf, &["math.erf"]),
    math(MathFunction::IsNan, &["math.isnan"]),
    math(MathFunction::IsInf, &["math.isinf"]),
    math(MathFunction::IsFinite, &["math.isfinite"]),
    // Reductions.
    reduce(Reduction::Sum, &["torch.sum", "Tensor.sum"]),
    reduce(Reduction::Mean, &["torch.mean", "Tensor.mean"]),
    reduce(Reduction::Prod, &["torch.prod", "Tensor.prod"]),
    reduce(Reduction::NanSum, &["torch.nansum", "Tensor.nansum"]),
    allow(
        Reduce(Reduction::LogSumExp),
        "input|self, dim|axis, keepdim=",
        &["torch.logsumexp", "Tensor.logsumexp", "torch._C._special.special_logsumexp"],
    ),
    allow(Reduce(Reduction::Amax), "input|self, dim|axis=, keepdim=", &["torch.amax", "Tensor.amax"]),
    allow(Reduce(Reduction::Amin), "input|self, dim|axis=, keepdim=", &["torch.amin", "Tensor.amin"]),
    allow(Reduce(Reduction::Any), "input|self, dim|axis=, keepdim=", &["torch.any", "Tensor.any"]),
    allow(Reduce(Reduction::All), "input|self, dim|axis=, keepdim=", &["torch.all", "Tensor.all"]),
    allow(Reduce(Reduction::CountNonzero), "input|self, dim|axis=", &["torch.count_nonzero", "Tensor.count_nonzero"]),
    allow(Max, "input|self, dim|axis|other=, keepdim=", &["torch.max", "Tensor.max"]),
    allow(Min, "input|self, dim|axis|other=, keepdim=", &["torch.min", "Tensor.min"]),
    allow(Argmax, "input|self, dim|axis=, keepdim=", &["torch.argmax", "Tensor.argmax"]),
    allow(Argmin, "input|self, dim|axis=, keepdim=", &["torch.argmin", "Tensor.argmin"]),
    allow(Var, "input|self, dim|axis|unbiased=, unbiased=, keepdim=, correction=", &["torch.var", "Tensor.var"]),
    allow(Std, "input|self, dim|axis|unbiased=, unbiased=, keepdim=, correction=", &["torch.std", "Tensor.std"]),
    allow(
        Norm,
        "input|self, p|ord=, dim|axis=, keepdim=",
        &["Tensor.norm", "torch.norm", "torch.functional.norm", "torch._C._linalg.linalg_vector_norm"],
    ),
    allow(
        Softmax,
        "input|self, dim, dtype=",
        &["torch.softmax", "Tensor.softmax", "torch._C._special.special_softmax"],
    ),
    allow(Softmax, "input|self, dim, _stacklevel=, dtype=", &["torch.nn.functional.softmax"]),
    allow(
        LogSoftmax,
        "input|self, dim, dtype=",
        &["torch.log_softmax", "Tensor.log_softmax", "torch._C._special.special_log_softmax"],
    ),
    allow(LogSoftmax, "input|self, dim, _stacklevel=, dtype=", &["torch.nn.functional.log_softmax"]),
    allow(Cumulative(Cumulative::Sum), "input|self, dim|axis, dtype=", &["torch.cumsum", "Tensor.cumsum"]),
    allow(Cumulative(Cumulative::Prod), "input|self, dim|axis, dtype=", &["torch.cumprod", "Tensor.cumprod"]),
    allow(Cumulative(Cumulative::LogSumExp), "input|self, dim|axis", &["torch.logcumsumexp", "Tensor.logcumsumexp"]),
    allow(Diff, "input|self, n=, dim|axis=", &["torch.diff", "Tensor.diff"]),
    // Shapes and parts.
    allow(Reshape, "input|self, shape", &["torch.reshape"]),
    allow(Reshape, "self, *shape", &["Tensor.reshape"]),
    allow(Reshape, "self, *size", &["Tensor.view"]),
    allow(ReshapeAs, "self, other", &["Tensor.view_as", "Tensor.reshape_as"]),
    allow(Flatten, "input|self, start_dim=, end_dim=", &["torch.flatten", "Tensor.flatten"]),
    allow(Flatten, "input|self", &["torch.ravel", "Tensor.ravel"]),
    allow(Squeeze, "input|self, dim=", &["torch.squeeze", "Tensor.squeeze"]),
    allow(Unsqueeze, "input|self, dim", &["torch.unsqueeze", "Tensor.unsqueeze"]),
    allow(
        Transpose,
        "input|self, dim0|axis0, dim1|axis1",
        &["torch.transpose", "torch.swapaxes", "Tensor.transpose", "Tensor.swapaxes"],
    ),
    allow(T, "input|self", &["torch.t", "Tensor.t"]),
    allow(Permute, "input|self, dims", &["torch.permute"]),
    allow(Permute, "self, *dims", &["Tensor.permute"]),
    allow(Expand, "self, *size", &["Tensor.expand"]),
    allow(Expand, "input|self, size", &["torch.broadcast_to", "Tensor.broadcast_to"]),
    allow(ExpandAs, "self, other", &["Tensor.expand_as"]),
    allow(Repeat, "self, *repeats", &["Tensor.repeat"]),
    allow(Cat, "tensors, dim|axis=", &["torch.cat", "torch.concat", "torch.concatenate"]),
    allow(Stack, "tensors, dim|axis=", &["torch.stack"]),
    allow(
        Split,
        "tensor|self, split_size_or_sections|split_size, dim=",
        &["torch.split", "torch.functional.split", "Tensor.split"],
    ),
    allow(Chunk, "input|self, chunks, dim=", &["torch.chunk", "Tensor.chunk"]),
    allow(Unbind, "input|self, dim=", &["torch.unbind", "Tensor.unbind"]),
    allow(Narrow, "input|self, dim, start, length", &["torch.narrow", "Tensor.narrow"]),
    allow(Select, "input|self, dim, index", &["torch.select", "Tensor.select"]),
    allow(IndexSelect, "input|self, dim, index", &["torch.index_select", "Tensor.index_select"]),
    allow(Gather, "input|self, dim, index", &["torch.gather", "Tensor.gather"]),
    allow(Flip, "input|self, dims", &["torch.flip"]),
    allow(Flip, "self, *dims", &["Tensor.flip"]),
    allow(Roll, "input|self, shifts, dims=", &["torch.roll", "Tensor.roll"]),
    allow(Tril, "input|self, diagonal=", &["torch.tril", "Tensor.tril"]),
    allow(Triu, "input|self, diagonal=", &["torch.triu", "Tensor.triu"]),
    allow(
        Matmul,
        "input|self, other|mat2|vec",
        &["torch.matmul", "torch.mm", "torch.mv", "Tensor.matmul", "Tensor.mm", "Tensor.mv", "operator.matmul"],
    ),
    allow(Outer, "input|self, vec2|other", &["torch.outer", "Tensor.outer"]),
    allow(Dot, "input|self, tensor|other", &["torch.dot", "Tensor.dot"]),
    // Types and places.
    allow(To, "self, dtype|device|other=, dtype2=, non_blocking=, copy=, memory_format=", &["Tensor.to"]),
    allow(To, "self, dtype", &["Tensor.type"]),
    allow(TypeAs, "self, other", &["Tensor.type_as"]),
    allow(ToFloat, "self, memory_format=", &["Tensor.float", "Tensor.double"]),
    allow(ToInt, "self, memory_format=", &["Tensor.long", "Tensor.int"]),
    allow(ToBool, "self, memory_format=", &["Tensor.bool"]),
    allow(Identity, "input|self, memory_format=", &["torch.clone", "Tensor.clone", "Tensor.contiguous", "Tensor.cpu"]),
    allow(Detach, "input|self", &["torch.detach", "Tensor.detach"]),
    allow(NewTensor, "data, dtype=, device=", &["torch.tensor", "torch.as_tensor", "torch.scalar_tensor"]),
    allow(Zeros, "*size, dtype=, device=, layout=", &["torch.zeros"]),
    allow(Ones, "*size, dtype=, device=, layout=", &["torch.ones"]),
    allow(Full, "size, fill_value, dtype=, device=, layout=", &["torch.full"]),
    allow(ZerosLike, "input, dtype=, device=, layout=, memory_format=", &["torch.zeros_like"]),
    allow(OnesLike, "input, dtype=, device=, layout=, memory_format=", &["torch.ones_like"]),
    allow(FullLike, "input, fill_value, dtype=, device=, layout=, memory_format=", &["torch.full_like"]),
    allow(NewZeros, "self, *size, dtype=, device=", &["Tensor.new_zeros"]),
    allow(NewOnes, "self, *size, dtype=, device=", &["Tensor.new_ones"]),
    allow(NewFull, "self, size, fill_value, dtype=, device=", &["Tensor.new_full"]),
    allow(Arange, "start, end=, step=, dtype=, device=, layout=", &["torch.arange"]),
    // Attributes of a tensor.
    allow(GetAttribute, "object, name", &["getattr"]),
    allow(Size, "self, dim=", &["Tensor.size"]),
    allow(Dim, "input|self", &["Tensor.dim", "Tensor.ndimension"]),
    allow(Numel, "input|self", &["torch.numel", "Tensor.numel", "Tensor.nelement"]),
    allow(GetItem, "object, key", &["operator.getitem"]),
];

impl Signature {
    /// Returns the signature of a target.
    pub(super) fn of(target: &str) -> Option<&'static Self> {
        SIGNATURES.iter().find(|signature| signature.targets.contains(&target))
    }

    /// Returns the parameters in order.
    pub(super) fn parameters(&self) -> impl Iterator<Item = Parameter> + Clone {
        self.parameters.split(", ").map(Parameter::read)
    }
}

/// A parameter of a [`Signature`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parameter {
    /// Names of the parameter, separated by `|`.
    names: &'static str,
    /// Whether the parameter may be absent.
    pub(super) is_optional: bool,
    /// Whether the parameter takes all remaining positional arguments.
    pub(super) is_variadic: bool,
}

impl Parameter {
    fn read(text: &'static str) -> Self {
        let (text, is_variadic) = text.strip_prefix('*').map_or((text, false), |rest| (rest, true));
        let (names, is_optional) = text.strip_suffix('=').map_or((text, false), |rest| (rest, true));
        Self { names, is_optional, is_variadic }
    }

    /// Returns the name that error texts use.
    pub(super) fn name(&self) -> &'static str {
        self.names.split('|').next().unwrap_or(self.names)
    }

    /// Whether a keyword argument of this name is meant for this parameter.
    pub(super) fn is_called(&self, name: &str) -> bool {
        self.names.split('|').any(|own| own == name)
    }
}
