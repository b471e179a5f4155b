//! Tokens of samples between the processes on one database: an API server announces which samples it watches, and the worker
//! that executes one sends its tokens to the process that asked, by notifications. Nothing is stored and nothing is sent twice by
//! itself: who finds that tokens are missing asks for all of them, and the sample's result holds them in any case.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::Instant;
use trainyard_protocol::{RequestId, SampleProgress};

use crate::Error;
use crate::context::core::Core;
use crate::processes::signals::{self, CHANNEL, Signal};
use crate::progress::{decode, encode};
use crate::store::notify::notify;

/// How often a process repeats what it watches: workers may have come, or missed it.
const REPEAT: Duration = Duration::from_secs(5);
/// How long a worker believes that.
const LIFETIME: Duration = Duration::from_secs(15);
/// Between two rounds, so that a process that lacks tokens does not ask before those that it asked for can be there.
const PAUSE: Duration = Duration::from_millis(20);

/// The channel on which a process is sent tokens.
pub(crate) fn channel_of(process: &str) -> String {
    format!("{CHANNEL}_{process}")
}

/// Exchanges progress until the scheduler is gone. One process alone needs no exchange.
pub(crate) async fn exchange(core: Weak<Core>) {
    let Some(due) = core.upgrade().filter(|core| core.is_shared()).map(|core| Arc::clone(&core.outbox.due)) else {
        return;
    };
    let mut repeat = Instant::now() + REPEAT;
    loop {
        let _ = tokio::time::timeout_at(repeat, due.notified()).await;
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
    /// Passes tokens on to who watches the sample, here or in another process.
    pub(crate) fn report_progress(&self, request: &RequestId, progress: &[SampleProgress]) {
        for process in self.deliver_progress(request, progress) {
            self.outbox.push(process, request, progress);
        }
    }

    /// Passes tokens on to who watches the sample here. Returns the other processes that do.
    pub(crate) fn deliver_progress(&self, request: &RequestId, progress: &[SampleProgress]) -> Vec<String> {
        let (others, whole) = self.progress.deliver(request, progress);
        if !whole {
            self.outbox.due.notify_one();
        }
        others
    }

    /// What another process sent.
    pub(crate) fn progress_arrived(&self, text: &str) {
        for (request, progress) in decode(text) {
            self.deliver_progress(&request, &[progress]);
        }
    }

    /// Another process watches a sample, and lacks all its tokens if `from_start`.
    pub(crate) fn watched_by(&self, request: RequestId, process: String, from_start: bool) {
        self.progress.watch_for(request, process, self.now().plus(LIFETIME), from_start);
    }

    /// Sends what waits, and says what is watched here: everything, or with `news` only of what tokens are lacking.
    async fn send_progress(&self, news: bool) -> Result<(), Error> {
        let announcements = self.progress.announcements(news);
        let waiting = self.outbox.take();
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
