//! Simulates users and workers in an order that a seed gives: requests that fail and are retried, messages that are
//! late, out of order, repeated, or processed by two workers concurrently, imports, erasures, and clients of the live
//! feed. Every response, the whole store and what each client was sent must agree with a model.
//!
//! Each seed is a world of its own, with two tenants that use the same names. `OPERATIONS` is the number of operations
//! in all worlds, `SEED` the first seed, which the commit chooses by default:
//!
//! ```console
//! OPERATIONS=200000 cargo test -p hearback-tests --test bundle simulation -- --nocapture
//! SEED=7 OPERATIONS=1 cargo test -p hearback-tests --test bundle simulation
//! ```
//!
//! The seed of a failing world is printed, and fails again.

mod checks;
mod counts;
mod erasures;
mod ledger;
mod listener;
mod listeners;
mod model;
mod operations;
mod pipeline;
mod rates;
mod world;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use hearback_tests::options::{commit, given, number};
use tokio::runtime;
use world::World;

/// The default number of operations.
const OPERATIONS: u64 = 1_000;
/// Operations of users and workers in one world. The store must stay small enough to read it completely.
const STEPS: u64 = 600;
/// Concurrent worlds, each in its own thread with its own clock.
const WORLDS: usize = 2;

/// Prints the seed of a failing world.
struct Running(u64);

impl Drop for Running {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("to reproduce: SEED={} OPERATIONS=1", self.0);
        }
    }
}

fn run(seed: u64) -> u64 {
    let _running = Running(seed);
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(async {
        let mut world = World::new(seed).await;
        for step in 0..STEPS {
            world.step().await;
            if step == STEPS / 2 {
                checks::check(&mut world).await;
                world.check_listeners().await;
            }
        }
        world.end_erasures().await;
        checks::check(&mut world).await;
        world.check_listeners().await;
        world.operations()
    })
}

#[test]
fn the_bundle_agrees_with_a_model_in_any_order_of_operations() {
    let first = given("SEED").unwrap_or_else(|| commit().try_into().unwrap());
    let operations = number("OPERATIONS", OPERATIONS);
    let (seeds, made) = (AtomicU64::new(first), AtomicU64::new(0));
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..WORLDS {
            scope.spawn(|| {
                while made.load(Ordering::SeqCst) < operations {
                    let seed = seeds.fetch_add(1, Ordering::SeqCst);
                    made.fetch_add(run(seed), Ordering::SeqCst);
                    if operations == 1 {
                        return;
                    }
                }
            });
        }
    });
    println!(
        "{} operations with the seeds {first} to {}, in {:?}",
        made.into_inner(),
        seeds.into_inner() - 1,
        begun.elapsed()
    );
}
