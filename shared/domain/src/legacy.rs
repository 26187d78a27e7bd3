//! Reaction rows of the system that came before: their index text is JSON, or what Python prints
//! for a dict.
//!
//! Source: `Feedback Integration (React v2)`, "Implementation Notes" (both forms are parsed);
//! `Feedback System` (v2.2), "Storage & Indexing" (a small printable header stands before the
//! dict) and "Reaction artifact" (the dict may stand under `reaction`, with `meta` beside it).

use std::iter::Peekable;
use std::str::Chars;

use chrono::{DateTime, Utc};
use serde_json::{Map, Number, Value};

use crate::identifier::TurnId;
use crate::parse::{number_in, one_of};
use crate::reaction::{Origin, Reaction};
use crate::timeline::instant;

/// A reaction as the old rows tell it.
#[derive(Debug, Clone, PartialEq)]
pub struct LegacyReaction {
    /// The turn that it is about: an identifier.
    pub turn_id: String,
    /// What was written, maybe nothing.
    pub text: String,
    /// How sure it is, 0 to 1.
    pub confidence: f64,
    /// When it was, to the microsecond.
    pub ts: DateTime<Utc>,
    /// The verdict; `None` clears.
    pub reaction: Option<Reaction>,
    /// Who said so.
    pub origin: Origin,
}

impl Default for LegacyReaction {
    /// A tombstone of 1970: what a row says that nobody can read.
    fn default() -> Self {
        Self {
            turn_id: String::new(),
            text: String::new(),
            confidence: 1.0,
            ts: DateTime::UNIX_EPOCH,
            reaction: None,
            origin: Origin::User,
        }
    }
}

/// The reaction that an index text tells of, if it tells of one.
///
/// `turn_id`, `ts` (RFC 3339, with an offset) and `reaction` must be there. `text`, `confidence`
/// and `origin` may be left out or `None` and are then empty, 1 and the user. A member that is
/// there and wrong makes the whole row wrong: half a reaction would be a guess.
#[must_use]
pub fn reaction(text: &str) -> Option<LegacyReaction> {
    let dict = text.get(text.find('{')?..)?;
    let whole = serde_json::from_str(dict)
        .ok()
        .or_else(|| Python::read(dict))?;
    let nested = whole.get("reaction").filter(|nested| nested.is_object());
    read(nested.unwrap_or(&whole))
}

fn read(row: &Value) -> Option<LegacyReaction> {
    let turn_id = TurnId::try_from(row.get("turn_id")?.as_str()?).ok()?;
    Some(LegacyReaction {
        turn_id: turn_id.into(),
        text: or(row, "text", String::new(), |text| {
            text.as_str().map(str::to_owned)
        })?,
        confidence: or(row, "confidence", 1.0, |number| {
            number_in(0.0, 1.0)(number).ok()
        })?,
        ts: instant(row.get("ts")?).ok()?,
        reaction: match row.get("reaction")? {
            Value::Null => None,
            named => Some(one_of(Reaction::NAMES)(named).ok()?),
        },
        origin: or(row, "origin", Origin::User, |named| {
            one_of(Origin::NAMES)(named).ok()
        })?,
    })
}

/// A member, or `default` where it is left out or null.
fn or<T>(row: &Value, name: &str, default: T, read: impl Fn(&Value) -> Option<T>) -> Option<T> {
    match row.get(name) {
        None | Some(Value::Null) => Some(default),
        Some(value) => read(value),
    }
}

/// Deepest nesting that is followed, the same as for JSON: the text is not trusted, and the stack
/// is not endless.
const MAX_DEPTH: usize = 128;

/// Reads what Python's `repr` prints for strings, numbers, `None`, `True`, `False`, and for dicts,
/// lists and tuples of these. Each character is looked at once.
struct Python<'a> {
    rest: Peekable<Chars<'a>>,
}

impl Python<'_> {
    /// The value, if it is all that the text has.
    fn read(text: &str) -> Option<Value> {
        let mut python = Python {
            rest: text.chars().peekable(),
        };
        let value = python.value(MAX_DEPTH)?;
        python.skip_space();
        python.rest.next().is_none().then_some(value)
    }

    fn skip_space(&mut self) {
        while self.rest.next_if(char::is_ascii_whitespace).is_some() {}
    }

    /// Takes `wanted`, after any space, if it comes next.
    fn take(&mut self, wanted: char) -> bool {
        self.skip_space();
        self.rest.next_if_eq(&wanted).is_some()
    }

    /// Takes characters as long as they are of a kind.
    fn run(&mut self, of: impl Fn(char) -> bool) -> String {
        let mut run = String::new();
        while let Some(character) = self.rest.next_if(|next| of(*next)) {
            run.push(character);
        }
        run
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        self.skip_space();
        match *self.rest.peek()? {
            '{' => self.dict(depth),
            '[' => Some(Value::Array(self.items(']', depth)?.0)),
            '(' => self.tuple(depth),
            '\'' | '"' => self.string().map(Value::String),
            '0'..='9' | '+' | '-' | '.' => self.number(),
            _ => self.word(),
        }
    }

    fn dict(&mut self, depth: usize) -> Option<Value> {
        let depth = depth.checked_sub(1)?;
        self.rest.next();
        let mut members = Map::new();
        while !self.take('}') {
            let key = match self.value(depth)? {
                Value::String(key) => key,
                // Python's own way from such keys to JSON.
                scalar @ (Value::Null | Value::Bool(_) | Value::Number(_)) => scalar.to_string(),
                Value::Array(_) | Value::Object(_) => return None,
            };
            if !self.take(':') {
                return None;
            }
            let value = self.value(depth)?;
            members.insert(key, value);
            if !self.take(',') {
                return self.take('}').then_some(Value::Object(members));
            }
        }
        Some(Value::Object(members))
    }

    /// The items up to `end`, and whether a comma followed the last one.
    fn items(&mut self, end: char, depth: usize) -> Option<(Vec<Value>, bool)> {
        let depth = depth.checked_sub(1)?;
        self.rest.next();
        let mut items = Vec::new();
        while !self.take(end) {
            items.push(self.value(depth)?);
            if !self.take(',') {
                return self.take(end).then_some((items, false));
            }
        }
        Some((items, true))
    }

    /// `(1, 2)`, `(1,)` and `()` are tuples; `(1)` is its only item.
    fn tuple(&mut self, depth: usize) -> Option<Value> {
        match self.items(')', depth)? {
            (mut only, false) if only.len() == 1 => only.pop(),
            (items, _) => Some(Value::Array(items)),
        }
    }

    fn number(&mut self) -> Option<Value> {
        let text = self
            .run(|next| next.is_ascii_digit() || matches!(next, '+' | '-' | '.' | 'e' | 'E' | '_'));
        if let Ok(whole) = text.parse::<i64>() {
            return Some(Value::from(whole));
        }
        // Infinite is no JSON number.
        Number::from_f64(text.parse().ok()?).map(Value::Number)
    }

    fn word(&mut self) -> Option<Value> {
        match self.run(char::is_alphanumeric).as_str() {
            "None" => Some(Value::Null),
            "True" => Some(Value::Bool(true)),
            "False" => Some(Value::Bool(false)),
            _ => None,
        }
    }

    fn string(&mut self) -> Option<String> {
        let quote = self.rest.next()?;
        let mut text = String::new();
        loop {
            match self.rest.next()? {
                '\\' => self.escape(&mut text)?,
                '\n' => return None,
                end if end == quote => return Some(text),
                character => text.push(character),
            }
        }
    }

    /// What stands behind a backslash.
    fn escape(&mut self, text: &mut String) -> Option<()> {
        let character = match self.rest.next()? {
            same @ ('\\' | '\'' | '"') => same,
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'v' => '\u{b}',
            'x' => self.code_point(2)?,
            'u' => self.code_point(4)?,
            'U' => self.code_point(8)?,
            // `repr` prints no other; Python leaves the backslash before what it does not know.
            other => {
                text.push('\\');
                other
            }
        };
        text.push(character);
        Some(())
    }

    /// The character with a code of exactly so many hexadecimal digits.
    fn code_point(&mut self, digits: usize) -> Option<char> {
        let mut code = 0_u32;
        for _ in 0..digits {
            let digit = self.rest.next()?.to_digit(16)?;
            code = code.checked_mul(16)?.checked_add(digit)?;
        }
        // Python's strings may hold half of a surrogate pair, ours may not. One broken character
        // is no reason to lose what somebody said.
        let half = (0xD800..=0xDFFF).contains(&code);
        char::from_u32(code).or(half.then_some(char::REPLACEMENT_CHARACTER))
    }
}

#[cfg(test)]
mod tests;
