//! How many items a page of a list has.

use hearback_wire::Integer;

/// Maximum number of items on a page.
pub const MAX_LIMIT: i64 = 500;
/// The `limit` of a request: the maximum number of items on a page.
pub type PageLimit = Integer<1, MAX_LIMIT>;
/// The default page limit.
pub const DEFAULT_LIMIT: PageLimit = Integer(100);
