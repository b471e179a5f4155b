#![allow(clippy::unwrap_used, reason = "tests")]
use super::*;

#[derive(Debug, Deserialize)]
#[allow(dead_code, reason = "only the error matters")]
struct Outer {
    inner: Vec<Inner>,
}

#[derive(Debug, Deserialize)]
#[allow(dead_code, reason = "only the error matters")]
struct Inner {
    number: u32,
    #[serde(default, deserialize_with = "or_default")]
    flag: bool,
}

fn message(body: &str) -> String {
    parse::<Outer>(body.as_bytes()).unwrap_err().message
}

#[test]
fn errors_repeat_only_the_ends_of_long_values() {
    let body = format!("{{\"model_id\": \"{}\"}}", "ä".repeat(1 << 20));
    let error = parse::<BTreeMap<String, u64>>(body.as_bytes()).unwrap_err();
    assert!(error.message.len() < 1_100, "{}", error.message.len());
    assert!(error.message.starts_with("model_id: invalid type: string \"ää"), "{error}");
    assert!(error.message.ends_with("expected u64"), "{error}");
    let error = parse::<BTreeMap<String, u64>>(format!("{{\"{}\": -1}}", "k".repeat(1 << 20)).as_bytes()).unwrap_err();
    assert!(error.message.len() < 2_200, "{}", error.message.len());
}

#[test]
fn errors_repeat_no_secret() {
    #[derive(Debug, Deserialize)]
    #[allow(dead_code, reason = "only the error matters")]
    struct Secrets {
        #[serde(default)]
        age_encryption_recipients: Vec<String>,
        #[serde(default)]
        weights_access_token: Option<u8>,
        #[serde(default)]
        note: Option<u8>,
    }
    for (field, value) in [
        ("age_encryption_recipients", "age1secret"),
        ("weights_access_token", "eyJsecret"),
        ("note", "tml-secret"),
        ("note", "age-secret-key-1secret"),
    ] {
        let error = parse::<Secrets>(format!("{{\"{field}\": \"{value}\"}}").as_bytes()).unwrap_err().message;
        assert!(error.starts_with(&format!("{field}: invalid type: string")) && !error.contains("1secret"), "{error}");
        assert!(!error.contains(value), "{error}");
    }
}

#[test]
fn values_are_counted_before_they_are_read() {
    for (body, values) in [("1", 0), ("[1,2,[3]]", 4), (r#"{"a":{"b":"[,:{\"[,"}}"#, 4), ("[\"\\\\\",1]", 2)] {
        assert!(check_values(body.as_bytes(), values).is_ok(), "{body}");
        let refused = values > 0 && check_values(body.as_bytes(), values - 1).is_err();
        assert_eq!(refused, values > 0, "{body}");
    }
    let error = check_values(b"[1,2,3]", 2).unwrap_err();
    assert_eq!(error.message, "the body has 3 values, at most 2 are allowed");
}

/// A float in its place would be written otherwise by a chat template.
#[test]
fn integers_above_64_bits_are_refused() {
    let check = |body: &str| check_values(body.as_bytes(), 100);
    for number in
        ["18446744073709551615", "-9223372036854775808", "1e400", "123456789012345678901.0", "1E+0000000000000000001"]
    {
        for body in [
            number.to_owned(),
            format!("[{number}]"),
            format!("{{\"a\":{number} }}"),
            format!("[true,\t{number}\n,null]"),
        ] {
            assert_eq!(check(&body), Ok(()), "{body}");
        }
    }
    assert_eq!(check(r#"["184467440737095516160", "a\"184467440737095516160"]"#), Ok(()));
    for number in ["18446744073709551616", "-9223372036854775809", "100000000000000000000"] {
        let error = check(&format!("{{\"a\":[{number}]}}")).unwrap_err();
        assert_eq!(error.message, format!("the body has the integer {number}, at most 64 bits are allowed"));
    }
    assert!(check(&format!("[{}]", "9".repeat(1 << 20))).unwrap_err().message.len() < 1_100);
}

#[test]
fn errors_name_the_field() {
    assert_eq!(
        message(r#"{"inner":[{"number":1},{"number":"x"}]}"#),
        "inner[1].number: invalid type: string \"x\", expected u32"
    );
    assert_eq!(message(r#"{"inner":[{"number":-1}]}"#), "inner[0].number: invalid value: integer `-1`, expected u32");
    assert_eq!(message("{}"), "missing field `inner`");
    assert!(message(r#"{"inner":[{"number":NaN}]}"#).starts_with("the body is not valid JSON"));
    assert!(message(r#"{"inner":[]} x"#).starts_with("the body is not valid JSON"));
    assert_eq!(message(" \n"), "expected a JSON object, found an empty body: missing field `inner`");
}

#[test]
fn an_array_is_no_object() {
    assert_eq!(message("[[]]"), "invalid type: sequence, expected an object");
    #[derive(Debug, Deserialize)]
    #[allow(dead_code, reason = "only the error matters")]
    struct Holder {
        #[serde(deserialize_with = "object")]
        inner: Inner,
    }
    let error = parse::<Holder>(br#"{"inner":[1]}"#).unwrap_err();
    assert_eq!(error.message, "inner: invalid type: sequence, expected an object");
}

#[test]
fn null_is_the_default() {
    let outer: Outer = parse(br#"{"inner":[{"number":1,"flag":null}]}"#).unwrap();
    assert!(!outer.inner[0].flag);
}

#[test]
fn ids_are_read_beside_wrong_fields() {
    let ids = training_ids(br#"{"model_id":"s:train:0","seq_id":7,"adam_params":[1]}"#).unwrap();
    assert_eq!(ids, (RunId::new("s:train:0"), 7));
    assert_eq!(training_ids(br#"{"model_id":"s:train:0"}"#), None);
    assert_eq!(training_ids(b"\xff"), None);
}

#[test]
fn seeds_fold_into_63_bits() {
    assert_eq!(fold_seed(5), 5);
    assert_eq!(fold_seed(-1), (1 << 63) - 1);
    assert_eq!(fold_seed(1 << 63), 0);
    assert_eq!(fold_seed(i128::from(u64::MAX)), (1 << 63) - 1);
}

#[test]
fn metadata_becomes_text() {
    let metadata: Metadata = serde_json::from_str(r#"{"a":"x","b":1,"c":{"d":null}}"#).unwrap();
    let text = text_metadata(&metadata);
    assert_eq!((text["a"].as_str(), text["b"].as_str(), text["c"].as_str()), ("x", "1", "{\"d\":null}"));
}
