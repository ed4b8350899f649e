//! Names of keys, and what a browser needs to know of each.

use crate::error::Error;

/// One key as `Input.dispatchKeyEvent` wants it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) key: String,
    pub(super) code: String,
    /// The Windows virtual key code; pages know it as `keyCode`.
    pub(super) number: i64,
    /// What it types, if it types.
    pub(super) text: Option<String>,
}

/// Named keys: `key`, `code`, number, text.
const NAMED: [(&str, &str, i64, &str); 32] = [
    ("Enter", "Enter", 13, "\r"),
    ("Tab", "Tab", 9, ""),
    ("Escape", "Escape", 27, ""),
    ("Backspace", "Backspace", 8, ""),
    ("Delete", "Delete", 46, ""),
    ("Insert", "Insert", 45, ""),
    ("ArrowLeft", "ArrowLeft", 37, ""),
    ("ArrowUp", "ArrowUp", 38, ""),
    ("ArrowRight", "ArrowRight", 39, ""),
    ("ArrowDown", "ArrowDown", 40, ""),
    ("Home", "Home", 36, ""),
    ("End", "End", 35, ""),
    ("PageUp", "PageUp", 33, ""),
    ("PageDown", "PageDown", 34, ""),
    ("Space", "Space", 32, " "),
    ("ContextMenu", "ContextMenu", 93, ""),
    ("Shift", "ShiftLeft", 16, ""),
    ("Control", "ControlLeft", 17, ""),
    ("Alt", "AltLeft", 18, ""),
    ("Meta", "MetaLeft", 91, ""),
    ("F1", "F1", 112, ""),
    ("F2", "F2", 113, ""),
    ("F3", "F3", 114, ""),
    ("F4", "F4", 115, ""),
    ("F5", "F5", 116, ""),
    ("F6", "F6", 117, ""),
    ("F7", "F7", 118, ""),
    ("F8", "F8", 119, ""),
    ("F9", "F9", 120, ""),
    ("F10", "F10", 121, ""),
    ("F11", "F11", 122, ""),
    ("F12", "F12", 123, ""),
];

/// Finds a key by its name or as a single character.
///
/// # Errors
/// [`Error::InvalidArgs`]: there is none; the message lists the names.
pub(super) fn find(name: &str) -> Result<Key, Error> {
    look(name).ok_or_else(|| {
        let names: Vec<_> = NAMED.iter().map(|(key, ..)| *key).collect();
        Error::invalid(format!(
            "there is no such key; give a single character, or one of {}",
            names.join(", ")
        ))
    })
}

fn look(name: &str) -> Option<Key> {
    let mut characters = name.chars();
    if let (Some(character), None) = (characters.next(), characters.next()) {
        return Some(of_character(character));
    }
    NAMED.iter().find(|(key, ..)| *key == name).map(|(key, code, number, text)| Key {
        // The key that types a blank is named by what it types.
        key: if *key == "Space" { " ".into() } else { (*key).into() },
        code: (*code).into(),
        number: *number,
        text: (!text.is_empty()).then(|| (*text).into()),
    })
}

/// The key that types `character` on a usual keyboard; others are typed without a place on one.
pub(super) fn of_character(character: char) -> Key {
    let key = character.to_string();
    match character {
        '\n' | '\r' => look("Enter").unwrap_or(Key { key, code: String::new(), number: 13, text: None }),
        'a'..='z' | 'A'..='Z' => {
            let upper = character.to_ascii_uppercase();
            Key {
                code: format!("Key{upper}"),
                number: i64::from(u32::from(upper)),
                text: Some(key.clone()),
                key,
            }
        }
        '0'..='9' => {
            let number = i64::from(u32::from(character));
            Key { code: format!("Digit{character}"), number, text: Some(key.clone()), key }
        }
        ' ' => Key { code: "Space".into(), number: 32, text: Some(key.clone()), key },
        _ => Key { code: String::new(), number: 0, text: Some(key.clone()), key },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_by_name_or_character_and_nothing_else() {
        let found = |name| find(name).expect("there is such a key");
        assert_eq!(found("Enter").text.as_deref(), Some("\r"));
        assert_eq!((found("ArrowDown").number, found("ArrowDown").text), (40, None));
        assert_eq!(found("é").text.as_deref(), Some("é"));
        assert_eq!(found("Space").key, " ");
        for none in ["Return", "", "ab"] {
            let refused = find(none).expect_err(none).to_string();
            assert!(refused.contains("one of Enter, Tab, Escape"), "{refused}");
        }
    }
}
