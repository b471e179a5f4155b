//! Reloads of the certificate and the key: programs that renew them only replace the files.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, interval_at};

use super::{Pair, Tls, TlsError, TlsFiles};

/// The time between two reads of the files.
const PERIOD: Duration = Duration::from_secs(5);

/// Watches the files until the runtime ends.
pub(super) fn spawn(tls: Tls, files: TlsFiles, loaded: Pair) -> Result<(), TlsError> {
    let mut hangup = signal(SignalKind::hangup()).map_err(TlsError::Signal)?;
    let mut ticks = interval_at(Instant::now() + PERIOD, PERIOD);
    let mut reloader = Reloader { tls, files, seen: Seen::Loaded(loaded) };
    tokio::spawn(async move {
        loop {
            let asked = tokio::select! {
                received = hangup.recv() => received.is_some(),
                _ = ticks.tick() => false,
            };
            reloader.look(asked);
        }
    });
    Ok(())
}

struct Reloader {
    tls: Tls,
    files: TlsFiles,
    seen: Seen,
}

/// The state of the files when they were last read.
enum Seen {
    /// The files contain the served pair.
    Loaded(Pair),
    /// The files can't be served; the previous pair is still in use. Between the replacements of the two files this is
    /// normal, so it is reported only when it stays.
    Unusable(Option<Pair>),
    /// The unusable pair, after it was reported.
    Reported(Option<Pair>),
}

impl Reloader {
    /// Loads the files if they changed. `asked` is set when somebody waits for the outcome.
    fn look(&mut self, asked: bool) {
        let read = self.files.read();
        let content = read.as_ref().ok().cloned();
        match &self.seen {
            Seen::Loaded(loaded) if content.as_ref() == Some(loaded) => return,
            Seen::Reported(reported) if *reported == content && !asked => return,
            _ => {}
        }
        let settled = matches!(&self.seen, Seen::Unusable(unusable) if *unusable == content);
        let loaded = read.and_then(|pair| self.tls.replace(&self.files, &pair).map(|()| pair));
        self.seen = match loaded {
            Ok(pair) => {
                self.tls.metrics.reloaded(true);
                tracing::info!(cert = %self.files.cert.display(), "TLS certificate reloaded");
                Seen::Loaded(pair)
            }
            Err(error) if settled || asked => {
                self.tls.metrics.reloaded(false);
                tracing::error!(%error, "failed to reload the TLS certificate: the previous one is still in use");
                Seen::Reported(content)
            }
            Err(_) => Seen::Unusable(content),
        };
    }
}
