//! Extents of the mixers that keep a state per sequence: recurrences and short convolutions.

/// Tokens of a chunk. Chunks begin at multiples of it in a sequence, however the sequence is cut into passes.
pub const CHUNK: usize = 64;

/// The rule of a recurrence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RecurrentRule {
    /// The gated delta rule: queries and keys are normalised, a token writes the difference between its value and what the state
    /// returns for its key. The output is normalised by head, then gated.
    DeltaNet,
    /// Mamba-2: a token writes its value times its step, and reads its own value besides. The output is gated, then normalised by
    /// group of heads that share a key.
    Mamba2 {
        /// Bounds of a step.
        limits: (f32, f32),
    },
}

/// Extents of a recurrence. Value head `j` shares the query and key of head `j / (value_heads / key_heads)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecurrentShape {
    /// Rule that determines how inputs update the state.
    pub rule: RecurrentRule,
    /// Number of heads of queries and of keys; divides `value_heads`.
    pub key_heads: usize,
    /// Number of heads of values, each with a state `[key_dim, value_dim]`, a decay and a step.
    pub value_heads: usize,
    /// Width of a query or key head.
    pub key_dim: usize,
    /// Width of a value head.
    pub value_dim: usize,
    /// Number of tokens that the convolution sees, its own included.
    pub kernel: usize,
}

/// First columns of the parts of a row of inputs to a recurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputColumns {
    /// Inputs of the convolution that become queries.
    pub queries: usize,
    /// Inputs of the convolution that become keys.
    pub keys: usize,
    /// Inputs of the convolution that become values.
    pub values: usize,
    /// Gate of the output.
    pub gate: usize,
    /// Inputs of the decays, one per value head.
    pub decays: usize,
    /// Inputs of the step sizes, one per value head, if tokens have step sizes.
    pub steps: usize,
}

impl RecurrentShape {
    /// Returns the first columns of the parts of a row of inputs. The order is that of the rows of projections in
    /// files, so that one projection can make all parts: with the delta rule queries, keys, values, gate, decays,
    /// steps; with Mamba-2 gate, values, keys, queries, decays.
    pub fn columns(&self) -> InputColumns {
        let (keys, values) = (self.key_width(), self.value_width());
        let decays = self.channels() + values;
        let steps = decays + self.value_heads;
        match self.rule {
            RecurrentRule::DeltaNet => {
                InputColumns { queries: 0, keys, values: 2 * keys, gate: self.channels(), decays, steps }
            }
            RecurrentRule::Mamba2 { .. } => {
                let queries = 2 * values + keys;
                InputColumns { gate: 0, values, keys: 2 * values, queries, decays, steps }
            }
        }
    }

    /// Elements of a token's queries, or keys.
    pub fn key_width(&self) -> usize {
        self.key_heads * self.key_dim
    }

    /// Elements of a token's values, of its gate and of its output.
    pub fn value_width(&self) -> usize {
        self.value_heads * self.value_dim
    }

    /// Channels of the convolution: queries, keys, values.
    pub fn channels(&self) -> usize {
        2 * self.key_width() + self.value_width()
    }

    /// Returns whether a token has a step size besides the decay.
    pub fn has_beta(&self) -> bool {
        matches!(self.rule, RecurrentRule::DeltaNet)
    }

    /// Elements of a row of inputs, whose parts are at [`RecurrentShape::columns`].
    pub fn input_width(&self) -> usize {
        self.channels() + self.value_width() + self.value_heads * if self.has_beta() { 2 } else { 1 }
    }

    /// Elements of the state of a sequence: the last inputs of the convolution, the state at the chunk's start, and keys, written
    /// values and sums of decays of the chunk's tokens.
    pub fn state_elements(&self) -> usize {
        let chunk = CHUNK * (self.key_width() + self.value_width() + self.value_heads);
        (self.kernel - 1) * self.channels() + self.value_heads * self.key_dim * self.value_dim + chunk
    }
}

/// Extents of a short convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvolutionShape {
    /// Channels, each convolved by itself.
    pub channels: usize,
    /// Number of tokens that a channel's convolution sees, its own included.
    pub kernel: usize,
}

impl ConvolutionShape {
    /// Elements of a row of inputs: the gate before the convolution, the gate after it, and values.
    pub fn input_width(&self) -> usize {
        3 * self.channels
    }

    /// Elements of the state of a sequence: the convolution's last inputs.
    pub fn state_elements(&self) -> usize {
        (self.kernel - 1) * self.channels
    }
}

/// The mixer that a state belongs to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StateShape {
    /// State of a linear recurrence.
    Recurrent(RecurrentShape),
    /// State of a short convolution.
    Convolution(ConvolutionShape),
}

impl StateShape {
    /// Elements of the state of a sequence, in f32.
    pub fn elements(&self) -> usize {
        match self {
            Self::Recurrent(shape) => shape.state_elements(),
            Self::Convolution(shape) => shape.state_elements(),
        }
    }
}
