//! What the finders may cost, in steps.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;

/// The maximum number of steps that one pass takes for each byte of a text.
const STEPS: usize = 160;

/// Pieces of texts that a finder without a cache would read again and again.
const REPEATED: &[&str] = &[
    "1",
    "1 ",
    "1-",
    "0",
    "01 ",
    "030 1",
    "030 ",
    "555-",
    "4111",
    "4111 ",
    "4111111111111111-",
    "123-45-6789-",
    "978-",
    "(1)",
    "+1",
    "+",
    "tel 1",
    "call ",
    "1.1.",
    "1,1,",
    "1x",
    "1 x",
    "@",
    "\"@",
    "@a",
    "a.b@",
    "x@a.b",
    "x@a.a.",
    "git@a.b:",
    "%40",
    "a%",
    "a=+@",
    "+a=@",
    "a'",
    ":",
    ".",
    "1:",
    "a:1:",
    "::1 ",
    "[::1",
    "fe80::1%a",
    "://",
    "://a:b/",
    "://a:b@",
    "DE89",
    "de 89 1",
    "1Z ",
    "aaaaaaaa-1111-",
    "1 1 1",
    "+1 +1 ",
    "1-1-1",
    "((((",
    "@@@@",
    "-",
    "_",
    "1_",
    "1/",
    "1 / ",
    "1,",
    "4111,1111,",
    "4111/",
    "12 345 678 903 ",
    "12345678901 ",
    "86095742719 ",
    "0301234567 ",
    "555-123-4567 ",
    "+49 30 12345 ",
    "+4",
    "(0)1 ",
    "01 02 03 04 05 ",
    "1ー",
    "ー",
    "Ａ１",
    "٤ ",
    "手",
    "手机1",
    "tel. 1 2 ",
    "tax id 1 ",
    "steuer-id ",
    "my number ",
    "[phone] 1 ",
    "]",
    "a]",
    "[email]",
    "DE89 3704 0044 ",
    "DE89370400440532013001",
    "a-",
    "a.",
    "a_a ",
    "token=",
    "=token=a1b2c3",
    "token=a1b2c3(",
    "?token=a&",
    "?token=[secret]",
    "&",
    "?a=",
    "sk-",
    "sk-a-",
    "xoxb-",
    "ghp_",
    "ghs_.",
    "eyJ",
    "eyJa.",
    "eyJaaaaaaaaaa.",
    "bearer ",
    "bearer a",
    "bearer:",
    "Authorization: Bearer ",
    "authorization",
    "-----BEGIN PRIVATE KEY-----\n",
    "-----BEGIN PRIVATE KEY-----",
    "----begin ",
    "----end ",
    "-----BEGIN RSA PRIVATE KEY-----\naaaaaaaaaaaaaaaaaaaaaa\n",
    "1Z1",
    "1z 1 ",
    "aaaaaaaa-aaaa-aaaa-",
    "1:1:",
    "1111:",
    "1::",
    "a:b:c:",
    "978-0-",
    "0-306-40615-",
    "1 234 ",
    "2024-01-",
    "12-12-2012-",
    "1.1.1.1 ",
    "1.1.1.",
    "12345678 ",
    "99999999",
    "QQ 12 34 56 ",
    "1€ ",
    "1 ext ",
    "1 ext. 1 ",
    "555.",
    "010 1234 ",
    "9 9 9 9 9 9 9 9 9 ",
    "99 99 99 99 ",
    "1234 5678 ",
    "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n",
    "tel 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n",
    "+1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n",
    "01 1 1 1 1 1 1 1 1 1 1 1\n",
    "\"a@",
    "%4",
    "\u{200b}",
    "\u{1d7ce}",
    "eyJ-",
    "eyJ_",
    "eyJ--------.",
    "bearer-",
    "bearer -",
    "authorization=bearer-",
    "authorization=bearer -",
];

fn repeated(piece: &str, bytes: usize) -> String {
    piece.repeat(bytes.div_ceil(piece.len()))
}

/// Steps of one pass.
fn steps_of_pass(text: &str) -> usize {
    steps::of(|| drop(once(text)))
}

/// The maximum number of steps of all passes over a text of this many bytes.
fn most(bytes: usize) -> usize {
    STEPS * Budget::of(bytes).bytes
}

#[test]
fn steps_of_a_pass_are_bounded_per_byte() {
    for piece in REPEATED {
        for between in ["", " ", "\n", "中", "１"] {
            let text = repeated(&format!("{piece}{between}"), 1_000);
            let steps = steps_of_pass(&text);
            let most = STEPS * text.len();
            assert!(
                steps <= most,
                "{piece:?} and {between:?}: {steps} steps, not {most}"
            );
        }
    }
}

#[test]
fn steps_are_linear_in_the_text() {
    for piece in REPEATED {
        let (once, twice) = (
            steps_of_pass(&repeated(piece, 1_000)),
            steps_of_pass(&repeated(piece, 2_000)),
        );
        assert!(twice <= once * 9 / 4 + 2_000, "{piece:?}: {once}, {twice}");
    }
}

#[test]
fn long_text_stays_within_the_budget() {
    for piece in [
        "1 1 1 ",
        "+1 +1 ",
        "1-1-1-",
        "01 02 03 04 05 ",
        "sk-",
        "token=",
        "eyJa.",
        "eyJ-",
        "bearer-",
        "authorization=bearer-",
    ] {
        let text = repeated(piece, 64 * 1024);
        let steps = steps::of(|| drop(scrub(&text)));
        assert!(steps <= most(text.len()), "{piece:?}: {steps}");
    }
}

fn any_piece() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => select(REPEATED).prop_map(str::to_owned),
        2 => "[0-9]{1,20}",
        1 => "[-+ ()./_,:@%=?&#\\[\\]\"']{1,4}",
        1 => "[a-zA-Z中手é٤]{1,9}",
        1 => any::<char>().prop_map(String::from),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn mixed_input_costs_no_more_than_the_worst_kind(pieces in vec(any_piece(), 1..6), times in 1..200_usize) {
        let text = pieces.concat().repeat(times);
        let text: String = text.chars().take(1_500).collect();
        let steps = steps_of_pass(&text);
        prop_assert!(steps <= STEPS * text.len() + STEPS, "{} bytes: {steps}", text.len());
        let all = steps::of(|| drop(scrub(&text)));
        prop_assert!(all <= most(text.len()) + STEPS, "{} bytes: {all}", text.len());
    }
}

#[test]
fn texts_of_an_event_share_its_budget() {
    let text = "call ada@example.com ".repeat(100);
    let mut budget = Budget::of(text.len());
    let scrubbed = "call [email] ".repeat(100);
    assert_eq!(budget.scrub(&text), scrubbed);
    assert_eq!(
        budget.scrub(&text),
        scrubbed,
        "an event has twice the passes that ordinary text needs"
    );
    // What a text contains is unknown if not all passes could run.
    let others = (0..10).map(|_| budget.scrub(&text));
    // Owned: a borrowed text is the original one, which the caller keeps.
    assert_eq!(others.last(), Some(Cow::Owned(REMOVED.to_owned())));
    assert!(matches!(budget.scrub(&text), Cow::Owned(_)));
    assert_eq!(budget.scrub("nothing in here"), "nothing in here");
}
