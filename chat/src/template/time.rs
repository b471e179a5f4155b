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
        let mut code = characters.next();
        let unpadded = code == Some('-');
        if unpadded {
            code = characters.next();
        }
        let Some(part) = code.and_then(|code| part(now, code)) else {
            let (flag, code) = (if unpadded { "-" } else { "" }, code.map_or_else(String::new, String::from));
            let text = format!("strftime_now: %{flag}{code} is not supported");
            return Err(Error::new(ErrorKind::InvalidOperation, text));
        };
        let number = part.trim_start_matches([' ', '0']);
        let is_number = !part.is_empty() && part.trim_start().bytes().all(|byte| byte.is_ascii_digit());
        out.push_str(match unpadded && is_number {
            true if number.is_empty() => "0",
            true => number,
            false => &part,
        });
    }
    Ok(out)
}

/// Returns the text of a code; `None` if it is not supported.
fn part(now: OffsetDateTime, code: char) -> Option<String> {
    let (month, weekday) = (now.month().to_string(), now.weekday().to_string());
    let short = |name: &str| name.chars().take(3).collect::<String>();
    let two = |number: u8| format!("{number:02}");
    let several = |codes: &str| {
        let parts = codes.chars().map(|code| if code.is_alphabetic() { part(now, code) } else { Some(code.into()) });
        parts.collect::<Option<String>>()
    };
    Some(match code {
        'Y' => format!("{:04}", now.year()),
        'y' => format!("{:02}", now.year().rem_euclid(100)),
        'm' => two(now.month().into()),
        'd' => two(now.day()),
        'e' => format!("{:2}", now.day()),
        'H' => two(now.hour()),
        'I' => two((now.hour() + 11) % 12 + 1),
        'M' => two(now.minute()),
        'S' => two(now.second()),
        'f' => format!("{:06}", now.microsecond()),
        'j' => format!("{:03}", now.ordinal()),
        'U' => two(now.sunday_based_week()),
        'W' => two(now.monday_based_week()),
        'V' => two(now.iso_week()),
        'w' => now.weekday().number_days_from_sunday().to_string(),
        'u' => now.weekday().number_from_monday().to_string(),
        'p' => if now.hour() < 12 { "AM" } else { "PM" }.to_owned(),
        'B' => month,
        'b' | 'h' => short(&month),
        'A' => weekday,
        'a' => short(&weekday),
        'D' | 'x' => several("m/d/y")?,
        'F' => several("Y-m-d")?,
        'T' | 'X' => several("H:M:S")?,
        'R' => several("H:M")?,
        'c' => several("a b e H:M:S Y")?,
        // The time has no zone in Python.
        'Z' | 'z' => String::new(),
        '%' => "%".to_owned(),
        _ => return None,
    })
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
