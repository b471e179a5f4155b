//! Facts about an endpoint from the API's tables. Each request carries them as `&'static Endpoint`.

pub(crate) mod table;

use trainyard_scheduler::Scope;

/// An endpoint of the API, as its table describes it.
#[derive(Debug)]
pub(crate) struct Endpoint {
    /// Method in lower case.
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    /// Name of its handler, which identifies its operation in the API's description.
    pub(crate) name: &'static str,
    /// Requirement on the caller's key.
    pub(crate) needs: Needs,
    /// Refusals that depend on what the endpoint does. All others follow from its body and parameters.
    pub(crate) refusals: &'static [Refusal],
}

/// Scopes of which a key needs one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Any key may read and manage itself.
    Nothing,
    Train,
    Sample,
    Checkpoints,
    Admin,
    /// Any scope that changes something.
    AnyChange,
}

impl Needs {
    /// Returns the scopes of which a call needs one; an empty list stands for no requirement.
    pub(crate) fn scopes(self) -> &'static [Scope] {
        match self {
            Self::Nothing => &[],
            Self::Train => &[Scope::Train],
            Self::Sample => &[Scope::Sample],
            Self::Checkpoints => &[Scope::Checkpoints],
            Self::Admin => &[Scope::Admin],
            Self::AnyChange => &[Scope::Train, Scope::Sample, Scope::Checkpoints],
        }
    }
}

/// A refusal that depends on what an endpoint does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// 404: it names an object, which could be absent or another tenant's.
    Missing,
    /// 410: its object may have ended, such as a session, a run, a sampling session or a result.
    Over,
    /// 422: a number identifies it, and its repetition must have the same content.
    Mismatch,
}
