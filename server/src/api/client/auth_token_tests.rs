#![allow(clippy::unwrap_used, reason = "tests")]

use axum::body::Body;
use axum::http::{Method, Request, header};
use serde_json::{Value, json};
use trainyard_protocol::TenantId;
use trainyard_scheduler::{NewUser, Role, Scope};

use crate::api::tests::testing::*;
use crate::auth::{KeyRequest, Keys};
use crate::state::Limits;

const SEED: &str = "tml-of-the-file";

async fn keyed() -> Server {
    let keys = Keys::new(vec![(Keys::digest(SEED), TenantId::new("acme"))]);
    Server::with(Limits::default(), keys).await
}

fn request(scopes: Option<Vec<Scope>>, user: Option<&str>) -> KeyRequest {
    let user = user.map(str::to_owned);
    KeyRequest { user, name: "ci".into(), note: "".into(), role: Some(Role::Member), scopes, expires_at: None }
}

async fn create(server: &Server, request: KeyRequest) -> (String, i64) {
    let (key, new) = request.make().unwrap();
    let made = server.state.scheduler.directory().create_key(TenantId::new("acme"), new).await.unwrap();
    (key, made.id)
}

async fn exchange(server: &Server, key: &str) -> String {
    server.post_as(key, "auth/token", json!({})).await.text("jwt")
}

async fn whoami(server: &Server, credential: &str) -> Got {
    server.call(Method::GET, "/api/v1/auth/whoami", &[("x-api-key", credential)], Body::empty()).await
}

/// Why a token is refused; clients are told to make another one.
async fn refused(server: &Server, token: &str) -> String {
    let got = whoami(server, token).await;
    assert!(got.headers[header::WWW_AUTHENTICATE].to_str().unwrap().contains("error=\"invalid_token\""));
    got.refused(401)
}

fn claims(token: &str) -> Value {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let payload = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).unwrap()).unwrap()
}

#[tokio::test]
async fn a_token_allows_what_its_key_does_until_it_expires() {
    let server = keyed().await;
    let (key, id) = create(&server, request(Some(vec![Scope::Sample]), None)).await;
    let token = exchange(&server, &key).await;
    let told = claims(&token);
    assert_eq!((&told["sub"], &told["tenant"]), (&json!(format!("tml:key:{id}")), &json!("acme")));
    assert_eq!((&told["scopes"], &told["role"]), (&json!(["sample"]), &json!("member")));
    assert_eq!((&told["org_id"], &told["email"]), (&json!("acme"), &json!("")));
    assert_eq!(told["exp"].as_i64().unwrap() - told["iat"].as_i64().unwrap(), 900);
    assert_ne!(told["jti"], claims(&exchange(&server, &key).await)["jti"]);
    // It is sent as the key was, in either header.
    let who = whoami(&server, &token).await.json();
    assert_eq!((&who["organisation"], &who["key"]["id"]), (&json!("acme"), &json!(id)));
    assert_eq!(who["expires_at"], "2023-11-14T22:28:20Z");
    let bearer = Request::get("/api/v1/auth/whoami").header("authorization", format!("Bearer {token}"));
    assert_eq!(server.send(bearer.body(Body::empty()).unwrap()).await.json(), who);
    let create_model = server.post_as(&token, "create_model", json!({})).await;
    assert!(create_model.refused(403).contains("it needs the scope train"));
    // A token makes no token that lasts longer.
    server.clock.advance(600);
    assert_eq!(exchange(&server, &token).await, token);
    server.clock.advance(299);
    assert_eq!(whoami(&server, &token).await.json()["credential"], "key");
    server.clock.advance(1);
    assert_eq!(refused(&server, &token).await, "the token has expired");
    assert_eq!(whoami(&server, &exchange(&server, &key).await).await.json()["role"], "member");
}

#[tokio::test]
async fn a_token_ends_with_its_key_and_its_user() {
    let server = keyed().await;
    let (directory, acme) = (server.state.scheduler.directory(), TenantId::new("acme"));
    let user = NewUser { email: "ann@acme.example".into(), name: "Ann".into(), role: Role::Member };
    let user = directory.create_user(acme.clone(), user).await.unwrap();
    let (key, id) = create(&server, request(None, Some("ann@acme.example"))).await;
    let token = exchange(&server, &key).await;
    assert_eq!(claims(&token)["sub"], format!("tml:user:{}", user.id));
    assert_eq!(claims(&token)["email"], "ann@acme.example");
    let who = whoami(&server, &token).await.json();
    assert_eq!(who["user"], json!({"id": user.id, "email": "ann@acme.example", "name": "Ann"}));
    // What the user may not do any more, the token does not allow.
    let change = |role, disabled| directory.change_user(acme.clone(), "ann@acme.example".into(), role, disabled);
    change(Some(Role::ReadOnly), None).await.unwrap();
    assert_eq!(whoami(&server, &token).await.json()["scopes"], json!([]));
    change(Some(Role::Admin), Some(true)).await.unwrap();
    assert!(refused(&server, &token).await.ends_with("the user of the API key is disabled"));
    change(None, Some(false)).await.unwrap();
    assert_eq!(whoami(&server, &token).await.json()["scopes"], json!(["train", "sample", "checkpoints"]));
    directory.revoke_key(acme.clone(), id).await.unwrap();
    assert_eq!(refused(&server, &token).await, "the token is no longer valid: the API key was revoked");
    assert_eq!(whoami(&server, &key).await.refused(401), "the API key was revoked");
}

#[tokio::test]
async fn a_token_ends_no_later_than_its_key() {
    let server = keyed().await;
    let expires_at = Some(trainyard_scheduler::Clock::now(&*server.clock).plus(std::time::Duration::from_secs(100)));
    let (key, _) = create(&server, KeyRequest { expires_at, ..request(None, None) }).await;
    let told = claims(&exchange(&server, &key).await);
    assert_eq!(told["exp"].as_i64().unwrap() - told["iat"].as_i64().unwrap(), 100);
}

#[tokio::test]
async fn keys_of_the_file_and_servers_without_keys_have_tokens_too() {
    let server = keyed().await;
    let token = exchange(&server, SEED).await;
    let who = whoami(&server, &token).await.json();
    assert_eq!((&who["organisation"], &who["credential"]), (&json!("acme"), &json!("configured_key")));
    let local = Server::start().await;
    let token = exchange(&local, KEY).await;
    assert_eq!(whoami(&local, &token).await.json()["credential"], "none");
    // Another server's tokens are strangers' here.
    assert_eq!(refused(&server, &token).await, "the token's issuer has no key with its kid");
    // With the first key only keys count.
    local.state.scheduler.directory().seed_organisations(vec![(TenantId::new("acme"), false)]).await.unwrap();
    create(&local, request(None, None)).await;
    assert!(refused(&local, &token).await.contains("the server had no keys"));
}

#[tokio::test]
async fn the_public_keys_are_published_for_everybody() {
    let server = keyed().await;
    let ask = || Request::get("/.well-known/jwks.json").body(Body::empty()).unwrap();
    assert_eq!(server.send(ask()).await.json(), json!({"keys": []}));
    let token = exchange(&server, SEED).await;
    let got = server.send(ask()).await;
    assert_eq!(got.headers[header::CACHE_CONTROL], "public, max-age=60");
    let keys = got.json()["keys"].as_array().unwrap().clone();
    let parts = (&keys[0]["kty"], &keys[0]["crv"], &keys[0]["alg"], &keys[0]["use"]);
    assert_eq!((keys.len(), parts), (1, (&json!("OKP"), &json!("Ed25519"), &json!("EdDSA"), &json!("sig"))));
    assert!(keys[0]["x"].is_string() && token.len() < 1_000, "{}", token.len());
}
