//! Keys of the live feed. Tickets and connections are found by ids that nobody can guess, so they have no tenant.

use hearback_domain::identity::identifier::{TenantId, UserRef};
use hearback_domain::text::digest::digest;

use super::parts::{join, part};

const TICKET_PREFIX: &str = "TICKET#";
const CONNECTION_PREFIX: &str = "CONNECTION#";
const LISTENERS_PREFIX: &str = "LISTENERS#";

/// Sort key of a ticket.
pub const TICKET: &str = "TICKET";
/// Sort key of a connection.
pub const CONNECTION: &str = "CONNECTION";

/// The partition of a ticket. Only the digest of a ticket is stored, so that no reader of the table can connect.
#[must_use]
pub fn ticket(ticket: &str) -> String {
    format!("{TICKET_PREFIX}{}", hex::encode(digest(["ticket", ticket])))
}

/// The partition of a connection, whose id API Gateway creates.
#[must_use]
pub fn connection(id: &str) -> String {
    format!("{CONNECTION_PREFIX}{}", part(id))
}

/// The partition of the connections that receive a tenant's feed.
#[must_use]
pub fn tenant_listeners(tenant: &TenantId) -> String {
    format!("{LISTENERS_PREFIX}{}", part(tenant.as_str()))
}

/// The partition of the connections that receive a user's feed.
#[must_use]
pub fn user_listeners(UserRef { tenant, user }: UserRef<'_>) -> String {
    join("LISTENERS", tenant, user.as_str())
}

/// Whether a partition is that of a ticket, a connection or listeners.
#[must_use]
pub fn is_of_live_feed(partition: &str) -> bool {
    [TICKET_PREFIX, CONNECTION_PREFIX, LISTENERS_PREFIX]
        .iter()
        .any(|prefix| partition.starts_with(prefix))
}
