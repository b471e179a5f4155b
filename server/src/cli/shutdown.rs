//! Shutdown on SIGINT or SIGTERM.

use std::io;
use std::process;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Exit status after a second signal, as a shell reports an interrupted program.
const INTERRUPTED: i32 = 130;

/// The two signals that end the server.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Starts to catch the signals.
    ///
    /// # Errors
    /// Fails if the system refuses to deliver them.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Waits for a signal and returns its name.
    pub(super) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }

    /// Ends the process at the next signal, whatever it is doing. Acknowledged work is not lost: recovery resumes from
    /// the store.
    pub(super) fn exit_at_next(mut self) {
        tokio::spawn(async move {
            let signal = self.next().await;
            tracing::warn!(signal, "second signal: exiting at once");
            process::exit(INTERRUPTED);
        });
    }
}
