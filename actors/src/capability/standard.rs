//! The table itself: one line per capability. What each does stands in [`crate::runtime::chromium`], one line too.

use std::sync::{Arc, LazyLock};

use browser::{args, results};
use eventlog::{
    event::instance::Bundle::{Standard, Trusted},
    id::ArtifactId,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::{Catalogue, CatalogueError, Row, Sensitivity, row};

const ACTS: Sensitivity = Sensitivity::ACTS;
const READS: Sensitivity = Sensitivity::READS;
const SCRIPT: Sensitivity = Sensitivity::SCRIPT;

/// A picture with its refs, kept as an artifact.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AnnotatedPicture {
    /// The picture.
    #[serde(flatten)]
    pub picture: Picture,
    /// What is framed in it.
    pub legend: Vec<results::Legend>,
}

/// A printed page, kept as an artifact.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PdfFile {
    /// Where its bytes are.
    pub artifact: KeptFile,
}

/// A picture, kept as an artifact.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Picture {
    /// Where its bytes are.
    pub artifact: KeptFile,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
}

/// What pages of the Space downloaded, the newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Downloads {
    /// The newest.
    pub downloads: Vec<DownloadReceipt>,
    /// So many older ones are left out.
    pub omitted: usize,
}

/// One download. Its bytes are not to be had before an operator has released it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DownloadReceipt {
    /// Its id; `upload` takes it once it is released.
    pub download_id: String,
    /// `started`, `captured`, `refused`, `approved`, `released`, `rejected` or `expired`.
    pub state: String,
    /// What the page calls it; never a path.
    pub suggested_filename: String,
    /// Where it comes from.
    pub url: String,
    /// When it began.
    pub started_at: String,
    /// Its size, once it was captured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// SHA-256 of its bytes, lower-case hex.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// What its name says that it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claimed_media_type: Option<String>,
    /// What its first bytes say that it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sniffed_media_type: Option<String>,
    /// When it was captured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub captured_at: Option<String>,
    /// Why it was not captured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused_because: Option<String>,
}

/// A file that a task made.
#[derive(Debug, Serialize, JsonSchema)]
pub struct KeptFile {
    /// Its id: `GET …/artifacts/{artifact_id}` gives the bytes.
    pub artifact_id: ArtifactId,
    /// Its media type.
    pub media_type: String,
    /// Its size.
    pub bytes: u64,
    /// SHA-256 of the bytes, lower-case hex.
    pub sha256: String,
}

#[rustfmt::skip]
fn rows() -> Vec<Result<Row, CatalogueError>> {
    vec![
        row::<args::NavigateArgs, results::NavigateResult>("navigate", "Opens an address.", Standard, ACTS, json!({ "url": "https://example.org" })),
        row::<args::HistoryArgs, results::NavigateResult>("go_back", "Goes back in the tab's history.", Standard, ACTS, json!({})),
        row::<args::HistoryArgs, results::NavigateResult>("go_forward", "Goes forward in the tab's history.", Standard, ACTS, json!({})),
        row::<args::ReloadArgs, results::NavigateResult>("reload", "Loads the page again.", Standard, ACTS, json!({ "ignore_cache": true })),
        row::<args::ClickArgs, results::PageState>("click", "Clicks an element once it can be clicked.", Standard, ACTS, json!({ "ref": "e4" })),
        row::<args::ClickArgs, results::PageState>("dblclick", "Clicks an element twice.", Standard, ACTS, json!({ "ref": "e4" })),
        row::<args::ElementArgs, results::PageState>("hover", "Moves the mouse over an element.", Standard, ACTS, json!({ "ref": "e4" })),
        row::<args::ElementArgs, results::PageState>("focus", "Gives an element the focus.", Standard, ACTS, json!({ "ref": "e4" })),
        row::<args::ElementArgs, results::PageState>("scroll_into_view", "Scrolls until an element can be seen.", Standard, ACTS, json!({ "ref": "e4" })),
        row::<args::TypeArgs, results::PageState>("type", "Types text key by key.", Standard, ACTS, json!({ "ref": "e5", "text": "tea", "submit": true })),
        row::<args::FillArgs, results::PageState>("fill", "Replaces the text of a field.", Standard, ACTS, json!({ "ref": "e5", "text": "two cups" })),
        row::<args::PressArgs, results::PageState>("press", "Presses a key.", Standard, ACTS, json!({ "key": "Enter" })),
        row::<args::SelectArgs, results::SelectResult>("select", "Chooses options of a select.", Standard, ACTS, json!({ "ref": "e6", "values": ["Green tea"] })),
        row::<args::ElementArgs, results::CheckResult>("check", "Checks a checkbox, a radio or a switch.", Standard, ACTS, json!({ "ref": "e7" })),
        row::<args::ElementArgs, results::CheckResult>("uncheck", "Unchecks a checkbox or a switch.", Standard, ACTS, json!({ "ref": "e7" })),
        row::<args::ScrollArgs, results::ScrollResult>("scroll", "Scrolls the page or a part of it.", Standard, ACTS, json!({ "to": "bottom" })),
        row::<args::DragArgs, results::PageState>("drag", "Drags one element onto another.", Standard, ACTS, json!({ "from": "e8", "to": "e9" })),
        row::<args::MouseArgs, results::PageState>("mouse", "Uses the mouse at a point of the view.", Standard, ACTS, json!({ "action": "click", "x": 320, "y": 240 })),
        row::<args::UploadArgs, results::UploadResult>("upload", "Gives files of the Space to a page.", Standard, ACTS, json!({ "ref": "e8", "files": ["art_00000000000000000000000000"] })),
        row::<args::WaitArgs, results::WaitResult>("wait", "Waits for one thing to come true.", Standard, READS, json!({ "text": "Thank you" })),
        row::<args::DialogArgs, results::PageState>("dialog", "Answers the open dialog.", Standard, ACTS, json!({ "action": "accept" })),
        row::<args::TabNewArgs, results::TabList>("tab_new", "Opens a tab.", Standard, ACTS, json!({ "url": "https://example.org" })),
        row::<args::TabArgs, results::TabList>("tab_select", "Makes a tab the active one.", Standard, ACTS, json!({ "tab": "t1" })),
        row::<args::TabArgs, results::TabList>("tab_close", "Closes a tab.", Standard, ACTS, json!({ "tab": "t2" })),
        row::<args::TabListArgs, results::TabList>("tab_list", "Lists the tabs.", Standard, READS, json!({})),
        row::<args::SnapshotArgs, results::PageSnapshot>("snapshot", "Reads the page as text, with refs for what can be acted on.", Standard, READS, json!({ "interactive": true })),
        row::<args::ScreenshotArgs, Picture>("screenshot", "Takes a picture.", Standard, READS, json!({ "full_page": true })),
        row::<args::AnnotateArgs, AnnotatedPicture>("screenshot_annotate", "Takes a picture in which elements are framed and named by their refs.", Standard, READS, json!({ "refs": ["e4"] })),
        row::<args::PdfArgs, PdfFile>("pdf", "Prints the page to a file.", Standard, READS, json!({ "paper": "a4", "ranges": "1-2" })),
        row::<args::GetContentArgs, results::Content>("get_content", "Reads the text of the page.", Standard, READS, json!({ "format": "markdown" })),
        row::<args::GetHtmlArgs, results::Html>("get_html", "Reads the markup of the page, without scripts and what fields hold.", Standard, READS, json!({ "ref": "e3", "outer": true })),
        row::<args::GetArgs, results::GetResult>("get", "Reads one thing of an element.", Standard, READS, json!({ "ref": "e4", "what": "attribute", "name": "href" })),
        row::<args::PageArgs, results::UrlResult>("get_url", "Says the address of the page.", Standard, READS, json!({})),
        row::<args::PageArgs, results::TitleResult>("get_title", "Says the title of the page.", Standard, READS, json!({})),
        row::<args::TabListArgs, Downloads>("downloads", "Lists what pages of the Space downloaded, with receipts; an operator releases files.", Standard, READS, json!({})),
        row::<args::EvaluateArgs, results::EvaluateResult>("evaluate", "Runs a script in the page.", Trusted, SCRIPT, json!({ "expression": "document.title" })),
    ]
}

/// The catalogue of this program; made once.
#[must_use]
pub fn standard() -> Arc<Catalogue> {
    static CATALOGUE: LazyLock<Arc<Catalogue>> =
        LazyLock::new(|| Arc::new(Catalogue::new(rows()).expect("the table is checked by a test")));
    Arc::clone(&CATALOGUE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::sample::smallest;

    #[test]
    fn every_row_is_a_capability_and_has_a_smallest_result_that_fits_it() {
        let catalogue = standard();
        assert_eq!(catalogue.rows().len(), rows().len());
        for row in catalogue.rows() {
            let result = smallest(&row.result_schema);
            let validator = jsonschema::validator_for(&row.result_schema).unwrap();
            assert!(validator.is_valid(&result), "{}: {result}", row.name);
        }
    }

    #[test]
    fn what_is_wrong_with_a_choice_is_said_with_the_choices() {
        let problems = |name: &str, args: serde_json::Value| {
            let checked = standard().check(&name.parse().unwrap(), &args);
            let Err(crate::capability::CheckError::Args(problems)) = checked else {
                panic!("{name}: {args} fits")
            };
            problems
        };
        let one_of = "(args): must have exactly one of ms, text, text_gone, ref_state, url, load_state";
        assert_eq!(problems("wait", json!({})), [one_of]);
        assert_eq!(problems("wait", json!({ "ms": 1, "text": "x" })), [one_of]);
        let states = "must be one of load, domcontentloaded, network_idle, none";
        let url = "https://example.org";
        assert_eq!(
            problems("navigate", json!({ "url": url, "wait": "networkidle" })),
            [format!("/wait: {states}")]
        );
        assert_eq!(problems("wait", json!({ "load_state": "idle" })), [format!("/load_state: {states}")]);
        assert_eq!(
            problems("dialog", json!({ "action": "yes" })),
            ["/action: must be one of accept, dismiss"]
        );
        let state = json!({ "ref_state": { "ref": "e1", "state": "seen" } });
        let states = "must be one of visible, hidden, enabled, disabled, gone";
        assert_eq!(problems("wait", state), [format!("/ref_state/state: {states}")]);
        let position = json!({ "ref": "e1", "position": { "x": -1, "y": 0 } });
        assert_eq!(problems("click", position), ["/position/x: must be at least 0"]);
    }

    #[test]
    fn no_problem_with_any_arg_leaves_the_choices_unsaid() {
        for row in standard().rows() {
            for (name, property) in row.args_schema["properties"].as_object().into_iter().flatten() {
                for wrong in [json!("~"), json!({ "~": 0 }), json!([[]]), json!(-1)] {
                    let mut args = row.example.clone();
                    args[name] = wrong;
                    let Err(crate::capability::CheckError::Args(problems)) = row.check(&args) else {
                        continue;
                    };
                    let text = problems.join("\n");
                    assert!(
                        !text.contains("forms of the schema"),
                        "{}: {name}: {property}: {text}",
                        row.name
                    );
                }
            }
        }
    }
}
