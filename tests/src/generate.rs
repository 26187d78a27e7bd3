//! An endless sequence of events of many kinds and users, the same for the same seed. Some repeat, some are invalid.

use serde_json::{Value, json};

/// The mix of events.
#[derive(Debug, Clone, Copy)]
pub struct Mix {
    /// Repeats of an earlier line, per thousand lines.
    pub duplicates: u64,
    /// Invalid lines, per thousand lines.
    pub invalid: u64,
    /// The number of users.
    pub users: u64,
    /// Whether every event is anonymous and full of personal data.
    pub anonymous: bool,
}

impl Default for Mix {
    fn default() -> Self {
        Self {
            duplicates: 20,
            invalid: 10,
            users: 10_000,
            anonymous: false,
        }
    }
}

/// The expected outcome of an import.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Expected {
    /// New events.
    pub queued: u64,
    /// Events that are stored already.
    pub duplicates: u64,
    /// Invalid lines.
    pub rejected: u64,
}

/// Lines of a file of events.
#[derive(Debug, Clone)]
pub struct Lines {
    mix: Mix,
    random: Random,
    earlier: Vec<u64>,
    /// The expected outcome of the lines so far.
    pub expected: Expected,
}

/// The random numbers of a seed: SplitMix64.
#[derive(Debug, Clone)]
pub struct Random(pub u64);

impl Random {
    /// The next number.
    #[expect(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// The next number, reduced to less than `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// How many earlier events may be repeated; a bound on memory.
const REMEMBERED: usize = 1_000;

/// Raw values of anonymous events, which must not be stored anywhere.
pub const PLANTED: [&str; 9] = [
    "planted-user-",
    "planted-session-",
    "ada.lovelace@example.org",
    "+49 30 901820",
    "4111 1111 1111 1111",
    "DE89 3704 0044 0532 0130 00",
    "203.0.113.77",
    "078-05-1120",
    "postgres://ada:s3cret-pw@",
];

impl Lines {
    /// The lines of a seed.
    pub fn new(seed: u64, mix: Mix) -> Self {
        Self {
            mix,
            random: Random(seed),
            earlier: Vec::new(),
            expected: Expected::default(),
        }
    }

    fn invalid(&mut self) -> String {
        let number = self.random.next();
        let flags = json!({"anonymize": self.mix.anonymous});
        match self.random.below(5) {
            0 if self.mix.anonymous => {
                r#"{"userId": "planted-user-7", "privacyFlags": {"anonymize": tr"#.to_owned()
            }
            0 => r#"{"userId": "user-7", "#.to_owned(),
            1 => "[]".to_owned(),
            2 => json!({"userId": user(self.mix, number), "privacyFlags": flags}).to_string(),
            3 => {
                let mut event = event(self.mix, number);
                event["feedbackType"] = json!("shrug");
                event.to_string()
            }
            _ => {
                let mut event = event(self.mix, number);
                event["data"]["rating"] = json!(7);
                event.to_string()
            }
        }
    }
}

impl Iterator for Lines {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let chance = self.random.below(1_000);
        if chance < self.mix.invalid {
            self.expected.rejected += 1;
            return Some(self.invalid());
        }
        let remembered = u64::try_from(self.earlier.len()).unwrap();
        if chance < self.mix.invalid + self.mix.duplicates && remembered > 0 {
            self.expected.duplicates += 1;
            let which = usize::try_from(self.random.below(remembered)).unwrap();
            return Some(event(self.mix, self.earlier[which]).to_string());
        }
        self.expected.queued += 1;
        let of = self.random.next();
        if self.earlier.len() < REMEMBERED {
            self.earlier.push(of);
        } else {
            let which = usize::try_from(of % 1_000).unwrap();
            self.earlier[which] = of;
        }
        Some(event(self.mix, of).to_string())
    }
}

fn user(mix: Mix, of: u64) -> String {
    let planted = if mix.anonymous { "planted-" } else { "" };
    format!("{planted}user-{}", of % mix.users)
}

/// The event with this number.
fn event(mix: Mix, of: u64) -> Value {
    let mut random = Random(of);
    let (high, low) = (u128::from(random.next()), u128::from(random.next()));
    let id = uuid::Builder::from_random_bytes((high << 64 | low).to_be_bytes()).into_uuid();
    let comment = if mix.anonymous {
        format!(
            "Call {} or mail {}, card {}",
            PLANTED[3], PLANTED[2], PLANTED[4]
        )
    } else {
        "Very helpful checklist".to_owned()
    };
    let mut event = json!({
        "feedbackId": id.to_string(),
        "userId": user(mix, of),
        "sessionId": format!("{}session-{}", if mix.anonymous { "planted-" } else { "" }, random.below(1_000)),
        "artifactId": format!("artifact-{}", random.below(1_000_000)),
        "timestamp": format!("2026-01-{:02}T{:02}:30:00Z", 1 + random.below(28), random.below(24)),
        "context": {"taskType": "code-review", "artifactType": "checklist"},
        "data": {},
    });
    match random.below(4) {
        0 => {
            event["feedbackChannel"] = json!("explicit");
            event["feedbackType"] = json!("rating");
            event["data"] = json!({"rating": 1 + random.below(5)});
        }
        1 => {
            event["feedbackChannel"] = json!("explicit");
            event["feedbackType"] = json!("artifact-acceptance");
            event["data"] = json!({"accepted": random.below(4) > 0, "comment": comment});
        }
        2 => {
            event["feedbackChannel"] = json!("correction");
            event["feedbackType"] = json!("modification");
            event["correctionData"] = json!({
                "originalValue": format!("{} at {}", PLANTED[5], PLANTED[6]),
                "correctedValue": format!("{} {}db.example.org/x", PLANTED[7], PLANTED[8]),
                "correctionType": "accuracy",
            });
            if !mix.anonymous {
                event["correctionData"] = json!({
                    "originalValue": "null", "correctedValue": "undefined", "correctionType": "accuracy",
                });
            }
        }
        _ => {
            event["feedbackChannel"] = json!("implicit");
            event["feedbackType"] = json!("dwell-time");
            event["data"] = json!({"timeSpent": random.below(600)});
        }
    }
    if mix.anonymous {
        event["privacyFlags"] = json!({"anonymize": true});
    }
    event
}
