//! The parts of a text that its author wrote: everything except code, block quotes and quotations.
//!
//! A user who pastes a log that contains "wrong" does not call the answer wrong.

use std::ops::Range;

/// Opening marks with the closing marks of each.
const MARKS: &[(char, &[char])] = &[
    ('`', &['`']),
    ('"', &['"']),
    ('\'', &['\'']),
    ('“', &['”']),
    ('„', &['“', '”']),
    ('«', &['»']),
    ('「', &['」']),
    ('『', &['』']),
];

/// The byte ranges of `text` that are not quoted, in order, none of them empty. Linear in the text.
///
/// Quoted are: fenced blocks (to the end of the text if there is no closing fence), lines that start with `>`, lines
/// after the first that are indented as code, and text between quotation marks or backticks within one line.
pub(crate) fn unquoted(text: &str) -> Vec<Range<usize>> {
    let mut own = Vec::new();
    let mut fence = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let trimmed = line.trim_start_matches(' ');
        let indented = start > 0 && (line.starts_with("    ") || line.starts_with('\t'));
        if let Some(marker) = fence {
            if trimmed.starts_with(marker) {
                fence = None;
            }
        } else if let Some(marker) = opened_fence(trimmed) {
            fence = Some(marker);
        } else if !indented && !trimmed.starts_with('>') {
            within_line(line, start, &mut own);
        }
    }
    own.retain(|range| !range.is_empty());
    own
}

/// The marker of a fenced block that this line opens and does not close.
fn opened_fence(line: &str) -> Option<&'static str> {
    ["```", "~~~"].into_iter().find(|marker| {
        line.strip_prefix(marker)
            .is_some_and(|rest| !rest.contains(marker))
    })
}

/// Adds the parts that are not between quotation marks.
fn within_line(line: &str, offset: usize, own: &mut Vec<Range<usize>>) {
    let mut kept_from = 0;
    if line
        .bytes()
        .any(|byte| !byte.is_ascii() || b"`\"'".contains(&byte))
    {
        // Marks that nothing closes in the rest of the line: searching again would not be linear.
        let mut unclosed = [false; MARKS.len()];
        let mut before = ' ';
        let mut at = 0;
        while let Some(character) = line.get(at..).and_then(|rest| rest.chars().next()) {
            let next = at + character.len_utf8();
            if let Some(end) = closed(line, next, character, before, &mut unclosed) {
                own.push(offset + kept_from..offset + at);
                kept_from = end;
                at = end;
                before = character;
            } else {
                at = next;
                before = character;
            }
        }
    }
    own.push(offset + kept_from..offset + line.len());
}

/// Where the quotation ends that `character` opens, if it opens one. `from` is the position after `character`.
fn closed(
    line: &str,
    from: usize,
    character: char,
    before: char,
    unclosed: &mut [bool; MARKS.len()],
) -> Option<usize> {
    let ((_, closers), unclosed) = MARKS
        .iter()
        .zip(unclosed)
        .find(|((opener, _), _)| *opener == character)?;
    // A mark that is the same at both ends opens only before a word, not within or after one, as an apostrophe is.
    let ambiguous = closers.contains(&character);
    if *unclosed || (ambiguous && before.is_alphanumeric()) {
        return None;
    }
    let rest = line.get(from..)?;
    let end = rest
        .match_indices(*closers)
        .map(|(at, closer)| at + closer.len())
        .find(|end| {
            let after = rest.get(*end..).and_then(|rest| rest.chars().next());
            !ambiguous || !after.is_some_and(char::is_alphanumeric)
        });
    *unclosed = end.is_none();
    Some(from + end?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(text: &str) -> String {
        unquoted(text)
            .into_iter()
            .map(|range| &text[range])
            .collect::<Vec<_>>()
            .join("·")
    }

    #[test]
    fn code_and_quotations_are_left_out() {
        assert_eq!(own("It says \"wrong\" here."), "It says · here.");
        assert_eq!(own("Use `no` and „nein“, 「違う」."), "Use · and ·, ·.");
        assert_eq!(own("Why?\n```\nno\n```\nTell me."), "Why?\n·Tell me.");
        assert_eq!(own("Why?\n```\nno, never closed"), "Why?\n");
        assert_eq!(own("> wrong\nThanks"), "Thanks");
        assert_eq!(own("I see:\n    at wrong.rs\n"), "I see:\n");
        assert_eq!(own("a ```b``` c"), "a · c");
    }

    #[test]
    fn apostrophe_opens_no_quotation() {
        for text in [
            "that's it, isn't it",
            "5 o\"clock or 6 o\"clock",
            "a 5\" disk",
            "it's 'open",
        ] {
            assert_eq!(own(text), text);
        }
    }
}
