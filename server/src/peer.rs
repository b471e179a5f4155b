//! The origin of a call.

use std::net::IpAddr;

use axum::http::HeaderMap;

/// The longest list of addresses that is kept of a proxy's header.
const MAX_FORWARDED: usize = 200;

/// The address at the other end of a connection. Travels with each of its requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// Describes the address at the other end, and the clients for which a proxy there claims to act; anybody may claim
/// that.
pub(crate) fn describe(peer: Option<Peer>, headers: &HeaderMap) -> Option<String> {
    let plain = |text: &&str| {
        let byte = |byte: u8| byte.is_ascii_hexdigit() || b".:, []".contains(&byte);
        !text.is_empty() && text.len() <= MAX_FORWARDED && text.bytes().all(byte)
    };
    let forwarded = headers.get("x-forwarded-for").and_then(|value| value.to_str().ok()).filter(plain);
    match (peer, forwarded) {
        (Some(Peer(peer)), Some(forwarded)) => Some(format!("{peer} for {forwarded}")),
        (Some(Peer(peer)), None) => Some(peer.to_string()),
        (None, _) => None,
    }
}

/// Returns whether a proxy passed a request on.
pub(crate) fn is_forwarded(headers: &HeaderMap) -> bool {
    ["forwarded", "x-forwarded-for", "x-real-ip"].iter().any(|name| headers.contains_key(*name))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_proxy_may_say_whom_it_acts_for_in_addresses_alone() {
        let peer = Some(Peer("10.0.0.1".parse().unwrap()));
        let with = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("x-forwarded-for", value.parse().unwrap());
            describe(peer, &headers).unwrap()
        };
        assert_eq!(with("203.0.113.9, 2001:db8::1"), "10.0.0.1 for 203.0.113.9, 2001:db8::1");
        for forged in ["evil; DROP", "", &"1.".repeat(200)] {
            assert_eq!(with(forged), "10.0.0.1");
        }
        assert_eq!(describe(None, &HeaderMap::new()), None);
    }
}
