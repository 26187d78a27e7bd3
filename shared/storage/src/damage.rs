//! Warns of what cannot be read, and counts it for a caller that reports how much it has left out.

use std::cell::Cell;
use std::fmt::Display;

use hearback_domain::identity::identifier::TenantId;

tokio::task_local! {
    static UNREADABLE: Cell<u64>;
}

/// Runs `work`, in which [`unreadable`] counts.
pub async fn counting<F: Future>(work: F) -> F::Output {
    UNREADABLE.scope(Cell::new(0), work).await
}

/// How many rows and logs could not be read since [`counting`] began; one that is read again counts again.
#[must_use]
pub fn unreadable() -> u64 {
    UNREADABLE.try_with(Cell::get).unwrap_or_default()
}

/// Whether something is missing because of data that cannot be read.
#[derive(Clone, Copy)]
pub(crate) enum Loss {
    /// It is left out of what is returned, which counts.
    LeftOut,
    /// It is replaced, or the caller decides whether to leave it out. This does not count.
    None,
}

/// The data that cannot be read, as a warning names it. None of this is personal data.
#[derive(Default)]
pub(crate) struct Damaged<'a> {
    pub tenant: Option<&'a str>,
    /// The kind of the row's partition.
    pub partition: Option<&'a str>,
    /// The kind of the row.
    pub row: Option<&'a str>,
    /// The key of an object.
    pub key: Option<&'a str>,
}

impl<'a> Damaged<'a> {
    /// Data of a tenant. The error names its kind.
    pub(crate) fn of(tenant: &'a TenantId) -> Self {
        Self {
            tenant: Some(tenant.as_str()),
            ..Self::default()
        }
    }
}

/// Warns of data that cannot be read, and counts it if it is left out. The template's metric counts every warning with
/// `damaged`.
pub(crate) fn note(loss: Loss, damaged: &Damaged<'_>, error: &dyn Display, message: &str) {
    match loss {
        // Most callers do not count.
        Loss::LeftOut => {
            let _ = UNREADABLE.try_with(|count| count.set(count.get() + 1));
        }
        Loss::None => {}
    }
    tracing::warn!(
        partition = damaged.partition,
        row = damaged.row,
        tenant = damaged.tenant.map(tracing::field::display),
        key = damaged.key,
        %error,
        damaged = true,
        "{message}"
    );
}
