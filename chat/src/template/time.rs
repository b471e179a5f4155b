//! The function `strftime_now` of chat templates.

use minijinja::{Error, ErrorKind};
use time::OffsetDateTime;

/// Formats a time like C's `strftime`.
///
/// # Errors
///
/// Fails if the format has a code that templates are not known to use.
pub(super) fn strftime(now: OffsetDateTime, format: &str) -> Result<String, Error> {
    let mut out = String::new();
    let mut characters = format.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            out.push(character);
            continue;
        }
        let code = characters.next();
        let (month, weekday) = (now.month().to_string(), now.weekday().to_string());
        let short = |name: &str| name.chars().take(3).collect::<String>();
        let hour12 = (now.hour() + 11) % 12 + 1;
        let part = match code {
            Some('Y') => format!("{:04}", now.year()),
            Some('y') => format!("{:02}", now.year().rem_euclid(100)),
            Some('m') => format!("{:02}", u8::from(now.month())),
            Some('d') => format!("{:02}", now.day()),
            Some('H') => format!("{:02}", now.hour()),
            Some('I') => format!("{hour12:02}"),
            Some('M') => format!("{:02}", now.minute()),
            Some('S') => format!("{:02}", now.second()),
            Some('j') => format!("{:03}", now.ordinal()),
            Some('p') => if now.hour() < 12 { "AM" } else { "PM" }.to_owned(),
            Some('B') => month,
            Some('b') => short(&month),
            Some('A') => weekday,
            Some('a') => short(&weekday),
            Some('Z') => "UTC".to_owned(),
            Some('%') => "%".to_owned(),
            other => {
                let code = other.map_or_else(String::new, String::from);
                let text = format!("strftime_now: %{code} is not supported");
                return Err(Error::new(ErrorKind::InvalidOperation, text));
            }
        };
        out.push_str(&part);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn times_are_written_by_their_codes() {
        let now = OffsetDateTime::from_unix_timestamp(1_700_000_000).unwrap();
        let written = |format: &str| strftime(now, format).unwrap();
        assert_eq!(written("%d %b %Y"), "14 Nov 2023");
        assert_eq!(
            written("%Y-%m-%d %H:%M:%S, %A %j, %I %p %y %B %a 100%%"),
            "2023-11-14 22:13:20, Tuesday 318, 10 PM 23 November Tue 100%"
        );
        assert!(strftime(now, "%Q").unwrap_err().to_string().contains("%Q is not supported"));
        assert!(strftime(now, "%").is_err());
    }
}
