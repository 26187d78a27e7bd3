//! Keys of files in the bucket.

use chrono::NaiveDate;
use hearback_domain::identity::identifier::{ProjectId, TenantId};
use hearback_domain::text::digest::digest;
use hearback_domain::turns::turn::TurnRef;
use uuid::Uuid;

use super::parts::{file_part, short};

/// The folder of the logs of turns in the bucket.
const TURN_LOGS: &str = "turn-logs/";
/// The folder of files to import in the bucket.
pub const IMPORTS: &str = "imports/";
/// Suffix of a file's key that gives the folder of its reports.
pub const REPORT_SUFFIX: &str = ".import/";

/// The key of a turn's log in the bucket; `version` distinguishes its versions. Contains digests,
/// because ids may have characters that S3 keys may not.
#[must_use]
pub fn turn_log(at: &TurnRef, version: &str) -> String {
    format!("{}{version}.json", turn_logs(at))
}

/// Prefix of the keys of all versions of a turn's log.
#[must_use]
pub fn turn_logs(at: &TurnRef) -> String {
    let names = [
        at.within.project.as_str(),
        at.within.conversation.as_str(),
        at.turn.as_str(),
    ];
    let (tenant, turn) = (digest([at.within.tenant.as_str()]), digest(names));
    format!("{TURN_LOGS}{}/{}/", short(tenant, 8), short(turn, 20))
}

/// Whether a key can be that of a turn's log.
#[must_use]
pub fn is_turn_log(key: &str) -> bool {
    let name = key.strip_prefix(TURN_LOGS);
    let name = name.and_then(|name| name.strip_suffix(".json"));
    let is_digest =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    name.is_some_and(|name| {
        key.len() <= 200 && name.split('/').count() == 3 && name.split('/').all(is_digest)
    })
}

/// The key of the traces that an erasure keeps between its passes.
#[must_use]
pub fn erasure_traces(tenant: &TenantId, id: Uuid) -> String {
    format!("erasures/{}/{id}.json", file_part(tenant.as_str()))
}

/// The folder of a tenant's files to import.
#[must_use]
pub fn imports_of(tenant: &TenantId) -> String {
    format!("{IMPORTS}{}/", file_part(tenant.as_str()))
}

/// The folder of the intermediate files of an import.
#[must_use]
pub fn import_work(tenant: &TenantId, id: &str) -> String {
    format!("imports-work/{}/{id}/", file_part(tenant.as_str()))
}

/// The tenant of a folder; `None` if the folder is no tenant's, or the tenant id was too long and
/// hashed.
#[must_use]
pub fn tenant_of_folder(folder: &str) -> Option<TenantId> {
    let mut bytes = Vec::with_capacity(folder.len());
    let mut rest = folder.as_bytes();
    while let [byte, after @ ..] = rest {
        if let (b'%', [high, low, after @ ..]) = (byte, after) {
            let mut decoded = [0];
            hex::decode_to_slice([*high, *low], &mut decoded).ok()?;
            bytes.extend(decoded);
            rest = after;
        } else {
            bytes.push(*byte);
            rest = after;
        }
    }
    let tenant = TenantId::try_from(String::from_utf8(bytes).ok()?).ok()?;
    (file_part(tenant.as_str()) == folder).then_some(tenant)
}

/// The folder of a tenant's exports for evaluations.
#[must_use]
pub fn signal_exports_of(tenant: &TenantId) -> String {
    format!("exports/signals/{}/", file_part(tenant.as_str()))
}

/// The folder of a tenant's training exports.
#[must_use]
pub fn training_exports_of(tenant: &TenantId) -> String {
    format!("exports/training/{}/", file_part(tenant.as_str()))
}

/// The folder of a day's exports.
#[must_use]
pub fn export_day(tenant: &TenantId, day: NaiveDate) -> String {
    format!("{}{day}", signal_exports_of(tenant))
}

/// The folder of a project's training exports.
#[must_use]
pub fn export_training(tenant: &TenantId, project: &ProjectId) -> String {
    let project = file_part(project.as_str());
    format!("{}{project}", training_exports_of(tenant))
}
