//! The verdicts of each user of a group, so that one user's hundred clicks do not outvote a hundred users.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::text::digest::digest;
use crate::views::insights::verdict::Verdict;

/// Maximum number of users in the stored counts of a dimension. Beyond it the users with the lowest hashes are a
/// sample: it is the same sample in every hour, so that samples can be merged.
pub const MAX_SAMPLED_USERS: usize = 512;

/// A hash of a user. Hashes are evenly distributed, so the users with hashes below a limit are a random sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserHash(pub u64);

impl UserHash {
    /// The hash of a user of a tenant; of different tenants, the same name has different hashes.
    #[must_use]
    pub fn of(tenant: &str, user: &str) -> Self {
        let digest = digest([tenant, user]);
        let first = digest.first_chunk().copied().unwrap_or_default();
        Self(u64::from_be_bytes(first))
    }
}

impl Serialize for UserHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&URL_SAFE_NO_PAD.encode(self.0.to_be_bytes()))
    }
}

impl<'de> Deserialize<'de> for UserHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(de::Error::custom)?;
        let bytes = bytes.try_into();
        bytes
            .map(|bytes| Self(u64::from_be_bytes(bytes)))
            .map_err(|_| de::Error::custom("must have 8 bytes"))
    }
}

/// The verdicts of a user.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "[u32; 3]", into = "[u32; 3]")]
pub struct VerdictCounts {
    /// Acceptances.
    pub accepted: u32,
    /// Rejections.
    pub rejected: u32,
    /// Neutral verdicts.
    pub neutral: u32,
}

impl VerdictCounts {
    /// Counts a verdict.
    pub(super) fn add(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Accepted => self.accepted += 1,
            Verdict::Rejected => self.rejected += 1,
            Verdict::Neutral => self.neutral += 1,
        }
    }

    /// The share of acceptances, 0 to 1.
    #[must_use]
    pub fn satisfaction(self) -> f64 {
        let all = f64::from(self.accepted) + f64::from(self.rejected) + f64::from(self.neutral);
        f64::from(self.accepted) / all.max(1.0)
    }
}

impl AddAssign for VerdictCounts {
    fn add_assign(&mut self, other: Self) {
        self.accepted += other.accepted;
        self.rejected += other.rejected;
        self.neutral += other.neutral;
    }
}

impl From<[u32; 3]> for VerdictCounts {
    fn from([accepted, rejected, neutral]: [u32; 3]) -> Self {
        Self {
            accepted,
            rejected,
            neutral,
        }
    }
}

impl From<VerdictCounts> for [u32; 3] {
    fn from(verdicts: VerdictCounts) -> Self {
        [verdicts.accepted, verdicts.rejected, verdicts.neutral]
    }
}

/// The verdicts of each user of a group, of all users or of a sample.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UserVerdicts(pub BTreeMap<UserHash, VerdictCounts>);

impl UserVerdicts {
    /// Leaves out users with hashes of `limit` and more.
    pub(super) fn limit(&mut self, limit: UserHash) {
        self.0.split_off(&limit);
    }

    /// These verdicts without those of `part`. A user whose verdicts are all in the part is left out.
    pub(super) fn without(&self, part: &Self) -> Self {
        let rest = self.0.iter().filter_map(|(user, verdicts)| {
            let given = part.0.get(user).copied().unwrap_or_default();
            let rest = VerdictCounts {
                accepted: verdicts.accepted.saturating_sub(given.accepted),
                rejected: verdicts.rejected.saturating_sub(given.rejected),
                neutral: verdicts.neutral.saturating_sub(given.neutral),
            };
            (rest != VerdictCounts::default()).then_some((*user, rest))
        });
        Self(rest.collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl AddAssign<&Self> for UserVerdicts {
    fn add_assign(&mut self, other: &Self) {
        for (user, verdicts) in &other.0 {
            *self.0.entry(*user).or_default() += *verdicts;
        }
    }
}
