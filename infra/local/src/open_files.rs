//! The limit of open files. A request in progress has its own connection to the engine, with both ends in this
//! process, and the default limit can be as low as 256.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Enough for the gateway's connections and requests, and the maximum on macOS.
const WANTED: u64 = 10_240;

/// Raises the limit as far as the system allows.
pub(crate) fn raise_limit() {
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
        tracing::warn!(%error, "cannot raise the limit of open files");
    }
}
