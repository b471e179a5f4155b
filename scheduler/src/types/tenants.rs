//! Organisations with their projects, users and API keys.

use trainyard_protocol::TenantId;

use super::text_enum;
use crate::Timestamp;

text_enum!(
    /// What a user, or a key, may do at most.
    Role {
        /// Everything, the administration of the organisation included.
        Admin = "admin",
        /// Train, sample and manage checkpoints.
        Member = "member",
        /// Look at what there is, and download it.
        ReadOnly = "read-only",
    }
);

impl Role {
    /// Whether the role allows what needs this scope.
    pub fn allows(self, scope: Scope) -> bool {
        match self {
            Self::Admin => true,
            Self::Member => scope != Scope::Admin,
            Self::ReadOnly => false,
        }
    }
}

text_enum!(
    /// What changes something, by what it changes. Reading needs none of them.
    Scope {
        /// Create, train and save runs.
        Train = "train",
        /// Sample.
        Sample = "sample",
        /// Delete and publish checkpoints, and let them expire.
        Checkpoints = "checkpoints",
        /// Administer the organisation; read its audit log and its usage.
        Admin = "admin",
    }
);

/// An organisation: the tenant that owns sessions, runs and checkpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Organisation {
    /// The tenant of its objects.
    pub name: TenantId,
    /// What people call it; may be empty.
    pub display_name: String,
    /// Its admins manage all organisations.
    pub operator: bool,
    /// When it was created.
    pub created_at: Timestamp,
    /// Since when none of its keys and tokens is accepted.
    pub disabled_at: Option<Timestamp>,
}

/// A project of an organisation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// As sessions name it.
    pub id: String,
    /// For people.
    pub name: String,
    /// When it was created.
    pub created_at: Timestamp,
}

/// A user of an organisation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// A time-ordered id.
    pub id: String,
    /// Names the user within the organisation.
    pub email: String,
    /// For people.
    pub name: String,
    /// The most that the user's keys allow.
    pub role: Role,
    /// When it was created.
    pub created_at: Timestamp,
    /// Since when none of the user's keys is accepted.
    pub disabled_at: Option<Timestamp>,
}

/// What the store knows of a member of an organisation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// Whether the organisation manages all others.
    pub operator: bool,
    /// The user, if the organisation has one with the email.
    pub user: Option<User>,
}

/// A user to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewUser {
    /// Names the user within the organisation.
    pub email: String,
    /// For people.
    pub name: String,
    /// The most that the user's keys allow.
    pub role: Role,
}

/// An API key, without the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// From 0 to 2^53.
    pub id: i64,
    /// The tenant of its requests.
    pub organisation: TenantId,
    /// The email of the user whose it is; `None` for one of the organisation's programs.
    pub user: Option<String>,
    /// For people.
    pub name: String,
    /// For people.
    pub note: String,
    /// The first characters of the key.
    pub hint: String,
    /// The most that it allows.
    pub role: Role,
    /// What it is cut to; `None` for all of its role.
    pub scopes: Option<Vec<Scope>>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it expires, if it does.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
}

/// An API key to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewApiKey {
    /// From 0 to 2^53, random.
    pub id: i64,
    /// SHA-256 of the key.
    pub digest: [u8; 32],
    /// The email of the user whose it is; `None` for one of the organisation's programs.
    pub user: Option<String>,
    /// For people.
    pub name: String,
    /// For people.
    pub note: String,
    /// The first characters of the key.
    pub hint: String,
    /// The most that it allows.
    pub role: Role,
    /// What it is cut to; `None` for all of its role.
    pub scopes: Option<Vec<Scope>>,
    /// When it expires, if it does.
    pub expires_at: Option<Timestamp>,
}

/// A key that the store has, with what decides whether it is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundKey {
    /// The key.
    pub key: ApiKey,
    /// The user whose it is.
    pub user: Option<User>,
    /// Whether its organisation manages all others.
    pub operator: bool,
}

/// Why a key that the store has is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyRefusal {
    /// It was revoked.
    Revoked,
    /// It has expired.
    Expired,
    /// Its user was disabled.
    UserDisabled,
}

impl FoundKey {
    /// Why it is refused, if it is.
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

    /// What it allows: what its role, its user's role and its scopes allow.
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
