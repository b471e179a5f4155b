#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;

fn read(text: &str) -> Result<(TokenPolicy, Option<IssuerSettings>), ConfigError> {
    let auth: FileAuth = toml::from_str(text).unwrap();
    Ok((auth.policy()?, auth.issuer()?))
}

fn issuer(text: &str) -> Result<IssuerSettings, String> {
    read(&format!("[issuer]\n{text}")).map(|(_, issuer)| issuer.unwrap()).map_err(|error| error.to_string())
}

const COMPLETE: &str = "url = \"https://idp.example/realm\"\naudience = \"trainyard\"\norganisation = \"acme\"\n";

#[test]
fn tokens_have_defaults_and_bounds() {
    assert_eq!(read("").unwrap(), (TokenPolicy::default(), None));
    let (policy, _) = read("token_minutes = 60\nsigning_key_days = 7\nexchange = false").unwrap();
    assert_eq!((policy.lifetime.as_secs(), policy.key_age.as_secs(), policy.offered), (3_600, 7 * 86_400, false));
    for (text, reason) in [
        ("token_minutes = 1", "auth: token_minutes must be from 2 to 1440"),
        ("token_minutes = 1441", "auth: token_minutes must be from 2 to 1440"),
        ("signing_key_days = 0", "auth: signing_key_days must be from 1 to 365"),
    ] {
        assert_eq!(read(text).unwrap_err().to_string(), reason);
    }
}

#[test]
fn an_issuer_says_who_its_users_are() {
    let found = issuer(&format!("{COMPLETE}default_role = \"read-only\"")).unwrap();
    assert_eq!((found.keys, found.user_claim.as_str()), (KeySource::Discovery, "email"));
    assert_eq!((found.organisation, found.default_role), (Named::Fixed("acme".to_owned()), Some(Role::ReadOnly)));
    assert_eq!((found.keys_refresh.as_secs(), found.keys_stale.as_secs()), (30, 3_600));
    let often = "jwks_refresh_seconds = 5\njwks_stale_minutes = 2";
    let found = issuer(&format!("{COMPLETE}default_role = \"read-only\"\n{often}")).unwrap();
    assert_eq!((found.keys_refresh.as_secs(), found.keys_stale.as_secs()), (5, 120));
    let found = issuer(
        "url = \"accounts\"\njwks_url = \"https://idp.example/keys\"\naudience = \"a\"\norganisation_claim = \"org\"\n\
         role_claim = \"groups\"\nroles = { ops = \"admin\" }",
    );
    let found = found.unwrap();
    assert_eq!(found.keys, KeySource::Keys("https://idp.example/keys".to_owned()));
    assert_eq!((found.roles["ops"], found.default_role), (Role::Admin, None));
}

#[test]
fn an_issuer_that_can_not_work_is_refused() {
    for (text, reason) in [
        ("audience = \"a\"".to_owned(), "url is missing"),
        ("url = \"https://a\"".to_owned(), "audience is missing"),
        (COMPLETE.replace("https://", "http://"), "url must be https://"),
        (format!("{COMPLETE}jwks_url = \"http://idp.example\""), "jwks_url must be https://"),
        (COMPLETE.replace("organisation = \"acme\"", ""), "either organisation or organisation_claim"),
        (format!("{COMPLETE}organisation_claim = \"org\""), "either organisation or organisation_claim"),
        (COMPLETE.to_owned(), "no token would be accepted"),
        (format!("{COMPLETE}default_role = \"root\""), "invalid role \"root\": expected admin, member or read-only"),
        (
            format!("{COMPLETE}default_role = \"admin\"\njwks_refresh_seconds = 0"),
            "jwks_refresh_seconds must be from 1 to 3600",
        ),
        (
            format!("{COMPLETE}default_role = \"admin\"\njwks_stale_minutes = 1441"),
            "jwks_stale_minutes must be from 1 to 1440",
        ),
        (format!("{COMPLETE}default_role = \"admin\"\nrole_claim = \"groups\""), "set together"),
    ] {
        let error = issuer(&text).unwrap_err();
        assert!(error.starts_with("auth: issuer: ") && error.contains(reason), "{text}: {error}");
    }
    assert!(toml::from_str::<FileAuth>("[issuer]\nurl = \"x\"\nsecret = \"y\"").is_err());
}
