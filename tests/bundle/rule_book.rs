//! The numbers of docs/reference/rules.md are those of the code.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{TimeDelta, Utc};
use hearback_detection::{Cue, FeedbackStatus};
use hearback_domain::events::event::PrivacyFlags;
use hearback_domain::events::import::{self, Bounds};
use hearback_domain::events::retention::{LEDGER_DAYS, Retention};
use hearback_domain::events::submission::Submission;
use hearback_domain::events::{recency, submission};
use hearback_domain::export::training;
use hearback_domain::feedback::satisfaction::{
    SHARES, ValidationOutcome, feedback_weight, satisfaction_score,
};
use hearback_domain::feedback::{follow_up, message_signal, reaction, sequence};
use hearback_domain::identity::caller::Caller;
use hearback_domain::identity::privacy::Pseudonyms;
use hearback_domain::identity::{identifier, labels};
use hearback_domain::learning::preferences::numbers as learning;
use hearback_domain::learning::signal::Reward;
use hearback_domain::learning::{ledger, preferences, signal};
use hearback_domain::text::{page, payload};
use hearback_domain::turns::{target, turn};
use hearback_domain::views::{insights, period, timeline, turn_report, webhook};
use hearback_lambda::queue;
use hearback_storage::vectors;
use serde_json::{Value, json};
use uuid::Uuid;

const PAGE: &str = include_str!("../../docs/reference/rules.md");
/// The pages of the reference.
const REFERENCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference");
const TEMPLATE: &str = include_str!("../../template.yaml");

/// Numbers that are private to a function of several steps, or of the deployment. Their behavior has tests of its own.
const NOT_COMPARED: &[&str] = &[
    "confidence.evidence",
    "detection.contradicted",
    "detection.neutral",
    "detection.rephrase_cosine",
    "detection.rephrase_cosine_other_words",
    "detection.rephrase_min_words",
    "detection.rephrase_similarity",
    "limit.report_reads",
    "ranking.default_quality",
    "retention.import_days",
    "reward.modified_element",
    "reward.unrated_strength",
    "satisfaction.other",
    "training.max_signals",
];

/// The numbers of the page by their names: rows that begin with a name in backticks and have a number alone in the
/// second cell.
fn numbers() -> BTreeMap<&'static str, f64> {
    let rows = PAGE.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.split(" | ");
        let name = cells.next()?.strip_suffix('`')?;
        Some((name, cells.next()?.parse().ok()?))
    });
    let named = rows.filter(|(name, _)| name.contains('.'));
    let mut numbers = BTreeMap::new();
    for (name, number) in named {
        assert_eq!(
            numbers.insert(name, number),
            None,
            "{name} is on the page twice"
        );
    }
    numbers
}

fn reward(channel: &str, kind: &str, data: &Value) -> Reward {
    let event = json!({
        "feedbackId": Uuid::new_v4(),
        "userId": "ada",
        "sessionId": "s",
        "artifactId": "a",
        "feedbackChannel": channel,
        "feedbackType": kind,
        "data": data,
    });
    let caller = Caller {
        user: "ada".try_into().unwrap(),
        tenant: "acme".try_into().unwrap(),
        projects: Vec::new(),
        scopes: Vec::new(),
    };
    let submission =
        Submission::parse(&event, &caller, &Pseudonyms::new("key"), Utc::now()).unwrap();
    signal::reward(&submission.event.core).unwrap()
}

fn rating(rating: u8) -> f64 {
    reward("explicit", "rating", &json!({"rating": rating})).value
}

fn confidence(channel: &str) -> f64 {
    reward(channel, "artifact-acceptance", &json!({"accepted": true})).confidence
}

fn minutes(time: TimeDelta) -> f64 {
    whole(time.num_minutes())
}

#[expect(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "no number of the page is that large"
)]
fn whole(number: impl TryInto<i64>) -> f64 {
    number.try_into().unwrap_or(i64::MAX) as f64
}

fn numbers_of_code() -> Vec<(&'static str, f64)> {
    let bounds = Bounds::default();
    let mut numbers_of_code = vec![
        ("ledger.regenerate_confidence", ledger::REGENERATE),
        (
            "reward.modified_elements_counted",
            whole(signal::MODIFIED_ELEMENTS_COUNTED),
        ),
        ("reward.rating_5", rating(5)),
        ("reward.rating_4", rating(4)),
        ("reward.rating_2", rating(2)),
        ("reward.rating_1", rating(1)),
        ("reward.decay", signal::DECAY),
        ("confidence.explicit", confidence("explicit")),
        ("confidence.correction", confidence("correction")),
        ("confidence.implicit", confidence("implicit")),
        ("hint.acceptance_rate", learning::HIGH_ACCEPTANCE),
        ("hint.min_samples", learning::MIN_SAMPLES),
        ("learning.max_weight", learning::MAX_WEIGHT),
        ("learning.option_min_samples", learning::MIN_OPTION_SAMPLES),
        ("learning.option_max_samples", learning::MAX_SAMPLES),
        ("learning.option_without_rival", learning::EVEN),
        ("learning.z", learning::Z),
        (
            "learning.max_artifact_types",
            whole(learning::MAX_ARTIFACT_TYPES),
        ),
        ("learning.max_contexts", whole(learning::MAX_CONTEXTS)),
        ("learning.max_agents", whole(learning::MAX_AGENTS)),
        ("learning.max_names_bytes", whole(learning::MAX_NAMES)),
        (
            "detection.session_minutes",
            minutes(follow_up::SESSION_TIMEOUT),
        ),
        ("detection.min_confidence", reaction::MIN_CONFIDENCE),
        ("detection.clarify_from", whole(sequence::CLARIFY_FROM)),
        (
            "detection.max_rejections_looked_up",
            whole(sequence::MAX_COUNTED),
        ),
        ("reaction.max_ahead_minutes", minutes(recency::MAX_AHEAD)),
        (
            "reaction.trail_hours",
            whole(reaction::TRAIL_AGE.num_hours()),
        ),
        ("reaction.trail_length", whole(reaction::TRAIL_LENGTH)),
        (
            "report.in_flight_seconds",
            whole(period::IN_FLIGHT.num_seconds()),
        ),
        (
            "satisfaction.approve",
            ValidationOutcome::Approve.base_score(),
        ),
        (
            "satisfaction.revise",
            ValidationOutcome::Revise.base_score(),
        ),
        ("satisfaction.retry", ValidationOutcome::Retry.base_score()),
        ("satisfaction.fail", ValidationOutcome::Fail.base_score()),
        (
            "satisfaction.accepted",
            satisfaction_score(None, FeedbackStatus::Accepted),
        ),
        (
            "satisfaction.rejected",
            satisfaction_score(None, FeedbackStatus::Rejected),
        ),
        ("ranking.quality_share", SHARES.0),
        ("ranking.feedback_share", SHARES.1),
        (
            "ranking.accepted_weight",
            feedback_weight(FeedbackStatus::Accepted),
        ),
        (
            "ranking.neutral_weight",
            feedback_weight(FeedbackStatus::Neutral),
        ),
        ("ranking.candidates", whole(vectors::MAX_CANDIDATES)),
        ("ranking.min_similarity", target::MIN_SIMILARITY),
        ("ranking.results", whole(target::TOP_K)),
        ("target.similarity_share", target::SIMILARITY),
        ("target.recency_share", target::RECENCY),
        ("target.half_life_days", whole(target::HALF_LIFE.num_days())),
        ("target.window_days", whole(target::WINDOW.num_days())),
        ("target.results", whole(target::TOP_K)),
        ("target.min_similarity", target::MIN_SIMILARITY),
        ("training.max_days", whole(Retention::MAX_DAYS)),
        ("training.default_days", whole(training::DEFAULT_DAYS)),
        ("turn.query_characters", whole(turn::QUERY)),
        ("turn.summary_characters", whole(turn::SUMMARY)),
        ("turn.ending_characters", whole(turn::ENDING)),
        ("turn.max_bytes", whole(turn::TurnLog::MAX)),
        ("turn.max_dimensions", whole(turn::MAX_DIMENSIONS)),
        (
            "limit.identifier_characters",
            whole(identifier::MAX_CHARACTERS),
        ),
        ("limit.comment_characters", whole(submission::MAX_COMMENT)),
        ("limit.reaction_text_characters", whole(reaction::MAX_TEXT)),
        ("limit.reason_characters", whole(message_signal::MAX_REASON)),
        ("limit.labels", whole(labels::MAX_LABELS)),
        ("limit.label_key_characters", whole(labels::MAX_KEY)),
        ("limit.batch_events", whole(hearback_batch::MAX_EVENTS)),
        ("limit.turn_ids", whole(turn_report::MAX_TURN_IDS)),
        ("limit.timeline_blocks", whole(timeline::MAX_BLOCKS)),
        (
            "limit.timeline_answer_bytes",
            whole(timeline::MAX_CHANGES_SIZE),
        ),
        ("insights.values_max", whole(insights::MAX_VALUES)),
        ("insights.values_default", whole(insights::DEFAULT_VALUES)),
        ("insights.label_keys", whole(insights::MAX_LABEL_KEYS)),
        ("insights.users", whole(insights::MAX_SAMPLED_USERS)),
        ("insights.counts", whole(insights::MAX_COUNTS)),
        ("insights.days_max", whole(insights::MAX_DAYS)),
        ("insights.days_default", whole(insights::DEFAULT_DAYS)),
        ("insights.points_default", whole(insights::DEFAULT_POINTS)),
        ("insights.compare_users", insights::MIN_USERS),
        ("limit.page_default", whole(page::DEFAULT_LIMIT.0)),
        ("limit.page_max", whole(page::MAX_LIMIT)),
        (
            "limit.report_days_default",
            whole(turn_report::DEFAULT_DAYS),
        ),
        ("limit.report_days_max", whole(Retention::MAX_DAYS)),
        ("limit.page_bytes", whole(payload::MAX_PAGE)),
        ("limit.errors_listed", whole(hearback_wire::MAX_ERRORS)),
        (
            "limit.pointer_characters",
            whole(hearback_wire::MAX_POINTER),
        ),
        (
            "limit.batch_errors_listed",
            whole(hearback_batch::LISTED_ERRORS),
        ),
        ("limit.body_event_bytes", whole(hearback_submit::MAX_BODY)),
        ("limit.body_batch_bytes", whole(hearback_batch::MAX_BODY)),
        (
            "limit.body_report_bytes",
            whole(hearback_retrieval::MAX_BODY),
        ),
        (
            "limit.body_reaction_bytes",
            whole(hearback_submit::MAX_REACTION_BODY),
        ),
        ("limit.event_item_bytes", whole(hearback_storage::LARGEST)),
        ("limit.preferences_bytes", whole(preferences::MAX_BYTES)),
        ("import.line_bytes", whole(import::MAX_LINE_BYTES)),
        ("import.piece_bytes", whole(import::PIECE_BYTES)),
        ("import.max_pieces", whole(import::MAX_PIECES)),
        ("import.first_errors", whole(import::MAX_REPORTED_ERRORS)),
        ("import.unpack_ratio", whole(bounds.ratio)),
        ("import.min_line_bytes", whole(import::MIN_LINE_BYTES)),
        ("import.max_rejects", whole(bounds.rejects)),
        ("import.step_minutes", minutes(hearback_batch::SLICE)),
        ("delivery.receives_content", queue::MAX_RECEIVES.into()),
        ("delivery.receives_environment", queue::LAST_RECEIVES.into()),
        ("delivery.receives_queue", queue::REDRIVE_RECEIVES.into()),
        ("delivery.receives_outlet", queue::OUTLET_RECEIVES.into()),
        ("webhook.max", whole(webhook::MAX_WEBHOOKS)),
        (
            "webhook.first_pause_seconds",
            whole(webhook::SHORTEST_PAUSE.num_seconds()),
        ),
        (
            "webhook.longest_pause_minutes",
            whole(webhook::LONGEST_PAUSE.num_minutes()),
        ),
        (
            "webhook.paused_after_hours",
            whole(webhook::PAUSED_AFTER.num_hours()),
        ),
        (
            "webhook.secret_overlap_hours",
            whole(webhook::SECRET_OVERLAP.num_hours()),
        ),
        (
            "delivery.outlet_hours",
            whole(queue::RETRIED_FOR.num_hours()),
        ),
        (
            "delivery.outlet_pause_minutes",
            minutes(hearback_relay::LONGEST_PAUSE),
        ),
        ("delivery.max_hops", queue::MAX_HOPS.into()),
        (
            "delivery.erasure_settle_minutes",
            minutes(hearback_erasure::SETTLE),
        ),
        (
            "retention.event_days_default",
            PrivacyFlags::DEFAULT_RETENTION_DAYS.into(),
        ),
        ("retention.event_days_max", whole(Retention::MAX_DAYS)),
        ("retention.claim_days", LEDGER_DAYS.into()),
        ("retention.retraction_days", LEDGER_DAYS.into()),
        ("retention.mirror_days", LEDGER_DAYS.into()),
        ("retention.tombstone_days", LEDGER_DAYS.into()),
        ("retention.erasure_days", LEDGER_DAYS.into()),
        (
            "retention.turn_days_default",
            Retention::DEFAULT_DAYS.into(),
        ),
        ("retention.turn_days_max", whole(Retention::MAX_DAYS)),
    ];
    let cues = Cue::NAMES.iter().filter(|(_, cue)| *cue != Cue::Rephrase);
    numbers_of_code.extend(cues.map(|(name, cue)| {
        let name = numbers()
            .into_keys()
            .find(|known| known.strip_prefix("cue.") == Some(name));
        (
            name.unwrap_or("a cue missing from the page"),
            cue.confidence(),
        )
    }));
    numbers_of_code
}

#[test]
fn the_numbers_of_the_rules_are_those_of_the_code() {
    let page = numbers();
    for (name, value) in numbers_of_code() {
        let stated = page
            .get(name)
            .unwrap_or_else(|| panic!("{name} is not on the page"));
        assert!(
            (stated - value).abs() < 1e-9,
            "{name} is {stated} on the page, and {value} in the code"
        );
    }
}

#[test]
fn every_number_of_the_rules_is_compared_or_listed() {
    let compared: BTreeSet<_> = numbers_of_code()
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    let listed = BTreeSet::from_iter(NOT_COMPARED.iter().copied());
    let page: BTreeSet<_> = numbers().into_keys().collect();
    assert_eq!(page, &compared | &listed);
    assert_eq!(&compared & &listed, BTreeSet::new());
}

/// The rows of the reference's tables about a parameter, each with the name of its page.
fn rows_about(parameter: &str) -> Vec<String> {
    let pages = std::fs::read_dir(REFERENCE).unwrap();
    let mut rows = Vec::new();
    for page in pages.map(|page| page.unwrap().path()) {
        let text = std::fs::read_to_string(&page).unwrap();
        let found = text
            .lines()
            .filter(|line| line.starts_with(&format!("| `{parameter}` |")));
        rows.extend(found.map(|row| format!("{}: {row}", page.display())));
    }
    rows
}

#[test]
fn the_tables_of_parameters_have_the_limits_of_the_code() {
    let page = format!(
        "1 to {}, default {},",
        page::MAX_LIMIT,
        page::DEFAULT_LIMIT.0
    );
    let days = format!("1 to {},", Retention::MAX_DAYS);
    let kept = format!("{days} default {},", PrivacyFlags::DEFAULT_RETENTION_DAYS);
    for (parameter, expected, pages) in [
        ("limit", page, 7),
        ("days", days, 1),
        ("privacyFlags.retentionDays", kept, 1),
    ] {
        let rows = rows_about(parameter);
        assert_eq!(rows.len(), pages, "{rows:#?}");
        for row in rows {
            // The end of a cell is an end of the number, too.
            assert!(
                row.replace(" |", ",").contains(&expected),
                "{row}, not {expected}"
            );
        }
    }
}

#[test]
fn the_template_has_the_default_and_the_longest_retention_of_the_code() {
    let value = |parameter: &str, name: &str| {
        let (_, parameter) = TEMPLATE.split_once(parameter).unwrap();
        let mut lines = parameter.lines();
        let value = lines.find_map(|line| line.trim().strip_prefix(name));
        value.unwrap().to_owned()
    };
    let default = value("  TurnRetentionDays:\n", "Default: ");
    assert_eq!(default, Retention::DEFAULT_DAYS.to_string());
    for kept in ["Export", "Import", "Turn"] {
        let most = value(&format!("  {kept}RetentionDays:\n"), "MaxValue: ");
        assert_eq!(most, Retention::MAX_DAYS.to_string(), "{kept}");
    }
}
