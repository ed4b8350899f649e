//! The accessibility tree as Chromium sends it (`Accessibility.getFullAXTree`), borrowed from its message.
//!
//! A tree has about 900 bytes a node; owned values would cost more than everything else here.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::node::{Node, States, Tree, Tri, is_field};
use crate::frame::PageFrame;

#[derive(Debug, Deserialize)]
struct AxTree<'a> {
    #[serde(borrow)]
    nodes: Vec<AxNode<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AxNode<'a> {
    #[serde(borrow)]
    node_id: &'a str,
    #[serde(default)]
    ignored: bool,
    #[serde(borrow)]
    role: Option<AxValue<'a>>,
    #[serde(borrow)]
    name: Option<AxValue<'a>>,
    #[serde(borrow)]
    value: Option<AxValue<'a>>,
    #[serde(borrow, default)]
    properties: Vec<AxProperty<'a>>,
    #[serde(borrow, default)]
    child_ids: Vec<&'a str>,
    #[serde(rename = "backendDOMNodeId")]
    backend_node_id: Option<i64>,
}

#[derive(Debug, Deserialize)]
struct AxProperty<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    value: AxValue<'a>,
}

#[derive(Debug, Deserialize)]
struct AxValue<'a> {
    #[serde(borrow)]
    value: Option<&'a RawValue>,
}

impl<'a> AxValue<'a> {
    /// A string as it is, a number or truth value as it is written.
    fn text(&self) -> Cow<'a, str> {
        #[derive(Deserialize)]
        struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
        let Some(raw) = self.value else { return Cow::Borrowed("") };
        match raw.get() {
            text if text.starts_with('"') => {
                serde_json::from_str::<Text<'a>>(text).map_or(Cow::Borrowed(""), |text| text.0)
            }
            other => Cow::Borrowed(other),
        }
    }
}

impl<'a> AxNode<'a> {
    fn property(&self, name: &str) -> Option<Cow<'a, str>> {
        self.properties.iter().find(|property| property.name == name).map(|property| property.value.text())
    }

    /// A truth value is written as a word or, like `busy`, as a number.
    fn is(&self, property: &str) -> bool {
        self.property(property).is_some_and(|value| matches!(value.as_ref(), "true" | "1"))
    }

    fn tri(&self, property: &str) -> Option<Tri> {
        Some(match self.property(property)?.as_ref() {
            "true" => Tri::True,
            "mixed" => Tri::Mixed,
            _ => Tri::False,
        })
    }

    fn states(&self) -> States {
        States {
            checked: self.tri("checked"),
            pressed: self.tri("pressed"),
            expanded: self.property("expanded").map(|expanded| expanded == "true"),
            selected: self.is("selected"),
            disabled: self.is("disabled"),
            readonly: self.is("readonly"),
            required: self.is("required"),
            modal: self.is("modal"),
            busy: self.is("busy"),
            focused: self.is("focused"),
            invalid: self
                .property("invalid")
                .is_some_and(|invalid| !matches!(invalid.as_ref(), "false" | "")),
            focusable: self.is("focusable"),
        }
    }

    fn read(&self, by_id: &HashMap<&str, usize>) -> Node<'a> {
        let text = |value: &Option<AxValue<'a>>| value.as_ref().map_or(Cow::Borrowed(""), AxValue::text);
        Node {
            ignored: self.ignored,
            role: text(&self.role),
            name: text(&self.name),
            value: text(&self.value),
            level: self.property("level"),
            url: self.property("url").unwrap_or_default(),
            states: self.states(),
            children: self.child_ids.iter().filter_map(|id| by_id.get(id).copied()).collect(),
            backend_node_id: self.backend_node_id,
        }
    }
}

/// Reads the tree of a frame.
pub(crate) fn decode<'a>(frame: &'a PageFrame, bytes: &'a [u8]) -> serde_json::Result<Tree<'a>> {
    let AxTree { nodes } = serde_json::from_slice::<AxTree<'a>>(bytes)?;
    let by_id = nodes.iter().enumerate().map(|(index, node)| (node.node_id, index)).collect();
    Ok(Tree { frame, nodes: nodes.iter().map(|node| node.read(&by_id)).collect() })
}

/// The nodes of fields that hold a value.
pub(crate) fn fields_with_value(tree: &[u8]) -> serde_json::Result<Vec<i64>> {
    let AxTree { nodes } = serde_json::from_slice::<AxTree<'_>>(tree)?;
    let text =
        |value: &Option<AxValue<'_>>| value.as_ref().map(AxValue::text).unwrap_or_default().into_owned();
    let with_value = nodes.iter().filter(|node| !text(&node.value).is_empty() && is_field(&text(&node.role)));
    Ok(with_value.filter_map(|node| node.backend_node_id).collect())
}
