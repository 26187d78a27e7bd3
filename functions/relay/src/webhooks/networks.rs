//! The addresses to which webhooks may be sent. Tenants choose the URLs, so a name that leads to an address inside of
//! the deployment's network, or to the metadata of the machine, must not be called.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;
use std::sync::Arc;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::sync::Semaphore;

/// Networks with private addresses to which webhooks may be sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Networks(Vec<IpNet>);

/// A text that names no networks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} is no network, such as 10.0.0.0/8 or fd00::/8")]
pub struct BadNetworks(String);

/// Parses networks with commas between them.
impl FromStr for Networks {
    type Err = BadNetworks;

    fn from_str(text: &str) -> Result<Self, BadNetworks> {
        let networks = text.split(',').map(str::trim);
        let networks = networks.filter(|network| !network.is_empty());
        let networks = networks.map(|network| {
            let address = || network.parse().map(|address: IpAddr| address.into());
            let network: Result<IpNet, _> = network.parse().or_else(|_| address());
            network
        });
        let networks: Result<_, _> = networks.collect();
        networks.map(Self).map_err(|_| BadNetworks(text.to_owned()))
    }
}

impl Networks {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the address is in one of the networks.
    fn contain(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }

    /// Whether a call may go to an address: a public one, if the call is encrypted, or one of these networks.
    pub(super) fn allow(&self, address: IpAddr, is_encrypted: bool) -> bool {
        self.contain(address) || (is_encrypted && is_public(address))
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8, bits: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), bits)
}

const fn v6(first: u16, second: u16, bits: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(first, second, 0, 0, 0, 0, 0, 0), bits)
}

/// Networks that are not reachable from everywhere, by the registries of special addresses of IANA.
const SPECIAL_V4: [Ipv4Net; 15] = [
    v4(0, 0, 0, 0, 8),
    v4(10, 0, 0, 0, 8),
    v4(100, 64, 0, 0, 10),
    v4(127, 0, 0, 0, 8),
    // The metadata of a machine in a cloud is at 169.254.169.254.
    v4(169, 254, 0, 0, 16),
    v4(172, 16, 0, 0, 12),
    v4(192, 0, 0, 0, 24),
    v4(192, 0, 2, 0, 24),
    v4(192, 88, 99, 0, 24),
    v4(192, 168, 0, 0, 16),
    v4(198, 18, 0, 0, 15),
    v4(198, 51, 100, 0, 24),
    v4(203, 0, 113, 0, 24),
    // Multicast, and reserved.
    v4(224, 0, 0, 0, 4),
    v4(240, 0, 0, 0, 4),
];
/// Only these are given to networks that everyone can reach …
const GLOBAL_V6: Ipv6Net = v6(0x2000, 0, 3);
/// … without those that contain addresses of IPv4, or that are for protocols and examples.
const SPECIAL_V6: [Ipv6Net; 4] = [
    v6(0x2001, 0, 23),
    v6(0x2001, 0x0db8, 32),
    v6(0x2002, 0, 16),
    v6(0x3fff, 0, 20),
];

fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => !SPECIAL_V4.iter().any(|special| special.contains(&address)),
        IpAddr::V6(address) => {
            GLOBAL_V6.contains(&address)
                && !SPECIAL_V6.iter().any(|special| special.contains(&address))
        }
    }
}

/// A name has no address to which a call may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the host of the URL has no address to which webhooks may be sent")]
pub(super) struct ForbiddenAddress;

/// Resolves names to the addresses that are allowed. Each connection is made to what it returns, so that a name whose
/// address changes after a check is no way around it.
pub(super) struct AllowedAddresses<R> {
    pub(super) names: Arc<R>,
    pub(super) networks: Networks,
    pub(super) is_encrypted: bool,
}

impl<R: Resolve + 'static> Resolve for AllowedAddresses<R> {
    fn resolve(&self, name: Name) -> Resolving {
        let (found, networks) = (self.names.resolve(name), self.networks.clone());
        let is_encrypted = self.is_encrypted;
        Box::pin(async move {
            let allowed: Vec<SocketAddr> = found
                .await?
                .filter(|address| networks.allow(address.ip(), is_encrypted))
                .collect();
            if allowed.is_empty() {
                return Err(ForbiddenAddress.into());
            }
            Ok(addresses(allowed))
        })
    }
}

fn addresses(found: Vec<SocketAddr>) -> Addrs {
    Box::new(found.into_iter())
}

/// Names that are looked up at the same time. A lookup blocks a thread, also after its caller has given up, and a tenant
/// chooses the servers that answer.
const LOOKUPS: usize = 16;

/// Resolves names as the system does.
#[derive(Debug, Clone)]
pub(super) struct SystemNames(Arc<Semaphore>);

impl Default for SystemNames {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(LOOKUPS)))
    }
}

impl Resolve for SystemNames {
    fn resolve(&self, name: Name) -> Resolving {
        let lookups = self.0.clone();
        Box::pin(async move {
            let permit = lookups.acquire_owned().await?;
            let found = tokio::task::spawn_blocking(move || {
                let _permit = permit;
                (name.as_str(), 0).to_socket_addrs()
            });
            // A name that does not exist looks like one with a private address: nobody learns which names exist inside
            // of the network.
            let found = found.await?.map_err(|_| ForbiddenAddress)?;
            Ok(addresses(found.collect()))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn networks(text: &str) -> Networks {
        text.parse().unwrap()
    }

    #[test]
    fn only_public_addresses_are_allowed_by_default() {
        for private in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "127.8.9.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.168.1.1",
            "198.19.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            let address = private.parse().unwrap();
            assert!(!Networks::default().allow(address, true), "{private}");
        }
        for public in [
            "1.1.1.1",
            "172.32.0.1",
            "100.128.0.1",
            "2606:4700::1111",
            "::ffff:8.8.8.8",
        ] {
            let address = public.parse().unwrap();
            assert!(Networks::default().allow(address, true), "{public}");
            assert!(
                !Networks::default().allow(address, false),
                "{public} without encryption"
            );
        }
    }

    #[test]
    fn networks_are_allowed_also_without_encryption() {
        let inside = networks("10.0.0.0/8, fd00::/8,192.168.1.7");
        for (address, is_allowed) in [
            ("10.9.9.9", true),
            ("::ffff:10.9.9.9", true),
            ("fd12::1", true),
            ("192.168.1.7", true),
            ("192.168.1.8", false),
        ] {
            assert_eq!(
                inside.allow(address.parse().unwrap(), false),
                is_allowed,
                "{address}"
            );
        }
        assert_eq!(networks(""), Networks::default());
        for bad in ["10.0.0.0/33", "example.com", "10.0.0.0/8;fd00::/8"] {
            assert!(bad.parse::<Networks>().is_err(), "{bad}");
        }
    }

    /// A name whose address is private from the second time on.
    struct Rebinding(AtomicUsize);

    impl Resolve for Rebinding {
        fn resolve(&self, _: Name) -> Resolving {
            let is_first = self.0.fetch_add(1, Ordering::Relaxed) == 0;
            let address = if is_first {
                "93.184.215.14:0"
            } else {
                "169.254.169.254:0"
            };
            let found = [address.parse::<SocketAddr>().unwrap()];
            Box::pin(async move { Ok(addresses(found.to_vec())) })
        }
    }

    #[tokio::test]
    async fn a_name_is_not_followed_to_a_private_address_at_a_later_call() {
        let resolver = AllowedAddresses {
            names: Arc::new(Rebinding(AtomicUsize::new(0))),
            networks: Networks::default(),
            is_encrypted: true,
        };
        let name = || "rebinding.example".parse::<Name>().unwrap();
        let first: Vec<_> = resolver.resolve(name()).await.unwrap().collect();
        assert_eq!(first.len(), 1);
        let second = resolver.resolve(name()).await.err().unwrap();
        assert!(second.is::<ForbiddenAddress>(), "{second}");
    }
}
