//! What the nodes of a graph compute.

use serde::{Deserialize, Serialize};

/// An allowed operation. Its arguments are described by its [`Signature`](super::Signature)s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Op {
    /// The input of this number.
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
    /// `leaky_relu(x, slope)`.
    LeakyRelu,
    /// `elu(x, alpha)`.
    Elu,
    /// `softplus(x, beta, threshold)`.
    Softplus,
    /// `gelu(x, approximate)`.
    Gelu,
    /// `nan_to_num(x, nan, posinf, neginf)`.
    NanToNum,
    /// Smallest and largest value.
    Clamp,
    /// Smallest value.
    ClampMin,
    /// Largest value.
    ClampMax,
    /// `hardtanh(x, min_val, max_val)`.
    Hardtanh,
    /// A loss of the differences of two tensors.
    Regression(Regression),
    /// `where(condition, a, b)`.
    Where,
    /// `a.where(condition, b)`.
    WhereMethod,
    /// `masked_fill(x, mask, value)`.
    MaskedFill,
    /// The elements where a mask is true.
    MaskedSelect,
    /// `lerp(a, b, weight)`.
    Lerp,
    /// Maximum: of all elements, along a dimension with its index, or of two tensors.
    Max,
    /// Minimum, in the forms of [`Op::Max`].
    Min,
    /// Index of the largest element.
    Argmax,
    /// Index of the smallest element.
    Argmin,
    /// Variance.
    Var,
    /// Standard deviation.
    Std,
    /// Vector norm.
    Norm,
    /// `softmax(x, dim)`.
    Softmax,
    /// `log_softmax(x, dim)`.
    LogSoftmax,
    /// Differences of neighbours along a dimension.
    Diff,
    /// `reshape`, `view`.
    Reshape,
    /// `view_as`, `reshape_as`.
    ReshapeAs,
    /// `flatten(x, start_dim, end_dim)`.
    Flatten,
    /// Removes dimensions of extent 1.
    Squeeze,
    /// Inserts a dimension of extent 1.
    Unsqueeze,
    /// Exchanges two dimensions.
    Transpose,
    /// Exchanges the dimensions of a matrix.
    T,
    /// Reorders the dimensions.
    Permute,
    /// `expand`, `broadcast_to`.
    Expand,
    /// `expand_as`.
    ExpandAs,
    /// `repeat(x, *sizes)`.
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
    /// Reverses dimensions.
    Flip,
    /// Rotates along a dimension.
    Roll,
    /// The lower triangle.
    Tril,
    /// The upper triangle.
    Triu,
    /// Matrix product.
    Matmul,
    /// Outer product of two vectors.
    Outer,
    /// Inner product of two vectors.
    Dot,
    /// Another element type.
    To,
    /// The element type of another tensor.
    TypeAs,
    /// To `float32`.
    ToFloat,
    /// To `int64`.
    ToInt,
    /// To `bool`.
    ToBool,
    /// The tensor itself.
    Identity,
    /// The tensor without a gradient.
    Detach,
    /// A tensor of a number, or of a list of numbers.
    NewTensor,
    /// Zeros of a shape.
    Zeros,
    /// Ones of a shape.
    Ones,
    /// A number in a shape.
    Full,
    /// Zeros in the shape of a tensor.
    ZerosLike,
    /// Ones in the shape of a tensor.
    OnesLike,
    /// A number in the shape of a tensor.
    FullLike,
    /// Zeros of a shape, with a tensor's element type.
    NewZeros,
    /// Ones of a shape, with a tensor's element type.
    NewOnes,
    /// A number in a shape, with a tensor's element type.
    NewFull,
    /// Numbers from a start to an end.
    Arange,
    /// An attribute of a tensor: its shape, type, …
    GetAttribute,
    /// Extents of a tensor, or one of them.
    Size,
    /// Number of dimensions.
    Dim,
    /// Number of elements.
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

/// Comparisons.
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

/// Reductions.
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

/// Running reductions.
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
