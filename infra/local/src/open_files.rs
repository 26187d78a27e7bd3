//! How many files the process may have open. A request under way has a connection of its own to the engine,
//! with two ends in this process, and where nothing is set a process may have as few as 256.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// More than the connections that the gateway keeps, and the requests that it takes on. macOS takes no more.
const WANTED: u64 = 10_240;

/// Allows as many as the system lets us have.
pub(crate) fn allow() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(WANTED, |maximum| maximum.min(WANTED));
    if current.is_none_or(|current| current >= wanted) {
        return;
    }
    let limit = Rlimit {
        current: Some(wanted),
        maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
}
