//! Withdraws the keys that sign the service's tokens.

use serde_json::json;
use trainyard_protocol::TenantId;

use super::{Act, Directory, Stage, entry};
use crate::store::db::{Conn, RowScope};
use crate::store::{organisations, secrets};
use crate::{AuditCategory, Error, NewAuditEntry};

impl Directory {
    /// Deletes all secrets whose names are `series` with a number, and stores `value` under the next number. Returns
    /// the number of deleted secrets. Because the tokens of all organisations end, each audit log gets an entry.
    ///
    /// # Errors
    /// Fails if the store can't be written.
    pub async fn rotate_signing_keys(&self, series: &'static str, value: Vec<u8>) -> Result<usize, Error> {
        self.act(RotateSigningKeys { series, value }).await.map(|rotated| rotated.withdrawn)
    }
}

struct RotateSigningKeys {
    series: &'static str,
    value: Vec<u8>,
}

struct Rotated {
    withdrawn: usize,
    organisations: Vec<TenantId>,
}

impl Act for RotateSigningKeys {
    type Output = Rotated;

    /// Returns the system's scope: the keys belong to the service, and every organisation's audit log gets an entry.
    fn scope(&self) -> RowScope {
        RowScope::System
    }

    async fn make(&self, conn: &mut Conn, _: &Stage) -> Result<Rotated, Error> {
        let Self { series, value } = self;
        let former = secrets::secrets(conn, series).await?;
        let number = |name: &str| name.strip_prefix(series).and_then(|number| number.parse::<u64>().ok());
        let last = former.iter().filter_map(|(name, _)| number(name)).max().unwrap_or(0);
        for (name, _) in &former {
            secrets::delete_secret(conn, name).await?;
        }
        let stored = secrets::shared_secret(conn, &format!("{series}{:010}", last + 1), value).await?;
        if stored != *value {
            // Another process made a key of this number at the same time.
            return Err(Error::store("rotate the signing keys", "another key was created at the same time; try again"));
        }
        let organisations = organisations::organisations(conn, None).await?;
        let organisations = organisations.into_iter().map(|organisation| organisation.name).collect();
        Ok(Rotated { withdrawn: former.len(), organisations })
    }

    fn entries(&self, rotated: &Rotated) -> Vec<NewAuditEntry> {
        let of = |name| {
            entry(
                name,
                AuditCategory::Organizations,
                "signing_keys_rotate",
                "signing keys",
                [("withdrawn", json!(rotated.withdrawn))],
            )
        };
        rotated.organisations.iter().map(of).collect()
    }

    fn entry(&self, _: &Rotated) -> Option<NewAuditEntry> {
        None
    }
}
