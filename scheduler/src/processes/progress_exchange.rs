//! Exchanges tokens of samples between the processes on one database, by notifications. An API server announces the
//! samples that it watches, and the worker that executes one sends its tokens to that process. Nothing is stored, and
//! nothing is sent twice without a request: a process that finds tokens missing asks for all of them, and the sample's
//! result contains them in any case.

use std::sync::Weak;
use std::time::Duration;

use tokio::time::Instant;
use trainyard_protocol::RequestId;

use crate::Error;
use crate::context::core::Core;
use crate::processes::signals::{self, CHANNEL, Signal};
use crate::progress::{decode, encode};
use crate::store::notify::notify;

/// Interval at which a process repeats its watches, for workers that are new or missed them.
const REPEAT: Duration = Duration::from_secs(5);
/// Time for which a worker believes an announcement.
const LIFETIME: Duration = Duration::from_secs(15);
/// Pause between two rounds, so that a process does not ask again before the requested tokens can arrive.
const PAUSE: Duration = Duration::from_millis(20);

/// Returns the channel on which a process receives tokens.
pub(crate) fn channel_of(process: &str) -> String {
    format!("{CHANNEL}_{process}")
}

/// Exchanges progress until the scheduler is dropped. A single process does not need to exchange anything.
pub(crate) async fn exchange(core: Weak<Core>) {
    let Some(due) = core.upgrade().filter(|core| core.is_shared()).map(|core| core.progress.wakeup()) else {
        return;
    };
    let mut repeat = Instant::now() + REPEAT;
    loop {
        let _ = tokio::time::timeout_at(repeat, due.woken()).await;
        let Some(core) = core.upgrade().filter(|core| !core.is_closed()) else { return };
        let all = Instant::now() >= repeat;
        if all {
            repeat = Instant::now() + REPEAT;
        }
        if let Err(error) = core.send_progress(!all).await {
            tracing::debug!(%error, "sample progress not exchanged; results are not affected");
            core.progress.suspect_gaps();
        }
        drop(core);
        tokio::time::sleep(PAUSE).await;
    }
}

impl Core {
    /// Handles tokens that another process sent.
    pub(crate) fn progress_arrived(&self, text: &str) {
        for (request, progress) in decode(text) {
            self.progress.deliver(&request, &[progress]);
        }
    }

    /// Records that another process watches a sample, and lacks all its tokens if `from_start`.
    pub(crate) fn watched_by(&self, request: RequestId, process: String, from_start: bool) {
        self.progress.watch_for(request, process, self.now().plus(LIFETIME), from_start);
    }

    /// Sends waiting tokens, and announces the samples watched here: all of them, or with `news` only those that lack
    /// tokens.
    async fn send_progress(&self, news: bool) -> Result<(), Error> {
        let announcements = self.progress.take_announcements(news);
        let waiting = self.progress.take_waiting();
        if announcements.is_empty() && waiting.is_empty() {
            return Ok(());
        }
        let watch = |(request, from_start)| Signal::Watch { request, process: self.process.clone(), from_start };
        let signals: Vec<Signal> = announcements.into_iter().map(watch).collect();
        let conn = &mut self.system_reader().await?;
        notify(conn, CHANNEL, signals::encode(&self.process, &signals)).await?;
        for (process, parts) in waiting {
            notify(conn, &channel_of(&process), encode(&parts)).await?;
        }
        Ok(())
    }
}
