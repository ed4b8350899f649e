//! Where an answer of a side names what can be acted on. Each writes its lines in a way of its own.

use anyhow::{Context, Result};

/// How a side writes its refs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Refs {
    /// `e12 button "Save"`
    Ours,
    /// `- button "Save" [ref=e35]`, `- button "Save" [level=1, ref=e2]`
    Bracketed,
    /// `uid=1_23 button "Save" focused`
    Uid,
}

/// What can be acted on.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Control {
    Button,
    Field,
}

impl Control {
    const fn role(self) -> &'static str {
        match self {
            Self::Button => "button",
            Self::Field => "textbox",
        }
    }
}

impl Refs {
    /// The ref of a control by its name.
    pub(crate) fn of(self, answer: &str, control: Control, name: &str) -> Result<String> {
        let needle = format!("{} \"{name}\"", control.role());
        let line = answer.lines().find(|line| line.contains(&needle));
        let line = line.with_context(|| format!("no {needle} in the snapshot"))?;
        let found = match self {
            Self::Ours => line.split_whitespace().next().filter(|word| is_ref(word)),
            Self::Bracketed => line.rsplit_once("ref=").and_then(|(_, rest)| rest.split([']', ',']).next()),
            Self::Uid => line.trim_start().strip_prefix("uid=").and_then(|rest| rest.split(' ').next()),
        };
        Ok(found.with_context(|| format!("no ref in the line {line}"))?.to_owned())
    }
}

fn is_ref(word: &str) -> bool {
    word.strip_prefix('e')
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each of them said of the same page of ours.
    const ANSWERS: [(Refs, &str, &str, &str); 5] = [
        (Refs::Ours, "e2 textbox \"Field 10\"\ne1 textbox \"Field 1\"\n e3 button \"Save\"\n", "e1", "e3"),
        (
            Refs::Bracketed,
            "### Page\n```yaml\n- generic [ref=e3]:\n  - textbox \"Field 1\" [ref=f1e6]: \"1\"\n  - button \"Save\" [active] [ref=f1e35]\n```",
            "f1e6",
            "f1e35",
        ),
        (
            Refs::Bracketed,
            "- textbox \"Field 1\" [ref=e15]: v1\n  - StaticText \"v1\"\n- button \"Save\" [disabled, ref=e14]\n",
            "e15",
            "e14",
        ),
        (
            Refs::Uid,
            "## Latest page snapshot\nuid=1_0 RootWebArea \"Form\"\n  uid=1_4 textbox \"Field 1\" value=\"v1\"\n  uid=1_23 button \"Save\" focusable focused\n",
            "1_4",
            "1_23",
        ),
        (Refs::Uid, "uid=4_6 textbox \"Field 1\"\nuid=4_7 button \"Save\"", "4_6", "4_7"),
    ];

    #[test]
    fn a_ref_is_found_in_what_each_side_writes() {
        for (refs, answer, field, button) in ANSWERS {
            assert_eq!(refs.of(answer, Control::Field, "Field 1").expect("a field"), field, "{answer}");
            assert_eq!(refs.of(answer, Control::Button, "Save").expect("a button"), button, "{answer}");
            let missing = refs.of(answer, Control::Button, "Field 1").expect_err("there is none");
            assert!(missing.to_string().contains("no button \"Field 1\""), "{missing}");
        }
    }
}
