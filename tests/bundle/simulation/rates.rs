//! The satisfaction rate of each conversation, by the rows themselves.

use std::collections::BTreeMap;

use hearback_domain::events::recency::Recency;
use hearback_domain::feedback::reaction::{FeedbackKind, Origin, Reaction, ReactionCore};
use hearback_tests::rows::Row;

/// One voice for each user and turn, and one more for what has no name: the latest that the user gave, or else the
/// machine's.
pub fn rates(rows: &[Row], tenant: &str, reader: &str) -> BTreeMap<String, f64> {
    let partition = format!("CONV#{tenant}#");
    let mut given: BTreeMap<_, BTreeMap<Origin, (Recency, Reaction)>> = BTreeMap::new();
    for row in rows {
        let part = |name: &str| row.get(name).map(|part| part.as_s().unwrap().as_str());
        let (pk, sk) = (part("PK").unwrap(), part("SK").unwrap());
        if !pk.starts_with(&partition) || !sk.starts_with("REACTION#") {
            continue;
        }
        let core = part("core").or_else(|| part("counted")).unwrap();
        let core: ReactionCore = serde_json::from_str(core).unwrap();
        let Some(verdict) = core.reaction else {
            continue;
        };
        let conversation = core.at.within.conversation.to_string();
        let by = (
            conversation,
            core.at.turn.to_string(),
            core.user_id.to_string(),
            // The reader does not see whose the others are.
            core.kind == FeedbackKind::Reaction || core.user_id.as_str() == reader,
        );
        let act = (core.recency(), verdict);
        let latest = given
            .entry(by)
            .or_default()
            .entry(core.origin)
            .or_insert(act);
        if latest.0 < act.0 {
            *latest = act;
        }
    }
    let mut counts: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for ((conversation, ..), by_origin) in given {
        let voice = by_origin
            .get(&Origin::User)
            .or_else(|| by_origin.get(&Origin::Machine));
        let (ok, all) = counts.entry(conversation).or_default();
        *ok += f64::from(u8::from(voice.unwrap().1 == Reaction::Ok));
        *all += 1.0;
    }
    let rates = counts.into_iter();
    rates
        .map(|(conversation, (ok, all))| (conversation, ok / all))
        .collect()
}
