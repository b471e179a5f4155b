//! The log's lines on a terminal: time, level, message, and the fields that matter to a person who follows a run.
//! Complete lines are in files, pipes and JSON.

use std::fmt::{self, Write as _};

use time::OffsetDateTime;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Fields that only searches in a complete log need.
const LEFT_OUT: [&str; 4] = ["request", "x_request_id", "trace_id", "method"];
/// The tenant of a server without keys, which goes without saying.
const LOCAL: &str = "local";
/// The length of a UUID, with which ids of sessions, runs and requests begin.
const UUID: usize = 36;
/// The characters of a UUID that are shown: its last ones, which differ most.
const SHOWN: usize = 6;

/// Formats events as short lines.
pub(super) struct Short;

impl<S, N> FormatEvent<S, N> for Short
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let now = OffsetDateTime::now_utc();
        let (name, colour) = level(*event.metadata().level());
        write!(out, "{:02}:{:02}:{:02} ", now.hour(), now.minute(), now.second())?;
        match out.has_ansi_escapes() {
            true => write!(out, "\x1b[{colour}m{name}\x1b[0m")?,
            false => write!(out, "{name}")?,
        }
        writeln!(out, " {}{}", fields.message, fields.others)
    }
}

/// The name of a level, and the number of its colour on a terminal.
fn level(level: Level) -> (&'static str, u8) {
    match level {
        Level::ERROR => ("ERROR", 31),
        Level::WARN => (" WARN", 33),
        Level::INFO => (" INFO", 32),
        Level::DEBUG => ("DEBUG", 34),
        Level::TRACE => ("TRACE", 35),
    }
}

#[derive(Default)]
struct Fields {
    message: String,
    others: String,
}

impl Fields {
    fn add(&mut self, name: &str, value: &str) {
        let goes_without_saying = (name == "tenant" && value == LOCAL) || name.starts_with("log.");
        if name == "message" {
            self.message = printable(value);
        } else if !LEFT_OUT.contains(&name) && !goes_without_saying {
            // Writing to a string never fails.
            let _ = write!(self.others, "  {name}={}", printable(&shortened(value)));
        }
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field.name(), value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field.name(), &format!("{value:?}"));
    }
}

/// Escapes characters that would control the terminal.
fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown
}

/// Shortens the UUID with which an id begins.
fn shortened(value: &str) -> String {
    let is_uuid = |id: &str| id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    match value.split_at_checked(UUID) {
        Some((id, rest)) if is_uuid(id) => format!("…{}{rest}", &id[UUID - SHOWN..]),
        _ => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::io;
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::fmt;

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Returns what is logged, without the times.
    fn logged(is_coloured: bool, log: impl FnOnce()) -> String {
        let lines = Lines::default();
        let writer = lines.clone();
        let format = fmt().with_ansi(is_coloured).event_format(Short).with_writer(move || writer.clone()).finish();
        tracing::subscriber::with_default(format, log);
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        text.lines().map(|line| line[9..].to_owned()).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_line_about_a_request_fits_a_terminal() {
        let run = "01932f6e-7a10-7c43-9d61-0a1b2c3d4e5f:train:0";
        let text = logged(false, || {
            tracing::info!(
                kind = "forward_backward",
                tenant = %LOCAL,
                run,
                request = %"01932f6e-7a10-7c43-9d61-0a1b2c3d4e60",
                x_request_id = "01932f6e-7a10-7c43-9d61-0a1b2c3d4e61",
                trace_id = "4bf92f3577b34da6a3ce929d0e0e4736",
                tokens = 3,
                "request succeeded"
            );
            tracing::warn!(tenant = "acme", error = "loss_fn: unknown", "request failed");
        });
        let lines = [
            " INFO request succeeded  kind=forward_backward  run=…3d4e5f:train:0  tokens=3",
            " WARN request failed  tenant=acme  error=loss_fn: unknown",
        ];
        assert_eq!(text, lines.join("\n"));
    }

    #[test]
    fn levels_have_colours_where_the_terminal_does() {
        assert_eq!(logged(true, || tracing::error!("stopped")), "\x1b[31mERROR\x1b[0m stopped");
    }

    #[test]
    fn values_do_not_control_the_terminal() {
        let text = logged(false, || tracing::info!(name = "a\u{1b}[2Jb\nc", "ä ready"));
        assert_eq!(text, " INFO ä ready  name=a\\u{1b}[2Jb\\nc");
    }

    #[test]
    fn only_ids_are_shortened() {
        for text in ["", "ready", "0123456789abcdef", "http://a-host.example/with-a-long-path/to-something"] {
            assert_eq!(shortened(text), text);
        }
    }
}
