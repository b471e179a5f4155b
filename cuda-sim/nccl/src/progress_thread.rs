//! A GPU comes to its collectives by itself, whatever its host does. The simulated one runs while somebody asks for it: a host that
//! waits elsewhere would keep other processes waiting.

use std::sync::Once;
use std::time::Duration;

use cuda_sim_client::Client;

static STARTED: Once = Once::new();

/// How often the thread looks for collectives in the queues of streams, and how many operations each device then does at most.
const PAUSE: Duration = Duration::from_millis(2);
const OPERATIONS: usize = 64;

/// Starts the thread that brings the process's devices to their collectives.
pub(crate) fn start() {
    STARTED.call_once(|| drop(std::thread::spawn(run)));
}

fn run() {
    let Ok(client) = Client::open() else { return };
    loop {
        std::thread::sleep(PAUSE);
        for _ in 0..OPERATIONS {
            if !client.progress_waiting().unwrap_or(false) {
                break;
            }
        }
    }
}
