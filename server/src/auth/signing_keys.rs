//! The service's own signing keys. They are in the store, the same for all processes, and replaced from time to time.
//!
//! A new key is published for a while before it signs, so that caches of the published keys know it in time. A former
//! key is published until the last token that it signed has expired. When a key may have leaked, all are withdrawn at
//! once, and the next one signs without delay.

use std::io;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use tokio::time::sleep;
use trainyard_scheduler::{Clock, Directory, Scheduler, Timestamp};

use super::browser;
use super::stored::MAX_AGE;
use crate::error::ApiError;
use crate::jwt::{PublicJwk, PublicKeys, SigningKey};
use crate::random::secret_bytes;

/// The prefix of the names of their secrets; the key's number follows.
const SECRETS: &str = "jwt-signing-key/";
/// The time for which a key is published before it signs; the first key signs at once.
pub(super) const PUBLISHED_AHEAD: Duration = Duration::from_secs(300);
/// The shortest time between looks at the store for an unknown key.
const PAUSE: Duration = Duration::from_millis(250);
/// An allowance for differences of clocks.
const MARGIN: Duration = Duration::from_secs(120);

/// The lifetimes of tokens and of the keys that sign them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenPolicy {
    /// The time for which a token is accepted.
    pub lifetime: Duration,
    /// The time after which another key signs.
    pub key_age: Duration,
    /// Whether clients are told to exchange their keys for tokens.
    pub offered: bool,
}

impl Default for TokenPolicy {
    fn default() -> Self {
        Self { lifetime: Duration::from_secs(900), key_age: Duration::from_secs(30 * 86_400), offered: true }
    }
}

#[derive(Clone)]
struct Numbered {
    number: u64,
    created_at: Timestamp,
    key: SigningKey,
}

/// All keys, by number.
#[derive(Clone, Default)]
struct Ring(Vec<Numbered>);

impl Ring {
    fn read(secrets: Vec<(String, Vec<u8>)>) -> Result<Self, ApiError> {
        let entries = secrets.into_iter().map(|(name, value)| {
            let number = name.strip_prefix(SECRETS)?.parse().ok()?;
            let (created_at, seed) = value.split_first_chunk::<8>()?;
            let created_at = Timestamp(i64::from_be_bytes(*created_at));
            Some(Numbered { number, created_at, key: SigningKey::from_seed(seed)? })
        });
        let damaged = || ApiError::Internal(format!("a secret {SECRETS}… of the store is damaged"));
        let mut keys = entries.collect::<Option<Vec<_>>>().ok_or_else(damaged)?;
        keys.sort_unstable_by_key(|key| key.number);
        Ok(Self(keys))
    }

    /// The time from which a key signs.
    fn signs_from(&self, index: usize) -> Option<Timestamp> {
        let key = self.0.get(index)?;
        Some(if index == 0 { key.created_at } else { key.created_at.plus(PUBLISHED_AHEAD) })
    }

    /// The newest key that has been published for long enough; the oldest key if there is none.
    fn signer(&self, now: Timestamp) -> Option<&Numbered> {
        let ready = (0..self.0.len()).rev().find(|index| self.signs_from(*index).is_some_and(|from| from <= now));
        self.0.get(ready.unwrap_or(0))
    }

    /// Returns the number of the key that must be made now, if one must.
    fn missing(&self, now: Timestamp, policy: TokenPolicy) -> Option<u64> {
        match self.0.last() {
            None => Some(1),
            Some(newest) => {
                let due = newest.created_at.plus(policy.key_age.saturating_sub(PUBLISHED_AHEAD));
                (due <= now).then_some(newest.number + 1)
            }
        }
    }

    /// Counts the oldest keys whose tokens have all expired.
    fn outlived(&self, now: Timestamp, policy: TokenPolicy) -> usize {
        let ended = |index: usize| {
            // The last token that it signed is from when its successor began.
            let last = self.0.get(index + 1).map(|next| next.created_at.plus(PUBLISHED_AHEAD));
            last.is_some_and(|last| last.plus(policy.lifetime.max(browser::LIFETIME)).plus(MARGIN) <= now)
        };
        (0..self.0.len()).take_while(|index| ended(*index)).count()
    }

    fn public_keys(&self) -> PublicKeys {
        PublicKeys::new(self.0.iter().map(|key| key.key.public_key()).collect())
    }
}

/// The keys that were read last.
struct Read {
    at: Option<Instant>,
    /// The number of changes known at that time.
    version: u64,
    failed_at: Option<Instant>,
    ring: Arc<Ring>,
}

/// The keys of the store.
pub(super) struct SigningKeys {
    scheduler: Scheduler,
    clock: Arc<dyn Clock>,
    pub(super) policy: TokenPolicy,
    last: RwLock<Read>,
    /// Serialises reads of the store.
    reading: Mutex<()>,
}

impl SigningKeys {
    pub(super) fn new(scheduler: Scheduler, clock: Arc<dyn Clock>, policy: TokenPolicy) -> Self {
        let last = RwLock::new(Read { at: None, version: 0, failed_at: None, ring: Arc::default() });
        Self { scheduler, clock, policy, last, reading: Mutex::default() }
    }

    /// The key that signs now. Makes the first key, and replaces keys in time.
    pub(super) async fn signer(&self) -> Result<SigningKey, ApiError> {
        let mut ring = self.current().await?;
        let now = self.clock.now();
        if ring.missing(now, self.policy).is_some() || ring.outlived(now, self.policy) > 0 {
            ring = self.rotate().await?;
        }
        let signer = ring.signer(now).map(|found| found.key.clone());
        signer.ok_or_else(|| ApiError::Internal("no signing key for tokens is available".to_owned()))
    }

    /// The keys that tokens may be signed with. Reads the store again if `kid` is unknown.
    pub(super) async fn public_keys(&self, kid: Option<&str>) -> Result<PublicKeys, ApiError> {
        let keys = self.current().await?.public_keys();
        if keys.find(kid).is_ok() {
            return Ok(keys);
        }
        Ok(self.latest().await?.public_keys())
    }

    /// The keys that are published.
    pub(super) async fn published(&self) -> Result<Vec<PublicJwk>, ApiError> {
        Ok(self.current().await?.0.iter().map(|key| key.key.public_jwk()).collect())
    }

    /// Returns whether tokens may be signed with this key.
    pub(super) async fn knows(&self, kid: &str) -> Result<bool, ApiError> {
        Ok(self.current().await?.0.iter().any(|key| key.key.kid() == kid))
    }

    /// Withdraws all keys and makes a new one, which signs at once. Returns how many were withdrawn.
    pub(super) async fn withdraw_all(&self) -> Result<usize, ApiError> {
        let withdrawn = replace_all(&self.scheduler.directory(), self.clock.now()).await?;
        let _one = self.reading.lock().await;
        self.look().await?;
        Ok(withdrawn)
    }

    /// The keys as they were at most a moment ago; while the store can't be read, the last known ones.
    async fn current(&self) -> Result<Arc<Ring>, ApiError> {
        let asked = Instant::now();
        let version = self.scheduler.directory_version();
        let is_fresh = |last: &Read| last.version == version && last.at.is_some_and(|at| at.elapsed() < MAX_AGE);
        if let Some(ring) = self.known(is_fresh) {
            return Ok(ring);
        }
        let _one = self.reading.lock().await;
        // Another call may have looked meanwhile, or have failed to.
        let is_tried = |last: &Read| last.failed_at.is_some_and(|at| at >= asked);
        if let Some(ring) = self.known(|last| is_fresh(last) || is_tried(last)) {
            return Ok(ring);
        }
        match self.look().await {
            Ok(ring) => Ok(ring),
            Err(error) => {
                self.last.write().unwrap_or_else(PoisonError::into_inner).failed_at = Some(Instant::now());
                self.known(|_| true).ok_or(error)
            }
        }
    }

    /// The present keys. Looks are spaced out, so that wrong tokens can't cause many.
    async fn latest(&self) -> Result<Arc<Ring>, ApiError> {
        let asked = Instant::now();
        let _one = self.reading.lock().await;
        if let Some(ring) = self.known(|last| last.at.is_some_and(|at| at >= asked)) {
            return Ok(ring);
        }
        let last = self.last.read().unwrap_or_else(PoisonError::into_inner).at;
        sleep(last.map_or(Duration::ZERO, |at| PAUSE.saturating_sub(at.elapsed()))).await;
        self.look().await
    }

    async fn look(&self) -> Result<Arc<Ring>, ApiError> {
        let (at, version) = (Instant::now(), self.scheduler.directory_version());
        let ring = Arc::new(Ring::read(self.scheduler.secrets(SECRETS).await?)?);
        let mut last = self.last.write().unwrap_or_else(PoisonError::into_inner);
        *last = Read { at: Some(at), version, failed_at: None, ring: Arc::clone(&ring) };
        Ok(ring)
    }

    /// Makes the missing key, and deletes keys whose tokens have all expired.
    async fn rotate(&self) -> Result<Arc<Ring>, ApiError> {
        let _one = self.reading.lock().await;
        let ring = self.look().await?;
        let now = self.clock.now();
        if let Some(number) = ring.missing(now, self.policy) {
            self.create(number, now).await?;
        }
        for key in ring.0.iter().take(ring.outlived(now, self.policy)) {
            self.scheduler.delete_secret(name(key.number)).await?;
        }
        self.look().await
    }

    /// Creates a key. If another process creates the same one, the first counts.
    async fn create(&self, number: u64, now: Timestamp) -> Result<(), ApiError> {
        self.scheduler.shared_secret(name(number), new_key(now)?).await?;
        tracing::info!(number, "created a key that signs tokens");
        Ok(())
    }

    /// The keys that were read last, if `is_enough` accepts them.
    fn known(&self, is_enough: impl Fn(&Read) -> bool) -> Option<Arc<Ring>> {
        let last = self.last.read().unwrap_or_else(PoisonError::into_inner);
        (last.at.is_some() && is_enough(&last)).then(|| Arc::clone(&last.ring))
    }
}

/// Withdraws all keys of a store and makes a new one, which signs at once. Returns how many were withdrawn.
///
/// # Errors
/// Fails if the store can't be written.
pub(crate) async fn replace_all(directory: &Directory, now: Timestamp) -> Result<usize, ApiError> {
    let withdrawn = directory.rotate_signing_keys(SECRETS, new_key(now)?).await?;
    tracing::warn!(withdrawn, "the keys that sign tokens were withdrawn");
    Ok(withdrawn)
}

/// Makes the value of a secret: its creation time and the seed of the key.
fn new_key(now: Timestamp) -> Result<Vec<u8>, ApiError> {
    let random = |error: io::Error| ApiError::Internal(format!("failed to get random numbers: {error}"));
    let mut value = now.as_millis().to_be_bytes().to_vec();
    value.extend(secret_bytes::<32>().map_err(random)?);
    Ok(value)
}

fn name(number: u64) -> String {
    format!("{SECRETS}{number:010}")
}

#[cfg(test)]
#[path = "signing_keys_tests.rs"]
mod tests;
