//! Where NATS is, under which subjects, and with which credentials.

use std::fmt::{self, Debug, Display, Formatter};
use std::str::FromStr;

use async_nats::{ConnectError, ConnectErrorKind, ConnectOptions, ServerAddr};
use hearback_domain::learning::publication::Subject;
use hearback_lambda::settings::{BadSetting, setting};
use serde::Deserialize;

/// The setting with the URL of the server, or several with commas between them.
pub const NATS_URL: &str = "HEARBACK_NATS_URL";
/// The setting with the prefix of all subjects; optional.
pub const NATS_PREFIX: &str = "HEARBACK_NATS_PREFIX";
/// The setting with the credentials ([`Credentials`]); optional.
pub const NATS_CREDENTIALS: &str = "HEARBACK_NATS_CREDENTIALS";
/// The setting that names the URL of the queue of the messages.
pub const NATS_QUEUE_URL: &str = "HEARBACK_NATS_QUEUE_URL";
/// The setting that names the URL of the queue for messages that NATS rejects.
pub const NATS_DEAD_LETTERS_URL: &str = "HEARBACK_NATS_DEAD_LETTERS_URL";

/// Where NATS is, and how to connect.
#[derive(Clone)]
pub struct NatsSettings {
    /// The servers.
    pub servers: ServerUrls,
    /// The prefix of all subjects.
    pub prefix: Option<SubjectPrefix>,
    /// The credentials, if the server asks for them.
    pub credentials: Option<Credentials>,
}

// The URL may contain a password.
impl Debug for NatsSettings {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("NatsSettings");
        shown.field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl NatsSettings {
    /// Reads the settings.
    pub fn from_env() -> Result<Self, BadSetting> {
        fn parsed<T: FromStr<Err: Display>>(
            name: &'static str,
            given: &str,
        ) -> Result<T, BadSetting> {
            let read = given.parse();
            read.map_err(|error: T::Err| BadSetting::Unusable(name, error.to_string()))
        }
        fn optional<T: FromStr<Err: Display>>(name: &'static str) -> Result<Option<T>, BadSetting> {
            let given = setting(name).ok().filter(|given| !given.is_empty());
            given.map(|given| parsed(name, &given)).transpose()
        }
        Ok(Self {
            servers: parsed(NATS_URL, &setting(NATS_URL)?)?,
            prefix: optional(NATS_PREFIX)?,
            credentials: optional(NATS_CREDENTIALS)?,
        })
    }

    /// The subject under which the server has the messages of `subject`.
    #[must_use]
    pub fn subject(&self, subject: Subject) -> String {
        match &self.prefix {
            Some(SubjectPrefix(prefix)) => format!("{prefix}.{}", subject.as_str()),
            None => subject.as_str().to_owned(),
        }
    }

    pub(super) fn authenticate(
        &self,
        options: ConnectOptions,
    ) -> Result<ConnectOptions, ConnectError> {
        Ok(match &self.credentials {
            None => options,
            Some(Credentials::File(text)) => options.credentials(text).map_err(|_| {
                // Its text may quote the file.
                ConnectError::new(ConnectErrorKind::Authentication)
            })?,
            Some(Credentials::Nkey(seed)) => options.nkey(seed.clone()),
            Some(Credentials::Password { user, password }) => {
                options.user_and_password(user.clone(), password.clone())
            }
            Some(Credentials::Token(token)) => options.token(token.clone()),
        })
    }
}

/// The URLs of servers of one cluster: `nats://host:4222` or `tls://…`, with commas between them.
#[derive(Clone)]
pub struct ServerUrls(pub(super) Vec<ServerAddr>);

/// URLs that cannot be read. The text does not quote them, because they may contain a password.
#[derive(Debug, thiserror::Error)]
#[error("must be URLs of NATS servers, such as nats://127.0.0.1:4222, with commas between them")]
pub struct BadServerUrls;

impl FromStr for ServerUrls {
    type Err = BadServerUrls;

    fn from_str(urls: &str) -> Result<Self, BadServerUrls> {
        let urls = urls.split(',').map(|url| url.trim().parse());
        let urls: Result<_, _> = urls.collect();
        urls.map(Self).map_err(|_| BadServerUrls)
    }
}

/// The prefix of subjects: tokens of letters, digits, `-` and `_`, with a dot between them, at most 100 characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubjectPrefix(String);

/// A prefix that no subject can have.
#[derive(Debug, thiserror::Error)]
#[error("must be at most 100 letters, digits, `-` and `_`, with single dots between them")]
pub struct BadSubjectPrefix;

impl FromStr for SubjectPrefix {
    type Err = BadSubjectPrefix;

    fn from_str(prefix: &str) -> Result<Self, BadSubjectPrefix> {
        let is_token = |token: &str| {
            let is_part = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
            !token.is_empty() && token.chars().all(is_part)
        };
        if prefix.len() <= 100 && prefix.split('.').all(is_token) {
            Ok(Self(prefix.to_owned()))
        } else {
            Err(BadSubjectPrefix)
        }
    }
}

/// How a client proves who it is: the text of a credentials file, or a JSON object with one of `creds` (that text),
/// `nkey` (a seed), `user` and `password`, or `token`.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Credentials {
    /// The text of a credentials file, with a JWT and a seed.
    #[serde(rename = "creds")]
    File(String),
    /// The seed of an nkey.
    Nkey(String),
    /// A token.
    Token(String),
    /// A user and a password.
    #[serde(untagged)]
    Password {
        /// The user.
        user: String,
        /// The password.
        password: String,
    },
}

impl Debug for Credentials {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str("Credentials")
    }
}

/// Credentials that cannot be read. The text does not quote them.
#[derive(Debug, thiserror::Error)]
#[error(
    "must be a credentials file, or a JSON object with `creds`, `nkey`, `token`, or `user` and `password`"
)]
pub struct BadCredentials;

impl FromStr for Credentials {
    type Err = BadCredentials;

    fn from_str(text: &str) -> Result<Self, BadCredentials> {
        if text.contains("-----BEGIN NATS USER JWT-----") && !text.trim_start().starts_with('{') {
            return Ok(Self::File(text.to_owned()));
        }
        serde_json::from_str(text).map_err(|_| BadCredentials)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_part_of_every_subject() {
        let mut settings = NatsSettings {
            servers: "nats://one:4222, tls://two".parse().unwrap(),
            prefix: None,
            credentials: None,
        };
        assert_eq!(settings.servers.0.len(), 2);
        assert!("nats://one,:x:".parse::<ServerUrls>().is_err());
        assert_eq!(settings.subject(Subject::Reward), "learning.signals.reward");
        settings.prefix = Some("eu.prod_1".parse().unwrap());
        assert_eq!(
            settings.subject(Subject::FeedbackProcessed),
            "eu.prod_1.feedback.processed"
        );
        for prefix in ["", ".", "a.", ".a", "a..b", "a b", "a.*", ">", "$JS", "ä"] {
            assert!(prefix.parse::<SubjectPrefix>().is_err(), "{prefix}");
        }
        assert!("a".repeat(101).parse::<SubjectPrefix>().is_err());
    }

    #[test]
    fn credentials_are_a_file_or_one_kind_in_json_and_are_never_printed() {
        let file = "-----BEGIN NATS USER JWT-----\nx\n";
        assert_eq!(
            file.parse::<Credentials>().unwrap(),
            Credentials::File(file.to_owned())
        );
        let text = |text: &str| text.to_owned();
        for (json, credentials) in [
            (r#"{"creds": "file"}"#, Credentials::File(text("file"))),
            (r#"{"nkey": "SUA"}"#, Credentials::Nkey(text("SUA"))),
            (r#"{"token": "t"}"#, Credentials::Token(text("t"))),
            (
                r#"{"user": "u", "password": "p"}"#,
                Credentials::Password {
                    user: text("u"),
                    password: text("p"),
                },
            ),
        ] {
            assert_eq!(json.parse::<Credentials>().unwrap(), credentials);
            assert_eq!(format!("{credentials:?}"), "Credentials");
        }
        for json in [
            "",
            "{}",
            "token",
            r#"{"user": "u"}"#,
            r#"{"token": "t", "nkey": "SUA"}"#,
            r#"{"tokens": "t"}"#,
        ] {
            let error = json.parse::<Credentials>().unwrap_err();
            assert!(!error.to_string().contains("SUA"), "{json}");
        }
    }
}
