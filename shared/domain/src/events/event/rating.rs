//! The rating of an event.

use hearback_wire::{Errors, FromJson, Integer, Pointer};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;

/// A rating, 1 (worst) to 5 (best).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct Rating(u8);

impl Rating {
    /// The lowest rating.
    pub const MIN: Self = Self(1);
    /// The highest rating.
    pub const MAX: Self = Self(5);
    /// The highest rating that counts as low.
    pub const LOW: Self = Self(2);
    /// The lowest rating that counts as high.
    pub const HIGH: Self = Self(4);

    /// The rating as a number from 1 to 5.
    #[must_use]
    pub fn get(self) -> u8 {
        self.0
    }
}

impl TryFrom<u8> for Rating {
    type Error = &'static str;

    fn try_from(value: u8) -> Result<Self, Self::Error> {
        if (Self::MIN.0..=Self::MAX.0).contains(&value) {
            Ok(Self(value))
        } else {
            Err("must be an integer from 1 to 5")
        }
    }
}

impl FromJson for Rating {
    fn read(value: &Value, at: Pointer<'_>, errors: &mut Errors) -> Option<Self> {
        Integer::<1, 5>::read(value, at, errors).map(|number| Self(number.to()))
    }

    fn schema() -> RefOr<Schema> {
        Integer::<1, 5>::schema()
    }
}

impl From<Rating> for u8 {
    fn from(value: Rating) -> Self {
        value.0
    }
}
