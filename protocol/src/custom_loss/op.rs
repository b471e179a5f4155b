//! Operations that the nodes of a graph compute.

use serde::{Deserialize, Serialize};

/// An allowed operation. Its arguments are described by its [`Signature`](super::Signature)s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Op {
    /// Input of the loss, by its number.
    Input(usize),
    /// An elementwise function of a tensor.
    Unary(Unary),
    /// An arithmetic function of two tensors or numbers.
    Binary(Binary),
    /// A comparison of two tensors or numbers.
    Compare(Comparison),
    /// A logical function of two tensors.
    Logical(Logical),
    /// A Python operator whose meaning depends on its operands.
    Python(PythonOp),
    /// A function of Python numbers.
    Math(MathFunction),
    /// A reduction over some dimensions.
    Reduce(Reduction),
    /// A running reduction along a dimension.
    Cumulative(Cumulative),
    /// Leaky rectified linear unit: `leaky_relu(x, slope)`.
    LeakyRelu,
    /// Exponential linear unit: `elu(x, alpha)`.
    Elu,
    /// Smooth rectified linear unit: `softplus(x, beta, threshold)`.
    Softplus,
    /// Gaussian error linear unit: `gelu(x, approximate)`.
    Gelu,
    /// Replacement of values that are not finite: `nan_to_num(x, nan, posinf, neginf)`.
    NanToNum,
    /// Limits elements to a smallest and a largest value.
    Clamp,
    /// Limits elements to a smallest value.
    ClampMin,
    /// Limits elements to a largest value.
    ClampMax,
    /// Limits elements to a range: `hardtanh(x, min_val, max_val)`.
    Hardtanh,
    /// A loss of the differences of two tensors.
    Regression(Regression),
    /// Choice between two tensors by elements: `where(condition, a, b)`.
    Where,
    /// Choice as a method: `a.where(condition, b)`.
    WhereMethod,
    /// Replaces elements where a mask is true: `masked_fill(x, mask, value)`.
    MaskedFill,
    /// The elements where a mask is true.
    MaskedSelect,
    /// Linear interpolation of two tensors: `lerp(a, b, weight)`.
    Lerp,
    /// Maximum: of all elements, along a dimension with its index, or of two tensors.
    Max,
    /// Minimum, in the forms of [`Op::Max`].
    Min,
    /// Index of the largest element.
    Argmax,
    /// Index of the smallest element.
    Argmin,
    /// Variance over some dimensions.
    Var,
    /// Standard deviation over some dimensions.
    Std,
    /// Vector norm over some dimensions.
    Norm,
    /// Softmax along a dimension: `softmax(x, dim)`.
    Softmax,
    /// Logarithm of the softmax along a dimension: `log_softmax(x, dim)`.
    LogSoftmax,
    /// Differences of neighbours along a dimension.
    Diff,
    /// Another shape of the same elements: `reshape`, `view`.
    Reshape,
    /// The shape of another tensor: `view_as`, `reshape_as`.
    ReshapeAs,
    /// Joins consecutive dimensions: `flatten(x, start_dim, end_dim)`.
    Flatten,
    /// Removes dimensions of extent 1.
    Squeeze,
    /// Inserts a dimension of extent 1.
    Unsqueeze,
    /// Exchanges two dimensions of a tensor.
    Transpose,
    /// Exchanges the dimensions of a matrix.
    T,
    /// Reorders all dimensions of a tensor.
    Permute,
    /// Repeats dimensions of extent 1: `expand`, `broadcast_to`.
    Expand,
    /// Repeats dimensions of extent 1 up to another tensor's shape: `expand_as`.
    ExpandAs,
    /// Repeats a tensor along its dimensions: `repeat(x, *sizes)`.
    Repeat,
    /// Concatenates along a dimension.
    Cat,
    /// Concatenates along a new dimension.
    Stack,
    /// Pieces of equal size along a dimension.
    Split,
    /// Equal pieces along a dimension.
    Chunk,
    /// The slices along a dimension.
    Unbind,
    /// A range along a dimension.
    Narrow,
    /// One slice along a dimension.
    Select,
    /// Slices along a dimension by index.
    IndexSelect,
    /// Elements along a dimension by index.
    Gather,
    /// Reverses the order along some dimensions.
    Flip,
    /// Rotates elements along a dimension.
    Roll,
    /// The lower triangle of matrices.
    Tril,
    /// The upper triangle of matrices.
    Triu,
    /// Matrix product of two tensors.
    Matmul,
    /// Outer product of two vectors.
    Outer,
    /// Inner product of two vectors.
    Dot,
    /// Conversion to another element type.
    To,
    /// Conversion to the element type of another tensor.
    TypeAs,
    /// Conversion to `float32`: `x.float()`.
    ToFloat,
    /// Conversion to `int64`: `x.long()`.
    ToInt,
    /// Conversion to `bool`: `x.bool()`.
    ToBool,
    /// The tensor itself, unchanged.
    Identity,
    /// The tensor without a gradient.
    Detach,
    /// Tensor of one number, or of a list of numbers.
    NewTensor,
    /// Tensor of zeros of a given shape.
    Zeros,
    /// Tensor of ones of a given shape.
    Ones,
    /// Tensor of one number in a given shape.
    Full,
    /// Zeros in the shape of a tensor.
    ZerosLike,
    /// Ones in the shape of a tensor.
    OnesLike,
    /// A number in the shape of a tensor.
    FullLike,
    /// Zeros of a given shape, with a tensor's element type.
    NewZeros,
    /// Ones of a given shape, with a tensor's element type.
    NewOnes,
    /// One number in a given shape, with a tensor's element type.
    NewFull,
    /// Numbers from a start to an end.
    Arange,
    /// An attribute of a tensor: its shape, type, …
    GetAttribute,
    /// Extents of a tensor, or one of them.
    Size,
    /// Number of dimensions of a tensor.
    Dim,
    /// Number of elements of a tensor.
    Numel,
    /// Part of a tensor or of a tuple.
    GetItem,
}

/// Elementwise functions of one tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "torch's names")]
pub enum Unary {
    Abs,
    Neg,
    Exp,
    Exp2,
    Expm1,
    Log,
    Log2,
    Log10,
    Log1p,
    Sqrt,
    Rsqrt,
    Square,
    Reciprocal,
    Sigmoid,
    LogSigmoid,
    Tanh,
    Sin,
    Cos,
    Tan,
    Sinh,
    Cosh,
    Atan,
    Erf,
    Erfc,
    Relu,
    Silu,
    Sign,
    Floor,
    Ceil,
    Round,
    Trunc,
    IsNan,
    IsInf,
    IsFinite,
    LogicalNot,
}

/// Arithmetic functions of two tensors or numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "torch's names")]
pub enum Binary {
    Add,
    Sub,
    Rsub,
    Mul,
    Div,
    FloorDivide,
    Remainder,
    Pow,
    Maximum,
    Minimum,
    LogAddExp,
    Atan2,
}

/// Comparisons of two tensors or numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "torch's names")]
pub enum Comparison {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// Logical functions of two tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "torch's names")]
pub enum Logical {
    And,
    Or,
    Xor,
}

/// Python operators that mean one thing for tensors of truth values and another for integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "Python's names")]
pub enum PythonOp {
    And,
    Or,
    Xor,
    Invert,
    Pos,
    Not,
}

/// Functions of Python's `math`; a tensor of one element is read as its number, without a gradient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "Python's names")]
pub enum MathFunction {
    Exp,
    Expm1,
    Log,
    Log1p,
    Log2,
    Log10,
    Sqrt,
    Pow,
    Fabs,
    Floor,
    Ceil,
    Trunc,
    Sin,
    Cos,
    Tan,
    Tanh,
    Atan,
    Atan2,
    Erf,
    IsNan,
    IsInf,
    IsFinite,
}

/// Reductions over some dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "torch's names")]
pub enum Reduction {
    Sum,
    Mean,
    Prod,
    NanSum,
    LogSumExp,
    Amax,
    Amin,
    Any,
    All,
    CountNonzero,
}

/// Running reductions along a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "torch's names")]
pub enum Cumulative {
    Sum,
    Prod,
    LogSumExp,
}

/// Losses of the differences of two tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "torch's names")]
pub enum Regression {
    Mse,
    L1,
    Huber,
    SmoothL1,
}
