//! The host names that a server on this machine accepts.
//!
//! A browser sends a page's requests to whatever address the page's host name resolves to. A page whose name is made to
//! resolve to this machine (DNS rebinding) has the same origin as a server here, but its requests still have the page's
//! name in `Host`.

use std::net::{Ipv4Addr, Ipv6Addr};

use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri, header};

/// The hosts that a server accepts: loopback names, and additional ones.
#[derive(Debug, Clone, Default)]
pub struct Hosts {
    additional: Vec<Host>,
}

/// A host name or address, without a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host(String);

/// The text is not a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a host is a name or an address, without a scheme and a port")]
pub struct InvalidHost;

impl std::str::FromStr for Host {
    type Err = InvalidHost;

    fn from_str(text: &str) -> Result<Self, InvalidHost> {
        let text = match unbracketed(text).unwrap_or(text).parse::<Ipv6Addr>() {
            Ok(address) => format!("[{address}]"),
            Err(_) => text.to_ascii_lowercase(),
        };
        // An asterisk would look like a wildcard.
        let is_valid = host_of(&text) == Some(text.as_str()) && !text.contains('*');
        is_valid.then_some(Self(text)).ok_or(InvalidHost)
    }
}

impl Hosts {
    /// The loopback names and these hosts.
    #[must_use]
    pub fn with(additional: Vec<Host>) -> Self {
        Self { additional }
    }

    /// Whether a request is for one of these hosts, on any port. A request may name its host in the request line, in
    /// `Host`, or in both; each of them must be accepted.
    #[must_use]
    pub fn includes(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let line = uri.authority().map(|authority| Some(authority.as_str()));
        let given = headers.get_all(header::HOST).iter();
        let mut hosts = given.map(|host| host.to_str().ok()).chain(line).peekable();
        hosts.peek().is_some()
            && hosts.all(|host| {
                host.and_then(host_of)
                    .is_some_and(|name| is_loopback(name) || self.is_additional(name))
            })
    }

    fn is_additional(&self, name: &str) -> bool {
        name.parse::<Host>()
            .is_ok_and(|host| self.additional.contains(&host))
    }
}

/// The host of `host` or `host:port`.
fn host_of(text: &str) -> Option<&str> {
    let authority: Authority = text.parse().ok()?;
    // Fails on `user@name`, which no client sends.
    let port = text.strip_prefix(authority.host())?;
    let is_valid = port.is_empty() || port.strip_prefix(':')?.parse::<u16>().is_ok();
    let host = text.get(..text.len() - port.len())?;
    (is_valid && !host.is_empty()).then_some(host)
}

/// The IPv6 address inside brackets.
fn unbracketed(name: &str) -> Option<&str> {
    name.strip_prefix('[')?.strip_suffix(']')
}

fn is_loopback(name: &str) -> bool {
    match unbracketed(name) {
        Some(address) => address.parse() == Ok(Ipv6Addr::LOCALHOST),
        None => {
            name.eq_ignore_ascii_case("localhost")
                || name
                    .parse()
                    .is_ok_and(|address: Ipv4Addr| address.is_loopback())
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn is_accepted(hosts: &Hosts, line: &str, given: &[&str]) -> bool {
        let given = given
            .iter()
            .map(|host| (header::HOST, HeaderValue::from_str(host).unwrap()));
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            headers.append(name, value);
        }
        hosts.includes(&line.parse().unwrap(), &headers)
    }

    #[test]
    fn loopback_names_are_accepted_with_and_without_a_port() {
        let hosts = Hosts::default();
        for host in [
            "127.0.0.1",
            "127.0.0.1:3000",
            "127.8.9.10:3000",
            "localhost",
            "LocalHost:80",
            "[::1]",
            "[::1]:3000",
        ] {
            assert!(is_accepted(&hosts, "/", &[host]), "{host}");
        }
    }

    #[test]
    fn other_names_are_rejected() {
        let hosts = Hosts::default();
        for host in [
            "",
            ":3000",
            "evil.example",
            "evil.example:3000",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "evil.localhost",
            "localhost.",
            "127.1",
            "0x7f.0.0.1",
            "2130706433",
            "0.0.0.0",
            "128.0.0.1",
            "[::]",
            "[::2]:3000",
            "[::ffff:127.0.0.1]",
            "::1",
            "127.0.0.1@evil.example",
            "evil.example@127.0.0.1",
            "127.0.0.1:evil",
            "127.0.0.1:",
            "127.0.0.1:99999",
            "127.0.0.1 evil.example",
            "127.0.0.1, evil.example",
            "localhost/evil",
            "localhost#",
            "[::1",
            "[::1]evil",
        ] {
            assert!(!is_accepted(&hosts, "/", &[host]), "{host}");
        }
    }

    #[test]
    fn a_request_must_name_accepted_hosts_only() {
        let hosts = Hosts::default();
        assert!(!is_accepted(&hosts, "/", &[]), "a request without a host");
        assert!(!is_accepted(&hosts, "/", &["127.0.0.1", "evil.example"]));
        assert!(!is_accepted(&hosts, "http://evil.example/", &["127.0.0.1"]));
        assert!(!is_accepted(&hosts, "http://127.0.0.1/", &["evil.example"]));
        assert!(is_accepted(&hosts, "http://127.0.0.1/", &["127.0.0.1"]));
        assert!(
            is_accepted(&hosts, "http://localhost:3001/", &[]),
            "HTTP/2 names the host in the request line only"
        );
    }

    #[test]
    fn additional_hosts_are_accepted_in_any_case_and_on_any_port() {
        let additional =
            ["Feedback.example", "10.1.2.3", "fd00::1"].map(|host| host.parse().unwrap());
        let hosts = Hosts::with(additional.to_vec());
        for host in [
            "feedback.EXAMPLE",
            "feedback.example:443",
            "10.1.2.3:3000",
            "[FD00:0::1]:3000",
            "localhost",
        ] {
            assert!(is_accepted(&hosts, "/", &[host]), "{host}");
        }
        for host in ["x.feedback.example", "10.1.2.4", "[fd00::2]"] {
            assert!(!is_accepted(&hosts, "/", &[host]), "{host}");
        }
    }

    #[test]
    fn a_host_with_a_scheme_or_port_is_invalid() {
        for text in [
            "",
            "https://feedback.example",
            "feedback.example:443",
            "a b",
            "*",
            "a/b",
        ] {
            assert_eq!(text.parse::<Host>(), Err(InvalidHost), "{text}");
        }
    }
}
