//! Every call of every handler fails, in every way; the caller that got no answer tries again, and the final state must
//! be that of a run in which nothing failed.
//!
//! A plain run visits a sample: an eighth of each operation's points, at most [`SAMPLE`]. Which ones is chosen by the
//! commit, so that they rotate and a run of one commit is always the same. `HEARBACK_CRASH_POINTS=all` visits every
//! point, and a number chooses the sample.
//!
//! `docs/reliability.md` has the table of the points. `HEARBACK_WRITE_DOCS=1 cargo test -p hearback-tests --test bundle
//! crash_points` writes it.

mod deeds;
mod stored;
mod world;

use std::collections::BTreeMap;
use std::sync::Mutex;

use futures::stream::{self, StreamExt};
use hearback_tests::engine::Engine;
use hearback_tests::faults::{Fault, Faults};
use hearback_tests::options::{commit, given};
use hearback_tests::page::Told;
use hearback_tests::turns::exported;

use deeds::Deed;
use stored::{missed, stored};
use world::{EXPORT, World, at_work};

/// Worlds that are looked at side by side.
const SIDE_BY_SIDE: usize = 4;
/// How often whoever was not answered tries again.
const TRIES: usize = 4;

/// Does something with a fault at one call, and again until it is done.
async fn ends(beside: &Engine, deed: Deed, faults: &Faults) -> BTreeMap<String, String> {
    let world = World::new(beside, deed).await;
    let mut done = world.act(&at_work(&world.engine, faults)).await && !faults.died();
    if deed != Deed::Erase {
        let missed = missed(&world.engine).await;
        assert!(
            missed.is_empty(),
            "{deed:?}, {faults:?}: a report misses {missed:?}"
        );
    }
    for _ in 0..TRIES {
        if done {
            return stored(&world.engine, faults.gave_up()).await;
        }
        done = world.act(&at_work(&world.engine, &Faults::none())).await;
    }
    panic!("{deed:?} is never done after {faults:?}");
}

/// Which points a run visits.
enum Chosen {
    All,
    /// One in [`ONE_IN`], beginning with this one.
    Sample(usize),
}

/// The points of which a sample visits one.
const ONE_IN: usize = 8;
/// The most points that a sample visits, so that no test takes much longer than the others.
const SAMPLE: usize = 40;
const CHOICE: &str = "HEARBACK_CRASH_POINTS";

impl Chosen {
    fn by_the_environment() -> Self {
        if given::<String>(CHOICE).is_some_and(|chosen| chosen == "all") {
            return Self::All;
        }
        Self::Sample(given(CHOICE).unwrap_or_else(commit))
    }

    fn of(&self, points: Vec<Faults>) -> Vec<Faults> {
        let Self::Sample(seed) = self else {
            return points;
        };
        let step = ONE_IN.max(points.len().div_ceil(SAMPLE)).min(points.len());
        points.into_iter().skip(seed % step).step_by(step).collect()
    }
}

/// Fails the calls of an operation, and compares the page with what was found.
async fn visit(deed: Deed, what: &str) {
    let beside = &Engine::start().await;
    let counted = Faults::none();
    let untroubled = &ends(beside, deed, &counted).await;
    let before = World::new(beside, deed).await;
    assert_ne!(&stored(&before.engine, false).await, untroubled, "{deed:?}");
    if deed == Deed::Erase {
        // What is enumerated is an erasure that finds something in files too.
        assert_eq!(untroubled[EXPORT], exported("t7", "m7"));
    }
    let calls = counted.calls();
    assert_ne!(calls, 0, "{deed:?} makes no call that could fail");
    let points = Fault::ALL
        .into_iter()
        .flat_map(|fault| (1..=calls).map(move |at| Faults::at(at, fault)));
    let points: Vec<_> = points.collect();
    told(&Line::new(what, calls, points.len()));
    let chosen = Chosen::by_the_environment().of(points);
    let looked_at = stream::iter(&chosen).for_each_concurrent(SIDE_BY_SIDE, |faults| async move {
        let ended = ends(beside, deed, faults).await;
        for (key, value) in untroubled.iter().chain(&ended) {
            assert_eq!(
                (untroubled.get(key), ended.get(key)),
                (Some(value), Some(value)),
                "{deed:?}, {faults:?}: {key}; {CHOICE}=all visits it again"
            );
        }
    });
    looked_at.await;
}

/// A line of the page's table.
#[derive(Debug, PartialEq)]
struct Line {
    what: String,
    calls: Option<u32>,
    points: usize,
}

impl Line {
    fn new(what: &str, calls: u32, points: usize) -> Self {
        Self {
            what: what.to_owned(),
            calls: Some(calls),
            points,
        }
    }

    fn of(line: &str) -> Self {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        Self {
            what: cells[1].to_owned(),
            calls: cells[2].parse().ok(),
            points: cells[3].parse().unwrap(),
        }
    }

    /// The line of all points.
    fn all(points: usize) -> Self {
        Self {
            what: "all".to_owned(),
            calls: None,
            points,
        }
    }

    fn text(&self) -> String {
        let calls = self.calls.map(|calls| calls.to_string());
        let (what, calls, points) = (&self.what, calls.unwrap_or_default(), self.points);
        format!("| {what} | {calls} | {points} |\n").replace("|  |", "| |")
    }
}

const TOLD: Told = Told {
    page: "reliability.md",
    table: "crash points",
};
const HEAD: &str = "| what | calls | points |\n|---|---|---|\n";
/// One call more or less, in each way.
const SLACK: usize = Fault::ALL.len();
/// The tests run side by side and write the same page.
static PAGE: Mutex<()> = Mutex::new(());

/// The lines of the page, without the one of all points.
fn lines(table: &str) -> Vec<Line> {
    let mut lines: Vec<_> = table.lines().skip(2).map(Line::of).collect();
    lines.pop_if(|line| line.calls.is_none());
    lines
}

/// The page has this line, or gets it if it is to be written.
fn told(seen: &Line) {
    let _alone = PAGE.lock().unwrap();
    let mut known = lines(&TOLD.read());
    known.retain(|line| line.what != seen.what && DEEDS.contains(&line.what.as_str()));
    known.push(Line::new(
        &seen.what,
        seen.calls.unwrap_or_default(),
        seen.points,
    ));
    known.sort_by_key(|line| DEEDS.iter().position(|what| *what == line.what));
    let all = Line::all(known.iter().map(|line| line.points).sum());
    let known: String = known.iter().chain([&all]).map(Line::text).collect();
    let told = lines(&TOLD.or_written(&format!("{HEAD}{known}")));
    let told = told.iter().find(|line| line.what == seen.what);
    let told = told.unwrap_or_else(|| panic!("the page does not tell of: {}", seen.what));
    // None may go missing. A connection that the engine closed costs a call more at times.
    assert!(seen.points + SLACK >= told.points, "{seen:?}, {told:?}");
}

/// A test for each operation, so that they run side by side.
macro_rules! visited {
    ($($test:ident: $deed:ident, $what:literal;)+) => {
        const DEEDS: &[&str] = &[$($what),+];
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                visit(Deed::$deed, $what).await;
            }
        )+
    };
}

visited! {
    submit: Submit, "submit an event";
    batch: Batch, "take a batch of three events, one of them known";
    ingest: Ingest, "take a message of three events, one of them none";
    import: Import, "import a file of five lines, one of them no event";
    register: Register, "register a turn with a message";
    register_next: RegisterNext, "register the next turn, which rejects the one before";
    open: Open, "open a turn, which rejects the one before";
    complete: Complete, "complete it with an answer that has a message";
    react: React, "react";
    replace: Replace, "replace a reaction";
    replace_older: ReplaceOlder, "replace a reaction of an older system";
    clear: Clear, "clear a reaction";
    infer: Infer, "infer a reaction from a message";
    judge: Judge, "react as the machine";
    say: Say, "say something of a message";
    say_otherwise: SayOtherwise, "say it otherwise";
    take_back: TakeBack, "take it back";
    change_preferences: ChangePreferences, "change preferences";
    work_off_events: WorkOffEvents, "signal generator: three events of a user, one of them a duplicate and one about a turn";
    work_off_reactions: WorkOffReactions, "signal generator: a reaction and the one that replaced it, mirrored";
    work_off_signals: WorkOffSignals, "signal generator: a signal that counts and the one that replaced it";
    work_off_taken_back: WorkOffTakenBack, "signal generator: a signal that was taken back";
    ask_erasure: AskErasure, "ask for the erasure of a user's data";
    erase: Erase, "erase what a user left in the table and the bucket";
    export_day: ExportDay, "export the signals of a day";
    export_training: ExportTraining, "export a project for training";
}

#[test]
fn the_page_has_a_line_for_each_operation_and_their_sum() {
    let _alone = PAGE.lock().unwrap();
    let table = TOLD.read();
    let known = lines(&table);
    assert!(
        known
            .iter()
            .map(|line| line.what.as_str())
            .eq(DEEDS.iter().copied())
    );
    let all = Line::all(known.iter().map(|line| line.points).sum());
    assert_eq!(table.lines().last().map(Line::of), Some(all));
}
