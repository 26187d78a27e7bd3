//! Compares the stored events, acts and turns of a tenant with the model.

use std::collections::{BTreeMap, BTreeSet};

use hearback_domain::events::event::{Channel, EventCore};
use hearback_domain::events::recency::Recency;
use hearback_domain::feedback::counted;
use hearback_domain::feedback::reaction::{FeedbackKind, Origin, Reaction, ReactionCore};
use hearback_domain::feedback::turn_status::ExplicitFeedback;
use hearback_domain::learning::ledger::Retraction;
use hearback_domain::learning::preferences::Lesson;
use hearback_domain::learning::publication::Outcome;
use hearback_domain::turns::turn::{TurnCore, TurnRef};
use hearback_tests::rows::Row;
use serde_json::Value;

use super::model::{Tenant, Turn};
use super::world::{message_of, turn_id};

/// The events of a tenant, with their outcomes.
pub struct Ledger {
    tenant: &'static str,
    events: BTreeMap<String, EventCore>,
    outcomes: BTreeMap<String, Outcome>,
    retracted: BTreeSet<String>,
    /// The retracted events that an earlier equal event or a later feedback act replaced.
    replaced: BTreeSet<String>,
    /// The events that hold a claim of their dedupe key, each with its user.
    claims: BTreeMap<String, String>,
}

impl Ledger {
    pub fn read(rows: &[Row], tenant: &'static str) -> Self {
        let partition = format!("EVENT#{tenant}#");
        let claims = format!("USER#{tenant}#");
        let mut ledger = Self {
            tenant,
            events: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            retracted: BTreeSet::new(),
            replaced: BTreeSet::new(),
            claims: BTreeMap::new(),
        };
        for row in rows {
            let [pk, sk] = ["PK", "SK"].map(|name| row[name].as_s().unwrap().as_str());
            if let Some(user) = pk
                .strip_prefix(&claims)
                .filter(|_| sk.starts_with("CLAIM#"))
            {
                let event = row["feedbackId"].as_s().unwrap().clone();
                let before = ledger.claims.insert(event, user.to_owned());
                assert_eq!(before, None, "two claims: {row:?}");
            }
            let Some(id) = pk.strip_prefix(&partition) else {
                continue;
            };
            let id = id.to_owned();
            let part = |name: &str| row[name].as_s().unwrap().as_str();
            match sk {
                "EVENT" => {
                    let core = serde_json::from_str(part("core")).unwrap();
                    ledger.events.insert(id, core);
                }
                "RESULT" => {
                    let outcome = serde_json::from_str(part("outcome")).unwrap();
                    ledger.outcomes.insert(id, outcome);
                }
                "RETRACTION" => {
                    let retraction: Retraction = serde_json::from_str(part("retraction")).unwrap();
                    if retraction.replaced_by.is_some() {
                        ledger.replaced.insert(id.clone());
                    }
                    ledger.retracted.insert(id);
                }
                other => panic!("unknown row {other}"),
            }
        }
        ledger
    }

    fn processed(&self) -> impl Iterator<Item = &EventCore> {
        self.events.iter().filter_map(|(id, core)| {
            matches!(self.outcomes.get(id), Some(Outcome::Processed(_))).then_some(core)
        })
    }

    /// Exactly the acknowledged events are stored and processed, except erased ones.
    pub fn check_events(&self, tenant: &Tenant) {
        let known = self.events.iter().filter(|(_, core)| !core.derived);
        let is_being_erased = |core: &&EventCore| tenant.is_being_erased(core.user_id.as_str());
        let known: BTreeSet<_> = known
            .filter(|(_, core)| !is_being_erased(core))
            .map(|(id, _)| id.clone())
            .collect();
        let expected: BTreeSet<_> = (tenant.events.iter())
            .filter(|(_, sent)| {
                !tenant
                    .being_erased
                    .contains(sent["userId"].as_str().unwrap())
            })
            .map(|(id, _)| id.to_string())
            .collect();
        let missing: Vec<_> = expected.difference(&known).collect();
        let unexpected = known.difference(&expected);
        let unexpected: Vec<_> = unexpected.map(|id| &self.events[id]).collect();
        assert!(
            missing.is_empty() && unexpected.is_empty(),
            "missing {missing:?}, unexpected {unexpected:#?}"
        );
        for (id, sent) in &tenant.events {
            if let Some(core) = self.events.get(&id.to_string()) {
                assert_eq!(core.user_id.as_str(), tenant.name_in(sent), "{core:?}");
            }
        }
        for id in tenant.withdrawn.iter().map(ToString::to_string) {
            let core = self.events.get(&id).filter(|core| !is_being_erased(core));
            let is_lost = core.is_some() && !self.retracted.contains(&id);
            assert!(!is_lost, "a withdrawal is lost: {core:?}");
        }
        let events: Vec<_> = self.events.keys().collect();
        let outcomes: Vec<_> = self.outcomes.keys().collect();
        assert_eq!(events, outcomes, "each event has an outcome");
    }

    /// Checks that of equal events exactly one counts and holds the claim, apart from those that were withdrawn.
    pub fn check_once(&self, tenant: &Tenant) {
        // Some data of a user who is being erased is gone already.
        let stays = |core: &&EventCore| !tenant.is_being_erased(core.user_id.as_str());
        let mut equal: BTreeMap<[u8; 32], Vec<&EventCore>> = BTreeMap::new();
        for core in self.events.values().filter(stays) {
            let key = core.dedupe_key().fingerprint();
            equal.entry(key).or_default().push(core);
        }
        let counts = |core: &&&EventCore| {
            let outcome = &self.outcomes[&core.feedback_id.to_string()];
            matches!(outcome, Outcome::Processed(_))
        };
        let mut firsts = BTreeSet::new();
        for equal in equal.values() {
            let counted = equal.iter().filter(counts);
            let counted = counted.map(|core| core.feedback_id.to_string());
            let (holders, others): (Vec<_>, Vec<_>) =
                counted.partition(|id| self.claims.contains_key(id));
            assert_eq!(holders.len(), 1, "one of equal events counts: {equal:#?}");
            let withdrawn = others.iter().all(|id| self.retracted.contains(id));
            assert!(withdrawn, "one of equal events counts: {equal:#?}");
            firsts.extend(holders);
        }
        let claims = (self.claims.iter())
            .filter(|(_, user)| !tenant.is_being_erased(user))
            .map(|(event, _)| event.clone());
        let claims: BTreeSet<_> = claims.collect();
        assert_eq!(claims, firsts, "each counted event has a claim");
    }

    /// Current reactions and signals are in the ledger, once; the others are retracted.
    pub fn check_acts(&self, tenant: &Tenant) {
        let mut current = BTreeMap::new();
        for core in self.processed().filter(|core| core.derived) {
            let id = core.feedback_id.to_string();
            let by_machine = core.channel == Channel::Implicit;
            if self.retracted.contains(&id)
                || by_machine
                || tenant.is_being_erased(core.user_id.as_str())
            {
                continue;
            }
            let about = core.artifact_id.as_ref().unwrap().to_string();
            let key = (about, core.user_id.to_string());
            let before = current.insert(key, core.accepted);
            assert_eq!(before, None, "two current events of one act: {core:?}");
        }
        let reactions = tenant.reactions.iter().map(|((turn, by), verdict)| {
            let accepted = match *verdict {
                "ok" => Some(true),
                "not_ok" => Some(false),
                _ => None,
            };
            ((turn_id(*turn), *by), accepted)
        });
        let signals = tenant.signals.keys();
        let signals = signals.map(|(turn, by)| ((message_of(*turn), *by), None));
        let expected: BTreeMap<_, _> = reactions
            .chain(signals)
            .filter(|((_, by), _)| !tenant.is_being_erased(by))
            .map(|((about, by), accepted)| ((about, by.to_owned()), accepted))
            .collect();
        assert_eq!(current, expected);
    }

    /// Subscribers received the whole outcome of each event.
    pub fn check_published(&self, published: &BTreeMap<String, Value>) {
        let published: BTreeSet<_> = published.values().map(Value::to_string).collect();
        for outcome in self.outcomes.values() {
            if let Outcome::Processed(processed) = outcome {
                for (_, message) in processed.messages() {
                    assert!(published.contains(&message.to_string()), "{message}");
                }
            }
        }
    }

    /// Exactly the registered turns are stored.
    pub fn check_turns(&self, rows: &[Row], tenant: &Tenant) {
        let conversations = format!("CONV#{}#", self.tenant);
        let turns = rows.iter().filter_map(|row| {
            let [pk, sk] = ["PK", "SK"].map(|name| row[name].as_s().unwrap());
            let of_tenant = pk.starts_with(&conversations);
            sk.strip_prefix("TURN#").filter(|_| of_tenant)
        });
        let is_of_erased_user = |turn: &&Turn| tenant.being_erased.contains(turn.0);
        let stored: BTreeSet<_> = turns.map(ToOwned::to_owned).collect();
        let of_erased_users = tenant.turns.iter().filter(is_of_erased_user);
        let of_erased_users: BTreeSet<_> = of_erased_users.map(|turn| turn_id(*turn)).collect();
        let expected = tenant.turns.iter().map(|turn| turn_id(*turn));
        let expected: BTreeSet<_> = expected
            .filter(|turn| !of_erased_users.contains(turn))
            .collect();
        let stored: BTreeSet<_> = stored.difference(&of_erased_users).cloned().collect();
        assert_eq!(stored, expected);
    }

    /// Each event about a turn and each signal counts for it once, and the latest feedback of the turn's user determines
    /// its status.
    pub fn check_counted(&self, rows: &[Row], tenant: &Tenant) {
        let conversations = format!("CONV#{}#", self.tenant);
        let rows = rows
            .iter()
            .filter(|row| row["PK"].as_s().unwrap().starts_with(&conversations));
        let mut feedback: BTreeMap<TurnRef, Vec<(Recency, Reaction)>> = BTreeMap::new();
        let mut verdicts: BTreeMap<TurnRef, Option<Reaction>> = BTreeMap::new();
        let (mut events, mut signals) = (BTreeSet::new(), BTreeSet::new());
        let mut inferred = BTreeSet::new();
        for row in rows {
            let part = |name: &str| row.get(name).map(|part| part.as_s().unwrap().as_str());
            let sk = part("SK").unwrap();
            if sk.starts_with("TURN#") {
                let core: TurnCore = serde_json::from_str(part("core").unwrap()).unwrap();
                let feedback = part("said")
                    .map(|feedback| serde_json::from_str::<ExplicitFeedback>(feedback).unwrap());
                if !tenant.is_being_erased(core.user_id.as_str()) {
                    verdicts.insert(
                        core.at,
                        feedback.and_then(|feedback| {
                            feedback.verdict(chrono::DateTime::<chrono::Utc>::MIN_UTC)
                        }),
                    );
                }
            } else if let Some(core) = part("core").or_else(|| part("counted")) {
                let core: ReactionCore = serde_json::from_str(core).unwrap();
                if core.kind == FeedbackKind::Event
                    && !core.is_event_tombstone()
                    && !tenant.is_being_erased(core.user_id.as_str())
                {
                    events.insert(core.id.to_string());
                }
                if core.kind == FeedbackKind::Inaccurate
                    && core.reaction.is_some()
                    && !tenant.is_being_erased(core.user_id.as_str())
                {
                    signals.insert((core.at.turn.to_string(), core.user_id.to_string()));
                }
                if core.origin == Origin::Machine
                    && core.reaction.is_some()
                    && !tenant.is_being_erased(core.user_id.as_str())
                {
                    inferred.insert(core.id.to_string());
                }
                if core.own && core.origin == Origin::User {
                    let verdict = core.reaction.map(|verdict| (core.recency(), verdict));
                    feedback.entry(core.at).or_default().extend(verdict);
                }
            }
        }
        let stays = |core: &&EventCore| !tenant.is_being_erased(core.user_id.as_str());
        let stands = |core: &&EventCore| !self.retracted.contains(&core.feedback_id.to_string());
        let heard = (self.processed().filter(stays))
            .filter(|core| core.derived && core.channel == Channel::Implicit)
            .filter(stands)
            .map(|core| core.feedback_id.to_string());
        assert_eq!(
            inferred,
            heard.collect(),
            "each inference that was not taken back"
        );
        let about = self.processed().filter(stays);
        let about = about.filter(|core| counted::turn_of(core).is_some() && counted::counts(core));
        let id = |core: &EventCore| core.feedback_id.to_string();
        let about = about.filter(|core| !self.retracted.contains(&id(core)));
        let about: BTreeSet<_> = about.map(|core| core.feedback_id.to_string()).collect();
        assert_eq!(
            events, about,
            "each event about a turn counts for it, unless it is withdrawn"
        );
        let given = tenant.signals.keys();
        let given = given
            .filter(|(turn, by)| !tenant.is_being_erased(by) && !tenant.is_being_erased(turn.0));
        let given: BTreeSet<_> = given
            .map(|(turn, by)| (turn_id(*turn), (*by).to_owned()))
            .collect();
        assert_eq!(signals, given, "each signal counts for its turn");
        for (at, verdict) in verdicts {
            let all = feedback.remove(&at).unwrap_or_default();
            let latest = all.iter().max_by_key(|(recency, _)| recency);
            assert_eq!(
                verdict,
                latest.map(|(_, verdict)| *verdict),
                "the status of {at:?} is that of the latest feedback of {all:?}"
            );
        }
    }

    /// The number of a user's events with a lesson, and the number of those that an earlier equal event replaced.
    pub fn lessons(&self, user: &str) -> (usize, usize) {
        let teaches =
            |core: &&EventCore| core.user_id.as_str() == user && Lesson::of(core).is_some();
        let is_replaced = |core: &&EventCore| {
            !core.derived && self.replaced.contains(&core.feedback_id.to_string())
        };
        let firsts = self.processed().filter(teaches);
        let firsts = firsts.filter(|core| !is_replaced(core));
        // An event whose outcome is `duplicate` may be named too, if a worker had claimed its key before.
        let replaced = self.events.values().filter(teaches).filter(is_replaced);
        (firsts.count(), replaced.count())
    }
}
