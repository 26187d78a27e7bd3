//! How people sign in: with a token that they have, or at an identity provider.

use std::fmt::Write as _;

/// The id of the console as a public client of the provider. Without one, people sign in with a token only.
pub const CLIENT_ID: &str = "HEARBACK_CONSOLE_CLIENT_ID";
/// The issuer of the provider.
pub const ISSUER: &str = "HEARBACK_CONSOLE_ISSUER";
/// The audience for which tokens are requested.
pub const AUDIENCE: &str = "HEARBACK_CONSOLE_AUDIENCE";
/// The scopes that are requested, with spaces between them.
pub const SCOPE: &str = "HEARBACK_CONSOLE_SCOPE";
/// Origins of the provider's endpoints, besides that of the issuer, with commas between them.
pub const ORIGINS: &str = "HEARBACK_CONSOLE_ORIGINS";

/// No other origin, no inline script or style, and no markup made of strings.
const POLICY: &str = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    object-src 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// The identity provider at which people sign in; by default there is none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SignIn {
    client: String,
    issuer: String,
    audience: String,
    scope: String,
    origins: String,
}

impl SignIn {
    /// The provider that the environment names.
    #[must_use]
    pub fn from_env() -> Self {
        let setting = |name| std::env::var(name).unwrap_or_default();
        let named = Self {
            client: setting(CLIENT_ID),
            issuer: setting(ISSUER),
            audience: setting(AUDIENCE),
            scope: setting(SCOPE),
            origins: setting(ORIGINS),
        };
        if named.client.is_empty() || named.issuer.is_empty() {
            return Self::default();
        }
        named
    }

    /// The page with what its scripts need to know.
    pub(crate) fn described(&self, page: &str) -> String {
        let members = [
            ("issuer", &self.issuer),
            ("client", &self.client),
            ("audience", &self.audience),
            ("scope", &self.scope),
        ];
        let mut meta = String::from("<meta name=\"sign-in\"");
        for (name, value) in members.into_iter().filter(|(_, value)| !value.is_empty()) {
            let value = value.replace('&', "&amp;").replace('"', "&quot;");
            let _ = write!(meta, " data-{name}=\"{value}\"");
        }
        meta.push('>');
        page.replace("<meta name=\"sign-in\">", &meta)
    }

    /// The content security policy, which allows requests to the provider.
    pub(crate) fn policy(&self) -> String {
        let named = std::iter::once(self.issuer.as_str()).chain(self.origins.split(','));
        let origins: Vec<_> = named.filter_map(origin).collect();
        if origins.is_empty() {
            return POLICY.to_owned();
        }
        format!("{POLICY}; connect-src 'self' {}", origins.join(" "))
    }
}

/// The origin of a URL, if it cannot be anything else in a policy.
fn origin(url: &str) -> Option<&str> {
    let url = url.trim();
    let host = url.find("://")? + "://".len();
    let end = url[host..].find('/').map_or(url.len(), |at| host + at);
    let origin = &url[..end];
    let is_plain = |char: char| char.is_ascii_alphanumeric() || ":/.-[]".contains(char);
    (end > host && origin.chars().all(is_plain)).then_some(origin)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sign_in() -> SignIn {
        SignIn {
            client: "a\"b".to_owned(),
            issuer: "https://login.example.com/tenant".to_owned(),
            audience: "hearback".to_owned(),
            scope: "openid".to_owned(),
            origins: "https://auth.example.com:8443/token, evil; script-src *".to_owned(),
        }
    }

    #[test]
    fn the_policy_allows_the_origins_of_the_provider_and_nothing_else() {
        let policy = sign_in().policy();
        let connect = policy.strip_prefix(POLICY).unwrap();
        let origins = "https://login.example.com https://auth.example.com:8443";
        assert_eq!(connect, format!("; connect-src 'self' {origins}"));
        assert_eq!(SignIn::default().policy(), POLICY);
    }

    #[test]
    fn the_page_describes_the_provider() {
        let page = "<meta name=\"sign-in\">";
        let described = "<meta name=\"sign-in\" data-issuer=\"https://login.example.com/tenant\" \
            data-client=\"a&quot;b\" data-audience=\"hearback\" data-scope=\"openid\">";
        assert_eq!(sign_in().described(page), described);
        assert_eq!(SignIn::default().described(page), page);
    }
}
