//! Organisations with their projects, users and API keys.

use trainyard_protocol::TenantId;

use super::text_enum;
use crate::Timestamp;

text_enum!(
    /// Highest set of permissions that a user, or a key, may have.
    Role {
        /// May do everything, including administration of the organisation.
        Admin = "admin",
        /// May train, sample and manage checkpoints.
        Member = "member",
        /// May look at objects and download them.
        ReadOnly = "read-only",
    }
);

impl Role {
    /// Returns whether the role allows changes in this scope.
    pub fn allows(self, scope: Scope) -> bool {
        match self {
            Self::Admin => true,
            Self::Member => scope != Scope::Admin,
            Self::ReadOnly => false,
        }
    }
}

text_enum!(
    /// Kind of change that a key may make. Reading does not need any scope.
    Scope {
        /// Create, train and save runs.
        Train = "train",
        /// Sample from models and checkpoints.
        Sample = "sample",
        /// Delete and publish checkpoints, and set when they expire.
        Checkpoints = "checkpoints",
        /// Administer the organisation, and read its audit log and usage.
        Admin = "admin",
    }
);

/// An organisation: the tenant that owns sessions, runs and checkpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Organisation {
    /// Tenant that owns its objects.
    pub name: TenantId,
    /// Name that is displayed to users; may be empty.
    pub display_name: String,
    /// Whether its admins manage all organisations.
    pub operator: bool,
    /// Time when the organisation was created.
    pub created_at: Timestamp,
    /// Time since which all its keys and tokens are refused.
    pub disabled_at: Option<Timestamp>,
}

/// A project of an organisation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// Id that sessions use.
    pub id: String,
    /// Name that is displayed to users.
    pub name: String,
    /// Time when the project was created.
    pub created_at: Timestamp,
}

/// A user of an organisation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Id, ordered by time.
    pub id: String,
    /// Email, which identifies the user within the organisation.
    pub email: String,
    /// Name that is displayed to users.
    pub name: String,
    /// Highest role that the user's keys may have.
    pub role: Role,
    /// Time when the user was created.
    pub created_at: Timestamp,
    /// Time since which all the user's keys are refused.
    pub disabled_at: Option<Timestamp>,
}

/// Facts in the store about a member of an organisation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// Whether the organisation manages all others.
    pub operator: bool,
    /// User with the email, if the organisation has one.
    pub user: Option<User>,
}

/// A user to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewUser {
    /// Email, which identifies the user within the organisation.
    pub email: String,
    /// Name that is displayed to users.
    pub name: String,
    /// Highest role that the user's keys may have.
    pub role: Role,
}

/// An API key, without its secret text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// Id from 0 to 2^53.
    pub id: i64,
    /// Tenant of the key's requests.
    pub organisation: TenantId,
    /// Email of the user who owns the key; `None` for a key of the organisation's programs.
    pub user: Option<String>,
    /// Name that is displayed to users.
    pub name: String,
    /// Note that is displayed to users.
    pub note: String,
    /// First characters of the key.
    pub hint: String,
    /// Highest role that the key may have.
    pub role: Role,
    /// Scopes to which the key is restricted; `None` for all scopes of its role.
    pub scopes: Option<Vec<Scope>>,
    /// Time when the key was created.
    pub created_at: Timestamp,
    /// Time when the key expires, if it does.
    pub expires_at: Option<Timestamp>,
    /// Time when the key was revoked.
    pub revoked_at: Option<Timestamp>,
}

/// An API key to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewApiKey {
    /// Random id from 0 to 2^53.
    pub id: i64,
    /// SHA-256 digest of the key.
    pub digest: [u8; 32],
    /// Email of the user who owns the key; `None` for a key of the organisation's programs.
    pub user: Option<String>,
    /// Name that is displayed to users.
    pub name: String,
    /// Note that is displayed to users.
    pub note: String,
    /// First characters of the key.
    pub hint: String,
    /// Highest role that the key may have; `None` for the role of its user, or of a member if the key has no user.
    pub role: Option<Role>,
    /// Scopes to which the key is restricted; `None` for all scopes of its role.
    pub scopes: Option<Vec<Scope>>,
    /// Time when the key expires, if it does.
    pub expires_at: Option<Timestamp>,
}

/// A key in the store, with the facts that decide whether it is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundKey {
    /// Key as it is stored.
    pub key: ApiKey,
    /// User who owns the key.
    pub user: Option<User>,
    /// Whether the key's organisation manages all others.
    pub operator: bool,
}

/// Reason for which a key in the store is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyRefusal {
    /// The key was revoked.
    Revoked,
    /// The key has expired.
    Expired,
    /// The user of the key was disabled.
    UserDisabled,
}

impl FoundKey {
    /// Returns the reason why the key is refused, if it is.
    pub fn refusal(&self, now: Timestamp) -> Option<KeyRefusal> {
        if self.key.revoked_at.is_some() {
            Some(KeyRefusal::Revoked)
        } else if self.key.expires_at.is_some_and(|expiry| expiry <= now) {
            Some(KeyRefusal::Expired)
        } else if self.user.as_ref().is_some_and(|user| user.disabled_at.is_some()) {
            Some(KeyRefusal::UserDisabled)
        } else {
            None
        }
    }

    /// Returns the scopes that the key, its role and its user's role all allow.
    pub fn scopes(&self) -> Vec<Scope> {
        let allowed = |scope: &Scope| {
            self.key.role.allows(*scope)
                && self.user.as_ref().is_none_or(|user| user.role.allows(*scope))
                && self.key.scopes.as_ref().is_none_or(|scopes| scopes.contains(scope))
        };
        Scope::ALL.iter().copied().filter(allowed).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(role: Role, user: Option<Role>, scopes: Option<Vec<Scope>>) -> FoundKey {
        let user = user.map(|role| User {
            id: "u".to_owned(),
            email: "a@b".to_owned(),
            name: String::new(),
            role,
            created_at: Timestamp(0),
            disabled_at: None,
        });
        let key = ApiKey {
            id: 1,
            organisation: TenantId::new("o"),
            user: None,
            name: String::new(),
            note: String::new(),
            hint: String::new(),
            role,
            scopes,
            created_at: Timestamp(0),
            expires_at: Some(Timestamp(10)),
            revoked_at: None,
        };
        FoundKey { key, user, operator: false }
    }

    #[test]
    fn a_key_allows_what_its_role_its_user_and_its_scopes_allow() {
        use Scope::{Admin, Checkpoints, Sample, Train};
        assert_eq!(found(Role::Admin, None, None).scopes(), Scope::ALL);
        assert_eq!(found(Role::Admin, Some(Role::Member), None).scopes(), [Train, Sample, Checkpoints]);
        assert_eq!(found(Role::Member, Some(Role::Admin), None).scopes(), [Train, Sample, Checkpoints]);
        assert_eq!(found(Role::Member, None, Some(vec![Sample, Admin])).scopes(), [Sample]);
        assert_eq!(found(Role::Admin, Some(Role::ReadOnly), None).scopes(), []);
    }

    #[test]
    fn a_key_is_refused_from_its_expiry_on() {
        let mut key = found(Role::Member, Some(Role::Member), None);
        assert_eq!(key.refusal(Timestamp(9)), None);
        assert_eq!(key.refusal(Timestamp(10)), Some(KeyRefusal::Expired));
        key.key.revoked_at = Some(Timestamp(1));
        assert_eq!(key.refusal(Timestamp(9)), Some(KeyRefusal::Revoked));
        key.key.revoked_at = None;
        if let Some(user) = &mut key.user {
            user.disabled_at = Some(Timestamp(2));
        }
        assert_eq!(key.refusal(Timestamp(9)), Some(KeyRefusal::UserDisabled));
    }
}
