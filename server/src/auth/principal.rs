//! Callers and what they may do.

use std::sync::Arc;

use trainyard_protocol::{AgentSessionId, TenantId};
use trainyard_scheduler::{Actor, AgentKey, FoundKey, Membership, Role, Scope, Timestamp, User};

use super::seed::{LOCAL_TENANT, SeedKey};

/// The way in which a caller was identified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential {
    /// The caller was not identified: the server has no keys.
    None,
    /// A key of the configuration file: the start of the SHA-256 of its digest.
    Seed(String),
    /// A key of the store, in [`Principal::key`].
    Key,
    /// The key of an agent session, which serves only the compatible APIs.
    Agent(AgentSessionId),
    /// A token of the external issuer.
    Issuer {
        /// The subject of the token.
        subject: String,
        /// The fingerprint of the issuer's key that signed the token, where it is known.
        key: Option<String>,
    },
}

/// A caller and what it may do.
#[derive(Clone, Debug)]
pub struct Principal {
    /// The tenant whose objects the caller sees.
    pub tenant: TenantId,
    /// Description of the caller, for logs and audits.
    pub name: String,
    /// The way in which the caller was identified.
    pub credential: Credential,
    /// The key, if the store contains it.
    pub key: Option<Arc<FoundKey>>,
    /// The user, if the store contains it.
    pub user: Option<User>,
    /// The email of the user, known to the store or not.
    pub email: Option<String>,
    /// The highest role that the caller has.
    pub role: Role,
    /// The kinds of changes that the caller may make.
    pub scopes: Vec<Scope>,
    /// Whether the caller manages all tenants, if it is an admin.
    pub operator: bool,
    /// The time when the caller's key or token expires, if it does.
    pub expires_at: Option<Timestamp>,
}

/// A caller as the external issuer knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) organisation: TenantId,
    pub(super) subject: String,
    pub(super) email: Option<String>,
    pub(super) role: Role,
}

impl Principal {
    /// The caller of a server without keys. It is an admin if only this machine may call.
    pub(super) fn local(is_admin: bool) -> Self {
        let scopes = Scope::ALL.iter().copied().filter(|scope| is_admin || *scope != Scope::Admin).collect();
        Self {
            tenant: TenantId::new(LOCAL_TENANT),
            name: "a caller without a key".to_owned(),
            credential: Credential::None,
            key: None,
            user: None,
            email: None,
            role: if is_admin { Role::Admin } else { Role::Member },
            scopes,
            operator: is_admin,
            expires_at: None,
        }
    }

    pub(super) fn seeded(seed: &SeedKey, operator: bool) -> Self {
        Self {
            tenant: seed.tenant.clone(),
            name: format!("key {:?} of the configuration file", seed.name),
            credential: Credential::Seed(seed.fingerprint()),
            key: None,
            user: None,
            email: None,
            role: seed.role,
            scopes: Scope::ALL.iter().copied().filter(|scope| seed.role.allows(*scope)).collect(),
            operator,
            expires_at: None,
        }
    }

    pub(super) fn stored(found: Arc<FoundKey>) -> Self {
        let name = match &found.user {
            Some(user) => user.email.clone(),
            None => format!("key {:?}", found.key.name),
        };
        let user = found.user.clone();
        Self {
            tenant: found.key.organisation.clone(),
            name,
            credential: Credential::Key,
            email: user.as_ref().map(|user| user.email.clone()),
            role: lesser(found.key.role, user.as_ref()),
            user,
            scopes: found.scopes(),
            operator: found.operator,
            expires_at: found.key.expires_at,
            key: Some(found),
        }
    }

    pub(super) fn agent(found: &AgentKey) -> Self {
        Self {
            tenant: found.tenant.clone(),
            name: format!("agent session {}", found.session),
            credential: Credential::Agent(found.session.clone()),
            key: None,
            user: None,
            email: None,
            role: Role::Member,
            scopes: vec![Scope::Sample],
            operator: false,
            expires_at: Some(found.expires_at),
        }
    }

    /// A member of an organisation, authenticated by the external issuer. The issuer can't grant more than the
    /// member's role in the store.
    pub(super) fn vouched(identity: Identity, key: Option<String>, membership: Membership) -> Self {
        let Membership { operator, user } = membership;
        let role = lesser(identity.role, user.as_ref());
        Self {
            tenant: identity.organisation,
            name: identity.email.clone().unwrap_or_else(|| format!("subject {:?}", identity.subject)),
            credential: Credential::Issuer { subject: identity.subject, key },
            key: None,
            user,
            email: identity.email,
            role,
            scopes: Scope::ALL.iter().copied().filter(|scope| role.allows(*scope)).collect(),
            operator,
            expires_at: None,
        }
    }

    /// Limits the caller to a time and to some of its scopes.
    pub(super) fn within(self, scopes: &[Scope], end: Timestamp) -> Self {
        Self {
            scopes: self.scopes.iter().copied().filter(|scope| scopes.contains(scope)).collect(),
            expires_at: Some(self.expires_at.map_or(end, |own| own.min(end))),
            ..self
        }
    }

    /// Returns whether the caller may end requests and drop their results; it needs the right to cancel them.
    pub(crate) fn may_end_requests(&self) -> bool {
        self.scopes.iter().any(|scope| *scope != Scope::Admin)
    }

    /// Returns the caller's name for other systems, such as logs of a proxy.
    pub fn subject(&self) -> String {
        match (&self.user, &self.key, &self.credential) {
            (Some(user), _, _) => format!("tml:user:{}", user.id),
            (None, Some(found), _) => format!("tml:key:{}", found.key.id),
            (None, None, Credential::Issuer { subject, .. }) => format!("tml:issuer:{subject}"),
            (None, None, Credential::Agent(session)) => format!("tml:agent:{session}"),
            (None, None, Credential::Seed(fingerprint)) => format!("tml:key:{fingerprint}"),
            (None, None, Credential::None | Credential::Key) => format!("tml:user:{LOCAL_TENANT}"),
        }
    }

    pub(super) fn actor(&self, address: Option<String>) -> Actor {
        Actor {
            name: self.name.clone(),
            key: self.key.as_ref().map(|found| found.key.id),
            user: self.user.as_ref().map(|user| user.id.clone()),
            address,
        }
    }
}

/// Returns the role that allows less: roles are in the order of what they allow, the most first.
fn lesser(role: Role, user: Option<&User>) -> Role {
    user.map_or(role, |user| role.max(user.role))
}
