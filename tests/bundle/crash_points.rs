//! Fails each call of each handler in every way. The caller retries, and the final state must equal that of a run
//! without faults.
//!
//! By default, a sample is visited: an eighth of each operation's points, at most [`MAX_SAMPLE`]. The commit chooses the
//! sample, so that every run of a commit is the same. `HEARBACK_CRASH_POINTS=all` visits every point, a number chooses
//! another sample, and `Lost:3` visits one point.
//!
//! docs/reliability.md has the table of the points. `HEARBACK_WRITE_DOCS=1 cargo test -p hearback-tests --test bundle
//! crash_points` writes it.

mod operations;
mod stored;
mod world;

use std::collections::BTreeMap;
use std::sync::Mutex;

use futures::stream::{self, StreamExt};
use hearback_tests::engine::Engine;
use hearback_tests::faults::{Fault, Faults};
use hearback_tests::options::{commit, given};
use hearback_tests::page::PageTable;
use hearback_tests::turns::exported;

use operations::Operation;
use stored::{missed, stored};
use world::{EXPORT, World, functions_with};

/// Worlds that run at the same time.
const CONCURRENT: usize = 4;
const RETRIES: usize = 4;

/// The final state of an operation that meets `faults` and is retried until the caller knows that it succeeded.
async fn final_state(
    engine: &Engine,
    operation: Operation,
    faults: &Faults,
) -> BTreeMap<String, String> {
    let world = World::new(engine, operation).await;
    let mut done = world.run(&functions_with(&world.engine, faults)).await && !faults.crashed();
    if operation != Operation::Erase {
        let missed = missed(&world.engine).await;
        assert!(
            missed.is_empty(),
            "{operation:?}, {faults:?}: a report misses {missed:?}"
        );
    }
    for _ in 0..RETRIES {
        if done {
            return stored(&world.engine, faults.gave_up()).await;
        }
        done = world
            .run(&functions_with(&world.engine, &Faults::none()))
            .await;
    }
    panic!("{operation:?} never succeeds after {faults:?}");
}

/// The points that a run visits.
#[derive(Debug)]
enum Selection {
    All,
    /// One of [`SAMPLED`], from an offset that this number gives.
    Sample(usize),
    /// The point of this fault at this call, for example `Lost:3`.
    One(String),
}

/// A sample has one in this many points.
const SAMPLED: usize = 8;
/// Maximum number of points in a sample, so that no test takes much longer than the others.
const MAX_SAMPLE: usize = 40;
const SELECTION: &str = "HEARBACK_CRASH_POINTS";

impl Selection {
    fn from_env() -> Self {
        match given::<String>(SELECTION) {
            None => Self::Sample(commit()),
            Some(all) if all == "all" => Self::All,
            Some(other) => other.parse().map_or(Self::One(other), Self::Sample),
        }
    }

    fn of(&self, calls: u32) -> Vec<(Fault, u32)> {
        let points = Fault::ALL
            .into_iter()
            .flat_map(|fault| (1..=calls).map(move |at| (fault, at)));
        let points: Vec<_> = points.collect();
        match self {
            Self::All => points,
            Self::Sample(seed) => {
                let mut step = SAMPLED.max(points.len().div_ceil(MAX_SAMPLE));
                // With a divisor of the number of calls, the sample would have the same calls for each fault.
                if calls > 1 && calls.is_multiple_of(u32::try_from(step).unwrap()) {
                    step += 1;
                }
                let step = step.min(points.len());
                points.into_iter().skip(seed % step).step_by(step).collect()
            }
            Self::One(name) => {
                let named = |(fault, at): &(Fault, u32)| format!("{fault:?}:{at}") == *name;
                points.into_iter().filter(named).collect()
            }
        }
    }
}

impl std::fmt::Display for Selection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Sample(seed) => write!(f, "{seed}"),
            Self::One(name) => f.write_str(name),
        }
    }
}

/// Visits the selected points of an operation, and compares their number with the page.
async fn visit(operation: Operation, what: &str) {
    let engine = &Engine::start().await;
    let counted = Faults::none();
    let expected = &final_state(engine, operation, &counted).await;
    let before = World::new(engine, operation).await;
    assert_ne!(
        &stored(&before.engine, false).await,
        expected,
        "{operation:?} changes nothing"
    );
    if operation == Operation::Erase {
        // The erasure must find something in files too.
        assert_eq!(expected[EXPORT], exported("t7", "m7"));
    }
    let calls = counted.calls();
    assert_ne!(calls, 0, "{operation:?} makes no call that could fail");
    let all = Selection::All.of(calls).len();
    assert_documented(&Row::new(what, calls, all));
    let selection = Selection::from_env();
    let selected = selection.of(calls);
    println!(
        "{SELECTION}={selection}: {} of {all} points",
        selected.len()
    );
    let compared =
        stream::iter(selected).for_each_concurrent(CONCURRENT, |(fault, at)| async move {
            let actual = final_state(engine, operation, &Faults::at(at, fault)).await;
            for (key, value) in expected.iter().chain(&actual) {
                assert_eq!(
                    (expected.get(key), actual.get(key)),
                    (Some(value), Some(value)),
                    "{operation:?}: {key}; {SELECTION}={fault:?}:{at} reproduces it"
                );
            }
        });
    compared.await;
}

/// A row of the table on the page.
#[derive(Debug, PartialEq)]
struct Row {
    what: String,
    /// None in the last row, which has the sum.
    calls: Option<u32>,
    points: usize,
}

impl Row {
    fn new(what: &str, calls: u32, points: usize) -> Self {
        Self {
            what: what.to_owned(),
            calls: Some(calls),
            points,
        }
    }

    fn sum(rows: &[Self]) -> Self {
        Self {
            what: "all".to_owned(),
            calls: None,
            points: rows.iter().map(|row| row.points).sum(),
        }
    }

    fn parse(line: &str) -> Self {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        Self {
            what: cells[1].to_owned(),
            calls: cells[2].parse().ok(),
            points: cells[3].parse().unwrap(),
        }
    }

    fn line(&self) -> String {
        let Self { what, points, .. } = self;
        match self.calls {
            Some(calls) => format!("| {what} | {calls} | {points} |\n"),
            None => format!("| {what} | | {points} |\n"),
        }
    }
}

const HEADER: &str = "| what | calls | points |\n|---|---|---|\n";
const DOCUMENTED: PageTable = PageTable {
    page: "reliability.md",
    table: "crash points",
};
/// The points of one call.
const ONE_CALL: usize = Fault::ALL.len();
/// The tests run concurrently and may write the same page.
static PAGE: Mutex<()> = Mutex::new(());

/// The rows of the operations.
fn rows(table: &str) -> Vec<Row> {
    let mut rows: Vec<_> = table.lines().skip(2).map(Row::parse).collect();
    rows.pop_if(|row| row.calls.is_none());
    rows
}

/// Compares a row with the page, or writes it.
fn assert_documented(actual: &Row) {
    let _guard = PAGE.lock().unwrap();
    let mut table = rows(&DOCUMENTED.read());
    table.retain(|row| row.what != actual.what && OPERATIONS.contains(&row.what.as_str()));
    table.push(Row {
        what: actual.what.clone(),
        ..*actual
    });
    table.sort_by_key(|row| OPERATIONS.iter().position(|what| *what == row.what));
    let sum = Row::sum(&table);
    let lines: String = table.iter().chain([&sum]).map(Row::line).collect();
    let documented = rows(&DOCUMENTED.read_or_write(&format!("{HEADER}{lines}")));
    let documented = documented.iter().find(|row| row.what == actual.what);
    let documented = documented.unwrap_or_else(|| panic!("the page lacks: {}", actual.what));
    // A connection that the engine closes can cost one more call.
    assert!(
        actual.points.abs_diff(documented.points) <= ONE_CALL,
        "{actual:?}, {documented:?}"
    );
}

/// One test for each operation, so that they run concurrently.
macro_rules! operations {
    ($($test:ident: $operation:ident, $what:literal;)+) => {
        const OPERATIONS: &[&str] = &[$($what),+];
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                visit(Operation::$operation, $what).await;
            }
        )+
    };
}

operations! {
    submit: Submit, "submit an event";
    batch: Batch, "submit a batch of three events, one of them already stored";
    ingest: Ingest, "ingest a message of three events, one of them invalid";
    import: Import, "import a file of five lines, one of them invalid";
    register: Register, "register a turn with a message";
    register_next: RegisterNext, "register the next turn, which rejects the one before";
    open_turn: OpenTurn, "open a turn, which rejects the one before";
    complete_turn: CompleteTurn, "complete an open turn with an answer that has a message";
    react: React, "react to a turn";
    replace_reaction: ReplaceReaction, "replace a reaction";
    replace_older_reaction: ReplaceOlderReaction, "replace a reaction of an older system";
    clear_reaction: ClearReaction, "clear a reaction";
    infer: Infer, "infer a reaction from a message";
    react_as_machine: ReactAsMachine, "submit a machine reaction";
    correct: Correct, "correct an inference, whose machine reaction is taken back";
    submit_signal: SubmitSignal, "submit a message signal";
    revise_signal: ReviseSignal, "change a message signal";
    submit_contrary_signal: SubmitContrarySignal, "submit a message signal that withdraws the contrary one";
    withdraw_signal: WithdrawSignal, "withdraw a message signal";
    withdraw_event: WithdrawEvent, "withdraw an event";
    change_preferences: ChangePreferences, "change preferences";
    process_events: ProcessEvents, "signal generator: three events of a user, one of them a duplicate and one about a turn";
    process_reactions: ProcessReactions, "signal generator: two mirrored reactions, the second of which replaced the first";
    process_signals: ProcessSignals, "signal generator: a message signal that counts and the one that replaced it";
    process_withdrawal: ProcessWithdrawal, "signal generator: a withdrawn message signal";
    process_event_withdrawal: ProcessEventWithdrawal, "signal generator: a withdrawn event about a turn, and an equal one that counts instead";
    process_earlier_event: ProcessEarlierEvent, "signal generator: an event about a turn that was received before the equal one that counts";
    count_hours: CountHours, "count the hours of five messages, with an event that is withdrawn and one that is erased";
    request_erasure: RequestErasure, "request the erasure of a user's data";
    erase: Erase, "erase a user's data from the table and the bucket";
    export_day: ExportDay, "export the signals of a day";
    export_training: ExportTraining, "export a project for training";
}

#[test]
fn the_page_has_a_row_for_each_operation_and_their_sum() {
    let _guard = PAGE.lock().unwrap();
    let table = DOCUMENTED.read();
    let rows = rows(&table);
    let operations: Vec<_> = rows.iter().map(|row| row.what.as_str()).collect();
    assert_eq!(operations, OPERATIONS);
    assert_eq!(table.lines().last().map(Row::parse), Some(Row::sum(&rows)));
}
