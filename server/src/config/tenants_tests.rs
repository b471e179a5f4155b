#![allow(clippy::unwrap_used, reason = "tests")]
use std::num::{NonZeroU32, NonZeroU64};

use super::*;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    tenants: Vec<FileTenant>,
    #[serde(default)]
    keys: Vec<FileKey>,
}

fn read(text: &str) -> Result<(Keys, Policies), String> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
    resolve(&file.tenants, &file.keys, TenantPolicy::default()).map_err(|error| error.to_string())
}

fn refusal(text: &str) -> String {
    read(text).err().unwrap_or_else(|| "accepted".to_owned())
}

fn hex(key: &str) -> String {
    trainyard_protocol::hex(&Keys::digest(key))
}

#[test]
fn a_tenant_has_keys_a_weight_and_quotas() {
    let text = format!(
        r#"
        [[tenants]]
        name = "team-a"
        weight = 2
        keys = [{{ sha256 = "{}" }}, {{ name = "ci", key = "tml-a2-0123456789-0123456789" }}]
        max_runs = 16
        max_queued_tokens = 1000000
        tokens_per_minute = 600000
        max_storage_bytes = 50_000_000_000
        max_queued_bytes = 1_000_000
        max_queued_samples = 64
        pixels_per_minute = 4_000_000
        max_sessions = 200

        [[tenants]]
        name = "team-b"
        keys = [{{ key = "tml-b-0123456789-0123456789" }}]

        [[keys]]
        tenant = "carol"
        key = "tml-c-0123456789-0123456789"
        "#,
        hex("tml-a1-0123456789-0123456789")
    );
    let (keys, policies) = read(&text).unwrap();
    for (key, tenant) in [
        ("tml-a1-0123456789-0123456789", "team-a"),
        ("tml-a2-0123456789-0123456789", "team-a"),
        ("tml-b-0123456789-0123456789", "team-b"),
        ("tml-c-0123456789-0123456789", "carol"),
    ] {
        assert_eq!(keys.tenant(key), Some(TenantId::new(tenant)));
    }
    assert_eq!(keys.tenant("tml-d-0123456789-0123456789"), None);
    let a = TenantPolicy {
        weight: NonZeroU32::new(2).unwrap(),
        max_runs: NonZeroU64::new(16),
        max_queued_tokens: NonZeroU64::new(1_000_000),
        tokens_per_minute: NonZeroU64::new(600_000),
        max_storage_bytes: NonZeroU64::new(50_000_000_000),
        max_queued_samples: NonZeroU64::new(64),
        max_sessions: NonZeroU64::new(200).unwrap(),
        pixels_per_minute: NonZeroU64::new(4_000_000),
        training: TrainingLimits { bytes: NonZeroU64::new(1_000_000).unwrap(), ..TrainingLimits::default() },
    };
    assert_eq!(*policies.of(&TenantId::new("team-a")), a);
    for other in ["team-b", "carol"] {
        assert_eq!(*policies.of(&TenantId::new(other)), TenantPolicy::default());
    }
}

#[test]
fn the_local_tenant_needs_no_keys_while_there_are_none() {
    let local = "[[tenants]]\nname = \"local\"\nmax_runs = 3\n";
    let (keys, policies) = read(local).unwrap();
    assert!(keys.is_empty() && !keys.are_required());
    assert_eq!(policies.of(&TenantId::new("local")).max_runs, NonZeroU64::new(3));
    // Others may have keys in the store.
    let (keys, _) = read("[[tenants]]\nname = \"ops\"\noperator = true\n").unwrap();
    assert!(keys.is_empty() && keys.are_required());
    assert_eq!(keys.tenants(), [(TenantId::new("ops"), true)]);
}

#[test]
fn a_key_has_a_role() {
    let with = |role: &str| {
        format!("[[tenants]]\nname = \"t\"\nkeys = [{{ key = \"tml-t-0123456789-0123456789\", role = \"{role}\" }}]\n")
    };
    for role in ["admin", "member", "read-only"] {
        assert!(read(&with(role)).is_ok(), "{role}");
    }
    assert!(refusal(&with("root")).contains("root"));
}

#[test]
fn what_is_wrong_with_a_tenant_is_named() {
    let tenant = |rest: &str| {
        format!("[[tenants]]\nname = \"t\"\nkeys = [{{ key = \"tml-t-0123456789-0123456789\" }}]\n{rest}\n")
    };
    for (text, message) in [
        (tenant("weight = 0"), "tenants: weight of \"t\" must be from 1 to 1000"),
        (tenant("weight = 1001"), "tenants: weight of \"t\" must be from 1 to 1000"),
        (tenant("max_runs = 0"), "tenants: max_runs of \"t\" must be at least 1; leave it out for no limit"),
        (tenant("max_queued_tokens = 0"), "max_queued_tokens of \"t\""),
        (tenant("tokens_per_minute = 0"), "tokens_per_minute of \"t\""),
        (tenant("max_storage_bytes = 0"), "max_storage_bytes of \"t\""),
        (tenant("max_storage_byte = 1"), "max_storage_byte"),
        (tenant("max_runs = -1"), "max_runs"),
        (tenant("") + &tenant(""), "tenants: \"t\" is listed twice"),
        (
            tenant("") + "[[keys]]\ntenant = \"t\"\nkey = \"tml-x-0123456789-0123456789\"\n",
            "tenants: \"t\" also has [[keys]]",
        ),
        ("[[tenants]]\nname = \"\"\n".to_owned(), "tenants: the name of tenant 1 is empty"),
        ("[[tenants]]\nweight = 1\n".to_owned(), "name"),
    ] {
        let refused = refusal(&text);
        assert!(refused.contains(message), "{refused}");
    }
}

#[test]
fn a_key_that_can_be_guessed_is_refused() {
    let with =
        |key: &str| refusal(&format!("[[tenants]]\nname = \"t\"\nkeys = [{{ name = \"ci\", key = \"{key}\" }}]\n"));
    for (key, bits) in
        [("tml-a", 4), ("tml-hunter2", 42), ("tml-0123456789012345678901", 88), ("tml-x01234567890123456789", 126)]
    {
        let refused = with(key);
        let reason = format!("key of \"ci\" can be guessed: {bits} bits at most, but 128 are needed");
        assert!(refused.contains(&reason) && !refused.contains(key), "{refused}");
    }
    for key in ["tml-x012345678901234567890", "tml-0123456789abcdef0123456789abcdef"] {
        assert_eq!(with(key), "accepted");
    }
}

#[test]
fn a_key_is_not_its_own_name() {
    let text = "[[keys]]\ntenant = \"a\"\nkey = \"tml-secret-0123456789-0123456789\"\nname = \"tml-secret-0123456789-0123456789\"\n";
    let (keys, _) = read(text).unwrap();
    let shown = format!("{keys:?}");
    assert!(shown.contains("key of a") && !shown.contains("tml-secret-0123456789-0123456789"), "{shown}");
}

#[test]
fn what_is_wrong_with_a_key_is_named_and_never_printed() {
    let keys = |keys: &str| format!("[[tenants]]\nname = \"t\"\nkeys = [{keys}]\n");
    let list = "tenants: keys of \"t\"";
    for (text, message) in [
        (keys("{ name = \"ci\" }"), format!("{list}: \"ci\" must have either key or sha256")),
        (
            keys("{ key = \"tml-secret-0123456789-0123456789\", sha256 = \"00\" }"),
            format!("{list}: \"key 1\" must have either"),
        ),
        (
            keys("{ key = \"tml-a-0123456789-0123456789\" }, { key = \"secret\" }"),
            format!("{list}: key of \"key 2\" must start"),
        ),
        (keys("{ key = \"tml-\" }"), "must start with \"tml-\" and be longer".to_owned()),
        (keys("{ sha256 = \"secret\" }"), format!("{list}: sha256 of \"key 1\" is not 64 hexadecimal digits")),
        (
            keys("{ key = \"tml-secret-0123456789-0123456789\" }, { key = \"tml-secret-0123456789-0123456789\" }"),
            "\"key 2\" is the same key".to_owned(),
        ),
        (keys("{ key = \"tml-a-0123456789-0123456789\", tenant = \"x\" }"), "tenant".to_owned()),
        (
            keys("{ key = \"tml-secret-0123456789-0123456789\" }")
                + &format!(
                    "[[keys]]\nname = \"old\"\ntenant = \"u\"\nsha256 = \"{}\"\n",
                    hex("tml-secret-0123456789-0123456789")
                ),
            "keys: \"old\" is the same key as another one".to_owned(),
        ),
        (
            "[[keys]]\ntenant = \"\"\nkey = \"tml-secret-0123456789-0123456789\"\n".to_owned(),
            "keys: tenant of \"\" is empty".to_owned(),
        ),
    ] {
        let refused = refusal(&text);
        assert!(refused.contains(&message), "{refused}");
        assert!(!refused.contains("secret"), "{refused}");
    }
}
