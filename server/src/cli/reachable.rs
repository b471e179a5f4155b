//! The wait for the database while a process starts.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use trainyard_scheduler::Error;

/// The longest wait for the database: a machine may start both at once, and a database may recover first.
const WAIT: Duration = Duration::from_secs(60);

/// The time from a failed attempt to the next one.
const PAUSE: Duration = Duration::from_millis(500);

/// Repeats a step of the start while the database can't be reached.
///
/// # Errors
/// Returns other errors at once, and an unreachable database after a minute.
pub(super) async fn when_reachable<T, F>(step: impl FnMut() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    repeat(step, WAIT, PAUSE).await
}

async fn repeat<T, F>(mut step: impl FnMut() -> F, wait: Duration, pause: Duration) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let deadline = Instant::now() + wait;
    loop {
        match step().await {
            Err(error @ (Error::Unavailable(_) | Error::NoSpace(_) | Error::Conflict(_)))
                if Instant::now() < deadline =>
            {
                tracing::warn!(%error, "waiting for the database");
                sleep(pause).await;
            }
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_millis(1);

    /// Runs attempts of which those before the `good`th fail; returns their number and result.
    async fn attempts(error: fn() -> Error, good: usize, wait: Duration) -> (usize, Result<(), Error>) {
        let mut made = 0;
        let step = || {
            made += 1;
            std::future::ready(if made < good { Err(error()) } else { Ok(()) })
        };
        let done = repeat(step, wait, PAUSE).await;
        (made, done)
    }

    #[tokio::test]
    async fn an_outage_is_waited_for() {
        let (made, done) = attempts(|| Error::Unavailable("open the database"), 5, WAIT).await;
        assert!(made == 5 && done.is_ok());
    }

    #[tokio::test]
    async fn an_outage_is_not_waited_for_without_end() {
        let (made, done) = attempts(|| Error::Unavailable("open the database"), usize::MAX, 20 * PAUSE).await;
        assert!(made > 1 && matches!(done, Err(Error::Unavailable(_))));
    }

    #[tokio::test]
    async fn other_errors_end_the_start_at_once() {
        let (made, done) = attempts(|| Error::Store("open the database"), usize::MAX, WAIT).await;
        assert!(made == 1 && matches!(done, Err(Error::Store(_))));
    }
}
