//! What became of feedback: every read but preferences.

mod feedback;
mod period;
mod timeline;
mod turns;

use hearback_lambda::WithBlobs;
use hearback_lambda::routes::Routes;

/// Largest body of a request for a report, in bytes.
pub const MAX_BODY: usize = 1024 * 1024;

/// Bytes of a page after which it ends early. Lambda hands on 6 MB at most.
const MAX_PAGE: usize = 5 * 1000 * 1000;

/// Every route of this function.
pub fn routes() -> Routes<WithBlobs> {
    feedback::routes()
        .and(turns::routes())
        .and(period::routes())
        .and(timeline::routes())
}
