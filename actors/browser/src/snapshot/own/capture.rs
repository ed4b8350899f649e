//! A page as `DOMSnapshot.captureSnapshot` sends it: the flat tree of every document of one process.
//!
//! Nodes come with their parents first and in the order in which they are shown: what a slot is given stands in the
//! slot, closed shadow roots are open, and what is assigned to no slot is left out.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;

/// Styles that are asked for, in this order; each costs about a microsecond an element.
pub(crate) const STYLES: [&str; 2] = ["display", "visibility"];

const DISPLAY: usize = 0;
const VISIBILITY: usize = 1;

#[derive(Debug, Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// The whole message.
#[derive(Debug, Deserialize)]
pub(crate) struct Capture<'a> {
    documents: Vec<Document>,
    #[serde(borrow)]
    strings: Vec<Text<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    #[serde(rename = "baseURL")]
    base_url: i64,
    frame_id: i64,
    nodes: Nodes,
    layout: Layout,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Nodes {
    parent_index: Vec<i64>,
    node_type: Vec<u8>,
    node_name: Vec<i64>,
    node_value: Vec<i64>,
    backend_node_id: Vec<i64>,
    attributes: Vec<Vec<i64>>,
    #[serde(default)]
    shadow_root_type: Rare,
    #[serde(default)]
    text_value: Rare,
    #[serde(default)]
    input_value: Rare,
    #[serde(default)]
    input_checked: RareTruth,
    #[serde(default)]
    option_selected: RareTruth,
    #[serde(default)]
    pseudo_type: Rare,
}

#[derive(Debug, Default, Deserialize)]
struct Rare {
    index: Vec<usize>,
    value: Vec<i64>,
}

#[derive(Debug, Default, Deserialize)]
struct RareTruth {
    index: Vec<usize>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Layout {
    node_index: Vec<usize>,
    styles: Vec<Vec<i64>>,
    text: Vec<i64>,
}

/// What kind of node it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Document,
    Element,
    Text,
    Before,
    After,
    FirstLetter,
    Other,
}

/// One document with what belongs to a node found by its place.
#[derive(Debug)]
pub(crate) struct Dom<'a> {
    strings: &'a [Text<'a>],
    document: &'a Document,
    pub(crate) kinds: Vec<Kind>,
    children: Vec<Vec<usize>>,
    /// The first layout box of a node, if it has one.
    boxes: Vec<Option<usize>>,
    /// What a node shows as text: its own, or that of the boxes that CSS generates.
    texts: HashMap<usize, String>,
    /// Whether something of it, or in it, has a box.
    rendered: Vec<bool>,
    shadow: HashMap<usize, i64>,
    values: HashMap<usize, i64>,
    checked: Vec<usize>,
    selected: Vec<usize>,
}

impl<'a> Capture<'a> {
    /// The document of a frame.
    pub(crate) fn dom(&'a self, frame: &str) -> Option<Dom<'a>> {
        let of = |document: &&Document| self.string(document.frame_id) == Some(frame);
        self.documents.iter().find(of).map(|document| Dom::new(&self.strings, document))
    }

    fn string(&self, index: i64) -> Option<&str> {
        usize::try_from(index).ok().and_then(|index| self.strings.get(index)).map(|text| text.0.as_ref())
    }
}

impl<'a> Dom<'a> {
    fn new(strings: &'a [Text<'a>], document: &'a Document) -> Self {
        let nodes = &document.nodes;
        let count = nodes.parent_index.len();
        let mut dom = Self {
            strings,
            document,
            kinds: Vec::with_capacity(count),
            children: vec![Vec::new(); count],
            boxes: vec![None; count],
            texts: HashMap::new(),
            rendered: vec![false; count],
            shadow: pairs(&nodes.shadow_root_type),
            values: pairs(&nodes.input_value).into_iter().chain(pairs(&nodes.text_value)).collect(),
            checked: nodes.input_checked.index.clone(),
            selected: nodes.option_selected.index.clone(),
        };
        let pseudo = pairs(&nodes.pseudo_type);
        for place in 0..count {
            dom.kinds.push(dom.kind(place, &pseudo));
            if let Some(parent) = dom.parent(place) {
                dom.children[parent].push(place);
            }
        }
        for (index, place) in
            document.layout.node_index.iter().copied().enumerate().filter(|(_, p)| *p < count)
        {
            dom.boxes[place].get_or_insert(index);
            dom.rendered[place] = true;
            if let Some(text) = document.layout.text.get(index).and_then(|text| dom.string(*text)) {
                dom.texts.entry(place).or_default().push_str(text);
            }
        }
        // Children come after their parents.
        for place in (0..count).rev() {
            if let Some(parent) = dom.parent(place).filter(|_| dom.rendered[place]) {
                dom.rendered[parent] = true;
            }
        }
        dom
    }

    fn kind(&self, place: usize, pseudo: &HashMap<usize, i64>) -> Kind {
        match (self.document.nodes.node_type.get(place), pseudo.get(&place)) {
            (_, Some(kind)) => match self.string(*kind) {
                Some("before") => Kind::Before,
                Some("after") => Kind::After,
                Some("first-letter") => Kind::FirstLetter,
                _ => Kind::Other,
            },
            (Some(1), None) => Kind::Element,
            (Some(3 | 4), None) => Kind::Text,
            (Some(9), None) => Kind::Document,
            _ => Kind::Other,
        }
    }

    fn string(&self, index: i64) -> Option<&'a str> {
        usize::try_from(index).ok().and_then(|index| self.strings.get(index)).map(|text| text.0.as_ref())
    }

    pub(crate) fn len(&self) -> usize {
        self.kinds.len()
    }

    pub(crate) fn parent(&self, place: usize) -> Option<usize> {
        self.document.nodes.parent_index.get(place).and_then(|parent| usize::try_from(*parent).ok())
    }

    pub(crate) fn children(&self, place: usize) -> &[usize] {
        &self.children[place]
    }

    /// The name of an element as its document writes it: upper case in HTML.
    pub(crate) fn tag(&self, place: usize) -> &'a str {
        match self.kinds[place] {
            Kind::Element => self.string(self.document.nodes.node_name[place]).unwrap_or(""),
            _ => "",
        }
    }

    pub(crate) fn backend_node_id(&self, place: usize) -> Option<i64> {
        self.document.nodes.backend_node_id.get(place).copied()
    }

    pub(crate) fn attribute(&self, place: usize, name: &str) -> Option<&'a str> {
        self.attributes(place).find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    pub(crate) fn has(&self, place: usize, name: &str) -> bool {
        self.attribute(place, name).is_some()
    }

    pub(crate) fn attributes(&self, place: usize) -> impl Iterator<Item = (&'a str, &'a str)> + '_ {
        let all = self.document.nodes.attributes.get(place).map_or(&[][..], Vec::as_slice);
        all.chunks_exact(2)
            .map(|pair| (self.string(pair[0]).unwrap_or(""), self.string(pair[1]).unwrap_or("")))
    }

    /// The text of a node that was not laid out.
    pub(crate) fn source_text(&self, place: usize) -> &'a str {
        self.string(self.document.nodes.node_value[place]).unwrap_or("")
    }

    /// What a text or a box of CSS shows; `None` if it shows nothing.
    pub(crate) fn shown_text(&self, place: usize) -> Option<&str> {
        self.texts.get(&place).map(String::as_str)
    }

    /// Whether something of it, or in it, has a box.
    pub(crate) fn is_rendered(&self, place: usize) -> bool {
        self.rendered[place]
    }

    pub(crate) fn has_box(&self, place: usize) -> bool {
        self.boxes[place].is_some()
    }

    fn style(&self, place: usize, which: usize) -> &'a str {
        let styles = self.boxes[place].and_then(|index| self.document.layout.styles.get(index));
        styles.and_then(|styles| styles.get(which)).and_then(|style| self.string(*style)).unwrap_or("")
    }

    /// The CSS `display` of a node with a box.
    pub(crate) fn display(&self, place: usize) -> &'a str {
        self.style(place, DISPLAY)
    }

    /// Whether its box is there and shows nothing.
    pub(crate) fn is_invisible(&self, place: usize) -> bool {
        !matches!(self.style(place, VISIBILITY), "visible" | "")
    }

    /// Whether a node is in a shadow tree, and of which kind.
    pub(crate) fn shadow(&self, place: usize) -> Option<&'a str> {
        self.shadow.get(&place).and_then(|kind| self.string(*kind))
    }

    /// What a field holds.
    pub(crate) fn value(&self, place: usize) -> &'a str {
        self.values.get(&place).and_then(|value| self.string(*value)).unwrap_or("")
    }

    pub(crate) fn is_checked(&self, place: usize) -> bool {
        self.checked.binary_search(&place).is_ok()
    }

    pub(crate) fn is_selected(&self, place: usize) -> bool {
        self.selected.binary_search(&place).is_ok()
    }

    pub(crate) fn base_url(&self) -> &'a str {
        self.string(self.document.base_url).unwrap_or("")
    }
}

fn pairs(rare: &Rare) -> HashMap<usize, i64> {
    rare.index.iter().copied().zip(rare.value.iter().copied()).collect()
}
