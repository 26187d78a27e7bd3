//! Keys, tokens and passwords. All of them are invented, or the examples of their issuers.

use super::*;

/// A token in two parts, so that secret scanners do not report this file.
fn token(prefix: &str, rest: &str) -> String {
    format!("{prefix}{rest}")
}

fn tokens() -> Vec<String> {
    let rest = "16C7e42F292c6912E7710c838347Ae178B4a";
    let mut tokens: Vec<String> = [
        "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "glpat-", "npm_", "hf_",
    ]
    .into_iter()
    .map(|prefix| token(prefix, rest))
    .collect();
    tokens.extend([
        token("AKIA", "IOSFODNN7EXAMPLE"),
        token("ASIA", "Y34FZKBOKMUTVV7A"),
        token(
            "github_pat_",
            "11ABCDEFG0abcdefghijkl_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVW",
        ),
        token("xoxb-", "17653672481-19874698323-pdFZKVeTuE8sk7oOcHrzqqgy"),
        token("xoxp-", "123456789012-abcdefABCDEF"),
        token("xapp-", "1-A111-222-abc"),
        token("sk_live_", "4eC39HqLyjWDarjtT1zdp7dc"),
        token("rk_live_", "4eC39HqLyjWDarjtT1zdp7dc"),
        token("sk-", "proj-abcdefghij0123456789ABCDEFGHIJ"),
        token("AIza", "SyDaGmWKa4JsXZ-HjGw7ISLn_3namBGewQe"),
        token(
            "eyJhbGciOiJIUzI1NiJ9",
            ".eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJlX29mX2l0",
        ),
        token("eyJhbGciOiJub25lIn0", ".eyJzdWIiOiJhZGEifQ"),
    ]);
    tokens
}

#[test]
fn tokens_are_replaced() {
    let tokens = tokens();
    let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
    becomes("[secret]", &tokens);
    for token in tokens {
        for around in [
            "'{}'",
            "\"{}\"",
            "`{}`",
            "<{}>",
            "a={}&b=1",
            "KEY={}",
            "x:{},",
            "令牌{}。",
            "_{}",
        ] {
            let text = around.replace("{}", token);
            assert_eq!(scrub(&text), around.replace("{}", "[secret]"), "{text}");
        }
    }
}

#[test]
fn token_after_bearer_is_replaced() {
    check(&[
        (
            "Authorization: Bearer abc123",
            "Authorization: Bearer [secret]",
        ),
        (
            "authorization: bearer mF_9.B5f-4.1JqM",
            "authorization: bearer [secret]",
        ),
        (
            "-H 'Authorization: Bearer mF_9.B5f-4.1JqM'",
            "-H 'Authorization: Bearer [secret]'",
        ),
        (
            r#"{"Authorization":"Bearer mF_9.B5f-4.1JqM"}"#,
            r#"{"Authorization":"Bearer [secret]"}"#,
        ),
        (
            "Authorization: Basic YWRhOmxvdmVsYWNl",
            "Authorization: Basic [secret]",
        ),
        ("I sent Bearer mF_9.B5f-4.1JqM.", "I sent Bearer [secret]."),
        ("Bearer abcdefghijklmnopqrstuvwx", "Bearer [secret]"),
        ("bearer: AbCdEfGhIjKlMn", "bearer: [secret]"),
    ]);
    are_kept(&[
        "a bearer of bad news",
        "Bearer authentication",
        "the Bearer token",
        "Bearer Token",
        "Authorization: required",
        "Authorization: Bearer",
        "Authorization: Bearer [secret]",
        "forbearers 12345678",
    ]);
}

/// A private key with its titles in parts, for the same reason.
fn key(kind: &str, body: &str) -> String {
    let (begin, end) = ("BEGIN", "END");
    format!("-----{begin} {kind}-----{body}-----{end} {kind}-----")
}

const BODY: &str = "\nMIIEpAIBAAKCAQEA75Yo+kl\nq9Zf0Yw==\n";

#[test]
fn private_keys_are_replaced() {
    for kind in [
        "PRIVATE KEY",
        "RSA PRIVATE KEY",
        "OPENSSH PRIVATE KEY",
        "ENCRYPTED PRIVATE KEY",
        "PGP PRIVATE KEY BLOCK",
    ] {
        for body in [
            BODY,
            "\\nMIIEpAIBAAKCAQEA75Yo+kl\\nq9Zf0Yw==\\n",
            " MIIEpAIBAAKCAQEA75Yo ",
            "\r\nProc-Type: 4,ENCRYPTED\r\n\r\nMIIE\r\n",
        ] {
            let text = format!("see\n{}\nthanks", key(kind, body));
            assert_eq!(scrub(&text), "see\n[secret]\nthanks", "{text}");
        }
    }
    let whole = key("RSA PRIVATE KEY", BODY);
    let cut = |at: &str| whole[..whole.find(at).unwrap() + at.len()].to_owned();
    assert_eq!(scrub(&cut("Yo+kl")), "[secret]");
    assert_eq!(scrub(&cut("q9Zf")), "[secret]");
    assert_eq!(
        scrub(&format!("{}\n\nIt ends here.", cut("Yo+kl"))),
        "[secret]\n\nIt ends here."
    );
    for kind in ["PUBLIC KEY", "CERTIFICATE"] {
        let text = key(kind, BODY);
        assert_eq!(scrub(&text), text);
    }
}

#[test]
fn values_of_secret_parameters_are_replaced() {
    check(&[
        (
            "https://x.example/a?token=abc",
            "https://x.example/a?token=[secret]",
        ),
        (
            "https://x.example/a?b=1&access_token=a.b-c#d",
            "https://x.example/a?b=1&access_token=[secret]#d",
        ),
        ("?api_key=k&x=2", "?api_key=[secret]&x=2"),
        ("?x=2&apiKey=k%20l", "?x=2&apiKey=[secret]"),
        ("?password=p@ss,w:rd!x", "?password=[secret]"),
        ("(see ?password=secret).", "(see ?password=[secret])."),
        ("#id_token=x&state=1", "#id_token=[secret]&state=1"),
        ("?X-Amz-Signature=0f1e2d3c", "?X-Amz-Signature=[secret]"),
        ("?a=1&amp;pwd=x1", "?a=1&amp;pwd=[secret]"),
        ("?token=ada@example.com", "?token=[secret]"),
        ("见?token=abc。好", "见?token=[secret]。好"),
        ("?token=a?token=b&token=c", "?token=[secret]&token=[secret]"),
        ("API_KEY=a1b2c3d4", "API_KEY=[secret]"),
        ("export DB_PASSWORD=hunter2", "export DB_PASSWORD=[secret]"),
        ("access_token=abc123&x=1", "access_token=[secret]&x=1"),
    ]);
    are_kept(&[
        "?page=2&sort=token",
        "?token=",
        "?token=&x=1",
        "?token=[secret]",
        "?password=[secret]&x=[email]",
        "max_tokens=100000",
        "token=None",
        "token = a1b2c3",
        "password=os.environ2",
        "token=tokens[1]",
        "api_key=load2(x)",
        "tokenizer=bpe32k",
        "What is a token? secret: it is",
    ]);
}

#[test]
fn lookalikes_of_tokens_are_kept() {
    are_kept(&[
        "sk-learn",
        "sk-folding-cube-container-with-a-name",
        "xoxb-",
        "ghp_",
        "ghp_short",
        "AKIA",
        "ASIA PACIFIC",
        "ASIAN",
        "hf_hub_download_with_a_long_name_1",
        "npm_config_registry_and_so_on_for_long_1",
        "eyJ",
        "eyJson.parse",
        "----",
        "-----BEGIN-----",
        "----------------------------------------",
        "-- begin private key --",
        "github_pat_",
    ]);
}
