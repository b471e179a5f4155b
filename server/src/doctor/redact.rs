//! Secrets in the texts of a report, which is made to be sent to others.

/// Names of parameters whose values are secret.
const SECRET: [&str; 6] = ["password", "secret", "token", "api_key", "apikey", "signature"];

/// What stands in the place of a secret.
const HIDDEN: &str = "***";

/// Returns a text without users and passwords of URLs, and without values of secret parameters.
pub(super) fn redacted(text: &str) -> String {
    text.split_inclusive(char::is_whitespace).map(word).collect()
}

/// A word and the space behind it.
fn word(text: &str) -> String {
    let hidden = match text.split_once("://") {
        Some((scheme, rest)) => {
            let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            let (authority, path) = rest.split_at(end);
            match authority.rsplit_once('@') {
                Some((_, host)) => format!("{scheme}://{HIDDEN}@{host}{path}"),
                None => text.to_owned(),
            }
        }
        None => text.to_owned(),
    };
    hidden.split_inclusive(['?', '&', ';', ',']).map(parameter).collect()
}

/// A parameter `name=value` and the separator behind it.
fn parameter(text: &str) -> String {
    let Some((name, value)) = text.split_once('=') else { return text.to_owned() };
    let lower = name.to_ascii_lowercase();
    if !SECRET.iter().any(|secret| lower.contains(secret)) {
        return text.to_owned();
    }
    let rest: String = value.chars().skip_while(|c| !c.is_whitespace() && !['?', '&', ';', ','].contains(c)).collect();
    format!("{name}={HIDDEN}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_passwords_of_urls_are_hidden() {
        let of = |text: &str, expected: &str| assert_eq!(redacted(text), expected);
        of("postgres://me:secret@db:5432/x: refused", "postgres://***@db:5432/x: refused");
        of("open https://user@host/a and s3://bucket/p@q", "open https://***@host/a and s3://bucket/p@q");
        of("postgres://u:a@b@db/x\nnext", "postgres://***@db/x\nnext");
        of("mail me@example.org", "mail me@example.org");
    }

    #[test]
    fn values_of_secret_parameters_are_hidden() {
        let of = |text: &str, expected: &str| assert_eq!(redacted(text), expected);
        of(
            "postgres://db/x?sslmode=require&password=pw is refused",
            "postgres://db/x?sslmode=require&password=*** is refused",
        );
        of("https://h/o?X-Amz-Signature=abc&a=1", "https://h/o?X-Amz-Signature=***&a=1");
        of("AWS_SECRET_ACCESS_KEY=abc tp=2", "AWS_SECRET_ACCESS_KEY=*** tp=2");
        of("error 1.0e-3 (y), at most 2e-2", "error 1.0e-3 (y), at most 2e-2");
    }
}
