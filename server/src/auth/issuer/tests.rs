#![allow(clippy::unwrap_used, reason = "tests")]

use serde_json::json;

use super::*;

fn settings() -> IssuerSettings {
    IssuerSettings {
        issuer: "https://idp.example".to_owned(),
        keys: KeySource::Discovery,
        audience: "trainyard".to_owned(),
        organisation: Named::Claim("org".to_owned()),
        user_claim: "email".to_owned(),
        accepts_unverified_emails: false,
        role_claim: Some("realm.roles".to_owned()),
        roles: BTreeMap::from([("ops".to_owned(), Role::Admin), ("dev".to_owned(), Role::Member)]),
        default_role: None,
        keys_refresh: IssuerSettings::KEYS_REFRESH,
        keys_stale: IssuerSettings::KEYS_STALE,
    }
}

fn claims() -> Value {
    json!({
        "sub": "s-1", "exp": 1_700_000_000, "org": "acme", "email": "ann@acme.example", "email_verified": true,
        "realm": {"roles": ["staff", "dev"]},
    })
}

fn read(settings: &IssuerSettings, claims: &Value) -> Result<Accepted, TokenError> {
    settings.read(claims.as_object().unwrap(), "k-1".to_owned())
}

fn changed(name: &str, value: Value) -> Value {
    let mut claims = claims();
    claims[name] = value;
    claims
}

#[test]
fn claims_name_organisation_user_and_role() {
    let found = read(&settings(), &claims()).unwrap();
    assert_eq!(found.identity.organisation, TenantId::new("acme"));
    assert_eq!(found.identity.email.as_deref(), Some("ann@acme.example"));
    let origin = Origin::Issuer { subject: "s-1".to_owned(), key: Some("k-1".to_owned()) };
    assert_eq!((found.identity.role, found.origin), (Role::Member, origin));
    assert_eq!(found.expires_at, Timestamp((1_700_000_000 + LEEWAY) * 1_000));
    let role = |claims: Value| read(&settings(), &claims).unwrap().identity.role;
    assert_eq!(role(changed("realm", json!({"roles": ["dev", "ops", 7]}))), Role::Admin);
    assert_eq!(role(changed("realm", json!({"roles": "ops"}))), Role::Admin);
    // A claim with dots in its name comes first.
    assert_eq!(role(changed("realm.roles", json!(["ops"]))), Role::Admin);
    let program = read(&settings(), &changed("email", Value::Null)).unwrap();
    assert_eq!(program.identity.email, None);
    let fixed = IssuerSettings { organisation: Named::Fixed("all".to_owned()), ..settings() };
    assert_eq!(read(&fixed, &claims()).unwrap().identity.organisation, TenantId::new("all"));
}

#[test]
fn without_a_role_nobody_is_let_in_unless_there_is_one_for_all() {
    let nobody = changed("realm", json!({"roles": ["staff"]}));
    let error = read(&settings(), &nobody).unwrap_err();
    assert!(error.to_string().contains("gives no role here"), "{error}");
    assert!(read(&settings(), &changed("realm", json!("ops"))).is_err());
    let readers = IssuerSettings { default_role: Some(Role::ReadOnly), ..settings() };
    assert_eq!(read(&readers, &nobody).unwrap().identity.role, Role::ReadOnly);
}

#[test]
fn claims_that_say_nothing_usable_are_refused() {
    for (name, value, reason) in [
        ("sub", Value::Null, "lacks the claim \"sub\""),
        ("sub", json!(""), "\"sub\" is empty"),
        ("sub", json!("x".repeat(201)), "\"sub\" is empty, longer"),
        ("org", Value::Null, "lacks the claim \"org\""),
        ("org", json!(7), "\"org\" is not a string"),
        ("org", json!("a\nb"), "\"org\" is empty, longer"),
        ("email", json!(["a@b"]), "\"email\" is not a string"),
    ] {
        let error = read(&settings(), &changed(name, value)).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn an_email_counts_once_the_issuer_has_verified_it_unless_a_setting_says_otherwise() {
    let with = |verified: Option<Value>| {
        let mut claims = claims();
        let all = claims.as_object_mut().unwrap();
        drop(all.remove("email_verified"));
        all.extend(verified.map(|value| ("email_verified".to_owned(), value)));
        claims
    };
    for verified in [json!(true), json!("true")] {
        assert!(read(&settings(), &with(Some(verified))).is_ok());
    }
    let lax = IssuerSettings { accepts_unverified_emails: true, ..settings() };
    let other = IssuerSettings { user_claim: "upn".to_owned(), ..settings() };
    for (verified, reason) in [
        (Some(json!(false)), "\"email_verified\" is not true"),
        (Some(json!("false")), "\"email_verified\" is not true"),
        (Some(json!("TRUE")), "\"email_verified\" is not true"),
        (Some(json!(1)), "\"email_verified\" is not true"),
        (Some(Value::Null), "\"email_verified\" is not true"),
        (None, "lacks the claim \"email_verified\""),
    ] {
        let claims = with(verified);
        let error = read(&settings(), &claims).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
        assert_eq!(read(&lax, &claims).unwrap().identity.email.as_deref(), Some("ann@acme.example"));
        assert_eq!(read(&other, &claims).unwrap().identity.email, None, "no email is taken from it");
    }
}
