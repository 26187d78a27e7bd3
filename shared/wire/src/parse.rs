//! Parsers of single values. Each returns the value, or a description of what is expected.

use chrono::{DateTime, Datelike, NaiveDate, SubsecRound, Utc};
use serde_json::Value;

/// Reads a string.
pub fn string(value: &Value) -> Result<&str, String> {
    value.as_str().ok_or_else(|| "must be a string".to_owned())
}

/// Reads a string of at most `limit` characters.
pub fn text(limit: usize) -> impl FnOnce(&Value) -> Result<String, String> {
    move |value| {
        let text = string(value)?;
        if text.chars().count() > limit {
            return Err(format!("must have at most {limit} characters"));
        }
        Ok(text.to_owned())
    }
}

/// Reads an identifier of any kind.
pub fn identifier<'a, T>(value: &'a Value) -> Result<T, String>
where
    T: TryFrom<&'a str>,
    T::Error: ToString,
{
    T::try_from(string(value)?).map_err(|error| error.to_string())
}

/// Reads `true` or `false`.
pub fn boolean(value: &Value) -> Result<bool, String> {
    value
        .as_bool()
        .ok_or_else(|| "must be true or false".to_owned())
}

/// The smallest integer as a float, which is also the float that smaller integers are rounded to.
const BELOW_INTEGERS: f64 = -9_223_372_036_854_775_808.0;

/// Reads a whole number; `4.0` is one, as in JSON Schema.
pub fn integer(value: &Value) -> Result<i64, String> {
    let whole = value.as_i64().or_else(|| {
        let number = value.as_f64()?;
        let whole = number.fract() == 0.0 && number > BELOW_INTEGERS;
        // A number with a decimal point, or one outside the range. Its text is the exact way to an integer.
        whole.then(|| format!("{number:.0}").parse().ok())?
    });
    whole.ok_or_else(|| "must be an integer".to_owned())
}

/// Reads a whole number from `low` to `high`.
pub fn integer_in(low: i64, high: i64) -> impl FnOnce(&Value) -> Result<i64, String> {
    move |value| match integer(value) {
        Ok(number) if (low..=high).contains(&number) => Ok(number),
        _ => Err(format!("must be an integer from {low} to {high}")),
    }
}

/// Reads a number from `low` to `high`.
pub fn number_in(low: f64, high: f64) -> impl FnOnce(&Value) -> Result<f64, String> {
    move |value| {
        value
            .as_f64()
            .filter(|number| (low..=high).contains(number))
            .ok_or_else(|| format!("must be a number from {low} to {high}"))
    }
}

/// Reads an RFC 3339 time, in any offset. The year in UTC must have four digits too, because RFC
/// 3339 has no others.
pub fn date_time(value: &Value) -> Result<DateTime<Utc>, &'static str> {
    value
        .as_str()
        .and_then(|text| DateTime::parse_from_rfc3339(text).ok())
        .map(|time| time.to_utc())
        .filter(|time| (0..=9999).contains(&time.year()))
        .ok_or("must be an RFC 3339 date and time with an offset")
}

/// Truncates a time to microseconds, the precision in which times are stored and compared.
#[must_use]
pub fn to_instant(time: DateTime<Utc>) -> DateTime<Utc> {
    time.trunc_subsecs(6)
}

/// Reads an RFC 3339 time, truncated to microseconds.
pub fn instant(value: &Value) -> Result<DateTime<Utc>, &'static str> {
    date_time(value).map(to_instant)
}

/// Reads a day.
pub fn date(value: &Value) -> Result<NaiveDate, String> {
    NaiveDate::parse_from_str(string(value)?, "%Y-%m-%d")
        .map_err(|_| "must be a date as 2025-11-06".to_owned())
}

/// Reads one value of a closed set by its wire name.
pub fn one_of<T: Copy>(
    names: &'static [(&'static str, T)],
) -> impl Fn(&Value) -> Result<T, String> {
    move |value| {
        value
            .as_str()
            .and_then(|given| names.iter().find(|(name, _)| *name == given))
            .map(|(_, member)| *member)
            .ok_or_else(|| {
                let names: Vec<_> = names.iter().map(|(name, _)| *name).collect();
                format!("must be one of {}", names.join(", "))
            })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_number_with_a_zero_fraction_is_an_integer() {
        assert_eq!(integer(&json!(4.0)), Ok(4));
        assert_eq!(integer(&json!(-3)), Ok(-3));
        assert!(integer(&json!(4.5)).is_err());
        assert!(integer(&json!(1e300)).is_err());
    }

    #[test]
    fn an_integer_out_of_range_is_not_rounded_into_it() {
        let parsed = |text: &str| integer(&serde_json::from_str(text).unwrap());
        assert_eq!(parsed("-9223372036854775808"), Ok(i64::MIN));
        assert_eq!(parsed("9223372036854775807"), Ok(i64::MAX));
        assert!(parsed("-9223372036854775809").is_err());
        assert!(parsed("9223372036854775808").is_err());
    }
}
