//! Keys, members and ended sessions of browsers in the store, with a cache. A change is known at once where it was
//! made, through a notification elsewhere, and within [`MAX_AGE`] and [`GRACE`] in any case.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::time::timeout;
use trainyard_protocol::TenantId;
use trainyard_scheduler::{AgentKey, Directory, Error, FoundKey, Membership, Scheduler, Timestamp};

/// The time for which an answer of the store is used.
pub(super) const MAX_AGE: Duration = Duration::from_millis(500);
/// The further time for which an aged answer is used while it is renewed: one request asks the store, and the others
/// do not wait.
const GRACE: Duration = Duration::from_millis(250);
/// The time for which a call waits to hear whether there are keys, where an earlier answer can stand in. This and the
/// call's own work must fit what docs/operators/operations.md promises for a database that does not answer.
const PATIENCE: Duration = Duration::from_secs(4);
/// Maximum number of cached answers of a kind: one for each key in use, and for each wrong key that was tried lately.
const MOST: usize = 16_384;

/// Answers of the store about keys and members.
pub(super) struct StoredKeys {
    scheduler: Scheduler,
    directory: Directory,
    known: Mutex<Known>,
}

/// An answer of the store.
struct Answer<V> {
    since: Instant,
    /// Whether somebody is renewing the answer.
    is_renewed: bool,
    value: V,
}

impl<V: Clone> Answer<V> {
    fn new(since: Instant, value: V) -> Self {
        Self { since, is_renewed: false, value }
    }

    /// Returns the answer while it may be used; `None` to the caller that must renew it.
    fn get(&mut self) -> Option<V> {
        let age = self.since.elapsed();
        let is_used = age < MAX_AGE || (age < MAX_AGE + GRACE && self.is_renewed);
        self.is_renewed |= age >= MAX_AGE;
        is_used.then(|| self.value.clone())
    }
}

struct Answers<K, V>(HashMap<K, Answer<V>>);

impl<K, V> Default for Answers<K, V> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash, V: Clone> Answers<K, V> {
    fn get(&mut self, key: &K) -> Option<V> {
        self.0.get_mut(key)?.get()
    }

    fn put(&mut self, key: K, since: Instant, answer: V) {
        if self.0.len() >= MOST {
            self.0.retain(|_, answer| answer.since.elapsed() < MAX_AGE);
        }
        if self.0.len() < MOST {
            self.0.insert(key, Answer::new(since, answer));
        }
    }
}

type Member = (TenantId, Option<String>);

#[derive(Default)]
struct Known {
    /// The number of changes known at the time of the answers.
    version: u64,
    keys: Answers<[u8; 32], Option<Arc<FoundKey>>>,
    keys_by_id: Answers<i64, Option<Arc<FoundKey>>>,
    agents: Answers<[u8; 32], Option<AgentKey>>,
    members: Answers<Member, Option<Membership>>,
    ended: Answers<String, bool>,
    any: Option<Answer<bool>>,
}

impl Known {
    /// Forgets the answers from before the latest change.
    fn at(&mut self, version: u64) -> &mut Self {
        if self.version != version {
            let any = self.any.take().filter(|any| any.value);
            *self = Self { version, any, ..Self::default() };
        }
        self
    }
}

impl StoredKeys {
    pub(super) fn new(scheduler: Scheduler) -> Self {
        Self { directory: scheduler.directory(), scheduler, known: Mutex::default() }
    }

    /// Returns whether an organisation is known to be disabled, without asking the store.
    pub(super) fn is_disabled(&self, organisation: &TenantId) -> bool {
        self.scheduler.is_disabled(organisation)
    }

    pub(super) async fn find(&self, digest: &[u8; 32]) -> Result<Option<Arc<FoundKey>>, Error> {
        let ask = async || Ok(self.directory.key(digest).await?.map(Arc::new));
        self.answer(|known| &mut known.keys, *digest, ask).await
    }

    /// Finds the holder of an agent session's key.
    pub(super) async fn find_agent(&self, digest: &[u8; 32]) -> Result<Option<AgentKey>, Error> {
        self.answer(|known| &mut known.agents, *digest, || self.directory.agent_key(digest)).await
    }

    pub(super) async fn find_by_id(&self, id: i64) -> Result<Option<Arc<FoundKey>>, Error> {
        let ask = async || Ok(self.directory.key_by_id(id).await?.map(Arc::new));
        self.answer(|known| &mut known.keys_by_id, id, ask).await
    }

    /// Returns what the store knows of a person as a member of an organisation; `None` when the organisation does not
    /// exist.
    pub(super) async fn membership(
        &self,
        organisation: &TenantId,
        email: Option<&str>,
    ) -> Result<Option<Membership>, Error> {
        let member = (organisation.clone(), email.map(str::to_owned));
        self.answer(|known| &mut known.members, member, || self.directory.membership(organisation, email)).await
    }

    /// Returns whether the session of a browser was ended, by the id of its token.
    pub(super) async fn has_ended(&self, session: &str) -> Result<bool, Error> {
        let ask = || self.directory.browser_session_has_ended(session);
        self.answer(|known| &mut known.ended, session.to_owned(), ask).await
    }

    /// Returns a recent answer for `key`, or asks the store.
    async fn answer<K: Eq + Hash, V: Clone>(
        &self,
        of: impl Fn(&mut Known) -> &mut Answers<K, V>,
        key: K,
        ask: impl AsyncFnOnce() -> Result<V, Error>,
    ) -> Result<V, Error> {
        let version = self.scheduler.directory_version();
        if let Some(known) = self.with(version, |known| of(known).get(&key)) {
            return Ok(known);
        }
        let since = Instant::now();
        let answer = ask().await?;
        self.with(version, |known| of(known).put(key, since, answer.clone()));
        Ok(answer)
    }

    /// Ends the session of a browser, whose token expires at `expires_at`.
    pub(super) async fn end(&self, session: String, expires_at: Timestamp) -> Result<(), Error> {
        self.directory.end_browser_session(session, expires_at).await
    }

    /// Returns whether any key was ever created. While the store can't be read, the last answer counts.
    pub(super) async fn any(&self) -> Result<bool, Error> {
        let version = self.scheduler.directory_version();
        let (usable, last) = self.with(version, |known| {
            let any = known.any.as_mut();
            any.map_or((None, None), |any| (any.get(), Some(any.value)))
        });
        // Keys are revoked, never deleted.
        if let Some(any) = usable.or(last.filter(|any| *any)) {
            return Ok(any);
        }
        let asked = Instant::now();
        let ask = self.directory.has_keys();
        let (since, any) = match last {
            None => (asked, ask.await?),
            Some(last) => match timeout(PATIENCE, ask).await {
                Ok(Ok(any)) => (asked, any),
                // Not asked again by each call while the store is silent.
                _ => (Instant::now(), last),
            },
        };
        self.with(version, |known| known.any = Some(Answer::new(since, any)));
        Ok(any)
    }

    fn with<T>(&self, version: u64, call: impl FnOnce(&mut Known) -> T) -> T {
        call(self.known.lock().unwrap_or_else(PoisonError::into_inner).at(version))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_many_asks_again() {
        let since = Instant::now().checked_sub(MAX_AGE).unwrap_or_else(Instant::now);
        let mut answers = Answers::default();
        answers.put("key", since, 1);
        assert_eq!([answers.get(&"key"), answers.get(&"key"), answers.get(&"key")], [None, Some(1), Some(1)]);
        answers.put("key", Instant::now(), 2);
        assert_eq!(answers.get(&"key"), Some(2));
        // Who asked again had no answer.
        answers.put("key", since.checked_sub(GRACE).unwrap_or(since), 1);
        assert_eq!([answers.get(&"key"), answers.get(&"key")], [None, None]);
    }
}
