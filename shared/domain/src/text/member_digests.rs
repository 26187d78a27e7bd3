//! Digests of the members of a turn's registration, by which a second body is compared with the first.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::text::digest::digest;

/// The members of one or two bodies, each with a digest of its value.
pub type MemberDigests = BTreeMap<String, String>;

/// Members that are stored in the turn's row itself.
const IN_ROW: [&str; 2] = ["ts", "user_id"];

/// The members of a body, without those that are `null` or stored in the turn's row.
pub(crate) fn member_digests(body: &Value) -> MemberDigests {
    let members = body.as_object().into_iter().flatten();
    members
        .filter(|(name, value)| !value.is_null() && !IN_ROW.contains(&name.as_str()))
        .map(|(name, value)| {
            let hash = digest([value.to_string().as_str()]);
            let start: Vec<u8> = hash.into_iter().take(8).collect();
            (name.clone(), hex::encode(start))
        })
        .collect()
}
