//! `trainyard top`: the overview in a terminal.

mod stream;
mod view;

use std::error::Error;
use std::io::{self, IsTerminal};
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use tokio::sync::mpsc;
use tokio::time::sleep;
use trainyard_wire::overview::Overview;

use self::stream::Overviews;
use crate::config::ServerFlags;

/// How long to wait before another attempt to reach the server.
const RETRY: Duration = Duration::from_secs(2);

/// Shows a server until `q` or Ctrl-C is pressed.
///
/// # Errors
/// Fails if standard input or output is not a terminal, or the server refuses the key.
pub fn top(flags: &ServerFlags) -> Result<(), Box<dyn Error>> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err("top needs a terminal; programs read GET /metrics".into());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // Before the screen is taken: a refusal is a message like any other.
    let first = runtime.block_on(Overviews::open(flags))?;
    let mut terminal = ratatui::try_init()?;
    let done = runtime.block_on(show(&mut terminal, flags, first));
    ratatui::restore();
    // The thread that reads keys waits for one.
    runtime.shutdown_background();
    done
}

async fn show(terminal: &mut DefaultTerminal, flags: &ServerFlags, first: Overviews) -> Result<(), Box<dyn Error>> {
    let mut keys = keys();
    let (mut stream, mut shown, mut problem) = (Some(first), Overview::default(), None::<String>);
    loop {
        terminal.draw(|frame| view::draw(frame, &shown, &flags.url, problem.as_deref()))?;
        tokio::select! {
            next = next(&mut stream, flags) => match next {
                Ok(overview) => (shown, problem) = (overview, None),
                Err(error) => {
                    stream = None;
                    problem = Some(error);
                }
            },
            key = keys.recv() => match key {
                Some(Key::Quit) | None => return Ok(()),
                Some(Key::Redraw) => {}
            },
        }
    }
}

/// The next overview, from the open stream or from a new one.
async fn next(stream: &mut Option<Overviews>, flags: &ServerFlags) -> Result<Overview, String> {
    if let Some(open) = stream {
        return open.next().await;
    }
    sleep(RETRY).await;
    stream.insert(Overviews::open(flags).await?).next().await
}

enum Key {
    Quit,
    Redraw,
}

/// Keys that are pressed, read by a separate thread.
fn keys() -> mpsc::UnboundedReceiver<Key> {
    let (sender, receiver) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        while let Ok(read) = event::read() {
            let key = match read {
                Event::Key(key) if key.kind == KeyEventKind::Press => match (key.code, key.modifiers) {
                    (KeyCode::Char('q') | KeyCode::Esc, _) => Key::Quit,
                    (KeyCode::Char('c'), KeyModifiers::CONTROL) => Key::Quit,
                    _ => continue,
                },
                Event::Resize(..) => Key::Redraw,
                _ => continue,
            };
            if sender.send(key).is_err() {
                return;
            }
        }
    });
    receiver
}
