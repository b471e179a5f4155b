//! The origin of a call.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use axum::http::HeaderMap;

/// The longest list of addresses that is kept of a proxy's header.
const MAX_FORWARDED: usize = 200;

/// Maximum number of proxies between a client and the server.
const MOST_HOPS: usize = 16;

/// The address at the other end of a connection. Travels with each of its requests.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub IpAddr);

/// Describes the address at the other end, and the clients for which a proxy there claims to act; anybody may claim
/// that.
pub fn describe(peer: Option<Peer>, headers: &HeaderMap) -> Option<String> {
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
pub fn is_forwarded(headers: &HeaderMap) -> bool {
    ["forwarded", "x-forwarded-for", "x-real-ip"].iter().any(|name| headers.contains_key(*name))
}

/// Maps an address to the client that it counts for: an IPv4 address, or the /64 of an IPv6 address, which a host
/// usually gets.
pub fn client_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
    }
}

/// A network in the notation `ADDRESS/BITS`, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Network {
    address: IpAddr,
    bits: u32,
}

impl Network {
    fn contains(self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                (own.to_bits() ^ other.to_bits()).checked_shr(32 - self.bits).unwrap_or(0) == 0
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                (own.to_bits() ^ other.to_bits()).checked_shr(128 - self.bits).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| ())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), |bits| bits.parse().map_err(|_| ()))?;
        if bits > most { Err(()) } else { Ok(Self { address, bits }) }
    }
}

/// Addresses of the proxies whose `X-Forwarded-For` is trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedProxies(Vec<Network>);

impl Default for TrustedProxies {
    /// Proxies of this machine.
    fn default() -> Self {
        Self(vec![
            Network { address: Ipv4Addr::LOCALHOST.into(), bits: 8 },
            Network { address: Ipv6Addr::LOCALHOST.into(), bits: 128 },
        ])
    }
}

impl TrustedProxies {
    /// Reads addresses and networks (`10.0.0.0/8`).
    ///
    /// # Errors
    /// Returns the first text that is neither.
    pub fn read(networks: &[String]) -> Result<Self, String> {
        networks.iter().map(|text| text.trim().parse().map_err(|()| text.clone())).collect::<Result<_, _>>().map(Self)
    }

    fn contain(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }

    /// Finds the client of a request: the nearest address that is not a trusted proxy. Addresses that a client writes into
    /// the header itself are farther away than its own, so they have no effect.
    pub fn client(&self, peer: Option<Peer>, headers: &HeaderMap) -> Option<IpAddr> {
        let Peer(mut nearest) = peer?;
        let lines = headers.get_all("x-forwarded-for").iter().filter_map(|line| line.to_str().ok());
        let lines: Vec<&str> = lines.collect();
        let mut farther = lines.iter().rev().flat_map(|line| line.rsplit(',')).take(MOST_HOPS).map(forwarded_address);
        while self.contain(nearest)
            && let Some(Some(address)) = farther.next()
        {
            nearest = address;
        }
        Some(client_of(nearest))
    }
}

/// Reads an address of `X-Forwarded-For`; some proxies add a port.
fn forwarded_address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let plain = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    plain.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()))
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

    fn client(networks: &[&str], peer: &str, forwarded: &[&str]) -> String {
        let networks: Vec<String> = networks.iter().map(|text| (*text).to_owned()).collect();
        let mut headers = HeaderMap::new();
        for line in forwarded {
            headers.append("x-forwarded-for", line.parse().unwrap());
        }
        let proxies = TrustedProxies::read(&networks).unwrap();
        proxies.client(Some(Peer(peer.parse().unwrap())), &headers).unwrap().to_string()
    }

    #[test]
    fn only_trusted_proxies_name_the_client() {
        let proxies = ["10.0.0.0/8", "2001:db8:1::/48"];
        assert_eq!(client(&proxies, "203.0.113.1", &["198.51.100.7"]), "203.0.113.1");
        assert_eq!(client(&proxies, "10.1.2.3", &["198.51.100.7"]), "198.51.100.7");
        assert_eq!(client(&proxies, "::ffff:10.1.2.3", &["198.51.100.7:443"]), "198.51.100.7");
        assert_eq!(client(&proxies, "2001:db8:1::9", &["[2001:db8:2::7]:443"]), "2001:db8:2::");
        // The client wrote the first address itself.
        assert_eq!(client(&proxies, "10.1.2.3", &["192.0.2.1, 198.51.100.7, 10.9.9.9"]), "198.51.100.7");
        assert_eq!(client(&proxies, "10.1.2.3", &["192.0.2.1", "198.51.100.7"]), "198.51.100.7");
        assert_eq!(client(&proxies, "10.1.2.3", &["192.0.2.1, unknown"]), "10.1.2.3");
        assert_eq!(client(&proxies, "10.1.2.3", &[]), "10.1.2.3");
        let own = TrustedProxies::default();
        assert!(own.contain("127.0.0.9".parse().unwrap()) && !own.contain("10.0.0.1".parse().unwrap()));
    }

    #[test]
    fn networks_have_bounds() {
        let read = |text: &str| TrustedProxies::read(&[text.to_owned()]);
        assert!(read("0.0.0.0/0").unwrap().contain("203.0.113.1".parse().unwrap()));
        assert!(!read("203.0.113.1").unwrap().contain("203.0.113.2".parse().unwrap()));
        for wrong in ["10.0.0.0/33", "::/129", "proxy", "10.0.0.0/", ""] {
            assert_eq!(read(wrong), Err(wrong.to_owned()));
        }
    }
}
