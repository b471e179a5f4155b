#![allow(clippy::unwrap_used, reason = "tests")]

use hmac::{Hmac, KeyInit, Mac};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::json;
use sha2::Sha256;

use super::super::{PublicKeys, SigningKey, initialise};
use super::*;

const NOW: i64 = 1_700_000_000;
const EXPECTED: Expected<'_> = Expected { issuer: "them", audience: "us", leeway: 0, now: NOW };

fn key() -> SigningKey {
    initialise();
    SigningKey::from_seed(&[7; 32]).unwrap()
}

fn claims() -> Value {
    json!({"iss": "them", "aud": "us", "sub": "ann", "iat": NOW, "nbf": NOW, "exp": NOW + 10})
}

fn changed(name: &str, value: Value) -> Value {
    let mut claims = claims();
    claims[name] = value;
    claims
}

fn without(name: &str) -> Value {
    let mut claims = claims();
    claims.as_object_mut().unwrap().remove(name);
    claims
}

fn part(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

/// A token with this header, signed by `sign`.
fn token(header: &Value, claims: &Value, sign: impl Fn(&str) -> Vec<u8>) -> String {
    let message = format!("{}.{}", part(header), part(claims));
    let signature = URL_SAFE_NO_PAD.encode(sign(&message));
    format!("{message}.{signature}")
}

fn checked(token: &str) -> Result<Map<String, Value>, TokenError> {
    let keys = PublicKeys::new(vec![key().public_key(), SigningKey::from_seed(&[8; 32]).unwrap().public_key()]);
    let token = Unverified::parse(token)?;
    token.verify(keys.find(token.kid.as_deref())?, EXPECTED)
}

fn refused(token: &str) -> TokenError {
    checked(token).unwrap_err()
}

#[test]
fn a_token_of_a_known_key_is_accepted() {
    assert_eq!(checked(&key().sign(&claims()).unwrap()).unwrap()["sub"], "ann");
    let both = key().sign(&changed("aud", json!(["others", "us"]))).unwrap();
    assert_eq!(checked(&both).unwrap()["iss"], "them");
    // A clock may be a little behind the one of the issuer.
    let soon = key().sign(&changed("nbf", json!(NOW + 60))).unwrap();
    assert!(checked(&soon).is_ok());
}

#[test]
fn claims_must_be_there_and_right() {
    let missing = |name: &str| TokenError::Missing(name.to_owned());
    for (claims, reason) in [
        (changed("exp", json!(NOW)), TokenError::Expired),
        (changed("exp", json!(NOW - 1_000_000)), TokenError::Expired),
        (changed("exp", json!("tomorrow")), missing("exp")),
        (changed("exp", json!(-5)), missing("exp")),
        (changed("exp", json!(1e300)), missing("exp")),
        (without("exp"), missing("exp")),
        (changed("nbf", json!(NOW + 61)), TokenError::NotYet),
        (changed("nbf", json!("now")), TokenError::claim("nbf", "is not a time in seconds")),
        (changed("iat", json!(NOW + 61)), TokenError::IssuedInFuture),
        (changed("iss", json!("others")), TokenError::Issuer),
        (changed("iss", json!(["them"])), TokenError::claim("iss", "is not a string")),
        (without("iss"), missing("iss")),
        (changed("aud", json!("others")), TokenError::Audience),
        (changed("aud", json!([])), TokenError::Audience),
        (without("aud"), missing("aud")),
    ] {
        assert_eq!(refused(&key().sign(&claims).unwrap()), reason, "{claims}");
    }
}

#[test]
fn nobody_else_can_sign() {
    let good = key().sign(&claims()).unwrap();
    let (message, signature) = good.rsplit_once('.').unwrap();
    let (header, _) = message.split_once('.').unwrap();
    // Another payload, another key's signature, half a signature, none.
    let admin = part(&changed("sub", json!("root")));
    assert_eq!(refused(&format!("{header}.{admin}.{signature}")), TokenError::Signature);
    let kid = json!({"alg": "EdDSA", "kid": key().kid()});
    let other = SigningKey::from_seed(&[8; 32]).unwrap().sign(&claims()).unwrap();
    assert_eq!(refused(&format!("{message}.{}", other.rsplit_once('.').unwrap().1)), TokenError::Signature);
    assert_eq!(refused(&format!("{message}.{}", &signature[..40])), TokenError::Signature);
    assert_eq!(refused(&format!("{message}.")), TokenError::Signature);
    assert_eq!(refused(&format!("{message}.??")), TokenError::Malformed("the signature is not base64url"));
    // A key that nobody published, and no key at all.
    assert_eq!(refused(&SigningKey::from_seed(&[9; 32]).unwrap().sign(&claims()).unwrap()), TokenError::UnknownKey);
    assert_eq!(refused(&token(&json!({"alg": "EdDSA"}), &claims(), |_| vec![0; 64])), TokenError::NoKeyId);
    // The name of one key with the signature of another.
    let stolen = SigningKey::from_seed(&[9; 32]).unwrap();
    let signed = stolen.sign(&claims()).unwrap();
    let renamed = format!("{}.{}", part(&kid), signed.split_once('.').unwrap().1);
    assert_eq!(refused(&renamed), TokenError::Signature);
    // A key in the token's own header proves nothing.
    let jwk = json!({"kty": "OKP", "crv": "Ed25519", "x": stolen.public_jwk().x});
    for header in [
        json!({"alg": "EdDSA", "kid": key().kid(), "jwk": jwk}),
        json!({"alg": "EdDSA", "kid": key().kid(), "jku": "https://evil.example/keys"}),
    ] {
        assert_eq!(refused(&token(&header, &claims(), |_| vec![1; 64])), TokenError::Signature);
    }
}

/// Header, payload and signature are covered to the last bit: any changed character makes the token invalid.
#[test]
fn no_character_can_be_changed() {
    let good = key().sign(&claims()).unwrap();
    for index in 0..good.len() {
        for other in ["A", "B", "g", "9", "_", "-", "=", ".", " "] {
            let mut changed = good.clone();
            changed.replace_range(index..=index, other);
            assert!(changed == good || checked(&changed).is_err(), "{index}: {changed}");
        }
        assert!(checked(&good[..index]).is_err());
    }
}

#[test]
fn the_key_decides_the_algorithm() {
    let kid = key().kid().to_owned();
    for none in ["none", "None", "NONE", "nOnE"] {
        let header = json!({"alg": none, "kid": kid});
        assert_eq!(refused(&token(&header, &claims(), |_| Vec::new())), TokenError::NotSigned);
        // With the signature of a good one too.
        let good = key().sign(&claims()).unwrap();
        let stripped = format!("{}.{}", part(&header), good.split_once('.').unwrap().1);
        assert_eq!(refused(&stripped), TokenError::NotSigned);
    }
    // The public key, in the forms in which it is published, taken for a shared secret.
    let x = key().public_jwk().x;
    for (name, secret) in [("HS256", x.clone().into_bytes()), ("HS256", URL_SAFE_NO_PAD.decode(&x).unwrap())] {
        let header = json!({"alg": name, "kid": kid});
        let confused = token(&header, &claims(), |message| {
            let mut mac = Hmac::<Sha256>::new_from_slice(&secret).unwrap();
            mac.update(message.as_bytes());
            mac.finalize().into_bytes().to_vec()
        });
        assert_eq!(refused(&confused), TokenError::SharedSecret);
    }
    for name in ["ES256", "RS256", "PS512", "ES512", "Ed25519", "eddsa", ""] {
        let header = json!({"alg": name, "kid": kid});
        assert_eq!(refused(&token(&header, &claims(), |_| vec![0; 64])), TokenError::Algorithm("EdDSA".to_owned()));
    }
}

#[test]
fn what_is_no_token_is_refused() {
    let good = key().sign(&claims()).unwrap();
    for (text, reason) in [
        ("eyJ".to_owned(), "expected three dot-separated segments"),
        (good.replacen('.', "", 1), "expected three dot-separated segments"),
        (format!("{good}.x"), "expected three dot-separated segments"),
        (format!("eyJ?{good}"), "the header is not base64url"),
        (format!("eyJ=.{good}").replacen(&good, "e30.", 1), "the header is not base64url"),
        (
            format!("{}.e30.", URL_SAFE_NO_PAD.encode("{\"alg\":7}")),
            "expected the header to be a JSON object with alg and kid as strings",
        ),
        (
            format!("{}.e30.", URL_SAFE_NO_PAD.encode("{\"alg\":\"EdDSA\",\"alg\":\"none\"}")),
            "expected the header to be a JSON object with alg and kid as strings",
        ),
        (format!("{}.!.", part(&json!({"alg": "EdDSA"}))), "the payload is not base64url"),
        (format!("{}.W10.", part(&json!({"alg": "EdDSA"}))), "expected the payload to be a JSON object"),
    ] {
        assert_eq!(refused(&text), TokenError::Malformed(reason), "{text}");
    }
    assert_eq!(refused("eyJ.a.b.c.d"), TokenError::Encrypted);
    let long = key().sign(&changed("sub", json!("x".repeat(9_000)))).unwrap();
    assert_eq!(refused(&long), TokenError::TooLong(long.len()));
    let header = json!({"alg": "EdDSA", "kid": key().kid(), "crit": ["b64"], "b64": false});
    assert_eq!(refused(&token(&header, &claims(), |_| vec![0; 64])), TokenError::Critical);
}

#[test]
fn keys_of_other_types_verify_too_and_unusable_ones_are_left_out() {
    initialise();
    let random = SystemRandom::new();
    let pair = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pair.as_ref(), &random).unwrap();
    let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
    let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let ec = json!({"kty": "EC", "crv": "P-256", "kid": "ec", "use": "sig", "x": encode(x), "y": encode(y)});
    let with = |name: &str, value: Value| {
        let mut key = ec.clone();
        key[name] = value;
        key
    };
    let rsa = |bytes: usize| json!({"kty": "RSA", "kid": "rsa", "n": encode(&vec![0xC1; bytes]), "e": "AQAB"});
    let set = json!({"keys": [
        ec, rsa(256), with("use", json!("enc")), with("key_ops", json!(["encrypt"])), with("alg", json!("ES384")),
        with("alg", json!("ECDH-ES")), with("crv", json!("P-521")), rsa(128), with("x", json!("?")),
        {"kty": "oct", "k": "c2VjcmV0", "kid": "oct"}, {"kty": "new", "kid": "new"}, {"kid": 7}, "key",
    ]});
    let (keys, unusable) = PublicKeys::from_set(&set).unwrap();
    assert_eq!((keys.len(), unusable.len()), (2, 11), "{unusable:?}");
    let sign = |message: &str| pair.sign(&random, message.as_bytes()).unwrap().as_ref().to_vec();
    let verify = |text: &str| {
        let token = Unverified::parse(text).unwrap();
        token.verify(keys.find(token.kid.as_deref())?, EXPECTED)
    };
    let header = json!({"alg": "ES256", "kid": "ec"});
    assert_eq!(verify(&token(&header, &claims(), sign)).unwrap()["sub"], "ann");
    assert_eq!(
        verify(&token(&header, &claims(), |message| sign(&format!("{message}.")))).unwrap_err(),
        TokenError::Signature
    );
    let header = json!({"alg": "RS256", "kid": "ec"});
    assert_eq!(verify(&token(&header, &claims(), sign)).unwrap_err(), TokenError::Algorithm("ES256".to_owned()));
    let header = json!({"alg": "RS256", "kid": "rsa"});
    assert_eq!(verify(&token(&header, &claims(), |_| vec![3; 256])).unwrap_err(), TokenError::Signature);
    for set in [json!([]), json!({}), json!({"keys": {}}), json!("keys")] {
        assert!(PublicKeys::from_set(&set).is_none());
    }
}
