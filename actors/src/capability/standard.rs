//! The table itself: one line per capability. What each does stands in [`crate::runtime::chromium`], one line too.

use std::sync::{Arc, LazyLock};

use browser::{args, results};
use eventlog::{event::instance::Bundle::Standard, id::ArtifactId};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Catalogue, CatalogueError, Row, Sensitivity, row};

const ACTS: Sensitivity = Sensitivity::ACTS;
const READS: Sensitivity = Sensitivity::READS;

/// A picture, kept as an artifact.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Picture {
    /// Where its bytes are.
    pub artifact: PictureFile,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
}

/// A file that a task made.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PictureFile {
    /// Its id: `GET …/artifacts/{id}` gives the bytes.
    pub id: ArtifactId,
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
        row::<args::NavigateArgs, results::NavigateResult>("navigate", "Opens an address.", Standard, ACTS),
        row::<args::HistoryArgs, results::NavigateResult>("go_back", "Goes back in the tab's history.", Standard, ACTS),
        row::<args::HistoryArgs, results::NavigateResult>("go_forward", "Goes forward in the tab's history.", Standard, ACTS),
        row::<args::ReloadArgs, results::NavigateResult>("reload", "Loads the page again.", Standard, ACTS),
        row::<args::ClickArgs, results::PageState>("click", "Clicks an element once it can be clicked.", Standard, ACTS),
        row::<args::ClickArgs, results::PageState>("dblclick", "Clicks an element twice.", Standard, ACTS),
        row::<args::ElementArgs, results::PageState>("hover", "Moves the mouse over an element.", Standard, ACTS),
        row::<args::ElementArgs, results::PageState>("focus", "Gives an element the focus.", Standard, ACTS),
        row::<args::ElementArgs, results::PageState>("scroll_into_view", "Scrolls until an element can be seen.", Standard, ACTS),
        row::<args::TypeArgs, results::PageState>("type", "Types text key by key.", Standard, ACTS),
        row::<args::FillArgs, results::PageState>("fill", "Replaces the text of a field.", Standard, ACTS),
        row::<args::PressArgs, results::PageState>("press", "Presses a key.", Standard, ACTS),
        row::<args::WaitArgs, results::WaitResult>("wait", "Waits for one thing to come true.", Standard, READS),
        row::<args::DialogArgs, results::PageState>("dialog", "Answers the open dialog.", Standard, ACTS),
        row::<args::TabNewArgs, results::TabList>("tab_new", "Opens a tab.", Standard, ACTS),
        row::<args::TabArgs, results::TabList>("tab_select", "Makes a tab the active one.", Standard, ACTS),
        row::<args::TabArgs, results::TabList>("tab_close", "Closes a tab.", Standard, ACTS),
        row::<args::TabListArgs, results::TabList>("tab_list", "Lists the tabs.", Standard, READS),
        row::<args::SnapshotArgs, results::PageSnapshot>("snapshot", "Reads the page as text, with refs for what can be acted on.", Standard, READS),
        row::<args::ScreenshotArgs, Picture>("screenshot", "Takes a picture.", Standard, READS),
        row::<args::GetContentArgs, results::Content>("get_content", "Reads the text of the page.", Standard, READS),
        row::<args::PageArgs, results::UrlResult>("get_url", "Says the address of the page.", Standard, READS),
        row::<args::PageArgs, results::TitleResult>("get_title", "Says the title of the page.", Standard, READS),
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
}
