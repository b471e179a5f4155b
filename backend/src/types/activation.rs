//! The activations that MLPs have between their projections.

/// The activation of an MLP: `act(gate) · up`, or of one without a gate `act(up)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// `x · sigmoid(x)` (Shazeer 2020, arXiv:2002.05202).
    Silu,
    /// GELU with the tanh approximation (Hendrycks & Gimpel 2016, arXiv:1606.08415).
    GeluTanh,
    /// gpt-oss's: `g · sigmoid(1.702 g) · (u + 1)` with `g = min(gate, 7)` and `u` = up between -7 and 7.
    ClampedSwish,
    /// `max(up, 0)²`, without a gate (So et al. 2021, arXiv:2109.08668).
    SquaredRelu,
}

impl Activation {
    /// Returns whether the activation has a gate, whose columns come before those of up.
    pub fn is_gated(self) -> bool {
        self != Self::SquaredRelu
    }

    /// Returns the number of columns of the output for a number of input columns: gate and up, or only up.
    pub fn outputs(self, columns: usize) -> usize {
        if self.is_gated() { columns / 2 } else { columns }
    }
}
