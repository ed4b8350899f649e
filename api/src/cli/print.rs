//! Text for a person's terminal: what comes from pages can not move the cursor, colour a line or forge one.

use serde_json::Value;

/// Longest detail of a line, in characters; the rest is in `--json`.
const DETAIL_CHARACTERS_MAX: usize = 200;

/// The text with everything escaped that a terminal would act on instead of show.
pub(super) fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        if is_active(letter) {
            shown.extend(letter.escape_unicode());
        } else {
            shown.push(letter);
        }
    }
    shown
}

/// Controls (ESC and the 8-bit CSI among them), line separators, and marks that turn the direction of text around.
fn is_active(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// The fields of an object as `name=value`, short, in their order, without those that say nothing.
pub(super) fn fields(object: &Value) -> String {
    let Some(object) = object.as_object() else {
        return escaped(&object.to_string());
    };
    let mut shown: Vec<String> = Vec::new();
    for (name, value) in object {
        match value {
            Value::Null => {}
            Value::Array(list) if list.is_empty() => {}
            Value::String(text) if is_word(text) => shown.push(format!("{name}={text}")),
            other => shown.push(format!("{name}={}", escaped(&other.to_string()))),
        }
    }
    clipped(&shown.join("  "))
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|letter| letter.is_ascii_graphic())
}

fn clipped(text: &str) -> String {
    match text.char_indices().nth(DETAIL_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Rows in columns that line up; the last column is as wide as it likes.
pub(super) fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain(header.get(column).map(|name| name.len())).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let cells: Vec<String> = cells.zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    let mut text = line(&mut header.iter().copied());
    for row in rows {
        text.push_str(&line(&mut row.iter().map(String::as_str)));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn c12_text_of_a_page_can_not_act_on_the_terminal_or_forge_a_line() {
        let hostile = "a\u{1b}[2J\nb\u{9b}31m\r\u{202e}c\u{2028}";
        let shown = escaped(hostile);
        assert!(!shown.chars().any(is_active), "{shown}");
        let line = fields(&json!({ "title": hostile, "note": [hostile] }));
        assert!(!line.chars().any(is_active), "{line}");
    }

    #[test]
    fn fields_that_say_nothing_are_left_out() {
        let line = fields(&json!({ "capability": "navigate", "binding_id": null, "artifacts": [], "n": 3 }));
        assert_eq!(line, "capability=navigate  n=3");
    }

    #[test]
    fn columns_line_up() {
        let rows = [vec!["a".to_owned(), "x".to_owned()], vec!["long".to_owned(), "y".to_owned()]];
        assert_eq!(table(&["id", "what"], &rows), "id    what\na     x\nlong  y\n");
    }
}
