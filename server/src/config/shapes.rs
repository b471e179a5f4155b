//! Sizes of checks of a device.

/// Sizes of the checks with the shapes of real models.
#[derive(clap::ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shapes {
    /// Full ones on a device that computes 10¹² FLOP per second or more, else small ones; small ones on processors.
    #[default]
    Auto,
    /// One layer of an 8B model, and the widths of other large models.
    Full,
    /// The same checks with small extents.
    Small,
    /// Leave these checks out.
    None,
}
