//! The architecture of machine code.

use std::fmt;

/// The architecture that machine code runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Architecture {
    /// The number behind `sm_`.
    pub number: u32,
    /// Whether the code runs only on this architecture, like `sm_90a`.
    pub specific: bool,
}

impl Architecture {
    /// Whether a device of this compute capability runs it: one of the same major version and of a minor one that is not lower, or
    /// exactly this one.
    #[must_use]
    pub fn runs_on(self, major: u32, minor: u32) -> bool {
        let (own_major, own_minor) = (self.number / 10, self.number % 10);
        own_major == major && if self.specific { own_minor == minor } else { own_minor <= minor }
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}{}", self.number, if self.specific { "a" } else { "" })
    }
}
