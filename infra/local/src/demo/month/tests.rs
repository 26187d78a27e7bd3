use std::collections::{BTreeMap, BTreeSet};

use hearback_domain::views::insights::{Comparison, ComparisonVerdict, Sample};

use super::*;

/// One month for each weekday on which it may end.
fn months() -> impl Iterator<Item = (NaiveDate, Month)> {
    let last = NaiveDate::from_ymd_opt(2026, 11, 20).unwrap();
    let last = last.iter_days().take(7);
    last.map(|last| (last, Month::until(last, "demo")))
}

#[test]
fn every_topic_has_all_its_texts() {
    assert_eq!(TOPICS.len(), 20);
    for topic in TOPICS.iter() {
        let Topic {
            task_type,
            questions,
            right,
            wrong,
            rejections,
            thanks,
            follow_ups,
            praise,
            complaints,
            correction,
        } = topic;
        for texts in [
            questions, right, wrong, rejections, thanks, praise, complaints,
        ] {
            assert!(!texts.is_empty(), "{task_type}");
        }
        assert!(!follow_ups.is_empty());
        let is_quoted = |wrong: &String| wrong.contains(&correction.original);
        assert!(wrong.iter().any(is_quoted), "{}", correction.original);
    }
}

#[test]
fn a_month_has_ids_once_and_ends_in_time() {
    for (last, month) in months() {
        assert_eq!(month.tuesday.weekday(), Weekday::Tue);
        let new_for = (last - month.tuesday).num_days() + 1;
        assert!((10..=16).contains(&new_for), "{new_for} days");
        let mut ids = BTreeSet::new();
        for conversation in &month.conversations {
            let turns = conversation.turns.iter().map(|turn| &turn.body["ts"]);
            let events = &conversation.events;
            let times = turns.chain(events.iter().map(|event| &event["timestamp"]));
            for at in times {
                let at: DateTime<Utc> = at.as_str().unwrap().parse().unwrap();
                assert!((month.first..=last).contains(&at.date_naive()), "{at}");
            }
            for event in events {
                assert!(ids.insert(event["feedbackId"].as_str().unwrap()), "{event}");
            }
            let known = |id: &Uuid| ids.contains(id.to_string().as_str());
            assert!(conversation.withdrawn.iter().all(known));
        }
    }
}

#[test]
fn the_new_prompt_version_is_found_to_be_worse_in_every_month() {
    for (last, month) in months() {
        let sample = |version: &str| {
            let mut rates: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
            let turns = month.conversations.iter().flat_map(|of| &of.turns);
            let since = month.tuesday.to_string();
            for turn in turns.filter(|turn| turn.body["ts"].as_str() >= Some(&since)) {
                let reaction = turn.reaction.as_ref();
                let is_version = turn.body["labels"]["prompt_version"] == version;
                if let Some(reaction) = reaction.filter(|_| is_version) {
                    let user = rates
                        .entry(reaction["user_id"].as_str().unwrap())
                        .or_default();
                    user.push(if reaction["reaction"] == "ok" {
                        1.0
                    } else {
                        0.0
                    });
                }
            }
            let mut sample = Sample::default();
            for user in rates.values() {
                sample
                    .add(user.iter().sum::<f64>() / f64::from(u32::try_from(user.len()).unwrap()));
            }
            sample
        };
        let compared = Comparison::of(&sample(OLD), &sample(NEW), 0.05);
        assert_eq!(
            compared.verdict,
            ComparisonVerdict::Worse,
            "{last}: {compared:?}"
        );
    }
}
