//! Reasons to refuse a token.

/// The reason why a token is refused. The messages quote nothing of the token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The token is longer than the limit.
    #[error("the token has {0} bytes, at most {max} are accepted", max = super::MAX_TOKEN)]
    TooLong(usize),
    /// The text is not a JSON Web Token in compact form.
    #[error("the token is malformed: {0}")]
    Malformed(&'static str),
    /// The token has five parts, so it is encrypted.
    #[error("the token is encrypted: only signed tokens are accepted")]
    Encrypted,
    /// The token is unsigned: anybody can write one.
    #[error("the token is not signed: the algorithm \"none\" is not accepted")]
    NotSigned,
    /// The token is signed with a shared secret, such as a public key that is used as one.
    #[error("the token is signed with a shared secret: only signatures by a private key are accepted")]
    SharedSecret,
    /// The algorithm of the token differs from that of its key.
    #[error("the token's algorithm is not that of its key, which is for {0}")]
    Algorithm(String),
    /// The header contains critical extensions, which the server does not support.
    #[error("the token's header contains critical extensions (crit), which are not supported")]
    Critical,
    /// The issuer does not publish the key, or no longer does.
    #[error("the token's issuer has no key with its kid")]
    UnknownKey,
    /// The issuer has withdrawn the key that signed the token.
    #[error("the token was signed by a key that its issuer has withdrawn")]
    WithdrawnKey,
    /// The token names no key, and its issuer has several.
    #[error("the token's header has no kid, and its issuer has several keys")]
    NoKeyId,
    /// The signature does not match: the token was changed, or somebody else signed it.
    #[error("the token's signature is wrong")]
    Signature,
    /// A required claim is missing.
    #[error("the token lacks the claim {0:?}")]
    Missing(String),
    /// A claim has a wrong type or a value that is not accepted.
    #[error("the token's claim {name:?} {problem}")]
    Claim {
        /// The name of the claim.
        name: String,
        /// The problem with its value.
        problem: &'static str,
    },
    /// The issuer is not trusted.
    #[error("the token's issuer (iss) is not accepted by this server")]
    Issuer,
    /// The token is meant for another audience.
    #[error("the token is not for this server: its audience (aud) is different")]
    Audience,
    /// The token has expired.
    #[error("the token has expired")]
    Expired,
    /// The token is not valid yet, by this machine's clock.
    #[error("the token is not valid yet (nbf)")]
    NotYet,
    /// The token was issued in the future, by this machine's clock.
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
