//! Users and workers in an order that a seed gives: requests that fail and are sent again, messages that are
//! late, out of order, twice, and with two workers at once, imports and erasures among them. What follows
//! must be what a model says, at each answer and in the whole store.
//!
//! Each seed is a world of its own, with two tenants in which the same names mean others. `OPERATIONS`
//! says how many operations to make in all, and `SEED` with which seed to begin; the commit chooses it otherwise:
//!
//! ```console
//! OPERATIONS=200000 cargo test -p hearback-tests --test bundle simulation -- --nocapture
//! SEED=7 OPERATIONS=1 cargo test -p hearback-tests --test bundle simulation
//! ```
//!
//! A seed that fails says so, and fails again.

mod acts;
mod checks;
mod model;
mod pipeline;
mod world;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use hearback_tests::options::{commit, given, number};
use tokio::runtime;
use world::World;

/// Operations of a plain run.
const OPERATIONS: u64 = 2_000;
/// What is chosen in one world. A store of that size is soon read as a whole.
const STEPS: u64 = 600;
/// Worlds at once, each in a thread of its own with a clock of its own.
const WORLDS: usize = 2;

/// Tells of a seed that fails.
struct Running(u64);

impl Drop for Running {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("it fails again with SEED={} OPERATIONS=1", self.0);
        }
    }
}

fn live(seed: u64) -> u64 {
    let _running = Running(seed);
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(async {
        let mut world = World::new(seed).await;
        for step in 0..STEPS {
            world.step().await;
            if step == STEPS / 2 {
                checks::check(&mut world).await;
            }
        }
        world.end_erasures().await;
        checks::check(&mut world).await;
        world.operations()
    })
}

#[test]
fn whatever_the_order_what_follows_is_what_a_model_says() {
    let first = given("SEED").unwrap_or_else(|| commit().try_into().unwrap());
    let operations = number("OPERATIONS", OPERATIONS);
    let (seeds, made) = (AtomicU64::new(first), AtomicU64::new(0));
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..WORLDS {
            scope.spawn(|| {
                while made.load(Ordering::SeqCst) < operations {
                    let seed = seeds.fetch_add(1, Ordering::SeqCst);
                    made.fetch_add(live(seed), Ordering::SeqCst);
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
