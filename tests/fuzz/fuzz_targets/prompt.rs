//! What users write adds nothing to the texts that a model reads: no line, no header, no field, no closing quote.
//!
//! An input is several lines' worth of names and texts, apart by NUL. Each text is compared to the same text of
//! harmless words: it has as many lines, and each line begins alike.

#![no_main]

use hearback_detection::FeedbackStatus;
use hearback_domain::feedback::follow_up::{FollowUpCorrection, UserFeedback};
use hearback_domain::feedback::message_signal::MessageSignal;
use hearback_domain::feedback::mirror;
use hearback_domain::feedback::reaction::{Origin, Reaction, StoredReaction};
use hearback_domain::feedback::sequence::Sequence;
use hearback_domain::learning::preferences::{CommunicationStyle, DetailLevel};
use hearback_domain::turns::turn::{Summary, TurnLog};
use hearback_domain::views::feedback_context::{
    ExplicitRejection, FeedbackContext, Rejection, RejectionFacts, SessionPreferences,
};
use hearback_domain::views::timeline::{FeedbackBy, Timeline, TurnReaction, refresh};
use libfuzzer_sys::fuzz_target;
use serde_json::json;

/// Labels of the texts, and roles of transcripts.
const LABELS: [&str; 13] = [
    "assistant",
    "developer",
    "feedback of another user",
    "human",
    "machine feedback",
    "machine feedback of another user",
    "reaction",
    "system",
    "text",
    "tool",
    "ts",
    "user",
    "user feedback",
];
const THEN: &str = "2026-01-04T10:30:00Z";
const NOW: &str = "2026-01-04T18:00:00Z";

/// Everything that a reader may take for the end of a line.
fn lines(text: &str) -> Vec<&str> {
    let ends = |c: char| matches!(c, '\n'..='\r' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}');
    text.split(ends).collect()
}

/// The fields of a line that are apart by ` | `, outside of quotes.
fn fields(line: &str) -> usize {
    let (mut quoted, mut escaped, mut fields) = (false, false, 1);
    for character in line.chars() {
        match character {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' if quoted => quoted = false,
            '"' => quoted = line.contains("=\"") || line.contains("turn \""),
            '|' if !quoted => fields += 1,
            _ => {}
        }
    }
    fields
}

/// Whether a line begins with a label, in any case.
fn is_labelled(line: &str) -> bool {
    let Some((head, rest)) = line.split_once(':') else {
        return false;
    };
    let head = head.trim_matches(|c: char| !c.is_alphanumeric());
    !rest.starts_with("//") && LABELS.contains(&head.to_ascii_lowercase().as_str())
}

fn timeline(
    turn: &str,
    text: &str,
    (by, origin): (FeedbackBy, Origin),
) -> Option<(String, String)> {
    let turn_id: hearback_domain::identity::identifier::TurnId = turn.try_into().ok()?;
    let request = json!({
        "turn_ids": [turn], "last_known_feedback_ts": null,
        "cache": {"ttl_seconds": 300, "last_touch": THEN}, "blocks": []
    });
    let request = Timeline::parse(&request).unwrap();
    let reaction = TurnReaction {
        id: Default::default(),
        turn_id,
        turn_ts: THEN.parse().unwrap(),
        origin,
        by,
        user_id: None,
        reaction: Some(Reaction::NotOk),
        confidence: 1.0,
        ts: THEN.parse().unwrap(),
        received_at: THEN.parse().unwrap(),
        text: text.to_owned(),
        follow_up: false,
    };
    let mut answer = refresh(&request, &[reaction], NOW.parse().unwrap());
    Some((answer.announce?, answer.blocks.pop()?.text))
}

fn planner(turn: &str, text: &str, strategy: &str) -> Option<String> {
    let core = json!({
        "tenant": "acme", "project": "p", "conversation_id": "c", "turn_id": turn,
        "user_id": "ada", "ts": THEN, "strategy": strategy, "fingerprint": ""
    });
    let core = serde_json::from_value(core).ok()?;
    let inferred = UserFeedback {
        status: FeedbackStatus::Rejected,
        detected_at: NOW.parse().unwrap(),
        detected_in_turn: Some(turn.try_into().ok()?),
        correction_type: Some(FollowUpCorrection::ExplicitCorrection),
        confidence: 0.9,
        user_said: Some(text.to_owned()),
        corrected: None,
    };
    let known = RejectionFacts {
        explicit: Some(ExplicitRejection {
            words: &[text],
            user_said: Some(text),
        }),
        inferred: Some(&inferred),
        signals: &[(MessageSignal::Inaccurate, Some(text))],
        sequence: Sequence {
            consecutive_rejections: 1,
            clarify: false,
        },
    };
    let summary = Summary {
        user: text.to_owned(),
        assistant: text.to_owned(),
        assistant_end: String::new(),
        user_digest: None,
    };
    let preferences = SessionPreferences {
        communication_style: CommunicationStyle::Formal,
        detail_level: DetailLevel::Overview,
    };
    let context = FeedbackContext {
        turn_id: turn.to_owned(),
        status: FeedbackStatus::Rejected,
        confidence: 0.9,
        rejection: Some(Rejection::of(&core, &summary, known, preferences)),
    };
    Some(context.to_markdown())
}

/// The text of a turn's log after a reaction was mirrored into it.
fn mirrored(text: &str, origin: Origin) -> String {
    let log = json!({"user": {"text": "word"}, "turn_log": {"text": "as it was"}});
    let mut log: TurnLog = serde_json::from_value(log).unwrap();
    let core = json!({
        "id": "f47ac10b-58cc-4372-a567-0e02b2c3d479", "tenant": "acme", "project": "p", "conversation_id": "c",
        "turn_id": "t", "turn_ts": THEN, "user_id": "ada", "origin": origin.as_str(), "reaction": "not_ok",
        "confidence": 1.0, "ts": THEN, "received_at": THEN
    });
    let core = serde_json::from_value(core).unwrap();
    mirror::write(
        &mut log,
        &StoredReaction {
            core,
            text: text.to_owned(),
        },
    );
    log.turn_log["text"].as_str().unwrap().to_owned()
}

/// Both have the same lines, apart from what is written in them.
fn assert_alike(text: &str, harmless: &str) {
    let (lines, others) = (lines(text), lines(harmless));
    assert_eq!(lines.len(), others.len(), "{text:?}");
    for (line, other) in lines.iter().zip(others) {
        let head = other.split_once(": ").map_or(other, |(head, _)| head);
        let plain = head.split("word").next().unwrap_or_default();
        assert!(line.starts_with(plain), "{line:?} and {other:?}");
    }
}

fuzz_target!(|input: &str| {
    let mut parts = input.splitn(3, '\0');
    let [turn, text, strategy] = [(); 3].map(|()| parts.next().unwrap_or("word"));
    let blank = lines(text).iter().all(|line| line.trim().is_empty());
    let text = if blank { "word" } else { text };
    let slots = [FeedbackBy::Owner, FeedbackBy::Other]
        .into_iter()
        .flat_map(|by| [Origin::User, Origin::Machine].map(|origin| (by, origin)));
    for slot in slots {
        let Some((announce, block)) = timeline(turn, text, slot) else {
            continue;
        };
        let (plain, harmless) = timeline("word", "word", slot).unwrap();
        assert_alike(&announce, &plain);
        assert_eq!(lines(&block).len(), lines(&harmless).len(), "{block:?}");
        let last = lines(&block).pop().unwrap();
        let first = last.chars().next().unwrap();
        assert!(
            !matches!(first, '[' | '#' | '-' | '*' | '<' | '`' | ' '),
            "{block:?}"
        );
        let own = last.strip_prefix("text: ");
        assert!(own.is_some() || !is_labelled(last), "{block:?}");
        for line in lines(&announce)
            .iter()
            .filter(|line| line.starts_with("  - turn "))
        {
            assert_eq!(fields(line), 5, "{line:?}");
        }
    }
    if let Some(markdown) = planner(turn, text, strategy) {
        assert_alike(&markdown, &planner("word", "word", "word").unwrap());
    }
    for origin in [Origin::User, Origin::Machine] {
        assert_alike(&mirrored(text, origin), &mirrored("word", origin));
    }
});
