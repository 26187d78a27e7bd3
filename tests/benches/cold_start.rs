//! What each function takes, next to one that does nothing: from the start of its process to its first
//! response, for each response after that, and of memory. Run it with `cargo bench -p hearback-tests
//! --bench cold_start`, on a machine with nothing else to do; `HEARBACK_WRITE_DOCS=1` writes the table of
//! `docs/performance.md`.
//!
//! The responses are such for which nothing is called, so that what is measured is ours;
//! the SDK's clients are made as in Lambda, with TLS to AWS's own endpoints. Fails if a function's start
//! takes more than twice as long as the empty one's, a later response more than twice its time on the
//! processor, or if the function is too large.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use hearback_batch::{IMPORTS_DEAD_LETTERS_URL, IMPORTS_URL, INGEST_DEAD_LETTERS_URL};
use hearback_erasure::{ERASURES_DEAD_LETTERS_URL, ERASURES_URL};
use hearback_lambda::app::{BUCKET, DEAD_LETTERS_URL, PSEUDONYM_KEY, TABLE};
use hearback_lambda::aws::Service;
use hearback_local::names::Names;
use hearback_tests::engine::Engine;
use hearback_tests::events::acceptance;
use hearback_tests::page::Told;
use hearback_tests::process::{binary, bootstrap, peak_memory, processor_time};
use hearback_tests::runtime_api::Function;
use serde_json::{Value, json};

/// Starts that are not counted, so that the files are in memory.
const WARM_UP: usize = 5;
/// Starts of each function that are.
const ROUNDS: usize = 60;
/// Responses of a process that are not counted, so that its caches are full.
const WARM_UP_RESPONSES: usize = 100;
/// Responses in turn that are, each so often as there are starts.
const RESPONSES: usize = 50;
/// A function may take this many times as long as the empty one to start, and as much of the processor's time
/// for a later response.
const MAX_RATIO: f64 = 2.0;
/// Largest binary, in bytes.
const MAX_SIZE: u64 = 8_000_000;

/// What an HTTP API hands over for `POST /v1/feedback/submit`.
const SUBMIT: &str = include_str!("../bundle/events/http_submit.json");

/// What the pipe of results hands over.
const RESULTS: &str = include_str!("../bundle/events/pipe_results.json");

const QUEUE: &str = "https://sqs.us-east-1.amazonaws.com/0/q";

/// One line of the table.
struct Subject {
    name: String,
    bootstrap: PathBuf,
    settings: HashMap<String, String>,
    event: Value,
    starts: Vec<Duration>,
    responses: Vec<Duration>,
    /// On a processor, for all these responses.
    processor: Duration,
    /// In kB.
    memory: u64,
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
            (IMPORTS_DEAD_LETTERS_URL, QUEUE),
            (ERASURES_URL, QUEUE),
            (ERASURES_DEAD_LETTERS_URL, QUEUE),
        ];
        Self {
            name: name.to_owned(),
            bootstrap,
            settings: settings
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            event,
            starts: Vec::new(),
            responses: Vec::new(),
            processor: Duration::ZERO,
            memory: 0,
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

    /// Invokes a function that was invoked before.
    async fn respond(&mut self, function: &Function) {
        let processor = processor_time(function.id());
        for _ in 0..RESPONSES {
            let asked = Instant::now();
            function.invoke(&self.event).await.expect("a response");
            self.responses.push(asked.elapsed());
        }
        self.processor += processor_time(function.id()) - processor;
        self.memory = peak_memory(function.id());
    }

    /// What of it is compared with the empty function's: the median start in ms, and the response's median time
    /// and time on the processor in µs.
    fn figures(&self) -> [f64; 3] {
        let processor = self.processor.as_secs_f64() / self.responses.len() as f64;
        [
            millis(median(&self.starts)),
            millis(median(&self.responses)) * 1_000.0,
            processor * 1_000_000.0,
        ]
    }
}

fn median(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    times[times.len() / 2]
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
    let results: Value = serde_json::from_str(RESULTS).expect("results");
    let mut nobodys = submit.clone();
    nobodys["requestContext"]
        .as_object_mut()
        .expect("a context")
        .remove("authorizer");
    // Read and held against the rules, which it breaks.
    let mut broken = acceptance("ada");
    broken["data"]["rating"] = json!(9);
    let mut refused = submit.clone();
    refused["body"] = json!(broken.to_string());
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
        Subject::new("submit, an event", bootstrap("submit"), refused),
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
        Subject::new("publish, a result", bootstrap("publish"), results),
    ]
}

/// Measures all in turn, so that what slows the machine down slows all of them down.
async fn measure(subjects: &mut [Subject]) {
    for round in 0..WARM_UP + ROUNDS {
        for subject in &mut *subjects {
            let time = subject.start().await;
            if round >= WARM_UP {
                subject.starts.push(time);
            }
        }
    }
    let mut functions = Vec::new();
    for subject in &*subjects {
        let function = Function::start(&subject.bootstrap, &subject.settings).await;
        for _ in 0..WARM_UP_RESPONSES {
            function.invoke(&subject.event).await.expect("a response");
        }
        functions.push(function);
    }
    for _ in 0..ROUNDS {
        for (subject, function) in subjects.iter_mut().zip(&functions) {
            subject.respond(function).await;
        }
    }
    for function in functions {
        function.stop().await;
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
            subject.starts.push(time);
        }
    }
    subject
}

const TOLD: Told = Told {
    page: "performance.md",
    table: "functions",
};

fn main() -> ExitCode {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let mut subjects = subjects();
    runtime.block_on(measure(&mut subjects));
    let empty = subjects[0].figures();
    let mut table = String::from(
        "| function | binary, MB | memory, MB | start | later response | … on the processor |\n\
         |---|---|---|---|---|---|\n",
    );
    let mut good = true;
    println!(
        "{ROUNDS} starts of each, {} responses\n",
        ROUNDS * RESPONSES
    );
    println!("function            start ms  response us  processor us");
    for subject in &subjects {
        let size = size(&subject.bootstrap);
        let figures @ [start, response, processor] = subject.figures();
        let ratios: [f64; 3] = std::array::from_fn(|of| figures[of] / empty[of]);
        let [start_ratio, response_ratio, processor_ratio] = ratios;
        let fits = start_ratio.max(processor_ratio) <= MAX_RATIO && size <= MAX_SIZE;
        good &= fits;
        println!(
            "{:<18} {start:>9.2} {response:>12.0} {processor:>13.0}{}",
            subject.name,
            if fits { "" } else { "  too much" }
        );
        let (size, memory) = (size as f64 / 1e6, subject.memory as f64 / 1e3);
        writeln!(
            table,
            "| {} | {size:.1} | {memory:.0} | {start_ratio:.2} | {response_ratio:.2} | {processor_ratio:.2} |",
            subject.name
        )
        .expect("a string takes it");
    }
    println!("\n{table}");
    TOLD.or_written(&table);
    let first = runtime.block_on(first_event());
    println!(
        "submit, until the first event is in a table on this machine: median {:.2} ms",
        millis(median(&first.starts)),
    );
    if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
