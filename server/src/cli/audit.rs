//! `trainyard audit`: exports and prunes the audit log of all organisations.

use std::error::Error;
use std::io::{self, BufWriter, Write};

use serde_json::json;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use trainyard_scheduler::{ExportedEntry, Timestamp};
use trainyard_wire::timestamp::rfc3339;

use super::directory::{line, with};
use crate::config::AuditCommand;

/// Exports or prunes the audit log.
pub(super) fn audit(command: AuditCommand) -> Result<(), Box<dyn Error>> {
    match command {
        AuditCommand::Export { before, store } => {
            let before = moment(&before)?;
            with(store, async |directory| {
                let mut out = BufWriter::new(io::stdout().lock());
                let mut after = String::new();
                loop {
                    let entries = directory.export_audit_log(&after, before).await?;
                    let Some(last) = entries.last() else { break };
                    for entry in &entries {
                        writeln!(out, "{}", described(entry))?;
                    }
                    after = last.id.clone();
                }
                Ok(out.flush()?)
            })
        }
        AuditCommand::Prune { before, store } => {
            let before = moment(&before)?;
            with(store, async |directory| {
                let deleted = directory.prune_audit_log(before).await?;
                Ok(line(["deleted", &deleted.to_string()])?)
            })
        }
    }
}

fn described(exported: &ExportedEntry) -> serde_json::Value {
    let ExportedEntry { id, organisation, entry } = exported;
    json!({
        "id": id,
        "at": rfc3339(entry.at.as_millis()),
        "organisation": organisation.as_str(),
        "category": entry.category.as_str(),
        "event": entry.event,
        "subject": entry.subject,
        "details": entry.details,
        "actor": entry.actor,
        "key_id": entry.key,
        "request_id": entry.request_id,
        "address": entry.address,
    })
}

/// Reads a day, or a time.
fn moment(text: &str) -> Result<Timestamp, String> {
    let expected = || format!("--before: expected a day such as 2026-01-01, or an RFC 3339 time, found {text:?}");
    let midnight = format!("{text}T00:00:00Z");
    let time = OffsetDateTime::parse(text, &Rfc3339).or_else(|_| OffsetDateTime::parse(&midnight, &Rfc3339));
    let millis = time.map_err(|_| expected())?.unix_timestamp_nanos() / 1_000_000;
    i64::try_from(millis).map(Timestamp).map_err(|_| expected())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_times_are_read() {
        assert_eq!(moment("2023-11-14"), Ok(Timestamp(1_699_920_000_000)));
        assert_eq!(moment("2023-11-14T01:00:00+01:00"), Ok(Timestamp(1_699_920_000_000)));
        for wrong in ["", "yesterday", "2023-13-01", "2023-11-14 10:00"] {
            assert!(moment(wrong).is_err_and(|text| text.contains("2026-01-01")), "{wrong}");
        }
    }
}
