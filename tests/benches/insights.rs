//! Insights of ten million events on 90 days: what reports of 30 of them cost, how long they take, how large they are.
//!
//! `cargo bench -p hearback-tests --bench insights`
//!
//! A report reads stored counts and no events. So events are generated from a seed and counted in memory, hour by hour,
//! by the product's own code, and only the counts are stored. The days are counted from the stored hours. The events of
//! one hour are stored, too, and counted from their rows. Times are those of the functions in this process with the
//! embedded engine.
//!
//! It fails if an event of the period is missing, if the counts of the rows differ from those in memory, or if days
//! outside the period change the cost of a report. `EVENTS` sets the number of events.

use std::ops::Range;
use std::time::Instant;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::http::{Request, StatusCode};
use chrono::{DateTime, TimeDelta, Utc};
use futures::stream::{self, StreamExt};
use hearback_domain::events::event::EventCore;
use hearback_domain::events::submission::Submission;
use hearback_domain::identity::caller::Caller;
use hearback_domain::identity::privacy::Pseudonyms;
use hearback_domain::learning::publication::{Outcome, Processed};
use hearback_domain::views::insights::{Dimension, Facts, Interval, Rollup, UserHash};
use hearback_lambda::http::service;
use hearback_storage::Store;
use hearback_storage::insights::{CountedHour, ProjectRef};
use hearback_tests::engine::{Cost, Engine, Meter};
use hearback_tests::generate::Random;
use hearback_tests::options::number;
use lambda_http::request::RequestContext;
use serde_json::{Value, json};
use uuid::Uuid;

const START: &str = "2025-09-01T00:00:00Z";
const DAYS: u32 = 90;
/// The days of the reports, with as many before and after them.
const PERIOD: Range<u32> = 30..60;
const IN_PERIOD: &str = "from=2025-10-01T00:00:00Z&to=2025-10-31T00:00:00Z";
/// The hour whose events are stored.
const STORED_HOUR: u32 = 30 * 24 + 10;
const RUNS: u32 = 20;
const USERS: usize = 20_000;
/// How many of the answers of each prompt version are right, in percent.
const RIGHT: [u64; 5] = [66, 68, 70, 72, 64];
/// Prompt versions, of 3 models, for 4 kinds of task, by 6 agents.
const CONTEXTS: usize = RIGHT.len() * 3 * 4 * 6;
/// Feedback: how often it is what users give on a right and on a wrong answer, in percent; channel, type and data.
const FEEDBACK: [([u64; 2], &str, &str, &str); 10] = [
    ([30, 12], "explicit", "rating", r#"{"rating": 5}"#),
    ([20, 8], "explicit", "rating", r#"{"rating": 4}"#),
    ([8, 9], "explicit", "rating", r#"{"rating": 3}"#),
    ([3, 11], "explicit", "rating", r#"{"rating": 2}"#),
    ([2, 15], "explicit", "rating", r#"{"rating": 1}"#),
    ([2, 15], "explicit", "rejection", "{}"),
    ([5, 5], "explicit", "comment", r#"{"comment": "I see."}"#),
    ([5, 10], "correction", "modification", "{}"),
    ([20, 5], "implicit", "dwell-time", r#"{"timeSpent": 45}"#),
    ([5, 10], "implicit", "rejection", "{}"),
];

/// One event: its place in [`Bench::kinds`], its user, and whether it was withdrawn.
type Drawn = (usize, usize, bool);

struct Bench {
    events: u64,
    /// An event for each context and feedback, and what is counted of it.
    kinds: Vec<(EventCore, Facts)>,
    users: Vec<UserHash>,
    caller: Caller,
    meter: Meter,
    store: Store,
    functions: Router,
    /// Runs as long as it is not dropped.
    _engine: Engine,
}

#[tokio::main]
async fn main() {
    let bench = Bench::start(number("EVENTS", 10_000_000)).await;
    // The period first: its reports must not cost more when the other days are stored, too.
    let held = bench.store_hours(PERIOD).await;
    println!(
        "{} events on {DAYS} days, of which {held} hold and are in the period\n",
        bench.events
    );
    println!("| | calls | read units | write units | time, ms | response, bytes |");
    println!("|---|---|---|---|---|---|");
    bench
        .measure("a day, from its hours", 30, async |day: u32| {
            bench.count_day(PERIOD.start + day).await;
            0
        })
        .await;

    let by_day = format!("?{IN_PERIOD}&groupBy=label.prompt_version");
    let name = "30 days by day and prompt version, no other day stored";
    let alone = bench.report(name, &by_day).await;
    for days in [0..PERIOD.start, PERIOD.end..DAYS] {
        bench.store_hours(days.clone()).await;
        for day in days {
            bench.count_day(day).await;
        }
    }
    let among = bench.report("the same, all 90 days stored", &by_day).await;
    assert_eq!(alone, among, "what lies outside costs nothing");
    let by_hour = format!("?{IN_PERIOD}&interval=hour");
    bench.report("30 days by hour", &by_hour).await;
    // Not the default of ten values: a report has at most 5,000 counts.
    let by_model = format!("{by_hour}&groupBy=label.model&values=3");
    bench.report("30 days by hour and model", &by_model).await;
    let versions = format!("/compare?{IN_PERIOD}&by=label.prompt_version&a=v4&b=v5");
    let name = "30 days, two prompt versions compared";
    bench.report(name, &versions).await;
    for query in [&by_day, &by_hour, &by_model] {
        let report: Value = serde_json::from_slice(&bench.read(query).await).unwrap();
        assert_eq!(report["total"]["events"], held, "none missing: {query}");
    }

    bench.store_events().await;
    let name = format!("an hour, from {} events", bench.events_of(STORED_HOUR));
    bench
        .measure(&name, RUNS, async |_: u32| {
            bench.count_hour().await;
            0
        })
        .await;
    let counted = bench.count_hour().await.rollup.bounded();
    assert_eq!(
        counted,
        bench.counted(STORED_HOUR),
        "the counts of the rows"
    );
}

fn draw(random: &mut Random) -> Drawn {
    let mut below = |bound: usize| usize::try_from(random.below(bound as u64)).unwrap();
    let context = below(CONTEXTS);
    // The product of two numbers is small more often: some users are much more active than others.
    let user = below(USERS) * below(USERS) / USERS;
    let wrong = usize::from(random.below(100) >= RIGHT[context % RIGHT.len()]);
    let mut rest = random.below(100);
    let feedback = FEEDBACK.iter().position(|(shares, ..)| {
        let is_this = rest < shares[wrong];
        rest = rest.saturating_sub(shares[wrong]);
        is_this
    });
    let kind = context * FEEDBACK.len() + feedback.expect("the shares add up to 100");
    (kind, user, random.below(100) == 0)
}

/// An event for each feedback in a context, parsed as if it were submitted.
fn kinds_of(context: usize, caller: &Caller) -> impl Iterator<Item = (EventCore, Facts)> {
    let (version, rest) = (context % RIGHT.len(), context / RIGHT.len());
    let (model, task, agent) = (rest % 3, rest / 3 % 4, rest / 12);
    let context = json!({
        "projectId": "shop", "taskType": format!("task-{task}"), "agentId": format!("agent-{agent}"),
        "labels": {"model": format!("m-{model}"), "prompt_version": format!("v{}", version + 1)}
    });
    FEEDBACK
        .into_iter()
        .map(move |(_, channel, feedback, data)| {
            let body = json!({
                "feedbackId": Uuid::new_v4(), "userId": caller.user, "sessionId": "session",
                "feedbackChannel": channel, "feedbackType": feedback,
                "data": serde_json::from_str::<Value>(data).unwrap(), "context": context
            });
            let now = Utc::now();
            let parsed = Submission::parse(&body, caller, &Pseudonyms::new("key"), now);
            let core = parsed.unwrap().event.core;
            let facts = Facts::of(&Processed::of(&core, None, now));
            (core, facts)
        })
}

fn begin(hour: u32) -> DateTime<Utc> {
    START.parse::<DateTime<Utc>>().unwrap() + TimeDelta::hours(hour.into())
}

impl Bench {
    async fn start(events: u64) -> Self {
        let (engine, meter) = (Engine::start().await, Meter::default());
        let store = engine.store_with(meter.clone());
        let app = engine.with_blobs(store.clone());
        let caller = Caller {
            user: "user-0".try_into().unwrap(),
            tenant: "acme".try_into().unwrap(),
            projects: vec!["shop".try_into().unwrap()],
            scopes: Vec::new(),
        };
        let kinds = (0..CONTEXTS).flat_map(|context| kinds_of(context, &caller));
        let users = (0..USERS).map(|user| UserHash::of("acme", &format!("user-{user}")));
        Self {
            events,
            kinds: kinds.collect(),
            users: users.collect(),
            caller,
            meter,
            store,
            functions: service(hearback_local::gateway::functions(app, engine.erasures())),
            _engine: engine,
        }
    }

    fn place(&self) -> ProjectRef<'_> {
        ProjectRef {
            tenant: &self.caller.tenant,
            project: &self.caller.projects[0],
        }
    }

    /// How many events an hour has.
    fn events_of(&self, hour: u32) -> u64 {
        let before = |hour: u32| self.events * u64::from(hour) / u64::from(DAYS * 24);
        before(hour + 1) - before(hour)
    }

    /// The events of an hour, the same whichever hours were generated before.
    fn drawn(&self, hour: u32) -> impl Iterator<Item = Drawn> {
        let mut random = Random(hour.into());
        (0..self.events_of(hour)).map(move |_| draw(&mut random))
    }

    /// The counts of an hour, as they are stored.
    fn counted(&self, hour: u32) -> Rollup {
        let mut rollup = Rollup::default();
        for (at, (kind, user, is_retracted)) in self.drawn(hour).enumerate() {
            let mut facts = self.kinds[kind].1.clone();
            facts.user = self.users[user];
            rollup.add(&facts, is_retracted);
            // As after a page of the index, so that memory does not depend on `EVENTS`.
            if at % 5_000 == 4_999 {
                rollup.trim();
            }
        }
        rollup.bounded()
    }

    /// Stores the counts of the hours of these days, and returns how many of their events hold.
    async fn store_hours(&self, days: Range<u32>) -> u64 {
        let mut held = 0;
        for hour in days.start * 24..days.end * 24 {
            let (rollup, now) = (self.counted(hour), Utc::now());
            let all = rollup.breakdowns.get(&Dimension::All);
            held += all.map_or(0, |all| all.only_group().counts.events);
            let (place, interval) = (self.place(), Interval::Hour(begin(hour)));
            let expires_at = Some(now + TimeDelta::days(90));
            let put = (self.store).put_counts(place, interval, rollup, (None, now), expires_at);
            assert!(put.await.unwrap(), "nobody else counts");
            if hour % 240 == 239 {
                eprintln!("the hours of day {} are stored", hour / 24 + 1);
            }
        }
        held
    }

    async fn count_day(&self, day: u32) {
        let day = Interval::Day(begin(day * 24).date_naive());
        let counted = self.store.count_day(self.place(), day, Utc::now()).await;
        assert!(counted.unwrap(), "nobody else counts");
    }

    /// Stores the outcomes of an hour's events. Their ids, and so their shards, are the same each time.
    async fn store_events(&self) {
        let (hour, count) = (begin(STORED_HOUR), self.events_of(STORED_HOUR));
        stream::iter((0..).zip(self.drawn(STORED_HOUR)))
            .for_each_concurrent(16, |(number, (kind, user, is_retracted))| async move {
                let mut core = self.kinds[kind].0.clone();
                core.feedback_id = Uuid::from_u64_pair(0, number);
                core.user_id = format!("user-{user}").try_into().unwrap();
                core.timestamp = hour + TimeDelta::seconds((3_600 * number / count) as i64);
                let outcome = Outcome::Processed(Box::new(Processed::of(&core, None, Utc::now())));
                self.store.put_outcome(&core, &outcome).await.unwrap();
                if is_retracted {
                    let marked = self.store.mark_retracted(&core.tenant, core.feedback_id);
                    marked.await.unwrap();
                }
            })
            .await;
    }

    async fn count_hour(&self) -> CountedHour {
        let (hour, nothing_wanted) = (begin(STORED_HOUR), Default::default());
        let counted = (self.store).count_hour(self.place(), hour, &nothing_wanted, Utc::now());
        counted.await.unwrap()
    }

    /// Reads insights. The response is not parsed, so that its time is the function's.
    async fn read(&self, query: &str) -> Bytes {
        let scope = "feedback:report";
        let claims =
            json!({"sub": "analyst", "tenant": "acme", "projects": "[shop]", "scope": scope});
        let context = json!({"authorizer": {"jwt": {"claims": claims}}, "http": {"method": "GET"}});
        let context = RequestContext::ApiGatewayV2(serde_json::from_value(context).unwrap());
        let request = Request::get(format!("/v1/projects/shop/insights{query}"))
            .extension(context)
            .body(Body::empty());
        let sent = tower::ServiceExt::oneshot(self.functions.clone(), request.unwrap());
        let (head, body) = sent.await.unwrap().into_parts();
        let body = to_bytes(body, usize::MAX).await.unwrap();
        assert_eq!(head.status, StatusCode::OK, "{query}: {body:?}");
        body
    }

    async fn report(&self, name: &str, query: &str) -> Cost {
        self.measure(name, RUNS, async |_: u32| self.read(query).await.len())
            .await
    }

    /// Prints the medians of the cost and the time, and the size of the last response, and returns the cost.
    async fn measure(&self, name: &str, runs: u32, mut run: impl AsyncFnMut(u32) -> usize) -> Cost {
        let (mut costs, mut times, mut bytes) = (Vec::new(), Vec::new(), 0);
        for number in 0..runs {
            self.meter.take();
            let started = Instant::now();
            bytes = run(number).await;
            times.push(1_000.0 * started.elapsed().as_secs_f64());
            costs.push(self.meter.take());
        }
        times.sort_by(f64::total_cmp);
        costs.sort_by(|one, other| one.reads.total_cmp(&other.reads));
        let (time, cost) = (times[times.len() / 2], costs[costs.len() / 2]);
        let units = format!("{} | {} | {}", cost.calls, cost.reads, cost.writes);
        println!("| {name} | {units} | {time:.1} | {bytes} |");
        cost
    }
}
