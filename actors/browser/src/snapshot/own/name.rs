//! Names: what an element is called (Accessible Name and Description Computation 1.2, section 4.3).

use super::capture::Kind;
use super::page::Page;
use crate::snapshot::node::hidden;

/// How deep references to other names are followed.
const DEPTH_MAX: usize = 60;

/// A name that grows part by part.
#[derive(Default)]
struct Growing {
    text: String,
    /// What comes next is apart from what is there.
    is_apart: bool,
}

impl Growing {
    fn push(&mut self, part: &str) {
        if part.is_empty() {
            return;
        }
        let touches = self.text.chars().next_back().is_some_and(|last| !last.is_whitespace())
            && !part.starts_with(char::is_whitespace);
        if std::mem::take(&mut self.is_apart) && touches {
            self.text.push(' ');
        }
        self.text.push_str(part);
    }

    fn push_apart(&mut self, part: &str) {
        self.is_apart = true;
        self.push(part);
        self.is_apart = true;
    }
}

/// What a walk through content takes in.
#[derive(Clone, Copy)]
struct Walk {
    /// The field that the text is for: it does not name itself.
    except: Option<usize>,
    /// What is not shown is read too: the whole is hidden, and meant all the same.
    unseen: bool,
    depth: usize,
}

impl Page<'_> {
    /// The name of an element of this role.
    pub(crate) fn name(&self, place: usize, role: &str) -> String {
        let own = Walk { except: None, unseen: false, depth: 0 };
        let referred = self.name_by_reference(place);
        if is_told(&referred) {
            return referred;
        }
        let said = self.said(place).or_else(|| self.native(place, role));
        let named = said.filter(|name| is_told(name)).or_else(|| {
            let content = is_named_by_content(role).then(|| self.content_of(place, own));
            content.filter(|name| is_told(name))
        });
        named.or_else(|| self.title(place, role)).unwrap_or_default()
    }

    fn name_by_reference(&self, place: usize) -> String {
        let mut name = Growing::default();
        for label in self.listed(place, "aria-labelledby") {
            let unseen = !self.is_seen(label);
            name.push_apart(&self.text_of(label, Walk { except: None, unseen, depth: 1 }));
        }
        name.text
    }

    fn is_seen(&self, place: usize) -> bool {
        let is_shown =
            self.dom.is_rendered(place) && !(self.dom.has_box(place) && self.dom.is_invisible(place));
        is_shown && !self.around(place).any(|at| self.is_cut(at))
    }

    fn said(&self, place: usize) -> Option<String> {
        let said = self.dom.attribute(place, "aria-label")?;
        is_told(said).then(|| said.to_owned())
    }

    /// HTML-AAM 1.0, section 4.1: what names an element of HTML before its content does.
    fn native(&self, place: usize, role: &str) -> Option<String> {
        let dom = self.dom;
        let attribute = |name| dom.attribute(place, name).map(str::to_owned);
        let first = |tag: &str| dom.children(place).iter().copied().find(|child| dom.tag(*child) == tag);
        let text = |place| self.content_of(place, Walk { except: None, unseen: false, depth: 1 });
        match dom.tag(place) {
            "INPUT" => self.input_name(place),
            "TEXTAREA" => self
                .labelled(place)
                .or_else(|| attribute("title").filter(|title| is_told(title)))
                .or_else(|| attribute("placeholder")),
            "SELECT" | "BUTTON" | "METER" | "PROGRESS" | "OUTPUT" => self.labelled(place),
            "IMG" | "AREA" => attribute("alt"),
            "FIELDSET" => first("LEGEND").map(text),
            "TABLE" if role == "table" => first("CAPTION").map(text).or_else(|| attribute("summary")),
            "OPTGROUP" => attribute("label"),
            "OPTION" => Some(self.option_text(place)),
            "svg" => {
                let title = first("title")?;
                Some(self.source(title))
            }
            _ => None,
        }
    }

    fn input_name(&self, place: usize) -> Option<String> {
        let attribute = |name| self.dom.attribute(place, name).map(str::to_owned);
        let told = |name| attribute(name).filter(|text| is_told(text));
        let labelled = self.labelled(place);
        match self.kind_of_input(place).as_str() {
            "submit" => {
                labelled.or_else(|| attribute("value")).or_else(|| told("title")).or(Some("Submit".into()))
            }
            "reset" => {
                labelled.or_else(|| attribute("value")).or_else(|| told("title")).or(Some("Reset".into()))
            }
            "button" => labelled.or_else(|| attribute("value")),
            "image" => labelled
                .or_else(|| told("alt"))
                .or_else(|| told("title"))
                .or_else(|| told("value"))
                .or(Some("Submit".into())),
            "file" => labelled.or_else(|| told("title")).or_else(|| {
                let many = self.dom.has(place, "multiple");
                Some(if many { "Choose Files" } else { "Choose File" }.into())
            }),
            "checkbox" | "radio" | "range" | "color" | "date" | "time" | "datetime-local" | "month"
            | "week" => labelled,
            _ => labelled.or_else(|| told("title")).or_else(|| attribute("placeholder")),
        }
    }

    /// Whether a field is called as the browser's language has it.
    pub(crate) fn is_named_by_browser(&self, place: usize) -> bool {
        let dom = self.dom;
        let is_worded = match (dom.tag(place), self.kind_of_input(place).as_str()) {
            ("INPUT", "file") => true,
            ("INPUT", "submit" | "reset") => !dom.has(place, "value"),
            ("INPUT", "image") => !dom.has(place, "alt"),
            _ => false,
        };
        is_worded && dom.is_rendered(place)
    }

    fn labelled(&self, field: usize) -> Option<String> {
        let mut name = Growing::default();
        for label in self.labels(field) {
            let unseen = !self.is_seen(*label);
            name.push_apart(&self.text_of(*label, Walk { except: Some(field), unseen, depth: 1 }));
        }
        is_told(&name.text).then_some(name.text)
    }

    /// A title names what nothing else does.
    fn title(&self, place: usize, role: &str) -> Option<String> {
        let names = !matches!(
            role,
            "generic"
                | "paragraph"
                | "none"
                | ""
                | "LabelText"
                | "strong"
                | "emphasis"
                | "code"
                | "mark"
                | "deletion"
                | "insertion"
                | "subscript"
                | "superscript"
                | "time"
                | "listitem"
                | "list"
                | "row"
                | "caption"
        );
        self.dom.attribute(place, "title").filter(|title| names && is_told(title)).map(str::to_owned)
    }

    /// The text that an element stands for inside another one's name.
    fn text_of(&self, place: usize, walk: Walk) -> String {
        let mut name = Growing::default();
        self.grow(place, walk, &mut name);
        name.text
    }

    fn content_of(&self, place: usize, walk: Walk) -> String {
        let mut name = Growing::default();
        self.grow_content(place, walk, &mut name);
        name.text
    }

    fn grow_content(&self, place: usize, walk: Walk, name: &mut Growing) {
        for inner in self.content(place) {
            match self.dom.kinds[inner] {
                Kind::Text if walk.unseen => name.push(self.dom.source_text(inner)),
                Kind::Text => name.push(&self.text(inner).unwrap_or_default()),
                Kind::Before | Kind::After if !walk.unseen => {
                    let is_block = !matches!(self.dom.display(inner), "inline" | "contents" | "");
                    name.is_apart |= is_block;
                    name.push(&self.text(inner).unwrap_or_default());
                    name.is_apart |= is_block;
                }
                Kind::Element => self.grow(inner, walk, name),
                _ => {}
            }
        }
    }

    fn grow(&self, place: usize, walk: Walk, name: &mut Growing) {
        let dom = self.dom;
        let is_left_out = Some(place) == walk.except
            || walk.depth > DEPTH_MAX
            || (!walk.unseen && (!dom.is_rendered(place) || self.is_cut(place)))
            || matches!(
                dom.tag(place),
                "SCRIPT" | "STYLE" | "NOSCRIPT" | "TEMPLATE" | "RT" | "RP" | "DATALIST"
            );
        if is_left_out {
            return;
        }
        if dom.tag(place) == "BR" {
            name.is_apart = true;
            return;
        }
        if let Some(said) = self.said(place) {
            name.push_apart(&said);
            return;
        }
        let role = self.role(place);
        if let Some(value) = self.value_in_name(place, role) {
            name.push_apart(&value);
            return;
        }
        if let Some(native) = self.native(place, role) {
            name.push_apart(&native);
            return;
        }
        if dom.tag(place) == "IFRAME" {
            name.push_apart(dom.attribute(place, "title").unwrap_or(""));
            return;
        }
        let deeper = Walk { depth: walk.depth + 1, ..walk };
        // What is laid out as a box of its own is apart from the text around it.
        let is_apart = dom.has_box(place) && !matches!(dom.display(place), "inline" | "contents");
        name.is_apart |= is_apart;
        let before = name.text.len();
        self.grow_content(place, deeper, name);
        if name.text.len() == before && matches!(role, "link" | "button" | "image") {
            name.push_apart(dom.attribute(place, "title").unwrap_or(""));
        }
        name.is_apart |= is_apart;
    }

    /// What a field inside of a name says: its value.
    fn value_in_name(&self, place: usize, role: &str) -> Option<String> {
        match role {
            "textbox" | "searchbox" | "combobox" | "spinbutton" | "slider" | "listbox" | "progressbar"
            | "meter" | "scrollbar" => Some(self.told_value(place, role)),
            "checkbox" | "radio" | "switch" if self.dom.tag(place) == "INPUT" => Some(String::new()),
            _ => None,
        }
    }

    /// The value of an element, with dots for one that may not be told.
    pub(crate) fn told_value(&self, place: usize, role: &str) -> String {
        let value = self.value(place, role);
        if self.is_secret(place) { hidden(&value) } else { value }
    }

    /// The value of an element, as it is.
    fn value(&self, place: usize, role: &str) -> String {
        let dom = self.dom;
        let attribute = |name| dom.attribute(place, name).unwrap_or("").trim().to_owned();
        match dom.tag(place) {
            "INPUT" => match self.kind_of_input(place).as_str() {
                "checkbox" | "radio" | "button" | "submit" | "reset" | "image" | "hidden" => String::new(),
                "file" => self.files(place),
                _ => dom.value(place).to_owned(),
            },
            "TEXTAREA" => dom.value(place).to_owned(),
            "SELECT" if role == "listbox" => String::new(),
            "SELECT" => {
                let chosen = self.inside(place).find(|option| dom.is_selected(*option));
                chosen.map_or_else(String::new, |option| self.option_text(option))
            }
            "METER" | "PROGRESS" => attribute("value"),
            _ if matches!(role, "slider" | "spinbutton" | "progressbar" | "scrollbar" | "meter") => {
                let now = attribute("aria-valuenow");
                now.parse::<f64>().map_or_else(|_| String::new(), |_| now)
            }
            _ if self.is_editing_root(place) || matches!(role, "textbox" | "searchbox" | "combobox") => {
                self.content_of(place, Walk { except: None, unseen: false, depth: 1 })
            }
            _ => String::new(),
        }
    }

    fn files(&self, place: usize) -> String {
        let files = self.dom.backend_node_id(place).and_then(|node| self.facts.files.get(&node));
        match files {
            None | Some((0, _)) => "No file chosen".to_owned(),
            Some((1, name)) => name.clone(),
            Some((count, _)) => format!("{count} files"),
        }
    }

    fn option_text(&self, place: usize) -> String {
        let label = self.dom.attribute(place, "label").filter(|label| !label.is_empty());
        label.map_or_else(|| self.source(place), str::to_owned)
    }

    /// The text of all that is inside, shown or not.
    fn source(&self, place: usize) -> String {
        let texts = self.inside(place).filter(|inner| self.dom.kinds[*inner] == Kind::Text);
        texts.map(|text| self.dom.source_text(text)).collect()
    }
}

fn is_told(name: &str) -> bool {
    !name.trim().is_empty()
}

/// WAI-ARIA 1.2, section 5.2.8.4; of these, the roles whose name is shown.
fn is_named_by_content(role: &str) -> bool {
    matches!(
        role,
        "button"
            | "checkbox"
            | "columnheader"
            | "heading"
            | "link"
            | "math"
            | "menuitem"
            | "menuitemcheckbox"
            | "menuitemradio"
            | "option"
            | "radio"
            | "rowheader"
            | "switch"
            | "tab"
            | "term"
            | "tooltip"
            | "treeitem"
            | "DisclosureTriangle"
            | "DisclosureTriangleGrouped"
    )
}
