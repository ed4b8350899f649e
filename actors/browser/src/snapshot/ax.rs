//! The accessibility tree as Chromium sends it (`Accessibility.getFullAXTree`), borrowed from its message.
//!
//! A tree has about 900 bytes a node; owned values would cost more than everything else here.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Debug, Deserialize)]
pub(crate) struct AxTree<'a> {
    #[serde(borrow)]
    pub(crate) nodes: Vec<AxNode<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AxNode<'a> {
    #[serde(borrow)]
    pub(crate) node_id: &'a str,
    #[serde(default)]
    pub(crate) ignored: bool,
    #[serde(borrow)]
    role: Option<AxValue<'a>>,
    #[serde(borrow)]
    name: Option<AxValue<'a>>,
    #[serde(borrow)]
    value: Option<AxValue<'a>>,
    #[serde(borrow, default)]
    properties: Vec<AxProperty<'a>>,
    #[serde(borrow, default)]
    pub(crate) child_ids: Vec<&'a str>,
    #[serde(rename = "backendDOMNodeId")]
    pub(crate) backend_node_id: Option<i64>,
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
    pub(crate) fn role(&self) -> Cow<'a, str> {
        self.role.as_ref().map_or(Cow::Borrowed(""), AxValue::text)
    }

    pub(crate) fn name(&self) -> Cow<'a, str> {
        self.name.as_ref().map_or(Cow::Borrowed(""), AxValue::text)
    }

    pub(crate) fn value(&self) -> Cow<'a, str> {
        self.value.as_ref().map_or(Cow::Borrowed(""), AxValue::text)
    }

    pub(crate) fn property(&self, name: &str) -> Option<Cow<'a, str>> {
        self.properties.iter().find(|property| property.name == name).map(|property| property.value.text())
    }

    pub(crate) fn is(&self, property: &str) -> bool {
        self.property(property).is_some_and(|value| value == "true")
    }
}

/// The nodes of fields that hold a value.
pub(crate) fn fields_with_value(tree: &[u8]) -> serde_json::Result<Vec<i64>> {
    let tree: AxTree<'_> = serde_json::from_slice(tree)?;
    let with_value = tree.nodes.iter().filter(|node| !node.value().is_empty() && is_field(&node.role()));
    Ok(with_value.filter_map(|node| node.backend_node_id).collect())
}

/// Roles that hold text which a user typed.
pub(crate) fn is_field(role: &str) -> bool {
    matches!(role, "textbox" | "searchbox" | "spinbutton" | "combobox")
}
