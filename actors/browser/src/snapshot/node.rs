//! A node of a page as it is read, whichever engine read it: what lines are made from.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::frame::PageFrame;

/// A truth value that may be neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tri {
    False,
    Mixed,
    True,
}

/// What a node is in, besides its name and value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct States {
    pub(crate) checked: Option<Tri>,
    pub(crate) pressed: Option<Tri>,
    pub(crate) expanded: Option<bool>,
    pub(crate) selected: bool,
    pub(crate) disabled: bool,
    pub(crate) readonly: bool,
    pub(crate) required: bool,
    pub(crate) modal: bool,
    pub(crate) busy: bool,
    pub(crate) focused: bool,
    pub(crate) invalid: bool,
    pub(crate) focusable: bool,
}

/// One node. Texts are borrowed from the browser's message where they can be.
#[derive(Debug, Default)]
pub(crate) struct Node<'a> {
    /// Says nothing itself; its children take its place.
    pub(crate) ignored: bool,
    /// The role in Chromium's words, like `button`, `StaticText`, `RootWebArea`.
    pub(crate) role: Cow<'a, str>,
    pub(crate) name: Cow<'a, str>,
    pub(crate) value: Cow<'a, str>,
    /// The level of a heading.
    pub(crate) level: Option<Cow<'a, str>>,
    /// Where a link leads.
    pub(crate) url: Cow<'a, str>,
    pub(crate) states: States,
    /// Places of its children among the nodes of its tree.
    pub(crate) children: Vec<usize>,
    pub(crate) backend_node_id: Option<i64>,
}

/// All nodes of one document; the first is the document itself.
#[derive(Debug)]
pub(crate) struct Tree<'a> {
    pub(crate) frame: &'a PageFrame,
    pub(crate) nodes: Vec<Node<'a>>,
}

impl Tree<'_> {
    /// The place of a node of the page.
    pub(crate) fn find(&self, backend_node_id: i64) -> Option<usize> {
        self.nodes.iter().position(|node| node.backend_node_id == Some(backend_node_id))
    }

    /// Replaces what secret fields hold wherever else it is told, as in the name of a button that is labelled by one.
    pub(crate) fn mask(&mut self, is_secret: impl Fn(i64) -> bool) {
        let secrets: HashMap<usize, String> = (self.nodes.iter().enumerate())
            .filter(|(_, node)| is_field(&node.role) && !node.value.is_empty())
            .filter(|(_, node)| node.backend_node_id.is_some_and(&is_secret))
            .map(|(place, node)| (place, node.value.to_string()))
            .collect();
        for node in &mut self.nodes {
            for secret in secrets.values() {
                if node.name.contains(secret) {
                    node.name = node.name.replace(secret, &hidden(secret)).into();
                }
            }
        }
    }
}

/// As many dots as there are characters.
pub(crate) fn hidden(secret: &str) -> String {
    secret.chars().map(|_| '•').collect()
}

/// Roles that hold text which a user typed.
pub(crate) fn is_field(role: &str) -> bool {
    matches!(role, "textbox" | "searchbox" | "spinbutton" | "combobox")
}
