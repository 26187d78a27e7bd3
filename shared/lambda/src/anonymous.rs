//! Anonymizes events without delaying other requests.
//!
//! Scrubbing text takes CPU time in proportion to its size ([`hearback_scrub`]). A few kilobytes
//! are scrubbed on the current thread; more on a blocking thread, so that the threads that serve
//! requests stay free. One processor stays free too.

use std::future::pending;
use std::panic::resume_unwind;
use std::sync::LazyLock;
use std::thread::available_parallelism;

use hearback_domain::events::submission::{Draft, EventRejected, Submission};
use hearback_domain::identity::privacy::Pseudonyms;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// Largest text that is scrubbed on the current thread, in bytes: a few milliseconds at worst.
pub const AT_ONCE: usize = 8 * 1024;

/// Permits for requests whose text is scrubbed on a blocking thread, in order of arrival.
static PERMITS: LazyLock<Semaphore> = LazyLock::new(|| {
    let processors = available_parallelism().map_or(1, usize::from);
    Semaphore::new(processors.saturating_sub(1).max(1))
});

/// The submissions of one request, in order, anonymized where requested.
pub async fn submissions(
    drafts: Vec<Result<Draft, EventRejected>>,
    pseudonyms: &Pseudonyms,
) -> Vec<Result<Submission, EventRejected>> {
    let texts = drafts.iter().flatten().map(Draft::to_scrub);
    if texts.sum::<usize>() <= AT_ONCE {
        return anonymized(drafts, pseudonyms);
    }
    // The semaphore is never closed.
    let permit = PERMITS.acquire().await;
    let pseudonyms = pseudonyms.clone();
    let work = spawn_blocking(move || {
        // Held until the work is done, even if the request is cancelled.
        let _permit = permit;
        anonymized(drafts, &pseudonyms)
    });
    match work.await {
        Ok(submissions) => submissions,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime is shutting down.
            Err(_) => pending().await,
        },
    }
}

/// The submission of one event, anonymized if requested.
pub async fn submission(
    draft: Draft,
    pseudonyms: &Pseudonyms,
) -> Result<Submission, EventRejected> {
    if draft.to_scrub() <= AT_ONCE {
        return draft.submission(pseudonyms);
    }
    let mut submissions = submissions(vec![Ok(draft)], pseudonyms).await;
    // There is one submission for each draft.
    submissions
        .pop()
        .unwrap_or_else(|| Err(EventRejected::Invalid(Vec::new())))
}

fn anonymized(
    drafts: Vec<Result<Draft, EventRejected>>,
    pseudonyms: &Pseudonyms,
) -> Vec<Result<Submission, EventRejected>> {
    let drafts = drafts.into_iter();
    let submissions = drafts.map(|draft| draft?.submission(pseudonyms));
    submissions.collect()
}
