//! Roles: what an element is, by its `role` and by HTML (HTML-AAM 1.0), in the words of Chromium's tree.

use super::capture::Dom;
use super::page::Page;

/// Roles of WAI-ARIA 1.2 and 1.3 that an author may give, where Chromium's word is the same.
const ROLES: [&str; 78] = [
    "alert",
    "alertdialog",
    "application",
    "article",
    "banner",
    "blockquote",
    "button",
    "caption",
    "cell",
    "checkbox",
    "code",
    "columnheader",
    "combobox",
    "comment",
    "complementary",
    "contentinfo",
    "definition",
    "deletion",
    "dialog",
    "document",
    "emphasis",
    "feed",
    "figure",
    "form",
    "generic",
    "grid",
    "gridcell",
    "group",
    "heading",
    "image",
    "insertion",
    "link",
    "list",
    "listbox",
    "listitem",
    "log",
    "main",
    "mark",
    "marquee",
    "math",
    "menu",
    "menubar",
    "menuitem",
    "menuitemcheckbox",
    "menuitemradio",
    "meter",
    "navigation",
    "none",
    "note",
    "option",
    "paragraph",
    "progressbar",
    "radio",
    "radiogroup",
    "region",
    "row",
    "rowgroup",
    "rowheader",
    "scrollbar",
    "search",
    "searchbox",
    "separator",
    "slider",
    "spinbutton",
    "status",
    "strong",
    "subscript",
    "suggestion",
    "superscript",
    "switch",
    "tab",
    "table",
    "tablist",
    "tabpanel",
    "term",
    "textbox",
    "time",
    "timer",
];

const MORE_ROLES: [&str; 5] = ["toolbar", "tooltip", "tree", "treegrid", "treeitem"];

/// Attributes by which an element that is said to be nothing is something all the same (WAI-ARIA 1.2, 7.1).
const GLOBAL: [&str; 10] = [
    "aria-label",
    "aria-labelledby",
    "aria-describedby",
    "aria-live",
    "aria-owns",
    "aria-controls",
    "aria-busy",
    "aria-atomic",
    "aria-current",
    "aria-details",
];

/// The role that an element is given by its author, if it is one.
fn given<'a>(dom: &Dom<'a>, place: usize) -> Option<&'a str> {
    dom.attribute(place, "role")?.split_whitespace().find_map(|word| match word {
        "presentation" => Some("none"),
        "img" => Some("image"),
        "directory" => Some("list"),
        word if word.starts_with("doc-") || word.starts_with("graphics-") => Some(word),
        word => (ROLES.contains(&word) || MORE_ROLES.contains(&word)).then_some(word),
    })
}

impl<'a> Page<'a> {
    /// The role of an element; empty for what says nothing by itself.
    pub(crate) fn role(&self, place: usize) -> &'a str {
        match given(self.dom, place) {
            Some("none") if !self.is_something(place) => match self.dom.tag(place) {
                "IFRAME" | "FRAME" => "IframePresentational",
                _ => "none",
            },
            Some("none") | None => self.native_role(place),
            // Without a name these are no landmarks.
            Some("region" | "form") if !self.is_named(place) => "generic",
            // An option is one of something.
            Some("option") if !self.is_in_list(place) => "generic",
            Some(given) => given,
        }
    }

    fn is_in_list(&self, place: usize) -> bool {
        let is_list = |at| matches!(given(self.dom, at), Some("listbox" | "combobox"));
        self.around(place).skip(1).any(|at| is_list(at) || self.dom.tag(at) == "SELECT" || self.is_owned(at))
            || self.is_owned(place)
    }

    fn is_something(&self, place: usize) -> bool {
        self.is_focusable(place) || GLOBAL.iter().any(|name| self.dom.has(place, name))
    }

    fn is_named(&self, place: usize) -> bool {
        let label = self.dom.attribute(place, "aria-label").is_some_and(|label| !label.trim().is_empty());
        let title = || self.dom.attribute(place, "title").is_some_and(|title| !title.trim().is_empty());
        label || !self.listed(place, "aria-labelledby").is_empty() || title()
    }

    fn native_role(&self, place: usize) -> &'a str {
        let dom = self.dom;
        match dom.tag(place) {
            "INPUT" => self.input_role(place),
            "A" | "AREA" | "a" if dom.has(place, "href") || dom.has(place, "xlink:href") => "link",
            "SELECT" => {
                let size = dom.attribute(place, "size").and_then(|size| size.parse::<u32>().ok());
                let is_list = dom.has(place, "multiple") || size.is_some_and(|size| size > 1);
                if is_list { "listbox" } else { "combobox" }
            }
            "SECTION" if self.is_named(place) => "region",
            "HEADER" | "FOOTER" => self.edge_role(place),
            "LI" => match dom.parent(place).map(|list| (dom.tag(list), self.role(list))) {
                Some(("UL" | "OL" | "MENU", "none")) => "none",
                Some((_, "list")) | Some(("UL" | "OL" | "MENU", _)) => "listitem",
                _ => "generic",
            },
            "SUMMARY" => self.summary_role(place),
            "svg" => self.drawing_role(place),
            "TABLE" | "TR" | "TD" | "TH" | "THEAD" | "TBODY" | "TFOOT" | "CAPTION" => self.table_role(place),
            // An image that is said to show nothing.
            "IMG" if dom.attribute(place, "alt") == Some("") && !self.is_named(place) => "none",
            "DIV" | "SPAN" if dom.has(place, "popover") => "group",
            tag => plain_role(tag),
        }
    }

    fn input_role(&self, place: usize) -> &'a str {
        match self.kind_of_input(place).as_str() {
            "hidden" => "none",
            "checkbox" if self.dom.has(place, "switch") => "switch",
            "checkbox" => "checkbox",
            "radio" => "radio",
            "button" | "submit" | "reset" | "image" | "file" => "button",
            "range" => "slider",
            "number" => "spinbutton",
            "color" => "ColorWell",
            "date" => "Date",
            "time" => "InputTime",
            "datetime-local" | "month" | "week" => "DateTime",
            _ if !self.listed(place, "list").is_empty() => "combobox",
            "search" => "searchbox",
            _ => "textbox",
        }
    }

    pub(crate) fn kind_of_input(&self, place: usize) -> String {
        self.dom.attribute(place, "type").unwrap_or("text").trim().to_ascii_lowercase()
    }

    /// A header or footer is the page's, or that of a part of it.
    fn edge_role(&self, place: usize) -> &'a str {
        let is_head = self.dom.tag(place) == "HEADER";
        let is_part = |at: usize| {
            matches!(self.dom.tag(at), "ARTICLE" | "ASIDE" | "MAIN" | "NAV" | "SECTION")
                || matches!(
                    given(self.dom, at),
                    Some("article" | "complementary" | "main" | "navigation" | "region")
                )
        };
        match (is_head, self.around(place).skip(1).any(is_part)) {
            (true, false) => "banner",
            (true, true) => "sectionheader",
            (false, false) => "contentinfo",
            (false, true) => "sectionfooter",
        }
    }

    fn summary_role(&self, place: usize) -> &'a str {
        let Some(details) = self.dom.parent(place).filter(|parent| self.dom.tag(*parent) == "DETAILS") else {
            return "generic";
        };
        let first = self.dom.children(details).iter().find(|child| self.dom.tag(**child) == "SUMMARY");
        match (first == Some(&place), self.dom.has(details, "name")) {
            (true, true) => "DisclosureTriangleGrouped",
            (true, false) => "DisclosureTriangle",
            (false, _) => "generic",
        }
    }

    /// A drawing with text or links in it is a document of its own.
    fn drawing_role(&self, place: usize) -> &'a str {
        let tells = |inner: usize| {
            matches!(self.dom.tag(inner), "text" | "a" | "foreignObject") || self.dom.has(inner, "role")
        };
        if self.inside(place).any(tells) { "SvgRoot" } else { "image" }
    }

    fn table_role(&self, place: usize) -> &'a str {
        let table = self.around(place).find(|at| self.dom.tag(*at) == "TABLE");
        let role = table.map_or("", |table| match given(self.dom, table) {
            Some(given) => given,
            None if self.is_data(table) => "table",
            None => "LayoutTable",
        });
        let is_grid = matches!(role, "grid" | "treegrid");
        let is_data = is_grid || role == "table";
        match (self.dom.tag(place), is_data) {
            ("TABLE", true) => "table",
            ("TABLE", false) => "LayoutTable",
            ("CAPTION", true) => "caption",
            ("TR", true) => "row",
            ("TD", true) => {
                if is_grid {
                    "gridcell"
                } else {
                    "cell"
                }
            }
            ("TH", true) => self.header_role(place),
            ("THEAD" | "TFOOT", true) => "rowgroup",
            _ => "",
        }
    }

    /// Chromium's reading of HTML, 4.9.12: a header is one of a row if it says so, or stands beside plain cells.
    fn header_role(&self, place: usize) -> &'a str {
        match self.dom.attribute(place, "scope").map(str::to_ascii_lowercase).as_deref() {
            Some("row" | "rowgroup") => "rowheader",
            _ => "columnheader",
        }
    }

    /// Chromium's own rule, as far as it does not look at styles; the rest is among the facts.
    pub(super) fn tells_data(&self, table: usize) -> bool {
        let dom = self.dom;
        let has = |name| dom.attribute(table, name).is_some_and(|value: &str| !value.is_empty());
        if has("summary") || has("rules") || self.is_editable(table) {
            return true;
        }
        let mut rows = 0;
        let mut cells_in_first = 0;
        let mut has_header = false;
        let mut waiting: Vec<usize> = dom.children(table).to_vec();
        while let Some(at) = waiting.pop() {
            match dom.tag(at) {
                "CAPTION" | "THEAD" | "TFOOT" | "COL" => return true,
                "TR" => {
                    rows += 1;
                    let cells = dom.children(at).iter().filter(|cell| matches!(dom.tag(**cell), "TD" | "TH"));
                    has_header |= cells.clone().any(|cell| dom.tag(*cell) == "TH");
                    cells_in_first = cells_in_first.max(cells.count());
                }
                "TBODY" | "COLGROUP" => waiting.extend(dom.children(at)),
                _ => {}
            }
        }
        let is_single = rows == 1 && cells_in_first <= 1;
        rows >= 20 || (has_header && !is_single) || self.fact(&self.facts.tables, table)
    }

    /// Whether an element, or one around it, lets its content be edited.
    pub(crate) fn is_editable(&self, place: usize) -> bool {
        let said = self.around(place).find_map(|at| self.dom.attribute(at, "contenteditable"));
        said.is_some_and(|said| !said.eq_ignore_ascii_case("false"))
    }

    /// Whether it is where its editable content begins.
    pub(crate) fn is_editing_root(&self, place: usize) -> bool {
        self.dom.has(place, "contenteditable")
            && self.is_editable(place)
            && !self.dom.parent(place).is_some_and(|parent| self.is_editable(parent))
    }

    /// HTML, 6.6.2: whether it can be given the focus, by script at least.
    pub(crate) fn is_focusable(&self, place: usize) -> bool {
        let dom = self.dom;
        if !dom.is_rendered(place) || (dom.has_box(place) && dom.is_invisible(place)) {
            return false;
        }
        let is_native = match dom.tag(place) {
            "A" | "AREA" | "a" => dom.has(place, "href") || dom.has(place, "xlink:href"),
            "BUTTON" | "INPUT" | "SELECT" | "TEXTAREA" => return dom.has_box(place) && !self.is_off(place),
            "SUMMARY" => self.summary_role(place) != "generic",
            "IFRAME" | "FRAME" => false,
            "DIALOG" => true,
            "OPTION" => dom.has_box(place) && !self.is_off(place),
            "AUDIO" | "VIDEO" => dom.has(place, "controls"),
            _ => false,
        };
        let index = dom.attribute(place, "tabindex").and_then(|index| index.trim().parse::<i32>().ok());
        is_native || index.is_some() || self.is_editing_root(place)
    }
}

fn plain_role(tag: &str) -> &'static str {
    match tag {
        "BUTTON" => "button",
        "TEXTAREA" => "textbox",
        "OPTION" => "option",
        "OPTGROUP" | "FIELDSET" | "DETAILS" | "ADDRESS" | "HGROUP" => "group",
        "H1" | "H2" | "H3" | "H4" | "H5" | "H6" => "heading",
        "P" => "paragraph",
        "UL" | "OL" | "MENU" => "list",
        "DL" => "DescriptionList",
        "DT" | "DFN" => "term",
        "DD" => "definition",
        "IMG" => "image",
        "CANVAS" => "Canvas",
        "IFRAME" | "FRAME" => "Iframe",
        "EMBED" | "OBJECT" => "PluginObject",
        "AUDIO" => "Audio",
        "VIDEO" => "Video",
        "ARTICLE" => "article",
        "ASIDE" => "complementary",
        "NAV" => "navigation",
        "MAIN" => "main",
        "FORM" => "form",
        "SEARCH" => "search",
        "FIGURE" => "figure",
        "FIGCAPTION" => "Figcaption",
        "DIALOG" => "dialog",
        "BLOCKQUOTE" => "blockquote",
        "CODE" => "code",
        "EM" => "emphasis",
        "STRONG" => "strong",
        "DEL" | "S" => "deletion",
        "INS" => "insertion",
        "SUB" => "subscript",
        "SUP" => "superscript",
        "MARK" => "mark",
        "TIME" => "time",
        "ABBR" => "Abbr",
        "RUBY" => "Ruby",
        "LABEL" => "LabelText",
        "LEGEND" => "Legend",
        "OUTPUT" => "status",
        "METER" => "meter",
        "PROGRESS" => "progressbar",
        "HR" => "separator",
        "BR" => "LineBreak",
        "math" => "math",
        _ => "generic",
    }
}
