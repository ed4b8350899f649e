//! States: what an element is in, by HTML and by ARIA.

use super::page::Page;
use crate::snapshot::node::{States, Tri, is_field};

impl Page<'_> {
    /// The states of an element of this role.
    pub(crate) fn states(&self, place: usize, role: &str) -> States {
        let dom = self.dom;
        let says = |name| dom.attribute(place, name) == Some("true");
        let facts = self.facts;
        let is_native = matches!(dom.tag(place), "INPUT" | "SELECT" | "TEXTAREA");
        States {
            checked: self.checked(place, role),
            pressed: tri(dom.attribute(place, "aria-pressed")).filter(|_| role == "button"),
            expanded: self.expanded(place, role),
            selected: self.is_chosen(place, role),
            disabled: (self.is_off(place) && role != "group")
                || (is_used(role) && self.around(place).any(|at| self.says_off(at))),
            readonly: is_field(role) && (says("aria-readonly") || (is_native && dom.has(place, "readonly"))),
            required: says("aria-required") || (is_native && dom.has(place, "required")),
            modal: role.ends_with("dialog") && (says("aria-modal") || self.fact(&facts.modal, place)),
            busy: says("aria-busy"),
            focused: self.fact(&facts.focused, place),
            invalid: match dom.attribute(place, "aria-invalid") {
                Some(said) => !matches!(said, "false" | ""),
                None => self.fact(&facts.invalid, place),
            },
            focusable: self.is_focusable(place),
        }
    }

    fn checked(&self, place: usize, role: &str) -> Option<Tri> {
        let takes = matches!(
            role,
            "checkbox" | "radio" | "switch" | "menuitemcheckbox" | "menuitemradio" | "option" | "treeitem"
        );
        if !takes {
            return None;
        }
        let is_native = matches!(self.kind_of_input(place).as_str(), "checkbox" | "radio");
        match self.dom.tag(place) {
            "INPUT" if is_native && self.fact(&self.facts.mixed, place) => Some(Tri::Mixed),
            "INPUT" if is_native && self.dom.is_checked(place) => Some(Tri::True),
            "INPUT" if is_native => Some(Tri::False),
            _ => tri(self.dom.attribute(place, "aria-checked")),
        }
    }

    fn expanded(&self, place: usize, role: &str) -> Option<bool> {
        let dom = self.dom;
        if role.starts_with("DisclosureTriangle") {
            return dom.parent(place).map(|details| dom.has(details, "open"));
        }
        if dom.tag(place) == "SELECT" && role == "combobox" {
            return Some(false);
        }
        let said = match dom.attribute(place, "aria-expanded") {
            Some("true") => Some(true),
            Some("false") => Some(false),
            _ => None,
        };
        let takes = is_used(role)
            || matches!(role, "row" | "gridcell" | "columnheader" | "rowheader" | "listbox" | "application");
        said.filter(|_| takes).or_else(|| {
            let popover = self.listed(place, "popovertarget").first().copied()?;
            dom.has(popover, "popover").then(|| dom.is_rendered(popover))
        })
    }

    fn is_chosen(&self, place: usize, role: &str) -> bool {
        match self.dom.tag(place) {
            "OPTION" => self.dom.is_selected(place) && !self.is_off(place),
            _ => {
                let takes = matches!(
                    role,
                    "option" | "tab" | "row" | "gridcell" | "treeitem" | "columnheader" | "rowheader"
                );
                takes && self.dom.attribute(place, "aria-selected") == Some("true")
            }
        }
    }

    fn says_off(&self, place: usize) -> bool {
        self.dom.attribute(place, "aria-disabled") == Some("true")
    }

    /// HTML, 4.10.18.5: a field is off by itself, by its fieldset, by its select or group.
    pub(crate) fn is_off(&self, place: usize) -> bool {
        let dom = self.dom;
        match dom.tag(place) {
            "BUTTON" | "INPUT" | "SELECT" | "TEXTAREA" | "FIELDSET" => {
                dom.has(place, "disabled") || self.is_in_fieldset_that_is_off(place)
            }
            "OPTION" | "OPTGROUP" => self
                .around(place)
                .take_while(|at| matches!(dom.tag(*at), "OPTION" | "OPTGROUP" | "SELECT"))
                .any(|at| dom.has(at, "disabled")),
            _ => false,
        }
    }

    fn is_in_fieldset_that_is_off(&self, place: usize) -> bool {
        let dom = self.dom;
        let mut inner = place;
        for at in self.around(place).skip(1) {
            if dom.tag(at) == "FIELDSET" && dom.has(at, "disabled") {
                let legend = dom.children(at).iter().copied().find(|child| dom.tag(*child) == "LEGEND");
                if legend != Some(inner) {
                    return true;
                }
            }
            inner = at;
        }
        false
    }
}

fn tri(said: Option<&str>) -> Option<Tri> {
    match said? {
        "true" => Some(Tri::True),
        "mixed" => Some(Tri::Mixed),
        "false" => Some(Tri::False),
        _ => None,
    }
}

/// Roles that a user acts on.
fn is_used(role: &str) -> bool {
    matches!(
        role,
        "button"
            | "link"
            | "textbox"
            | "searchbox"
            | "combobox"
            | "checkbox"
            | "radio"
            | "switch"
            | "slider"
            | "spinbutton"
            | "menuitem"
            | "menuitemcheckbox"
            | "menuitemradio"
            | "tab"
            | "option"
            | "treeitem"
            | "listbox"
    )
}
