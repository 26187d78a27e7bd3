//! Free text on a line of its own.

/// A text without line breaks: each, or several in a row, becomes one space. Everything that a
/// reader may take for the end of a line counts as a break, because what follows it would pass for
/// another line.
#[must_use]
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    let mut broken = false;
    for character in text.chars() {
        let breaks = is_break(character);
        if !breaks {
            line.push(character);
        } else if !broken {
            line.push(' ');
        }
        broken = breaks;
    }
    line
}

/// Line feed, vertical tab, form feed, carriage return, the information separators, next line, and
/// Unicode's line and paragraph separators.
fn is_break(character: char) -> bool {
    matches!(
        character,
        '\n'..='\r' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_of_any_kind_are_one_space() {
        assert_eq!(one_line("a\r\n\nb\u{2028}c\u{85}"), "a b c ");
        assert_eq!(one_line("a\u{b}b\u{c}c\u{2029}d\u{1e}e"), "a b c d e");
        assert_eq!(one_line("a  b\tc"), "a  b\tc");
    }
}
