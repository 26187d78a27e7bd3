//! The story of the month: which conversations there were, and what their users thought of the answers.
//!
//! A shop's assistant has three models. On a Tuesday, half of its users get prompt version `v7`, which answers most
//! questions a little better, and gives wrong answers about returns and shipping. Everything follows from the month's
//! last day, so that a repeat sends the same requests.

#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use chrono::{
    DateTime, Datelike, Days, NaiveDate, NaiveTime, SecondsFormat, TimeDelta, Utc, Weekday,
};
use fastrand::Rng;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// The days of the month.
pub const DAYS: u64 = 30;
/// The prompt version until the Tuesday, and of half of the users afterwards.
pub const OLD: &str = "v6";
/// The prompt version of the other half.
pub const NEW: &str = "v7";

/// Days for which the new version is in use, at least.
const NEW_FOR: u64 = 10;
/// Users, of whom some write more often than others.
const USERS: u32 = 400;
/// Conversations of a weekday; a day of the weekend has half as many.
const CONVERSATIONS: u32 = 48;
/// Turns of a conversation, at most.
const TURNS: usize = 4;

/// A model, its share of the conversations, and how many of its answers are right, both in percent.
const MODELS: [(&str, u32, u32); 3] = [
    ("fern-large", 45, 86),
    ("fern-small", 35, 76),
    ("moss-1", 20, 84),
];

/// How often users do something, in percent.
mod percent {
    /// Say in the next message that the answer is wrong.
    pub(super) const OBJECTS: u32 = 60;
    /// Give thanks for a right answer.
    pub(super) const THANKS: u32 = 30;
    /// Ask another question after a right answer.
    pub(super) const ASKS: u32 = 30;
    /// React to a right answer.
    pub(super) const REACTS_TO_RIGHT: u32 = 25;
    /// React to a wrong answer.
    pub(super) const REACTS_TO_WRONG: u32 = 40;
    /// Write a comment with a reaction.
    pub(super) const COMMENTS: u32 = 50;
    /// Judge an answer differently than most users.
    pub(super) const DISAGREES: u32 = 5;
    /// Rate the conversation.
    pub(super) const RATES: u32 = 12;
    /// Withdraw the rating.
    pub(super) const WITHDRAWS: u32 = 5;
    /// The shop's staff correct the wrong answer.
    pub(super) const IS_CORRECTED: u32 = 30;
}

/// A month of a project.
#[derive(Debug)]
pub struct Month {
    /// The first day.
    pub first: NaiveDate,
    /// The Tuesday on which the new prompt version came.
    pub tuesday: NaiveDate,
    /// In the order of time.
    pub conversations: Vec<Conversation>,
}

/// A conversation, and the feedback on it.
#[derive(Debug)]
pub struct Conversation {
    /// Its id.
    pub id: String,
    /// Its turns, in the order of time.
    pub turns: Vec<Turn>,
    /// Events about its turns.
    pub events: Vec<Value>,
    /// Those that are withdrawn.
    pub withdrawn: Vec<Uuid>,
}

/// A turn.
#[derive(Debug)]
pub struct Turn {
    /// Its id.
    pub id: String,
    /// The body of its registration.
    pub body: Value,
    /// The body of a reaction of its user.
    pub reaction: Option<Value>,
}

/// What users ask about one topic, and what they say of the answers.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Topic {
    task_type: String,
    questions: Vec<String>,
    right: Vec<String>,
    wrong: Vec<String>,
    rejections: Vec<String>,
    thanks: Vec<String>,
    follow_ups: Vec<FollowUp>,
    praise: Vec<String>,
    complaints: Vec<String>,
    correction: Correction,
}

#[derive(Deserialize)]
struct FollowUp {
    question: String,
    right: String,
    wrong: String,
}

#[derive(Deserialize)]
struct Correction {
    original: String,
    corrected: String,
}

static TOPICS: LazyLock<Vec<Topic>> = LazyLock::new(|| {
    // A test reads them.
    serde_json::from_str(include_str!("dialogues.json")).unwrap_or_default()
});

/// Answers to thanks.
const WELCOME: [&str; 3] = [
    "You're welcome. Have a good time outdoors.",
    "Glad that helped. Write again whenever you need something.",
    "With pleasure. Is there anything else?",
];

impl Month {
    /// The month of a project that ends with a day.
    #[must_use]
    pub fn until(last: NaiveDate, project: &str) -> Self {
        let first = last - Days::new(DAYS - 1);
        let mut tuesday = last - Days::new(NEW_FOR - 1);
        while tuesday.weekday() != Weekday::Tue {
            tuesday = tuesday - Days::new(1);
        }
        let mut conversations = Vec::new();
        for day in first.iter_days().take_while(|day| *day <= last) {
            let is_weekend = matches!(day.weekday(), Weekday::Sat | Weekday::Sun);
            let count = if is_weekend {
                CONVERSATIONS / 2
            } else {
                CONVERSATIONS
            };
            for number in 0..count {
                let id = format!("demo-{last}-{day}-{number:02}");
                // The same month for each weekday on which it may end, so that a test can read them all.
                let seed = format!("{} {} {number}", last.weekday(), (day - first).num_days());
                let writer = Writer::new(project, id, &seed, (day, tuesday));
                conversations.extend(writer.map(Writer::write));
            }
        }
        Self {
            first,
            tuesday,
            conversations,
        }
    }
}

/// Writes one conversation.
struct Writer<'a> {
    rng: Rng,
    project: &'a str,
    conversation: Conversation,
    topic: &'static Topic,
    user: String,
    model: &'static str,
    version: &'static str,
    /// How many answers are right, in percent.
    quality: u32,
    /// The time of the next turn.
    at: DateTime<Utc>,
}

/// What a user says, and possible answers.
struct Exchange {
    user: &'static str,
    right: &'static str,
    wrong: &'static str,
}

impl<'a> Writer<'a> {
    fn new(
        project: &'a str,
        id: String,
        seed: &str,
        (day, tuesday): (NaiveDate, NaiveDate),
    ) -> Option<Self> {
        let (seed, _) = Uuid::new_v5(&Uuid::NAMESPACE_OID, seed.as_bytes()).as_u64_pair();
        let mut rng = Rng::with_seed(seed);
        let topic = rng.choice(TOPICS.iter())?;
        // The smaller of two numbers is small more often.
        let user = rng.u32(..USERS).min(rng.u32(..USERS));
        let version = if day >= tuesday && user % 2 == 1 {
            NEW
        } else {
            OLD
        };
        let mut draw = rng.u32(..100);
        let (model, _, quality) = MODELS.into_iter().find(|(_, share, _)| {
            let is_this = draw < *share;
            draw = draw.saturating_sub(*share);
            is_this
        })?;
        let quality = match (version, topic.task_type.as_str()) {
            (NEW, "returns") => 5,
            (NEW, "shipping") => 15,
            (NEW, _) => quality + 3,
            _ => quality,
        };
        // Between 5 and 22 o'clock, and mostly in the middle of the day.
        let seconds = 18_000 + (0..3).map(|_| rng.i64(0..20_400)).sum::<i64>();
        let at = day.and_time(NaiveTime::MIN).and_utc() + TimeDelta::seconds(seconds);
        Some(Self {
            rng,
            project,
            conversation: Conversation {
                id,
                turns: Vec::new(),
                events: Vec::new(),
                withdrawn: Vec::new(),
            },
            topic,
            user: format!("customer-{user:03}"),
            model,
            version,
            quality,
            at,
        })
    }

    fn write(mut self) -> Conversation {
        let mut exchange = self.exchange(&self.topic.questions);
        loop {
            let is_right = self.happens(self.quality);
            self.answer(&exchange, is_right);
            let is_last = self.conversation.turns.len() >= TURNS;
            exchange = if is_last {
                break;
            } else if !is_right {
                if !self.happens(percent::OBJECTS) {
                    break;
                }
                self.exchange(&self.topic.rejections)
            } else if self.happens(percent::ASKS) {
                let Some(next) = self.rng.choice(&self.topic.follow_ups) else {
                    break;
                };
                Exchange {
                    user: &next.question,
                    right: &next.right,
                    wrong: &next.wrong,
                }
            } else {
                if self.happens(percent::THANKS) {
                    let (user, welcome) = (self.pick(&self.topic.thanks), self.rng.choice(WELCOME));
                    self.turn(user, welcome.unwrap_or_default());
                }
                break;
            };
        }
        self.conversation
    }

    /// What a user says of the topic, and answers to it.
    fn exchange(&mut self, messages: &'static [String]) -> Exchange {
        Exchange {
            user: self.pick(messages),
            right: self.pick(&self.topic.right),
            wrong: self.pick(&self.topic.wrong),
        }
    }

    /// A turn with an answer, and what is thought of it.
    fn answer(&mut self, exchange: &Exchange, is_right: bool) {
        let answer = if is_right {
            exchange.right
        } else {
            exchange.wrong
        };
        let id = self.turn(exchange.user, answer);
        let likes = is_right != self.happens(percent::DISAGREES);
        let reacts = if is_right {
            percent::REACTS_TO_RIGHT
        } else {
            percent::REACTS_TO_WRONG
        };
        if self.happens(reacts) {
            self.react(likes);
        }
        if self.happens(percent::RATES) {
            self.rate(&id, likes);
        }
        let Correction {
            original,
            corrected,
        } = &self.topic.correction;
        if answer.contains(original.as_str()) && self.happens(percent::IS_CORRECTED) {
            let staff = self.rng.u32(1..=3);
            let minutes = self.rng.i64(5..40);
            let mut event = self.event(&id, "modification", TimeDelta::minutes(minutes));
            event.insert("userId".to_owned(), format!("staff-{staff}").into());
            event.insert("feedbackChannel".to_owned(), "correction".into());
            let correction = json!({
                "originalValue": original, "correctedValue": corrected, "correctionType": "accuracy",
            });
            event.insert("correctionData".to_owned(), correction);
            self.conversation.events.push(event.into());
        }
    }

    /// Adds a turn, and returns its id.
    fn turn(&mut self, user: &str, answer: &str) -> String {
        let id = format!("turn-{}", self.conversation.turns.len() + 1);
        let task = &self.topic.task_type;
        let body = json!({
            "ts": time(self.at),
            "user_id": self.user,
            "user": {"text": user},
            "assistant": {"text": answer, "message_id": format!("{}-{id}", self.conversation.id)},
            "language": "en",
            "task_type": task,
            "agent_id": format!("{task}-agent"),
            "artifact_type": "answer",
            "labels": {"model": self.model, "prompt_version": self.version},
        });
        self.conversation.turns.push(Turn {
            id: id.clone(),
            body,
            reaction: None,
        });
        self.at += TimeDelta::seconds(self.rng.i64(40..200));
        id
    }

    /// The user's reaction to the last turn.
    fn react(&mut self, likes: bool) {
        let (reaction, comments) = if likes {
            ("ok", &self.topic.praise)
        } else {
            ("not_ok", &self.topic.complaints)
        };
        let comment = self.happens(percent::COMMENTS).then(|| self.pick(comments));
        // Before the next turn.
        let ts = time(self.at - TimeDelta::seconds(20));
        let reaction = json!({"reaction": reaction, "text": comment.unwrap_or_default(), "ts": ts, "user_id": self.user});
        if let Some(turn) = self.conversation.turns.last_mut() {
            turn.reaction = Some(reaction);
        }
    }

    fn rate(&mut self, turn: &str, likes: bool) {
        let ratings: [u8; 4] = if likes { [5, 5, 4, 3] } else { [1, 1, 2, 3] };
        let rating = self.rng.choice(ratings);
        let mut event = self.event(turn, "rating", TimeDelta::seconds(30));
        event.insert("data".to_owned(), json!({"rating": rating}));
        self.conversation.events.push(event.into());
        if self.happens(percent::WITHDRAWS) {
            let id = self.event_id(turn, "rating");
            self.conversation.withdrawn.push(id);
        }
    }

    /// An explicit event of the user about a turn, after the time of the next one.
    fn event(&self, turn: &str, kind: &str, after: TimeDelta) -> Map<String, Value> {
        let id = &self.conversation.id;
        let members = [
            ("feedbackId", json!(self.event_id(turn, kind))),
            ("userId", json!(self.user)),
            ("sessionId", json!(id)),
            ("feedbackChannel", json!("explicit")),
            ("feedbackType", json!(kind)),
            ("timestamp", json!(time(self.at + after))),
            (
                "context",
                json!({"projectId": self.project, "conversationId": id, "turnId": turn}),
            ),
        ];
        members
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }

    fn event_id(&self, turn: &str, kind: &str) -> Uuid {
        let id = &self.conversation.id;
        event_id(self.project, &format!("{id}/{turn}/{kind}"))
    }

    fn happens(&mut self, percent: u32) -> bool {
        self.rng.u32(..100) < percent
    }

    fn pick(&mut self, texts: &'static [String]) -> &'static str {
        self.rng.choice(texts).map_or("", String::as_str)
    }
}

fn event_id(project: &str, name: &str) -> Uuid {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("{project}/{name}").as_bytes())
}

fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}
