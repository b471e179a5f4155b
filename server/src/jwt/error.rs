//! Why a token is refused.

/// Why a token is refused. The texts quote nothing of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Larger than any token should be.
    #[error("the token has {0} bytes, at most {max} are accepted", max = super::MAX_TOKEN)]
    TooLong(usize),
    /// No JSON Web Token in compact form.
    #[error("the token is malformed: {0}")]
    Malformed(&'static str),
    /// A token of five parts.
    #[error("the token is encrypted: signed ones alone are accepted")]
    Encrypted,
    /// Anybody can write such a token.
    #[error("the token is not signed: the algorithm \"none\" is not accepted")]
    NotSigned,
    /// A public key that is taken for a secret, or a secret that this server does not have.
    #[error("the token is signed with a shared secret: only signatures by a private key are accepted")]
    SharedSecret,
    /// Another algorithm than its key is for.
    #[error("the token's algorithm is not the one of its key, which is for {0}")]
    Algorithm(String),
    /// An extension that must be understood, and is not.
    #[error("the token's header has critical extensions (crit), of which none is supported")]
    Critical,
    /// None of the issuer's keys, or none any more.
    #[error("the token's issuer has no key with its kid")]
    UnknownKey,
    /// Signed by a key that its issuer published once.
    #[error("the token was signed by a key that its issuer has withdrawn")]
    WithdrawnKey,
    /// One of several keys, but which?
    #[error("the token's header has no kid, and its issuer has several keys")]
    NoKeyId,
    /// Changed after it was signed, or signed by somebody else.
    #[error("the token's signature is wrong")]
    Signature,
    /// A claim that every token must have.
    #[error("the token lacks the claim {0:?}")]
    Missing(String),
    /// A claim of a wrong type or with a value that is not accepted.
    #[error("the token's claim {name:?} {problem}")]
    Claim {
        /// Its name.
        name: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// From somebody who is not trusted.
    #[error("the token's issuer (iss) is not accepted by this server")]
    Issuer,
    /// For somebody else.
    #[error("the token is not for this server: its audience (aud) is another one")]
    Audience,
    /// Over.
    #[error("the token has expired")]
    Expired,
    /// Valid later, if the clocks are right.
    #[error("the token is not valid yet (nbf)")]
    NotYet,
    /// Made later, if the clocks are right.
    #[error("the token was issued in the future (iat)")]
    IssuedInFuture,
    /// The holder has lost access since the token was made.
    #[error("{0}")]
    Holder(String),
}

impl TokenError {
    /// A claim that is not accepted.
    pub(crate) fn claim(name: &str, problem: &'static str) -> Self {
        Self::Claim { name: name.to_owned(), problem }
    }
}
