//! A GPU comes to its collectives by itself, whatever its host does. The simulated one runs while somebody asks for it: a host that
//! waits elsewhere would keep other processes waiting.

use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cuda_sim_client::Client;

/// Collectives that streams have not come to.
static AHEAD: AtomicUsize = AtomicUsize::new(0);
static STARTED: Once = Once::new();

/// How often somebody looks, and how many operations each device then does at most.
const PAUSE: Duration = Duration::from_millis(2);
const OPERATIONS: usize = 64;

/// A collective was submitted: from now on the process' devices go on.
pub(crate) fn submitted() {
    AHEAD.fetch_add(1, Ordering::SeqCst);
    STARTED.call_once(|| drop(std::thread::spawn(run)));
}

/// A stream has come to one.
pub(crate) fn begun() {
    // One that a graph repeats was submitted once.
    let _ = AHEAD.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |ahead| ahead.checked_sub(1));
}

fn run() {
    let Ok(client) = Client::open() else { return };
    loop {
        std::thread::sleep(PAUSE);
        for _ in 0..OPERATIONS {
            if AHEAD.load(Ordering::SeqCst) == 0 || client.progress().is_err() {
                break;
            }
        }
    }
}
