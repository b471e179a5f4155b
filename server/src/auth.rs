//! Authentication: finds the tenant of the key or token in `X-API-Key` or `Authorization: Bearer`, and checks what it
//! allows.

mod authenticator;
pub(crate) mod browser;
mod browser_sessions;
mod failures;
mod given;
mod in_flight;
mod issuer;
mod keyless;
mod needs;
mod new_key;
mod own_host;
mod principal;
mod require_key;
mod seed;
mod signing_keys;
mod stored;
mod tokens;
mod verified;
mod wrong_keys;

pub use self::authenticator::Authenticator;
pub use self::given::API_KEY;
pub(crate) use self::given::bearer;
pub(crate) use self::issuer::is_protected;
pub use self::issuer::{IssuerSettings, KeySource, Named};
pub use self::new_key::KeyRequest;
pub(crate) use self::new_key::agent_key;
pub use self::own_host::require_own_host;
pub use self::principal::{Credential, Principal};
pub use self::require_key::{Caller, Tenant, require_key};
pub(crate) use self::seed::equal;
pub use self::seed::{Keys, LOCAL_TENANT, SeedKey};
pub use self::signing_keys::TokenPolicy;
pub(crate) use self::signing_keys::replace_all as replace_signing_keys;
