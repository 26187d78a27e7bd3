//! E-mail addresses, credentials in URLs, IP addresses.

use super::*;

#[test]
fn e_mail_addresses_are_replaced() {
    becomes(
        "[email]",
        &[
            "ada@example.com",
            "ADA.LOVELACE@EXAMPLE.COM",
            "ada.lovelace+tag@mail.example.co.uk",
            "a_b-c%d@sub-domain.example.org",
            "o'brien@example.com",
            "1234567890@123.example",
            "ada@xn--mller-kva.example",
            "jörg@müller.example",
            "почта@пример.испытание",
            "ada@例子.测试",
            "ada＠example．com",
            "ada%40example.com",
            "\"ada lovelace\"@example.com",
            "ada@[192.0.2.1]",
            "bounces+ada=example.org@lists.example.com",
        ],
    );
}

#[test]
fn text_around_an_e_mail_address_is_kept() {
    check(&[
        (
            "mailto:ada@example.com?subject=x",
            "mailto:[email]?subject=x",
        ),
        ("Ada <ada@example.com>", "Ada <[email]>"),
        ("'ada@example.com'", "'[email]'"),
        ("\"ada@example.com\"", "\"[email]\""),
        ("**ada@example.com**", "**[email]**"),
        ("`ada@example.com`", "`[email]`"),
        ("to=ada@example.com&x=1", "to=[email]&x=1"),
        ("?mail=ada%40example.com", "?mail=[email]"),
        (
            "ada@example.com, eve@example.org;bob@example.net",
            "[email], [email];[email]",
        ),
        ("请联系ada@example.com谢谢", "请联系[email]谢谢"),
        ("メールはada@example.comです。", "メールは[email]です。"),
        ("ada@example.com입니다", "[email]입니다"),
        ("@ada@social.example", "@[email]"),
        ("ada:secret@db.example.com:5432", "ada:[email]:5432"),
        ("ada@example.com(work)", "[email](work)"),
        ("ada\u{a0}ada@example.com\u{a0}x", "ada\u{a0}[email]\u{a0}x"),
        ("...ada@example.com...", "...[email]..."),
        ("ada@host.example:/srv/x", "[email]:/srv/x"),
    ]);
}

#[test]
fn lookalikes_of_e_mail_addresses_are_kept() {
    are_kept(&[
        "a[1]@b",
        "@app.route",
        "@app.route('/x')",
        "@media",
        "@scope/pkg@1.2.3",
        "react@18.2.0",
        "react@18.2.0-rc.next",
        "pkg@v1.2.3-beta.one",
        "actions/checkout@v4",
        "git@github.com:org/repo",
        "git@git.example.com:org/repo.git",
        "ssh://git@git.example.com/org/repo.git",
        "icon@2x.png",
        "A @ B.T",
        "a@b",
        "a@b.T",
        "x = A@B.transpose()",
        "this@Main.title",
        "user@localhost",
        "ada@",
        "@example.com",
        "ada@example",
        "ada@.com",
        "image@sha256:0f1e2d",
        "meet @ 5.30 pm",
        "50% @ 3.5",
        "100%40",
    ]);
}

#[test]
fn credentials_in_urls_are_replaced() {
    check(&[
        (
            "postgres://ada:pw@db.example.com/x",
            "postgres://[credentials]db.example.com/x",
        ),
        (
            "https://ada@example.com/a?b#c",
            "https://[credentials]example.com/a?b#c",
        ),
        (
            "ftp://ada%40example.org:p%40ss@host/",
            "ftp://[credentials]host/",
        ),
        (
            "redis://:secret@localhost:6379/0",
            "redis://[credentials]localhost:6379/0",
        ),
        ("amqp://u:p@s@host", "amqp://[credentials]host"),
        (
            "mongodb+srv://u:p@a.example,b.example/x",
            "mongodb+srv://[credentials]a.example,b.example/x",
        ),
        (
            "postgres://u:p/w?d#x@host/db",
            "postgres://[credentials]host/db",
        ),
        (
            "https:\\/\\/u:p@host\\/x",
            "https:\\/\\/[credentials]host\\/x",
        ),
        (
            "jdbc:mysql://u:p@h/x https://v:q@i/y",
            "jdbc:mysql://[credentials]h/x https://[credentials]i/y",
        ),
        ("https://git:secret@host/x", "https://[credentials]host/x"),
        (
            "(https://u:p@[2001:db8::1]:80/)",
            "(https://[credentials][ip]:80/)",
        ),
        (
            "见https://u:p@example.com，谢谢",
            "见https://[credentials]example.com，谢谢",
        ),
    ]);
    are_kept(&[
        "https://example.com/@ada/1",
        "https://example.com:8080/@ada",
        "https://cdn.example.com/react@18.2.0/x.js",
        "https://example.com/?q=a:b",
        "git+ssh://git@example.com/x.git",
        "file:///etc/passwd",
        "//@",
        "://@",
        "a://b",
    ]);
}

#[test]
fn ip_addresses_are_replaced() {
    becomes(
        "[ip]",
        &[
            "192.0.2.1",
            "255.255.255.255",
            "198.051.100.001",
            "１９２．０．２．１",
            "2001:db8::1",
            "2001:DB8:0:0:8:800:200C:417A",
            "2001:0db8:85a3:0000:0000:8a2e:0370:7334",
            "::1",
            "fe80::1",
            "fe80::1%eth0",
            "fd12:3456:789a::",
            "::ffff:192.0.2.128",
            "64:ff9b::192.0.2.33",
            "[2001:db8::1]",
            "[fe80::1%25en0]",
        ],
    );
    check(&[
        ("192.0.2.1:8080", "[ip]:8080"),
        ("192.0.2.0/24", "[ip]/24"),
        ("2001:db8::/32", "[ip]/32"),
        ("http://[2001:db8::1]:443/x", "http://[ip]:443/x"),
        ("http://192.0.2.1/x", "http://[ip]/x"),
        ("192.0.2.1-192.0.2.9", "[ip]-[ip]"),
        ("ip:2001:db8::1: down", "ip:[ip]: down"),
        ("ip=192.0.2.1,192.0.2.2;", "ip=[ip],[ip];"),
        ("ada@192.0.2.1", "ada@[ip]"),
        ("host/192.0.2.1", "host/[ip]"),
        ("from 192.0.2.1...", "from [ip]..."),
        ("地址192.0.2.1不通", "地址[ip]不通"),
    ]);
}

#[test]
fn lookalikes_of_ip_addresses_are_kept() {
    are_kept(&[
        "1.2.3",
        "10.0.19045.3803",
        "1.2.3.4.5",
        "1.3.6.1.4.1.311",
        "256.1.1.1",
        "v1.2.3.4",
        "v 1.2.3.4",
        "version 1.2.3.4",
        "Version: 1.2.3.4",
        "build 10.0.0.1",
        "firmware 1.2.3.4",
        "§ 1.2.3.4",
        "版本1.2.3.4",
        "lib-1.2.3.4",
        "lib-1.2.3.4.jar",
        "1.2.3.4-rc1",
        "12:34:56",
        "12:34:56.789",
        "main.rs:12:5",
        "std::io::Error",
        "a::b",
        "dead::beef",
        "f32::MAX",
        "Foo::add",
        "crate::fab::a1()",
        "::",
        "::<u8>",
        "::before",
        "a::after",
        "x[::2]",
        "x[1::2]",
        "x[10::20]",
        "00:1a:2b:3c:4d:5e",
        "00-1A-2B-3C-4D-5E",
        "00:11:22:33:44:55:66:77",
        "arn:aws:iam::123456789012:role/x",
        "1:2",
        "2024-01-15T12:34:56.123+01:00",
        "[::]:8080",
    ]);
}
