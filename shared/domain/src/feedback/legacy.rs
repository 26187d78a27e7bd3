//! Reaction rows of an older system: their index text is JSON or the `repr` of a Python dict.
//!
//! A printable header may precede the dict, and the reaction may be nested in the member `reaction`, next to `meta`.

use std::iter::Peekable;
use std::str::Chars;

use chrono::{DateTime, Utc};
use serde_json::{Map, Number, Value};

use crate::feedback::reaction::{Origin, Reaction, ReactionCore, StoredReaction};
use crate::identity::identifier::{TurnId, UserId};
use crate::turns::turn::TurnRef;
use hearback_wire::parse::{instant, number_in, one_of};
use uuid::Uuid;

/// A reaction in an old row.
#[derive(Debug, Clone, PartialEq)]
pub struct LegacyReaction {
    /// The id of the turn.
    pub turn_id: String,
    /// The user's text, possibly empty.
    pub text: String,
    /// The confidence, 0 to 1.
    pub confidence: f64,
    /// The time of the reaction, to the microsecond.
    pub ts: DateTime<Utc>,
    /// The verdict; `None` withdraws.
    pub reaction: Option<Reaction>,
    /// Who reacted.
    pub origin: Origin,
}

impl Default for LegacyReaction {
    /// A tombstone of 1970: the content of an unreadable row.
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

impl StoredReaction {
    /// Converts a reaction of the older system. An unreadable one becomes a tombstone of 1970, which any reaction
    /// replaces.
    #[must_use]
    pub fn from_legacy(at: TurnRef, user: UserId, legacy: Option<LegacyReaction>) -> Self {
        let legacy = legacy.unwrap_or_default();
        Self {
            core: ReactionCore {
                origin: legacy.origin,
                reaction: legacy.reaction,
                confidence: legacy.confidence,
                ..ReactionCore::new(Uuid::nil(), at, legacy.ts, user, legacy.ts)
            },
            text: legacy.text,
        }
    }
}

/// The reaction in an index text, if there is a valid one.
///
/// `turn_id`, `ts` (RFC 3339, with an offset) and `reaction` are required. `text`, `confidence` and `origin` default to
/// an empty text, 1 and the user if they are missing or `None`. An invalid member makes the whole row invalid.
#[must_use]
pub fn reaction(text: &str) -> Option<LegacyReaction> {
    let dict = text.get(text.find('{')?..)?;
    let document = serde_json::from_str(dict)
        .ok()
        .or_else(|| PythonLiteral::parse(dict))?;
    let nested = document.get("reaction").filter(|nested| nested.is_object());
    read(nested.unwrap_or(&document))
}

fn read(row: &Value) -> Option<LegacyReaction> {
    let turn_id = TurnId::try_from(row.get("turn_id")?.as_str()?).ok()?;
    Some(LegacyReaction {
        turn_id: turn_id.into(),
        text: member_or(row, "text", String::new(), |text| {
            text.as_str().map(str::to_owned)
        })?,
        confidence: member_or(row, "confidence", 1.0, |number| {
            number_in(0.0, 1.0)(number).ok()
        })?,
        ts: instant(row.get("ts")?).ok()?,
        reaction: match row.get("reaction")? {
            Value::Null => None,
            named => Some(one_of(Reaction::NAMES)(named).ok()?),
        },
        origin: member_or(row, "origin", Origin::User, |named| {
            one_of(Origin::NAMES)(named).ok()
        })?,
    })
}

/// A member, or `default` if it is missing or null.
fn member_or<T>(
    row: &Value,
    name: &str,
    default: T,
    read: impl Fn(&Value) -> Option<T>,
) -> Option<T> {
    match row.get(name) {
        None | Some(Value::Null) => Some(default),
        Some(value) => read(value),
    }
}

/// Maximum nesting, the same as for JSON. The text is not trusted, and deeper nesting could overflow the stack.
const MAX_DEPTH: usize = 128;

/// A parser for the `repr` of Python strings, numbers, `None`, `True`, `False`, and of dicts, lists and tuples of
/// these. It reads each character once.
struct PythonLiteral<'a> {
    rest: Peekable<Chars<'a>>,
}

impl PythonLiteral<'_> {
    /// The value, if the text contains nothing else.
    fn parse(text: &str) -> Option<Value> {
        let mut parser = PythonLiteral {
            rest: text.chars().peekable(),
        };
        let value = parser.value(MAX_DEPTH)?;
        parser.skip_space();
        parser.rest.next().is_none().then_some(value)
    }

    fn skip_space(&mut self) {
        while self.rest.next_if(char::is_ascii_whitespace).is_some() {}
    }

    /// Consumes `expected`, after any space, if it comes next.
    fn take(&mut self, expected: char) -> bool {
        self.skip_space();
        self.rest.next_if_eq(&expected).is_some()
    }

    /// Consumes characters while they match.
    fn take_while(&mut self, matches: impl Fn(char) -> bool) -> String {
        let mut taken = String::new();
        while let Some(character) = self.rest.next_if(|next| matches(*next)) {
            taken.push(character);
        }
        taken
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
                // As Python's `json.dumps` converts such keys.
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

    /// `(1, 2)`, `(1,)` and `()` are tuples; `(1)` is the number 1.
    fn tuple(&mut self, depth: usize) -> Option<Value> {
        match self.items(')', depth)? {
            (mut only, false) if only.len() == 1 => only.pop(),
            (items, _) => Some(Value::Array(items)),
        }
    }

    fn number(&mut self) -> Option<Value> {
        let text = self.take_while(|next| {
            next.is_ascii_digit() || matches!(next, '+' | '-' | '.' | 'e' | 'E' | '_')
        });
        if let Ok(integer) = text.parse::<i64>() {
            return Some(Value::from(integer));
        }
        // JSON has no infinite numbers.
        Number::from_f64(text.parse().ok()?).map(Value::Number)
    }

    fn word(&mut self) -> Option<Value> {
        match self.take_while(char::is_alphanumeric).as_str() {
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

    /// Parses the rest of an escape sequence, after the backslash.
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
            // `repr` prints no other escapes; Python keeps the backslash of unknown ones.
            other => {
                text.push('\\');
                other
            }
        };
        text.push(character);
        Some(())
    }

    /// The character whose code has exactly `digits` hexadecimal digits.
    fn code_point(&mut self, digits: usize) -> Option<char> {
        let mut code = 0_u32;
        for _ in 0..digits {
            let digit = self.rest.next()?.to_digit(16)?;
            code = code.checked_mul(16)?.checked_add(digit)?;
        }
        // Python strings may contain lone surrogates, Rust strings may not. One invalid character does not make the
        // whole text invalid.
        let surrogate = (0xD800..=0xDFFF).contains(&code);
        char::from_u32(code).or(surrogate.then_some(char::REPLACEMENT_CHARACTER))
    }
}

#[cfg(test)]
mod tests;
