//! Every call of every handler fails, in every way; whoever was not answered tries again, and the store is
//! that of a run in which nothing failed.
//!
//! `docs/reliability.md` has the table of what was visited. `HEARBACK_WRITE_DOCS=1 cargo test -p
//! hearback-tests --test bundle crash_points` writes it.

mod deeds;
mod stored;
mod world;

use std::collections::BTreeMap;
use std::fmt::Write;

use futures::stream::{self, StreamExt};
use hearback_tests::engine::Engine;
use hearback_tests::faults::{Fault, Faults};
use hearback_tests::page::Told;
use hearback_tests::turns::exported;

use deeds::{DEEDS, Deed};
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

/// What a deed was seen with.
struct Visited {
    what: &'static str,
    calls: u32,
    points: usize,
}

async fn visit(beside: &Engine, (deed, what): (Deed, &'static str)) -> Visited {
    let counted = Faults::none();
    let untroubled = ends(beside, deed, &counted).await;
    let before = World::new(beside, deed).await;
    assert_ne!(stored(&before.engine, false).await, untroubled, "{deed:?}");
    if deed == Deed::Erase {
        // What is enumerated is an erasure that finds something in files too.
        assert_eq!(untroubled[EXPORT], exported("t7", "m7"));
    }
    let calls = counted.calls();
    let points = Fault::ALL
        .into_iter()
        .flat_map(|fault| (1..=calls).map(move |at| Faults::at(at, fault)));
    let points: Vec<_> = points.collect();
    let looked_at = stream::iter(&points).for_each_concurrent(SIDE_BY_SIDE, |faults| {
        let untroubled = &untroubled;
        async move {
            let ended = ends(beside, deed, faults).await;
            for (key, value) in untroubled.iter().chain(&ended) {
                assert_eq!(
                    (untroubled.get(key), ended.get(key)),
                    (Some(value), Some(value)),
                    "{deed:?}, {faults:?}: {key}"
                );
            }
        }
    });
    looked_at.await;
    Visited {
        what,
        calls,
        points: points.len(),
    }
}

/// The table of the page.
fn table(visited: &[Visited]) -> String {
    let mut table = String::from("| what | calls | points |\n|---|---|---|\n");
    for Visited {
        what,
        calls,
        points,
    } in visited
    {
        writeln!(table, "| {what} | {calls} | {points} |").unwrap();
    }
    let points: usize = visited.iter().map(|visited| visited.points).sum();
    writeln!(table, "| all | | {points} |").unwrap();
    table
}

/// A line of the table.
struct Line<'a> {
    what: &'a str,
    points: usize,
}

impl<'a> Line<'a> {
    fn of(line: &'a str) -> Self {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        Self {
            what: cells[1],
            points: cells[3].parse().unwrap(),
        }
    }
}

/// One call more or less, in each way.
const SLACK: usize = Fault::ALL.len();
const TOLD: Told = Told {
    page: "reliability.md",
    table: "crash points",
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_call_fails_the_store_is_that_of_a_run_in_which_none_did() {
    let engine = Engine::start().await;
    let mut visited = Vec::new();
    for deed in DEEDS {
        visited.push(visit(&engine, deed).await);
    }
    let table = table(&visited);
    println!("{table}");
    let told = TOLD.or_written(&table);
    for (told, seen) in told.lines().zip(table.lines()).skip(2) {
        let (told, seen) = (Line::of(told), Line::of(seen));
        assert_eq!(told.what, seen.what, "the page is not that of this test");
        // None may go missing. A connection that the engine closed costs a call more at times.
        assert!(seen.points + SLACK >= told.points, "{}", told.what);
    }
    assert_eq!(told.lines().count(), table.lines().count());
}
