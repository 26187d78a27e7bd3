//! Cold start: from the start of a function's process to its first response, next to a function
//! that does nothing. Run it with `cargo bench -p hearback-tests --bench cold_start`, on a machine
//! with nothing else to do.
//!
//! The first response is one for which the table is not called, so that what is measured is ours;
//! the SDK's clients are made as in Lambda, with TLS to AWS's own endpoints. Fails if a function
//! takes more than twice as long as the empty one, or is too large.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use hearback_batch::{IMPORTS_URL, INGEST_DEAD_LETTERS_URL};
use hearback_erasure::ERASURES_URL;
use hearback_lambda::app::{BUCKET, DEAD_LETTERS_URL, PSEUDONYM_KEY, TABLE};
use hearback_lambda::aws::Service;
use hearback_local::names::Names;
use hearback_tests::engine::Engine;
use hearback_tests::events::acceptance;
use hearback_tests::process::{binary, bootstrap};
use hearback_tests::runtime_api::Function;
use serde_json::{Value, json};

/// Starts that are not counted, so that the files are in memory.
const WARM_UP: usize = 5;
/// Starts of each function that are.
const ROUNDS: usize = 60;
/// A function may take this many times as long as the empty one.
const MAX_RATIO: f64 = 2.0;
/// Largest binary, in bytes.
const MAX_SIZE: u64 = 8_000_000;

/// What an HTTP API hands over for `POST /v1/feedback/submit`.
const SUBMIT: &str = include_str!("../bundle/events/http_submit.json");

const QUEUE: &str = "https://sqs.us-east-1.amazonaws.com/0/q";

/// One line of the table.
struct Subject {
    name: String,
    bootstrap: PathBuf,
    settings: HashMap<String, String>,
    event: Value,
    times: Vec<Duration>,
}

impl Subject {
    fn new(name: &str, bootstrap: PathBuf, event: Value) -> Self {
        let settings = [
            (TABLE, "hearback"),
            (BUCKET, "hearback"),
            (PSEUDONYM_KEY, "key"),
            (DEAD_LETTERS_URL, QUEUE),
            (INGEST_DEAD_LETTERS_URL, QUEUE),
            (IMPORTS_URL, QUEUE),
            (ERASURES_URL, QUEUE),
        ];
        Self {
            name: name.to_owned(),
            bootstrap,
            settings: settings
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            event,
            times: Vec::new(),
        }
    }

    /// Starts the function once, and waits for its first response.
    async fn start(&self) -> Duration {
        let function = Function::start(&self.bootstrap, &self.settings).await;
        function.invoke(&self.event).await.expect("a response");
        let age = function.age();
        function.stop().await;
        age
    }

    fn median(&self) -> f64 {
        let mut times = self.times.clone();
        times.sort_unstable();
        millis(times[times.len() / 2])
    }

    fn min(&self) -> f64 {
        millis(*self.times.iter().min().expect("a start"))
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn size(file: &Path) -> u64 {
    std::fs::metadata(file).expect("the binary").len()
}

/// The empty function, and all of ours.
fn subjects() -> Vec<Subject> {
    let submit: Value = serde_json::from_str(SUBMIT).expect("an event");
    let mut nobodys = submit.clone();
    nobodys["requestContext"]
        .as_object_mut()
        .expect("a context")
        .remove("authorizer");
    let get = |path: &str| {
        let mut event = nobodys.clone();
        event["rawPath"] = json!(path);
        event["requestContext"]["http"]["method"] = json!("GET");
        event["requestContext"]["http"]["path"] = json!(path);
        event
    };
    let empty = binary("hearback-empty-function", "empty-function");
    vec![
        Subject::new("empty", empty, nobodys.clone()),
        Subject::new("submit", bootstrap("submit"), nobodys.clone()),
        Subject::new(
            "turns",
            bootstrap("turns"),
            get("/conversations/a/b/c/turns/d"),
        ),
        Subject::new("retrieval", bootstrap("retrieval"), get("/v1/feedback/x")),
        Subject::new(
            "preferences",
            bootstrap("preferences"),
            get("/v1/preferences/x"),
        ),
        Subject::new("batch", bootstrap("batch"), get("/v1/feedback/batch")),
        Subject::new(
            "erasure",
            bootstrap("erasure"),
            get("/v1/users/x/data/erasure"),
        ),
        Subject::new("signals", bootstrap("signals"), json!({"Records": []})),
        Subject::new("ingest", bootstrap("ingest"), json!({"Records": []})),
        Subject::new("imports", bootstrap("imports"), json!({"Records": []})),
        Subject::new("eraser", bootstrap("eraser"), json!({"Records": []})),
        Subject::new("publish", bootstrap("publish"), json!([])),
    ]
}

/// Measures all in turn, so that what slows the machine down slows all of them down.
async fn measure(subjects: &mut [Subject]) {
    for round in 0..WARM_UP + ROUNDS {
        for subject in &mut *subjects {
            let time = subject.start().await;
            if round >= WARM_UP {
                subject.times.push(time);
            }
        }
    }
}

/// The first event taken, with a table on this machine: what a caller waits for besides the way
/// to AWS and the handshake with it.
async fn first_event() -> Subject {
    let engine = Engine::start().await;
    let mut event: Value = serde_json::from_str(SUBMIT).expect("an event");
    let mut subject = Subject::new("submit", bootstrap("submit"), Value::Null);
    let variable = Service::DynamoDb.endpoint_variable().to_owned();
    let endpoint = engine.endpoints.dynamodb.clone();
    subject.settings.insert(variable, endpoint);
    subject
        .settings
        .insert(TABLE.to_owned(), Names::default().table());
    for round in 0..WARM_UP + ROUNDS {
        event["body"] = json!(acceptance("ada").to_string());
        subject.event = event.clone();
        let time = subject.start().await;
        if round >= WARM_UP {
            subject.times.push(time);
        }
    }
    subject
}

fn main() -> ExitCode {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let mut subjects = subjects();
    runtime.block_on(measure(&mut subjects));
    let empty = subjects[0].median();
    println!("process start to first response, {ROUNDS} starts of each\n");
    println!("function          bytes  median ms   min ms  ratio");
    let mut good = true;
    for subject in &subjects {
        let (size, median) = (size(&subject.bootstrap), subject.median());
        let ratio = median / empty;
        let fits = ratio <= MAX_RATIO && size <= MAX_SIZE;
        good &= fits;
        println!(
            "{:<12} {size:>10} {median:>10.2} {:>8.2} {ratio:>6.2}{}",
            subject.name,
            subject.min(),
            if fits { "" } else { "  too much" }
        );
    }
    let first = runtime.block_on(first_event());
    println!(
        "\nsubmit, until the first event is in a table on this machine: median {:.2} ms, min {:.2} ms",
        first.median(),
        first.min()
    );
    if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
