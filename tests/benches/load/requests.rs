//! Mixed traffic: requests, and what their acknowledgements promise.

use std::collections::VecDeque;

use hearback_tests::events::{acceptance, id};
use hearback_tests::generate::Random;
use hearback_tests::served::Key;
use hearback_tests::turns::{SIGNALS, conversation_path, message, path};
use reqwest::Method;
use serde_json::{Value, json};

/// Users who submit events, and as many who have conversations.
const USERS: u64 = 500;
/// Users who change their preferences, one change at a time.
const PREFERENCE_USERS: u64 = 100;
/// Events in a batch.
const BATCH: usize = 50;
/// Number of recent events to read.
const RECENT_EVENTS: usize = 1_000;

/// A registered turn.
#[derive(Clone)]
pub struct Turn {
    number: u64,
    user: String,
}

/// What later requests can use after the acknowledgement.
pub enum Followup {
    Nothing,
    Read(String),
    Talk(Turn),
    Change(String, u64),
}

/// A request, and what its acknowledgement promises.
pub struct Planned {
    /// `None` for a back end.
    pub user: Option<String>,
    pub method: Method,
    pub path: String,
    pub body: Option<Value>,
    /// The items that must be stored in the end.
    pub promised: Vec<Key>,
    /// The users whose preferences learn from an event, once for each.
    pub learners: Vec<String>,
    pub then: Followup,
}

/// An endless sequence of requests, the same for the same responses.
pub struct Requests {
    random: Random,
    turns: u64,
    events: VecDeque<String>,
    to_react: VecDeque<Turn>,
    to_signal: VecDeque<Turn>,
    versions: VecDeque<(String, u64)>,
}

fn get(user: String, path: String) -> Planned {
    Planned {
        user: Some(user),
        method: Method::GET,
        path,
        body: None,
        promised: Vec::new(),
        learners: Vec::new(),
        then: Followup::Nothing,
    }
}

fn post(user: String, path: String, body: Value) -> Planned {
    Planned {
        method: Method::POST,
        body: Some(body),
        ..get(user, path)
    }
}

/// An event and its outcome.
fn event_keys(feedback_id: &str) -> [Key; 2] {
    let pk = format!("EVENT#acme#{feedback_id}");
    ["EVENT", "RESULT"].map(|sk| (pk.clone(), sk.to_owned()))
}

impl Turn {
    fn conversation(&self) -> String {
        format!("conv-{}", self.number)
    }

    fn message(&self) -> String {
        format!("msg-{}", self.number)
    }

    fn key(&self, sk: String) -> Key {
        let pk = format!("CONV#acme#order-service#{}", self.conversation());
        (pk, sk)
    }
}

impl Requests {
    /// Starts the sequence.
    pub fn new() -> Self {
        Self {
            random: Random(1),
            turns: 0,
            events: VecDeque::new(),
            to_react: VecDeque::new(),
            to_signal: VecDeque::new(),
            versions: (0..PREFERENCE_USERS)
                .map(|n| (format!("settler-{n}"), 0))
                .collect(),
        }
    }

    /// Records what later requests can use.
    pub fn record(&mut self, then: Followup) {
        match then {
            Followup::Nothing | Followup::Change(..) => {}
            Followup::Read(feedback_id) => {
                self.events.push_front(feedback_id);
                self.events.truncate(RECENT_EVENTS);
            }
            Followup::Talk(turn) => {
                self.to_react.push_back(turn.clone());
                self.to_signal.push_back(turn);
            }
        }
    }

    /// Lets a user change their preferences again, from this version.
    pub fn changed(&mut self, user: &str, version: u64) {
        self.versions.push_back((user.to_owned(), version));
    }

    /// The next request.
    pub fn next(&mut self) -> Planned {
        let planned = match self.random.below(100) {
            0..15 => self.read_event(),
            15..27 => Some(self.read_preferences()),
            27..37 => Some(self.register()),
            37..47 => self.react(),
            47..52 => self.signal(),
            52..54 => self.report("timeline/refresh"),
            54..56 => self.report("turns-with-feedbacks"),
            56..59 => self.change(),
            59 => Some(self.batch()),
            _ => None,
        };
        planned.unwrap_or_else(|| self.submit())
    }

    fn user(&mut self) -> String {
        format!("user-{}", self.random.below(USERS))
    }

    fn submit(&mut self) -> Planned {
        let user = self.user();
        let mut event = acceptance(&user);
        let mut learners = vec![user.clone()];
        if self.random.below(2) == 0 {
            event["feedbackChannel"] = json!("implicit");
            event["feedbackType"] = json!("dwell-time");
            event["data"] = json!({"timeSpent": 45});
            // Preferences do not learn from that.
            learners.clear();
        }
        let feedback_id = id(&event);
        Planned {
            promised: event_keys(&feedback_id).into(),
            learners,
            then: Followup::Read(feedback_id),
            ..post(user, "/v1/feedback/submit".to_owned(), event)
        }
    }

    fn batch(&mut self) -> Planned {
        let users: Vec<_> = (0..BATCH).map(|_| self.user()).collect();
        let events: Vec<_> = users.iter().map(|user| acceptance(user)).collect();
        let promised = events.iter().flat_map(|event| event_keys(&id(event)));
        Planned {
            user: None,
            promised: promised.collect(),
            learners: users,
            ..post(
                String::new(),
                "/v1/feedback/batch".to_owned(),
                json!({"events": events}),
            )
        }
    }

    fn read_event(&mut self) -> Option<Planned> {
        let at = usize::try_from(self.random.below(RECENT_EVENTS as u64)).unwrap();
        let feedback_id = self.events.get(at)?;
        let path = format!("/v1/feedback/{feedback_id}");
        Some(Planned {
            user: None,
            ..get(String::new(), path)
        })
    }

    fn read_preferences(&mut self) -> Planned {
        let user = self.user();
        let path = format!("/v1/preferences/{user}/resolved");
        get(user, path)
    }

    /// A turn in its own conversation, so that it has no follow-up.
    fn register(&mut self) -> Planned {
        self.turns += 1;
        let turn = Turn {
            number: self.turns,
            user: format!("talker-{}", self.turns % USERS),
        };
        let body = message(
            &turn.message(),
            "How do I return an item?",
            "Within 30 days.",
        );
        let directory = format!("MESSAGE#acme#order-service#{}", turn.message());
        Planned {
            method: Method::PUT,
            promised: vec![
                turn.key("TURN#t".to_owned()),
                (directory, "MESSAGE".to_owned()),
            ],
            ..post(turn.user.clone(), path(&turn.conversation(), "t"), body)
        }
        .then(Followup::Talk(turn))
    }

    fn react(&mut self) -> Option<Planned> {
        let turn = self.to_react.pop_front()?;
        let path = format!("{}/feedback", path(&turn.conversation(), "t"));
        Some(Planned {
            promised: vec![turn.key(format!("REACTION#t#user#{}", turn.user))],
            learners: vec![turn.user.clone()],
            ..post(turn.user, path, json!({"reaction": "ok"}))
        })
    }

    fn signal(&mut self) -> Option<Planned> {
        let turn = self.to_signal.pop_front()?;
        let pk = format!("USER#acme#{}", turn.user);
        let body = json!({"message_id": turn.message(), "signal": "helpful"});
        Some(Planned {
            promised: vec![(pk, format!("SIGNAL#{}#helpful", turn.message()))],
            learners: vec![turn.user.clone()],
            ..post(turn.user, SIGNALS.to_owned(), body)
        })
    }

    fn report(&mut self, name: &str) -> Option<Planned> {
        let turn = self.to_signal.back()?.clone();
        let path = format!("{}/{name}", conversation_path(&turn.conversation()));
        let mut body = json!({"turn_ids": ["t"]});
        if name == "timeline/refresh" {
            body["cache"] = json!({"ttl_seconds": 0});
        }
        Some(post(turn.user, path, body))
    }

    fn change(&mut self) -> Option<Planned> {
        let (user, version) = self.versions.pop_front()?;
        let path = format!("/v1/preferences/{user}");
        let body = json!({
            "preferenceVersion": version, "globalPreferences": {"detailLevel": "overview"}
        });
        let key = (
            format!("PREF#acme#{user}"),
            format!("V#{:010}", version + 1),
        );
        Some(Planned {
            method: Method::PUT,
            promised: vec![key],
            then: Followup::Change(user.clone(), version),
            ..post(user, path, body)
        })
    }
}

impl Planned {
    fn then(self, then: Followup) -> Self {
        Self { then, ..self }
    }
}
