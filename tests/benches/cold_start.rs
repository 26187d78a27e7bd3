//! Measures each function next to an empty one: the time from the start of the process to the first response, the time
//! of later responses, and memory. Run it on an otherwise idle machine with `cargo bench -p hearback-tests --bench
//! cold_start`; `HEARBACK_WRITE_DOCS=1` writes the table of `docs/performance.md`.
//!
//! The measured requests call no AWS service, so that only the functions' own time counts. The SDK's clients are
//! created as in Lambda, with TLS to AWS's endpoints. The benchmark fails if a function takes more than twice the empty
//! one's time to start, or twice its processor time for a later response, or if its binary is too large.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use hearback_batch::{
    IMPORTS_DEAD_LETTERS_URL, IMPORTS_URL, INGEST_DEAD_LETTERS_URL, SIGNALS_BULK_URL,
};
use hearback_erasure::{ERASURES_DEAD_LETTERS_URL, ERASURES_URL};
use hearback_insights::INSIGHTS_DEAD_LETTERS_URL;
use hearback_lambda::aws::Service;
use hearback_lambda::settings::{BUCKET, DEAD_LETTERS_URL, PSEUDONYM_KEY, TABLE};
use hearback_local::engines::Access;
use hearback_local::names::Names;
use hearback_operations::QUEUES_URL;
use hearback_stream::sockets::CONNECTIONS_URL;
use hearback_stream::{FANOUT_DEAD_LETTERS_URL, FANOUT_URL};
use hearback_tests::engine::Engine;
use hearback_tests::events::acceptance;
use hearback_tests::page::PageTable;
use hearback_tests::process::{binary, bootstrap, peak_memory, processor_time};
use hearback_tests::runtime_api::Function;
use serde_json::{Value, json};

/// Starts that are not measured, so that the files are cached.
const WARM_UP: usize = 5;
/// Measured starts of each function.
const ROUNDS: usize = 60;
/// Responses of a process that are not measured, so that its caches are full.
const WARM_UP_RESPONSES: usize = 100;
/// Measured responses in a row, in each round.
const RESPONSES: usize = 50;
/// The limit of start time and processor time, as a multiple of the empty function's.
const MAX_RATIO: f64 = 2.0;
/// The maximum size of a binary, in bytes. Those of `turns` and `retrieval` have the table of meanings, too,
/// as `infra/ci/bootstrap_sizes.py` allows.
const MAX_SIZE: u64 = 8_000_000;
const MAX_TABLES: u64 = 3_000_000;

/// The event of an HTTP API for `POST /v1/feedback/submit`.
const SUBMIT: &str = include_str!("../bundle/events/http_submit.json");

/// The input of the results pipe's enrichment.
const RESULTS: &str = include_str!("../bundle/events/pipe_results.json");

const QUEUE: &str = "https://sqs.us-east-1.amazonaws.com/0/q";
const CONNECTIONS: &str = "https://abcdef1234.execute-api.us-east-1.amazonaws.com/live";

/// One line of the table.
struct Subject {
    name: String,
    bootstrap: PathBuf,
    settings: HashMap<String, String>,
    event: Value,
    starts: Vec<Duration>,
    responses: Vec<Duration>,
    /// Processor time of all these responses.
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
            (SIGNALS_BULK_URL, QUEUE),
            (IMPORTS_DEAD_LETTERS_URL, QUEUE),
            (ERASURES_URL, QUEUE),
            (ERASURES_DEAD_LETTERS_URL, QUEUE),
            (FANOUT_URL, QUEUE),
            (INSIGHTS_DEAD_LETTERS_URL, QUEUE),
            (FANOUT_DEAD_LETTERS_URL, QUEUE),
            (QUEUES_URL, QUEUE),
            (CONNECTIONS_URL, CONNECTIONS),
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

    /// Invokes a warm function, and measures the responses.
    async fn respond(&mut self, function: &Function) {
        let processor = processor_time(function.id());
        for _ in 0..RESPONSES {
            let started = Instant::now();
            function.invoke(&self.event).await.expect("a response");
            self.responses.push(started.elapsed());
        }
        self.processor += processor_time(function.id()) - processor;
        self.memory = peak_memory(function.id());
    }

    /// The values to compare with the empty function's: the median start in ms, and the median time and processor
    /// time of a response in µs.
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

/// The empty function, and the product's functions.
fn subjects() -> Vec<Subject> {
    let submit: Value = serde_json::from_str(SUBMIT).expect("an event");
    let results: Value = serde_json::from_str(RESULTS).expect("results");
    let mut without_claims = submit.clone();
    without_claims["requestContext"]
        .as_object_mut()
        .expect("a context")
        .remove("authorizer");
    // A request that is parsed, and breaks a rule.
    let mut broken = acceptance("ada");
    broken["data"]["rating"] = json!(9);
    let mut invalid = submit.clone();
    invalid["body"] = json!(broken.to_string());
    let get = |path: &str| {
        let mut event = without_claims.clone();
        event["rawPath"] = json!(path);
        event["requestContext"]["http"]["method"] = json!("GET");
        event["requestContext"]["http"]["path"] = json!(path);
        event
    };
    let empty = binary("hearback-empty-function", "empty-function");
    vec![
        Subject::new("empty", empty, without_claims.clone()),
        Subject::new("submit", bootstrap("submit"), without_claims.clone()),
        Subject::new("submit, an event", bootstrap("submit"), invalid),
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
        Subject::new("console", bootstrap("console"), get("/console")),
        Subject::new(
            "operations",
            bootstrap("operations"),
            get("/v1/operations/queues"),
        ),
        Subject::new("signals", bootstrap("signals"), json!({"Records": []})),
        Subject::new("ingest", bootstrap("ingest"), json!({"Records": []})),
        Subject::new("imports", bootstrap("imports"), json!({"Records": []})),
        Subject::new("eraser", bootstrap("eraser"), json!({"Records": []})),
        Subject::new("insights", bootstrap("insights"), json!({"Records": []})),
        Subject::new("publish", bootstrap("publish"), json!([])),
        Subject::new("publish, a result", bootstrap("publish"), results),
    ]
}

/// Measures all functions in turn, so that a slow moment of the machine affects all of them.
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

/// The first accepted event, with a table on this machine: the wait of a caller, without the network and the TLS
/// handshake with AWS.
async fn first_event() -> Subject {
    let engine = Engine::start().await;
    let mut event: Value = serde_json::from_str(SUBMIT).expect("an event");
    let mut subject = Subject::new("submit", bootstrap("submit"), Value::Null);
    let variable = Service::DynamoDb.endpoint_variable().to_owned();
    let Access { endpoints, keys } = engine.access.clone();
    subject.settings.extend([
        (variable, endpoints.dynamodb),
        ("AWS_ACCESS_KEY_ID".to_owned(), keys.access_key_id),
        ("AWS_SECRET_ACCESS_KEY".to_owned(), keys.secret_access_key),
    ]);
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

const DOCUMENTED: PageTable = PageTable {
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
        let tables = if ["retrieval", "turns"].contains(&subject.name.as_str()) {
            MAX_TABLES
        } else {
            0
        };
        let fits = start_ratio.max(processor_ratio) <= MAX_RATIO && size <= MAX_SIZE + tables;
        good &= fits;
        println!(
            "{:<18} {start:>9.2} {response:>12.0} {processor:>13.0}{}",
            subject.name,
            if fits { "" } else { "  exceeds the limit" }
        );
        let (size, memory) = (size as f64 / 1e6, subject.memory as f64 / 1e3);
        writeln!(
            table,
            "| {} | {size:.1} | {memory:.0} | {start_ratio:.2} | {response_ratio:.2} | {processor_ratio:.2} |",
            subject.name
        )
        .expect("a string can be written to");
    }
    println!("\n{table}");
    DOCUMENTED.read_or_write(&table);
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
