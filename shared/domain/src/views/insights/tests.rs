use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::events::event::{Channel, FeedbackType, Rating, Reason};
use crate::feedback::reaction::Origin;
use crate::identity::labels::Labels;
use crate::learning::publication::Action;

fn number(count: usize) -> u64 {
    count.try_into().unwrap()
}

fn label(value: &str) -> crate::identity::identifier::Label {
    value.try_into().unwrap()
}

prop_compose! {
    fn facts()(
        user in 0..6_u64,
        channel in prop_oneof![
            Just(Channel::Explicit), Just(Channel::Implicit), Just(Channel::Correction)
        ],
        outcome in prop_oneof![
            Just(Action::Accepted), Just(Action::Rejected), Just(Action::Rated), Just(Action::Modified),
            Just(Action::Commented), Just(Action::Observed)
        ],
        is_neutral in any::<bool>(),
        rating in proptest::option::of(1..=5_u8),
        reward in proptest::option::of(-1_000_000..=1_000_000_i64),
        agent in proptest::option::of("[ab]"),
        model in proptest::option::of("[xyz]"),
    ) -> Facts {
        let labels: Labels = serde_json::from_value(match model {
            Some(model) => json!({"model": model}),
            None => json!({}),
        }).unwrap();
        Facts {
            user: UserHash::of("acme", &user.to_string()),
            channel,
            feedback_type: (outcome == Action::Modified).then_some(FeedbackType::Modification),
            outcome,
            is_neutral: is_neutral && outcome == Action::Commented,
            reason: (outcome == Action::Rejected).then_some(Reason::Rephrased),
            rating: rating.filter(|_| outcome == Action::Rated).map(|rating| Rating::try_from(rating).unwrap()),
            reward_millionths: reward,
            answer: AnswerFacts {
                agent_id: agent.as_deref().map(label),
                labels,
                ..AnswerFacts::default()
            },
        }
    }
}

fn rollup<'a>(events: impl IntoIterator<Item = &'a (Facts, bool)>) -> Rollup {
    let mut rollup = Rollup::default();
    for (facts, is_retracted) in events {
        rollup.add(facts, *is_retracted);
    }
    rollup
}

fn group<'a>(rollup: &'a Rollup, dimension: &Dimension, value: &str) -> &'a Group {
    &rollup.breakdowns[dimension].groups[value]
}

proptest! {
    #[test]
    fn every_group_counts_its_events(events in proptest::collection::vec((facts(), any::<bool>()), 0..40)) {
        let rollup = rollup(&events);
        for (dimension, breakdown) in &rollup.breakdowns {
            for (value, group) in &breakdown.groups {
                let of_group: Vec<_> = events.iter().filter(|(facts, _)| {
                    facts.values().any(|(other, name)| other == *dimension && name == value)
                }).collect();
                let holding: Vec<_> = of_group.iter().filter(|(_, is_retracted)| !is_retracted).collect();
                let of_origin = |origin, rating: u8| holding.iter().filter(|(facts, _)| {
                    facts.origin() == origin && facts.rating.is_some_and(|given| given.get() == rating)
                }).count();
                prop_assert_eq!(group.counts.events, number(holding.len()));
                prop_assert_eq!(group.counts.retracted, number(of_group.len() - holding.len()));
                for (origin, verdicts) in [
                    (Origin::User, &group.counts.given), (Origin::Machine, &group.counts.inferred)
                ] {
                    prop_assert_eq!(verdicts.ratings, [1, 2, 3, 4, 5].map(|rating| number(of_origin(origin, rating))));
                    let accepted = holding.iter().filter(|(facts, _)| {
                        let rated = facts.rating.is_some_and(|rating| rating.get() >= 4);
                        facts.origin() == origin && (facts.outcome == Action::Accepted || rated)
                    });
                    prop_assert_eq!(verdicts.accepted, number(accepted.count()));
                }
            }
        }
        if let Some(all) = rollup.breakdowns.get(&Dimension::All) {
            let users: BTreeSet<_> = events.iter().filter(|(facts, is_retracted)| {
                !is_retracted && facts.is_given() && facts.verdict().is_some()
            }).map(|(facts, _)| facts.user).collect();
            prop_assert_eq!(all.groups["all"].users.0.keys().copied().collect::<BTreeSet<_>>(), users);
        }
    }

    #[test]
    fn a_period_is_the_sum_of_its_parts(
        events in proptest::collection::vec(((facts(), any::<bool>()), 0..3_usize), 0..40)
    ) {
        let parts = [2, 0, 1].map(|part| {
            let events = events.iter().filter(|(_, place)| *place == part);
            rollup(events.map(|(event, _)| event)).bounded()
        });
        let mut sum = Rollup::default();
        for part in &parts {
            sum += part;
        }
        let whole = rollup(events.iter().map(|(event, _)| event)).bounded();
        prop_assert_eq!(sum.bounded(), whole);
    }

    #[test]
    fn a_stored_breakdown_is_read_back(events in proptest::collection::vec((facts(), any::<bool>()), 0..20)) {
        for (facts, _) in &events {
            let stored = serde_json::to_string(facts).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Facts>(&stored).unwrap(), facts);
        }
        let breakdowns = rollup(&events).breakdowns;
        let stored = serde_json::to_string(&breakdowns).unwrap();
        let read: BTreeMap<Dimension, Breakdown> = serde_json::from_str(&stored).unwrap();
        prop_assert_eq!(read, breakdowns);
    }
}

/// An answer with a label.
fn answer_with(key: &str, value: &str) -> AnswerFacts {
    AnswerFacts {
        labels: serde_json::from_value(json!({key: value})).unwrap(),
        ..AnswerFacts::default()
    }
}

/// A rating of a user for an answer with a label.
fn rated(user: usize, rating: u8, key: &str, value: &str) -> (Facts, bool) {
    let facts = Facts {
        user: UserHash::of("acme", &user.to_string()),
        channel: Channel::Explicit,
        feedback_type: Some(FeedbackType::Rating),
        outcome: Action::Rated,
        is_neutral: false,
        reason: None,
        rating: Some(Rating::try_from(rating).unwrap()),
        reward_millionths: None,
        answer: answer_with(key, value),
    };
    (facts, false)
}

#[test]
fn turns_are_counted_by_the_values_of_their_answers() {
    let mut rollup = Rollup::default();
    let feedback = |is_explicit, is_inferred| TurnFeedback {
        is_explicit,
        is_inferred,
    };
    rollup.add_turn(&answer_with("model", "m-1"), feedback(true, true));
    rollup.add_turn(&answer_with("model", "m-1"), feedback(false, false));
    rollup.add_turn(&AnswerFacts::default(), feedback(false, true));
    let all = rollup.breakdowns[&Dimension::All].only_group();
    assert_eq!(all.counts.turns, TurnCounts::from([3, 1, 2, 2]));
    let by_model = &rollup.breakdowns[&model()];
    let of_model = by_model.groups["m-1"].counts.turns;
    assert_eq!(of_model, TurnCounts::from([2, 1, 1, 1]));
    let rest = by_model.without_value(&all).counts;
    assert_eq!(rest.turns, TurnCounts::from([1, 0, 1, 1]));
    assert!(!rollup.breakdowns.contains_key(&Dimension::Channel));
    let stored = serde_json::to_string(&by_model.groups["m-1"]).unwrap();
    assert_eq!(stored, r#"{"e":0,"t":[2,1,1,1]}"#);
}

fn model() -> Dimension {
    Dimension::Label("model".to_owned())
}

#[test]
fn rare_values_are_counted_together() {
    let frequent = (0..=MAX_VALUES).flat_map(|value| {
        let value = format!("m{value:03}");
        (0..2).map(move |user| rated(user, 5, "model", &value))
    });
    let rare = (0..7).map(|value| rated(9, 1, "model", &format!("a{value}")));
    let events: Vec<_> = frequent.chain(rare).collect();
    let bounded = rollup(&events).bounded();
    let breakdown = &bounded.breakdowns[&model()];
    assert_eq!(breakdown.groups.len(), MAX_VALUES);
    // The last of the equally frequent values, and the rare ones.
    let other = breakdown.other.as_ref().unwrap();
    assert_eq!(other.counts.given.accepted, 2);
    assert_eq!(other.counts.given.rejected, 7);
    assert_eq!(other.users.0.len(), 3);
    assert_eq!(breakdown.size().0, number(events.len()));
}

#[test]
fn a_user_with_many_acts_counts_once() {
    let loud = (0..100).map(|_| rated(0, 1, "model", "a"));
    let others = (1..=99).map(|user| rated(user, 5, "model", "a"));
    let events: Vec<_> = loud.chain(others).collect();
    let rollup = rollup(&events);
    let group = group(&rollup, &model(), "a");
    let by_act = &group.counts.given;
    assert_eq!((by_act.accepted, by_act.rejected), (99, 100));
    assert_eq!(Sample::of(&group.users).mean(), Some(0.99));
}

#[test]
fn of_many_users_the_same_sample_is_kept_in_every_hour() {
    let hours = [0, 1, 2].map(|hour| {
        let users = hour * 500..hour * 500 + 3000;
        users.map(|user| rated(user, if user % 4 == 0 { 1 } else { 5 }, "model", "a"))
    });
    let hours = hours.map(|events| rollup(&events.collect::<Vec<_>>()).bounded());
    let mut day = Rollup::default();
    for hour in &hours {
        day += hour;
    }
    let breakdown = &day.breakdowns[&model()];
    let limit = breakdown.sampled_below.unwrap();
    let users = &breakdown.groups["a"].users;
    let sampled = (0..4000).filter(|user| UserHash::of("acme", &user.to_string()) < limit);
    assert_eq!(users.0.len(), sampled.count());
    assert!(users.0.len() > MAX_SAMPLED_USERS / 2);
    // A user of two hours counts once.
    let mean = Sample::of(users).mean().unwrap();
    assert!((mean - 0.75).abs() < 0.06, "{mean}");
    assert!(day.bounded().breakdowns[&model()].groups["a"].users.0.len() <= MAX_SAMPLED_USERS);
}

#[test]
fn rare_label_keys_are_left_out_and_their_number_is_known() {
    let keys = (0..MAX_LABEL_KEYS + 3).flat_map(|key| {
        let acts = if key < 3 { 1 } else { 2 };
        (0..acts).map(move |user| rated(user, 5, &format!("k{key}"), "a"))
    });
    let bounded = rollup(&keys.collect::<Vec<_>>()).bounded();
    assert_eq!(bounded.label_keys_left_out, 3);
    for key in 0..3 {
        let dimension = Dimension::Label(format!("k{key}"));
        assert!(!bounded.breakdowns.contains_key(&dimension));
    }
}

#[test]
fn dimensions_are_read_by_their_names() {
    for name in [
        "all",
        "channel",
        "type",
        "outcome",
        "origin",
        "artifactType",
        "taskType",
        "agentId",
        "strategy",
        "label.prompt_version",
    ] {
        let dimension = Dimension::try_from(name.to_owned()).unwrap();
        assert_eq!(dimension.to_string(), name);
    }
    for name in ["", "label.", "labels", "userId"] {
        assert!(Dimension::try_from(name.to_owned()).is_err(), "{name}");
    }
}

fn at(time: &str) -> chrono::DateTime<chrono::Utc> {
    time.parse().unwrap()
}

fn query(given: &[(&str, &str)]) -> Result<InsightsQuery, Vec<String>> {
    let given = given.iter();
    let given = given.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let read = hearback_wire::from_query::<InsightsQuery>(&given.collect());
    read.map_err(|errors| errors.into_iter().map(|error| error.pointer).collect())
}

fn period(given: &[(&str, &str)]) -> Result<(String, String), String> {
    let period = query(given).unwrap().period(at("2026-11-27T10:20:30Z"));
    let period = period.map_err(|errors| errors[0].pointer.clone())?;
    Ok((period.from.to_rfc3339(), period.to.to_rfc3339()))
}

#[test]
fn a_period_has_whole_intervals() {
    let of = |from: &str, to: &str| Ok((format!("{from}+00:00"), format!("{to}+00:00")));
    for (given, expected) in [
        (&[][..], of("2026-10-28T00:00:00", "2026-11-28T00:00:00")),
        (
            &[
                ("from", "2026-11-02T09:30:00Z"),
                ("to", "2026-11-03T00:00:00Z"),
            ],
            of("2026-11-02T00:00:00", "2026-11-03T00:00:00"),
        ),
        (
            &[
                ("from", "2026-11-02T09:30:00Z"),
                ("to", "2026-11-02T10:00:01Z"),
                ("interval", "hour"),
            ],
            of("2026-11-02T09:00:00", "2026-11-02T11:00:00"),
        ),
        // A Thursday and a Monday.
        (
            &[
                ("from", "2026-11-05T09:30:00Z"),
                ("to", "2026-11-09T00:00:01Z"),
                ("interval", "week"),
            ],
            of("2026-11-02T00:00:00", "2026-11-16T00:00:00"),
        ),
        (
            &[
                ("to", "2026-11-01T00:00:00Z"),
                ("from", "2026-11-01T00:00:00Z"),
            ],
            Err("/to".to_owned()),
        ),
        (&[("from", "2027-01-01T00:00:00Z")], Err("/from".to_owned())),
        (&[("from", "2006-01-01T00:00:00Z")], Err("/from".to_owned())),
        (
            &[
                ("from", "2026-06-01T00:00:00Z"),
                ("to", "2026-11-01T00:00:00Z"),
                ("interval", "hour"),
                ("groupBy", "label.model"),
            ],
            Err("/to".to_owned()),
        ),
    ] {
        assert_eq!(period(given), expected, "{given:?}");
    }
}

#[test]
fn all_invalid_parameters_are_reported() {
    let invalid = [
        ("from", "yesterday"),
        ("interval", "month"),
        ("groupBy", "userId"),
        ("values", "0"),
    ];
    let mut reported = query(&invalid).unwrap_err();
    reported.sort();
    assert_eq!(reported, ["/from", "/groupBy", "/interval", "/values"]);
    for by in [
        "all",
        "label.",
        "label.a b",
        "label.é",
        &format!("label.{}", "k".repeat(65)),
    ] {
        assert_eq!(query(&[("groupBy", by)]).unwrap_err(), ["/groupBy"], "{by}");
    }
}

#[test]
fn intervals_are_those_of_wilson() {
    // The examples of Newcombe (1998), "Two-sided confidence intervals for the single proportion", table I.
    for (successes, n, low, high) in [
        (81.0, 263.0, 0.2553, 0.3662),
        (15.0, 148.0, 0.0624, 0.1605),
        (0.0, 20.0, 0.0, 0.1611),
        (1.0, 29.0, 0.0061, 0.1718),
    ] {
        let (lower, upper) = wilson(successes, n).unwrap();
        assert!((lower - low).abs() < 1e-4, "{successes} of {n}: {lower}");
        assert!((upper - high).abs() < 1e-4, "{successes} of {n}: {upper}");
    }
    assert_eq!(wilson(0.0, 0.0), None);
}

/// The report of hours, by model, as JSON.
fn report(hours: &[&[(Facts, bool)]], values: &str) -> serde_json::Value {
    let query = query(&[
        ("groupBy", "label.model"),
        ("values", values),
        ("interval", "hour"),
    ]);
    let query = query.unwrap();
    let period = Period {
        from: at("2026-11-02T00:00:00Z"),
        to: at("2026-11-03T00:00:00Z"),
    };
    let parts = (0..).zip(hours).map(|(hour, events)| {
        let mut rollup = rollup(*events).bounded();
        let begin = at("2026-11-02T00:00:00Z") + chrono::TimeDelta::hours(hour);
        let all = rollup.breakdowns.remove(&Dimension::All).unwrap();
        let by = rollup.breakdowns.remove(&model());
        let is_left_out = rollup.label_keys_left_out > 0;
        (Interval::Hour(begin), Part::new(all, by, is_left_out))
    });
    json!(InsightsReport::of(
        &query,
        period,
        parts,
        None,
        &BTreeSet::new()
    ))
}

#[test]
fn groups_add_up_to_the_total() {
    let events = [
        rated(1, 5, "model", "a"),
        rated(2, 5, "model", "a"),
        rated(1, 1, "model", "b"),
        rated(3, 1, "model", "c"),
        rated(1, 3, "prompt_version", "v7"),
    ];
    let report = report(&[&events[..3], &events[3..]], "1");
    assert_eq!(report["total"]["events"], 5);
    assert_eq!(report["total"]["satisfactionRate"], json!(0.4));
    assert_eq!(report["total"]["byUser"]["users"], 3);
    let groups = report["groups"].as_array().unwrap();
    let named: Vec<_> = groups
        .iter()
        .map(|group| json!([group["value"], group["other"], group["total"]["events"]]))
        .collect();
    assert_eq!(
        named,
        [
            json!(["a", false, 2]),
            json!([null, true, 2]),
            json!([null, false, 1])
        ]
    );
    // The second hour has no event of the first value.
    let starts = |group: &serde_json::Value| group["intervals"].as_array().unwrap().len();
    assert_eq!(groups.iter().map(starts).collect::<Vec<_>>(), [1, 2, 1]);
    // The user of the event without a model is counted there, and not as one of the others.
    assert_eq!(groups[2]["total"]["byUser"]["users"], 1);
    assert_eq!(groups[2]["total"]["neutral"], 1);
}

#[test]
fn inferred_verdicts_are_in_no_rate_of_those_that_users_gave() {
    let mut inferred = rated(1, 1, "model", "a");
    inferred.0.channel = Channel::Implicit;
    let report = report(&[&[rated(2, 5, "model", "a"), inferred]], "10");
    let group = &report["groups"][0]["total"];
    assert_eq!(group["satisfactionRate"], json!(1.0));
    assert_eq!(group["inferred"]["satisfactionRate"], json!(0.0));
    assert_eq!(group["byUser"]["satisfactionRate"], json!(1.0));
    assert_eq!(group["meanRating"], json!(5.0));
    assert_eq!(group["inferred"]["ratings"]["1"], 1);
}

#[test]
fn events_of_a_label_whose_key_is_not_counted_are_others() {
    let keys = (0..=MAX_LABEL_KEYS)
        .flat_map(|key| (0..2).map(move |user| rated(user, 5, &format!("k{key}"), "a")));
    let events: Vec<_> = keys.chain([rated(1, 5, "model", "a")]).collect();
    let report = report(&[&events], "10");
    let groups = report["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 1);
    assert_eq!(groups[0]["other"], true);
    assert_eq!(groups[0]["total"]["events"], report["total"]["events"]);
}
